/*-------------------------------------------------------------------------
 *
 * protect.c
 *	  Are all data pages that changed since the redo pointer in the WAL as
 *	  images?
 *
 * While full_page_writes is on, the first record after a redo pointer that
 * refers to a page has an image of it, or initializes it.  But a page's LSN does
 * not tell whether that was so: full_page_writes may have been off when the page
 * was changed, and on again since.  So the end of the last record of ours that was
 * inserted without that protection is kept here.  If that is before the redo
 * pointer, all records since the redo pointer have the protection.
 *
 * Invariants
 *	  1. All records that refer to pages of tables are inserted by
 *		 inplace_xlog_insert, or by the server with an image in any case
 *		 (log_newpage), or for a hint (inplace_mark_hint).  These functions
 *		 note what is to be noted before the page's lock is let go, so
 *		 the backend that changes the page next knows.
 *	  2. The note only ever goes forward.
 *	  3. What was replayed may have been inserted without protection: when
 *		 replay ends, all of it counts so.  A server that was shut down in
 *		 order, and replays nothing, has no page that is newer than its redo
 *		 pointer.
 *	  4. With wal_level = minimal the server copies files without WAL (SET
 *		 TABLESPACE, CREATE DATABASE), and the copies' pages keep LSNs that only
 *		 the originals have images for.  So nothing counts as protected
 *		 there.
 *
 * What GetFullPageWriteInfo says is true of the record that this backend
 * inserted last, and may be out of date afterwards.  An old redo pointer makes
 * the answer here more cautious, not wrong; full_page_writes that has been
 * switched off meanwhile is seen after the insertion (log.c).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "page/protect.h"
#include "port/atomics.h"
#include "rmgr.h"
#include "storage/shmem.h"

/* the end of the last record that was inserted without protection */
static pg_atomic_uint64 *unprotected = NULL;

Size
WalProtectShmemSize(void)
{
	return sizeof(pg_atomic_uint64);
}

void
WalProtectShmemInit(void)
{
	bool		found;

	unprotected = ShmemInitStruct("inplace unprotected WAL",
								  WalProtectShmemSize(), &found);
	if (!found)
		pg_atomic_init_u64(unprotected, InvalidXLogRecPtr);
}

static void
note_unprotected(XLogRecPtr lsn)
{
	uint64		before = pg_atomic_read_u64(unprotected);

	while (before < lsn &&
		   !pg_atomic_compare_exchange_u64(unprotected, &before, lsn))
		;
}

XLogRecPtr
inplace_xlog_insert(uint8 info)
{
	XLogRecPtr	lsn = XLogInsert(RM_INPLACE_ID, info);
	XLogRecPtr	redo;
	bool		full_page_writes;

	GetFullPageWriteInfo(&redo, &full_page_writes);
	if (unlikely(!full_page_writes))
		note_unprotected(lsn);
	return lsn;
}

/*
 * MarkBufferDirtyHint for a page of a table.  With checksums or wal_log_hints
 * the server may insert a record for it, and sets the page's LSN then.
 */
void
inplace_mark_hint(Buffer buffer)
{
	XLogRecPtr	before;
	XLogRecPtr	redo;
	bool		full_page_writes;

	if (!XLogHintBitIsNeeded())
	{
		MarkBufferDirtyHint(buffer, true);
		return;
	}

	before = BufferGetLSNAtomic(buffer);
	MarkBufferDirtyHint(buffer, true);
	if (BufferGetLSNAtomic(buffer) == before)
		return;
	GetFullPageWriteInfo(&redo, &full_page_writes);
	if (unlikely(!full_page_writes))
		note_unprotected(GetXLogInsertRecPtr());
}

bool
inplace_pages_protected(void)
{
	XLogRecPtr	redo;
	bool		full_page_writes;

	GetFullPageWriteInfo(&redo, &full_page_writes);
	return full_page_writes && XLogIsNeeded() &&
		pg_atomic_read_u64(unprotected) <= redo;
}

/* the resource manager's cleanup: replay has come to its end */
void
inplace_redo_cleanup(void)
{
	note_unprotected(GetXLogReplayRecPtr(NULL));
}

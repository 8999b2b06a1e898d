/*-------------------------------------------------------------------------
 *
 * redo_gin.c
 *	  Replay of one more TID in a posting list of a GIN index.
 *
 * The record, and what makes the entry, are in wal/log_gin.c.  Other changes of these indexes
 * have GIN's own records.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "redo/redo.h"
#include "wal/log_gin.h"
#include "wal/wal.h"

void
inplace_redo_gin_add(XLogReaderState *record)
{
	xl_ip_gin_add xlrec;
	Buffer		buffer;

	memcpy(&xlrec, XLogRecGetData(record), SizeOfIpGinAdd);
	if (XLogReadBufferForRedo(record, 0, &buffer) == BLK_NEEDS_REDO)
	{
		Page		page = BufferGetPage(buffer);
		IndexTuple	itup;
		bool		there;

		if (xlrec.off > PageGetMaxOffsetNumber(page))
			inplace_bad_record(record, "no entry at its place");
		itup = inplace_gin_entry_with((IndexTuple) PageGetItem(page, PageGetItemId(page, xlrec.off)),
									  &xlrec.tid, &there);
		if (itup == NULL ||
			!PageIndexTupleOverwrite(page, xlrec.off, (Item) itup, IndexTupleSize(itup)))
			inplace_bad_record(record, "entry does not take one more row");
		pfree(itup);
		finish_page(record, buffer);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

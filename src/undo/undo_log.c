/*-------------------------------------------------------------------------
 *
 * undo_log.c
 *	  Records about the files of undo.  (What is in them is logged with the
 *	  change of the row, by wal/log.c.)
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/xloginsert.h"
#include "catalog/pg_control.h"
#include "page/protect.h"
#include "rmgr.h"
#include "undo/undo_log.h"

void
inplace_log_discard(Oid dboid, TransactionId horizon)
{
	xl_ip_undo_discard xlrec;

	xlrec.dboid = dboid;
	xlrec.horizon = horizon;

	XLogBeginInsert();
	XLogRegisterData((char *) &xlrec, sizeof(xlrec));
	inplace_xlog_insert(XLOG_IP_UNDO_DISCARD);
}

/*
 * The pages from "start" up to "end" of the undo file are about to be cut off.
 * pg_rewind, which looks at block references only, must learn that they change.  The
 * file may be made longer again with empty pages, of which nothing is logged before
 * they are used; and pg_rewind passes over the record of the truncation itself, as it
 * goes by the length of the file.  Nothing is to be replayed: these are the server's
 * records of hints, which may come without images and then do nothing, and which
 * wal_consistency_checking leaves alone.  That the pages' contents do not matter keeps
 * recovery from prefetching them.
 */
void
inplace_log_undo_cut(RelFileLocator locator, BlockNumber start, BlockNumber end)
{
	static PGAlignedBlock empty;

	if (PageIsNew((Page) empty.data))
		PageInit((Page) empty.data, BLCKSZ, 0);
	XLogEnsureRecordSpace(XLR_MAX_BLOCK_ID, 0);
	while (start < end)
	{
		XLogBeginInsert();
		for (int i = 0; i <= XLR_MAX_BLOCK_ID && start < end; i++, start++)
			XLogRegisterBlock(i, &locator, MAIN_FORKNUM, start, (Page) empty.data,
							  REGBUF_STANDARD | REGBUF_WILL_INIT);
		(void) XLogInsert(RM_XLOG_ID, XLOG_FPI_FOR_HINT);
	}
}

/*-------------------------------------------------------------------------
 *
 * analyze.c
 *	  The block sample of ANALYZE.
 *
 * Rows are counted as live or dead by the rules that heap has, so that the
 * counts go together with what transactions in progress will report when they
 * end: a transaction in progress has not happened yet, unless it is our own,
 * which has.
 *
 * Versions in undo are neither live nor dead rows: a row counts once, however
 * often it was updated in place.  What is sampled of a row that somebody else
 * is updating is the version before.
 *
 * The page is classified and copied under its lock when the first row is asked
 * for, and let go of; rows are returned from the copy.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/page.h"
#include "page/recent.h"
#include "page/tuple.h"
#include "row/visibility.h"
#include "scan/scan.h"
#include "vacuum/stale.h"

#if PG_VERSION_NUM >= 170000
#include "storage/read_stream.h"
#endif

static void
start_block(InplaceScanDesc scan, Buffer buffer)
{
	scan->cblock = BufferGetBlockNumber(buffer);
	ScanPinTake(&scan->pin, scan->base.rs_rd, scan->cblock, buffer);
	scan->inited = true;
	scan->classified = false;
	scan->nvis = 0;
	scan->cindex = 0;
}

#if PG_VERSION_NUM >= 170000
static bool
inplace_analyze_next_block(TableScanDesc sscan, ReadStream *stream)
{
	Buffer		buffer = read_stream_next_buffer(stream, NULL);

	if (!BufferIsValid(buffer))
		return false;
	start_block((InplaceScanDesc) sscan, buffer);
	return true;
}
#else
static bool
inplace_analyze_next_block(TableScanDesc sscan, BlockNumber blockno,
						   BufferAccessStrategy bstrategy)
{
	start_block((InplaceScanDesc) sscan,
				ReadBufferExtended(sscan->rs_rd, MAIN_FORKNUM, blockno,
								   RBM_NORMAL, bstrategy));
	return true;
}
#endif

/*
 * A row of the share-locked page: it is counted as dead, or listed in vis[], of which
 * *n are used, or both.
 */
static void
classify_row(InplaceScanDesc scan, InplaceTupleHeader tup, OffsetNumber off,
			 TransactionId oldest_xmin, int *n, int *nswept)
{
	bool		swept = HdrIsSwept(tup);
	bool		all_visible;

	switch (inplace_row_state(scan->base.rs_rd, tup, scan->pin.buffer,
							  oldest_xmin, NULL, &all_visible))
	{
		case ROW_LIVE:
			scan->vis[(*n)++] = off;
			/* and for its stale index entries */
			if (tup->t_infomask & IP_STALE)
			{
				if (swept)
					(*nswept)++;
				else
					scan->dead++;
			}
			break;

		case ROW_DEAD:
		case ROW_RECENTLY_DEAD:
		case ROW_ABORTED_INSERT:
			scan->dead++;
			break;

		case ROW_INSERT_IN_PROGRESS:
			/* counted when its transaction reports it */
			if (TransactionIdIsCurrentTransactionId(tup->t_xid))
				scan->vis[(*n)++] = off;
			break;

		case ROW_UPDATE_IN_PROGRESS:
			scan->vis[(*n)++] = TransactionIdIsCurrentTransactionId(tup->t_xid) ?
				off : off | SCAN_UNDO;
			break;

		case ROW_ABORTED_CHANGE:
			/* a mark stays when the version before is restored */
			if (tup->t_infomask & IP_STALE)
				scan->dead++;
			scan->vis[(*n)++] = off | SCAN_UNDO;
			break;

		case ROW_DELETE_IN_PROGRESS:
			if (TransactionIdIsCurrentTransactionId(tup->t_xid))
				scan->dead++;
			else
				scan->vis[(*n)++] = off;
			break;
	}
}

/*
 * Count the rows of the page and list those to be sampled in vis[].
 *
 * Rows with stale index entries count as dead.  Those that VACUUM has swept
 * have none any more: see count_swept().
 */
static void
classify_page(InplaceScanDesc scan, TransactionId oldest_xmin)
{
	Relation	rel = scan->base.rs_rd;
	Buffer		buffer = scan->pin.buffer;
	int			n = 0;
	OffsetNumber off;
	OffsetNumber maxoff;
	Page		page;
	int			nswept = 0;
	bool		others = false; /* rows that are stale, and not swept */

	scan->dead = 0;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = RowPage(rel, buffer);
	if (PageIsNew(page))
		maxoff = 0;
	else
	{
		inplace_check_page(rel, page, scan->cblock);
		maxoff = PageGetMaxOffsetNumber(page);
	}

	for (off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		InplaceTupleHeader tup;

		if (!ItemIdIsNormal(lp))
		{
			/* VACUUM has to come for those */
			if (ItemIdIsDead(lp))
				scan->dead++;
			continue;
		}

		tup = (InplaceTupleHeader) PageGetItem(page, lp);
		if ((tup->t_infomask & IP_STALE) && !HdrIsSwept(tup))
			others = true;
		classify_row(scan, tup, off, oldest_xmin, &n, &nswept);
	}

	inplace_scan_copy_page(scan, page);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);

	if (nswept > 0 && others)
		scan->pages_mixed++;
	else if (nswept > 0)
	{
		scan->pages_only_swept++;
		scan->swept += nswept;
	}
	scan->nvis = n;
	scan->classified = true;
}

/*
 * Swept rows count, all of those met so far, as VACUUM counts them.
 */
static void
count_swept(InplaceScanDesc scan, double before, double *deadrows)
{
	if (scan->swept_counted)
		*deadrows -= before;
	scan->swept_counted = SweptRowsCount(scan->pages_only_swept, scan->pages_mixed);
	if (scan->swept_counted)
		*deadrows += scan->swept;
}

static bool
inplace_analyze_next_tuple(TableScanDesc sscan, TransactionId OldestXmin,
						   double *liverows, double *deadrows,
						   TupleTableSlot *slot)
{
	InplaceScanDesc scan = (InplaceScanDesc) sscan;

	if (!scan->classified)
	{
		double		swept_before = scan->swept;

		classify_page(scan, OldestXmin);
		*deadrows += scan->dead;
		count_swept(scan, swept_before, deadrows);
	}

	while (scan->cindex < scan->nvis)
	{
		uint16		entry = scan->vis[scan->cindex++];

		/*
		 * Somebody else's change, in progress or rolled back: what was there
		 * before.  There may have been nothing, if the row is a new one that
		 * has been locked.
		 */
		if (entry & SCAN_UNDO)
		{
			if (!ActiveSnapshotSet() ||
				!inplace_scan_store_visible(scan, entry & SCAN_OFFSET_MASK,
											GetActiveSnapshot(), slot))
				continue;
		}
		else
			inplace_scan_store(scan, entry, slot);

		*liverows += 1;
		return true;
	}

	ScanPinDrop(&scan->pin);
	scan->inited = false;
	ExecClearTuple(slot);
	return false;
}

void
inplace_init_analyze_methods(TableAmRoutine *am)
{
	am->scan_analyze_next_block = inplace_analyze_next_block;
	am->scan_analyze_next_tuple = inplace_analyze_next_tuple;
}

/*-------------------------------------------------------------------------
 *
 * sample.c
 *	  TABLESAMPLE: scans whose sampling method chooses pages and rows.
 *
 * With page mode off (few rows of each page are wanted) nothing is copied;
 * a row is looked at with the page locked when the method chooses it.
 *
 * Otherwise as in scan.c, whose invariants hold here, too.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/tsmapi.h"
#include "nodes/execnodes.h"
#include "page/page.h"
#include "page/recent.h"
#include "pgstat.h"
#include "scan/fetch.h"
#include "scan/scan.h"


static bool
inplace_sample_next_block(TableScanDesc sscan, SampleScanState *scanstate)
{
	InplaceScanDesc scan = (InplaceScanDesc) sscan;
	TsmRoutine *tsm = scanstate->tsmroutine;
	BlockNumber blk;

	if (scan->nblocks == 0)
		return false;

	ScanPinDrop(&scan->pin);
	scan->nvis = 0;

	if (tsm->NextSampleBlock)
		blk = tsm->NextSampleBlock(scanstate, scan->nblocks);
	else
		blk = inplace_scan_next_serial(scan);

	scan->cblock = blk;
	if (!BlockNumberIsValid(blk))
	{
		scan->inited = false;
		scan->begun = false;
		return false;
	}

	CHECK_FOR_INTERRUPTS();

	ScanPinTake(&scan->pin, sscan->rs_rd, blk,
				ReadBufferExtended(sscan->rs_rd, MAIN_FORKNUM, blk,
								   RBM_NORMAL, scan->strategy));
	scan->inited = true;

	if (sscan->rs_flags & SO_ALLOW_PAGEMODE)
		inplace_scan_load_page(scan, NULL, -1);
	return true;
}

/* the vis[] entry of a row on the page, or 0 */
static uint16
find_entry(InplaceScanDesc scan, OffsetNumber off)
{
	int			low = 0;
	int			high = scan->nvis;

	while (low < high)
	{
		int			mid = (low + high) / 2;
		OffsetNumber midoff = scan->vis[mid] & SCAN_OFFSET_MASK;

		if (midoff == off)
			return scan->vis[mid];
		if (midoff < off)
			low = mid + 1;
		else
			high = mid;
	}
	return 0;
}

/*
 * For a method that does not want all of a page looked at.  What is asked of the
 * method, which may be anybody's code, is asked with nothing locked: so the page may have
 * fewer rows by the time that one is fetched.
 */
static OffsetNumber
last_offset_now(InplaceScanDesc scan)
{
	Page		page;
	OffsetNumber maxoff = 0;

	LockBuffer(scan->pin.buffer, BUFFER_LOCK_SHARE);
	page = RowPage(scan->base.rs_rd, scan->pin.buffer);
	if (!PageIsNew(page))
	{
		inplace_check_page(scan->base.rs_rd, page, scan->cblock);
		maxoff = PageGetMaxOffsetNumber(page);
	}
	LockBuffer(scan->pin.buffer, BUFFER_LOCK_UNLOCK);
	return maxoff;
}

static bool
fetch_now(InplaceScanDesc scan, OffsetNumber off, TupleTableSlot *slot)
{
	bool		found;

	LockBuffer(scan->pin.buffer, BUFFER_LOCK_SHARE);
	found = inplace_fetch_visible(scan->base.rs_rd, scan->pin.buffer, scan->cblock, off,
								  scan->base.rs_snapshot, slot);
	LockBuffer(scan->pin.buffer, BUFFER_LOCK_UNLOCK);
	return found;
}

static bool
inplace_sample_next_tuple(TableScanDesc sscan, SampleScanState *scanstate,
						  TupleTableSlot *slot)
{
	InplaceScanDesc scan = (InplaceScanDesc) sscan;
	TsmRoutine *tsm = scanstate->tsmroutine;
	bool		pagemode = (sscan->rs_flags & SO_ALLOW_PAGEMODE) != 0;
	bool		found = false;
	Page		page = (Page) scan->page.data;
	OffsetNumber maxoff;

	if (!pagemode)
		maxoff = last_offset_now(scan);
	else
		maxoff = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);

	while (!found)
	{
		OffsetNumber off = tsm->NextSampleTuple(scanstate, scan->cblock, maxoff);

		CHECK_FOR_INTERRUPTS();

		if (!OffsetNumberIsValid(off))
			break;
		if (pagemode)
		{
			uint16		entry = find_entry(scan, off);

			found = entry != 0 && inplace_scan_store(scan, entry, slot);
		}
		else
			found = fetch_now(scan, off, slot);
	}

	if (found)
		pgstat_count_heap_getnext(sscan->rs_rd);
	else
		ExecClearTuple(slot);
	return found;
}

void
inplace_init_sample_methods(TableAmRoutine *am)
{
	am->scan_sample_next_block = inplace_sample_next_block;
	am->scan_sample_next_tuple = inplace_sample_next_tuple;
}

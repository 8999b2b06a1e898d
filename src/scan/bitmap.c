/*-------------------------------------------------------------------------
 *
 * bitmap.c
 *	  Bitmap scans.
 *
 * Up to PostgreSQL 17 the executor walks the bitmap and does the prefetching;
 * from 18 on the scan does both, through a read stream.  A page once
 * chosen is loaded like that of any scan, for the offsets listed in the bitmap
 * or, if it is lossy, for all.
 *
 * An index entry leads to a row by its TID, and the row to the version that
 * the snapshot sees: there are no chains on the page to follow.
 *
 * An entry of a former key (index/index.h) may be among those that made the
 * bitmap, which does not know of keys.  From 17 on what is loaded of a page is
 * rechecked if there is a row among it that is IP_STALE.  No other can have had
 * such an entry when the index was read, for the mark outlives the snapshots of
 * all scans that may hold one (vacuum/stale.c).  Up to 16 it is the executor that
 * passes over all-visible pages unless the bitmap says recheck, and in older
 * minor versions it counts rows wrongly that way.  So there the index says it of
 * all rows.
 *
 * No page is passed over because nothing but the number of its rows is wanted
 * (17 leaves that to the table access method).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "nodes/tidbitmap.h"
#include "page/recent.h"
#include "pgstat.h"
#include "scan/scan.h"

#if PG_VERSION_NUM >= 180000
#include "storage/read_stream.h"
#endif


/*
 * The next visible row of the loaded page.
 */
static inline bool
next_row(InplaceScanDesc scan, TupleTableSlot *slot)
{
	while (scan->cindex < scan->nvis)
	{
		if (inplace_scan_store(scan, scan->vis[scan->cindex++], slot))
		{
			pgstat_count_heap_fetch(scan->base.rs_rd);
			return true;
		}
	}
	return false;
}

/*
 * Blocks past the end of the relation as it was at the start of the scan have
 * nothing for the snapshot.  In SERIALIZABLE their rows have to be looked at
 * all the same, for the conflicts.
 */
static inline bool
block_is_of_interest(InplaceScanDesc scan, BlockNumber blk)
{
	return blk < scan->nblocks || IsolationIsSerializable();
}

#if PG_VERSION_NUM >= 180000

static BlockNumber
bitmap_next_block(ReadStream *stream, void *arg, void *per_buffer_data)
{
	InplaceScanDesc scan = (InplaceScanDesc) arg;
	TBMIterateResult *res = (TBMIterateResult *) per_buffer_data;

	do
	{
		CHECK_FOR_INTERRUPTS();

		if (!tbm_iterate(&scan->base.st.rs_tbmiterator, res))
			return InvalidBlockNumber;
	} while (!block_is_of_interest(scan, res->blockno));

	return res->blockno;
}

ReadStream *
inplace_bitmap_stream(InplaceScanDesc scan)
{
	return read_stream_begin_relation(READ_STREAM_DEFAULT |
									  READ_STREAM_USE_BATCHING,
									  scan->strategy, scan->base.rs_rd,
									  MAIN_FORKNUM, bitmap_next_block, scan,
									  sizeof(TBMIterateResult));
}

/*
 * Load the next page of the bitmap; false if there is none.
 */
static bool
next_page(InplaceScanDesc scan, bool *recheck,
		  uint64 *lossy_pages, uint64 *exact_pages)
{
	OffsetNumber offs[TBM_MAX_TUPLES_PER_PAGE];
	TBMIterateResult *res;
	Buffer		buffer;
	void	   *data;
	int			noffs = -1;

	scan->nvis = 0;
	scan->cindex = 0;
	scan->inited = false;
	ScanPinDrop(&scan->pin);

	buffer = read_stream_next_buffer(scan->stream, &data);
	if (!BufferIsValid(buffer))
		return false;

	res = (TBMIterateResult *) data;
	scan->cblock = res->blockno;
	ScanPinTake(&scan->pin, scan->base.rs_rd, scan->cblock, buffer);
	scan->inited = true;

	if (!res->lossy)
		noffs = tbm_extract_page_tuple(res, offs, TBM_MAX_TUPLES_PER_PAGE);

	inplace_scan_load_page(scan, offs, noffs);

	*recheck = res->recheck || scan->stale_rows;
	if (res->lossy)
		(*lossy_pages)++;
	else
		(*exact_pages)++;
	return true;
}

static bool
inplace_bitmap_next_tuple(TableScanDesc sscan, TupleTableSlot *slot,
						  bool *recheck, uint64 *lossy_pages,
						  uint64 *exact_pages)
{
	InplaceScanDesc scan = (InplaceScanDesc) sscan;

	/*
	 * *recheck keeps its value between calls for the same page.
	 */
	while (!next_row(scan, slot))
	{
		if (!next_page(scan, recheck, lossy_pages, exact_pages))
			return false;
	}
	return true;
}

#else							/* PG_VERSION_NUM < 180000 */

static bool
inplace_bitmap_next_block(TableScanDesc sscan, TBMIterateResult *res)
{
	InplaceScanDesc scan = (InplaceScanDesc) sscan;

	scan->nvis = 0;
	scan->cindex = 0;

	if (!block_is_of_interest(scan, res->blockno))
		return false;

	ScanPinDrop(&scan->pin);
	ScanPinTake(&scan->pin, sscan->rs_rd, res->blockno,
				ReadBuffer(sscan->rs_rd, res->blockno));
	scan->cblock = res->blockno;
	scan->inited = true;

	inplace_scan_load_page(scan, res->offsets, res->ntuples);
	if (scan->stale_rows)
		res->recheck = true;

	return scan->nvis > 0;
}

static bool
inplace_bitmap_next_tuple(TableScanDesc sscan, TBMIterateResult *res,
						  TupleTableSlot *slot)
{
	return next_row((InplaceScanDesc) sscan, slot);
}

#endif							/* PG_VERSION_NUM < 180000 */

void
inplace_init_bitmap_methods(TableAmRoutine *am)
{
#if PG_VERSION_NUM < 180000
	am->scan_bitmap_next_block = inplace_bitmap_next_block;
#endif
	am->scan_bitmap_next_tuple = inplace_bitmap_next_tuple;
}

/*-------------------------------------------------------------------------
 *
 * scan.c
 *	  Sequential, parallel and TID range scans.
 *
 * See scan.h for what a scan keeps and why it copies pages.
 *
 * Which block comes next is decided by one function for each kind of scan
 * (serial or parallel), called directly up to PostgreSQL 16 and by the read
 * stream from 17 on.  "nextblock" is the last number handed out, which a
 * stream may be well ahead of "cblock", the page the scan stands on.  When a
 * scan changes direction the stream is reset and starts over from cblock.
 *
 * A scan that ran off its end has nothing pinned and is not inited; the next
 * request in the other direction starts at that end.
 *
 * Invariants
 *	  inited: block cblock is pinned (pin); page at a time, vis[] and
 *	  the page copy are those of cblock.
 *	  In a SERIALIZABLE transaction everything that the scan may return is
 *	  covered by a predicate lock before the lock is released under which it
 *	  was copied: the writer that comes after finds that lock.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/syncscan.h"
#include "page/page.h"
#include "page/page_lock.h"
#include "page/protect.h"
#include "page/recent.h"
#include "page/slot.h"
#include "page/tuple.h"
#include "pgstat.h"
#include "row/restore.h"
#include "row/visibility.h"
#include "scan/rewrite_progress.h"
#include "scan/scan.h"
#include "storage/predicate.h"
#include "undo/hold.h"
#include "vacuum/prune.h"

#if PG_VERSION_NUM >= 170000
#include "storage/read_stream.h"
#endif

/* ------------------------------------------------------------------------
 * The sequence of blocks
 * ------------------------------------------------------------------------
 */

static BlockNumber
first_block(InplaceScanDesc scan, ScanDirection dir)
{
	if (scan->nblocks == 0 || scan->numblocks == 0)
		return InvalidBlockNumber;

	if (ScanDirectionIsForward(dir))
		return scan->startblock;

	/* nobody gains from following a backward scan */
	scan->base.rs_flags &= ~SO_ALLOW_SYNC;

	if (scan->numblocks != InvalidBlockNumber)
		return Min(scan->startblock + scan->numblocks, scan->nblocks) - 1;
	if (scan->startblock > 0)
		return scan->startblock - 1;
	return scan->nblocks - 1;
}

static inline BlockNumber
following_block(InplaceScanDesc scan, BlockNumber blk, ScanDirection dir)
{
	if (scan->numblocks != InvalidBlockNumber)
	{
		/* a range does not wrap around */
		BlockNumber last = Min(scan->startblock + scan->numblocks,
							   scan->nblocks) - 1;

		if (ScanDirectionIsForward(dir))
			return blk >= last ? InvalidBlockNumber : blk + 1;
		return blk <= scan->startblock ? InvalidBlockNumber : blk - 1;
	}

	if (ScanDirectionIsForward(dir))
	{
		if (++blk >= scan->nblocks)
			blk = 0;

		/*
		 * Reported before the test for the end, so that the position left
		 * behind is where the next scan had better start.
		 */
		if (scan->base.rs_flags & SO_ALLOW_SYNC)
			ss_report_location(scan->base.rs_rd, blk);
		return blk == scan->startblock ? InvalidBlockNumber : blk;
	}

	if (blk == scan->startblock)
		return InvalidBlockNumber;
	return (blk == 0 ? scan->nblocks : blk) - 1;
}

BlockNumber
inplace_scan_next_serial(InplaceScanDesc scan)
{
	if (unlikely(!scan->begun))
	{
		scan->nextblock = first_block(scan, scan->dir);
		scan->begun = true;
	}
	else if (BlockNumberIsValid(scan->nextblock))
		scan->nextblock = following_block(scan, scan->nextblock, scan->dir);
	return scan->nextblock;
}

static inline BlockNumber
next_block_parallel(InplaceScanDesc scan)
{
	ParallelBlockTableScanDesc pscan =
		(ParallelBlockTableScanDesc) scan->base.rs_parallel;

	Assert(ScanDirectionIsForward(scan->dir));

	if (unlikely(!scan->begun))
	{
		table_block_parallelscan_startblock_init(scan->base.rs_rd,
												 scan->pworker, pscan);
		scan->begun = true;
	}
	scan->nextblock = table_block_parallelscan_nextpage(scan->base.rs_rd,
														scan->pworker, pscan);
	return scan->nextblock;
}

#if PG_VERSION_NUM >= 170000
static BlockNumber
stream_next_serial(ReadStream *stream, void *arg, void *per_buffer_data)
{
	return inplace_scan_next_serial((InplaceScanDesc) arg);
}

static BlockNumber
stream_next_parallel(ReadStream *stream, void *arg, void *per_buffer_data)
{
	return next_block_parallel((InplaceScanDesc) arg);
}

#ifndef READ_STREAM_USE_BATCHING
#define READ_STREAM_USE_BATCHING 0
#endif
#endif

void
inplace_scan_set_limits(InplaceScanDesc scan, BlockNumber start,
						BlockNumber numblocks)
{
	Assert(!scan->begun);
	Assert(!(scan->base.rs_flags & SO_ALLOW_SYNC));

	scan->startblock = start;
	scan->numblocks = numblocks;

	/* InvalidBlockNumber with a start: all, wrapping around */
	if (start >= scan->nblocks)
		scan->numblocks = 0;
	else if (numblocks != InvalidBlockNumber)
		scan->numblocks = Min(numblocks, scan->nblocks - start);
}

/*
 * Step to the next page in direction dir and pin it.  Returns false, with the
 * scan reset to its end, if there is none.
 */
bool
inplace_scan_next_page(InplaceScanDesc scan, ScanDirection dir)
{
	Buffer		buffer = InvalidBuffer;

	ScanPinDrop(&scan->pin);

	CHECK_FOR_INTERRUPTS();

	if (unlikely(scan->dir != dir))
	{
		/* forget what was handed out ahead of the page we stand on */
		if (scan->inited)
			scan->nextblock = scan->cblock;
		else
			scan->begun = false;
#if PG_VERSION_NUM >= 170000
		if (scan->stream)
			read_stream_reset(scan->stream);
#endif
		scan->dir = dir;
	}

#if PG_VERSION_NUM >= 170000
	if (likely(scan->stream != NULL))
	{
		buffer = read_stream_next_buffer(scan->stream, NULL);
		if (BufferIsValid(buffer))
			scan->cblock = BufferGetBlockNumber(buffer);
	}
	else
#endif
	{
		BlockNumber blk = scan->base.rs_parallel != NULL ?
			next_block_parallel(scan) : inplace_scan_next_serial(scan);

		if (BlockNumberIsValid(blk))
		{
			buffer = ReadBufferExtended(scan->base.rs_rd, MAIN_FORKNUM,
										blk, RBM_NORMAL, scan->strategy);
			scan->cblock = blk;
		}
	}

	if (!BufferIsValid(buffer))
	{
		scan->inited = false;
		scan->begun = false;
		scan->cblock = InvalidBlockNumber;
		scan->nextblock = InvalidBlockNumber;
		scan->nvis = 0;
		return false;
	}

	ScanPinTake(&scan->pin, scan->base.rs_rd, scan->cblock, buffer);
	scan->inited = true;
	return true;
}

/*
 * Number of blocks done, for progress reports (an estimate if parallel).
 */
BlockNumber
inplace_scan_blocks_done(InplaceScanDesc scan)
{
	BlockNumber start = scan->startblock;
	BlockNumber nblocks = scan->nblocks;

	if (scan->base.rs_parallel != NULL)
	{
		ParallelBlockTableScanDesc pscan =
			(ParallelBlockTableScanDesc) scan->base.rs_parallel;

		start = pscan->phs_startblock;
		nblocks = pscan->phs_nblocks;
	}

	if (!BlockNumberIsValid(scan->cblock))
		return nblocks;
	if (scan->cblock >= start)
		return scan->cblock - start;
	return nblocks - start + scan->cblock;
}

/* ------------------------------------------------------------------------
 * Pages
 * ------------------------------------------------------------------------
 */

bool
inplace_scan_store_visible(InplaceScanDesc scan, OffsetNumber off,
						   Snapshot snapshot, TupleTableSlot *slot)
{
	Relation	rel = scan->base.rs_rd;
	RowVersion *version = inplace_scratch_version();
	ItemPointerData tid;

	if (!inplace_fetch_version(rel, scan->pin.buffer, false, scan->page.data,
							   scan->cblock, off, snapshot, version))
		return false;

	TidSet(&tid, scan->cblock, off);
	inplace_store_tuple(slot, RelationGetRelid(rel), &tid, version->tuple,
						version->len, &version->info, true);
	return true;
}

static pg_attribute_always_inline bool
store_entry(InplaceScanDesc scan, uint16 entry, TupleTableSlot *slot)
{
	OffsetNumber off = entry & SCAN_OFFSET_MASK;
	RowVersionInfo vi;
	ItemPointerData tid;
	InplaceTupleHeader tup;
	ItemId		lp;

	if (unlikely(entry & SCAN_UNDO))
		return inplace_scan_store_visible(scan, off, scan->base.rs_snapshot,
										  slot);

	lp = PageGetItemId((Page) scan->page.data, off);
	tup = (InplaceTupleHeader) PageGetItem((Page) scan->page.data, lp);

	RowFillInfo(tup, &vi);
	TidSet(&tid, scan->cblock, off);
	InplaceSlotStore(slot, RelationGetRelid(scan->base.rs_rd), &tid, tup,
					 RowLength(tup, lp), &vi, false);
	return true;
}

bool
inplace_scan_store(InplaceScanDesc scan, uint16 entry, TupleTableSlot *slot)
{
	return store_entry(scan, entry, slot);
}

/* ------------------------------------------------------------------------
 * Starting and ending
 * ------------------------------------------------------------------------
 */

static void
scan_init(InplaceScanDesc scan, ScanKey key, bool rescan)
{
	Relation	rel = scan->base.rs_rd;
	bool		large;
	bool		sync;

	if (scan->base.rs_parallel != NULL)
		scan->nblocks =
			((ParallelBlockTableScanDesc) scan->base.rs_parallel)->phs_nblocks;
	else
		scan->nblocks = RelationGetNumberOfBlocks(rel);

	/* the same threshold as for heap, and as in parallelscan_initialize */
	large = !RelationUsesLocalBuffers(rel) && scan->nblocks > NBuffers / 4;

	/* never given back before the end: the read stream has it, too */
	if (large && (scan->base.rs_flags & SO_ALLOW_STRAT) &&
		scan->strategy == NULL)
		scan->strategy = GetAccessStrategy(BAS_BULKREAD);

	if (scan->base.rs_parallel != NULL)
		sync = scan->base.rs_parallel->phs_syncscan;
	else
	{
		sync = large && (scan->base.rs_flags & SO_ALLOW_SYNC) &&
			synchronize_seqscans;

		/* a rescan starts where the scan did, for cursors to be stable */
		if (!rescan || scan->startblock >= scan->nblocks)
			scan->startblock = sync ? ss_get_location(rel, scan->nblocks) : 0;
	}
	if (sync)
		scan->base.rs_flags |= SO_ALLOW_SYNC;
	else
		scan->base.rs_flags &= ~SO_ALLOW_SYNC;

	scan->numblocks = InvalidBlockNumber;
	scan->begun = false;
	scan->inited = false;
	scan->dir = ForwardScanDirection;
	scan->nextblock = InvalidBlockNumber;
	scan->cblock = InvalidBlockNumber;
	ScanPinInit(&scan->pin);
	scan->coffset = InvalidOffsetNumber;
	scan->cindex = 0;
	scan->nvis = 0;
	scan->classified = false;

	if (key != NULL && scan->base.rs_nkeys > 0)
		memcpy(scan->base.rs_key, key,
			   scan->base.rs_nkeys * sizeof(ScanKeyData));

	if (scan->base.rs_flags & SO_TYPE_SEQSCAN)
		pgstat_count_heap_scan(rel);
}

static TableScanDesc
inplace_scan_begin(Relation rel, Snapshot snapshot, int nkeys, ScanKey key,
				   ParallelTableScanDesc pscan, uint32 flags)
{
	InplaceScanDesc scan;

	InplaceRequirePreload();

	RelationIncrementReferenceCount(rel);

	scan = (InplaceScanDesc) palloc(sizeof(InplaceScanDescData));
	memset(&scan->base, 0, sizeof(scan->base));
	scan->base.rs_rd = rel;
	scan->base.rs_snapshot = snapshot;
	scan->base.rs_nkeys = nkeys;
	scan->base.rs_key = nkeys == 0 ? NULL :
		(ScanKey) palloc(nkeys * sizeof(ScanKeyData));
	scan->base.rs_flags = flags;
	scan->base.rs_parallel = pscan;
	scan->strategy = NULL;
	scan->stream = NULL;
	scan->startblock = 0;
	scan->swept = 0;
	scan->swept_counted = false;
	scan->pages_only_swept = scan->pages_mixed = 0;
	scan->pworker = pscan == NULL ? NULL :
		palloc(sizeof(ParallelBlockTableScanWorkerData));

	if (!SnapshotIsPlainMVCC(snapshot))
		scan->base.rs_flags &= ~SO_ALLOW_PAGEMODE;

	UndoHoldCheckScan(snapshot);
	if (flags & SCAN_LOCKS_RELATION)
	{
		Assert(snapshot);
		PredicateLockRelation(rel, snapshot);
	}

	scan_init(scan, key, false);

#if PG_VERSION_NUM >= 170000

	/*
	 * The callbacks take no lock that anybody holds while waiting for I/O.
	 */
	if (flags & (SO_TYPE_SEQSCAN | SO_TYPE_TIDRANGESCAN))
		scan->stream =
			read_stream_begin_relation(READ_STREAM_SEQUENTIAL |
									   READ_STREAM_USE_BATCHING,
									   scan->strategy, rel, MAIN_FORKNUM,
									   pscan ? stream_next_parallel :
									   stream_next_serial,
									   scan, 0);
#if PG_VERSION_NUM >= 180000
	else if (flags & SO_TYPE_BITMAPSCAN)
		scan->stream = inplace_bitmap_stream(scan);
#endif
#endif

	return &scan->base;
}

static void
inplace_scan_rescan(TableScanDesc sscan, ScanKey key, bool set_params,
					bool allow_strat, bool allow_sync, bool allow_pagemode)
{
	InplaceScanDesc scan = (InplaceScanDesc) sscan;

	if (set_params)
	{
		uint32		flags = sscan->rs_flags &
			~(SO_ALLOW_STRAT | SO_ALLOW_SYNC | SO_ALLOW_PAGEMODE);

		if (allow_strat)
			flags |= SO_ALLOW_STRAT;
		if (allow_sync)
			flags |= SO_ALLOW_SYNC;
		if (allow_pagemode && SnapshotIsPlainMVCC(sscan->rs_snapshot))
			flags |= SO_ALLOW_PAGEMODE;
		sscan->rs_flags = flags;
	}

	ScanPinDrop(&scan->pin);
#if PG_VERSION_NUM >= 170000
	if (scan->stream)
		read_stream_reset(scan->stream);
#endif
	scan_init(scan, key, true);
}

static void
inplace_scan_end(TableScanDesc sscan)
{
	InplaceScanDesc scan = (InplaceScanDesc) sscan;

	ScanPinEnd(&scan->pin);
#if PG_VERSION_NUM >= 170000
	if (scan->stream)
		read_stream_end(scan->stream);
#endif
	RelationDecrementReferenceCount(sscan->rs_rd);

	if (sscan->rs_key)
		pfree(sscan->rs_key);
	if (scan->strategy)
		FreeAccessStrategy(scan->strategy);
	if (scan->pworker)
		pfree(scan->pworker);
	if (sscan->rs_flags & SO_TEMP_SNAPSHOT)
		UnregisterSnapshot(sscan->rs_snapshot);
	pfree(scan);
}

/* ------------------------------------------------------------------------
 * Rows
 * ------------------------------------------------------------------------
 */

static bool
keys_match(TableScanDesc scan, TupleTableSlot *slot)
{
	int			i;

	for (i = 0; i < scan->rs_nkeys; i++)
	{
		ScanKey		key = &scan->rs_key[i];
		Datum		value;
		bool		isnull;

		if (key->sk_flags & SK_ISNULL)
			return false;
		value = slot_getattr(slot, key->sk_attno, &isnull);
		if (isnull ||
			!DatumGetBool(FunctionCall2Coll(&key->sk_func, key->sk_collation,
											value, key->sk_argument)))
			return false;
	}
	return true;
}

/* -1, 0, 1: before, in, past the range of a TID range scan */
static inline int
range_position(TableScanDesc scan, BlockNumber blk, OffsetNumber off)
{
	ItemPointerData tid;

	TidSet(&tid, blk, off);
	if (ItemPointerCompare(&tid, ScanMinTid(scan)) < 0)
		return -1;
	if (ItemPointerCompare(&tid, ScanMaxTid(scan)) > 0)
		return 1;
	return 0;
}

/*
 * The next row, page at a time.
 */
static pg_attribute_always_inline bool
next_row_pagemode(InplaceScanDesc scan, ScanDirection dir,
				  TupleTableSlot *slot, bool range)
{
	int			i = scan->cindex + (int) dir;

	for (;;)
	{
		if (likely(scan->inited))
		{
			for (; i >= 0 && i < scan->nvis; i += (int) dir)
			{
				uint16		entry = scan->vis[i];

				if (range)
				{
					int			pos = range_position(&scan->base, scan->cblock,
													 entry & SCAN_OFFSET_MASK);

					/*
					 * The blocks are limited to the range, so there is no
					 * need to end the scan early.
					 */
					if (pos != 0)
						continue;
				}
				if (!store_entry(scan, entry, slot))
					continue;
				if (unlikely(scan->base.rs_nkeys > 0) &&
					!keys_match(&scan->base, slot))
					continue;

				scan->cindex = i;
				pgstat_count_heap_getnext(scan->base.rs_rd);
				return true;
			}
		}

		if (!inplace_scan_next_page(scan, dir))
			break;
		inplace_scan_load_page(scan, NULL, -1);
		if (unlikely(OidIsValid(inplace_rewriting)))
			RewriteProgressPageRead(scan->base.rs_rd, scan->nvis);
		i = ScanDirectionIsForward(dir) ? 0 : scan->nvis - 1;
	}

	if (unlikely(OidIsValid(inplace_rewriting)))
		RewriteProgressReadAll(scan->base.rs_rd);
	ExecClearTuple(slot);
	return false;
}

/*
 * The next row for a snapshot that is not MVCC: one at a time, from the page
 * as it is now.
 */
static bool
next_row_locked(InplaceScanDesc scan, ScanDirection dir, TupleTableSlot *slot,
				bool range)
{
	Relation	rel = scan->base.rs_rd;
	bool		fresh_page = false;

	for (;;)
	{
		Page		page;
		int			off;
		int			maxoff;

		if (fresh_page || !scan->inited)
		{
			if (!inplace_scan_next_page(scan, dir))
				break;
			fresh_page = true;
		}

		LockBuffer(scan->pin.buffer, BUFFER_LOCK_SHARE);
		page = RowPage(rel, scan->pin.buffer);
		if (PageIsNew(page))
			maxoff = 0;
		else
		{
			inplace_check_page(rel, page, scan->cblock);
			maxoff = PageGetMaxOffsetNumber(page);
		}

		if (!fresh_page)
		{
			/* the page may have lost line pointers since */
			off = (int) scan->coffset + (int) dir;
			if (off > maxoff && ScanDirectionIsBackward(dir))
				off = maxoff;
		}
		else
			off = ScanDirectionIsForward(dir) ? FirstOffsetNumber : maxoff;

		for (; off >= FirstOffsetNumber && off <= maxoff; off += (int) dir)
		{
			RowVersion *version;
			ItemPointerData tid;

			if (!ItemIdIsNormal(PageGetItemId(page, off)))
				continue;
			if (range && range_position(&scan->base, scan->cblock, off) != 0)
				continue;

			version = inplace_scratch_version();
			if (!inplace_fetch_version(rel, scan->pin.buffer, true, page,
									   scan->cblock, off,
									   scan->base.rs_snapshot, version))
				continue;

			TidSet(&tid, scan->cblock, off);
			inplace_store_tuple(slot, RelationGetRelid(rel), &tid,
								version->tuple, version->len, &version->info,
								true);
			scan->coffset = off;
			LockBuffer(scan->pin.buffer, BUFFER_LOCK_UNLOCK);

			if (scan->base.rs_nkeys > 0 && !keys_match(&scan->base, slot))
			{
				fresh_page = false;
				goto again;
			}
			pgstat_count_heap_getnext(rel);
			return true;
		}

		LockBuffer(scan->pin.buffer, BUFFER_LOCK_UNLOCK);
		fresh_page = true;
		continue;

again:
		CHECK_FOR_INTERRUPTS();
	}

	ExecClearTuple(slot);
	return false;
}

static bool
inplace_scan_getnextslot(TableScanDesc sscan, ScanDirection direction,
						 TupleTableSlot *slot)
{
	InplaceScanDesc scan = (InplaceScanDesc) sscan;

	if (likely(sscan->rs_flags & SO_ALLOW_PAGEMODE))
		return next_row_pagemode(scan, direction, slot, false);
	return next_row_locked(scan, direction, slot, false);
}

/* ------------------------------------------------------------------------
 * TID ranges
 * ------------------------------------------------------------------------
 */

static void
inplace_set_tidrange(TableScanDesc sscan, ItemPointer mintid,
					 ItemPointer maxtid)
{
	InplaceScanDesc scan = (InplaceScanDesc) sscan;
	ItemPointerData low;
	ItemPointerData high;

	ItemPointerSet(ScanMinTid(sscan), 0, FirstOffsetNumber);
	ItemPointerSet(ScanMaxTid(sscan), 0, FirstOffsetNumber);

	if (scan->nblocks == 0)
		return;

	ItemPointerSet(&low, 0, FirstOffsetNumber);
	ItemPointerSet(&high, scan->nblocks - 1, MaxOffsetNumber);
	if (ItemPointerCompare(mintid, &low) > 0)
		low = *mintid;
	if (ItemPointerCompare(maxtid, &high) < 0)
		high = *maxtid;

	if (ItemPointerCompare(&high, &low) < 0)
	{
		inplace_scan_set_limits(scan, 0, 0);
		return;
	}

	inplace_scan_set_limits(scan,
							ItemPointerGetBlockNumberNoCheck(&low),
							ItemPointerGetBlockNumberNoCheck(&high) -
							ItemPointerGetBlockNumberNoCheck(&low) + 1);
	*ScanMinTid(sscan) = low;
	*ScanMaxTid(sscan) = high;
}

static bool
inplace_getnextslot_tidrange(TableScanDesc sscan, ScanDirection direction,
							 TupleTableSlot *slot)
{
	InplaceScanDesc scan = (InplaceScanDesc) sscan;

	if (sscan->rs_flags & SO_ALLOW_PAGEMODE)
		return next_row_pagemode(scan, direction, slot, true);
	return next_row_locked(scan, direction, slot, true);
}

void
inplace_init_scan_methods(TableAmRoutine *am)
{
	am->scan_begin = inplace_scan_begin;
	am->scan_end = inplace_scan_end;
	am->scan_rescan = inplace_scan_rescan;
	am->scan_getnextslot = inplace_scan_getnextslot;
	am->scan_set_tidrange = inplace_set_tidrange;
	am->scan_getnextslot_tidrange = inplace_getnextslot_tidrange;
	am->parallelscan_estimate = table_block_parallelscan_estimate;
	am->parallelscan_initialize = table_block_parallelscan_initialize;
	am->parallelscan_reinitialize = table_block_parallelscan_reinitialize;

	inplace_init_sample_methods(am);
	inplace_init_bitmap_methods(am);
}

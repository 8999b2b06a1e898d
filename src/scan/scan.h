/*-------------------------------------------------------------------------
 *
 * scan.h
 *	  What the readers of a table share: the scan descriptor, the fetch state
 *	  of index scans, and the walk through a row's older versions.
 *
 * A scan owns a copy of the page it stands on, made under the page's share
 * lock together with the decision which rows of it the snapshot sees.  What
 * the scan returns comes from the copy: the page itself may be changed by an
 * in-place update as soon as the lock is gone.  Entries of rows whose visible
 * version has to be worked out from undo carry SCAN_UNDO; that is done from
 * the copy too, when the row is asked for.
 *
 * Only scans with an MVCC snapshot work page at a time (SO_ALLOW_PAGEMODE).
 * Undo that an MVCC snapshot needs is kept as long as the snapshot is (but for
 * that of a change rolled back before: visibility.c goes to the page
 * itself then).  Of other snapshots that is not true, so they look at each row
 * with its page locked.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_SCAN_H
#define INPLACE_SCAN_H

#include "btree/standby_scan.h"
#include "modify/table.h"

/* entries of vis[]: an offset number and flags */
#define SCAN_OFFSET_MASK	0x0FFF
#define SCAN_UNDO			0x8000	/* visible version (if any) is in undo */
#define SCAN_NOT_ALIVE		0x4000	/* index build: not for unique checks */

typedef struct InplaceScanDescData
{
	TableScanDescData base;		/* must be first */

	/* the blocks to scan, fixed at the start */
	BlockNumber nblocks;
	BlockNumber startblock;
	BlockNumber numblocks;		/* InvalidBlockNumber: all, wrapping around */
	BufferAccessStrategy strategy;
	ParallelBlockTableScanWorker pworker;

	/* where the scan stands */
	bool		begun;			/* first block number has been handed out */
	bool		inited;			/* pin is that of the current page */
	ScanDirection dir;
	BlockNumber nextblock;		/* last block number handed out */
	BlockNumber cblock;
	ScanPin		pin;			/* its buffer */
	OffsetNumber coffset;		/* row at a time: last row returned */
	int			cindex;			/* page at a time: its index in vis[] */
	int			nvis;
	bool		stale_rows;		/* ... among the rows looked at there are
								 * IP_STALE ones */
	bool		classified;		/* ANALYZE: vis[] is that of this page */
	double		dead;			/* ANALYZE: dead rows of this page */
	double		swept;			/* ... swept ones of pages that have no other
								 * stale rows, so far */
	bool		swept_counted;	/* ... among the dead ones */
	BlockNumber calm;			/* ... such pages, */
	BlockNumber busy;			/* and those that have both */
	struct ReadStream *stream;	/* 17 and up, or NULL */

	uint16		vis[InplaceMaxTuplesPerPage];
	union
	{
		char		data[BLCKSZ];
		double		align_it;
		int64		align_it2;
	}			page;			/* copy of the current page */
} InplaceScanDescData;

typedef InplaceScanDescData *InplaceScanDesc;

typedef struct InplaceIndexFetchData
{
	IndexFetchTableData base;	/* must be first */
	ScanPin		pin;			/* the page of the last TID, or none */

	/* rows of this page that the snapshot sees nothing of, see fetch.c */
	Snapshot	gone_snapshot;	/* NULL: none known */
	CommandId	gone_curcid;
	uint64		gone_rows_put;
	OffsetNumber gone_first;
	OffsetNumber gone_last;

	/* left by an inplace_btree scan: the entry that the next TID is from */
	Relation	index;
	IndexTuple	itup;
	IndexScanDesc only_scan;	/* of an index-only scan it is its xs_itup */
	StandbyScan standby;		/* if the scan began on one */

	/* for an index-only scan of one with INCLUDE columns */
	IndexScanDesc scan;
	bool		itup_wanted_by_us;	/* and by nobody else */
	MemoryContext cxt;			/* that of the scan */
	IndexTuple	formed;			/* the entry with the visible payload */
} InplaceIndexFetchData;

#if PG_VERSION_NUM >= 180000
#define ScanMinTid(scan)	(&(scan)->st.tidrange.rs_mintid)
#define ScanMaxTid(scan)	(&(scan)->st.tidrange.rs_maxtid)
#else
#define ScanMinTid(scan)	(&(scan)->rs_mintid)
#define ScanMaxTid(scan)	(&(scan)->rs_maxtid)
#endif

/* an MVCC snapshot, but not the kind of logical decoding */
#define SnapshotIsPlainMVCC(snapshot) \
	((snapshot) && (snapshot)->snapshot_type == SNAPSHOT_MVCC)

/* length of the row in an item, without its padding */
static inline Size
RowLength(InplaceTupleHeader tup, ItemId lp)
{
	Size		len = ItemIdGetLength(lp);

	return unlikely(tup->t_infomask & IP_PADDED) ?
		inplace_tuple_len(tup, len) : len;
}

/* what a row that is visible as it stands says about its version */
static inline void
RowFillInfo(InplaceTupleHeader tup, RowVersionInfo *vi)
{
	vi->xmin = tup->t_xid;
	/* as on heap, where one field holds either */
	vi->cmin = vi->cmax = HdrInsertCid(tup);
	vi->xmax = HdrHasDirectLocker(tup) ? HdrDirectLocker(tup) :
		InvalidTransactionId;
	vi->tag = tup->t_tag;
}

/*
 * inplace_quick_visible, and where that gives up only because the state of
 * t_xid is not known yet, finds it out and leaves a hint.  The page must be
 * at least share-locked.  Same results.
 */
extern int	inplace_settle_visible(Relation rel, InplaceTupleHeader tup,
								   Buffer buffer, Snapshot snapshot);

static inline int
RowVisible(Relation rel, InplaceTupleHeader tup, Buffer buffer,
		   Snapshot snapshot)
{
	int			r = inplace_quick_visible(tup, snapshot);

	if (likely(r >= 0) || (tup->t_infomask & (IP_HINT_BITS | IP_FROZEN)))
		return r;
	return inplace_settle_visible(rel, tup, buffer, snapshot);
}

/*
 * Room for one version, the backend's own.  Only for use within a function
 * that runs nothing but the code of this extension in between.
 */
extern RowVersion *inplace_scratch_version(void);

/* scan.c */
extern void inplace_scan_set_limits(InplaceScanDesc scan, BlockNumber start,
									BlockNumber numblocks);
extern bool inplace_scan_next_page(InplaceScanDesc scan, ScanDirection dir);
extern BlockNumber inplace_scan_blocks_done(InplaceScanDesc scan);

/* copy the page in use; it is locked, or the caller knows better */
extern void inplace_scan_copy_page(InplaceScanDesc scan, Page page);

/*
 * Copy the pinned page and note in vis[] what the (MVCC) snapshot sees:
 * of all rows, or with noffs >= 0 of those listed.
 */
extern void inplace_scan_load_page(InplaceScanDesc scan,
								   const OffsetNumber *offs, int noffs);

/*
 * Store what the (MVCC) snapshot sees of a row on the page copy, the page
 * not locked; false if nothing.
 */
extern bool inplace_scan_store_visible(InplaceScanDesc scan, OffsetNumber off,
									   Snapshot snapshot,
									   TupleTableSlot *slot);

/* put the row of a vis[] entry in the slot; false if there is none visible */
extern bool inplace_scan_store(InplaceScanDesc scan, uint16 entry,
							   TupleTableSlot *slot);

/* the block after the last one handed out, of a scan that is not parallel */
extern BlockNumber inplace_scan_next_serial(InplaceScanDesc scan);

/* sample.c */
extern void inplace_init_sample_methods(TableAmRoutine *am);

/* bitmap.c */
extern void inplace_init_bitmap_methods(TableAmRoutine *am);
#if PG_VERSION_NUM >= 180000
extern struct ReadStream *inplace_bitmap_stream(InplaceScanDesc scan);
#endif

/* cluster.c */
extern void inplace_init_cluster_methods(TableAmRoutine *am);

/*
 * fetch.c: copy what the snapshot sees of the row at (blk, off) of a share-locked
 * page into the slot, with a clean TID; false if it sees nothing or there is no
 * row.
 */
extern bool inplace_fetch_visible(Relation rel, Buffer buffer, BlockNumber blk,
								  OffsetNumber off, Snapshot snapshot,
								  TupleTableSlot *slot);

/*
 * fetch.c: bring the rows of a pinned, unlocked page whose newest version is
 * an aborted change back to what they were.  Some may have to be left as they
 * are in a parallel query (restore.c): an error with "must".
 */
extern void inplace_restore_page(Relation rel, Buffer buffer, bool must);

/*
 * The versions of a row from a given one backward, as long as they may be
 * needed: a version that everybody sees is the last.  Locks are no versions.
 * "tuple" is the version reached, len its length; it belongs to the walk.
 */
typedef struct ChainWalk
{
	Relation	rel;
	BlockNumber blk;
	OffsetNumber off;
	InplaceTupleHeader tuple;
	Size		len;
	UndoRecordType change;		/* what the last step undid */
	UndoWalkGuard guard;
	int			cur;			/* the area in use */
	union
	{
		char		data[BLCKSZ];
		double		align_it;
		int64		align_it2;
	}			space[2];
	UndoRecord	rec;
} ChainWalk;

extern void inplace_walk_begin(ChainWalk *walk, Relation rel,
							   BlockNumber blk, OffsetNumber off,
							   InplaceTupleHeader tup, Size len);

/*
 * Go to the version before; false if there is none, if nobody can need it (the
 * present one's xid precedes the horizon), or if its undo has been given back.
 */
extern bool inplace_walk_back(ChainWalk *walk, TransactionId horizon);

/* ... false also if nobody can need that version */
extern bool inplace_walk_back_needed(ChainWalk *walk, TransactionId horizon);

#endif							/* INPLACE_SCAN_H */

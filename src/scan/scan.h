/*-------------------------------------------------------------------------
 *
 * scan.h
 *	  The scan descriptor, and what sequential, sample and bitmap scans share.
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

#include "inplace.h"

#include "page/recent.h"
#include "page/tuple.h"

/* entries of vis[]: an offset number and flags */
#define SCAN_OFFSET_MASK	0x0FFF
#define SCAN_UNDO			0x8000	/* visible version (if any) is in undo */
#define SCAN_NOT_ALIVE		0x4000	/* index build: not for unique checks */

/* scans that lock the whole relation against writers they cannot see */
#define SCAN_LOCKS_RELATION \
	(SO_TYPE_SEQSCAN | SO_TYPE_SAMPLESCAN | SO_TYPE_TIDRANGESCAN)

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
	BlockNumber pages_only_swept;	/* ... such pages, */
	BlockNumber pages_mixed;	/* and those that have both */
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

#if PG_VERSION_NUM >= 180000
#define ScanMinTid(scan)	(&(scan)->st.tidrange.rs_mintid)
#define ScanMaxTid(scan)	(&(scan)->st.tidrange.rs_maxtid)
#else
#define ScanMinTid(scan)	(&(scan)->rs_mintid)
#define ScanMaxTid(scan)	(&(scan)->rs_maxtid)
#endif

extern void inplace_scan_set_limits(InplaceScanDesc scan, BlockNumber start,
									BlockNumber numblocks);
extern bool inplace_scan_next_page(InplaceScanDesc scan, ScanDirection dir);
extern BlockNumber inplace_scan_blocks_done(InplaceScanDesc scan);

/* (load_page.c) copy the page in use; it is locked, or the caller knows better */
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

/* bitmap.c */
#if PG_VERSION_NUM >= 180000
extern struct ReadStream *inplace_bitmap_stream(InplaceScanDesc scan);
#endif

/* filled into the routine by handler.c */
extern void inplace_init_scan_methods(TableAmRoutine *am);
extern void inplace_init_fetch_methods(TableAmRoutine *am);
extern void inplace_init_sample_methods(TableAmRoutine *am);
extern void inplace_init_bitmap_methods(TableAmRoutine *am);
extern void inplace_init_analyze_methods(TableAmRoutine *am);

#endif							/* INPLACE_SCAN_H */

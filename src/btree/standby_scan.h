/*-------------------------------------------------------------------------
 *
 * standby_scan.h
 *	  Scans of inplace_btree indexes on a standby; see standby_scan.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_STANDBY_SCAN_H
#define INPLACE_STANDBY_SCAN_H

#include "inplace.h"

#include "access/relscan.h"
#include "storage/buf.h"

/*
 * A scan on a standby.  (One that began there goes on as such if the standby is
 * promoted.)
 */
typedef struct StandbyScan
{
	BlockNumber block;			/* that the scan is on, or InvalidBlockNumber */
	uint64		count;			/* of merges, before that was read */
	uint64		mark_count;		/* the same of the marked page */
	/* the entry that it was on when it last left a page: */
	IndexTuple	last;			/* room for any */
	ItemPointerData last_tid;
	uint64		last_count;		/* that page's count */
	uint64		last_primitive; /* which of several searches */
	bool		anew;			/* it has begun again, and come to this page */
} StandbyScan;

extern Size StandbyScanShmemSize(void);
extern void StandbyScanShmemInit(void);

extern uint64 standby_merges(void);
extern Buffer standby_lock_merged(RelFileLocator index, BlockNumber block);
extern void standby_note_merge(RelFileLocator index, BlockNumber from, BlockNumber to);
extern void standby_scan_start(StandbyScan *ss);
extern bool standby_scan_next(StandbyScan *ss, IndexScanDesc scan, ScanDirection dir);
extern void standby_scan_marked(StandbyScan *ss);
extern void standby_scan_restored(StandbyScan *ss, IndexScanDesc scan);

#endif							/* INPLACE_STANDBY_SCAN_H */

/*-------------------------------------------------------------------------
 *
 * in_flight.h
 *	  Which inplace_btree indexes are being scanned, and which of their pages have
 *	  been merged; see in_flight.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_IN_FLIGHT_H
#define INPLACE_IN_FLIGHT_H

#include "access/relscan.h"
#include "compat.h"
#include "utils/rel.h"

extern Size InFlightShmemSize(void);
extern void InFlightShmemInit(void);

extern void in_flight_begin(Relation index);
extern void in_flight_end(Relation index);
extern void in_flight_begin_parallel(void);
extern void in_flight_end_parallel(void);
extern bool in_flight_any(RelFileLocator index);

/*
 * A scan on a standby.  (One that began there goes on as such if the standby is
 * promoted.)
 */
typedef struct StandbyScan
{
	BlockNumber block;			/* that the scan is on, or InvalidBlockNumber */
	uint64		count;			/* of merges, before that was read */
	uint64		mark_count;		/* the same of the marked page */
	/* of the step that is being taken: */
	BlockNumber next;			/* the link it goes by, if to the right */
	uint64		next_count;		/* of merges, before */
} StandbyScan;

extern void in_flight_note_merge(RelFileLocator index, BlockNumber from,
								 BlockNumber to);
extern void standby_scan_start(StandbyScan *ss);
extern void standby_scan_step(StandbyScan *ss, IndexScanDesc scan);
extern void standby_scan_stepped(StandbyScan *ss, IndexScanDesc scan);
extern void standby_scan_marked(StandbyScan *ss);
extern void standby_scan_restored(StandbyScan *ss, IndexScanDesc scan);

#endif							/* INPLACE_IN_FLIGHT_H */

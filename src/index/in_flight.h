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
extern void in_flight_parallel(void);
extern bool in_flight_any(RelFileLocator index);
extern bool in_flight_any_parallel(RelFileLocator index);

/*
 * A scan on a standby.  (One that began there goes on as such if the standby is
 * promoted.)
 */
typedef struct StandbyScan
{
	uint64		count;			/* of merges, before the page was read */
	BlockNumber block;			/* that the scan is on, or InvalidBlockNumber */
	uint64		next_count;		/* before the step that is being taken */
	uint64		start_count;	/* before the first */
} StandbyScan;

extern void in_flight_replaying(bool replaying);
extern void in_flight_note_merge(RelFileLocator index, BlockNumber from,
								 BlockNumber to);
extern void standby_scan_start(StandbyScan *ss);
extern void standby_scan_step(StandbyScan *ss);
extern void standby_scan_restored(StandbyScan *ss, IndexScanDesc scan);
extern void standby_scan_stepped(StandbyScan *ss, IndexScanDesc scan);

#endif							/* INPLACE_IN_FLIGHT_H */

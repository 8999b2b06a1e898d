/*-------------------------------------------------------------------------
 *
 * in_flight.h
 *	  Which inplace_btree indexes are being scanned; see in_flight.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_IN_FLIGHT_H
#define INPLACE_IN_FLIGHT_H

#include "inplace.h"

#include "common/hashfn.h"
#include "utils/rel.h"

extern Size InFlightShmemSize(void);
extern void InFlightShmemInit(void);

extern void in_flight_begin(Relation index);
extern void in_flight_end(Relation index);
extern void in_flight_begin_parallel(void);
extern void in_flight_end_parallel(Relation index);
extern bool in_flight_any(RelFileLocator index);
extern bool in_flight_drain(RelFileLocator index);

extern uint64 in_flight_parallel_since(RelFileLocator index);
extern void in_flight_hold_parallel(RelFileLocator index);
extern void in_flight_let_parallel(RelFileLocator index);
extern bool in_flight_parallel(RelFileLocator index);

static inline uint32
in_flight_hash(RelFileLocator index)
{
	return murmurhash32(LocatorRel(index) ^ murmurhash32(LocatorDb(index)));
}

#endif							/* INPLACE_IN_FLIGHT_H */

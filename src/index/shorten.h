/*-------------------------------------------------------------------------
 *
 * shorten.h
 *	  Making the file of a btree shorter; see shorten.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_SHORTEN_H
#define INPLACE_SHORTEN_H

#include "storage/bufmgr.h"
#include "utils/rel.h"

typedef struct ShortenResult
{
	BlockNumber moved;			/* pages */
	BlockNumber old_end;		/* of the file; as the new one if nothing was */
	BlockNumber new_end;		/* cut off */
} ShortenResult;

extern bool inplace_can_shorten(Relation index);
extern bool inplace_index_is_locked(Relation index);
extern ShortenResult inplace_shorten_index(Relation index, BlockNumber target,
										   BufferAccessStrategy bstrategy);

#endif							/* INPLACE_SHORTEN_H */

/*-------------------------------------------------------------------------
 *
 * dead_items.h
 *	  The dead items of a VACUUM; see dead_items.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_DEAD_ITEMS_H
#define INPLACE_DEAD_ITEMS_H

#include "inplace.h"

#include "vacuum/compat_vacuum.h"
#include "vacuum/vacuum.h"

/*
 * Alloc also starts parallel workers for the indexes, and free brings home what they
 * have counted.
 */
extern void dead_items_alloc(InplaceVacuum *vac, int nworkers);
extern void dead_items_free(InplaceVacuum *vac);
extern bool dead_items_full(InplaceVacuum *vac);
extern void dead_items_reset(InplaceVacuum *vac);
extern int64 dead_items_count(InplaceVacuum *vac);
extern Size dead_items_bytes(InplaceVacuum *vac);
extern int	dead_items_work_mem(void);
extern void dead_items_add(InplaceVacuum *vac, BlockNumber blk,
						   OffsetNumber *offsets, int noffsets);

/* going through them, a page at a time */
typedef struct DeadItemsIter
{
#ifdef DEAD_ITEMS_IN_TIDSTORE
	TidStoreIter *iter;
#else
	int			next;
#endif
} DeadItemsIter;

extern void dead_items_begin(InplaceVacuum *vac, DeadItemsIter *it);
extern bool dead_items_next(InplaceVacuum *vac, DeadItemsIter *it,
							BlockNumber *blk, OffsetNumber *offsets,
							int *noffsets);
extern void dead_items_end(DeadItemsIter *it);

#endif							/* INPLACE_DEAD_ITEMS_H */

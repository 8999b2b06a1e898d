/*-------------------------------------------------------------------------
 *
 * sweep.h
 *	  Taking the entries of former keys out of an index; see sweep.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_SWEEP_H
#define INPLACE_SWEEP_H

#include "inplace.h"

#include "index/stale_rows.h"
#include "index/version_keys.h"
#include "undo/holders.h"

/* bottomupfreespace of a deletion that wants all there is: a SweepOp */
#define SWEEP_EVERYTHING	INT_MAX

/*
 * What nbtree hands on to index_delete.c, which may rely on its being the first of these.
 */
typedef struct SweepOp
{
	TM_IndexDeleteOp op;		/* must be first */
	TransactionId horizon;
	const UndoBounds *bounds;	/* of held snapshots, or NULL */
	StaleRows  *rows;			/* those that have to keep their mark are
								 * dropped */
	VersionKeys *keys;			/* of the rows on the page, if computed */
} SweepOp;

extern BlockNumber inplace_sweep_index(Relation table, Relation index,
									   TransactionId horizon,
									   const UndoBounds *bounds,
									   StaleRows *rows, Size *freed);
extern bool inplace_leaves_in_circle(Relation index, BlockNumber visited);

#endif							/* INPLACE_SWEEP_H */

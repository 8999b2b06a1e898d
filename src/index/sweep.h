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

/*
 * bottomupfreespace of a deletion that wants all there is; it goes by
 * inplace_sweep.
 */
#define SWEEP_EVERYTHING	INT_MAX

typedef struct Sweep
{
	TransactionId horizon;
	StaleRows  *rows;			/* those that have to keep their mark are
								 * dropped */
	struct VersionKeys *keys;	/* of the rows on the page */
} Sweep;

extern Sweep inplace_sweep;

extern BlockNumber inplace_sweep_index(Relation table, Relation index,
									   TransactionId horizon,
									   StaleRows *rows, Size *freed);
extern bool inplace_leaves_in_circle(Relation index, BlockNumber visited);

#endif							/* INPLACE_SWEEP_H */

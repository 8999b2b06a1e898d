/*-------------------------------------------------------------------------
 *
 * walk.h
 *	  Walking back along the versions of a row; see walk.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_WALK_H
#define INPLACE_WALK_H

#include "inplace.h"

#include "page/tuple.h"
#include "undo/record.h"
#include "undo/undo.h"

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

#endif							/* INPLACE_WALK_H */

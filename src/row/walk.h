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

/* a row, aligned as on a page */
typedef union RowImage
{
	char		data[BLCKSZ];
	InplaceTupleHeaderData hdr;
	double		align_double;
	int64		align_int64;
} RowImage;

/*
 * Where a walk is.  "hdr" is the header of the version reached, "tuple" its bytes,
 * whose own header is not always its: the row itself may be the same in two versions.
 * They are those that the walk began with, or in one of the two areas "space".
 */
typedef struct ChainWalk
{
	Relation	rel;
	BlockNumber blk;
	OffsetNumber off;
	InplaceTupleHeaderData hdr;
	InplaceTupleHeader tuple;
	Size		len;			/* without padding */
	UndoReplaced replaced;		/* what replaced the version; invalid: nothing */
	bool		may_dangle;		/* a delta that does not fit is the walk's end */
	int			cur;			/* the area in use, or -1 */
	RowImage   *space;
	UndoWalkGuard guard;
	UndoRecord	rec;			/* read last */
} ChainWalk;

static inline void
inplace_walk_start(ChainWalk *walk, Relation rel, BlockNumber blk,
				   OffsetNumber off, const InplaceTupleHeaderData *hdr,
				   InplaceTupleHeader tuple, Size len, RowImage *space)
{
	walk->rel = rel;
	walk->blk = blk;
	walk->off = off;
	walk->hdr = *hdr;
	walk->tuple = tuple;
	walk->len = len;
	walk->replaced.xid = InvalidTransactionId;
	walk->replaced.cid = InvalidCommandId;
	walk->may_dangle = false;
	walk->cur = -1;
	walk->space = space;
	memset(&walk->guard, 0, sizeof(walk->guard));
}

/*
 * Read the record that the version's header leads to; false if, with missing_ok, it
 * is not there.
 */
extern bool inplace_walk_read(ChainWalk *walk, bool missing_ok);

/*
 * What becomes of the record that has been read.  A walk without a callback goes by
 * the records of changes and passes over the others.
 */
typedef enum WalkChoice
{
	WALK_GO,					/* go to the version that it leads to */
	WALK_PASS,					/* go on from what is below the lock or link */
	WALK_STOP					/* go nowhere */
} WalkChoice;

typedef WalkChoice (*WalkCallback) (ChainWalk *walk, void *arg);

/*
 * Go to the version before, or to that which a chosen link leads to.  False if there is
 * none, if its undo is missing (with missing_ok), or if the callback has it stop.
 */
extern bool inplace_walk_on(ChainWalk *walk, bool missing_ok,
							WalkCallback choose, void *arg);

/*
 * A walk with areas of its own.  It begins with a copy of the row, and "tuple" always
 * has the header of the version reached.  It goes on as long as versions may be
 * needed: one that everybody sees is the last.
 */
typedef struct CopyWalk
{
	ChainWalk	walk;
	RowImage	space[2];
} CopyWalk;

extern ChainWalk *inplace_walk_begin(CopyWalk *copies, Relation rel,
									 BlockNumber blk, OffsetNumber off,
									 InplaceTupleHeader tup, Size len);

/*
 * Go to the version before; false if there is none, if nobody can need it (the
 * present one's xid precedes the horizon), or if its undo has been given back.
 */
extern bool inplace_walk_back(ChainWalk *walk, TransactionId horizon);

/* ... false also if nobody can need that version */
extern bool inplace_walk_back_needed(ChainWalk *walk, TransactionId horizon);

/*
 * Of headers alone.  From that of a version to that of the one before it at the same
 * TID, past records of locks; false if there is none.  *hdr goes as far back as there
 * are records in any case, *rec is what was in between last: that of the change.
 */
extern bool inplace_version_before(Relation rel, const ItemPointerData *tid,
								   InplaceTupleHeader hdr, bool missing_ok,
								   UndoWalkGuard *guard, UndoRecord *rec);

/* the new TID of a row whose header says MOVED */
extern bool inplace_moved_to(Relation rel, const InplaceTupleHeaderData *tup,
							 const ItemPointerData *from, ItemPointer to);

#endif							/* INPLACE_WALK_H */

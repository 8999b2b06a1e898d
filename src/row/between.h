/*-------------------------------------------------------------------------
 *
 * between.h
 *	  Deleted rows that lie between two snapshots; see between.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_BETWEEN_H
#define INPLACE_BETWEEN_H

#include "inplace.h"

#include "page/tuple.h"
#include "undo/holders.h"

extern bool inplace_may_be_between(Relation rel);

/* bounds for a deleter of a row of rel, or NULL */
extern const UndoBounds *inplace_between_bounds(Relation rel,
												TransactionId xid);

/*
 * So many undo records at most are read for the rows of one page, or of one call of index
 * deletion.
 */
#define BETWEEN_MAX_READS	500

extern bool inplace_row_between(Relation rel, BlockNumber block,
								OffsetNumber off,
								const InplaceTupleHeaderData *tup,
								const UndoBounds *bounds, int *reads_left);

/*
 * Bounds for versions of rows that are asked about one after the other: those that there
 * are when they are needed first.
 */
typedef struct BetweenQuestion
{
	const UndoBounds *bounds;	/* NULL: none, or not asked for yet */
	bool		asked;
} BetweenQuestion;

extern bool inplace_version_between(Relation rel, TransactionId xid,
									TransactionId replacer,
									BetweenQuestion *q);

#endif							/* INPLACE_BETWEEN_H */

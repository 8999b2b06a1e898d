/*-------------------------------------------------------------------------
 *
 * stale_rows.h
 *	  The rows whose stale index entries a VACUUM takes out (stale.c): a set of
 *	  TIDs in the order of the table, which is asked for each entry of each
 *	  inplace_btree, and how many entries of each were met in an index.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_STALE_ROWS_H
#define INPLACE_STALE_ROWS_H

#include "inplace.h"

#include "access/htup_details.h"
#include "port/pg_bitutils.h"
#include "storage/itemptr.h"

#define STALE_BLOCK_WORDS	(MaxHeapTuplesPerPage / 64 + 1)

/* rows of one page; bits by line pointer number */
typedef struct StaleBlock
{
	BlockNumber blk;
	bool		clear_later;	/* other rows wait to be rid of their mark */
	uint64		rows[STALE_BLOCK_WORDS];	/* in the set */
	uint64		between[STALE_BLOCK_WORDS]; /* ... with versions that
											 * snapshots need, and others
											 * between them */
	/* in the index at hand: */
	uint64		first_met;		/* stale_block_number() */
	uint64		met[STALE_BLOCK_WORDS]; /* an entry, or more; in sweep_bulk.c,
										 * the row is noted */
	uint64		more[STALE_BLOCK_WORDS];	/* more than one */
} StaleBlock;

typedef struct StaleRows
{
	StaleBlock *blocks;			/* in the order of the table */
	Size		nblocks;
	Size		max_blocks;		/* allocated */
	int64		nrows;
	int64		nbetween;		/* of those */

	/*
	 * Where to look for a block: from start[blk >> shift] up to the start
	 * that follows.
	 */
	int			shift;
	Size		nstarts;
	uint32	   *start;			/* one more than nstarts */

	TransactionId newest;		/* xid of the newest version among them that
								 * is not frozen */
	bool		told_standbys;	/* present_row.c */

	bool		only_more;		/* of the index at hand only rows with more
								 * than one entry are wanted */
	bool		with_between;	/* and those "between", too */
} StaleRows;

/* the block, or NULL if the set has no row in it */
static inline StaleBlock *
stale_rows_block(const StaleRows *stale, BlockNumber blk)
{
	Size		low;
	Size		high;

	if ((blk >> stale->shift) >= stale->nstarts)
		return NULL;
	low = stale->start[blk >> stale->shift];
	high = stale->start[(blk >> stale->shift) + 1];
	while (low < high)
	{
		Size		mid = low + (high - low) / 2;

		if (stale->blocks[mid].blk == blk)
			return &stale->blocks[mid];
		if (stale->blocks[mid].blk < blk)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static inline bool
stale_block_has(const uint64 *rows, OffsetNumber off)
{
	return off <= MaxHeapTuplesPerPage &&
		(rows[off / 64] & (UINT64CONST(1) << (off % 64))) != 0;
}

static inline void
stale_block_add(uint64 *rows, OffsetNumber off)
{
	rows[off / 64] |= UINT64CONST(1) << (off % 64);
}

/* are the row's entries of the index at hand to be looked at? */
static inline bool
stale_block_wants(const StaleRows *stale, const StaleBlock *b, OffsetNumber off)
{
	return stale_block_has(stale->only_more ? b->more : b->rows, off) &&
		(stale->with_between || !stale_block_has(b->between, off));
}

static inline bool
stale_rows_wanted(const StaleRows *stale, ItemPointer tid)
{
	StaleBlock *b = stale_rows_block(stale, ItemPointerGetBlockNumberNoCheck(tid));

	return b != NULL &&
		stale_block_wants(stale, b, ItemPointerGetOffsetNumberNoCheck(tid));
}

/* does a row of the set have more versions than its present one? */
static inline bool
stale_rows_is_between(const StaleRows *stale, ItemPointer tid)
{
	StaleBlock *b = stale_rows_block(stale, ItemPointerGetBlockNumberNoCheck(tid));

	return b != NULL &&
		stale_block_has(b->between, ItemPointerGetOffsetNumberNoCheck(tid));
}

/*
 * Rows of the set may be numbered in the order of the table, one range of numbers for each block:
 * stale_block_number() gives such a number to one that has been met, from the block's first on.
 */
static inline uint64
stale_block_number(const StaleBlock *b, OffsetNumber off)
{
	uint64		n = b->first_met;

	for (int i = 0; i < off / 64; i++)
		n += pg_popcount64(b->met[i]);
	return n + pg_popcount64(b->met[off / 64] & ((UINT64CONST(1) << (off % 64)) - 1));
}

/* rows of a page that are to be added, of either kind */
typedef struct StaleOffsets
{
	int			n;
	int			nbetween;
	const OffsetNumber *offs;
	const OffsetNumber *between;
} StaleOffsets;

extern bool stale_rows_add(StaleRows *stale, BlockNumber blk,
						   const StaleOffsets *add, bool clear_later,
						   Size memory);
extern void stale_rows_drop(StaleRows *stale, ItemPointer tid);
extern void stale_rows_drop_all(StaleRows *stale);
extern void stale_rows_prepare(StaleRows *stale);
extern void stale_rows_begin_index(StaleRows *stale, bool with_between);
extern bool stale_rows_met(StaleRows *stale, ItemPointer tid);
extern void stale_rows_free(StaleRows *stale);

#endif							/* INPLACE_STALE_ROWS_H */

/*-------------------------------------------------------------------------
 *
 * stale_rows.c
 *	  See stale_rows.h.
 *
 * Blocks are added in the order of the table, and then found by a search within
 * a range of block numbers so short that it has two of them on average: there
 * are indexes with many entries for each row of the set, and most of VACUUM's
 * time could go into this.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "index/stale_rows.h"
#include "utils/memutils.h"

/* a block, with its part of stale_rows_prepare's array */
#define BYTES_PER_BLOCK		(sizeof(StaleBlock) + 2 * sizeof(uint32))

static bool
have_room(StaleRows *stale, Size memory)
{
	Size		limit = Min(memory / BYTES_PER_BLOCK, PG_UINT32_MAX);

	if (stale->nblocks < stale->max_blocks)
		return true;
	if (stale->max_blocks >= limit)
		return false;
	if (stale->blocks == NULL)
	{
		stale->max_blocks = 128;
		stale->blocks = palloc(stale->max_blocks * sizeof(StaleBlock));
	}
	else
	{
		stale->max_blocks *= 2;
		stale->blocks = repalloc_huge(stale->blocks,
									  stale->max_blocks * sizeof(StaleBlock));
	}
	return true;
}

/*
 * Add rows of a block that comes after all others.  False if there is no room,
 * in so many bytes.
 */
bool
stale_rows_add(StaleRows *stale, BlockNumber blk, const StaleOffsets *add,
			   bool clear_later, Size memory)
{
	StaleBlock *b;

	Assert(stale->nblocks == 0 || stale->blocks[stale->nblocks - 1].blk < blk);
	Assert(stale->start == NULL);
	if (!have_room(stale, memory))
		return false;
	b = &stale->blocks[stale->nblocks++];
	memset(b, 0, sizeof(StaleBlock));
	b->blk = blk;
	b->clear_later = clear_later;
	for (int i = 0; i < add->n; i++)
		stale_block_add(b->rows, add->offs[i]);
	for (int i = 0; i < add->nbetween; i++)
	{
		stale_block_add(b->rows, add->between[i]);
		stale_block_add(b->between, add->between[i]);
	}
	stale->nrows += add->n + add->nbetween;
	stale->nbetween += add->nbetween;
	return true;
}

void
stale_rows_drop(StaleRows *stale, ItemPointer tid)
{
	StaleBlock *b = stale_rows_block(stale, ItemPointerGetBlockNumberNoCheck(tid));
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(tid);

	if (b != NULL && stale_block_has(b->rows, off))
		b->rows[off / 64] &= ~(UINT64CONST(1) << (off % 64));
}

/* ... and all rows that are to be marked */
void
stale_rows_drop_all(StaleRows *stale)
{
	for (Size i = 0; i < stale->nblocks; i++)
	{
		StaleBlock *b = &stale->blocks[i];

		memcpy(b->rows, b->between, sizeof(b->rows));
	}
}

/*
 * All rows are there; from here on they are looked for.
 */
void
stale_rows_prepare(StaleRows *stale)
{
	BlockNumber last;
	Size		next = 0;

	Assert(stale->start == NULL && stale->nblocks > 0);
	last = stale->blocks[stale->nblocks - 1].blk;
	while ((last >> stale->shift) >= 2 * stale->nblocks)
		stale->shift++;
	stale->nstarts = (last >> stale->shift) + 1;
	stale->start = MemoryContextAllocHuge(CurrentMemoryContext,
										  (stale->nstarts + 1) * sizeof(uint32));
	for (Size i = 0; i < stale->nblocks; i++)
		while (next <= (stale->blocks[i].blk >> stale->shift))
			stale->start[next++] = (uint32) i;
	Assert(next == stale->nstarts);
	stale->start[next] = (uint32) stale->nblocks;
}

/* no entries of an index have been met yet */
void
stale_rows_begin_index(StaleRows *stale, bool with_between)
{
	for (Size i = 0; i < stale->nblocks; i++)
	{
		memset(stale->blocks[i].met, 0, sizeof(stale->blocks[i].met));
		memset(stale->blocks[i].more, 0, sizeof(stale->blocks[i].more));
	}
	stale->only_more = false;
	stale->with_between = with_between;
}

/*
 * An entry of the index at hand; true if it is not the first one of a row of the
 * set.
 */
bool
stale_rows_met(StaleRows *stale, ItemPointer tid)
{
	StaleBlock *b = stale_rows_block(stale, ItemPointerGetBlockNumberNoCheck(tid));
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(tid);

	if (b == NULL || !stale_block_has(b->rows, off))
		return false;
	if (!stale_block_has(b->met, off))
	{
		stale_block_add(b->met, off);
		return false;
	}
	stale_block_add(b->more, off);
	return true;
}

void
stale_rows_free(StaleRows *stale)
{
	if (stale->blocks)
		pfree(stale->blocks);
	if (stale->start)
		pfree(stale->start);
	memset(stale, 0, sizeof(*stale));
}

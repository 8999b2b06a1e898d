/*-------------------------------------------------------------------------
 *
 * guess.h
 *	  Where a page was last found in shared buffers.  See guess.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_GUESS_H
#define INPLACE_GUESS_H

#include "inplace.h"

#include "port/atomics.h"
#include "storage/buf_internals.h"

extern pg_atomic_uint32 *page_guesses;
extern uint32 page_guesses_mask;

extern Size PageGuessShmemSize(void);
extern void PageGuessShmemInit(void);

/*
 * Neighbouring pages have neighbouring places.  Databases that are copies of one
 * another have files of the same numbers.
 */
static inline pg_atomic_uint32 *
page_guess_place(Relation rel, BlockNumber blk)
{
	RelFileLocator loc = RelLocator(rel);
	uint32		place = blk + (LocatorRel(loc) + LocatorDb(loc) * 0x85EBCA6Bu) * 0x9E3779B1u;

	return &page_guesses[place & page_guesses_mask];
}

/*
 * The buffer to try, or InvalidBuffer.  Not for temporary tables, whose file may
 * have the number of another's.
 */
static inline Buffer
page_guess(Relation rel, BlockNumber blk)
{
	Assert(!RelationUsesLocalBuffers(rel));
	return (Buffer) pg_atomic_read_u32(page_guess_place(rel, blk));
}

/*
 * The page has been found in this buffer.  The place is written only if that is
 * news, so that it stays in the caches of all processors that read it.
 */
static inline void
note_page_guess(Relation rel, BlockNumber blk, Buffer buffer)
{
	pg_atomic_uint32 *place = page_guess_place(rel, blk);

	Assert(!BufferIsLocal(buffer));
	if (pg_atomic_read_u32(place) != (uint32) buffer)
		pg_atomic_write_u32(place, (uint32) buffer);
}

/*
 * Does the buffer look as if it had the page?  Nothing is locked or pinned, so
 * that may change at any time, and a tag may be seen half changed.
 */
static inline bool
page_guess_holds(Relation rel, BlockNumber blk, Buffer buffer)
{
	const BufferTag *tag = &GetBufferDescriptor(buffer - 1)->tag;
	RelFileLocator loc = BufferTagLocator(tag);

	return tag->blockNum == blk && tag->forkNum == MAIN_FORKNUM &&
		RelFileLocatorEquals(loc, RelLocator(rel));
}

#endif							/* INPLACE_GUESS_H */

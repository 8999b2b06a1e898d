/*-------------------------------------------------------------------------
 *
 * shrink.c
 *	  How long the undo file is kept: cutting off its end once that is free.
 *	  Run by a database's undo worker, at the end of each tick.
 *
 * The file shall have the length that the present rate of changes needs, and no
 * more, within a few seconds after what needed more has ended.  But it shall not
 * become shorter in one tick and longer in the next.  Between two ticks
 * no extent becomes free, so the need is the number of extents in use after a
 * tick and those that are taken until the next.  The most of each over the
 * last few slots of time is the length to keep: then a need that comes and
 * goes within that time changes nothing, and one that has gone for good is
 * forgotten after NSLOTS * SLOT_MS.
 *
 * The lowest free extent is always taken first (space.c), so the extents in
 * use come to lie within that length.  The exception are partial extents that were
 * taken when the file was long: a backend appends to one for as long as nothing
 * makes it take another.  So while the file is too long "retreat" says that
 * extents from there up are to be left alone if there is a lower one.  Extents
 * that backends take because they have to move do not count as need: the ones
 * they leave become free in return.
 *
 * Locks: see space.c, "The file".  Nothing here waits for a heavyweight lock.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "catalog/storage.h"
#include "storage/lmgr.h"
#include "undo/shrink.h"
#include "undo/space.h"
#include "undo/undo_log.h"
#include "undo/worker.h"

/* ticks that are closer to each other make one slot of time */
#define SLOT_MS		400
#define NSLOTS		3

/* a file may be that much longer than what is to be kept */
#define SLACK(keep)	(2 + (keep) / 16)

typedef struct Need
{
	uint32		used;			/* extents in use after a tick */
	uint32		taken;			/* extents taken from one tick to the next */
} Need;

/* what the worker remembers of a space from tick to tick */
typedef struct ShrinkMemory
{
	uint32		last_taken;
	uint32		movers;			/* extents expected to be taken by backends
								 * that have to move */
	Need		slots[NSLOTS];	/* the present one first */
	int			nslots;
	TimestampTz slot_start;
} ShrinkMemory;

static ShrinkMemory memory[UNDO_SHARED_KINDS];

/*
 * Extents that are not free, from "start" up, and where the last one ends.
 */
static uint32
CountInUse(UndoSpace *sp, uint32 start, uint32 *end)
{
	uint32		in_use = 0;
	uint32		nextents = UndoSpaceExtents(sp);

	*end = 0;
	for (uint32 n = start; n < nextents; n++)
		if ((pg_atomic_read_u32(&UndoExtentAt(sp, n)->state) &
			 EXT_STATE_MASK) != EXT_FREE)
		{
			in_use++;
			*end = n + 1;
		}
	return in_use;
}

/*
 * Take note of the need in this tick.  Returns true if a slot has been
 * completed, and puts the most of the last slots into *most.
 */
static bool
NoteNeed(ShrinkMemory *mem, uint32 used, uint32 counter, Need *most)
{
	TimestampTz now = GetCurrentTimestamp();
	uint32		taken = mem->nslots > 0 ? counter - mem->last_taken : 0;
	uint32		moved = Min(taken, mem->movers);
	Need	   *slot = &mem->slots[0];

	mem->last_taken = counter;
	mem->movers -= moved;
	slot->used = Max(slot->used, used);
	slot->taken = Max(slot->taken, taken - moved);
	if (mem->nslots > 0 &&
		!TimestampDifferenceExceeds(mem->slot_start, now, SLOT_MS))
		return false;

	mem->nslots = Min(mem->nslots + 1, NSLOTS);
	mem->slot_start = now;
	*most = *slot;
	for (int i = NSLOTS - 1; i > 0; i--)
	{
		most->used = Max(most->used, mem->slots[i].used);
		most->taken = Max(most->taken, mem->slots[i].taken);
		mem->slots[i] = mem->slots[i - 1];
	}
	memset(slot, 0, sizeof(Need));
	return true;
}

/*
 * Cut off the free extents past the first "keep" ones.
 */
static void
TruncateFile(UndoSpace *sp, Relation undorel, uint32 keep)
{
	BlockNumber target;
	BlockNumber nblocks;
	uint32		end;

	/* against VACUUM FULL and the like; never waits */
	if (!ConditionalLockRelation(undorel, ShareUpdateExclusiveLock))
		return;

	UndoWorkerCheckClaim(sp);
	LWLockAcquire(&sp->extend_lock.lock, LW_EXCLUSIVE);
	LWLockAcquire(&sp->lock.lock, LW_EXCLUSIVE);
	Assert(sp->tail_end == 0);
	(void) CountInUse(sp, 0, &end);
	keep = Max(keep, end);
	if (keep < sp->nextents)
		UndoSpaceCut(sp, keep);
	target = UndoExtentStart(sp->nextents);
	LWLockRelease(&sp->lock.lock);

	nblocks = RelationGetNumberOfBlocks(undorel);
	if (nblocks > target)
	{
		if (RelationNeedsWAL(undorel))
			inplace_log_undo_cut(RelLocator(undorel), target, nblocks);
		/* first: it may be cut off although that fails */
		pg_atomic_fetch_add_u32(&sp->cut, 1);
		RelationTruncate(undorel, target);
	}
	LWLockRelease(&sp->extend_lock.lock);
}

/*
 * Make the file shorter if it is too long for what is needed.
 */
void
UndoShrink(UndoSpace *sp, Relation undorel)
{
	ShrinkMemory *mem = &memory[sp->kind];
	uint32		end;
	uint32		used = CountInUse(sp, 0, &end);
	Need		most;
	uint32		keep;

	if (!NoteNeed(mem, used, (uint32) pg_atomic_read_u64(&sp->clock), &most))
		return;

	/* backends that have to move do so at once, though the need may change */
	keep = used + most.taken;
	if (sp->nextents > keep + (most.taken > 0 ? SLACK(keep) : 0))
	{
		uint32		ignored;

		pg_atomic_write_u32(&sp->retreat, keep);
		mem->movers = CountInUse(sp, keep, &ignored);
	}
	else
	{
		pg_atomic_write_u32(&sp->retreat, PG_UINT32_MAX);
		mem->movers = 0;
	}

	if (mem->nslots < NSLOTS || sp->tail_end != 0)
		return;
	keep = Max(most.used + most.taken, end);
	if (sp->nextents > keep + (most.taken > 0 ? SLACK(keep) : 0))
		TruncateFile(sp, undorel, keep);
}

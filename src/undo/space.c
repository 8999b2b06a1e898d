/*-------------------------------------------------------------------------
 *
 * space.c
 *	  Shared memory of undo: which extents of which database's undo are in
 *	  use, and what for.  Reading undo pages; append.c writes them.
 *
 * Spaces and extents
 *	  A space is the undo of one kind in one database, known by the storage of
 *	  its undo relation.  Its map of extents is made of chunks out of a pool
 *	  whose size is inplace.undo_extents.  What is in shared memory is lost
 *	  with the server; the first to use a space then makes the map from the
 *	  size of the file, in the most cautious way: everything is in use, by the
 *	  newest xid, and has to be scanned for aborted changes.  So a space that no
 *	  open transaction has an extent of may always be forgotten, which costs only
 *	  time.
 *
 * States of an extent (UndoExtent.state)
 *	  FREE -> OWNED			by a backend, with the space's lock exclusive
 *	  PARTIAL -> OWNED		by a backend, compare and exchange, with the lock
 *							shared (which keeps the extent in the map)
 *	  OWNED -> PARTIAL, FULL	by the owner, atomically, without a lock
 *	  PARTIAL, FULL -> DISCARD	by the database's undo worker, compare and
 *							exchange, only without NEEDS_SCAN
 *	  DISCARD -> FREE		by the worker, with the lock exclusive
 *
 *	  1. All extents that a transaction has written to stay OWNED until it
 *		 has ended *and* its callback at the end has run.  An aborted
 *		 transaction's xid is out of the proc array before the callback runs;
 *		 if the extents were let go earlier the worker could give them back
 *		 before they are marked as having aborted changes in them.
 *		 Parallel workers may have to keep a lock while they restore a row.  They
 *		 write under their leader's xid, and let go of their extents when they
 *		 end.  What they write needs no rollback.  But the version below the lock
 *		 does if it is the leader's, as the leader may yet abort: so 2. is for
 *		 them, too.
 *	  2. The abort of a transaction or of a subtransaction sets NEEDS_SCAN and
 *		 DIRTY on all extents of the transaction; so does PREPARE TRANSACTION, and
 *		 the end of a parallel worker.
 *		 That is all that undo does at an abort: no lock, no buffer, no
 *		 memory is asked for, so it cannot fail.
 *	  3. newest_xid never goes back, except when a free extent is taken.
 *	  4. "fill" is set by the owner, with the page that it counts locked.  A
 *		 page below it has been initialised since the extent was taken.
 *	  5. Only the database's worker makes a space smaller (nextents, and the
 *		 chunks with it), with the lock held exclusively; a space that has a
 *		 worker, or extents, is not given to another database.  So the worker
 *		 looks at the map without a lock (UndoSpaceExtents first), and an
 *		 owner at its own extent.
 *	  6. NEEDS_SCAN is also set when a lock is recorded on top of a change
 *		 that is still in progress: if that is rolled back, the way to it goes
 *		 through the lock's record.  So it is when a row is restored, and the
 *		 lock comes to be on a change that was rolled back as well: there may
 *		 be no room to go on (restore.c).
 *	  7. "begun" and "ended" are times by the space's clock: when an extent was taken
 *		 while free, and when its last owner let go of it.  A backend that takes
 *		 an extent sets "ended" to EXT_STILL_OWNED before it writes to it.  So
 *		 what is in an extent that had ended before another one was begun was
 *		 written before all that is in the other (release.c).  Both are 0 for
 *		 what was written before a restart.
 *	  8. "images" says whether it is for images of evicted rows (append.c), from when it
 *		 is taken while free until it is free again.  It is a matter of where to append
 *		 alone: who reads, scans or gives back does not ask.  After a restart no
 *		 extent is appended to before it has been free.
 *
 * The file
 *	  The backend that takes the first page of an extent makes the file longer, by
 *	  an extent at a time, and the worker cuts it off (shrink.c).  Both hold
 *	  extend_lock.
 *	  The worker first takes the extents out of the map, so only backends that
 *	  have to extend the file need to wait for the truncation.
 *
 * The tail
 *	  A file may have more extents than there are places for in the pool: the
 *	  setting was larger when it was written, here or on the server that this
 *	  one was a standby of.  Then the map has the first of them, as many as are
 *	  to be had, and the rest, the tail, is kept, and given back, as a whole
 *	  (discard.c).  Until then the map gets no more extents, and the file is not
 *	  cut off.
 *
 * Lock order
 *	  data pages -> undo page -> directory -> extend_lock -> the space's lock
 *	  -> meta page -> pool_lock (a spinlock).  The space's lock is never held
 *	  while another undo page than the meta page is locked (pinning is
 *	  allowed).  workers_lock (worker.c) is taken with none of these held and
 *	  nothing is taken under it.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/tuple.h"
#include "storage/smgr.h"
#include "undo/space.h"
#include "undo/standby.h"
#include "undo/temp.h"
#include "undo/undo.h"
#include "undo/undo_log.h"
#include "undo/undo_rows.h"
#include "undo/undorel.h"
#include "undo/worker.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

int			inplace_undo_extents = 262144;
const UndoRows *undo_rows = NULL;

UndoShared *undo_shared = NULL;
static UndoExtent *undo_pool = NULL;	/* begins with a cache line */
static uint16 *undo_free_chunks = NULL;
static char *undo_spaces = NULL;

static UndoSpace *my_spaces[UNDO_SHARED_KINDS];

/* how long the files were, so that a pointer past the end is found out */
static BlockNumber known_blocks[UNDO_SHARED_KINDS];

/* ---------------- shared memory ---------------- */

static uint32
UndoPoolChunks(void)
{
	return Max(2, (inplace_undo_extents + UNDO_CHUNK_EXTENTS - 1) /
			   UNDO_CHUNK_EXTENTS);
}

static Size
UndoSpaceSize(void)
{
	return CACHELINEALIGN(offsetof(UndoSpace, chunks) +
						  UndoPoolChunks() * sizeof(uint16));
}

Size
UndoShmemSize(void)
{
	Size		size = CACHELINEALIGN(sizeof(UndoShared));

	size = add_size(size, mul_size(UNDO_MAX_SPACES, UndoSpaceSize()));
	size = add_size(size, CACHELINEALIGN(UndoPoolChunks() * sizeof(uint16)));
	size = add_size(size, mul_size(UndoPoolChunks() * UNDO_CHUNK_EXTENTS,
								   sizeof(UndoExtent)));
	return add_size(size, PG_CACHE_LINE_SIZE);
}

UndoSpace *
UndoSpaceAt(int i)
{
	return (UndoSpace *) (undo_spaces + i * UndoSpaceSize());
}

/*
 * Each transaction writes to the entry of its extent, several times.  Extents next to each
 * other mostly belong to different backends, so they are not next to each other in memory:
 * two processors would write to one cache line in turn.
 */
UndoExtent *
UndoExtentAt(UndoSpace *sp, uint32 n)
{
	uint32		chunk = sp->chunks[n / UNDO_CHUNK_EXTENTS];
	uint32		i = n % UNDO_CHUNK_EXTENTS;

	StaticAssertStmt(UNDO_CHUNK_EXTENTS % UNDO_EXTENTS_IN_LINE == 0,
					 "a chunk is of whole cache lines");
	i = i % UNDO_CHUNK_LINES * UNDO_EXTENTS_IN_LINE + i / UNDO_CHUNK_LINES;
	return &undo_pool[chunk * UNDO_CHUNK_EXTENTS + i];
}

static void
UndoSpaceShmemInit(UndoSpace *sp, int tranche)
{
	LWLockInitialize(&sp->lock.lock, tranche);
	LWLockInitialize(&sp->extend_lock.lock, tranche + 1);
	sp->in_use = false;
	pg_atomic_init_u32(&sp->worker_pid, 0);
	pg_atomic_init_u32(&sp->launcher_knows, 0);
	pg_atomic_init_u32(&sp->discarded_xid, InvalidTransactionId);
	pg_atomic_init_u32(&sp->retreat, PG_UINT32_MAX);
	pg_atomic_init_u64(&sp->clock, 0);
	pg_atomic_init_u32(&sp->cut, 0);
	pg_atomic_init_u64(&sp->limit_reported, 0);
	pg_atomic_init_u64(&sp->rows_restored, 0);
	for (int i = 0; i < UNDO_RECENT; i++)
	{
		pg_atomic_init_u32(&sp->recent[false][i], PG_UINT32_MAX);
		pg_atomic_init_u32(&sp->recent[true][i], PG_UINT32_MAX);
	}
}

/*
 * Called from the shmem startup hook, with AddinShmemInitLock held.
 */
void
UndoShmemInit(void)
{
	bool		found;
	char	   *p;
	uint32		nextents = UndoPoolChunks() * UNDO_CHUNK_EXTENTS;
	int			tranche;
	int			tranche_extend;

	p = ShmemInitStruct("inplace undo", UndoShmemSize(), &found);
	p = (char *) CACHELINEALIGN(p);
	undo_shared = (UndoShared *) p;
	p += CACHELINEALIGN(sizeof(UndoShared));
	undo_spaces = p;
	p += UNDO_MAX_SPACES * UndoSpaceSize();
	undo_free_chunks = (uint16 *) p;
	p += CACHELINEALIGN(UndoPoolChunks() * sizeof(uint16));
	undo_pool = (UndoExtent *) p;

	if (found)
		return;

	tranche = LWLockNewTrancheId();
	LWLockRegisterTranche(tranche, "InplaceUndo");
	tranche_extend = LWLockNewTrancheId();
	LWLockRegisterTranche(tranche_extend, "InplaceUndoExtend");

	memset(undo_shared, 0, sizeof(UndoShared));
	LWLockInitialize(&undo_shared->directory.lock, tranche);
	LWLockInitialize(&undo_shared->workers_lock.lock, tranche);
	SpinLockInit(&undo_shared->pool_lock);
	undo_shared->nspaces = UNDO_MAX_SPACES;
	undo_shared->pool_chunks = UndoPoolChunks();
	undo_shared->pool_nfree = UndoPoolChunks();
	for (uint32 i = 0; i < UndoPoolChunks(); i++)
		undo_free_chunks[i] = UndoPoolChunks() - 1 - i;

	memset(undo_spaces, 0, UNDO_MAX_SPACES * UndoSpaceSize());
	for (int i = 0; i < UNDO_MAX_SPACES; i++)
	{
		UndoSpaceShmemInit(UndoSpaceAt(i), tranche);
		LWLockInitialize(&UndoSpaceAt(i)->extend_lock.lock, tranche_extend);
	}
	NoLockRegister(NO_LOCK_DIRECTORY, &undo_shared->directory.lock, 1,
				   sizeof(LWLockPadded));
	NoLockRegister(NO_LOCK_WORKERS, &undo_shared->workers_lock.lock, 1,
				   sizeof(LWLockPadded));
	NoLockRegister(NO_LOCK_SPACES, &UndoSpaceAt(0)->lock.lock, undo_shared->nspaces,
				   UndoSpaceSize());
	NoLockRegister(NO_LOCK_EXTEND, &UndoSpaceAt(0)->extend_lock.lock,
				   undo_shared->nspaces, UndoSpaceSize());
	for (uint32 i = 0; i < nextents; i++)
	{
		pg_atomic_init_u32(&undo_pool[i].state, EXT_FREE);
		pg_atomic_init_u32(&undo_pool[i].newest_xid, InvalidTransactionId);
		pg_atomic_init_u64(&undo_pool[i].begun, 0);
		pg_atomic_init_u64(&undo_pool[i].ended, 0);
		undo_pool[i].fill = 0;
		undo_pool[i].scanned = 0;
		undo_pool[i].images = false;
	}
}

/* ---------------- the map of a space ---------------- */

/*
 * One more chunk for the space, whose lock is held exclusively.
 */
static bool
UndoChunkAdd(UndoSpace *sp)
{
	int			chunk = -1;

	SpinLockAcquire(&undo_shared->pool_lock);
	if (undo_shared->pool_nfree > 0)
		chunk = undo_free_chunks[--undo_shared->pool_nfree];
	SpinLockRelease(&undo_shared->pool_lock);

	if (chunk < 0)
		return false;
	sp->chunks[sp->nchunks++] = chunk;
	return true;
}

static void
UndoChunksKeep(UndoSpace *sp, uint32 keep)
{
	SpinLockAcquire(&undo_shared->pool_lock);
	while (sp->nchunks > keep)
		undo_free_chunks[undo_shared->pool_nfree++] =
			sp->chunks[--sp->nchunks];
	SpinLockRelease(&undo_shared->pool_lock);
}

/*
 * Take the extents from "keep" up, which are all free, out of the map.  The
 * caller is the worker and holds the space's lock exclusively.  Returns the
 * new number of extents.
 */
uint32
UndoSpaceCut(UndoSpace *sp, uint32 keep)
{
	Assert(keep <= sp->nextents);
	Assert(LWLockHeldByMeInMode(&sp->lock.lock, LW_EXCLUSIVE));
	sp->nextents = keep;
	sp->first_free = Min(sp->first_free, keep);
	UndoChunksKeep(sp, (keep + UNDO_CHUNK_EXTENTS - 1) / UNDO_CHUNK_EXTENTS);
	return keep;
}

/* ---------------- the tail ---------------- */

uint32
UndoTailExtents(UndoSpace *sp)
{
	BlockNumber start = UndoExtentStart(sp->nextents);

	return sp->tail_end > start ?
		(sp->tail_end - start + UNDO_EXTENT_BLOCKS - 1) / UNDO_EXTENT_BLOCKS : 0;
}

/*
 * It has been given back.  With the lock held exclusively.
 */
void
UndoTailEnd(UndoSpace *sp)
{
	Assert(LWLockHeldByMeInMode(&sp->lock.lock, LW_EXCLUSIVE));
	sp->tail_end = 0;
}

/*
 * The least inplace.undo_extents with which all that there is now would have a
 * place, and something would be left.  Looks at the spaces without a lock.
 */
uint32
UndoExtentsWanted(void)
{
	uint32		chunks = 1;

	for (int i = 0; i < undo_shared->nspaces; i++)
	{
		UndoSpace  *sp = UndoSpaceAt(i);

		if (sp->in_use)
			chunks += sp->nchunks +
				(UndoTailExtents(sp) + UNDO_CHUNK_EXTENTS - 1) / UNDO_CHUNK_EXTENTS;
	}
	return chunks * UNDO_CHUNK_EXTENTS;
}

/* ---------------- making the map, and making it longer ---------------- */

/*
 * With nothing locked.
 */
void
UndoReportFull(UndoSpace *sp)
{
	uint32		tail = UndoTailExtents(sp);

	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("undo of inplace tables has reached the limit of %d extents (%d MB)",
					inplace_undo_extents,
					(int) ((int64) inplace_undo_extents *
						   UNDO_EXTENT_BLOCKS * BLCKSZ / (1024 * 1024))),
			 tail == 0 ? 0 :
			 errdetail("%u extents of this database are beyond it: they were written when the setting was larger, and have not been given back yet.",
					   tail),
			 tail == 0 ?
			 errhint("View inplace.undo_holders shows who holds undo back; \"inplace.undo_extents\" sets the limit.") :
			 errhint("View inplace.undo_holders shows who holds undo back.  Or set \"inplace.undo_extents\" to %u or more, and restart the server.",
					 UndoExtentsWanted())));
}

/*
 * How many chunks a file of nextents may have when its map is made.  If there are
 * not enough some are left for others.
 */
static uint32
UndoChunksToTake(uint32 nextents)
{
	uint32		want = (nextents + UNDO_CHUNK_EXTENTS - 1) / UNDO_CHUNK_EXTENTS;
	uint32		nfree;

	SpinLockAcquire(&undo_shared->pool_lock);
	nfree = undo_shared->pool_nfree;
	SpinLockRelease(&undo_shared->pool_lock);
	return want <= nfree ? want : nfree - nfree / 4;
}

/*
 * Make the map from the file: all of it may be needed by a snapshot taken up
 * to now, and may have aborted changes.  The lock is held exclusively.
 */
static void
UndoSpaceBuild(UndoSpace *sp, Relation undorel)
{
	BlockNumber nblocks;
	uint32		nextents;
	uint32		chunks;
	uint32		n;
	TransactionId newest = ReadNextTransactionId();

	Assert(!RecoveryInProgress());

	/* (a segment of a standby's time may be open that has been cut off since) */
	smgrrelease(RelationGetSmgr(undorel));
	if (sp->kind == UNDO_UNLOGGED)
		UndoRenewMetaPage(undorel);
	UndoCheckMetaPage(undorel);
	nblocks = smgrnblocks(RelationGetSmgr(undorel), MAIN_FORKNUM);
	nextents = (nblocks - 1 + UNDO_EXTENT_BLOCKS - 1) / UNDO_EXTENT_BLOCKS;
	TransactionIdRetreat(newest);

	/* left over if this was tried before, and failed */
	UndoChunksKeep(sp, 0);
	sp->nextents = 0;
	sp->tail_end = 0;
	chunks = UndoChunksToTake(nextents);
	for (n = 0; n < nextents; n++)
	{
		UndoExtent *ext;

		if (n % UNDO_CHUNK_EXTENTS == 0 &&
			(sp->nchunks == chunks || !UndoChunkAdd(sp)))
			break;
		ext = UndoExtentAt(sp, n);
		ext->fill = Min(UNDO_EXTENT_BLOCKS, nblocks - UndoExtentStart(n));
		ext->scanned = 0;
		ext->images = false;
		pg_atomic_write_u32(&ext->newest_xid, newest);
		pg_atomic_write_u64(&ext->begun, 0);
		pg_atomic_write_u64(&ext->ended, 0);
		pg_atomic_write_u32(&ext->state, EXT_FULL | EXT_NEEDS_SCAN | EXT_DIRTY);
	}
	sp->first_free = n;
	sp->nextents = n;
	if (n < nextents)
	{
		sp->tail_end = nblocks;
		sp->tail_scanned = UndoExtentStart(n);
		sp->tail_xid = newest;
	}
	sp->built = true;
}

/*
 * One more extent at the end of the map, with the lock held exclusively.  False if
 * there is no place for it.
 */
bool
UndoSpaceAddExtent(UndoSpace *sp)
{
	uint32		n = sp->nextents;
	UndoExtent *ext;

	if (sp->tail_end != 0 || UndoExtentStart(n + 1) < UndoExtentStart(n))
		return false;
	if (n == sp->nchunks * UNDO_CHUNK_EXTENTS && !UndoChunkAdd(sp))
		return false;

	/* the chunk may come from a space that was forgotten with all it had */
	ext = UndoExtentAt(sp, n);
	ext->fill = 0;
	ext->scanned = 0;
	ext->images = false;
	pg_atomic_write_u32(&ext->newest_xid, InvalidTransactionId);
	pg_atomic_write_u32(&ext->state, EXT_FREE);
	/* before the worker, which does without the lock, takes it for one */
	pg_write_barrier();
	sp->nextents = n + 1;
	return true;
}

/*
 * The number of extents, for the worker to look at them without the lock.
 */
uint32
UndoSpaceExtents(UndoSpace *sp)
{
	uint32		n = *(volatile uint32 *) &sp->nextents;

	/* the chunks after that */
	pg_read_barrier();
	return n;
}

/*
 * The lowest free extent, or nextents; with the lock held exclusively.
 */
uint32
UndoLowestFree(UndoSpace *sp)
{
	while (sp->first_free < sp->nextents &&
		   (pg_atomic_read_u32(&UndoExtentAt(sp, sp->first_free)->state) &
			EXT_STATE_MASK) != EXT_FREE)
		sp->first_free++;
	return sp->first_free;
}

/*
 * Is more than a quarter of the extent map free?  Without the lock: a hint.
 */
bool
UndoMapHasSpare(void)
{
	return (uint64) undo_shared->pool_nfree * 4 > UndoPoolChunks();
}

/*
 * The slot of the space with that storage, or a new one.
 */
static UndoSpace *
UndoSpaceFind(const RelFileLocator *locator, UndoKind kind)
{
	UndoSpace  *free_slot = NULL;
	UndoSpace  *idle_slot = NULL;

	/* the first look needs no more than a shared lock */
	LWLockAcquire(&undo_shared->directory.lock, LW_SHARED);
	for (int i = 0; i < undo_shared->nspaces; i++)
	{
		UndoSpace  *sp = UndoSpaceAt(i);

		if (sp->in_use && RelFileLocatorEquals(sp->locator, *locator))
		{
			LWLockRelease(&undo_shared->directory.lock);
			return sp;
		}
	}
	LWLockRelease(&undo_shared->directory.lock);

	LWLockAcquire(&undo_shared->directory.lock, LW_EXCLUSIVE);
	for (int i = 0; i < undo_shared->nspaces; i++)
	{
		UndoSpace  *sp = UndoSpaceAt(i);

		if (!sp->in_use)
			free_slot = free_slot ? free_slot : sp;
		else if (RelFileLocatorEquals(sp->locator, *locator))
		{
			LWLockRelease(&undo_shared->directory.lock);
			return sp;
		}
		else if (sp->built && UndoSpaceIsEmpty(sp) && !UndoSpaceHasWorker(sp))
			idle_slot = idle_slot ? idle_slot : sp;
	}
	if (free_slot == NULL)
		free_slot = idle_slot;
	if (free_slot != NULL)
	{
		UndoSpace  *sp = free_slot;

		LWLockAcquire(&sp->lock.lock, LW_EXCLUSIVE);
		if (!sp->in_use || (UndoSpaceIsEmpty(sp) && !UndoSpaceHasWorker(sp)))
		{
			/* before the locator, for UndoStandbysKnow */
			pg_atomic_write_u32(&sp->discarded_xid, InvalidTransactionId);
			pg_write_barrier();
			sp->in_use = true;
			sp->built = false;
			sp->kind = kind;
			sp->locator = *locator;
			sp->nextents = 0;
			sp->first_free = 0;
			sp->tail_end = 0;
			sp->horizon = InvalidTransactionId;
			/* what it knew was of other undo, maybe another database's */
			pg_atomic_write_u32(&sp->launcher_knows, 0);
			pg_atomic_write_u32(&sp->retreat, PG_UINT32_MAX);
			pg_atomic_write_u64(&sp->rows_restored, 0);
		}
		else
			free_slot = NULL;
		LWLockRelease(&sp->lock.lock);
	}
	LWLockRelease(&undo_shared->directory.lock);

	if (free_slot == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many databases have undo of inplace tables at the same time")));
	return free_slot;
}

/*
 * The space of a kind in this database, locked, and its map made if need be.
 */
UndoSpace *
UndoSpaceLock(UndoKind kind, LWLockMode mode)
{
	Relation	undorel = UndoRelGet(kind, false);
	LWLockMode	try_mode = mode;

	for (;;)
	{
		UndoSpace  *sp = my_spaces[kind];

		if (sp == NULL)
			sp = my_spaces[kind] = UndoSpaceFind(&RelLocator(undorel), kind);

		LWLockAcquire(&sp->lock.lock, try_mode);
		if (!sp->in_use ||
			!RelFileLocatorEquals(sp->locator, RelLocator(undorel)))
		{
			/* the slot went to another space */
			LWLockRelease(&sp->lock.lock);
			my_spaces[kind] = NULL;
			continue;
		}
		if (!sp->built && try_mode == LW_EXCLUSIVE)
			UndoSpaceBuild(sp, undorel);
		if (sp->built && try_mode == mode)
			return sp;
		LWLockRelease(&sp->lock.lock);
		try_mode = sp->built ? mode : LW_EXCLUSIVE;
	}
}

void
UndoSpaceUnlock(UndoSpace *sp)
{
	LWLockRelease(&sp->lock.lock);
}

/*
 * Give up the slots of a database, except those of the storages in keep, and
 * except such that an open transaction still has an extent of, or another
 * process as its worker.
 */
void
UndoSpacesForget(Oid dboid, const RelFileLocator *keep, int nkeep)
{
	int			ours = 0;

	/* nothing to do, most of the time */
	LWLockAcquire(&undo_shared->directory.lock, LW_SHARED);
	for (int i = 0; i < undo_shared->nspaces; i++)
		if (UndoSpaceAt(i)->in_use &&
			LocatorDb(UndoSpaceAt(i)->locator) == dboid)
			ours++;
	LWLockRelease(&undo_shared->directory.lock);
	if (ours <= nkeep)
		return;

	LWLockAcquire(&undo_shared->directory.lock, LW_EXCLUSIVE);
	for (int i = 0; i < undo_shared->nspaces; i++)
	{
		UndoSpace  *sp = UndoSpaceAt(i);
		bool		wanted = false;
		uint32		worker;

		if (!sp->in_use || LocatorDb(sp->locator) != dboid)
			continue;
		for (int k = 0; k < nkeep; k++)
			if (RelFileLocatorEquals(sp->locator, keep[k]))
				wanted = true;
		if (wanted)
			continue;

		LWLockAcquire(&sp->lock.lock, LW_EXCLUSIVE);
		worker = pg_atomic_read_u32(&sp->worker_pid);
		if (worker != 0 && worker != (uint32) MyProcPid)
			wanted = true;
		for (uint32 n = 0; n < sp->nextents && !wanted; n++)
			if ((pg_atomic_read_u32(&UndoExtentAt(sp, n)->state) &
				 EXT_STATE_MASK) == EXT_OWNED)
				wanted = true;
		if (!wanted)
		{
			UndoTailEnd(sp);
			UndoSpaceCut(sp, 0);
			sp->built = false;
			sp->in_use = false;
			pg_atomic_write_u32(&sp->worker_pid, 0);
		}
		LWLockRelease(&sp->lock.lock);
	}
	LWLockRelease(&undo_shared->directory.lock);
}

/* ---------------- of extents and relations ---------------- */

/*
 * Raise newest_xid.  The owner and the worker may do so at the same time.
 */
void
UndoExtentAdvanceXid(UndoExtent *ext, TransactionId xid)
{
	uint32		old = pg_atomic_read_u32(&ext->newest_xid);

	while (old != xid && TransactionIdPrecedes(old, xid))
		if (pg_atomic_compare_exchange_u32(&ext->newest_xid, &old, xid))
			break;
}

UndoKind
UndoKindOf(Relation rel)
{
	switch (rel->rd_rel->relpersistence)
	{
		case RELPERSISTENCE_TEMP:
			return UNDO_TEMP;
		case RELPERSISTENCE_UNLOGGED:
			return UNDO_UNLOGGED;
		default:
			return UNDO_LOGGED;
	}
}

/* ---------------- reading ---------------- */

/*
 * The page of ptr, if its extent is in use.  The lock is held until the page
 * is pinned: the worker makes an extent free, or cuts it off, only with the
 * lock, and truncation waits for pins.
 */
static Buffer
UndoReadIfInUse(UndoKind kind, Relation undorel, BlockNumber block)
{
	UndoSpace  *sp = UndoSpaceLock(kind, LW_SHARED);
	uint32		n = (block - 1) / UNDO_EXTENT_BLOCKS;
	Buffer		buffer = InvalidBuffer;

	if (n < sp->nextents)
	{
		UndoExtent *ext = UndoExtentAt(sp, n);

		if ((pg_atomic_read_u32(&ext->state) & EXT_STATE_MASK) != EXT_FREE &&
			block - UndoExtentStart(n) < ext->fill)
			buffer = ReadBuffer(undorel, block);
	}
	else if (block < sp->tail_end)
		buffer = ReadBuffer(undorel, block);
	UndoSpaceUnlock(sp);
	return buffer;
}

Buffer
UndoReadBuffer(Relation rel, UndoPtr ptr, bool missing_ok)
{
	UndoKind	kind = UndoKindOf(rel);
	BlockNumber block = UndoPtrBlock(ptr);
	Relation	undorel;

	if (kind == UNDO_TEMP)
		return UndoTempReadBuffer(ptr, missing_ok);

	undorel = UndoRelGet(kind, false);
	if (!missing_ok)
	{
		/* (the file may have become longer, or shorter, since it was asked) */
		if (unlikely(block >= known_blocks[kind]))
		{
			known_blocks[kind] = smgrnblocks(RelationGetSmgr(undorel),
											 MAIN_FORKNUM);
			if (block >= known_blocks[kind])
				return InvalidBuffer;
		}
		return ReadBuffer(undorel, block);
	}
	if (block == UNDO_META_BLOCK)
		return InvalidBuffer;
	if (!RecoveryInProgress())
		return UndoReadIfInUse(kind, undorel, block);

	/* a standby has no map */
	return UndoReadOnStandby(undorel, block);
}

/*
 * Is it in the WAL already that every snapshot must see xid as finished?  Then
 * a standby has no snapshot that needs a version older than xid's, whatever
 * feedback it gives.  Looks at the map without a lock: if the slot went to
 * another database, then so has the locator by the time we look again.
 */
bool
UndoStandbysKnow(Relation rel, TransactionId xid)
{
	UndoSpace  *sp;
	Relation	undorel;
	TransactionId discarded;

	if (UndoKindOf(rel) != UNDO_LOGGED || !XLogStandbyInfoActive())
		return true;

	undorel = UndoRelGet(UNDO_LOGGED, false);
	sp = my_spaces[UNDO_LOGGED];
	if (sp == NULL)
	{
		sp = UndoSpaceLock(UNDO_LOGGED, LW_SHARED);
		UndoSpaceUnlock(sp);
	}
	discarded = pg_atomic_read_u32(&sp->discarded_xid);
	pg_read_barrier();
	return TransactionIdIsValid(discarded) &&
		TransactionIdPrecedesOrEquals(xid, discarded) &&
		RelFileLocatorEquals(sp->locator, RelLocator(undorel));
}

/*
 * A discard record has told standbys of xid.
 */
void
UndoNoteDiscarded(UndoSpace *sp, TransactionId xid)
{
	uint32		old = pg_atomic_read_u32(&sp->discarded_xid);

	while (!TransactionIdIsValid(old) || TransactionIdPrecedes(old, xid))
		if (pg_atomic_compare_exchange_u32(&sp->discarded_xid, &old, xid))
			break;
}

/*
 * Before it is so old that xids of now would seem to be older.  By the worker, now
 * and then.
 */
void
UndoForgetDiscarded(UndoSpace *sp)
{
	uint32		xid = pg_atomic_read_u32(&sp->discarded_xid);

	if (TransactionIdIsValid(xid) &&
		ReadNextTransactionId() - xid > MaxTransactionId / 4)
		(void) pg_atomic_compare_exchange_u32(&sp->discarded_xid, &xid,
											  InvalidTransactionId);
}

void
UndoTellStandbys(Relation rel, TransactionId xid, bool all_ended)
{
	if (!TransactionIdIsNormal(xid) || UndoStandbysKnow(rel, xid))
		return;
	inplace_log_discard(MyDatabaseId, xid);
	if (!all_ended)
		return;
	/* a space with undo in it keeps its slot */
	if (RelFileLocatorEquals(my_spaces[UNDO_LOGGED]->locator,
							 RelLocator(UndoRelGet(UNDO_LOGGED, false))))
		UndoNoteDiscarded(my_spaces[UNDO_LOGGED], xid);
}

int64
UndoSizeBytes(void)
{
	int64		size = UndoTempSizeBytes();

	for (int kind = 0; kind < UNDO_SHARED_KINDS; kind++)
	{
		Relation	undorel = UndoRelGet(kind, true);

		/* an unlogged relation has no main fork on a standby */
		if (undorel != NULL &&
			!(kind == UNDO_UNLOGGED && RecoveryInProgress()))
			size += (int64) smgrnblocks(RelationGetSmgr(undorel),
										MAIN_FORKNUM) * BLCKSZ;
	}
	return size;
}

/*-------------------------------------------------------------------------
 *
 * space.c
 *	  Shared memory of undo: which extents of which database's undo are in
 *	  use, and what for.  Writing and reading undo pages.
 *
 * Spaces and extents
 *	  A space is the undo of one kind in one database, known by the storage of
 *	  its undo relation.  Its map of extents is made of chunks out of a pool
 *	  whose size is inplace.undo_extents.  What is in shared memory is lost
 *	  with the server; the first to use a space then makes the map from the
 *	  size of the file, in the most cautious way: everything is in use, by the
 *	  newest xid, and has to be scanned for aborted changes.  So forgetting
 *	  a space that no open transaction has an extent of is always allowed, and
 *	  costs only time.
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
 *	  2. Whoever aborts (a transaction or a subtransaction) sets NEEDS_SCAN and
 *		 DIRTY on all extents of the transaction; so does who prepares one.
 *		 That is all that undo does at an abort: no lock, no buffer, no
 *		 memory is asked for, so it cannot fail.
 *	  3. newest_xid never goes back, except when a free extent is taken.
 *	  4. "fill" is set by the owner, with the page that it counts locked.  A
 *		 page below it has been initialised since the extent was taken.
 *	  5. Only the database's worker makes a space smaller (nextents, and the
 *		 chunks with it), with the lock held exclusively; a space that has a
 *		 worker, or extents, is not given to another database.  So the worker
 *		 looks at the map without a lock, and an owner at its own extent.
 *	  6. NEEDS_SCAN is also set when a lock is recorded on top of a change
 *		 that is still in progress: if that is rolled back, the way to it goes
 *		 through the lock's record.
 *
 * The file
 *	  It is made longer, by an extent at a time, by whoever takes the first
 *	  page of an extent, and cut off by the worker (shrink.c); both hold
 *	  extend_lock.
 *	  The worker first takes the extents out of the map, so nobody needs to
 *	  wait for the truncation but those who have to extend.
 *
 * The pin
 *	  A transaction keeps the page that it writes to pinned until it ends, for
 *	  each of its rows needs it again.  The page is of an extent that it owns,
 *	  so nobody wants to drop it from the buffers.
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

#include "undo/space.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "wal/wal.h"

#define InvalidExtent PG_UINT32_MAX

/* an extent that the open transaction has written to */
typedef struct OwnedExtent
{
	UndoSpace  *space;
	UndoExtent *ext;
	uint32		number;
} OwnedExtent;

/* where this backend appends */
typedef struct UndoWriter
{
	int			cur;			/* index in owned, or -1 */
	UndoSpace  *last_space;		/* the extent that the last transaction ... */
	uint32		last;			/* ... ended in */
	Buffer		recent_buffer;	/* a guess where the current page is */
	BlockNumber recent_block;
	bool		pinned;			/* more than a guess: recent_buffer is pinned,
								 * until the transaction ends */
} UndoWriter;

UndoShared *undo_shared = NULL;
static UndoExtent *undo_pool = NULL;
static uint16 *undo_free_chunks = NULL;
static char *undo_spaces = NULL;

static UndoSpace *my_spaces[UNDO_SHARED_KINDS];
static UndoWriter writers[UNDO_SHARED_KINDS] = {
	{-1, NULL, 0, InvalidBuffer, InvalidBlockNumber, false},
	{-1, NULL, 0, InvalidBuffer, InvalidBlockNumber, false}
};

static OwnedExtent *owned = NULL;
static int	nowned = 0;
static int	max_owned = 0;
static int	nflagged = 0;		/* owned[0 .. nflagged) have NEEDS_SCAN */

/* deepest subtransaction that may have written since it was looked at */
static int	written_level = 0;

/* how long the files were, so that a pointer past the end is found out */
static BlockNumber known_blocks[UNDO_SHARED_KINDS];

static UndoInsert *prepared = NULL; /* between UndoPrepare and UndoRelease */
static UndoWriter *prepared_writer = NULL;

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

static int
UndoNumSpaces(void)
{
	return Min(UNDO_MAX_SPACES, UndoPoolChunks());
}

Size
UndoShmemSize(void)
{
	Size		size = CACHELINEALIGN(sizeof(UndoShared));

	size = add_size(size, mul_size(UndoNumSpaces(), UndoSpaceSize()));
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

UndoExtent *
UndoExtentAt(UndoSpace *sp, uint32 n)
{
	return &undo_pool[(uint32) sp->chunks[n / UNDO_CHUNK_EXTENTS] *
					  UNDO_CHUNK_EXTENTS + n % UNDO_CHUNK_EXTENTS];
}

static void
UndoSpaceShmemInit(UndoSpace *sp, int tranche)
{
	LWLockInitialize(&sp->lock.lock, tranche);
	LWLockInitialize(&sp->extend_lock.lock, tranche + 1);
	sp->in_use = false;
	pg_atomic_init_u32(&sp->discarded_xid, InvalidTransactionId);
	pg_atomic_init_u32(&sp->retreat, PG_UINT32_MAX);
	pg_atomic_init_u32(&sp->taken, 0);
	pg_atomic_init_u64(&sp->limit_reported, 0);
	pg_atomic_init_u64(&sp->rows_restored, 0);
	for (int i = 0; i < UNDO_RECENT; i++)
		pg_atomic_init_u32(&sp->recent[i], PG_UINT32_MAX);
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
	p += UndoNumSpaces() * UndoSpaceSize();
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
	undo_shared->nspaces = UndoNumSpaces();
	undo_shared->pool_chunks = UndoPoolChunks();
	undo_shared->pool_nfree = UndoPoolChunks();
	for (uint32 i = 0; i < UndoPoolChunks(); i++)
		undo_free_chunks[i] = UndoPoolChunks() - 1 - i;

	memset(undo_spaces, 0, UndoNumSpaces() * UndoSpaceSize());
	for (int i = 0; i < UndoNumSpaces(); i++)
	{
		UndoSpaceShmemInit(UndoSpaceAt(i), tranche);
		LWLockInitialize(&UndoSpaceAt(i)->extend_lock.lock, tranche_extend);
	}
	for (uint32 i = 0; i < nextents; i++)
	{
		pg_atomic_init_u32(&undo_pool[i].state, EXT_FREE);
		pg_atomic_init_u32(&undo_pool[i].newest_xid, InvalidTransactionId);
		undo_pool[i].fill = 0;
		undo_pool[i].scanned = 0;
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
	sp->nextents = keep;
	sp->first_free = Min(sp->first_free, keep);
	UndoChunksKeep(sp, (keep + UNDO_CHUNK_EXTENTS - 1) / UNDO_CHUNK_EXTENTS);
	return keep;
}

static void
UndoReportFull(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("undo of inplace tables has reached the limit of %d extents (%d MB)",
					inplace_undo_extents,
					(int) ((int64) inplace_undo_extents *
						   UNDO_EXTENT_BLOCKS * BLCKSZ / (1024 * 1024))),
			 errhint("View inplace.undo_holders shows who holds undo back; \"inplace.undo_extents\" sets the limit.")));
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
	TransactionId newest = ReadNextTransactionId();

	Assert(!RecoveryInProgress());

	UndoCheckMetaPage(undorel);
	nblocks = smgrnblocks(RelationGetSmgr(undorel), MAIN_FORKNUM);
	nextents = (nblocks - 1 + UNDO_EXTENT_BLOCKS - 1) / UNDO_EXTENT_BLOCKS;
	TransactionIdRetreat(newest);

	/* left over if this was tried before, and failed */
	UndoChunksKeep(sp, 0);
	sp->nextents = 0;
	for (uint32 n = 0; n < nextents; n++)
	{
		UndoExtent *ext;

		if (n % UNDO_CHUNK_EXTENTS == 0 && !UndoChunkAdd(sp))
			UndoReportFull();
		ext = UndoExtentAt(sp, n);
		ext->fill = Min(UNDO_EXTENT_BLOCKS, nblocks - UndoExtentStart(n));
		ext->scanned = 0;
		pg_atomic_write_u32(&ext->newest_xid, newest);
		pg_atomic_write_u32(&ext->state, EXT_FULL | EXT_NEEDS_SCAN | EXT_DIRTY);
	}
	sp->first_free = nextents;
	sp->nextents = nextents;
	sp->built = true;
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
		else if (sp->built && sp->nextents == 0 && sp->worker_pid == 0)
			idle_slot = idle_slot ? idle_slot : sp;
	}
	if (free_slot == NULL)
		free_slot = idle_slot;
	if (free_slot != NULL)
	{
		UndoSpace  *sp = free_slot;

		LWLockAcquire(&sp->lock.lock, LW_EXCLUSIVE);
		if (!sp->in_use || (sp->nextents == 0 && sp->worker_pid == 0))
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
			sp->worker_pid = 0;
			sp->horizon = InvalidTransactionId;
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
				 errmsg("too many databases have undo of inplace tables at the same time"),
				 errhint("Increase \"inplace.undo_extents\".")));
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
			/* the slot went to somebody else */
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
 * except such that an open transaction still has an extent of.
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

		if (!sp->in_use || LocatorDb(sp->locator) != dboid)
			continue;
		for (int k = 0; k < nkeep; k++)
			if (RelFileLocatorEquals(sp->locator, keep[k]))
				wanted = true;
		if (wanted)
			continue;

		LWLockAcquire(&sp->lock.lock, LW_EXCLUSIVE);
		for (uint32 n = 0; n < sp->nextents && !wanted; n++)
			if ((pg_atomic_read_u32(&UndoExtentAt(sp, n)->state) &
				 EXT_STATE_MASK) == EXT_OWNED)
				wanted = true;
		if (!wanted)
		{
			UndoSpaceCut(sp, 0);
			sp->built = false;
			sp->in_use = false;
			sp->worker_pid = 0;
		}
		LWLockRelease(&sp->lock.lock);
	}
	LWLockRelease(&undo_shared->directory.lock);
}

/* ---------------- taking extents, and handing them back ---------------- */

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

/*
 * Own extent n if it is partial and below limit.  The space's lock is held,
 * shared will do.
 */
static bool
UndoTryPartial(UndoSpace *sp, uint32 n, uint32 limit)
{
	UndoExtent *ext;
	uint32		state;

	if (n >= Min(sp->nextents, limit))
		return false;
	ext = UndoExtentAt(sp, n);
	state = pg_atomic_read_u32(&ext->state);
	while ((state & EXT_STATE_MASK) == EXT_PARTIAL)
	{
		if (pg_atomic_compare_exchange_u32(&ext->state, &state,
										   (state & ~EXT_STATE_MASK) | EXT_OWNED))
			return true;
	}
	return false;
}

static bool
UndoFindPartial(UndoSpace *sp, UndoWriter *w, uint32 limit, uint32 *number)
{
	if (w->last_space == sp && UndoTryPartial(sp, w->last, limit))
	{
		*number = w->last;
		return true;
	}
	for (int i = 0; i < UNDO_RECENT; i++)
	{
		uint32		n = pg_atomic_read_u32(&sp->recent[(MyProcPid + i) % UNDO_RECENT]);

		if (UndoTryPartial(sp, n, limit))
		{
			*number = n;
			return true;
		}
	}
	return false;
}

/*
 * The lowest free extent, or nextents; with the lock held exclusively.
 */
static uint32
UndoLowestFree(UndoSpace *sp)
{
	while (sp->first_free < sp->nextents &&
		   (pg_atomic_read_u32(&UndoExtentAt(sp, sp->first_free)->state) &
			EXT_STATE_MASK) != EXT_FREE)
		sp->first_free++;
	return sp->first_free;
}

/*
 * Own a free extent, or a new one; with the lock held exclusively.
 */
static void
UndoTakeFree(UndoSpace *sp, uint32 n)
{
	UndoExtent *ext;

	if (n == sp->nextents)
	{
		if (UndoExtentStart(n + 1) < UndoExtentStart(n))
			UndoReportFull();
		if (n == sp->nchunks * UNDO_CHUNK_EXTENTS && !UndoChunkAdd(sp))
			UndoReportFull();
		sp->nextents++;
	}
	sp->first_free = n + 1;

	ext = UndoExtentAt(sp, n);
	ext->fill = 0;
	ext->scanned = 0;
	pg_atomic_write_u32(&ext->newest_xid, InvalidTransactionId);
	pg_atomic_write_u32(&ext->state, EXT_OWNED);
	pg_atomic_fetch_add_u32(&sp->taken, 1);
}

/*
 * With the lock held exclusively: an extent, in any case but that of a limit
 * that has been reached (InvalidExtent).  Extents from "retreat" up are left
 * alone only as long as there are free ones below.
 */
static uint32
UndoTakeAny(UndoSpace *sp, UndoWriter *w, bool limited)
{
	uint32		lowest = UndoLowestFree(sp);
	bool		allowed = !limited || UndoLimitAllows(lowest);
	uint32		n;

	if ((!allowed || lowest >= pg_atomic_read_u32(&sp->retreat)) &&
		UndoFindPartial(sp, w, PG_UINT32_MAX, &n))
		return n;
	if (!allowed)
		return InvalidExtent;
	UndoTakeFree(sp, lowest);
	return lowest;
}

/*
 * Make room in owned, so that nothing can fail once an extent is taken.
 */
static void
UndoReserveOwned(void)
{
	if (nowned < max_owned)
		return;
	if (owned == NULL)
		owned = MemoryContextAlloc(TopMemoryContext, 16 * sizeof(OwnedExtent));
	else
		owned = repalloc_huge(owned, (Size) max_owned * 2 * sizeof(OwnedExtent));
	max_owned = max_owned ? max_owned * 2 : 16;
}

/*
 * Let go of the page that is kept pinned.  It may be locked only if the caller
 * unlocks it first.
 */
static void
UndoUnpinPage(UndoWriter *w)
{
	ResourceOwner save = CurrentResourceOwner;

	if (!w->pinned)
		return;
	w->pinned = false;
	CurrentResourceOwner = TopTransactionResourceOwner;
	ReleaseBuffer(w->recent_buffer);
	CurrentResourceOwner = save;
}

static void
UndoTakeExtent(UndoKind kind, bool limited)
{
	UndoWriter *w = &writers[kind];
	UndoSpace  *sp;
	uint32		n;

	UndoReserveOwned();
	UndoUnpinPage(w);

	sp = UndoSpaceLock(kind, LW_SHARED);
	if (!UndoFindPartial(sp, w, pg_atomic_read_u32(&sp->retreat), &n))
	{
		UndoSpaceUnlock(sp);
		sp = UndoSpaceLock(kind, LW_EXCLUSIVE);
		n = UndoTakeAny(sp, w, limited);
		if (n == InvalidExtent)
		{
			UndoSpaceUnlock(sp);
			UndoReportLimit(sp);
		}
	}
	owned[nowned].space = sp;
	owned[nowned].ext = UndoExtentAt(sp, n);
	owned[nowned].number = n;
	w->cur = nowned++;
	UndoSpaceUnlock(sp);

	/*
	 * A worker that leaves sets worker_pid to 0 and only then looks for
	 * extents a last time; what made the extent ours was a full barrier.
	 */
	if (sp->worker_pid == 0)
		UndoWorkerWakeup();
}

/*
 * The open transaction has aborted changes in what it has written so far.
 * Extents stay flagged while they are owned, so each is visited once.
 */
static void
UndoFlagOwned(void)
{
	for (; nflagged < nowned; nflagged++)
		pg_atomic_fetch_or_u32(&owned[nflagged].ext->state,
							   EXT_NEEDS_SCAN | EXT_DIRTY);
}

/*
 * End of the transaction: let go of all extents.  No locks, nothing that can
 * fail.
 */
static void
UndoHandBack(bool needs_scan)
{
	if (nowned > 0)
	{
		if (needs_scan)
			UndoFlagOwned();
		for (int i = 0; i < UNDO_SHARED_KINDS; i++)
			writers[i].last_space = writers[i].cur >= 0 ?
				owned[writers[i].cur].space : writers[i].last_space;
		for (int i = 0; i < nowned; i++)
		{
			OwnedExtent *o = &owned[i];
			bool		current = (writers[0].cur == i || writers[1].cur == i);
			uint32		new_state = current ? EXT_PARTIAL : EXT_FULL;
			uint32		state = pg_atomic_read_u32(&o->ext->state);

			if (current)
			{
				writers[o->space->kind].last = o->number;
				pg_atomic_write_u32(&o->space->recent[o->number % UNDO_RECENT],
									o->number);
			}
			while (!pg_atomic_compare_exchange_u32(&o->ext->state, &state,
												   (state & ~EXT_STATE_MASK) | new_state))
				;
		}
	}
	for (int i = 0; i < UNDO_SHARED_KINDS; i++)
	{
		UndoUnpinPage(&writers[i]);
		writers[i].cur = -1;
	}
	nowned = 0;
	nflagged = 0;
	written_level = 0;
	prepared = NULL;
}

/* ---------------- transaction callbacks ---------------- */

static void
UndoXactCallback(XactEvent event, void *arg)
{
	if (undo_shared == NULL)
		return;

	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			UndoTempPreCommit();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
			UndoTempAtCommit();
			UndoHandBack(false);
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
		case XACT_EVENT_PREPARE:
			/* a prepared transaction may yet be rolled back */
			UndoTempAtAbort();
			UndoHandBack(true);
			break;
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			break;
	}
}

static void
UndoSubXactCallback(SubXactEvent event, SubTransactionId mySubid,
					SubTransactionId parentSubid, void *arg)
{
	int			level;

	if (undo_shared == NULL)
		return;

	level = GetCurrentTransactionNestLevel();
	if (event == SUBXACT_EVENT_COMMIT_SUB)
	{
		UndoTempSubCommit(level);
		written_level = Min(written_level, level - 1);
	}
	else if (event == SUBXACT_EVENT_ABORT_SUB)
	{
		UndoTempSubAbort(level);
		if (written_level >= level)
			UndoFlagOwned();
		written_level = Min(written_level, level - 1);
		prepared = NULL;
	}
}

/*
 * Once, by the postmaster: its children inherit them.
 */
void
UndoRegisterCallbacks(void)
{
	RegisterXactCallback(UndoXactCallback, NULL);
	RegisterSubXactCallback(UndoSubXactCallback, NULL);
}

/* ---------------- writing ---------------- */

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

/*
 * The file must reach to the end of extent n.
 */
static void
UndoExtendFile(UndoSpace *sp, Relation undorel, uint32 n)
{
	BlockNumber want = UndoExtentStart(n + 1);
	BlockNumber nblocks;

	LWLockAcquire(&sp->extend_lock.lock, LW_EXCLUSIVE);
	nblocks = smgrnblocks(RelationGetSmgr(undorel), MAIN_FORKNUM);
	if (nblocks < want)
		ZeroExtend(RelationGetSmgr(undorel), MAIN_FORKNUM, nblocks,
				   want - nblocks);
	LWLockRelease(&sp->extend_lock.lock);
}

/*
 * Pin the page, or with init begin it anew (then it is locked as well).  The
 * pin is kept for the next records, so it belongs to the transaction, not to
 * the command or subtransaction.
 */
static Buffer
UndoPinPage(UndoWriter *w, Relation undorel, BlockNumber block, bool init)
{
	ResourceOwner save = CurrentResourceOwner;

	Assert(!w->pinned);
	CurrentResourceOwner = TopTransactionResourceOwner;
	if (init)
		w->recent_buffer = ReadBufferExtended(undorel, MAIN_FORKNUM, block,
											  RBM_ZERO_AND_LOCK, NULL);
	else if (w->recent_block != block || !BufferIsValid(w->recent_buffer) ||
			 !ReadRecentBuffer(RelLocator(undorel), MAIN_FORKNUM, block,
							   w->recent_buffer))
		w->recent_buffer = ReadBuffer(undorel, block);
	w->recent_block = block;
	w->pinned = true;
	CurrentResourceOwner = save;
	return w->recent_buffer;
}

/*
 * Pin and lock the page of the current extent that has room for len bytes;
 * InvalidBuffer if none has.
 */
static Buffer
UndoFindRoom(UndoWriter *w, Relation undorel, Size len, UndoInsert *ui)
{
	OwnedExtent *o = &owned[w->cur];
	BlockNumber block;
	Buffer		buffer;
	PageHeader	ph;

	if (o->ext->fill > 0)
	{
		block = UndoExtentStart(o->number) + o->ext->fill - 1;
		if (w->pinned && w->recent_block == block)
			buffer = w->recent_buffer;
		else
		{
			UndoUnpinPage(w);
			buffer = UndoPinPage(w, undorel, block, false);
		}
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		ph = (PageHeader) BufferGetPage(buffer);
		if (PageIsNew((Page) ph) || ph->pd_lower < SizeOfPageHeaderData ||
			ph->pd_lower > ph->pd_special || ph->pd_special > BLCKSZ)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("block %u of relation \"%s.%s\" is not a page of undo",
							block, INPLACE_SCHEMA,
							RelationGetRelationName(undorel))));
		if (ph->pd_special - ph->pd_lower >= len)
		{
			ui->ptr = UndoPtrMake(block, ph->pd_lower);
			ui->init = false;
			return buffer;
		}
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}

	if (o->ext->fill >= UNDO_EXTENT_BLOCKS)
		return InvalidBuffer;
	if (o->ext->fill == 0)
		UndoExtendFile(o->space, undorel, o->number);
	block = UndoExtentStart(o->number) + o->ext->fill;
	UndoUnpinPage(w);
	buffer = UndoPinPage(w, undorel, block, true);
	ui->ptr = UndoPtrMake(block, SizeOfPageHeaderData);
	ui->init = true;
	return buffer;
}

/*
 * Among the records written, is there a lock put on a change that may be
 * rolled back without us?  Restoring that row goes through the lock's record.
 * Called in a critical section: no commit log here, so a change that has just
 * committed, with no hint of it, counts too.
 */
static bool
UndoLocksOpenChange(const char *rec, Size len)
{
	const char *end = rec + len;

	while (rec < end)
	{
		UndoRecordHeader hdr;
		InplaceTupleHeaderData old;

		memcpy(&hdr, rec, SizeOfUndoRecordHeader);
		if (hdr.ur_type == UNDO_LOCK && !(hdr.ur_flags & UR_RELATIVE_HEADER))
		{
			memcpy(&old, rec + SizeOfUndoRecordHeader, SizeOfInplaceTupleHeader);
			if (!(old.t_infomask & (IP_COMMITTED | IP_FROZEN)) &&
				!TransactionIdPrecedes(old.t_xid, TransactionXmin) &&
				!TransactionIdIsCurrentTransactionId(old.t_xid))
				return true;
		}
		Assert(hdr.ur_len >= SizeOfUndoRecordHeader);
		rec += hdr.ur_len;
	}
	return false;
}

static void
UndoPrepareInternal(Relation rel, Size len, TransactionId newest_xid,
					UndoInsert *ui, bool limited)
{
	UndoKind	kind = UndoKindOf(rel);
	UndoWriter *w;
	Relation	undorel;
	TransactionId xid;

	Assert(len <= UNDO_MAX_RECORD);
	ui->by_name = false;
	ui->from_page = false;

	if (kind == UNDO_TEMP)
	{
		UndoTempPrepare(rel, len, ui);
		return;
	}

	xid = GetCurrentTransactionId();
	written_level = Max(written_level, GetCurrentTransactionNestLevel());
	w = &writers[kind];
	undorel = UndoRelGet(kind, false);

	/* the second is for who drops and creates the extension while writing */
	if (w->cur < 0 ||
		!RelFileLocatorEquals(owned[w->cur].space->locator, RelLocator(undorel)))
		UndoTakeExtent(kind, limited);
	for (;;)
	{
		ui->buffer = UndoFindRoom(w, undorel, len, ui);
		if (BufferIsValid(ui->buffer))
			break;
		/* the one that is full stays ours until the transaction ends */
		UndoTakeExtent(kind, limited);
	}
	UndoExtentAdvanceXid(owned[w->cur].ext, xid);
	if (TransactionIdIsNormal(newest_xid))
		UndoExtentAdvanceXid(owned[w->cur].ext, newest_xid);
	ui->needs_wal = (kind == UNDO_LOGGED);
	prepared = ui;
	prepared_writer = w;
}

void
UndoPrepare(Relation rel, Size len, TransactionId newest_xid, UndoInsert *ui)
{
	UndoPrepareInternal(rel, len, newest_xid, ui, true);
}

/*
 * For the rollback of a row: it is what makes room again, and readers do it
 * too, so inplace.undo_limit is not for it.
 */
void
UndoPrepareRestore(Relation rel, Size len, TransactionId newest_xid,
				   UndoInsert *ui)
{
	UndoPrepareInternal(rel, len, newest_xid, ui, false);
}

void
UndoAppend(UndoInsert *ui, const char *rec, Size len)
{
	Page		page = BufferGetPage(ui->buffer);

	if (ui->init)
		UndoPageInit(page);
	UndoPagePut(page, UndoPtrOffset(ui->ptr), rec, len);
	MarkBufferDirty(ui->buffer);

	if (BufferIsLocal(ui->buffer))
		UndoTempAppended(ui);
	else
	{
		UndoExtent *ext = owned[prepared_writer->cur].ext;

		Assert(prepared == ui);
		if (ui->init)
			ext->fill++;
		if (UndoLocksOpenChange(rec, len))
			pg_atomic_fetch_or_u32(&ext->state, EXT_NEEDS_SCAN | EXT_DIRTY);
	}
}

void
UndoRegister(UndoInsert *ui, uint8 block_id)
{
	if (ui->needs_wal)
		XLogRegisterBuffer(block_id, ui->buffer,
						   REGBUF_STANDARD | (ui->init ? REGBUF_WILL_INIT : 0));
}

void
UndoSetLSN(UndoInsert *ui, XLogRecPtr lsn)
{
	if (ui->needs_wal)
		PageSetLSN(BufferGetPage(ui->buffer), lsn);
}

void
UndoRelease(UndoInsert *ui)
{
	if (BufferIsLocal(ui->buffer))
		ReleaseBuffer(ui->buffer);
	else
		LockBuffer(ui->buffer, BUFFER_LOCK_UNLOCK);
	ui->buffer = InvalidBuffer;
	prepared = NULL;
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
	if (block >= smgrnblocks(RelationGetSmgr(undorel), MAIN_FORKNUM))
		return InvalidBuffer;
	return ReadBuffer(undorel, block);
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

void
UndoTellStandbys(Relation rel, TransactionId xid)
{
	if (!TransactionIdIsNormal(xid) || UndoStandbysKnow(rel, xid))
		return;
	inplace_log_discard(MyDatabaseId, xid);
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

/*-------------------------------------------------------------------------
 *
 * memory_lock.c
 *	  Row locks that stand in shared memory alone.
 *
 * Most rows that are locked FOR UPDATE or FOR NO KEY UPDATE are changed next, by
 * the same transaction: ON CONFLICT DO UPDATE, EvalPlanQual, BEFORE ROW triggers,
 * SELECT ... FOR UPDATE.  A lock on the row's page costs undo and WAL, and makes the
 * change that follows cost more of both.  So a backend's first locks, up to
 * MEMORY_LOCKS of them, stand here.  The others stand on their pages (row_lock.c).
 *
 * A row's locks are those on its page and those here.  Whoever asks for the former
 * when it decides about a change or a lock asks for these, too (rowcheck.c,
 * lock_chain.c).
 *
 * Invariants
 *	1. Only locks that exclude each change of the row by others are here.  So while
 *	   one is, the row keeps its TID and its newest version but for the locker's own
 *	   changes, and no lock has to follow it, or to be known of an older version.
 *	2. A lock is put here with the row's page locked, when all that could be in the
 *	   way has been looked at under the same lock of the page.  The page may be
 *	   share-locked: whoever changes the row, or puts a lock on the page, has it
 *	   exclusively locked.  Only another lock that is put here could come in between,
 *	   so that is looked for again under the partition's lock.
 *	   The row's header stays as it is.  So a backend that unlocks the page between
 *	   its look and its change asks again for locks here, whatever the header says.
 *	3. A lock counts as long as its xid is running.  A subtransaction's goes with it.
 *	4. A lock goes once the (sub)transaction that took it has changed the row.  That
 *	   of an outer one stays, for its inner one may be rolled back.
 *	5. A lock is of a row of its table's storage at the time.  Whoever gives the table
 *	   other storage has it to itself until that is taken back, or the end.
 *	6. Nothing here outlives its transaction, nor a process that fails to end it.
 *	   PREPARE TRANSACTION puts the locks on the pages, as standbys and crash
 *	   recovery know only those.
 *
 * Lock order: the row's page, then a partition's lock; under it what the server takes to
 * tell whether an xid is running.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "page/slot.h"
#include "process_exit.h"
#include "row/memory_lock.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/shmem.h"
#include "xact_end.h"

#define PARTITIONS			32

typedef struct MemoryLock
{
	RelFileLocator locator;
	BlockNumber blk;
	OffsetNumber off;
	uint8		mode;
	TransactionId xid;
	int32		next;			/* in its bucket, or -1 */
} MemoryLock;

volatile int32 *inplace_memory_lock_heads;
int			inplace_row_locks_in_memory = 16;
static MemoryLock *locks_shared;
static LWLockPadded *partitions;

/* what only their owner has to know of this backend's locks */
static struct
{
	bool		used;
	uint32		bucket;
	SubTransactionId sub;
	Oid			relid;
}			mine[MEMORY_LOCKS];
static int	nmine = 0;
static bool expected = false;	/* the end of this process, too */

Size
InplaceMemoryLockShmemSize(void)
{
	Size		size = mul_size(MEMORY_LOCK_BUCKETS, sizeof(int32));

	size = add_size(size, mul_size(PARTITIONS, sizeof(LWLockPadded)));
	size = add_size(size, PG_CACHE_LINE_SIZE);
	return add_size(size, mul_size(mul_size(MaxBackends, MEMORY_LOCKS),
								   sizeof(MemoryLock)));
}

void
InplaceMemoryLockShmemInit(void)
{
	bool		found;
	char	   *mem = (char *) CACHELINEALIGN(ShmemInitStruct("inplace row locks",
															  InplaceMemoryLockShmemSize(),
															  &found));
	int			tranche;

	partitions = (LWLockPadded *) mem;
	mem += PARTITIONS * sizeof(LWLockPadded);
	inplace_memory_lock_heads = (volatile int32 *) mem;
	mem += MEMORY_LOCK_BUCKETS * sizeof(int32);
	locks_shared = (MemoryLock *) mem;
	NoLockRegister(NO_LOCK_ROW_LOCKS, &partitions[0].lock, PARTITIONS, sizeof(LWLockPadded));
	if (found)
		return;
	tranche = LWLockNewTrancheId();
	LWLockRegisterTranche(tranche, "InplaceRowLock");
	for (int i = 0; i < PARTITIONS; i++)
		LWLockInitialize(&partitions[i].lock, tranche);
	for (int i = 0; i < MEMORY_LOCK_BUCKETS; i++)
		inplace_memory_lock_heads[i] = -1;
}

static inline LWLock *
partition(uint32 bucket)
{
	return &partitions[bucket % PARTITIONS].lock;
}

static inline int
my_first(void)
{
	return (MyProc - ProcGlobal->allProcs) * MEMORY_LOCKS;
}

static inline bool
is_of_row(const MemoryLock *lock, Relation rel, BlockNumber blk, OffsetNumber off)
{
	return lock->blk == blk && lock->off == off &&
		RelFileLocatorEquals(lock->locator, RelLocator(rel));
}

/* the partition is locked */
static void
look_into_bucket(Relation rel, BlockNumber blk, OffsetNumber off, uint32 bucket,
				 MemoryLocks *locks)
{
	int			first = my_first();

	locks->own = false;
	locks->own_mode = LockTupleKeyShare;
	locks->xid = InvalidTransactionId;
	locks->mode = LockTupleKeyShare;

	for (int32 i = inplace_memory_lock_heads[bucket]; i >= 0; i = locks_shared[i].next)
	{
		const MemoryLock *lock = &locks_shared[i];

		if (!is_of_row(lock, rel, blk, off))
			continue;
		if (i >= first && i < first + MEMORY_LOCKS)
		{
			/*
			 * Others ask whether the xid is running.  A lock whose
			 * subtransaction has gone would keep us from waiting, and nobody
			 * else.
			 */
			Assert(TransactionIdIsCurrentTransactionId(lock->xid));
			if (locks->own && lock->mode <= locks->own_mode)
				continue;
			locks->own = true;
			locks->own_xid = lock->xid;
			locks->own_mode = (LockTupleMode) lock->mode;
		}
		else if (TransactionIdIsInProgress(lock->xid) &&
				 (!TransactionIdIsValid(locks->xid) || lock->mode > locks->mode))
		{
			locks->xid = lock->xid;
			locks->mode = (LockTupleMode) lock->mode;
		}
	}
}

void
inplace_memory_locks_of(Relation rel, BlockNumber blk, OffsetNumber off, uint32 bucket,
						MemoryLocks *locks)
{
	LWLockAcquire(partition(bucket), LW_SHARED);
	look_into_bucket(rel, blk, off, bucket, locks);
	LWLockRelease(partition(bucket));
}

static void
drop(int n)
{
	uint32		bucket = mine[n].bucket;
	int32		i = my_first() + n;

	LWLockAcquire(partition(bucket), LW_EXCLUSIVE);
	if (inplace_memory_lock_heads[bucket] == i)
		inplace_memory_lock_heads[bucket] = locks_shared[i].next;
	else
		for (int32 at = inplace_memory_lock_heads[bucket]; at >= 0; at = locks_shared[at].next)
			if (locks_shared[at].next == i)
			{
				locks_shared[at].next = locks_shared[i].next;
				break;
			}
	LWLockRelease(partition(bucket));
	mine[n].used = false;
	nmine--;
}

static void
drop_all(void)
{
	for (int n = 0; n < MEMORY_LOCKS && nmine > 0; n++)
		if (mine[n].used)
			drop(n);
}

/*
 * If they were left behind the next process would put its own into other buckets, with
 * these still linked.
 */
void
inplace_expect_memory_locks(void)
{
	if (likely(expected))
		return;
	InplaceForgetAtExit(drop_all);
	expected = true;
}

bool
inplace_memory_lock_room(void)
{
	return expected && nmine < inplace_row_locks_in_memory;
}

bool
inplace_take_memory_lock(Relation rel, BlockNumber blk, OffsetNumber off,
						 TransactionId xid, LockTupleMode mode)
{
	uint32		bucket = inplace_memory_lock_bucket(RelationGetRelid(rel), blk, off);
	int			n = 0;
	int			i;
	MemoryLock *lock;
	MemoryLocks locks;

	Assert(mode >= LockTupleNoKeyExclusive);
	while (n < MEMORY_LOCKS && mine[n].used)
		n++;
	if (n == MEMORY_LOCKS)
		elog(ERROR, "no room for a row lock in memory");

	i = my_first() + n;
	lock = &locks_shared[i];
	LWLockAcquire(partition(bucket), LW_EXCLUSIVE);
	look_into_bucket(rel, blk, off, bucket, &locks);
	if (TransactionIdIsValid(locks.xid))
	{
		LWLockRelease(partition(bucket));
		return false;
	}
	lock->locator = RelLocator(rel);
	lock->blk = blk;
	lock->off = off;
	lock->mode = mode;
	lock->xid = xid;
	lock->next = inplace_memory_lock_heads[bucket];
	inplace_memory_lock_heads[bucket] = i;
	mine[n].used = true;
	mine[n].bucket = bucket;
	mine[n].sub = GetCurrentSubTransactionId();
	mine[n].relid = RelationGetRelid(rel);
	nmine++;
	LWLockRelease(partition(bucket));
	return true;
}

void
inplace_drop_memory_lock(Relation rel, BlockNumber blk, OffsetNumber off)
{
	int			left = nmine;

	for (int n = 0; left > 0; n++)
	{
		if (!mine[n].used)
			continue;
		left--;
		if (mine[n].sub == GetCurrentSubTransactionId() &&
			is_of_row(&locks_shared[my_first() + n], rel, blk, off))
			drop(n);
	}
}

bool
inplace_next_memory_lock(int *n, Oid *relid, RelFileLocator *locator,
						 ItemPointer tid, LockTupleMode *mode)
{
	while (*n < MEMORY_LOCKS && nmine > 0)
	{
		const MemoryLock *lock = &locks_shared[my_first() + *n];

		if (!mine[(*n)++].used)
			continue;
		*relid = mine[*n - 1].relid;
		*locator = lock->locator;
		ItemPointerSet(tid, lock->blk, lock->off);
		*mode = (LockTupleMode) lock->mode;
		return true;
	}
	return false;
}

/*
 * The transaction has ended for all others.
 */
static void
transaction_ends(XactEvent event, void *arg)
{
	if (XactIsLeft(event))
		drop_all();
}

static void
subtransaction_ends(SubXactEvent event, SubTransactionId sub,
					SubTransactionId parent, void *arg)
{
	if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
		return;
	for (int n = 0; n < MEMORY_LOCKS && nmine > 0; n++)
	{
		if (!mine[n].used || mine[n].sub != sub)
			continue;
		if (event == SUBXACT_EVENT_COMMIT_SUB)
			mine[n].sub = parent;
		else
			drop(n);
	}
}

/* xmax of a row whose version at the slot has not been replaced */
static TransactionId
memory_locker(Oid relid, const ItemPointerData *tid)
{
	ItemPointerData clean;
	BlockNumber blk;
	OffsetNumber off;
	MemoryLocks locks;
	Relation	rel;

	TidClean(&clean, tid);
	blk = ItemPointerGetBlockNumber(&clean);
	off = ItemPointerGetOffsetNumber(&clean);
	if (inplace_memory_lock_heads[inplace_memory_lock_bucket(relid, blk, off)] < 0)
		return InvalidTransactionId;
	rel = RelationIdGetRelation(relid);
	if (rel == NULL)
		return InvalidTransactionId;
	inplace_get_memory_locks(rel, blk, off, &locks);
	RelationClose(rel);
	return locks.own ? locks.own_xid : locks.xid;
}

void
InplaceRegisterMemoryLockCallbacks(void)
{
	inplace_memory_locker = memory_locker;
	RegisterXactCallback(transaction_ends, NULL);
	RegisterSubXactCallback(subtransaction_ends, NULL);
}

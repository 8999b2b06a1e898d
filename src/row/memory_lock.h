/*-------------------------------------------------------------------------
 *
 * memory_lock.h
 *	  Row locks that stand in shared memory alone; see memory_lock.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_MEMORY_LOCK_H
#define INPLACE_MEMORY_LOCK_H

#include "inplace.h"

#include "common/hashfn.h"
#include "nodes/lockoptions.h"
#include "page/tuple.h"

#define MEMORY_LOCK_BUCKETS		8192
#define MEMORY_LOCKS			64	/* of a backend, at most */

/* setting: up to so many */
extern int	inplace_row_locks_in_memory;

/* by bucket: its first lock, or -1 */
extern PGDLLIMPORT volatile int32 *inplace_memory_lock_heads;

/* what stands there of a row */
typedef struct MemoryLocks
{
	bool		own;			/* of this transaction, */
	TransactionId own_xid;		/* ... or of a subtransaction: */
	LockTupleMode own_mode;		/* ... the strongest */
	TransactionId xid;			/* of another that is running, or invalid */
	LockTupleMode mode;
} MemoryLocks;

extern Size InplaceMemoryLockShmemSize(void);
extern void InplaceMemoryLockShmemInit(void);
extern void InplaceRegisterMemoryLockCallbacks(void);

static inline uint32
inplace_memory_lock_bucket(Oid relid, BlockNumber blk, OffsetNumber off)
{
	return murmurhash32(relid ^ ((uint32) off << 20) ^ murmurhash32(blk)) %
		MEMORY_LOCK_BUCKETS;
}

extern void inplace_memory_locks_of(Relation rel, BlockNumber blk, OffsetNumber off,
									uint32 bucket, MemoryLocks *locks);

/*
 * The row's locks in memory.  A backend that is to change the row has its page
 * exclusively locked: then no other lock comes.
 */
static inline void
inplace_get_memory_locks(Relation rel, BlockNumber blk, OffsetNumber off,
						 MemoryLocks *locks)
{
	uint32		bucket = inplace_memory_lock_bucket(RelationGetRelid(rel), blk, off);

	if (likely(inplace_memory_lock_heads[bucket] < 0))
	{
		locks->own = false;
		locks->xid = InvalidTransactionId;
	}
	else
		inplace_memory_locks_of(rel, blk, off, bucket, locks);
}

/* no page is locked: this process may put some there */
extern void inplace_expect_memory_locks(void);

/* may one more be put there? */
extern bool inplace_memory_lock_room(void);

/*
 * There is room, the page is locked, and nothing was in the way.  False if another backend
 * that has it share-locked, too, has put a lock there meanwhile.
 */
extern bool inplace_take_memory_lock(Relation rel, BlockNumber blk, OffsetNumber off,
									 TransactionId xid, LockTupleMode mode);

/* this very (sub)transaction has changed the row: that is a lock, too */
extern void inplace_drop_memory_lock(Relation rel, BlockNumber blk, OffsetNumber off);

/*
 * This transaction's locks, one after the other; *n is 0 at first.  False if there are
 * no more.  *locator is the storage that the table had then.
 */
extern bool inplace_next_memory_lock(int *n, Oid *relid, RelFileLocator *locator,
									 ItemPointer tid, LockTupleMode *mode);

#endif							/* INPLACE_MEMORY_LOCK_H */

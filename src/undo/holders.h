/*-------------------------------------------------------------------------
 *
 * holders.h
 *	  Which snapshots may still need an older version; see holders.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_HOLDERS_H
#define INPLACE_HOLDERS_H

#include "inplace.h"

#include "executor/execdesc.h"
#include "port/atomics.h"
#include "storage/lock.h"
#include "undo/seen.h"
#include "utils/backend_status.h"

/* more are taken for sessions that have published nothing */
#define UNDO_MAX_HOLDERS	32

/* a transaction's only snapshot, as it has published it */
typedef struct UndoHeldSnapshot
{
	TransactionId xmin;			/* sees what has committed before */
	TransactionId xmax;			/* sees nothing from here on */
	bool		serializable;	/* has to be found to conflict with writers */
	bool		follows;		/* may come to places where a row was moved
								 * since */
	bool		shares_keys;	/* ... for FOR KEY SHARE only, and looks who
								 * put the row there */
	int			slot;			/* whose it is */
	LocalTransactionId lxid;
} UndoHeldSnapshot;

/*
 * Every snapshot that exists or will exist sees all committed transactions
 * before all_see, or is one of held[].  Each sees all that "seen" has, the held
 * ones as well; and all that "others_see" has, or is one of held[].
 */
typedef struct UndoBounds
{
	TransactionId all_see;
	UndoSeen	seen;
	UndoSeen	others_see;
	int			nheld;
	UndoHeldSnapshot held[UNDO_MAX_HOLDERS];
} UndoBounds;

/*
 * What a process has said of itself (hold.c).
 */
typedef struct UndoHolderSlot
{
	/* of a REPEATABLE READ or SERIALIZABLE transaction: its snapshot */
	pg_atomic_uint32 xmin;		/* invalid if nothing is published */
	pg_atomic_uint32 xmax;
	pg_atomic_uint32 serializable;
	pg_atomic_uint32 shares_keys;

	/* of a READ COMMITTED transaction: all snapshots that it has */
	pg_atomic_uint32 lxid;		/* which transaction, or invalid */
	pg_atomic_uint32 newest_xmax;	/* none has a newer xmax */
	pg_atomic_uint32 closed;	/* no new one while this is set */
	pg_atomic_uint32 follows;	/* cursors, row locks: see hold.c */
	pg_atomic_uint32 passed;	/* newest all_see given out that relies on
								 * this slot; written with ProcArrayLock
								 * exclusive */
	pg_atomic_uint32 open_queries;	/* started and not ended, or more */

	/* of either */
	volatile PgBackendStatus *status;

	/* what its last transaction's end was (seen.c) */
	pg_atomic_uint64 ended;		/* xactCompletionCount after it, or zero */
	volatile int ended_pid;		/* process that stored it */
} UndoHolderSlot;

/* a line of the cache each, as every query writes to its own */
typedef union UndoHolderSlotPadded
{
	UndoHolderSlot slot;
	char		pad[PG_CACHE_LINE_SIZE];
} UndoHolderSlotPadded;

typedef struct UndoHoldersShared
{
	pg_atomic_uint32 count;		/* slots with an xmin, and undo workers that
								 * have seen a held snapshot */
	pg_atomic_uint32 lately;	/* the next xid when UndoHoldersLately read */
	pg_atomic_uint64 room_told; /* a free space map has been told of room of
								 * rows; their newest deleter, or 0 */
	pg_atomic_uint64 room_until;	/* time until which that counts, if all
									 * see it; 0: not known (modify/room.c) */
	pg_atomic_uint64 remote_since;	/* since when remote_xmin has been seen */
	pg_atomic_uint32 remote_xmin;	/* of standbys and slots, the oldest */
	char		pad[PG_CACHE_LINE_SIZE - 3 * sizeof(pg_atomic_uint32) -
					3 * sizeof(pg_atomic_uint64)];
	UndoHolderSlotPadded slots[FLEXIBLE_ARRAY_MEMBER];
} UndoHoldersShared;

extern UndoHoldersShared *undo_holders;

/* a READ COMMITTED transaction's snapshot that is younger is not worth it */
#define UNDO_HELD_MIN_AGE	1000
/* whoever has been in a transaction for so long is not about to end it */
#define UNDO_HOLDER_IS_OLD_MS	2000

/* setting inplace.squeeze_undo */
extern bool inplace_squeeze_undo;
extern bool inplace_prune_between;	/* row/between.c */

extern Size UndoHoldersShmemSize(void);
extern void UndoHoldersShmemInit(void);

/* called before versions are dropped or extents given back */
extern void UndoHoldersRead(UndoBounds *bounds);
extern const UndoBounds *UndoHoldersLately(TransactionId xid);
extern const UndoBounds *UndoHoldersRecent(void);
extern bool UndoIsHolder(const UndoBounds *bounds, const VirtualTransactionId *vxid);
extern bool UndoOthersHold(bool recent_ones);
extern bool UndoHoldersDrain(const UndoBounds *bounds);
extern void UndoHoldersLook(TransactionId horizon);
extern void UndoHoldersAtStart(void);

static inline bool
UndoHoldersAny(void)
{
	return inplace_squeeze_undo && pg_atomic_read_u32(&undo_holders->count) > 0;
}

static inline void
UndoNoteRoomTold(FullTransactionId xid)
{
	if (U64FromFullTransactionId(xid) > pg_atomic_read_u64(&undo_holders->room_told))
		pg_atomic_write_u64(&undo_holders->room_told, U64FromFullTransactionId(xid));
	pg_atomic_write_u64(&undo_holders->room_until, 0);
}

/* do all snapshots but held ones see the transaction? */
static inline bool
UndoOthersSee(const UndoBounds *bounds, TransactionId xid)
{
	return TransactionIdPrecedes(xid, bounds->all_see) ||
		UndoSeenByAll(&bounds->others_see, xid);
}

#endif							/* INPLACE_HOLDERS_H */

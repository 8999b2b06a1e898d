/*-------------------------------------------------------------------------
 *
 * space.h
 *	  The extents of undo.  See space.c for the invariants and the lock order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_UNDO_SPACE_H
#define INPLACE_UNDO_SPACE_H

#include "inplace.h"

#include "page/tuple.h"
#include "port/atomics.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
#include "undo/undo.h"
#include "utils/timestamp.h"

typedef enum UndoKind
{
	UNDO_LOGGED,
	UNDO_UNLOGGED,
	UNDO_TEMP
} UndoKind;

#define UNDO_SHARED_KINDS	2	/* UNDO_TEMP has no shared state */

#define INPLACE_SCHEMA			"inplace"
#define UNDO_LOGGED_NAME		"undo_log"
#define UNDO_UNLOGGED_NAME		"undo_log_unlogged"

/*
 * UndoExtent.state: one of these ...
 */
#define EXT_FREE		0x00	/* may be taken from its start */
#define EXT_PARTIAL		0x01	/* nobody's; may be taken to append to it */
#define EXT_FULL		0x02	/* nobody's; waits for being discarded */
#define EXT_OWNED		0x03	/* written by a transaction still open */
#define EXT_DISCARD		0x04	/* the worker is about to make it free */
#define EXT_STATE_MASK	0x0F
/* ... and these flags */
#define EXT_NEEDS_SCAN	0x10	/* aborted changes may be in it */
#define EXT_DIRTY		0x20	/* ... since the worker last began to look */
#define EXT_WAIT		0x40	/* scanning it again makes sense only once
								 * newest_xid has passed the horizon */

typedef struct UndoExtent
{
	pg_atomic_uint32 state;
	pg_atomic_uint32 newest_xid;	/* newest xid that makes it needed */
	uint16		fill;			/* pages begun; set by the owner only */
	uint16		scanned;		/* pages that never need a scan again; set by
								 * the worker only */
	bool		images;			/* who may append to it (append.c); changes
								 * with the lock exclusive */

	/* by UndoSpace.clock, 0 if before a restart */
	pg_atomic_uint64 begun;		/* when it was taken last while free */
	pg_atomic_uint64 ended;		/* when its last owner let go of it, or
								 * EXT_STILL_OWNED */
} UndoExtent;

#define EXT_STILL_OWNED		PG_UINT64_MAX

#define UNDO_CHUNK_EXTENTS	128
#define UNDO_EXTENTS_IN_LINE	(PG_CACHE_LINE_SIZE / sizeof(UndoExtent))
#define UNDO_CHUNK_LINES	(UNDO_CHUNK_EXTENTS / UNDO_EXTENTS_IN_LINE)
#define UNDO_RECENT			64

typedef struct UndoSpace
{
	LWLockPadded lock;
	LWLockPadded extend_lock;
	bool		in_use;
	bool		built;
	UndoKind	kind;
	RelFileLocator locator;
	uint32		nextents;		/* extents [0, nextents) exist */
	uint32		nchunks;
	uint32		first_free;		/* no extent below is EXT_FREE */
	BlockNumber tail_end;		/* blocks after the extents in the map, that
								 * have no place there; 0: none (space.c) */
	BlockNumber tail_scanned;	/* ... those before never need a scan again; */
	TransactionId tail_xid;		/* newest xid that makes them needed; both are
								 * set by the worker only */
	pg_atomic_uint32 worker_pid;	/* the worker that discards here, or 0 */
	pg_atomic_uint32 launcher_knows;	/* 1: of extents here, and looks again
										 * untold; it alone sets this to 1 */
	TransactionId horizon;		/* that of the last discard, for the view */
	pg_atomic_uint32 discarded_xid; /* newest that a discard record has told
									 * standbys of */
	pg_atomic_uint32 retreat;	/* partial extents from here up are left
								 * alone, so that the file can shrink
								 * (shrink.c) */
	pg_atomic_uint64 clock;		/* counts extents taken from free ones; tells
								 * what was written before what (release.c) */
	pg_atomic_uint32 cut;		/* counts truncations of the file; changes
								 * with extend_lock only */
	pg_atomic_uint64 limit_reported;	/* when inplace.undo_limit was last
										 * reported in the log */
	pg_atomic_uint64 rows_restored;
	pg_atomic_uint32 recent[2][UNDO_RECENT];	/* hints: partial extents, and
												 * those for images */
	uint16		chunks[FLEXIBLE_ARRAY_MEMBER];	/* into the pool */
} UndoSpace;

#define UNDO_MAX_SPACES		256
#define UNDO_MAX_WORKERS	16
#define UNDO_MAX_DETACHED	32

/* a database's worker, or the intention to start it */
typedef struct UndoWorkerSlot
{
	Oid			dboid;			/* InvalidOid: slot is free */
	uint32		ticket;			/* of the worker that was registered last */
	int			pid;			/* 0: not up yet */
	bool		stop;			/* asked to leave */
	uint32		looked;			/* ticket of the worker that has been through
								 * its database once */
	Latch	   *latch;			/* when up */
} UndoWorkerSlot;

typedef struct UndoDetached
{
	Oid			dboid;
	TimestampTz until;			/* no worker before that time */
	int			sessions;		/* that have detached it, and not reattached */
	bool		visit;			/* the launcher has to send one then */
} UndoDetached;

typedef struct UndoShared
{
	LWLockPadded directory;		/* slots of spaces */
	LWLockPadded workers_lock;	/* workers, detached */
	slock_t		pool_lock;		/* the free chunks, nothing else */
	int			nspaces;
	uint32		pool_chunks;
	uint32		pool_nfree;
	Latch	   *volatile launcher_latch;
	uint32		last_ticket;	/* with workers_lock */
	volatile bool yield;		/* databases wait for a worker */
	UndoWorkerSlot workers[UNDO_MAX_WORKERS];
	UndoDetached detached[UNDO_MAX_DETACHED];
} UndoShared;

extern UndoShared *undo_shared;

/* setting */
extern int	inplace_undo_extents;	/* capacity of the undo extent map */

extern UndoKind UndoKindOf(Relation rel);
extern UndoSpace *UndoSpaceLock(UndoKind kind, LWLockMode mode);
extern void UndoSpaceUnlock(UndoSpace *sp);
extern UndoSpace *UndoSpaceAt(int i);
extern UndoExtent *UndoExtentAt(UndoSpace *sp, uint32 n);
extern bool UndoSpaceAddExtent(UndoSpace *sp);
INPLACE_NORETURN extern void UndoReportFull(UndoSpace *sp);
extern uint32 UndoSpaceExtents(UndoSpace *sp);
extern uint32 UndoTailExtents(UndoSpace *sp);
extern void UndoTailEnd(UndoSpace *sp);
extern uint32 UndoExtentsWanted(void);
extern uint32 UndoLowestFree(UndoSpace *sp);
extern bool UndoMapHasSpare(void);
extern uint32 UndoSpaceCut(UndoSpace *sp, uint32 keep);
extern void UndoSpacesForget(Oid dboid, const RelFileLocator *keep, int nkeep);
extern void UndoExtentAdvanceXid(UndoExtent *ext, TransactionId xid);
extern void UndoNoteDiscarded(UndoSpace *sp, TransactionId xid);
extern void UndoForgetDiscarded(UndoSpace *sp);

static inline BlockNumber
UndoExtentStart(uint32 n)
{
	return (BlockNumber) n * UNDO_EXTENT_BLOCKS + 1;
}

/* is there any undo in it? */
static inline bool
UndoSpaceIsEmpty(UndoSpace *sp)
{
	return sp->nextents == 0 && sp->tail_end == 0;
}

/* shared memory */
extern Size UndoShmemSize(void);
extern void UndoShmemInit(void);

/*
 * The raw page access that UndoFetch builds on: pins the undo page of ptr in
 * rel's space, or returns InvalidBuffer if missing_ok and that extent is free
 * or beyond the end.
 */
extern Buffer UndoReadBuffer(Relation rel, UndoPtr ptr, bool missing_ok);

/*
 * May undo be cut off before a version made by xid, as far as standbys are
 * concerned?  To be asked besides the horizon of this server: a standby that
 * gives no feedback may have a snapshot that does not see xid, and would take
 * the version for the row's first.  True once a discard record has told them.
 */
extern bool UndoStandbysKnow(Relation rel, TransactionId xid);

/*
 * Before versions that are older than xid's are dropped: writes such a record
 * if need be.  all_ended: have all transactions with an older xid ended?  If
 * not, standbys know of this xid only.
 */
extern void UndoTellStandbys(Relation rel, TransactionId xid, bool all_ended);

/* bytes now allocated (file size) and in use by extents, of this database */
extern int64 UndoSizeBytes(void);

#endif							/* INPLACE_UNDO_SPACE_H */

/*-------------------------------------------------------------------------
 *
 * holders.c
 *	  Which snapshots may still need an older version of a row.
 *
 * A backend's xmin, which others know, says that its snapshots see all that
 * committed before.  What they do not see cannot be told from it, and there may be
 * many of them.  So versions that are newer than a backend's xmin have to be kept
 * for it, however old its xmin is.  This file lets a transaction that has one
 * snapshot only say so, and say which.  A version that was made after that one and
 * replaced before all other snapshots were taken is then needed by nobody.
 *
 * What is published
 *	  Slot n belongs to the process with the n-th entry of the proc array.  What
 *	  the process promises with it is in hold.c:
 *	  - the bounds of a REPEATABLE READ or SERIALIZABLE transaction's snapshot, the
 *		only one with which it looks at tables, and which of the two it is, or
 *	  - of a READ COMMITTED transaction that it has no snapshot with an xmax newer
 *		than newest_xmax, provided that "closed" is set or the session is
 *		reported to be idle in a transaction.  All of its snapshots have an
 *		xmin that is not older than that in the proc array.
 *	  While the process has an xid the first counts only if the session is
 *	  reported to be idle in a transaction, and the second not at all.
 *
 * What the bounds mean
 *	  UndoHoldersRead gives a set of ranges from an xmin to an xmax, and an xid,
 *	  all_see, such that every snapshot that exists then, or is taken later, is
 *	  within one of the ranges or has an xmin that is not older than all_see.
 *	  Nothing that happens afterwards changes that, so the bounds may be used at
 *	  any later time.
 *
 *	  Let A be the oldest xid running at time t1 (the next one if there is
 *	  none), and t2, later, the time when the processes are looked at, with
 *	  ProcArrayLock held exclusively.
 *	  - A snapshot taken after t1 has an xmin of A or newer, for what was
 *		running then had been running at t1, or is newer.
 *	  - A snapshot taken before t1, or a copy of one that was, that exists at
 *		t2 is some process's, whose xmin in the proc array is not newer than
 *		the snapshot's.  No process can be in the middle of taking over one
 *		from another, for that is done with ProcArrayLock held.
 *	  - If that process has published and what it has published counts, then it is
 *		within the published range: any other was taken after the slot had been
 *		emptied, the xid assigned, "closed" taken back, or the session reported to
 *		be running, so that was to be seen at t2, too (taking a snapshot takes
 *		ProcArrayLock).
 *	  - If not, all_see is not newer than its xmin.
 *	  - Replication slots are looked at before and after: what leaves a slot
 *		for a process does so after that process has the xmin.
 *	  What UndoBounds.seen has is another thing that all of them see, with its own
 *	  proof (seen.c), made at the same time t2.  Nothing that is published counts
 *	  for that.  For others_see processes are left out that are held and idle: all
 *	  their snapshots are within the published range, and those they take later
 *	  belong to the count at t2 or a later one.  (A session that is running may
 *	  have a snapshot that it ought not to have, see hold.c; what it was given out
 *	  for that is known in terms of all_see only.)
 *	  Standbys without a slot or feedback are told, before anything is dropped
 *	  that they might need (squeeze.c, discard.c).
 *
 * Lock order: the row's page may be locked.  ProcArrayLock is taken with
 * nothing else of ours locked, and nothing is taken under it.  Afterwards that
 * of seen.c is.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/transam.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "undo/holders.h"
#include "undo/seen.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

bool		inplace_squeeze_undo = true;
bool		inplace_prune_between = true;

UndoHoldersShared *undo_holders = NULL;

/* do we, an undo worker, count as one that has seen a held snapshot? */
static bool saw_held = false;

/*
 * UndoHoldersLately reads again after so many xids if that may help, or anyway.  While
 * it does not help the first doubles, up to a limit.  All backends together read no more
 * often than the first says.
 */
#define LATELY_MIN_AGE	32
#define LATELY_MAX_WAIT	1024
#define LATELY_MAX_AGE	1000000

/* how often, and after how long each time, UndoHoldersDrain looks again */
#define DRAIN_TRIES		400
#define DRAIN_USEC		500

Size
UndoHoldersShmemSize(void)
{
	return add_size(offsetof(UndoHoldersShared, slots),
					mul_size(MaxBackends, sizeof(UndoHolderSlotPadded)));
}

void
UndoHoldersShmemInit(void)
{
	bool		found;

	undo_holders = ShmemInitStruct("inplace undo holders", UndoHoldersShmemSize(),
								   &found);
	if (found)
		return;
	pg_atomic_init_u32(&undo_holders->count, 0);
	pg_atomic_init_u32(&undo_holders->lately, InvalidTransactionId);
	pg_atomic_init_u64(&undo_holders->room_told, 0);
	pg_atomic_init_u64(&undo_holders->room_until, 0);
	pg_atomic_init_u32(&undo_holders->remote_xmin, InvalidTransactionId);
	pg_atomic_init_u64(&undo_holders->remote_since, 0);
	for (int i = 0; i < MaxBackends; i++)
	{
		UndoHolderSlot *slot = &undo_holders->slots[i].slot;

		pg_atomic_init_u32(&slot->xmin, InvalidTransactionId);
		pg_atomic_init_u32(&slot->xmax, InvalidTransactionId);
		pg_atomic_init_u32(&slot->serializable, 0);
		pg_atomic_init_u32(&slot->shares_keys, 0);
		pg_atomic_init_u32(&slot->lxid, InvalidLocalTransactionId);
		pg_atomic_init_u32(&slot->newest_xmax, InvalidTransactionId);
		pg_atomic_init_u32(&slot->closed, 0);
		pg_atomic_init_u32(&slot->follows, 0);
		pg_atomic_init_u32(&slot->passed, InvalidTransactionId);
		pg_atomic_init_u32(&slot->open_queries, 0);
		slot->status = NULL;
		pg_atomic_init_u64(&slot->ended, 0);
		slot->ended_pid = 0;
	}
}

/* ---------------- about everybody ---------------- */

static void
lower(TransactionId *bound, TransactionId xid)
{
	if (TransactionIdIsNormal(xid) && TransactionIdPrecedes(xid, *bound))
		*bound = xid;
}

/*
 * Is the session waiting for its client, in the middle of a transaction?
 */
static bool
is_idle(volatile PgBackendStatus *status)
{
	int			before;
	int			after;
	bool		idle;

	if (status == NULL)
		return false;
	pgstat_begin_read_activity(status, before);
	idle = status->st_state == STATE_IDLEINTRANSACTION &&
		status->st_backendType == B_BACKEND;
	pgstat_end_read_activity(status, after);
	return idle && pgstat_read_activity_complete(before, after);
}

/*
 * The snapshots of a READ COMMITTED transaction, if all of them are known.
 */
static bool
read_committed(PGPROC *proc, UndoHolderSlot *slot, TransactionId xmin,
			   UndoHeldSnapshot *held)
{
	uint32		lxid = pg_atomic_read_u32(&slot->lxid);
	bool		idle = false;

	if (lxid == InvalidLocalTransactionId || lxid != ProcLxid(proc) ||
		!TransactionIdIsNormal(xmin))
		return false;
	pg_read_barrier();
	if (pg_atomic_read_u32(&slot->closed) == 0 && !(idle = is_idle(slot->status)))
		return false;
	pg_read_barrier();
	held->xmin = xmin;
	held->xmax = pg_atomic_read_u32(&slot->newest_xmax);
	held->serializable = false;
	held->shares_keys = false;
	/* (the unnamed portal may be open, and be a cursor later) */
	held->follows = pg_atomic_read_u32(&slot->follows) != 0 ||
		(idle && pg_atomic_read_u32(&slot->open_queries) > 0);
	return true;
}

/*
 * The snapshots that the n-th process has published, if that counts.
 */
static bool
read_slot(PGPROC *proc, int n, TransactionId xmin, bool young,
		  UndoHeldSnapshot *held, bool *idle)
{
	UndoHolderSlot *slot = &undo_holders->slots[n].slot;
	bool		has_xid = TransactionIdIsValid(proc->xid);

	*idle = false;
	held->slot = n;
	held->lxid = ProcLxid(proc);
	held->xmin = pg_atomic_read_u32(&slot->xmin);
	pg_read_barrier();
	if (TransactionIdIsValid(held->xmin))
	{
		held->xmax = pg_atomic_read_u32(&slot->xmax);
		held->serializable = pg_atomic_read_u32(&slot->serializable) != 0;
		held->shares_keys = pg_atomic_read_u32(&slot->shares_keys) != 0;
		held->follows = false;
		*idle = !young && is_idle(slot->status);
		return *idle || !has_xid;
	}
	if (young || has_xid || !read_committed(proc, slot, xmin, held))
		return false;
	*idle = is_idle(slot->status);
	return true;
}

/*
 * While the processes are looked at.
 */
typedef struct ProcessReads
{
	TransactionId next;			/* the next xid, as of before */
	UndoSeenRead all;
	UndoSeenRead others;		/* all but those that are held and idle */
} ProcessReads;

/*
 * Do the process's snapshots count for this database?  As for the horizon.
 */
static bool
counts_here(PGPROC *proc)
{
	if (proc->databaseId != MyDatabaseId && OidIsValid(proc->databaseId) &&
		!(proc->statusFlags & PROC_AFFECTS_ALL_HORIZONS))
		return false;
	return !(proc->statusFlags & PROC_IN_VACUUM);
}

/*
 * What the n-th process needs.  True if it is a published snapshot.
 */
static bool
read_process(UndoBounds *b, ProcessReads *r, int n)
{
	bool		idle;
	PGPROC	   *proc = &ProcGlobal->allProcs[n];

	/* read once: its owner may clear it at any time */
	TransactionId xmin = *(volatile TransactionId *) &proc->xmin;

	if (!counts_here(proc))
		return false;

	UndoSeenReadProcess(&r->all, n, xmin);
	if (n < MaxBackends && b->nheld < UNDO_MAX_HOLDERS &&
		read_slot(proc, n, xmin, (int32) (r->next - xmin) <= UNDO_HELD_MIN_AGE,
				  &b->held[b->nheld], &idle))
	{
		b->nheld++;
		if (!idle)
			UndoSeenReadProcess(&r->others, n, xmin);
		return true;
	}
	UndoSeenReadProcess(&r->others, n, xmin);
	lower(&b->all_see, xmin);
	return false;
}

void
UndoHoldersRead(UndoBounds *b)
{
	TransactionId slot_before;
	TransactionId slot_after;
	TransactionId catalog_xmin;
	UndoHolderSlot *slots[UNDO_MAX_HOLDERS];
	ProcessReads reads;

	b->nheld = 0;
	reads.next = ReadNextTransactionId();
	UndoSeenReadBegin(&reads.all);
	reads.others = reads.all;
	ProcArrayGetReplicationSlotXmin(&slot_before, &catalog_xmin);
	b->all_see = GetOldestActiveTransactionId();

	LWLockAcquire(ProcArrayLock, LW_EXCLUSIVE);
	for (int i = 0; i < ProcGlobal->allProcCount; i++)
		if (read_process(b, &reads, i))
			slots[b->nheld - 1] = &undo_holders->slots[i].slot;
	for (int i = 0; i < b->nheld; i++)
	{
		TransactionId passed = pg_atomic_read_u32(&slots[i]->passed);

		if (!TransactionIdIsValid(passed) ||
			TransactionIdPrecedes(passed, b->all_see))
			pg_atomic_write_u32(&slots[i]->passed, b->all_see);
	}
	LWLockRelease(ProcArrayLock);

	ProcArrayGetReplicationSlotXmin(&slot_after, &catalog_xmin);
	lower(&b->all_see, slot_before);
	lower(&b->all_see, slot_after);
	UndoSeenReadSlots(&reads.all, slot_before);
	UndoSeenReadSlots(&reads.all, slot_after);
	UndoSeenReadEnd(&reads.all, &b->seen);
	UndoSeenReadSlots(&reads.others, slot_before);
	UndoSeenReadSlots(&reads.others, slot_after);
	UndoSeenReadEnd(&reads.others, &b->others_see);
}

/*
 * By the launcher, when the server has begun to take changes, after a start or a promotion.
 * Does somebody from before hold rows, a prepared transaction or a slot?  Then the free
 * space map may have been told of their room before, too.
 */
void
UndoHoldersAtStart(void)
{
	FullTransactionId next = ReadNextFullTransactionId();
	TransactionId oldest = GetOldestActiveTransactionId();
	TransactionId slot_xmin;
	TransactionId catalog_xmin;

	ProcArrayGetReplicationSlotXmin(&slot_xmin, &catalog_xmin);
	lower(&oldest, slot_xmin);
	if (TransactionIdPrecedes(oldest, XidFromFullTransactionId(next)))
		UndoNoteRoomTold(next);
}

/* do they let rows go that are between two snapshots? */
static bool
bounds_help(const UndoBounds *bounds, TransactionId xid)
{
	if (!UndoOthersSee(bounds, xid))
		return false;
	for (int i = 0; i < bounds->nheld; i++)
		if (!bounds->held[i].serializable && !bounds->held[i].follows)
			return true;
	return false;
}

/* is it our turn, as nobody has read for some xids? */
static bool
may_read_now(TransactionId next)
{
	uint32		last = pg_atomic_read_u32(&undo_holders->lately);

	return (uint32) (next - last) >= LATELY_MIN_AGE &&
		pg_atomic_compare_exchange_u32(&undo_holders->lately, &last, next);
}

/*
 * Bounds that this backend has read.
 */
typedef struct LatelyRead
{
	UndoBounds *bounds;			/* all_see is invalid if there are none yet */
	TransactionId read_at;		/* the next xid then */
} LatelyRead;

static LatelyRead *
lately_read(void)
{
	static LatelyRead lately = {0};

	if (lately.bounds == NULL)
	{
		lately.bounds = MemoryContextAlloc(TopMemoryContext, sizeof(UndoBounds));
		lately.bounds->nheld = 0;
		lately.bounds->all_see = InvalidTransactionId;
	}
	return &lately;
}

static void
read_again(LatelyRead *lately, TransactionId next)
{
	/* others can tell later by what we have seen now */
	if (TransactionIdIsValid(MyProc->xid))
		UndoSeenNote();
	UndoHoldersRead(lately->bounds);
	lately->read_at = next;
}

/* can they be used, and are there any held snapshots? */
static bool
are_useful(const LatelyRead *lately, TransactionId next)
{
	return TransactionIdIsValid(lately->bounds->all_see) &&
		(uint32) (next - lately->read_at) <= 2 * LATELY_MAX_AGE &&
		lately->bounds->nheld > 0;
}

/*
 * Bounds with which all snapshots but held ones see xid, or NULL if there are no
 * such bounds, or no held snapshots.  They are read again only when some xids have
 * been used since, as that takes ProcArrayLock exclusively, and what was read once
 * stays true.
 */
const UndoBounds *
UndoHoldersLately(TransactionId xid)
{
	static uint32 wait = LATELY_MIN_AGE;
	LatelyRead *lately;
	TransactionId next;

	if (!UndoHoldersAny())
		return NULL;
	lately = lately_read();
	next = ReadNextTransactionId();
	if ((!TransactionIdIsValid(lately->bounds->all_see) ||
		 (uint32) (next - lately->read_at) > LATELY_MAX_AGE ||
		 ((uint32) (next - lately->read_at) >= wait &&
		  !UndoOthersSee(lately->bounds, xid))) &&
		may_read_now(next))
	{
		read_again(lately, next);
		wait = bounds_help(lately->bounds, xid) ? LATELY_MIN_AGE :
			Min(2 * wait, LATELY_MAX_WAIT);
	}
	return are_useful(lately, next) && UndoOthersSee(lately->bounds, xid) ?
		lately->bounds : NULL;
}

/*
 * The same whatever they see, read some xids ago at most if it is our turn: for those that
 * come seldom and ask much.
 */
const UndoBounds *
UndoHoldersRecent(void)
{
	LatelyRead *lately;
	TransactionId next;

	if (!UndoHoldersAny())
		return NULL;
	lately = lately_read();
	next = ReadNextTransactionId();
	if ((!TransactionIdIsValid(lately->bounds->all_see) ||
		 (uint32) (next - lately->read_at) >= LATELY_MIN_AGE) &&
		may_read_now(next))
		read_again(lately, next);
	return are_useful(lately, next) ? lately->bounds : NULL;
}

/*
 * Is the process likely to have its snapshot for longer?  It is idle with one, or has been in
 * its transaction for a while.  (Of others than sessions nothing is known.)
 */
static bool
stays_for_longer(UndoHolderSlot *slot)
{
	volatile PgBackendStatus *status = slot->status;
	TimestampTz begun = status == NULL ? 0 : status->st_xact_start_timestamp;

	return is_idle(status) ||
		(begun != 0 && TimestampDifferenceExceeds(begun, GetCurrentTimestamp(),
												  UNDO_HOLDER_IS_OLD_MS));
}

/*
 * A standby that sends feedback, or a slot, always has an xmin.  It is that of a query, in all
 * likelihood, if it stays.  (All who ask share what they have seen.)
 */
static bool
remote_stays(TransactionId xmin)
{
	TimestampTz now;

	if (!TransactionIdIsNormal(xmin))
		return false;
	now = GetCurrentTimestamp();
	if (pg_atomic_read_u32(&undo_holders->remote_xmin) != xmin)
	{
		pg_atomic_write_u64(&undo_holders->remote_since, (uint64) now);
		pg_atomic_write_u32(&undo_holders->remote_xmin, xmin);
		return false;
	}
	return TimestampDifferenceExceeds((TimestampTz) pg_atomic_read_u64(&undo_holders->remote_since),
									  now, UNDO_HOLDER_IS_OLD_MS);
}

/*
 * Is there somebody else, for longer, who does not see what this transaction does?  Only
 * somebody who began many transactions ago, unless recent ones count, too.  A hint: they
 * come and go.
 */
bool
UndoOthersHold(bool recent_ones)
{
	TransactionId next = ReadNextTransactionId();
	TransactionId own = GetTopTransactionIdIfAny();
	TransactionId oldest = GetOldestActiveTransactionId();
	TransactionId catalog_xmin;
	TransactionId remote;
	bool		held = false;

	ProcArrayGetReplicationSlotXmin(&remote, &catalog_xmin);
	LWLockAcquire(ProcArrayLock, LW_SHARED);
	for (int i = 0; i < Min(MaxBackends, ProcGlobal->allProcCount); i++)
	{
		PGPROC	   *proc = &ProcGlobal->allProcs[i];
		TransactionId xmin = *(volatile TransactionId *) &proc->xmin;

		if (proc == MyProc || !TransactionIdIsNormal(xmin) || !counts_here(proc))
			continue;
		lower(&oldest, xmin);
		if (proc->statusFlags & PROC_AFFECTS_ALL_HORIZONS)
		{
			if (!TransactionIdIsValid(remote) || TransactionIdPrecedes(xmin, remote))
				remote = xmin;
		}
		else
			held = held || (recent_ones && stays_for_longer(&undo_holders->slots[i].slot));
	}
	LWLockRelease(ProcArrayLock);
	if (TransactionIdIsValid(remote))
		lower(&oldest, remote);
	if (held || (recent_ones && remote_stays(remote)))
		return true;

	/* while our xid is the oldest of all, new snapshots have it as their xmin */
	return (!TransactionIdIsValid(own) || TransactionIdPrecedes(oldest, own)) &&
		(int32) (next - oldest) > UNDO_HELD_MIN_AGE;
}

/* is this the transaction of a held snapshot? */
bool
UndoIsHolder(const UndoBounds *bounds, const VirtualTransactionId *vxid)
{
	for (int i = 0; i < bounds->nheld; i++)
	{
		const UndoHeldSnapshot *held = &bounds->held[i];

		if (VxidIsOfProcess(vxid, held->slot) &&
			vxid->localTransactionId == held->lxid)
			return true;
	}
	return false;
}

/*
 * Has the session of a held snapshot been without a query since?
 */
static bool
is_drained(const UndoHeldSnapshot *held)
{
	UndoHolderSlot *slot = &undo_holders->slots[held->slot].slot;

	if (*(volatile LocalTransactionId *) &ProcLxid(&ProcGlobal->allProcs[held->slot]) != held->lxid)
		return true;
	if (!is_idle(slot->status))
		return false;
	pg_read_barrier();
	return pg_atomic_read_u32(&slot->open_queries) == 0;
}

/*
 * Wait for a moment until the session of each held snapshot has been seen waiting for
 * its client; false if one is not.  Then each query of theirs that was in progress when
 * we were called has ended, and so have its scans.  One that was a cursor's was there
 * when the session was found to be idle, and is not when its queries are counted.
 */
bool
UndoHoldersDrain(const UndoBounds *bounds)
{
	bool		drained[UNDO_MAX_HOLDERS] = {0};

	pg_memory_barrier();
	for (int tries = 0; tries < DRAIN_TRIES; tries++)
	{
		bool		all = true;

		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < bounds->nheld; i++)
		{
			drained[i] = drained[i] || is_drained(&bounds->held[i]);
			all = all && drained[i];
		}
		if (all)
			return true;
		pg_usleep(DRAIN_USEC);
	}
	return false;
}

/*
 * Does others_see say more than all_see?
 */
static bool
seen_is_worth_it(const UndoBounds *b)
{
	TransactionId last = b->others_see.xmax;

	if (!TransactionIdIsValid(last))
		return false;
	if (TransactionIdIsValid(b->others_see.limit) &&
		TransactionIdPrecedes(b->others_see.limit, last))
		last = b->others_see.limit;
	return (int32) (last - b->all_see) > UNDO_HELD_MIN_AGE;
}

/*
 * For the undo worker: take a snapshot, and have none afterwards.
 */
static void
note_snapshot(void)
{
	/* whatever the default is: as other processes of the server do it */
	if (!FirstSnapshotSet)
		XactIsoLevel = XACT_READ_COMMITTED;
	(void) GetTransactionSnapshot();
	UndoSeenNote();
	UnregisterSnapshot(RegisterSnapshot(GetTransactionSnapshot()));
}

/*
 * By an undo worker, now and then: is there something that would make it
 * worthwhile to squeeze?
 */
static void
forget_what_we_saw(int code, Datum arg)
{
	if (saw_held)
		pg_atomic_fetch_sub_u32(&undo_holders->count, 1);
	saw_held = false;
}

void
UndoHoldersLook(TransactionId horizon)
{
	static bool registered = false;
	bool		see = false;

	if (inplace_squeeze_undo &&
		(int32) (ReadNextTransactionId() - horizon) > UNDO_HELD_MIN_AGE)
	{
		UndoBounds	bounds;

		UndoSeenOwnWorker();
		note_snapshot();
		UndoHoldersRead(&bounds);
		see = bounds.nheld > 0 || seen_is_worth_it(&bounds);
	}
	if (see == saw_held)
		return;
	if (!registered)
		on_shmem_exit(forget_what_we_saw, (Datum) 0);
	registered = true;
	if (see)
		pg_atomic_fetch_add_u32(&undo_holders->count, 1);
	else
		pg_atomic_fetch_sub_u32(&undo_holders->count, 1);
	saw_held = see;
}

/*-------------------------------------------------------------------------
 *
 * seen.c
 *	  What all snapshots see, told from when they were taken.
 *
 * While a transaction with an xid is open every snapshot that is taken has an
 * xmin that is not newer than that xid.  So by their xmins (holders.c) nothing
 * that has committed since is known to be seen by all of them.  That is so even if
 * the open transaction is idle and has no snapshot itself, and so needs no older
 * version of any row.  This file says what they see in terms of when they were
 * taken.
 *
 * The server counts the transactions with an xid that have ended:
 * xactCompletionCount, which is raised with ProcArrayLock held exclusively,
 * together with the removal of the xid from the proc array.
 * - Each process stores, after the end of each of its transactions, what the
 *	 count is (UndoHolderSlot.ended): p.
 * - A backend that drops versions, and the undo worker, take a snapshot and keep
 *	 it for all (UndoSeenNote), with the count c that it belongs to: S.
 * - With ProcArrayLock held exclusively, at time t, UndoSeenReadProcess is
 *	 called for each process.  Let m be the least of the count as it was before
 *	 (UndoSeenReadBegin) and the p of those that have an xmin, and "limit" the
 *	 oldest xmin of those that have an xmin but no p, and of replication slots.
 * Every snapshot that exists at t, or is taken later, then sees what is older
 * than the limit and seen by an S with c <= m: UndoSeenByAll.
 *
 * Proof
 *	  A snapshot is taken with ProcArrayLock held, so it belongs to a value of
 *	  the count (also if the server reuses the last, which it does if the count is
 *	  the same).  It takes for ended those transactions, with the subtransactions,
 *	  that had left the proc array by then: each has an xid below the snapshot's
 *	  xmax, for latestCompletedXid is raised with the count.  None of those ever
 *	  runs again, so with a higher count it takes more for ended.
 *	  - A snapshot that exists at t is in a process with an xmin.  If that has a
 *		p, it was taken after p was stored, so belongs to p or more, and
 *		c <= m <= p: what S takes for ended it does, too.
 *	  - If it has none, the snapshot's xmin is not older than the limit.
 *	  - A copy is on its way to another process: that is done with ProcArrayLock
 *		held, while the snapshot's own process has it; so at t it is in
 *		one of the two, and the one that gets it has no p.
 *	  - One that is taken after t belongs to the count at t or more, which is
 *		not less than any p, nor than m.
 *	  - A slot that is made later gives out no snapshot that does not see what
 *		had ended when it was made.
 *	  A p that is out of date only makes m smaller.  No snapshot outlives its
 *	  transaction, except in processes of the kinds that have no p:
 *	  - parallel workers;
 *	  - walsenders, which build snapshots from WAL;
 *	  - background workers other than ours, as we cannot know what they do;
 *	  - a backend that imports a snapshot, from SET TRANSACTION SNAPSHOT to the
 *		end of that transaction.
 *	  A process that has taken over a slot has no p until its pid is in the slot.
 *
 *	  S is that of a process which does not take its own transactions for
 *	  running, so their xids are added.  It is not noted if it does not know of all
 *	  subtransactions that are running.
 *
 * What it is not
 *	  Not all xids before one that all see have ended.  So what standbys are
 *	  told with such an xid (UndoTellStandbys) does not make that known to them
 *	  for older ones, and has to be told again.  A standby's snapshots are in
 *	  conflict if their xmin is not newer, and so are all, as long as the forgotten
 *	  transaction is open.  Where a standby is connected nothing is therefore
 *	  dropped for this reason.  (One that gives feedback would not allow it.)
 *	  An extent's newest_xid does not stand for all xids in it (release.c).
 *
 * Which are kept
 *	  UNDO_SEEN of them, the older the farther apart, for there may be a
 *	  statement that takes long.  They do not outlive the server.
 *
 * Lock order: ProcArrayLock, and UndoSeenShared.lock, each with nothing of
 * ours but the row's page locked, and nothing under them.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/parallel.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "undo/holders.h"
#include "undo/seen.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#define UNDO_SEEN			24

/* xids that an older one than this may belong to are not compared with it */
#define MAX_AGE				1000000000

typedef struct NotedSnapshot
{
	uint64		count;			/* it belongs to */
	FullTransactionId xmin;
	UndoSeen	seen;			/* without limit */
} NotedSnapshot;

typedef struct UndoSeenShared
{
	LWLockPadded lock;
	pg_atomic_uint64 newest;	/* count of the last in noted[] */
	int			n;
	NotedSnapshot noted[UNDO_SEEN]; /* by count, the oldest first */
} UndoSeenShared;

static UndoSeenShared *seen_shared = NULL;

/* is this process known to take all its snapshots itself? */
static bool own_worker = false;

Size
UndoSeenShmemSize(void)
{
	return sizeof(UndoSeenShared);
}

void
UndoSeenShmemInit(void)
{
	bool		found;
	int			tranche;

	seen_shared = ShmemInitStruct("inplace undo seen", UndoSeenShmemSize(), &found);
	if (found)
		return;
	memset(seen_shared, 0, sizeof(UndoSeenShared));
	tranche = LWLockNewTrancheId();
	LWLockRegisterTranche(tranche, "InplaceUndoSeen");
	LWLockInitialize(&seen_shared->lock.lock, tranche);
	NoLockRegister(NO_LOCK_SEEN, &seen_shared->lock.lock, 1, sizeof(LWLockPadded));
	pg_atomic_init_u64(&seen_shared->newest, 0);
}

/* ---------------- by each process, about itself ---------------- */

static UndoHolderSlot *
my_slot(void)
{
	return &undo_holders->slots[MyProc - ProcGlobal->allProcs].slot;
}

/*
 * The count as it is, or as it has been a moment ago; zero if it cannot be read
 * at once.
 */
static uint64
read_count(void)
{
#ifdef PG_HAVE_8BYTE_SINGLE_COPY_ATOMICITY
	return *(volatile uint64 *) &TransamVariables->xactCompletionCount;
#else
	return 0;
#endif
}

static bool
takes_own_snapshots(void)
{
	if (IsParallelWorker() || am_walsender)
		return false;
	return MyBackendType == B_BACKEND || MyBackendType == B_AUTOVAC_WORKER ||
		own_worker;
}

/*
 * The next process in this place of the proc array has no p, even if it has the
 * same pid.
 */
static void
forget_process(int code, Datum arg)
{
	my_slot()->ended_pid = 0;
}

/*
 * At the end of a transaction, when its xmin is gone from the proc array.
 */
void
UndoSeenEndTransaction(void)
{
	UndoHolderSlot *slot;

	if (undo_holders == NULL || MyProc == NULL ||
		MyProc - ProcGlobal->allProcs >= MaxBackends)
		return;
	slot = my_slot();
	if (likely(takes_own_snapshots()))
	{
		pg_atomic_write_u64(&slot->ended, read_count());
		if (unlikely(slot->ended_pid != MyProcPid))
		{
			on_shmem_exit(forget_process, (Datum) 0);
			pg_write_barrier();
			slot->ended_pid = MyProcPid;
		}
	}
	else
	{
		pg_atomic_write_u64(&slot->ended, 0);
		slot->ended_pid = 0;
	}
}

/*
 * Before a utility statement: one that imports a snapshot?  This is seen by
 * whoever sees the xmin that comes with that.
 */
void
UndoSeenBeforeUtility(Node *stmt)
{
	VariableSetStmt *set = (VariableSetStmt *) stmt;

	if (!IsA(stmt, VariableSetStmt) || set->kind != VAR_SET_MULTI ||
		strcmp(set->name, "TRANSACTION SNAPSHOT") != 0)
		return;
	if (undo_holders != NULL && MyProc != NULL &&
		MyProc - ProcGlobal->allProcs < MaxBackends)
		pg_atomic_write_u64(&my_slot()->ended, 0);
}

/*
 * By an undo worker.
 */
void
UndoSeenOwnWorker(void)
{
	own_worker = true;
}

/* ---------------- noting snapshots ---------------- */

static bool
add_xids(UndoSeen *seen, const TransactionId *xids, int n)
{
	if (seen->nxids + n > UNDO_SEEN_XIDS)
		return false;
	memcpy(seen->xids + seen->nxids, xids, n * sizeof(TransactionId));
	seen->nxids += n;
	return true;
}

/*
 * False if one cannot tell from it what is running.
 */
static bool
copy_snapshot(Snapshot snapshot, NotedSnapshot *noted)
{
	UndoSeen   *seen = &noted->seen;
	FullTransactionId next = ReadNextFullTransactionId();

	if (snapshot->snapshot_type != SNAPSHOT_MVCC ||
		snapshot->snapXactCompletionCount == 0 ||
		snapshot->takenDuringRecovery || snapshot->suboverflowed ||
		!TransactionIdIsNormal(snapshot->xmin))
		return false;
	noted->count = snapshot->snapXactCompletionCount;
	noted->xmin = FullTransactionIdFromU64(U64FromFullTransactionId(next) -
										   (uint32) (XidFromFullTransactionId(next) - snapshot->xmin));
	seen->xmin = snapshot->xmin;
	seen->xmax = snapshot->xmax;
	seen->limit = InvalidTransactionId;
	seen->nxids = 0;
	if (!add_xids(seen, snapshot->xip, snapshot->xcnt) ||
		!add_xids(seen, snapshot->subxip, snapshot->subxcnt))
		return false;
	if (TransactionIdIsValid(MyProc->xid) &&
		(MyProc->subxidStatus.overflowed ||
		 !add_xids(seen, &MyProc->xid, 1) ||
		 !add_xids(seen, MyProc->subxids.xids, MyProc->subxidStatus.count)))
		return false;
	qsort(seen->xids, seen->nxids, sizeof(TransactionId), xidComparator);
	return true;
}

/*
 * Make room for another, of the given count: the one goes that is missed least,
 * being near to its neighbors for its age.
 */
static void
make_room(uint64 count)
{
	NotedSnapshot *noted = seen_shared->noted;
	int			least = 1;
	double		least_gap = 0;

	if (seen_shared->n < UNDO_SEEN)
		return;
	/* (not the oldest, which has no neighbor on one side) */
	for (int i = 1; i < UNDO_SEEN; i++)
	{
		uint64		after = i + 1 < UNDO_SEEN ? noted[i + 1].count : count;
		uint64		before = noted[i - 1].count;
		double		gap = (double) (after - before) / (count - noted[i].count);

		if (i == 1 || gap < least_gap)
		{
			least = i;
			least_gap = gap;
		}
	}
	seen_shared->n--;
	memmove(&noted[least], &noted[least + 1],
			(seen_shared->n - least) * sizeof(NotedSnapshot));
}

/*
 * Take a snapshot, and keep what it sees, unless that has been done for the
 * same count.  In a transaction that has a snapshot.
 */
void
UndoSeenNote(void)
{
	static NotedSnapshot noted;

	if (!FirstSnapshotSet || IsInParallelMode() || HistoricSnapshotActive() ||
		read_count() == pg_atomic_read_u64(&seen_shared->newest))
		return;
	if (!copy_snapshot(GetLatestSnapshot(), &noted))
		return;

	LWLockAcquire(&seen_shared->lock.lock, LW_EXCLUSIVE);
	if (noted.count > pg_atomic_read_u64(&seen_shared->newest))
	{
		make_room(noted.count);
		seen_shared->noted[seen_shared->n++] = noted;
		pg_atomic_write_u64(&seen_shared->newest, noted.count);
	}
	LWLockRelease(&seen_shared->lock.lock);
}

/* ---------------- what all see ---------------- */

/*
 * Before the slots are looked at: one that is made later, and gone again when
 * they are looked at once more, may have been the source of a snapshot that
 * belongs to this count or more.
 */
void
UndoSeenReadBegin(UndoSeenRead *r)
{
	r->count = read_count();
	r->limit = InvalidTransactionId;
}

static void
lower_limit(UndoSeenRead *r, TransactionId xid)
{
	if (TransactionIdIsNormal(xid) &&
		(!TransactionIdIsValid(r->limit) ||
		 TransactionIdPrecedes(xid, r->limit)))
		r->limit = xid;
}

/*
 * The n-th process, which has this xmin.  With ProcArrayLock held exclusively,
 * from the first to the last.
 */
void
UndoSeenReadProcess(UndoSeenRead *r, int n, TransactionId xmin)
{
	uint64		ended = 0;

	if (!TransactionIdIsValid(xmin))
		return;
	if (n < MaxBackends)
	{
		UndoHolderSlot *slot = &undo_holders->slots[n].slot;

		if (slot->ended_pid == ProcGlobal->allProcs[n].pid)
		{
			pg_read_barrier();
			ended = pg_atomic_read_u64(&slot->ended);
		}
	}
	if (ended == 0)
		lower_limit(r, xmin);
	else if (ended < r->count)
		r->count = ended;
}

void
UndoSeenReadSlots(UndoSeenRead *r, TransactionId xmin)
{
	lower_limit(r, xmin);
}

/*
 * Would standbys have to cancel queries that have just begun?
 */
bool
UndoStandbyConnected(void)
{
	if (!XLogStandbyInfoActive())
		return false;
	for (int i = 0; i < max_wal_senders; i++)
	{
		volatile WalSnd *sender = &WalSndCtl->walsnds[i];

		if (sender->pid != 0 && WalSndMayFeedStandby(sender))
			return true;
	}
	return false;
}

/*
 * Which of the snapshots noted tells most.
 */
void
UndoSeenReadEnd(const UndoSeenRead *r, UndoSeen *seen)
{
	FullTransactionId next = ReadNextFullTransactionId();

	seen->xmax = InvalidTransactionId;
	if (UndoStandbyConnected())
		return;
	LWLockAcquire(&seen_shared->lock.lock, LW_SHARED);
	for (int i = seen_shared->n - 1; i >= 0; i--)
	{
		NotedSnapshot *noted = &seen_shared->noted[i];

		if (noted->count > r->count)
			continue;
		if (U64FromFullTransactionId(next) -
			U64FromFullTransactionId(noted->xmin) > MAX_AGE)
			break;
		memcpy(seen, &noted->seen,
			   offsetof(UndoSeen, xids) + noted->seen.nxids * sizeof(TransactionId));
		seen->limit = r->limit;
		break;
	}
	LWLockRelease(&seen_shared->lock.lock);
}

/*
 * Had the transaction, if it is one that has been, ended in the view of every
 * snapshot?
 */
bool
UndoSeenByAll(const UndoSeen *seen, TransactionId xid)
{
	if (!TransactionIdIsValid(seen->xmax) || !TransactionIdIsNormal(xid))
		return false;
	if (TransactionIdIsValid(seen->limit) &&
		!TransactionIdPrecedes(xid, seen->limit))
		return false;
	if (TransactionIdPrecedes(xid, seen->xmin))
		return true;
	return TransactionIdPrecedes(xid, seen->xmax) &&
		bsearch(&xid, seen->xids, seen->nxids, sizeof(TransactionId),
				xidComparator) == NULL;
}

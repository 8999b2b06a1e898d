/*-------------------------------------------------------------------------
 *
 * holders.c
 *	  Which snapshots may still need an older version of a row.
 *
 * Of another backend one knows the xmin, which says that its snapshots see all
 * that committed before; what they do not see cannot be told from it, and they
 * may be many.  So versions that are newer than a backend's xmin have to be
 * kept for it, however old its xmin is.  This file lets a transaction that has
 * one snapshot only say so, and which: a version that was made after that and
 * replaced before all other snapshots were taken is then needed by nobody.
 *
 * What is published
 *	  Slot n belongs to the process with the n-th entry of the proc array.  It
 *	  has the bounds of the snapshot of a REPEATABLE READ transaction, from
 *	  its first query (or COPY) on until its end.  That is a promise: there is
 *	  no other snapshot with which the process looks at tables.
 *	  1. A REPEATABLE READ transaction gets the same snapshot for each query.
 *		 SERIALIZABLE ones do so too, but have to meet the writers that they do
 *		 not see, so they publish nothing.
 *	  2. GetLatestSnapshot gives others.  Foreign key checks use it, in a
 *		 transaction that has changed something: while a process has an xid
 *		 what it has published does not count.  Utility statements do: the
 *		 slot is empty during any that is not known to need no such snapshot.
 *	  3. A function in C may do so (currtid2 does).  So a walk back with a
 *		 snapshot that is not the published one withdraws that, and is refused
 *		 if something that it might need can have been dropped.
 *	  4. Parallel workers publish nothing.  Nor does who imports a snapshot,
 *		 before its own first query.
 *
 * What the bounds mean
 *	  UndoHoldersRead gives a set of snapshots and an xid, all_see, such that
 *	  every snapshot that exists then, or is taken later, is in that set or has
 *	  an xmin that is not older than all_see.  Nothing that happens afterwards
 *	  changes that, so the bounds may be used at any later time.
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
 *	  - If that process has published and has no xid, then this is the
 *		published one: any other was taken after the slot had been emptied, or
 *		the xid assigned, so that was to be seen at t2, too (taking a snapshot
 *		takes ProcArrayLock).
 *	  - If not, all_see is not newer than its xmin.
 *	  - Replication slots are looked at before and after: what leaves a slot
 *		for a process does so after that process has the xmin.
 *	  Standbys without a slot or feedback are told, before anything is dropped
 *	  that they might need (squeeze.c, discard.c).
 *
 * Lock order: the row's page may be locked.  ProcArrayLock is taken with
 * nothing else of ours locked, and nothing is taken under it.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/parallel.h"
#include "nodes/parsenodes.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "undo/holders.h"

typedef struct HolderSlot
{
	pg_atomic_uint32 xmin;		/* invalid if nothing is published */
	pg_atomic_uint32 xmax;
	pg_atomic_uint32 passed;	/* newest all_see given out that relies on it;
								 * written with ProcArrayLock exclusive */
} HolderSlot;

typedef struct HoldersShared
{
	pg_atomic_uint32 count;		/* slots with something in them */
	HolderSlot	slots[FLEXIBLE_ARRAY_MEMBER];
} HoldersShared;

bool		inplace_squeeze_undo = true;

static HoldersShared *shared = NULL;

/* what this process has published, if published */
static bool published = false;
static bool published_before = false;	/* ... in this transaction */
static UndoHeldSnapshot mine;

/* how often UndoHoldSuspend has been called: nothing may be published then */
static int	suspended = 0;

Size
UndoHoldersShmemSize(void)
{
	return add_size(offsetof(HoldersShared, slots),
					mul_size(MaxBackends, sizeof(HolderSlot)));
}

void
UndoHoldersShmemInit(void)
{
	bool		found;

	shared = ShmemInitStruct("inplace undo holders", UndoHoldersShmemSize(),
							 &found);
	if (found)
		return;
	pg_atomic_init_u32(&shared->count, 0);
	for (int i = 0; i < MaxBackends; i++)
	{
		pg_atomic_init_u32(&shared->slots[i].xmin, InvalidTransactionId);
		pg_atomic_init_u32(&shared->slots[i].xmax, InvalidTransactionId);
		pg_atomic_init_u32(&shared->slots[i].passed, InvalidTransactionId);
	}
}

/* ---------------- about ourselves ---------------- */

static HolderSlot *
my_slot(void)
{
	return &shared->slots[MyProc - ProcGlobal->allProcs];
}

static void
withdraw(void)
{
	if (!published)
		return;
	pg_atomic_write_u32(&my_slot()->xmin, InvalidTransactionId);
	pg_atomic_fetch_sub_u32(&shared->count, 1);
	published = false;
}

/*
 * Called before each query, and each statement that is like one.
 */
void
UndoHoldPublish(void)
{
	Snapshot	snapshot;

	if (likely(XactIsoLevel != XACT_REPEATABLE_READ) || published ||
		!FirstSnapshotSet || shared == NULL)
		return;
	if (!inplace_squeeze_undo || suspended > 0 || IsParallelWorker() ||
		RecoveryInProgress() || HistoricSnapshotActive() ||
		MyProc - ProcGlobal->allProcs >= MaxBackends)
		return;

	snapshot = GetTransactionSnapshot();
	mine.xmin = snapshot->xmin;
	mine.xmax = snapshot->xmax;
	if (!TransactionIdIsNormal(mine.xmin) || !TransactionIdIsNormal(mine.xmax))
		return;
	pg_atomic_write_u32(&my_slot()->xmax, mine.xmax);
	if (!published_before)
		pg_atomic_write_u32(&my_slot()->passed, InvalidTransactionId);
	published_before = true;
	pg_write_barrier();
	pg_atomic_write_u32(&my_slot()->xmin, mine.xmin);
	pg_atomic_fetch_add_u32(&shared->count, 1);
	published = true;
}

/*
 * Statements that take no snapshot but the transaction's.  Queries in them,
 * and in the functions that they call, are looked at by themselves.
 */
static bool
takes_no_snapshot(Node *stmt)
{
	switch (nodeTag(stmt))
	{
		case T_TransactionStmt:
		case T_DeclareCursorStmt:
		case T_FetchStmt:
		case T_ClosePortalStmt:
		case T_VariableSetStmt:
		case T_VariableShowStmt:
		case T_PrepareStmt:
		case T_ExecuteStmt:
		case T_DeallocateStmt:
		case T_ExplainStmt:
		case T_LockStmt:
			return true;
		case T_CopyStmt:
			return !((CopyStmt *) stmt)->is_from;
		default:
			return false;
	}
}

/*
 * Before a utility statement; true if UndoHoldResume is to be called after it.
 */
bool
UndoHoldBeforeUtility(Node *stmt)
{
	if (takes_no_snapshot(stmt))
	{
		if (IsA(stmt, CopyStmt))
			UndoHoldPublish();
		return false;
	}
	UndoHoldSuspend();
	return true;
}

/*
 * For the time in which other snapshots are used.  (If that ends with an error
 * UndoHoldResume need not be called: the rest of the session then publishes
 * nothing until a transaction is rolled back.)
 */
void
UndoHoldSuspend(void)
{
	withdraw();
	suspended++;
}

void
UndoHoldResume(void)
{
	/* zero if the transaction has ended, with an error, in between */
	if (suspended > 0)
		suspended--;
}

/*
 * We are about to go back past a version with an MVCC snapshot.  If it is not
 * the published one, that must not count any more, and all that was dropped
 * before has to be what this one sees as replaced.
 */
void
UndoHoldCheckSnapshot(Snapshot snapshot)
{
	TransactionId passed;

	if (likely(!published) ||
		(snapshot->xmin == mine.xmin && snapshot->xmax == mine.xmax))
		return;

	withdraw();
	/* what has been concluded from the slot is there to be seen now */
	LWLockAcquire(ProcArrayLock, LW_SHARED);
	passed = pg_atomic_read_u32(&my_slot()->passed);
	LWLockRelease(ProcArrayLock);
	if (TransactionIdIsValid(passed) &&
		TransactionIdPrecedes(snapshot->xmin, passed))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not use a second snapshot in a REPEATABLE READ transaction"),
				 errdetail("Row versions between the two may have been dropped."),
				 errhint("The transaction might succeed if retried, or with \"inplace.squeeze_undo\" off.")));
}

static void
holders_xact_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
			suspended = 0;
			/* FALLTHROUGH */
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PREPARE:
			withdraw();
			published_before = false;
			break;
		default:
			break;
	}
}

/*
 * Once, by the postmaster.
 */
void
UndoHoldersRegister(void)
{
	RegisterXactCallback(holders_xact_callback, NULL);
}

/* ---------------- about everybody ---------------- */

bool
UndoHoldersAny(void)
{
	return inplace_squeeze_undo && pg_atomic_read_u32(&shared->count) > 0;
}

static void
lower(TransactionId *bound, TransactionId xid)
{
	if (TransactionIdIsNormal(xid) && TransactionIdPrecedes(xid, *bound))
		*bound = xid;
}

/*
 * What the n-th process needs.  True if it is a published snapshot.
 */
static bool
read_process(UndoBounds *b, int n)
{
	PGPROC	   *proc = &ProcGlobal->allProcs[n];
	TransactionId xmin = proc->xmin;

	if (proc->databaseId != MyDatabaseId && OidIsValid(proc->databaseId) &&
		!(proc->statusFlags & PROC_AFFECTS_ALL_HORIZONS))
		return false;
	/* as for the horizon */
	if (proc->statusFlags & PROC_IN_VACUUM)
		return false;

	if (n < MaxBackends && b->nheld < UNDO_MAX_HOLDERS &&
		!TransactionIdIsValid(proc->xid))
	{
		UndoHeldSnapshot *held = &b->held[b->nheld];

		held->xmin = pg_atomic_read_u32(&shared->slots[n].xmin);
		pg_read_barrier();
		held->xmax = pg_atomic_read_u32(&shared->slots[n].xmax);
		if (TransactionIdIsValid(held->xmin))
		{
			b->nheld++;
			return true;
		}
	}
	lower(&b->all_see, xmin);
	return false;
}

void
UndoHoldersRead(UndoBounds *b)
{
	TransactionId slot_before;
	TransactionId slot_after;
	TransactionId catalog_xmin;
	HolderSlot *slots[UNDO_MAX_HOLDERS];

	b->nheld = 0;
	ProcArrayGetReplicationSlotXmin(&slot_before, &catalog_xmin);
	b->all_see = GetOldestActiveTransactionId();

	LWLockAcquire(ProcArrayLock, LW_EXCLUSIVE);
	for (int i = 0; i < ProcGlobal->allProcCount; i++)
		if (read_process(b, i))
			slots[b->nheld - 1] = &shared->slots[i];
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
}

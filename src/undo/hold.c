/*-------------------------------------------------------------------------
 *
 * hold.c
 *	  What a session says about its own snapshots, so that others know what it
 *	  may need (holders.c).
 *
 * REPEATABLE READ and SERIALIZABLE
 *	  From its first query (or COPY) on, until its end, a transaction publishes
 *	  the bounds of its snapshot: there is no other with which it looks at
 *	  tables.
 *	  1. It gets the same snapshot for each query.
 *	  2. GetLatestSnapshot gives others.  Foreign key checks use it, in a
 *		 transaction that has changed something: while a process has an xid
 *		 what it has published counts only when the session is reported to be
 *		 idle.  (Functions of users may run then, see below; that is the
 *		 end of publishing, and so is a cursor with such a snapshot, opened by
 *		 a function that a check calls.)  Utility statements do: the
 *		 slot is empty during any that is not known to need no such snapshot.
 *	  3. A function in C may do so (currtid2 does).  So a walk back with a
 *		 snapshot that is not the published one withdraws that, and is refused
 *		 if something that it might need can have been dropped.
 *	  4. Parallel workers publish nothing.  Nor does a transaction that imports a
 *		 snapshot, before its own first query.
 *
 * READ COMMITTED
 *	  Each query gets a new snapshot, and keeps it for as long as its portal
 *	  is open.  What is published is how new the newest is (newest_xmax).  That
 *	  is complete at any time at which no snapshot can have been taken since it
 *	  was written, which is so
 *	  1. while the session is reported to be idle in a transaction: its
 *		 snapshots are those of open portals then, and all that were started have
 *		 been through ExecutorStart.  Before it takes another snapshot it
 *		 reports to be running.  (Without track_activities it says neither.)
 *	  2. while "closed" is set: in ExecutorRun of the query of a client's unnamed
 *		 portal, if it only reads and calls no function but the server's own,
 *		 those do not take snapshots but for catalogs.
 *	  User-defined functions take snapshots: when one is about to be called
 *	  "closed" is taken back, for the object access hook is called before.  The
 *	  same for a session that is idle (a Describe message can have the constraint
 *	  of a domain checked): it takes back all, for the rest of the transaction.
 *	  That is also done for snapshots that do not go through ExecutorStart and
 *	  outlive their command: exported ones, and whatever the function of a
 *	  Function Call message does.
 *
 *	  A row that has been moved since the snapshot was taken is followed to its new
 *	  place by a query that locks rows, and by WHERE CURRENT OF of a cursor.  The
 *	  snapshot sees nothing there, but what is there may be needed.  "follows" says
 *	  that the transaction has run such a query, or has had a portal that is not the
 *	  client's unnamed one, or that one for a part of its rows.  (While that one is open
 *	  and the session idle it counts for a cursor, too.)  A transaction that is not READ
 *	  COMMITTED follows a row for FOR KEY SHARE only, as of a foreign key's check: unless
 *	  it is READ ONLY it "shares keys".
 *
 * Both
 *	  How many queries are open, cursors included: a scan of theirs may have read where
 *	  in an index it goes on.  While none is, and the session is idle, nothing has.
 *
 *	  A function in C, or of an operator class, may be noticed only by the
 *	  snapshot that it uses, in ExecutorStart or UndoHoldCheckSnapshot.  Then
 *	  all is taken back, too, and every snapshot of the transaction that is newer
 *	  than what had been published is refused from then on if something that it
 *	  might need can have been dropped before.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/parallel.h"
#include "access/transam.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_proc.h"
#include "executor/executor.h"
#include "nodes/parsenodes.h"
#include "own.h"
#include "process_exit.h"
#include "storage/proc.h"
#include "tcop/pquery.h"
#include "undo/hold.h"
#include "undo/holders.h"
#include "undo/seen.h"
#include "utils/syscache.h"
#include "xact_end.h"

static ExecutorStart_hook_type prev_ExecutorStart_hook = NULL;
static ExecutorEnd_hook_type prev_ExecutorEnd_hook = NULL;
static object_access_hook_type prev_object_access_hook = NULL;

/* what this process has published of a transaction's snapshot, if published */
static bool published = false;
static bool published_before = false;	/* ... in this transaction */
static bool publish_no_more = false;
static UndoHeldSnapshot mine;

/* the transaction that has used its slot */
static LocalTransactionId slot_lxid = InvalidLocalTransactionId;

/* READ COMMITTED: as in our slot, or as it was before it was taken back */
static bool noted = false;
static bool taken_back = false;
static TransactionId noted_xmax;
static TransactionId final_passed;	/* what had been given out by then */

/* how often UndoHoldSuspend has been called: nothing may be published then */
static int	suspended = 0;

/* queries that this process has started and not ended */
static uint32 open_queries = 0;
static bool uncounted = false;	/* and some from before the extension was
								 * there? */

static UndoHolderSlot *
my_slot(void)
{
	return &undo_holders->slots[MyProc - ProcGlobal->allProcs].slot;
}

static bool
may_use_slot(void)
{
	return undo_holders != NULL && MyProc != NULL &&
		!IsParallelWorker() && !RecoveryInProgress() &&
		!HistoricSnapshotActive() &&
		MyProc - ProcGlobal->allProcs < MaxBackends;
}

static void
withdraw(void)
{
	if (!published)
		return;
	pg_atomic_write_u32(&my_slot()->xmin, InvalidTransactionId);
	pg_atomic_fetch_sub_u32(&undo_holders->count, 1);
	published = false;
}

/* the next process in this place would have it for its own snapshot */
static void
forget_slot(void)
{
	withdraw();
	pg_atomic_write_u32(&my_slot()->lxid, InvalidLocalTransactionId);
}

/* what was given out to rely on an earlier transaction does not count */
static void
begin_use(void)
{
	static bool registered = false;

	if (unlikely(!registered))
	{
		InplaceForgetAtExit(forget_slot);
		registered = true;
	}
	if (slot_lxid == ProcLxid(MyProc))
		return;
	slot_lxid = ProcLxid(MyProc);
	pg_atomic_write_u32(&my_slot()->passed, InvalidTransactionId);
}

/*
 * The newest all_see that others have got while they relied on our slot; to be
 * called when the slot does not count any more.
 */
static TransactionId
get_passed(void)
{
	TransactionId passed;

	/* what has been concluded from the slot is there to be seen now */
	LWLockAcquire(ProcArrayLock, LW_SHARED);
	passed = pg_atomic_read_u32(&my_slot()->passed);
	LWLockRelease(ProcArrayLock);
	return passed;
}

/*
 * We use a snapshot that nobody could know of.  All that was dropped has to be
 * what this one sees as replaced.
 */
static void
check_unknown_snapshot(Snapshot snapshot, TransactionId passed)
{
	if (TransactionIdIsValid(passed) &&
		TransactionIdPrecedes(snapshot->xmin, passed))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not use a second snapshot in a transaction that is known to have one"),
				 errdetail("Row versions between the two may have been dropped."),
				 errhint("The transaction might succeed if retried, or with \"inplace.squeeze_undo\" off.")));
}

/* ---------------- REPEATABLE READ, SERIALIZABLE ---------------- */

static bool
reported_idle(void)
{
	return MyBEEntry != NULL &&
		MyBEEntry->st_state == STATE_IDLEINTRANSACTION;
}

/*
 * A query is about to be started with this snapshot.  If it is that of a portal, it
 * is there until that is closed, also when the session is idle.
 */
static void
note_other_snapshot(Snapshot snapshot)
{
	Snapshot	own;

	if (snapshot == NULL || snapshot->snapshot_type != SNAPSHOT_MVCC ||
		ActivePortal == NULL || ActivePortal->status != PORTAL_DEFINED)
		return;
	own = GetTransactionSnapshot();
	if (snapshot->xmin == own->xmin && snapshot->xmax == own->xmax)
		return;
	withdraw();
	publish_no_more = true;
}

/*
 * Called before each query, and each statement that is like one.
 */
static void
publish(void)
{
	Snapshot	snapshot;

	if (likely(!IsolationUsesXactSnapshot()) || published ||
		publish_no_more || !FirstSnapshotSet)
		return;
	if (!inplace_squeeze_undo || suspended > 0 || !may_use_slot())
		return;
	if (reported_idle())
	{
		/* some function's; see the file header */
		publish_no_more = true;
		return;
	}

	snapshot = GetTransactionSnapshot();
	mine.xmin = snapshot->xmin;
	mine.xmax = snapshot->xmax;
	if (!TransactionIdIsNormal(mine.xmin) || !TransactionIdIsNormal(mine.xmax))
		return;
	pg_atomic_write_u32(&my_slot()->xmax, mine.xmax);
	pg_atomic_write_u32(&my_slot()->serializable, IsolationIsSerializable());

	/*
	 * what is only read now is so up to the end; a subtransaction may be
	 * alone in that
	 */
	pg_atomic_write_u32(&my_slot()->shares_keys,
						!(XactReadOnly && GetCurrentTransactionNestLevel() == 1));
	my_slot()->status = MyBEEntry;
	begin_use();
	pg_write_barrier();
	pg_atomic_write_u32(&my_slot()->xmin, mine.xmin);
	pg_atomic_fetch_add_u32(&undo_holders->count, 1);
	published = published_before = true;
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
	UndoSeenBeforeUtility(stmt);
	if (takes_no_snapshot(stmt))
	{
		if (IsA(stmt, CopyStmt))
			publish();
		return false;
	}
	UndoHoldSuspend();
	return true;
}

/*
 * For the time in which other snapshots are used.  The caller calls UndoHoldResume
 * after an error, too: that may end a subtransaction only, and the session would
 * publish nothing any more.
 */
void
UndoHoldSuspend(void)
{
	withdraw();
	if (noted)
		pg_atomic_write_u32(&my_slot()->closed, 0);
	suspended++;
}

void
UndoHoldResume(void)
{
	/* zero if the transaction has ended, with an error, in between */
	if (suspended > 0)
		suspended--;
}

/* ---------------- READ COMMITTED ---------------- */

/*
 * Nothing that we have said counts for the rest of the transaction.
 */
static void
take_back(void)
{
	if (!noted)
		return;
	pg_atomic_write_u32(&my_slot()->lxid, InvalidLocalTransactionId);
	noted = false;
	taken_back = true;
	final_passed = get_passed();
}

static void
check_if_unknown(Snapshot snapshot)
{
	if (taken_back && TransactionIdPrecedes(noted_xmax, snapshot->xmax))
		check_unknown_snapshot(snapshot, final_passed);
}

/* may others believe that we take no snapshot? */
static bool
said_to_take_none(void)
{
	return pg_atomic_read_u32(&my_slot()->closed) != 0 ||
		MyBEEntry->st_state == STATE_IDLEINTRANSACTION;
}

/*
 * May the query, or another that names its cursor, go on to where a row was moved?
 */
static bool
may_follow(const QueryDesc *queryDesc)
{
	return ActivePortal == NULL || ActivePortal->name[0] != '\0' ||
		queryDesc->plannedstmt->rowMarks != NIL;
}

/*
 * A query is about to be started with this snapshot.
 */
static void
note_snapshot(Snapshot snapshot, bool follows)
{
	UndoHolderSlot *slot;

	if (snapshot == NULL || snapshot->snapshot_type != SNAPSHOT_MVCC ||
		!TransactionIdIsNormal(snapshot->xmax))
		return;
	if (noted)
	{
		if (follows)
			pg_atomic_write_u32(&my_slot()->follows, 1);
		if (!TransactionIdPrecedes(noted_xmax, snapshot->xmax))
			return;
		if (said_to_take_none())
			take_back();
		else
		{
			noted_xmax = snapshot->xmax;
			pg_atomic_write_u32(&my_slot()->newest_xmax, noted_xmax);
			return;
		}
	}
	if (taken_back)
	{
		/* now, for parallel workers do not look */
		check_if_unknown(snapshot);
		return;
	}

	if (!may_use_slot() || MyBEEntry == NULL || MyBackendType != B_BACKEND)
		return;
	slot = my_slot();
	begin_use();
	noted_xmax = snapshot->xmax;
	pg_atomic_write_u32(&slot->newest_xmax, noted_xmax);
	pg_atomic_write_u32(&slot->closed, 0);
	pg_atomic_write_u32(&slot->follows, follows);
	slot->status = MyBEEntry;
	pg_write_barrier();
	pg_atomic_write_u32(&slot->lxid, ProcLxid(MyProc));
	noted = true;
}

/*
 * Functions, types and so on that do not come with the server are listed in a
 * plan.
 */
static bool
calls_own_functions_only(const PlannedStmt *stmt)
{
	ListCell   *lc;

	if (stmt->commandType != CMD_SELECT || stmt->rowMarks != NIL ||
		stmt->hasModifyingCTE)
		return false;
	foreach(lc, stmt->invalItems)
	{
		int			cache = ((PlanInvalItem *) lfirst(lc))->cacheId;

		if (cache == PROCOID || cache == TYPEOID)
			return false;
	}
	return true;
}

/*
 * Is it the client that runs the query of its unnamed portal?  A function can fetch
 * from that portal, too.
 */
static bool
is_clients_query(QueryDesc *queryDesc)
{
	return ActivePortal != NULL && ActivePortal->name[0] == '\0' &&
		ActivePortal->queryDesc == queryDesc &&
		ActivePortal->strategy == PORTAL_ONE_SELECT &&
		(queryDesc->dest->mydest == DestRemote ||
		 queryDesc->dest->mydest == DestRemoteExecute) &&
		MyBEEntry->st_state == STATE_RUNNING;
}

/*
 * Before a query is run, or as much of it as brings some rows.  The result is for
 * UndoHoldAfterRun.
 */
bool
UndoHoldBeforeRun(QueryDesc *queryDesc, bool some_rows)
{
	publish();
	if (!noted || suspended > 0 || !inplace_squeeze_undo ||
		!is_clients_query(queryDesc) ||
		!calls_own_functions_only(queryDesc->plannedstmt))
		return false;
	/* the portal may be left on a row, and be a cursor then */
	if (some_rows)
		pg_atomic_write_u32(&my_slot()->follows, 1);
	/* after newest_xmax */
	pg_write_barrier();
	pg_atomic_write_u32(&my_slot()->closed, 1);
	return true;
}

void
UndoHoldAfterRun(bool closed)
{
	UndoHoldNoteExport();
	/* taking a snapshot takes a lock, so this is seen before that */
	if (closed)
		pg_atomic_write_u32(&my_slot()->closed, 0);
}

/*
 * After whatever may have exported a snapshot.
 */
void
UndoHoldNoteExport(void)
{
	if (noted && XactHasExportedSnapshots())
		take_back();
}

/*
 * How many queries are open.  Those that an error in a subtransaction has ended are
 * counted on, up to the end of the transaction.
 */
static void
count_queries(uint32 n)
{
	open_queries = n;
	if (inplace_prune_between && undo_holders != NULL && MyProc != NULL &&
		MyProc - ProcGlobal->allProcs < MaxBackends)
		pg_atomic_write_u32(&my_slot()->open_queries, n + uncounted);
}

static void
note_query(QueryDesc *queryDesc, int eflags)
{
	if (!InplaceInstalledHere())
		uncounted = true;
	else
	{
		count_queries(open_queries + 1);
		if (IsolationUsesXactSnapshot())
			note_other_snapshot(queryDesc->snapshot);
		else
			note_snapshot(queryDesc->snapshot, may_follow(queryDesc));
	}
	if (prev_ExecutorStart_hook)
		prev_ExecutorStart_hook(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);
}

static void
note_end_of_query(QueryDesc *queryDesc)
{
	if (prev_ExecutorEnd_hook)
		prev_ExecutorEnd_hook(queryDesc);
	else
		standard_ExecutorEnd(queryDesc);
	if (InplaceInstalledHere() && open_queries > 0)
		count_queries(open_queries - 1);
}

/*
 * A function is about to be called.  For that of a Function Call message the
 * snapshot is there already.
 */
static void
note_function_call(ObjectAccessType access, Oid classId, Oid objectId,
				   int subId, void *arg)
{
	if (prev_object_access_hook)
		prev_object_access_hook(access, classId, objectId, subId, arg);
	/* (nothing is noted but where the extension is installed) */
	if (access != OAT_FUNCTION_EXECUTE ||
		(!noted && !(IsolationUsesXactSnapshot() && InplaceInstalledHere())))
		return;
	if (IsolationUsesXactSnapshot() && reported_idle() &&
		objectId >= FirstUnpinnedObjectId)
	{
		withdraw();
		publish_no_more = true;
	}
	if (!noted)
		return;
	if (MyBEEntry->st_state == STATE_FASTPATH || !pgstat_track_activities)
		take_back();
	else if (objectId >= FirstUnpinnedObjectId)
	{
		if (pg_atomic_read_u32(&my_slot()->closed) != 0)
			pg_atomic_write_u32(&my_slot()->closed, 0);
		else if (MyBEEntry->st_state == STATE_IDLEINTRANSACTION)
			take_back();
	}
}

/* ---------------- both ---------------- */

/*
 * We are about to go back past a version with an MVCC snapshot.  If it is none
 * that others can know of, what we have published must not count any more.
 */
void
UndoHoldCheckSnapshot(Snapshot snapshot)
{
	if (published_before)
	{
		if (snapshot->xmin == mine.xmin && snapshot->xmax == mine.xmax)
			return;
		withdraw();
		check_unknown_snapshot(snapshot, get_passed());
	}
	else if (noted || taken_back)
	{
		if (likely(!TransactionIdPrecedes(noted_xmax, snapshot->xmax)))
			return;
		take_back();
		check_if_unknown(snapshot);
	}
}

/*
 * We are about to look for rows with a snapshot.  One that needed a row may find
 * nothing any more where it was (row/between.c), so what may have been dropped is
 * asked now.  While we have an xid and are running nobody relies on what we have
 * published; so foreign key checks, which have other snapshots, leave it as it is.
 */
void
UndoHoldCheckScan(Snapshot snapshot)
{
	if (!inplace_prune_between || likely(!published_before && !noted && !taken_back))
		return;
	if (snapshot == NULL || snapshot->snapshot_type != SNAPSHOT_MVCC ||
		!TransactionIdIsNormal(snapshot->xmax) ||
		TransactionIdIsValid(MyProc->xid))
		return;
	UndoHoldCheckSnapshot(snapshot);
}

/*
 * The same where a scan's snapshot is not known yet, but taken to be the active one.
 * The planner's scans of the ends of an index come here with the snapshot of the
 * planning, which ends before its query's is noted.  While we have not said that we
 * take none, new ones are nothing to wonder at.
 */
void
UndoHoldCheckActive(void)
{
	if (inplace_prune_between && ActiveSnapshotSet() &&
		(!noted || said_to_take_none()))
		UndoHoldCheckScan(GetActiveSnapshot());
}

static void
hold_xact_callback(XactEvent event, void *arg)
{
	if (!XactIsLeft(event))
		return;
	if (XactIsRolledBack(event))
		suspended = 0;
	withdraw();
	if (noted)
		pg_atomic_write_u32(&my_slot()->lxid, InvalidLocalTransactionId);
	noted = taken_back = published_before = publish_no_more = false;
	slot_lxid = InvalidLocalTransactionId;
	if (open_queries > 0 || uncounted)
	{
		uncounted = false;
		count_queries(0);
	}
	UndoSeenEndTransaction();
}

/*
 * Once, by the postmaster.
 */
void
UndoHoldInit(void)
{
	RegisterXactCallback(hold_xact_callback, NULL);
	prev_ExecutorStart_hook = ExecutorStart_hook;
	ExecutorStart_hook = note_query;
	prev_ExecutorEnd_hook = ExecutorEnd_hook;
	ExecutorEnd_hook = note_end_of_query;
	prev_object_access_hook = object_access_hook;
	object_access_hook = note_function_call;
}

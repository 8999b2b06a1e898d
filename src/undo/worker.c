/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  The processes that give undo back: a launcher, and a worker for each
 *	  database that has any.
 *
 * The launcher sleeps until somebody takes an extent of a database that has
 * no worker (UndoWorkerWakeup), or a worker ends, and then starts a worker
 * for each database with extents in use.  After the start of the server,
 * when shared memory knows of no extents, it sends a worker to every
 * database once, to see if there is undo from before.
 *
 * A worker looks every inplace.undo_worker_delay for something to do
 * (discard.c), and ends when there has been no undo for a while.  There are at
 * most inplace.max_undo_workers at a time; if more databases want one, a worker
 * that has had its turn makes room (UndoShared.yield).
 *
 * A database that is being dropped, copied, renamed or moved must not have
 * anybody connected: UndoWorkerDetachDatabase.
 *
 * Shared state: the slots in UndoShared.workers, under workers_lock.  The
 * launcher fills a slot (dboid) and registers the worker, which puts in its
 * pid and, in the end, clears the slot.  A worker that finds its slot not
 * meant for it leaves at once.  No other lock is taken under workers_lock.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include <signal.h>

#include "access/htup_details.h"
#include "catalog/pg_database.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "undo/space.h"
#include "utils/backend_status.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "vacuum/freeze_stats.h"

/* a worker of a database without undo stays for that long */
#define LINGER_MS			10000
/* and one that others wait for may stay at least that long */
#define TURN_MS				2000
/* time between two workers of the same database */
#define RESTART_MS			1000
/* how long a detached database is left alone */
#define DETACH_MS			10000
/* the timeline of adaptive freezing wants to know where WAL is this often */
#define TIMELINE_MS			5000

int			inplace_undo_worker_delay = 500;
int			inplace_max_undo_workers = 3;

/* what the launcher knows of a database */
typedef struct DatabaseEntry
{
	Oid			dboid;
	bool		visit;			/* has not been looked at since the start */
	bool		wanted;			/* has extents in use */
	TimestampTz last_start;
} DatabaseEntry;

static BackgroundWorkerHandle *handles[UNDO_MAX_WORKERS];
static DatabaseEntry *databases = NULL;
static int	ndatabases = 0;
static int	max_databases = 0;

static int	my_slot = -1;		/* of a worker */

/* ---------------- called from elsewhere ---------------- */

/*
 * Wake the launcher.  No lock: setting the latch of a process that has taken
 * over the launcher's PGPROC does no harm.
 */
void
UndoWorkerWakeup(void)
{
	Latch	   *latch = undo_shared->launcher_latch;

	if (latch != NULL)
		SetLatch(latch);
}

/* with workers_lock held */
static bool
DatabaseIsDetached(Oid dboid, TimestampTz now)
{
	for (int i = 0; i < UNDO_MAX_DETACHED; i++)
		if (undo_shared->detached[i].dboid == dboid &&
			undo_shared->detached[i].until > now)
			return true;
	return false;
}

/*
 * Put the database on the list, on the place of one that is not in force any
 * more (or else of the oldest).  With workers_lock held exclusively.
 */
static void
NoteDetached(Oid dboid, TimestampTz until)
{
	UndoDetached *place = &undo_shared->detached[0];

	for (int i = 0; i < UNDO_MAX_DETACHED; i++)
	{
		UndoDetached *d = &undo_shared->detached[i];

		if (d->dboid == dboid)
		{
			place = d;
			break;
		}
		if (d->until < place->until)
			place = d;
	}
	place->dboid = dboid;
	place->until = until;
}

/*
 * Ask the worker of the database to leave; by signal if it does not hear.
 * Returns false if there is none (any more).
 */
static bool
StopWorker(Oid dboid, bool by_signal)
{
	bool		found = false;

	LWLockAcquire(&undo_shared->workers_lock.lock, LW_EXCLUSIVE);
	for (int i = 0; i < UNDO_MAX_WORKERS; i++)
	{
		UndoWorkerSlot *slot = &undo_shared->workers[i];

		if (slot->dboid != dboid)
			continue;
		found = true;
		slot->stop = true;
		if (slot->pid != 0 && by_signal)
			kill(slot->pid, SIGTERM);
		else if (slot->latch != NULL)
			SetLatch(slot->latch);
	}
	LWLockRelease(&undo_shared->workers_lock.lock);
	return found;
}

/*
 * Get the worker out of a database, and keep the launcher from sending another
 * for a while.  Returns when it has gone, or cannot be made to go.
 */
void
UndoWorkerDetachDatabase(Oid dboid)
{
	TimestampTz start = GetCurrentTimestamp();

	if (undo_shared == NULL || !OidIsValid(dboid))
		return;

	LWLockAcquire(&undo_shared->workers_lock.lock, LW_EXCLUSIVE);
	NoteDetached(dboid, TimestampTzPlusMilliseconds(start, DETACH_MS));
	LWLockRelease(&undo_shared->workers_lock.lock);

	while (StopWorker(dboid,
					  TimestampDifferenceExceeds(start, GetCurrentTimestamp(), 200)))
	{
		CHECK_FOR_INTERRUPTS();
		if (TimestampDifferenceExceeds(start, GetCurrentTimestamp(), DETACH_MS))
			break;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 10, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}

void
UndoWorkerReattachDatabase(Oid dboid)
{
	if (undo_shared == NULL || !OidIsValid(dboid))
		return;
	LWLockAcquire(&undo_shared->workers_lock.lock, LW_EXCLUSIVE);
	for (int i = 0; i < UNDO_MAX_DETACHED; i++)
		if (undo_shared->detached[i].dboid == dboid)
			undo_shared->detached[i].until = 0;
	LWLockRelease(&undo_shared->workers_lock.lock);
	UndoWorkerWakeup();
}

void
UndoWorkerRegister(void)
{
	BackgroundWorker worker;

	/* pg_upgrade wants to be alone */
	if (IsBinaryUpgrade)
		return;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = 5;
	strlcpy(worker.bgw_library_name, "inplace", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "InplaceUndoLauncherMain",
			sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "inplace undo launcher", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "inplace undo launcher", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
}

/* ---------------- the launcher ---------------- */

static void
LauncherAtExit(int code, Datum arg)
{
	undo_shared->launcher_latch = NULL;
}

static DatabaseEntry *
LauncherDatabase(Oid dboid)
{
	for (int i = 0; i < ndatabases; i++)
		if (databases[i].dboid == dboid)
			return &databases[i];

	if (ndatabases == max_databases)
	{
		max_databases = max_databases ? max_databases * 2 : 32;
		databases = databases == NULL ?
			MemoryContextAlloc(TopMemoryContext,
							   max_databases * sizeof(DatabaseEntry)) :
			repalloc(databases, max_databases * sizeof(DatabaseEntry));
	}
	databases[ndatabases].dboid = dboid;
	databases[ndatabases].visit = false;
	databases[ndatabases].wanted = false;
	databases[ndatabases].last_start = 0;
	return &databases[ndatabases++];
}

/*
 * All databases have to be visited once after the start.
 */
static void
LauncherListDatabases(void)
{
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;

	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);

		/* a connection limit of -2 marks one whose DROP was interrupted */
		if (form->datallowconn && form->datconnlimit != -2)
			LauncherDatabase(form->oid)->visit = true;
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();
}

/*
 * Clear the slots of workers that ended without doing so themselves.  Returns
 * the number of slots in use.
 */
static int
LauncherReap(void)
{
	int			running = 0;

	for (int i = 0; i < UNDO_MAX_WORKERS; i++)
	{
		pid_t		pid;

		if (handles[i] != NULL &&
			GetBackgroundWorkerPid(handles[i], &pid) == BGWH_STOPPED)
		{
			LWLockAcquire(&undo_shared->workers_lock.lock, LW_EXCLUSIVE);
			undo_shared->workers[i].dboid = InvalidOid;
			undo_shared->workers[i].pid = 0;
			undo_shared->workers[i].latch = NULL;
			LWLockRelease(&undo_shared->workers_lock.lock);
			pfree(handles[i]);
			handles[i] = NULL;
		}
		/* a slot stays taken until its process is gone */
		if (handles[i] != NULL || OidIsValid(undo_shared->workers[i].dboid))
			running++;
	}
	return running;
}

static bool
DatabaseHasWorker(Oid dboid)
{
	for (int i = 0; i < UNDO_MAX_WORKERS; i++)
		if (undo_shared->workers[i].dboid == dboid)
			return true;
	return false;
}

/*
 * The database that has waited longest for a worker, or InvalidOid.  *waiting
 * says whether some database will want one later.
 */
static DatabaseEntry *
LauncherChoose(bool *waiting)
{
	TimestampTz now = GetCurrentTimestamp();
	DatabaseEntry *best = NULL;

	for (int i = 0; i < ndatabases; i++)
		databases[i].wanted = false;
	for (int i = 0; i < undo_shared->nspaces; i++)
	{
		UndoSpace  *sp = UndoSpaceAt(i);

		if (sp->in_use && sp->nextents > 0)
			LauncherDatabase(LocatorDb(sp->locator))->wanted = true;
	}

	*waiting = false;
	LWLockAcquire(&undo_shared->workers_lock.lock, LW_SHARED);
	for (int i = 0; i < ndatabases; i++)
	{
		DatabaseEntry *db = &databases[i];

		if (!db->visit && !db->wanted)
			continue;
		if (DatabaseHasWorker(db->dboid))
		{
			db->visit = false;
			continue;
		}
		if (DatabaseIsDetached(db->dboid, now) ||
			!TimestampDifferenceExceeds(db->last_start, now, RESTART_MS))
			*waiting = true;
		else if (best == NULL || db->last_start < best->last_start)
			best = db;
	}
	LWLockRelease(&undo_shared->workers_lock.lock);
	return best;
}

/*
 * It may have been dropped meanwhile.
 */
static bool
DatabaseExists(Oid dboid)
{
	bool		exists;

	StartTransactionCommand();
	exists = SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(dboid));
	CommitTransactionCommand();
	return exists;
}

static bool
LauncherStart(DatabaseEntry *db)
{
	BackgroundWorker worker;
	int			i;

	LWLockAcquire(&undo_shared->workers_lock.lock, LW_EXCLUSIVE);
	for (i = 0; i < UNDO_MAX_WORKERS; i++)
		if (handles[i] == NULL && !OidIsValid(undo_shared->workers[i].dboid))
			break;
	if (i < UNDO_MAX_WORKERS)
	{
		undo_shared->workers[i].dboid = db->dboid;
		undo_shared->workers[i].pid = 0;
		undo_shared->workers[i].latch = NULL;
		undo_shared->workers[i].stop = false;
	}
	LWLockRelease(&undo_shared->workers_lock.lock);
	if (i == UNDO_MAX_WORKERS)
		return false;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_notify_pid = MyProcPid;
	worker.bgw_main_arg = Int32GetDatum(i);
	memcpy(worker.bgw_extra, &db->dboid, sizeof(Oid));
	strlcpy(worker.bgw_library_name, "inplace", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "InplaceUndoWorkerMain",
			sizeof(worker.bgw_function_name));
	snprintf(worker.bgw_name, BGW_MAXLEN,
			 "inplace undo worker for database %u", db->dboid);
	strlcpy(worker.bgw_type, "inplace undo worker", BGW_MAXLEN);

	if (!RegisterDynamicBackgroundWorker(&worker, &handles[i]))
	{
		handles[i] = NULL;
		LWLockAcquire(&undo_shared->workers_lock.lock, LW_EXCLUSIVE);
		undo_shared->workers[i].dboid = InvalidOid;
		LWLockRelease(&undo_shared->workers_lock.lock);
		return false;
	}
	db->last_start = GetCurrentTimestamp();
	db->visit = false;
	return true;
}

static void
LauncherReportNoSlots(void)
{
	static TimestampTz last = 0;
	TimestampTz now = GetCurrentTimestamp();

	if (!TimestampDifferenceExceeds(last, now, 60000))
		return;
	last = now;
	ereport(LOG,
			(errmsg("inplace undo worker cannot be started: out of background worker slots"),
			 errhint("You might need to increase \"max_worker_processes\".")));
}

/*
 * Start what has to be started.  Returns true if there will be more to do
 * without anybody telling us.
 */
static bool
LauncherWork(void)
{
	for (;;)
	{
		bool		waiting;
		int			running = LauncherReap();
		DatabaseEntry *db = LauncherChoose(&waiting);

		if (db == NULL)
		{
			undo_shared->yield = false;
			return waiting;
		}
		if (running >= Min(inplace_max_undo_workers, UNDO_MAX_WORKERS))
		{
			undo_shared->yield = true;
			return true;
		}
		if (!DatabaseExists(db->dboid))
		{
			UndoSpacesForget(db->dboid, NULL, 0);
			*db = databases[--ndatabases];
			continue;
		}
		if (!LauncherStart(db))
		{
			LauncherReportNoSlots();
			return true;
		}
	}
}

/*
 * A launcher before us may have filled slots for workers that never came up.
 */
static bool
LauncherInherit(void)
{
	bool		orphans = false;

	LWLockAcquire(&undo_shared->workers_lock.lock, LW_EXCLUSIVE);
	for (int i = 0; i < UNDO_MAX_WORKERS; i++)
	{
		if (undo_shared->workers[i].pid == 0)
			undo_shared->workers[i].dboid = InvalidOid;
		else
			orphans = true;
	}
	LWLockRelease(&undo_shared->workers_lock.lock);
	return orphans;
}

void
InplaceUndoLauncherMain(Datum arg)
{
	bool		orphans;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	orphans = LauncherInherit();
	LauncherListDatabases();
	before_shmem_exit(LauncherAtExit, (Datum) 0);
	undo_shared->launcher_latch = MyLatch;

	while (!ShutdownRequestPending)
	{
		bool		again;

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}

		FreezeTimelineTick();
		again = LauncherWork();
		if (orphans)
		{
			/* nobody tells us when one of those ends */
			orphans = false;
			for (int i = 0; i < UNDO_MAX_WORKERS; i++)
				if (handles[i] == NULL &&
					OidIsValid(undo_shared->workers[i].dboid))
					orphans = true;
			again |= orphans;
		}
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_EXIT_ON_PM_DEATH |
						 WL_TIMEOUT,
						 again ? RESTART_MS / 2 : TIMELINE_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
	/* so that the postmaster starts it again if the server goes on */
	proc_exit(1);
}

/* ---------------- the worker of a database ---------------- */

static void
WorkerAtExit(int code, Datum arg)
{
	for (int i = 0; i < undo_shared->nspaces; i++)
	{
		UndoSpace  *sp = UndoSpaceAt(i);

		if (sp->worker_pid != MyProcPid)
			continue;
		/* nobody would keep it from becoming older than xids can compare */
		pg_atomic_write_u32(&sp->discarded_xid, InvalidTransactionId);
		sp->worker_pid = 0;
	}

	LWLockAcquire(&undo_shared->workers_lock.lock, LW_EXCLUSIVE);
	undo_shared->workers[my_slot].dboid = InvalidOid;
	undo_shared->workers[my_slot].pid = 0;
	undo_shared->workers[my_slot].latch = NULL;
	LWLockRelease(&undo_shared->workers_lock.lock);

	/*
	 * Who took an extent before worker_pid was reset has not called the
	 * launcher: it has to look for itself.
	 */
	UndoWorkerWakeup();
}

/*
 * Move into the slot that the launcher has prepared; false if it is not ours.
 */
static bool
WorkerTakeSlot(int slotno, Oid dboid)
{
	UndoWorkerSlot *slot = &undo_shared->workers[slotno];
	bool		ok;

	LWLockAcquire(&undo_shared->workers_lock.lock, LW_EXCLUSIVE);
	ok = slot->dboid == dboid && slot->pid == 0;
	if (ok)
	{
		slot->pid = MyProcPid;
		slot->latch = MyLatch;
		if (DatabaseIsDetached(dboid, GetCurrentTimestamp()))
			slot->stop = true;
	}
	LWLockRelease(&undo_shared->workers_lock.lock);
	return ok;
}

bool
UndoWorkerShouldStop(void)
{
	return my_slot >= 0 &&
		((volatile UndoWorkerSlot *) &undo_shared->workers[my_slot])->stop;
}

static void
WorkerSetOption(const char *name, const char *value)
{
	SetConfigOption(name, value, PGC_USERSET, PGC_S_SESSION);
}

static void
WorkerSetup(Oid dboid)
{
	BackgroundWorkerInitializeConnectionByOid(dboid, InvalidOid,
											  BGWORKER_BYPASS_ALLOWCONN);
	WorkerSetOption("application_name", "inplace undo worker");
	WorkerSetOption("search_path", "");
	WorkerSetOption("synchronous_commit", "off");
	WorkerSetOption("lock_timeout", "0");
	WorkerSetOption("statement_timeout", "0");
	WorkerSetOption("idle_in_transaction_session_timeout", "0");
	WorkerSetOption("default_transaction_isolation", "read committed");
	WorkerSetOption("default_transaction_read_only", "off");
	if (GetConfigOption("transaction_timeout", true, false) != NULL)
		WorkerSetOption("transaction_timeout", "0");

	/* as autovacuum: only somebody who watches it may have that */
	SetConfigOption("zero_damaged_pages", "false", PGC_SUSET, PGC_S_OVERRIDE);
}

static void
WorkerSleep(void)
{
	pgstat_report_activity(STATE_IDLE, NULL);
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 inplace_undo_worker_delay, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
}

static void
WorkerLoop(void)
{
	TimestampTz start = GetCurrentTimestamp();
	TimestampTz last_use = start;
	bool		first = true;

	for (;;)
	{
		TimestampTz now;
		bool		in_use;
		bool		more;

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (UndoWorkerShouldStop())
			return;

		SetCurrentStatementStartTimestamp();
		pgstat_report_activity(STATE_RUNNING, "giving back undo of inplace tables");
		FreezeTimelineTick();
		if (!UndoDiscardTick(&in_use, &more))
			return;
		pgstat_report_stat(false);

		now = GetCurrentTimestamp();
		if (in_use)
			last_use = now;
		else if (first || TimestampDifferenceExceeds(last_use, now, LINGER_MS))
			return;
		else if (undo_shared->yield)
			return;
		if (undo_shared->yield &&
			TimestampDifferenceExceeds(start, now, TURN_MS))
			return;
		first = false;
		if (!more)
			WorkerSleep();
	}
}

void
InplaceUndoWorkerMain(Datum arg)
{
	int			slotno = DatumGetInt32(arg);
	Oid			dboid;

	memcpy(&dboid, MyBgworkerEntry->bgw_extra, sizeof(Oid));
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);

	if (!WorkerTakeSlot(slotno, dboid))
		proc_exit(0);
	my_slot = slotno;
	before_shmem_exit(WorkerAtExit, (Datum) 0);
	BackgroundWorkerUnblockSignals();
	if (UndoWorkerShouldStop())
		proc_exit(0);

	WorkerSetup(dboid);
	WorkerLoop();
	proc_exit(0);
}

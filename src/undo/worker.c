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
 * One worker in a database
 *	  Much of what a worker does rests on its being alone (space.c).  Which worker
 *	  a database has stands in a slot of UndoShared.workers, under workers_lock.
 *	  The launcher fills a free slot, with the database and a ticket that was
 *	  never given before, if no slot has that database; it registers a worker
 *	  with that ticket.  A worker takes the slot (pid) if it has its ticket and
 *	  nobody has taken it, and else leaves without touching it.  A slot becomes
 *	  free
 *		- by the worker that has taken it, as it ends,
 *		- by the launcher that has registered the worker, if the postmaster says
 *		  that the worker is gone, and the slot still has its ticket,
 *		- by the next launcher, if no worker has taken it yet.  A worker that comes
 *		  with that ticket later leaves.
 *	  So a database is in one slot, and a slot is one process's.
 *	  A worker that has a slot claims the spaces of its database (worker_pid), by
 *	  compare and exchange.  Before it changes anything by plain stores it
 *	  checks that it has slot and space (UndoWorkerCheckClaim).
 *
 * The visit after the start counts when a worker has been through its database
 * (UndoWorkerSlot.looked), not when it is registered.  After one that has not come
 * so far, and was not asked to leave, the launcher waits, twice as long each time.
 *
 * No other lock is taken under workers_lock.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include <signal.h>

#include "access/htup_details.h"
#include "catalog/pg_database.h"
#include "freeze/freeze_stats.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "undo/discard.h"
#include "undo/holders.h"
#include "undo/space.h"
#include "undo/undo_rows.h"
#include "undo/worker.h"
#include "utils/backend_status.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/* a worker of a database without undo stays for that long */
#define LINGER_MS			10000
/* and one that others wait for may stay at least that long */
#define TURN_MS				2000
/* what failed after pg_upgrade is tried again after so long */
#define AFTER_UPGRADE_RETRY_MS	60000
/* time between two workers of the same database */
#define RESTART_MS			1000
/* ... and at most, if they fail */
#define RESTART_MAX_MS		60000
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
	bool		listed;			/* is in pg_database */
	int			failed;			/* workers in a row that did not look at it */
	TimestampTz last_start;
} DatabaseEntry;

/* a worker that this launcher has registered, in the slot of that number */
typedef struct Registered
{
	BackgroundWorkerHandle *handle; /* or NULL */
	Oid			dboid;
	uint32		ticket;
} Registered;

static Registered registered[UNDO_MAX_WORKERS];
static DatabaseEntry *databases = NULL;
static int	ndatabases = 0;
static int	max_databases = 0;
static bool databases_changed = false;

/* of a worker */
static int	my_slot = -1;
static uint32 my_ticket = 0;

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
	place->sessions = place->dboid == dboid ? place->sessions + 1 : 1;
	place->dboid = dboid;
	place->until = until;
	place->visit = true;
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

/*
 * The launcher may send a worker again, unless another session has detached the
 * database, too.
 */
void
UndoWorkerReattachDatabase(Oid dboid)
{
	if (undo_shared == NULL || !OidIsValid(dboid))
		return;
	LWLockAcquire(&undo_shared->workers_lock.lock, LW_EXCLUSIVE);
	for (int i = 0; i < UNDO_MAX_DETACHED; i++)
	{
		UndoDetached *d = &undo_shared->detached[i];

		if (d->dboid == dboid && d->sessions > 0 && --d->sessions == 0)
			d->until = 0;
	}
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

/* ---------------- both kinds of process ---------------- */

static void
SetOption(const char *name, const char *value)
{
	SetConfigOption(name, value, PGC_USERSET, PGC_S_SESSION);
}

/*
 * What postgresql.conf says of these is meant for sessions.
 */
static void
SetOptionsOfSessions(void)
{
	SetOption("synchronous_commit", "off");
	SetOption("lock_timeout", "0");
	SetOption("statement_timeout", "0");
	SetOption("idle_in_transaction_session_timeout", "0");
	SetOption("default_transaction_isolation", "read committed");
	SetOption("default_transaction_read_only", "off");
	if (GetConfigOption("transaction_timeout", true, false) != NULL)
		SetOption("transaction_timeout", "0");
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
	databases[ndatabases].listed = false;
	databases[ndatabases].failed = 0;
	databases[ndatabases].last_start = 0;
	return &databases[ndatabases++];
}

static void
DatabasesChanged(Datum arg, int cacheid, uint32 hashvalue)
{
	databases_changed = true;
}

/* the server marks it so, by a connection limit that cannot be set */
static bool
DropWasInterrupted(Form_pg_database form)
{
	return form->datconnlimit == -2;
}

/*
 * All databases have to be visited once after the start, and those that are made
 * later too: the template may have had undo.
 */
static void
LauncherListDatabases(void)
{
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;

	databases_changed = false;
	for (int i = 0; i < ndatabases; i++)
		databases[i].listed = false;

	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);
		int			known = ndatabases;
		DatabaseEntry *db = LauncherDatabase(form->oid);

		db->listed = true;
		if (ndatabases > known && form->datallowconn &&
			!DropWasInterrupted(form))
			db->visit = true;
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();

	for (int i = ndatabases - 1; i >= 0; i--)
		if (!databases[i].listed)
			databases[i] = databases[--ndatabases];
}

/*
 * Whatever others have changed in the catalogs comes with a transaction.
 */
static void
LauncherNoteChanges(void)
{
	StartTransactionCommand();
	CommitTransactionCommand();
	if (databases_changed)
		LauncherListDatabases();
}

/* with workers_lock held exclusively */
static void
SlotClear(UndoWorkerSlot *slot)
{
	slot->dboid = InvalidOid;
	slot->pid = 0;
	slot->latch = NULL;
}

/*
 * Has the worker that had, or has, the slot been through its database?
 */
static void
LauncherNoteLooked(const UndoWorkerSlot *slot, Oid dboid, uint32 ticket, bool ended)
{
	DatabaseEntry *db = LauncherDatabase(dboid);

	if (slot->looked == ticket)
	{
		db->visit = false;
		db->failed = 0;
	}
	else if (ended && !(slot->ticket == ticket && slot->stop))
		db->failed++;
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
		UndoWorkerSlot *slot = &undo_shared->workers[i];
		Registered *reg = &registered[i];
		pid_t		pid;
		bool		ended = reg->handle != NULL &&
			GetBackgroundWorkerPid(reg->handle, &pid) == BGWH_STOPPED;
		UndoWorkerSlot was;

		LWLockAcquire(&undo_shared->workers_lock.lock, LW_EXCLUSIVE);
		was = *slot;
		if (ended && slot->ticket == reg->ticket)
			SlotClear(slot);
		LWLockRelease(&undo_shared->workers_lock.lock);

		if (ended)
		{
			LauncherNoteLooked(&was, reg->dboid, reg->ticket, true);
			pfree(reg->handle);
			reg->handle = NULL;
		}
		else if (OidIsValid(was.dboid))
			LauncherNoteLooked(&was, was.dboid, was.ticket, false);

		/* a slot stays taken until its process is gone */
		if (reg->handle != NULL || (!ended && OidIsValid(was.dboid)))
			running++;
	}
	return running;
}

/* with workers_lock held */
static bool
DatabaseHasWorker(Oid dboid)
{
	for (int i = 0; i < UNDO_MAX_WORKERS; i++)
		if (undo_shared->workers[i].dboid == dboid)
			return true;
	return false;
}

static int
RestartDelay(const DatabaseEntry *db)
{
	return Min(RESTART_MS << Min(db->failed, 10), RESTART_MAX_MS);
}

/*
 * Databases whose worker had to leave, and may come again.
 */
static void
LauncherNoteReattached(void)
{
	TimestampTz now = GetCurrentTimestamp();

	for (int i = 0; i < UNDO_MAX_DETACHED; i++)
	{
		UndoDetached *d = &undo_shared->detached[i];
		Oid			dboid = InvalidOid;

		LWLockAcquire(&undo_shared->workers_lock.lock, LW_EXCLUSIVE);
		if (d->visit && d->until <= now)
		{
			d->visit = false;
			dboid = d->dboid;
		}
		LWLockRelease(&undo_shared->workers_lock.lock);
		if (OidIsValid(dboid))
			LauncherDatabase(dboid)->visit = true;
	}
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

		/*
		 * A full barrier: extents that are taken from now on are told of, or
		 * seen below.  While there are any, we look again after a while, or
		 * when the database's worker ends.
		 */
		(void) pg_atomic_exchange_u32(&sp->launcher_knows, 0);
		if (sp->in_use && !UndoSpaceIsEmpty(sp))
		{
			pg_atomic_write_u32(&sp->launcher_knows, 1);
			LauncherDatabase(LocatorDb(sp->locator))->wanted = true;
		}
	}

	*waiting = false;
	LWLockAcquire(&undo_shared->workers_lock.lock, LW_SHARED);
	for (int i = 0; i < ndatabases; i++)
	{
		DatabaseEntry *db = &databases[i];

		if (!db->visit && !db->wanted)
			continue;
		if (DatabaseHasWorker(db->dboid))
			continue;
		if (DatabaseIsDetached(db->dboid, now) ||
			!TimestampDifferenceExceeds(db->last_start, now, RestartDelay(db)))
			*waiting = true;
		else if (best == NULL || db->last_start < best->last_start)
			best = db;
	}
	LWLockRelease(&undo_shared->workers_lock.lock);
	return best;
}

/*
 * It may have been dropped meanwhile.  One whose DROP was interrupted is as good as
 * gone: nobody can connect to it any more.
 */
static bool
DatabaseExists(Oid dboid)
{
	HeapTuple	tuple;
	bool		exists = false;

	StartTransactionCommand();
	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(dboid));
	if (HeapTupleIsValid(tuple))
	{
		exists = !DropWasInterrupted((Form_pg_database) GETSTRUCT(tuple));
		ReleaseSysCache(tuple);
	}
	CommitTransactionCommand();
	return exists;
}

/*
 * A slot for the database, with a new ticket; -1 if there is none.
 */
static int
LauncherFillSlot(Oid dboid, uint32 *ticket)
{
	int			slotno = -1;

	LWLockAcquire(&undo_shared->workers_lock.lock, LW_EXCLUSIVE);
	for (int i = 0; i < UNDO_MAX_WORKERS && slotno < 0; i++)
		if (registered[i].handle == NULL &&
			!OidIsValid(undo_shared->workers[i].dboid))
			slotno = i;
	if (slotno >= 0 && !DatabaseHasWorker(dboid))
	{
		UndoWorkerSlot *slot = &undo_shared->workers[slotno];

		/* 0 is nobody's */
		if (++undo_shared->last_ticket == 0)
			undo_shared->last_ticket++;
		*ticket = undo_shared->last_ticket;
		SlotClear(slot);
		slot->dboid = dboid;
		slot->ticket = *ticket;
		slot->stop = false;
	}
	else
		slotno = -1;
	LWLockRelease(&undo_shared->workers_lock.lock);
	return slotno;
}

/* what a worker is told */
typedef struct WorkerOrder
{
	Oid			dboid;
	uint32		ticket;
	bool		visit;			/* nobody has been there since the start */
} WorkerOrder;

static bool
LauncherStart(DatabaseEntry *db)
{
	BackgroundWorker worker;
	WorkerOrder order;
	int			i;

	memset(&order, 0, sizeof(order));
	order.dboid = db->dboid;
	order.visit = db->visit;
	i = LauncherFillSlot(db->dboid, &order.ticket);
	if (i < 0)
		return false;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_notify_pid = MyProcPid;
	worker.bgw_main_arg = Int32GetDatum(i);
	memcpy(worker.bgw_extra, &order, sizeof(order));
	strlcpy(worker.bgw_library_name, "inplace", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "InplaceUndoWorkerMain",
			sizeof(worker.bgw_function_name));
	snprintf(worker.bgw_name, BGW_MAXLEN,
			 "inplace undo worker for database %u", db->dboid);
	strlcpy(worker.bgw_type, "inplace undo worker", BGW_MAXLEN);

	registered[i].dboid = order.dboid;
	registered[i].ticket = order.ticket;
	if (!RegisterDynamicBackgroundWorker(&worker, &registered[i].handle))
	{
		registered[i].handle = NULL;
		LWLockAcquire(&undo_shared->workers_lock.lock, LW_EXCLUSIVE);
		SlotClear(&undo_shared->workers[i]);
		LWLockRelease(&undo_shared->workers_lock.lock);
		return false;
	}
	db->last_start = GetCurrentTimestamp();
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
	LauncherNoteChanges();
	LauncherNoteReattached();
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
			/* if that cannot be now it is tried again, not at once */
			UndoSpacesForget(db->dboid, NULL, 0);
			*db = databases[--ndatabases];
			return true;
		}
		if (!LauncherStart(db))
		{
			LauncherReportNoSlots();
			return true;
		}
	}
}

/*
 * A launcher before us may have filled slots for workers that never came up, or
 * will do so later: those have lost their ticket.  Others are at work.
 */
static bool
LauncherInherit(void)
{
	bool		orphans = false;

	LWLockAcquire(&undo_shared->workers_lock.lock, LW_EXCLUSIVE);
	for (int i = 0; i < UNDO_MAX_WORKERS; i++)
	{
		UndoWorkerSlot *slot = &undo_shared->workers[i];

		if (slot->pid != 0)
			orphans = true;
		else if (OidIsValid(slot->dboid))
		{
			SlotClear(slot);
			slot->ticket = 0;
		}
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
	SetOptionsOfSessions();

	UndoHoldersAtStart();
	orphans = LauncherInherit();
	CacheRegisterSyscacheCallback(DATABASEOID, DatabasesChanged, (Datum) 0);
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
				if (registered[i].handle == NULL &&
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
	UndoWorkerSlot *slot = &undo_shared->workers[my_slot];

	for (int i = 0; i < undo_shared->nspaces; i++)
	{
		UndoSpace  *sp = UndoSpaceAt(i);
		uint32		pid = (uint32) MyProcPid;

		if (pg_atomic_read_u32(&sp->worker_pid) != pid)
			continue;
		/* nobody would keep it from becoming older than xids can compare */
		pg_atomic_write_u32(&sp->discarded_xid, InvalidTransactionId);
		(void) pg_atomic_compare_exchange_u32(&sp->worker_pid, &pid, 0);
	}

	LWLockAcquire(&undo_shared->workers_lock.lock, LW_EXCLUSIVE);
	if (slot->ticket == my_ticket && slot->pid == MyProcPid)
		SlotClear(slot);
	LWLockRelease(&undo_shared->workers_lock.lock);

	/*
	 * A backend that took an extent before worker_pid was reset has not
	 * called the launcher, which has to look for itself.
	 */
	UndoWorkerWakeup();
}

/*
 * Move into the slot that the launcher has prepared; false if it is not ours.
 */
static bool
WorkerTakeSlot(int slotno, const WorkerOrder *order)
{
	UndoWorkerSlot *slot = &undo_shared->workers[slotno];
	bool		ok;

	LWLockAcquire(&undo_shared->workers_lock.lock, LW_EXCLUSIVE);
	ok = slot->dboid == order->dboid && slot->ticket == order->ticket &&
		slot->pid == 0;
	if (ok)
	{
		slot->pid = MyProcPid;
		slot->latch = MyLatch;
		if (DatabaseIsDetached(order->dboid, GetCurrentTimestamp()))
			slot->stop = true;
		my_slot = slotno;
		my_ticket = order->ticket;
	}
	LWLockRelease(&undo_shared->workers_lock.lock);
	return ok;
}

/*
 * Become the worker that gives back what is in the space, which is locked; false if
 * another process is.
 */
bool
UndoWorkerClaim(UndoSpace *sp)
{
	uint32		pid = 0;

	return pg_atomic_compare_exchange_u32(&sp->worker_pid, &pid,
										  (uint32) MyProcPid) ||
		pid == (uint32) MyProcPid;
}

/*
 * Before anything that rests on being alone with the space.  The slot is read
 * without a lock: it is ours for as long as it has our pid.
 */
void
UndoWorkerCheckClaim(UndoSpace *sp)
{
	int			slot_pid = my_slot < 0 ? 0 :
		((volatile UndoWorkerSlot *) &undo_shared->workers[my_slot])->pid;
	uint32		space_pid = pg_atomic_read_u32(&sp->worker_pid);

	if (likely(slot_pid == MyProcPid && space_pid == (uint32) MyProcPid))
		return;
	ereport(FATAL,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("undo of database %u is not this process's to give back",
					MyDatabaseId),
			 errdetail("Process %d has the database, process %u its undo.",
					   slot_pid, space_pid)));
}

/* we have been through the database */
static void
WorkerHasLooked(void)
{
	((volatile UndoWorkerSlot *) &undo_shared->workers[my_slot])->looked = my_ticket;
}

bool
UndoWorkerShouldStop(void)
{
	return my_slot >= 0 &&
		((volatile UndoWorkerSlot *) &undo_shared->workers[my_slot])->stop;
}

static void
WorkerSetup(Oid dboid)
{
	BackgroundWorkerInitializeConnectionByOid(dboid, InvalidOid,
											  BGWORKER_BYPASS_ALLOWCONN);
	SetOption("application_name", "inplace undo worker");
	SetOption("search_path", "");
	SetOptionsOfSessions();

	/* as autovacuum: that is for sessions which somebody watches */
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
WorkerLoop(bool visit)
{
	TimestampTz start = GetCurrentTimestamp();
	TimestampTz last_use = start;
	bool		first = true;
	bool		upgraded = !visit;
	bool		failed = false;
	TimestampTz tried = 0;

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
		if (!upgraded ||
			(failed && TimestampDifferenceExceeds(tried, GetCurrentTimestamp(),
												  AFTER_UPGRADE_RETRY_MS)))
		{
			upgraded = undo_rows->after_upgrade(&failed);
			tried = GetCurrentTimestamp();
		}
		if (!UndoDiscardTick(&in_use, &more))
		{
			WorkerHasLooked();
			return;
		}
		if (upgraded)
			WorkerHasLooked();
		pgstat_report_stat(false);

		now = GetCurrentTimestamp();
		if (in_use || !upgraded)
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
	WorkerOrder order;

	memcpy(&order, MyBgworkerEntry->bgw_extra, sizeof(order));
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);

	if (!WorkerTakeSlot(DatumGetInt32(arg), &order))
		proc_exit(0);
	before_shmem_exit(WorkerAtExit, (Datum) 0);
	BackgroundWorkerUnblockSignals();
	if (UndoWorkerShouldStop())
		proc_exit(0);

	WorkerSetup(order.dboid);
	WorkerLoop(order.visit);
	proc_exit(0);
}

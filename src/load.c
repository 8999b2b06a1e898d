/*-------------------------------------------------------------------------
 *
 * load.c
 *	  Loading of the extension: settings, shared memory, hooks.
 *
 * All of it happens when the postmaster loads the library.  Loaded later
 * (because a session calls a function while shared_preload_libraries does not
 * name it), the library sets up nothing, and InplaceRequirePreload says so.
 *
 * What the hooks are for
 *	  SnapshotAny means one thing for a fetch by TID in a running query, and
 *	  another for one by a trigger that is fired after it.  So the hooks of the
 *	  executor tell how deep in it we are, and the state of the query.
 *	  A transaction's snapshot is made known to others (undo/holders.c).
 *	  Utility statements: ddl/utility.c.
 *	  Where the extension is not installed none of them does anything (own.c).
 *	  Other files take hooks of their own, in the functions that _PG_init calls.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "btree/in_flight.h"
#include "btree/standby_scan.h"
#include "ddl/convert_stats.h"
#include "ddl/ddl.h"
#include "ddl/default_method.h"
#include "ddl/default_table.h"
#include "ddl/heap_readers.h"
#include "ddl/older_keys.h"
#include "ddl/opclass.h"
#include "ddl/whose_page.h"
#include "executor/executor.h"
#include "freeze/freeze_forget.h"
#include "freeze/freeze_options.h"
#include "freeze/freeze_stats.h"
#include "index/index.h"
#include "index/merge_leaves.h"
#include "index/other_method.h"
#include "index/unmarked_scan.h"
#include "own.h"
#include "page/protect.h"
#include "modify/modify.h"
#include "modify/chunk.h"
#include "modify/room.h"
#include "page/recent.h"
#include "redo/redo.h"
#include "row/evict.h"
#include "row/memory_lock.h"
#include "row/release.h"
#include "row/restore.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "undo/append.h"
#include "undo/hold.h"
#include "undo/holders.h"
#include "undo/limit.h"
#include "undo/seen.h"
#include "undo/space.h"
#include "undo/undo_rows.h"
#include "undo/worker.h"
#include "utils/guc.h"
#include "xact_end.h"

PG_MODULE_MAGIC;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;
static ExecutorRun_hook_type prev_ExecutorRun_hook = NULL;
static ExecutorFinish_hook_type prev_ExecutorFinish_hook = NULL;

extern PGDLLEXPORT void _PG_init(void);

/* ---------------- shared memory ---------------- */

static void
InplaceShmemRequest(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestAddinShmemSpace(UndoShmemSize());
	RequestAddinShmemSpace(UndoHoldersShmemSize());
	RequestAddinShmemSpace(UndoSeenShmemSize());
	RequestAddinShmemSpace(FreezeShmemSize());
	RequestAddinShmemSpace(WalProtectShmemSize());
	RequestAddinShmemSpace(InFlightShmemSize());
	RequestAddinShmemSpace(UnmarkedScanShmemSize());
	RequestAddinShmemSpace(StandbyScanShmemSize());
	RequestAddinShmemSpace(OlderKeysShmemSize());
	RequestAddinShmemSpace(PageGuessShmemSize());
	RequestAddinShmemSpace(InplaceMemoryLockShmemSize());
}

static void
InplaceShmemStartup(void)
{
	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	UndoShmemInit();
	UndoHoldersShmemInit();
	UndoSeenShmemInit();
	FreezeShmemInit();
	WalProtectShmemInit();
	InFlightShmemInit();
	UnmarkedScanShmemInit();
	StandbyScanShmemInit();
	OlderKeysShmemInit();
	PageGuessShmemInit();
	InplaceMemoryLockShmemInit();
	LWLockRelease(AddinShmemInitLock);
}

/* ---------------- the executor ---------------- */

static void
InplaceExecutorRun(EXECUTOR_RUN_PARAMS)
{
	int			save_depth = inplace_executor_depth;
	EState	   *save_estate = inplace_executor_estate;
	PlannedStmt *stmt = queryDesc->plannedstmt;
	PlannedStmt serial;
	bool		outer;
	bool		closed;

	if (!InplaceInstalledHere())
	{
		if (prev_ExecutorRun_hook)
			prev_ExecutorRun_hook(EXECUTOR_RUN_ARGS);
		else
			standard_ExecutorRun(EXECUTOR_RUN_ARGS);
		return;
	}
	outer = NoLockEnterQuery();
	inplace_executor_depth++;
	inplace_executor_estate = queryDesc->estate;
	closed = UndoHoldBeforeRun(queryDesc, count > 0);

	/*
	 * values among its parameters may be such as no worker can fetch (the
	 * plan is shared)
	 */
	if (stmt->parallelModeNeeded && inplace_given_rolled_back())
	{
		serial = *stmt;
		serial.parallelModeNeeded = false;
		queryDesc->plannedstmt = &serial;
	}
	PG_TRY();
	{
		if (prev_ExecutorRun_hook)
			prev_ExecutorRun_hook(EXECUTOR_RUN_ARGS);
		else
			standard_ExecutorRun(EXECUTOR_RUN_ARGS);
	}
	PG_FINALLY();
	{
		queryDesc->plannedstmt = stmt;
		UndoHoldAfterRun(closed);
		NoLockLeaveQuery(outer);
		inplace_executor_depth = save_depth;
		inplace_executor_estate = save_estate;
	}
	PG_END_TRY();
}

static void
InplaceExecutorFinish(QueryDesc *queryDesc)
{
	int			save_depth = inplace_executor_depth;
	EState	   *save_estate = inplace_executor_estate;

	if (!InplaceInstalledHere())
	{
		if (prev_ExecutorFinish_hook)
			prev_ExecutorFinish_hook(queryDesc);
		else
			standard_ExecutorFinish(queryDesc);
		return;
	}
	inplace_executor_depth++;
	inplace_executor_estate = queryDesc->estate;
	PG_TRY();
	{
		if (prev_ExecutorFinish_hook)
			prev_ExecutorFinish_hook(queryDesc);
		else
			standard_ExecutorFinish(queryDesc);
	}
	PG_FINALLY();
	{
		inplace_executor_depth = save_depth;
		inplace_executor_estate = save_estate;
	}
	PG_END_TRY();
}

/*
 * Whatever an error has left behind ends with the transaction.
 */
static void
InplaceXactCallback(XactEvent event, void *arg)
{
	NoLockLeaveQuery(false);
	if (XactIsRolledBack(event))
	{
		inplace_executor_depth = 0;
		inplace_executor_estate = NULL;
	}
}

/* ---------------- loading ---------------- */

static const struct config_enum_entry default_index_methods[] = {
	{"inplace_btree", DEFAULT_INDEX_INPLACE_BTREE, false},
	{"btree", DEFAULT_INDEX_BTREE, false},
	{NULL, 0, false}
};

static const UndoRows rows_of_undo = {
	.restore = InplaceRestoreTid,
	.find_releasable = UndoFindReleasable,
	.after_upgrade = inplace_settle_marked
};

/* of updates under indexes of other methods */
static void
DefineOtherIndexSettings(void)
{
	DefineCustomBoolVariable("inplace.update_under_other_indexes",
							 "Updates of columns under GIN, hash and GiST indexes are in place.",
							 "If off they move the row.",
							 &inplace_update_under_others,
							 true,
							 PGC_POSTMASTER, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("inplace.former_keys_limit",
							"After how many updates under GIN, hash and GiST indexes a row moves, if VACUUM has not come by.",
							"On average; 0: never.",
							&inplace_former_keys_limit,
							24, 0, 10000,
							PGC_USERSET, 0,
							NULL, NULL, NULL);
}

static void
DefineSettingsOfUndo(void)
{
	DefineCustomIntVariable("inplace.undo_extents",
							"Largest number of undo extents in use on the server.",
							"An extent is 32 blocks. Each takes 32 bytes of shared memory.",
							&inplace_undo_extents,
							262144, 256, 8000000,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("inplace.undo_limit",
							"Size that the undo of a database may grow to.",
							"For permanent and for unlogged tables each. Zero is no limit.",
							&inplace_undo_limit,
							0, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_KB,
							NULL, NULL, NULL);
	DefineCustomIntVariable("inplace.undo_worker_delay",
							"Time between two rounds of an undo worker.",
							NULL,
							&inplace_undo_worker_delay,
							500, 10, 60000,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("inplace.squeeze_undo",
							 "Row versions between two snapshots, which neither of them sees, are dropped.",
							 "For snapshots of sessions that are known to have no other one.",
							 &inplace_squeeze_undo,
							 true,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("inplace.prune_between_snapshots",
							 "Rows that were inserted and deleted between two snapshots, neither of which sees them, are removed.",
							 "While the older one is held by a session that is known to have no other.",
							 &inplace_prune_between,
							 true,
							 PGC_POSTMASTER, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("inplace.evict_deleted_rows",
							 "The space of deleted rows is used again while old snapshots still want them.",
							 "Their values go to undo when somebody needs the room.",
							 &inplace_evict_deleted_rows,
							 true,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("inplace.max_undo_workers",
							"Largest number of undo workers at a time.",
							"There is one for each database with undo; they come out of max_worker_processes.",
							&inplace_max_undo_workers,
							3, 1, UNDO_MAX_WORKERS,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
}

static void
DefineSettings(void)
{
	DefineSettingsOfUndo();
	DefineCustomIntVariable("inplace.row_locks_in_memory",
							"Row locks of a session, FOR UPDATE and FOR NO KEY UPDATE, that are kept in memory.",
							"The others are written to the rows. Zero writes all.",
							&inplace_row_locks_in_memory,
							16, 0, MEMORY_LOCKS,
							PGC_USERSET, 0,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("inplace.adaptive_freezing",
							 "VACUUM freezes the pages that are likely to stay unchanged.",
							 "If off, pages are frozen as in heap tables.",
							 &inplace_adaptive_freezing,
							 true,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("inplace.target_freeze_duration",
							"How long a frozen page should stay unchanged.",
							NULL,
							&inplace_target_freeze_duration,
							86400, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_S,
							NULL, NULL, NULL);
	DefineCustomIntVariable("inplace.max_freeze_stats_tables",
							"Number of tables of which adaptive freezing keeps figures.",
							"Each takes about 1200 bytes of shared memory.",
							&inplace_max_freeze_stats_tables,
							1000, 10, 1000000,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
	DefineCustomEnumVariable("inplace.default_index_method",
							 "What CREATE INDEX with btree, written or implied, makes on an inplace table.",
							 "Indexes of constraints are always btree.",
							 &inplace_default_index_method,
							 DEFAULT_INDEX_INPLACE_BTREE, default_index_methods,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("inplace.merge_index_pages",
							 "VACUUM merges sparse pages of inplace_btree indexes, and shortens the files of btree ones.",
							 NULL,
							 &inplace_merge_index_pages,
							 true,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineOtherIndexSettings();
	DefineCustomBoolVariable("inplace.toast_in_place",
							 "TOAST tables of new inplace tables are inplace tables, where updates of large values are in place.",
							 "Asked when a TOAST table is made.",
							 &inplace_toast_in_place,
							 true,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);
	/* settings of other files go here, before the prefix is closed */
	MarkGUCPrefixReserved("inplace");
}

static void
InstallHooks(void)
{
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = InplaceShmemRequest;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = InplaceShmemStartup;
	prev_ExecutorRun_hook = ExecutorRun_hook;
	ExecutorRun_hook = InplaceExecutorRun;
	prev_ExecutorFinish_hook = ExecutorFinish_hook;
	ExecutorFinish_hook = InplaceExecutorFinish;
	inplace_utility_init();
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
	{
		/* pg_upgrade loads it to see whether the new cluster has it. */
		if (IsBinaryUpgrade)
			InplaceRequirePreload();
		return;
	}

	DefineSettings();
	InstallHooks();
	inplace_late_open_init();
	inplace_as_btree_init();
	inplace_planner_init();
	inplace_young_index_init();
	inplace_gist_only_init();
	inplace_plan_start_init();
	inplace_opclass_init();
	inplace_heap_readers_init();
	inplace_whose_page_init();
	inplace_after_upgrade_init();
	inplace_default_table_init();
	ConvertStatsInit();
	FreezeForgetInit();
	FreezeOptionsInit();
	undo_rows = &rows_of_undo;
	InplaceRmgrRegister();
	UndoWorkerRegister();
	RegisterXactCallback(InplaceXactCallback, NULL);
	InplaceGuardClient();
	UndoRegisterCallbacks();
	RoomRegisterCallbacks();
	inplace_register_row_page_callbacks();
	InplaceRegisterMemoryLockCallbacks();
	InplaceRegisterLockPrepare();
	UndoHoldInit();
	inplace_given_init();
	inplace_preloaded = true;
}

/*-------------------------------------------------------------------------
 *
 * inplace.c
 *	  Loading of the extension: settings, shared memory, hooks.
 *
 * All of it happens when the postmaster loads the library.  Loaded later
 * (because a session calls a function while shared_preload_libraries does not
 * name it), the library sets up nothing, and InplaceRequirePreload says so.
 *
 * What the hooks are for
 *	  Trap 1 of the design: a fetch by TID with SnapshotAny means different
 *	  things to a running query and to a trigger fired after it.  So the table
 *	  side is told how deep in the executor we are, and the state of the query;
 *	  SET CONSTRAINTS fires triggers as the end of a transaction does.
 *	  DROP DATABASE and the like need the undo worker out of the database.
 *	  VACUUM FULL of a whole database has to leave the undo relations out (in
 *	  ddl/above.c, too).
 *	  CREATE INDEX makes inplace_btree indexes (ddl/default_method.c, and
 *	  ddl/above.c where another extension executes it).
 *	  ALTER TABLE ... SET ACCESS METHOD shows how far it is.
 *	  What is left of dropped operator classes goes (ddl/opclass.c).
 *	  Functions that take any page for heap's are refused
 *	  (ddl/heap_readers.c), and so are tables that have a file of another
 *	  method's (ddl/whose_page.c).
 *	  Tables of extensions are heap's (ddl/default_table.c).
 *	  A transaction's snapshot is made known to others (undo/holders.c).
 *	  Where the extension is not installed none of them does anything (own.c).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "btree/in_flight.h"
#include "btree/standby_scan.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "commands/vacuum.h"
#include "ddl/ddl.h"
#include "ddl/default_table.h"
#include "executor/executor.h"
#include "freeze/freeze_stats.h"
#include "index/index.h"
#include "modify/table.h"
#include "nodes/makefuncs.h"
#include "own.h"
#include "page/guess.h"
#include "scan/rewrite_progress.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "tcop/utility.h"
#include "undo/holders.h"
#include "undo/space.h"
#include "undo/undo.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/portal.h"
#include "utils/syscache.h"
#include "wal/wal.h"

PG_MODULE_MAGIC;

bool		inplace_preloaded = false;
int			inplace_undo_extents = 262144;
int			inplace_undo_limit = 0;
int			inplace_executor_depth = 0;
EState	   *inplace_executor_estate = NULL;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;
static ExecutorRun_hook_type prev_ExecutorRun_hook = NULL;
static ExecutorFinish_hook_type prev_ExecutorFinish_hook = NULL;
static ProcessUtility_hook_type prev_ProcessUtility_hook = NULL;

extern PGDLLEXPORT void _PG_init(void);

void
InplaceRequirePreload(void)
{
	if (likely(inplace_preloaded))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("inplace must be loaded through \"shared_preload_libraries\""),
			 errhint("Add inplace to \"shared_preload_libraries\" in postgresql.conf and restart the server.")));
}

/*
 * A regclass may be 0, a number that never was a relation's, or one dropped
 * since.
 */
Relation
InplaceOpenArgument(Oid relid, LOCKMODE lockmode)
{
	Relation	rel = OidIsValid(relid) ? try_relation_open(relid, lockmode) : NULL;

	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	return rel;
}

bool
InplaceXidsRunShort(void)
{
	TransactionId warn_limit;

	LWLockAcquire(XidGenLock, LW_SHARED);
	warn_limit = TransamVariables->xidWarnLimit;
	LWLockRelease(XidGenLock);
	return TransactionIdFollowsOrEquals(ReadNextTransactionId(), warn_limit);
}

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
	RequestAddinShmemSpace(StandbyScanShmemSize());
	RequestAddinShmemSpace(OlderKeysShmemSize());
	RequestAddinShmemSpace(PageGuessShmemSize());
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
	StandbyScanShmemInit();
	OlderKeysShmemInit();
	PageGuessShmemInit();
	LWLockRelease(AddinShmemInitLock);
}

/* ---------------- the executor ---------------- */

static void
InplaceExecutorRun(EXECUTOR_RUN_PARAMS)
{
	int			save_depth = inplace_executor_depth;
	EState	   *save_estate = inplace_executor_estate;
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
	closed = UndoHoldBeforeRun(queryDesc);
	PG_TRY();
	{
		if (prev_ExecutorRun_hook)
			prev_ExecutorRun_hook(EXECUTOR_RUN_ARGS);
		else
			standard_ExecutorRun(EXECUTOR_RUN_ARGS);
	}
	PG_FINALLY();
	{
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
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT)
	{
		inplace_executor_depth = 0;
		inplace_executor_estate = NULL;
	}
}

/* ---------------- utility statements ---------------- */

typedef struct UtilityArgs
{
	PlannedStmt *pstmt;
	const char *queryString;
	bool		readOnlyTree;
	ProcessUtilityContext context;
	ParamListInfo params;
	QueryEnvironment *queryEnv;
	DestReceiver *dest;
	QueryCompletion *qc;
} UtilityArgs;

static void
CallUtility(UtilityArgs *u)
{
	if (prev_ProcessUtility_hook)
		prev_ProcessUtility_hook(u->pstmt, u->queryString, u->readOnlyTree,
								 u->context, u->params, u->queryEnv,
								 u->dest, u->qc);
	else
		standard_ProcessUtility(u->pstmt, u->queryString, u->readOnlyTree,
								u->context, u->params, u->queryEnv,
								u->dest, u->qc);
}

/*
 * SET CONSTRAINTS ... IMMEDIATE fires the triggers that have been deferred
 * up to now.
 */
static void
CallConstraintsSet(UtilityArgs *u)
{
	int			save_depth = inplace_executor_depth;
	EState	   *save_estate = inplace_executor_estate;

	inplace_executor_depth = 0;
	inplace_executor_estate = NULL;
	PG_TRY();
	{
		CallUtility(u);
	}
	PG_FINALLY();
	{
		inplace_executor_depth = save_depth;
		inplace_executor_estate = save_estate;
	}
	PG_END_TRY();
}

static const char *
FindStringOption(List *options, const char *name, const char *otherwise)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		if (strcmp(option->defname, name) == 0 && option->arg != NULL)
			return defGetString(option);
	}
	return otherwise;
}

/*
 * Would the server let this user have the database to himself?  If not the
 * statement fails, and the worker is left alone.  (Who may create databases may
 * copy templates of others.)
 */
static bool
MayHaveDatabase(Oid dboid, bool as_template)
{
	HeapTuple	tuple;
	bool		may;

	if (superuser() || DatabaseOwnedBy(dboid, GetUserId()))
		return true;
	if (!as_template)
		return false;
	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(GetUserId()));
	may = HeapTupleIsValid(tuple) &&
		((Form_pg_authid) GETSTRUCT(tuple))->rolcreatedb;
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	if (!may)
		return false;
	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(dboid));
	may = HeapTupleIsValid(tuple) &&
		((Form_pg_database) GETSTRUCT(tuple))->datistemplate;
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return may;
}

/*
 * The database that a statement needs to itself, or InvalidOid.  *forget: its
 * undo has another place, or none, after the statement.
 */
static Oid
StatementDatabase(Node *stmt, bool *forget)
{
	const char *name = NULL;
	Oid			dboid;

	*forget = false;
	switch (nodeTag(stmt))
	{
		case T_CreatedbStmt:
			name = FindStringOption(((CreatedbStmt *) stmt)->options,
									"template", "template1");
			break;
		case T_DropdbStmt:
			name = ((DropdbStmt *) stmt)->dbname;
			*forget = true;
			break;
		case T_RenameStmt:
			if (((RenameStmt *) stmt)->renameType == OBJECT_DATABASE)
				name = ((RenameStmt *) stmt)->subname;
			break;
		case T_AlterDatabaseStmt:
			if (FindStringOption(((AlterDatabaseStmt *) stmt)->options,
								 "tablespace", NULL) != NULL)
			{
				name = ((AlterDatabaseStmt *) stmt)->dbname;
				*forget = true;
			}
			break;
		default:
			break;
	}

	/* it fails in a transaction block, and in a failed one needs no look-up */
	if (name == NULL || !IsTransactionState())
		return InvalidOid;
	dboid = get_database_oid(name, true);
	return OidIsValid(dboid) &&
		MayHaveDatabase(dboid, IsA(stmt, CreatedbStmt)) ? dboid : InvalidOid;
}

static void
CallDatabaseStatement(UtilityArgs *u, Oid dboid, bool forget)
{
	UndoWorkerDetachDatabase(dboid);
	PG_TRY();
	{
		CallUtility(u);
		/* no one else can be connected to it now */
		if (forget)
			UndoSpacesForget(dboid, NULL, 0);
		if (IsA(u->pstmt->utilityStmt, DropdbStmt))
			FreezeStatsForgetDatabase(dboid);
	}
	PG_FINALLY();
	{
		UndoWorkerReattachDatabase(dboid);
	}
	PG_END_TRY();
}

/*
 * The functions in the schema of the extension name each other, and people name the
 * undo relations: their names stay.
 */
static void
RefuseRename(Node *stmt)
{
	RangeVar   *relation = NULL;
	ObjectType	type;

	if (IsA(stmt, RenameStmt))
	{
		type = ((RenameStmt *) stmt)->renameType;
		relation = ((RenameStmt *) stmt)->relation;
		if (type == OBJECT_SCHEMA && IsTransactionState() &&
			get_namespace_oid(((RenameStmt *) stmt)->subname, true) == InplaceSchema())
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("schema \"%s\" of extension inplace cannot be renamed",
							((RenameStmt *) stmt)->subname)));
	}
	else if (IsA(stmt, AlterObjectSchemaStmt))
	{
		type = ((AlterObjectSchemaStmt *) stmt)->objectType;
		relation = ((AlterObjectSchemaStmt *) stmt)->relation;
	}
	else
		return;
	/* (the server takes ALTER INDEX for a relation of another kind, too) */
	if (type != OBJECT_TABLE && type != OBJECT_MATVIEW && type != OBJECT_INDEX)
		return;
	if (relation == NULL || !IsTransactionState())
		return;

	if (InplaceIsUndoRelation(RangeVarGetRelid(relation, NoLock, true)))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("undo relation \"%s\" cannot be renamed or moved to another schema",
						relation->relname),
				 errhint("It belongs to extension inplace.")));
}

static bool
IsVacuumFull(Node *stmt)
{
	VacuumStmt *vacstmt = (VacuumStmt *) stmt;
	ListCell   *lc;

	if (!IsA(stmt, VacuumStmt) || !vacstmt->is_vacuumcmd)
		return false;
	foreach(lc, vacstmt->options)
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		if (strcmp(option->defname, "full") == 0 && defGetBoolean(option))
			return true;
	}
	return false;
}

/*
 * All tables of the database but ours that the user may VACUUM, as VACUUM itself
 * would list them: of tables that are listed it asks whether he may only when it has
 * locked them.  The list must survive the transactions that VACUUM makes.  Other
 * extensions want names (of a table that is gone by then VACUUM will say so).
 */
static List *
ListTablesToVacuum(bool with_names)
{
	MemoryContext oldcontext;
	Relation	pg_class;
	TableScanDesc scan;
	HeapTuple	tuple;
	List	   *result = NIL;

	pg_class = table_open(RelationRelationId, AccessShareLock);
	scan = table_beginscan_catalog(pg_class, 0, NULL);
	oldcontext = MemoryContextSwitchTo(PortalContext);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);
		RangeVar   *name = NULL;

		if (form->relkind != RELKIND_RELATION &&
			form->relkind != RELKIND_MATVIEW &&
			form->relkind != RELKIND_PARTITIONED_TABLE)
			continue;
		if (InplaceIsUndoRelation(form->oid) ||
			!MayVacuum(form->oid, form, VACOPT_VACUUM | VACOPT_FULL))
			continue;
		if (with_names)
			name = makeRangeVar(get_namespace_name(form->relnamespace),
								pstrdup(NameStr(form->relname)), -1);
		result = lappend(result, makeVacuumRelation(name, form->oid, NIL));
	}
	MemoryContextSwitchTo(oldcontext);
	table_endscan(scan);
	table_close(pg_class, AccessShareLock);
	return result;
}

/*
 * Of the tables that VACUUM FULL names (vacuumdb names all), those that are not
 * ours.
 */
static List *
WithoutUndo(const List *named)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, named)
	{
		VacuumRelation *vrel = lfirst_node(VacuumRelation, lc);

		if (vrel->relation == NULL ||
			!InplaceIsUndoRelation(RangeVarGetRelid(vrel->relation, NoLock, true)))
			result = lappend(result, vrel);
	}
	return result;
}

/*
 * Like any other VACUUM, VACUUM FULL passes over the undo relations without a
 * word: what it is to do instead, or NULL for nothing.  Any other statement is
 * returned as it is.
 */
VacuumStmt *
inplace_vacuum_stmt(VacuumStmt *stmt, bool toplevel, bool with_names)
{
	MemoryContext oldcontext;

	if (!IsVacuumFull((Node *) stmt) || !IsTransactionState())
		return stmt;
	oldcontext = MemoryContextSwitchTo(PortalContext);
	stmt = copyObject(stmt);
	if (stmt->rels == NIL)
	{
		PreventInTransactionBlock(toplevel, "VACUUM");
		stmt->rels = ListTablesToVacuum(with_names);
		/* an empty list would be all tables, with the warnings once more */
		if (stmt->rels == NIL)
			stmt = NULL;
	}
	else
	{
		List	   *others = WithoutUndo(stmt->rels);

		/* an empty list would be all tables */
		if (others != NIL)
			stmt->rels = others;
		else
			stmt->options = NIL;
	}
	MemoryContextSwitchTo(oldcontext);
	return stmt;
}

/*
 * Go on with another statement in its place.
 */
static void
ReplaceStatement(UtilityArgs *u, Node *stmt)
{
	PlannedStmt *pstmt = makeNode(PlannedStmt);

	memcpy(pstmt, u->pstmt, sizeof(PlannedStmt));
	pstmt->utilityStmt = stmt;
	u->pstmt = pstmt;
	u->readOnlyTree = false;
}

static void
CallVacuum(UtilityArgs *u)
{
	VacuumStmt *stmt = (VacuumStmt *) u->pstmt->utilityStmt;
	VacuumStmt *instead = inplace_vacuum_stmt(stmt,
											  u->context == PROCESS_UTILITY_TOPLEVEL,
											  prev_ProcessUtility_hook != NULL);

	if (instead == NULL)
		return;
	if (instead != stmt)
	{
		/* it is to survive the transactions that VACUUM makes */
		MemoryContext oldcontext = MemoryContextSwitchTo(PortalContext);

		ReplaceStatement(u, (Node *) instead);
		MemoryContextSwitchTo(oldcontext);
	}
	CallUtility(u);
}

static void
CallCreateIndex(UtilityArgs *u)
{
	IndexStmt  *stmt = inplace_index_stmt((IndexStmt *) u->pstmt->utilityStmt,
										  u->queryString);

	if (stmt != NULL)
		ReplaceStatement(u, (Node *) stmt);
	CallUtility(u);
}

static void
CallAlterTable(UtilityArgs *u)
{
	AlterTableStmt *stmt = (AlterTableStmt *) u->pstmt->utilityStmt;

	inplace_check_alter_index(stmt);
	inplace_before_alter_table(stmt);
	if (!RewriteProgressBegin(stmt))
	{
		CallUtility(u);
		return;
	}
	PG_TRY();
	{
		CallUtility(u);
		ConvertStatsNote(inplace_rewriting);
	}
	PG_FINALLY();
	{
		RewriteProgressEnd();
	}
	PG_END_TRY();
}

static void
RunUtility(UtilityArgs *u)
{
	Node	   *stmt = u->pstmt->utilityStmt;
	Node	   *instead;
	Oid			dboid;
	bool		forget;
	bool		outer;

	inplace_check_tables_of(stmt);
	instead = inplace_table_statement_begins(stmt, &outer);
	if (instead != NULL)
		ReplaceStatement(u, instead);

	if (IsA(stmt, ConstraintsSetStmt))
		CallConstraintsSet(u);
	else if (OidIsValid(dboid = StatementDatabase(stmt, &forget)))
		CallDatabaseStatement(u, dboid, forget);
	else if (IsA(stmt, VacuumStmt))
		CallVacuum(u);
	else if (IsA(stmt, IndexStmt))
		CallCreateIndex(u);
	else if (IsA(stmt, AlterTableStmt))
		CallAlterTable(u);
	else if (IsA(stmt, CreateOpClassStmt))
	{
		if (inplace_restore_mirror((CreateOpClassStmt *) stmt))
		{
			inplace_table_statement_ends(outer);
			return;
		}
		inplace_before_create_opclass((CreateOpClassStmt *) stmt);
		CallUtility(u);
	}
	else
	{
		if (IsA(stmt, AlterExtensionContentsStmt))
			InplaceKeepMembers((AlterExtensionContentsStmt *) stmt);
		CallUtility(u);
	}
	inplace_table_statement_ends(outer);
	inplace_drop_orphaned_mirrors();
}

/*
 * Where the extension is not installed.  DROP DATABASE and the like are about another
 * database, which may have an undo worker in it.
 */
static void
RunForeignUtility(UtilityArgs *u)
{
	bool		forget;
	Oid			dboid = StatementDatabase(u->pstmt->utilityStmt, &forget);

	if (OidIsValid(dboid))
		CallDatabaseStatement(u, dboid, forget);
	else
		CallUtility(u);
}

static void
InplaceProcessUtility(PlannedStmt *pstmt, const char *queryString,
					  bool readOnlyTree, ProcessUtilityContext context,
					  ParamListInfo params, QueryEnvironment *queryEnv,
					  DestReceiver *dest, QueryCompletion *qc)
{
	UtilityArgs u = {
		pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc
	};

	if (!InplaceInstalledNow())
	{
		RunForeignUtility(&u);
		return;
	}
	NoLockInUserCode();
	RefuseRename(pstmt->utilityStmt);
	if (!UndoHoldBeforeUtility(pstmt->utilityStmt))
	{
		RunUtility(&u);
		UndoHoldNoteExport();
		return;
	}
	/* an error may end a subtransaction only */
	PG_TRY();
	{
		RunUtility(&u);
	}
	PG_FINALLY();
	{
		UndoHoldResume();
		UndoHoldNoteExport();
	}
	PG_END_TRY();
}

/* ---------------- loading ---------------- */

static const struct config_enum_entry default_index_methods[] = {
	{"inplace_btree", DEFAULT_INDEX_INPLACE_BTREE, false},
	{"btree", DEFAULT_INDEX_BTREE, false},
	{NULL, 0, false}
};

static void
DefineSettings(void)
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
	DefineCustomIntVariable("inplace.max_undo_workers",
							"Largest number of undo workers at a time.",
							"There is one for each database with undo; they come out of max_worker_processes.",
							&inplace_max_undo_workers,
							3, 1, UNDO_MAX_WORKERS,
							PGC_SIGHUP, 0,
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
	prev_ProcessUtility_hook = ProcessUtility_hook;
	ProcessUtility_hook = InplaceProcessUtility;
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
	inplace_above_init(InplaceProcessUtility);
	inplace_late_open_init();
	inplace_as_btree_init();
	inplace_planner_init();
	inplace_young_index_init();
	inplace_opclass_init();
	inplace_heap_readers_init();
	inplace_whose_page_init();
	inplace_default_table_init();
	ConvertStatsInit();
	FreezeForgetInit();
	FreezeOptionsInit();
	InplaceRmgrRegister();
	UndoWorkerRegister();
	RegisterXactCallback(InplaceXactCallback, NULL);
	InplaceGuardClient();
	UndoRegisterCallbacks();
	inplace_register_row_page_callbacks();
	UndoHoldInit();
	inplace_preloaded = true;
}

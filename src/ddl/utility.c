/*-------------------------------------------------------------------------
 *
 * utility.c
 *	  Utility statements on their way to the server.
 *
 * What is done with them
 *	  DROP DATABASE and the like need the undo worker out of the database.
 *	  VACUUM FULL of a whole database has to leave the undo relations out (in
 *	  above.c, too).
 *	  SET CONSTRAINTS fires triggers as the end of a transaction does.
 *	  CREATE INDEX makes inplace_btree indexes (default_method.c, and above.c
 *	  where another extension executes it).
 *	  ALTER TABLE ... SET ACCESS METHOD shows how far it is.
 *	  What is left of dropped operator classes goes (opclass.c).
 *	  Tables that have a file of another method's are refused (whose_page.c).
 *	  Tables of extensions are heap's (default_table.c).
 *	  A transaction's snapshot is made known to others (undo/holders.c).
 *	  Where the extension is not installed none of this is done (own.c).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "commands/vacuum.h"
#include "ddl/above.h"
#include "ddl/convert_stats.h"
#include "ddl/ddl.h"
#include "ddl/default_method.h"
#include "ddl/default_table.h"
#include "ddl/opclass.h"
#include "ddl/whose_page.h"
#include "executor/executor.h"
#include "freeze/freeze_forget.h"
#include "index/late_open.h"
#include "nodes/makefuncs.h"
#include "own.h"
#include "scan/rewrite_progress.h"
#include "storage/ipc.h"
#include "tcop/utility.h"
#include "undo/hold.h"
#include "undo/space.h"
#include "undo/worker.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/portal.h"
#include "utils/syscache.h"

static ProcessUtility_hook_type prev_ProcessUtility_hook = NULL;

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
 * Would the server let this user have the database exclusively?  If not the
 * statement fails, and the worker is left alone.  A user who may create databases
 * may copy other users' templates.
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

/*
 * With the undo worker out of the database; this waits, and may be cancelled.
 */
static void
CallDetached(UtilityArgs *u, Oid dboid, bool forget)
{
	UndoWorkerDetachDatabase(dboid);
	CallUtility(u);
	/* no one else can be connected to it now */
	if (forget)
		UndoSpacesForget(dboid, NULL, 0);
	if (IsA(u->pstmt->utilityStmt, DropdbStmt))
		FreezeStatsForgetDatabase(dboid);
}

static void
ReattachDatabase(int code, Datum dboid)
{
	UndoWorkerReattachDatabase(DatumGetObjectId(dboid));
}

/*
 * The database is detached until the statement ends, though that be with the session.
 */
static void
CallDatabaseStatement(UtilityArgs *u, Oid dboid, bool forget)
{
	PG_ENSURE_ERROR_CLEANUP(ReattachDatabase, ObjectIdGetDatum(dboid));
	{
		CallDetached(u, dboid, forget);
	}
	PG_END_ENSURE_ERROR_CLEANUP(ReattachDatabase, ObjectIdGetDatum(dboid));
	UndoWorkerReattachDatabase(dboid);
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
 * What is made here is to survive the transactions that VACUUM makes.  C code may call
 * the server where there is no portal.
 */
static MemoryContext
surviving_context(void)
{
	return PortalContext != NULL ? PortalContext : TopMemoryContext;
}

/*
 * All tables of the database but ours that the user may VACUUM, as VACUUM itself
 * would list them: for tables that it is given it checks the right only when it has
 * locked them.  The list must survive the transactions that VACUUM makes.  Other
 * extensions want names; if a table is gone by then VACUUM will say so.
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
	oldcontext = MemoryContextSwitchTo(surviving_context());
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

	/* in a function or a parallel worker the server refuses it */
	if (!toplevel || IsInParallelMode() ||
		!IsVacuumFull((Node *) stmt) || !IsTransactionState())
		return stmt;
	oldcontext = MemoryContextSwitchTo(surviving_context());
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
		MemoryContext oldcontext = MemoryContextSwitchTo(surviving_context());

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
CallByKind(UtilityArgs *u)
{
	Node	   *stmt = u->pstmt->utilityStmt;
	Node	   *instead = inplace_table_statement_instead(stmt);
	Oid			dboid;
	bool		forget;

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
			return;
		inplace_before_create_opclass((CreateOpClassStmt *) stmt);
		CallUtility(u);
	}
	else
	{
		if (IsA(stmt, AlterExtensionContentsStmt))
			InplaceKeepMembers((AlterExtensionContentsStmt *) stmt);
		CallUtility(u);
	}
}

static void
RunUtility(UtilityArgs *u)
{
	bool		outer;

	inplace_check_tables_of(u->pstmt->utilityStmt);
	outer = inplace_table_statement_begins(u->pstmt->utilityStmt);
	PG_TRY();
	{
		CallByKind(u);
	}
	PG_FINALLY();
	{
		inplace_table_statement_ends(outer);
	}
	PG_END_TRY();
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

void
inplace_utility_init(void)
{
	prev_ProcessUtility_hook = ProcessUtility_hook;
	ProcessUtility_hook = InplaceProcessUtility;
	inplace_above_init(InplaceProcessUtility);
}

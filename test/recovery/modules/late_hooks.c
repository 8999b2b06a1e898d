/*
 * Hooks of an extension whose library comes before or after ours: one that looks
 * at the methods of a child's indexes when its paths have been made, and one
 * that executes CREATE INDEX and VACUUM itself instead of asking whoever is before it.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "commands/vacuum.h"
#include "fmgr.h"
#include "nodes/parsenodes.h"
#include "nodes/pathnodes.h"
#include "optimizer/paths.h"
#include "parser/parse_node.h"
#include "parser/parse_utilcmd.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

static set_rel_pathlist_hook_type prev_set_rel_pathlist = NULL;
static ProcessUtility_hook_type prev_ProcessUtility = NULL;

static void
show_methods(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	ListCell   *lc;

	if (prev_set_rel_pathlist)
		prev_set_rel_pathlist(root, rel, rti, rte);
	if (rte->rtekind != RTE_RELATION || rte->inh ||
		get_rel_relkind(rte->relid) != RELKIND_RELATION)
		return;
	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		elog(NOTICE, "%s is %s", get_rel_name(index->indexoid),
			 get_am_name(index->relam));
	}
}

static void
create_index(IndexStmt *stmt, const char *query)
{
	Oid			relid = RangeVarGetRelidExtended(stmt->relation, ShareLock, 0,
												 RangeVarCallbackOwnsRelation, NULL);

	stmt = transformIndexStmt(relid, stmt, query);
#if PG_VERSION_NUM >= 160000
	DefineIndex(relid, stmt, InvalidOid, InvalidOid, InvalidOid, -1,
				false, true, false, false, false);
#else
	DefineIndex(relid, stmt, InvalidOid, InvalidOid, InvalidOid,
				false, true, false, false, false);
#endif
}

static void
execute(PlannedStmt *pstmt, const char *query, bool readOnlyTree,
		ProcessUtilityContext context, ParamListInfo params,
		QueryEnvironment *queryEnv, DestReceiver *dest, QueryCompletion *qc)
{
	/* (like TimescaleDB, it leaves all but its own tables to others) */
	if (IsA(pstmt->utilityStmt, IndexStmt) &&
		strncmp(((IndexStmt *) pstmt->utilityStmt)->relation->relname, "its_", 4) == 0)
	{
		elog(NOTICE, "executed by another extension");
		create_index(copyObject((IndexStmt *) pstmt->utilityStmt), query);
	}
	else if (IsA(pstmt->utilityStmt, VacuumStmt))
	{
		ListCell   *lc;

		/* as TimescaleDB does with those it knows, without a look whether there is one */
		foreach(lc, ((VacuumStmt *) pstmt->utilityStmt)->rels)
			if (strncmp(lfirst_node(VacuumRelation, lc)->relation->relname, "its_", 4) == 0)
				elog(NOTICE, "one of its tables");
		elog(NOTICE, "executed by another extension");
		ExecVacuum(make_parsestate(NULL), (VacuumStmt *) pstmt->utilityStmt,
				   context == PROCESS_UTILITY_TOPLEVEL);
	}
	else if (prev_ProcessUtility)
		prev_ProcessUtility(pstmt, query, readOnlyTree, context, params, queryEnv, dest, qc);
	else
		standard_ProcessUtility(pstmt, query, readOnlyTree, context, params, queryEnv, dest, qc);
}

void
_PG_init(void)
{
	prev_set_rel_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = show_methods;
	prev_ProcessUtility = ProcessUtility_hook;
	ProcessUtility_hook = execute;
}

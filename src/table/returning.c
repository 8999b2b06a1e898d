/*-------------------------------------------------------------------------
 *
 * returning.c
 *	  The ctid that people see.
 *
 * Slots with an updated row carry a version tag in their TID (tuple.h) where
 * AFTER ROW triggers will ask for the version.  Such TIDs get to the user
 * through RETURNING.  There each reference to the ctid of such a table is wrapped
 * in a function that takes the tag off.  This is done right before planning, so
 * that it shows in no view or rule; all other references to ctid are of clean
 * TIDs, and are left alone for the sake of TID scans.
 *
 * Nor does it show in EXPLAIN, which prints the target list of the ModifyTable
 * node; what is executed are its lists of RETURNING.  When the executor has
 * started, a node with a target list without the function takes the place of
 * the planned one in the state.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type_d.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "parser/parse_func.h"
#include "parser/parsetree.h"
#include "table/table.h"

PG_FUNCTION_INFO_V1(inplace_row_tid);

static planner_hook_type prev_planner_hook = NULL;
static ExecutorStart_hook_type prev_ExecutorStart_hook = NULL;

/* the function, once this session has planned a query with it */
static Oid	row_tid_oid = InvalidOid;

Datum
inplace_row_tid(PG_FUNCTION_ARGS)
{
	ItemPointer tid = (ItemPointer) PG_GETARG_POINTER(0);
	ItemPointer res = palloc(sizeof(ItemPointerData));

	TidClean(res, tid);
	PG_RETURN_POINTER(res);
}

/* may an updated row of this table have a tag, for its triggers' sake? */
static bool
updates_are_tagged(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);
	bool		result;

	/* a partition may be of any access method and have triggers of its own */
	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE ||
		rel->rd_rel->relhassubclass)
		result = true;
	else
		result = rel->rd_rel->relkind == RELKIND_RELATION &&
			RelationIsInplace(rel) && rel->trigdesc != NULL &&
			rel->trigdesc->trig_update_after_row;
	table_close(rel, NoLock);
	return result;
}

typedef struct WrapContext
{
	Query	   *query;
	Oid			funcid;
	int			sublevels_up;
} WrapContext;

static Node *
wrap_mutator(Node *node, WrapContext *cxt)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Query))
	{
		Node	   *result;

		cxt->sublevels_up++;
		result = (Node *) query_tree_mutator((Query *) node, wrap_mutator, cxt, 0);
		cxt->sublevels_up--;
		return result;
	}
	if (IsA(node, Var))
	{
		Var		   *var = (Var *) node;
		RangeTblEntry *rte;

		if (var->varattno != SelfItemPointerAttributeNumber ||
			var->varlevelsup != cxt->sublevels_up || var->vartype != TIDOID)
			return node;
		rte = rt_fetch(var->varno, cxt->query->rtable);
		if (rte->rtekind != RTE_RELATION || !updates_are_tagged(rte->relid))
			return node;
		if (!OidIsValid(cxt->funcid))
		{
			Oid			argtypes[] = {TIDOID};

			cxt->funcid = LookupFuncName(list_make2(makeString("inplace"),
													makeString("row_tid")),
										 1, argtypes, true);
			if (!OidIsValid(cxt->funcid))
				return node;
			row_tid_oid = cxt->funcid;
		}
		return (Node *) makeFuncExpr(cxt->funcid, TIDOID, list_make1(copyObject(var)),
									 InvalidOid, InvalidOid,
									 COERCE_IMPLICIT_CAST);
	}
	return expression_tree_mutator(node, wrap_mutator, cxt);
}

static bool
wrap_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		Query	   *query = (Query *) node;
		WrapContext cxt = {query, InvalidOid, 0};

		if (query->returningList)
			query->returningList = (List *) wrap_mutator((Node *) query->returningList, &cxt);
		/* the new row is checked with the TID that its triggers will ask for */
		if (query->withCheckOptions)
			query->withCheckOptions = (List *) wrap_mutator((Node *) query->withCheckOptions, &cxt);
		return query_tree_walker(query, wrap_walker, context, 0);
	}
	return expression_tree_walker(node, wrap_walker, context);
}

static PlannedStmt *
inplace_planner(Query *parse, const char *query_string, int cursorOptions,
				ParamListInfo boundParams)
{
	if (parse->returningList || parse->withCheckOptions || parse->hasModifyingCTE)
		wrap_walker((Node *) parse, NULL);
	if (prev_planner_hook)
		return prev_planner_hook(parse, query_string, cursorOptions, boundParams);
	return standard_planner(parse, query_string, cursorOptions, boundParams);
}

static Node *
unwrap_mutator(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, FuncExpr) && ((FuncExpr *) node)->funcid == row_tid_oid &&
		((FuncExpr *) node)->funcformat == COERCE_IMPLICIT_CAST)
		return copyObject(linitial(((FuncExpr *) node)->args));
	return expression_tree_mutator(node, unwrap_mutator, context);
}

static void
show_unwrapped(PlanState *ps)
{
	ModifyTable *shown;

	if (!IsA(ps, ModifyTableState) ||
		((ModifyTable *) ps->plan)->returningLists == NIL)
		return;
	/* the plan itself may be a cached one, which others execute as well */
	shown = palloc(sizeof(ModifyTable));
	memcpy(shown, ps->plan, sizeof(ModifyTable));
	shown->plan.targetlist = (List *)
		unwrap_mutator((Node *) shown->plan.targetlist, NULL);
	ps->plan = &shown->plan;
}

static void
inplace_executor_start(QueryDesc *queryDesc, int eflags)
{
	EState	   *estate;
	MemoryContext old;
	ListCell   *lc;

	if (prev_ExecutorStart_hook)
		prev_ExecutorStart_hook(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);

	if (!OidIsValid(row_tid_oid) ||
		!(queryDesc->plannedstmt->hasReturning ||
		  queryDesc->plannedstmt->hasModifyingCTE))
		return;
	estate = queryDesc->estate;
	old = MemoryContextSwitchTo(estate->es_query_cxt);
	show_unwrapped(queryDesc->planstate);
	foreach(lc, estate->es_auxmodifytables)
		show_unwrapped((PlanState *) lfirst(lc));
	MemoryContextSwitchTo(old);
}

void
InplaceReturningInit(void)
{
	prev_planner_hook = planner_hook;
	planner_hook = inplace_planner;
	prev_ExecutorStart_hook = ExecutorStart_hook;
	ExecutorStart_hook = inplace_executor_start;
}

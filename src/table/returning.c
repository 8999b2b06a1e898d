/*-------------------------------------------------------------------------
 *
 * returning.c
 *	  The ctid that people see.
 *
 * TIDs in the executor may carry a version tag (tuple.h): those of rows that
 * were locked, and those of updated rows where AFTER ROW triggers will ask for
 * the version.  Such TIDs get to the user through RETURNING and through
 * SELECT ... FOR.  There each reference to the ctid of an inplace table is
 * wrapped in a function that takes the tag off.  This is done right before
 * planning, so that it shows in no view or rule; all other references to ctid
 * are of clean TIDs, and are left alone for the sake of TID scans.
 *
 * Nor should it show in EXPLAIN.  The plan that a mere EXPLAIN makes is never
 * executed, so it goes without; that is the first one that is planned by the
 * statement, unless it is EXPLAIN EXECUTE, whose plan may be kept.  In plans
 * that are executed the function pretends to be an implicit cast, which is
 * shown as its argument where the expression stands in the plan, but not where a
 * node above refers to it.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/sysattr.h"
#include "catalog/namespace.h"
#include "catalog/pg_type_d.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "parser/parse_func.h"
#include "parser/parsetree.h"
#include "table/table.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "catalog/pg_class.h"

PG_FUNCTION_INFO_V1(inplace_row_tid);

bool		inplace_explaining = false;

static planner_hook_type prev_planner_hook = NULL;

Datum
inplace_row_tid(PG_FUNCTION_ARGS)
{
	ItemPointer tid = (ItemPointer) PG_GETARG_POINTER(0);
	ItemPointer res = palloc(sizeof(ItemPointerData));

	TidClean(res, tid);
	PG_RETURN_POINTER(res);
}

/* may rows of this table come from an inplace table? */
static bool
shows_inplace_rows(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	bool		result = false;

	if (HeapTupleIsValid(tuple))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		if (form->relkind == RELKIND_PARTITIONED_TABLE || form->relhassubclass)
			result = true;
		else
			result = form->relam != InvalidOid &&
				form->relam == get_table_am_oid("inplace", true);
		ReleaseSysCache(tuple);
	}
	return result;
}

typedef struct WrapContext
{
	Query	   *query;
	Oid			funcid;
} WrapContext;

static Node *
wrap_mutator(Node *node, WrapContext *cxt)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		Var		   *var = (Var *) node;
		RangeTblEntry *rte;

		if (var->varattno != SelfItemPointerAttributeNumber ||
			var->varlevelsup != 0 || var->vartype != TIDOID)
			return node;
		rte = rt_fetch(var->varno, cxt->query->rtable);
		if (rte->rtekind != RTE_RELATION || !shows_inplace_rows(rte->relid))
			return node;
		if (!OidIsValid(cxt->funcid))
		{
			Oid			argtypes[] = {TIDOID};

			cxt->funcid = LookupFuncName(list_make2(makeString("inplace"),
													makeString("row_tid")),
										 1, argtypes, true);
			if (!OidIsValid(cxt->funcid))
				return node;
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
		WrapContext cxt = {query, InvalidOid};

		if (query->returningList)
			query->returningList = (List *) wrap_mutator((Node *) query->returningList, &cxt);
		if (query->rowMarks)
			query->targetList = (List *) wrap_mutator((Node *) query->targetList, &cxt);
		return query_tree_walker(query, wrap_walker, context, 0);
	}
	return expression_tree_walker(node, wrap_walker, context);
}

static PlannedStmt *
inplace_planner(Query *parse, const char *query_string, int cursorOptions,
				ParamListInfo boundParams)
{
	bool		explained = inplace_explaining;

	/* planning may run functions that plan something themselves */
	inplace_explaining = false;
	if (!explained &&
		(parse->returningList || parse->rowMarks || parse->hasModifyingCTE ||
		 parse->hasForUpdate))
		wrap_walker((Node *) parse, NULL);
	if (prev_planner_hook)
		return prev_planner_hook(parse, query_string, cursorOptions, boundParams);
	return standard_planner(parse, query_string, cursorOptions, boundParams);
}

void
InplaceReturningInit(void)
{
	prev_planner_hook = planner_hook;
	planner_hook = inplace_planner;
}

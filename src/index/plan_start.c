/*-------------------------------------------------------------------------
 *
 * plan_start.c
 *	  Scans of a plan that is about to be executed, for which something is to be done.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "executor/executor.h"
#include "index/gin_query.h"
#include "index/gist_only.h"
#include "index/index.h"
#include "nodes/nodeFuncs.h"
#include "own.h"

static ExecutorStart_hook_type prev_ExecutorStart_hook = NULL;

static bool
look_at_scans(PlanState *ps, void *context)
{
	QueryDesc  *queryDesc = (QueryDesc *) context;

	if (ps == NULL)
		return false;
	if (IsA(ps, BitmapIndexScanState))
		inplace_gin_query_look((BitmapIndexScanState *) ps);
	else if (IsA(ps, IndexOnlyScanState))
		inplace_gist_only_check((IndexOnlyScanState *) ps, queryDesc->snapshot);
	return planstate_tree_walker(ps, look_at_scans, context);
}

static void
look_at_plan(QueryDesc *queryDesc, int eflags)
{
	NoLockInUserCode();
	if (prev_ExecutorStart_hook)
		prev_ExecutorStart_hook(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);
	if (InplaceInstalledHere() && (eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		(void) look_at_scans(queryDesc->planstate, queryDesc);
}

void
inplace_plan_start_init(void)
{
	prev_ExecutorStart_hook = ExecutorStart_hook;
	ExecutorStart_hook = look_at_plan;
}

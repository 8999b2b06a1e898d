/*-------------------------------------------------------------------------
 *
 * gist_only.c
 *	  Index-only scans of GiST indexes under which rows are updated in place.
 *
 * Such a scan does not ask the table about a row of a page that is all-visible.  So nobody
 * notes that it was returned.  If the row is updated then, and the scan comes to
 * its new entry, the version seen is compared with what the entry returns (other_fetch.c).
 * That does if the entry returns all of the key: what says the same is the same entry.
 * But if a column of the key cannot be returned the row may be returned once more.  So the
 * planner is told that such an index can return nothing.
 *
 * A query that needs no column at all, like count(*), may have an index-only scan even so.
 * Without a condition on the index it has none if the index is said to need one.  (One
 * that has such a condition needs the column.)  That would keep scans in the order of a
 * distance from the index, too.  So it is not said where the query's order is by a
 * column of the table, which the scan needs, then.
 *
 * An index that is not marked (other_mark.c) may be so by the time a plan is executed.  It takes no
 * updates as long as the snapshot is there with which the plan was made, nor one of the same
 * xmin.  So the plan is not used with another.  But between planning and the query's own snapshot
 * there is a moment without any.  So when the query begins the index is looked at once more.  If
 * it takes updates by then, the query ends with an error, and can be repeated.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/pg_am_d.h"
#include "executor/executor.h"
#include "index/index.h"
#include "index/other_mark.h"
#include "index/other_method.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "optimizer/tlist.h"
#include "own.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

static get_relation_info_hook_type prev_get_relation_info_hook = NULL;
static ExecutorStart_hook_type prev_ExecutorStart_hook = NULL;

static bool
can_return_key(const IndexOptInfo *index)
{
	for (int i = 0; i < index->nkeycolumns; i++)
		if (!index->canreturn[i])
			return false;
	return true;
}

static bool
is_inplace_table(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);	/* locked by the planner */
	bool		result = RelationIsInplace(rel);

	table_close(rel, NoLock);
	return result;
}

/* is the query's order by something of this table? */
static bool
orders_by_table(PlannerInfo *root, RelOptInfo *rel)
{
	Index		varno = rel->relid;
	ListCell   *lc;

	if (rel->top_parent_relids != NULL)
	{
		varno = bms_next_member(rel->top_parent_relids, -1);
		if (planner_rt_fetch(varno, root)->rtekind != RTE_RELATION)
			return false;
	}
	foreach(lc, root->parse->sortClause)
	{
		Node	   *expr = get_sortgroupclause_expr(lfirst_node(SortGroupClause, lc),
													root->parse->targetList);
		Bitmapset  *columns = NULL;

		pull_varattnos(expr, varno, &columns);
		if (columns != NULL)
			return true;
	}
	return false;
}

static void
tell_as_not_returning(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index)
{
	for (int i = 0; i < index->ncolumns; i++)
		index->canreturn[i] = false;
	if (!orders_by_table(root, rel))
		index->amoptionalkey = false;
}

static void
look_at_gist_indexes(PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel)
{
	ListCell   *lc;

	NoLockInUserCode();
	if (prev_get_relation_info_hook)
		prev_get_relation_info_hook(root, relid, inhparent, rel);
	if (!InplaceInstalledHere() || inhparent)
		return;

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		if (index->relam != GIST_AM_OID || can_return_key(index) ||
			!is_inplace_table(relid))
			continue;
		if (inplace_other_marked(get_rel_persistence(relid), index->indexoid))
			tell_as_not_returning(root, rel, index);
		else if (inplace_update_under_others || RecoveryInProgress())
			/* it may be marked yet */
			root->glob->transientPlan = true;
	}
}

static void
check_index_only(IndexOnlyScanState *ios)
{
	Relation	index = ios->ioss_RelationDesc;

	if (index == NULL || index->rd_rel->relam != GIST_AM_OID ||
		!RelationIsInplace(ios->ss.ss_currentRelation) ||
		RelationUsesLocalBuffers(index) ||
		!inplace_other_has_begun(RelationGetRelid(index)))
		return;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (!index_can_return(index, i + 1))
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("index \"%s\" has come to take updates in place since the query was planned",
							RelationGetRelationName(index)),
					 errhint("The query can be repeated.")));
}

static bool
check_index_only_scans(PlanState *ps, void *context)
{
	if (ps == NULL)
		return false;
	if (IsA(ps, IndexOnlyScanState))
		check_index_only((IndexOnlyScanState *) ps);
	return planstate_tree_walker(ps, check_index_only_scans, context);
}

/* (other plans than these do not depend on it) */
static void
look_at_plan(QueryDesc *queryDesc, int eflags)
{
	NoLockInUserCode();
	if (prev_ExecutorStart_hook)
		prev_ExecutorStart_hook(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);
	if (queryDesc->plannedstmt->transientPlan && InplaceInstalledHere() &&
		(eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		(void) check_index_only_scans(queryDesc->planstate, NULL);
}

void
inplace_gist_only_init(void)
{
	prev_ExecutorStart_hook = ExecutorStart_hook;
	ExecutorStart_hook = look_at_plan;
	prev_get_relation_info_hook = get_relation_info_hook;
	get_relation_info_hook = look_at_gist_indexes;
}

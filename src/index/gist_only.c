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
 * A scan in the order of a distance that is not in floating point may have to begin again at the
 * first row of which it asks the table (other_fetch.c).  So no row must have been returned
 * without that.  The planner is told that an index with such an order can return nothing.  (A
 * scan in that order needs a column.)
 *
 * An index that is not marked (other_mark.c) may be so by the time a plan is executed.  So a query
 * with such a scan is registered when it begins (unmarked_scan.c), until its memory goes, and then
 * looks at the index once more.  If that takes no updates it does not begin to.  That holds for
 * scans that are set up later, too: in parallel workers, which are registered themselves
 * besides, and for rows that are checked anew.  If it takes updates already, the query ends with an
 * error, and can be repeated.  Plans that are kept are made anew when the mark is set, and so
 * rarely come to this.
 *
 * A standby has no part in that; see inplace_other_may_take().
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_type_d.h"
#include "index/gist_only.h"
#include "index/index.h"
#include "index/other_mark.h"
#include "index/other_method.h"
#include "index/unmarked_scan.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "optimizer/tlist.h"
#include "own.h"
#include "parser/parsetree.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/syscache.h"

static get_relation_info_hook_type prev_get_relation_info_hook = NULL;

static bool
can_return_key(const IndexOptInfo *index)
{
	for (int i = 0; i < index->nkeycolumns; i++)
		if (!index->canreturn[i])
			return false;
	return true;
}

static bool
family_orders_by_float(Oid family)
{
	CatCList   *list = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(family));
	bool		result = true;

	for (int i = 0; i < list->n_members; i++)
	{
		Form_pg_amop op = (Form_pg_amop) GETSTRUCT(&list->members[i]->tuple);
		Oid			type;

		if (op->amoppurpose != AMOP_ORDER)
			continue;
		type = get_op_rettype(op->amopopr);
		if (type != FLOAT8OID && type != FLOAT4OID)
			result = false;
	}
	ReleaseSysCacheList(list);
	return result;
}

static bool
families_order_by_float(const Oid *families, int n)
{
	for (int i = 0; i < n; i++)
		if (!family_orders_by_float(families[i]))
			return false;
	return true;
}

/* (those of exclusion constraints never have, though all may count as marked) */
static bool
has_taken(Oid indexid)
{
	Relation	index = index_open(indexid, NoLock);	/* locked by the planner */
	bool		result = inplace_other_took(index);

	index_close(index, NoLock);
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
	bool		all = can_return_key(index);

	for (int i = 0; i < index->ncolumns; i++)
		index->canreturn[i] = false;
	if (!all && !orders_by_table(root, rel))
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

		/* (what another extension makes up is nothing to open) */
		if (index->relam == GIST_AM_OID && !index->hypothetical &&
			!(can_return_key(index) &&
			  families_order_by_float(index->opfamily, index->nkeycolumns)) &&
			inplace_is_inplace_table(relid) && has_taken(index->indexoid) &&
			inplace_other_marked(get_rel_persistence(relid), index->indexoid))
			tell_as_not_returning(root, rel, index);
	}
}

static bool
returns_key(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (!index_can_return(index, i + 1))
			return false;
	return true;
}

static void
query_ended(void *arg)
{
	inplace_unmarked_end((UnmarkedScan *) arg);
}

/* the index is to take no updates until the memory of the query goes */
static void
register_query(MemoryContext cxt, Oid indexid)
{
	UnmarkedScan *scan = MemoryContextAllocZero(cxt, sizeof(UnmarkedScan));
	MemoryContextCallback *callback = MemoryContextAlloc(cxt, sizeof(MemoryContextCallback));

	callback->func = query_ended;
	callback->arg = scan;
	MemoryContextRegisterResetCallback(cxt, callback);
	inplace_unmarked_begin(scan, indexid);
}

void
inplace_gist_plan_is_old(Relation index)
{
	ResetPlanCache();
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("index \"%s\" has come to take updates in place since the query was planned",
					RelationGetRelationName(index)),
			 errhint("The query can be repeated.")));
}

/* a query with such a scan is about to begin */
void
inplace_gist_only_check(IndexOnlyScanState *ios, Snapshot snapshot)
{
	Relation	index = ios->ioss_RelationDesc;

	/* (not opened for EXPLAIN) */
	if (index == NULL || index->rd_rel->relam != GIST_AM_OID ||
		!RelationIsInplace(ios->ss.ss_currentRelation) ||
		RelationUsesLocalBuffers(index) ||
		(returns_key(index) &&
		 (ios->ioss_NumOrderByKeys == 0 ||
		  families_order_by_float(index->rd_opfamily,
								  IndexRelationGetNumberOfKeyAttributes(index)))) ||
		!inplace_other_took(index))
		return;
	InplaceRequirePreload();
	register_query(ios->ss.ps.state->es_query_cxt, RelationGetRelid(index));
	if (!inplace_other_may_take(RelationGetRelid(index), snapshot))
		return;
	inplace_gist_plan_is_old(index);
}

void
inplace_gist_only_init(void)
{
	prev_get_relation_info_hook = get_relation_info_hook;
	get_relation_info_hook = look_at_gist_indexes;
}

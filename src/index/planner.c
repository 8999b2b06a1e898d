/*-------------------------------------------------------------------------
 *
 * planner.c
 *	  The planner treats inplace_btree indexes as the btree indexes that they are.
 *
 * Some of what it does with an index depends on whether the index says btree:
 * row comparisons as conditions, looking up the largest and smallest value in an
 * index instead of trusting the histogram, the height of the tree, telling early which join clauses
 * cannot match.  So what the planner is told about the index says that; the
 * index itself, which the executor opens, is what it is.  (Its operator
 * families are btree's, unless users have made their own for inplace_btree:
 * such an index is left alone.)
 *
 * Up to PostgreSQL 17 the executor refuses a row comparison on an index that is
 * not btree.  There the indexes are left alone in queries that have any.
 *
 * Other extensions may look at a table's indexes when its paths have been made.
 * One that looks for those indexes of a child that are like its parent's
 * compares their methods, and takes the parent's from the catalogs (pg_hint_plan
 * does).  So by then the indexes of children say what they are.  Nothing that is
 * planned later goes by it, but merge joins of partitions one by one (up to
 * PostgreSQL 17, which get the ends of a column's range from the histogram then),
 * and what the other extension has planned again.  From 18 on that may be
 * row comparisons, and in queries that have any the indexes go on saying btree.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opfamily.h"
#include "index/index.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "own.h"
#include "parser/parsetree.h"
#include "utils/rel.h"
#include "utils/syscache.h"

static get_relation_info_hook_type prev_get_relation_info_hook = NULL;
static set_rel_pathlist_hook_type prev_set_rel_pathlist_hook = NULL;

static bool
family_is_btree(Oid family)
{
	HeapTuple	tuple;
	bool		result;

	if (family < FirstNormalObjectId)
		return true;
	tuple = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(family));
	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_opfamily) GETSTRUCT(tuple))->opfmethod == BTREE_AM_OID;
	ReleaseSysCache(tuple);
	return result;
}

/*
 * The height, and up to PostgreSQL 17 the ordering if the server has not found
 * one: by the first operator of each class it looks for a btree class with
 * the same order, and need not find this one.
 */
static void
set_order_and_height(IndexOptInfo *info, Relation index)
{
	if (info->tree_height < 0 && index->rd_rel->relkind == RELKIND_INDEX)
		info->tree_height = _bt_getrootheight(index);
	if (info->sortopfamily != NULL)
		return;
	info->sortopfamily = info->opfamily;
	info->reverse_sort = palloc(sizeof(bool) * info->nkeycolumns);
	info->nulls_first = palloc(sizeof(bool) * info->nkeycolumns);
	for (int i = 0; i < info->nkeycolumns; i++)
	{
		int16		option = index->rd_indoption[i];

		info->reverse_sort[i] = (option & INDOPTION_DESC) != 0;
		info->nulls_first[i] = (option & INDOPTION_NULLS_FIRST) != 0;
	}
}

static void
tell_as_btree(IndexOptInfo *info)
{
	for (int i = 0; i < info->nkeycolumns; i++)
		if (!family_is_btree(info->opfamily[i]))
			return;
	if (info->tree_height < 0 || info->sortopfamily == NULL)
	{
		/* the planner has it locked */
		Relation	index = index_open(info->indexoid, NoLock);

		set_order_and_height(info, index);
		index_close(index, NoLock);
	}
	info->relam = BTREE_AM_OID;
}

static bool
has_row_comparison(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, RowCompareExpr))
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, has_row_comparison, context, 0);
	return expression_tree_walker(node, has_row_comparison, context);
}

static void
inplace_get_relation_info(PlannerInfo *root, Oid relid, bool inhparent,
						  RelOptInfo *rel)
{
	ListCell   *lc;

	if (prev_get_relation_info_hook)
		prev_get_relation_info_hook(root, relid, inhparent, rel);
	if (!InplaceInstalledHere())
		return;

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		if (index->relam == BTREE_AM_OID || index->relam != InplaceBtreeAm())
			continue;
		if (!ROW_COMPARISON_ON_ANY_METHOD &&
			has_row_comparison((Node *) root->parse, NULL))
			return;
		tell_as_btree(index);
	}
}

/* ---------------- what other extensions see ---------------- */

static bool
told_as_btree(IndexOptInfo *index)
{
	return index->relam == BTREE_AM_OID &&
		inplace_relation_am(index->indexoid) == InplaceBtreeAm();
}

/* (an index of a child may be like a btree of its parent, too) */
static bool
parent_has_inplace_btree(PlannerInfo *root, RelOptInfo *child)
{
	int			rti = bms_next_member(child->top_parent_relids, -1);
	RangeTblEntry *rte = planner_rt_fetch(rti, root);
	Relation	parent;
	List	   *indexes;
	ListCell   *lc;
	bool		result = false;

	/* of the parts of a UNION ALL it is not a table */
	if (rte->rtekind != RTE_RELATION)
		return false;
	/* the planner has it locked */
	parent = table_open(rte->relid, NoLock);
	indexes = RelationGetIndexList(parent);
	foreach(lc, indexes)
		result |= inplace_relation_am(lfirst_oid(lc)) == InplaceBtreeAm();
	list_free(indexes);
	table_close(parent, NoLock);
	return result;
}

static void
tell_as_itself(PlannerInfo *root, RelOptInfo *child)
{
	List	   *told = NIL;
	ListCell   *lc;

	foreach(lc, child->indexlist)
	{
		if (told_as_btree(lfirst_node(IndexOptInfo, lc)))
			told = lappend(told, lfirst(lc));
	}
	if (told == NIL ||
		has_row_comparison((Node *) root->parse, NULL) ||
		!parent_has_inplace_btree(root, child))
		return;
	foreach(lc, told)
		lfirst_node(IndexOptInfo, lc)->relam = InplaceBtreeAm();
	list_free(told);
}

/*
 * An extension that was loaded later is to call this first, and one that was
 * loaded before is called after it.
 */
static void
inplace_set_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti,
						 RangeTblEntry *rte)
{
	if (rel->reloptkind == RELOPT_OTHER_MEMBER_REL &&
		(prev_set_rel_pathlist_hook != NULL ||
		 set_rel_pathlist_hook != inplace_set_rel_pathlist) &&
		InplaceInstalledHere())
		tell_as_itself(root, rel);
	if (prev_set_rel_pathlist_hook)
		prev_set_rel_pathlist_hook(root, rel, rti, rte);
}

void
inplace_planner_init(void)
{
	prev_get_relation_info_hook = get_relation_info_hook;
	get_relation_info_hook = inplace_get_relation_info;
	prev_set_rel_pathlist_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = inplace_set_rel_pathlist;
}

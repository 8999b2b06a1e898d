/*-------------------------------------------------------------------------
 *
 * young_index.c
 *	  Indexes that must not be used by a transaction whose snapshot is older.
 *
 * An index that is built while older snapshots exist may lack what these need to
 * come to a row.  A build that finds this says so (ii_BrokenHotChain), and the
 * server keeps the index from them.  There are three cases in which the
 * build's leader does not know it, or nobody listens:
 *
 *	  GIN from PostgreSQL 18 on.  What a worker of a parallel build finds
 *	  stays with the worker.
 *
 *	  Methods under whose indexes rows are updated in place, though they are
 *	  not inplace_btree (other_method.c).  The server takes it that what an index
 *	  lacks is known from CREATE INDEX, and does not ask when it is rebuilt.
 *
 *	  BRIN.  A summary is made of all versions that there are, so MVCC snapshots
 *	  find what they see.  But a SERIALIZABLE transaction has to come to a row by
 *	  values, too, that the row has had meanwhile, to find its conflict with the
 *	  transaction that made them.  And versions may have been dropped before there
 *	  was the index (row/squeeze.c), which does not happen once there is one.
 *
 * So the planner does not hear of such an index of an inplace table, if it is younger
 * than a snapshot with which the plan may be run.  That is the active one, or that of a
 * query that the session has begun and not ended, for a function that this one
 * calls may come to the same plan.  pg_class tells how old the index is: a new file for
 * the index, by whatever command, is a new row there.  Other commands make a new row,
 * too; then the index is not used for a while.  An index of the own transaction is
 * younger than what REPEATABLE READ sees, for that is older than all of its commands.
 * In READ COMMITTED it depends on which command's snapshot it is.
 *
 * One case is left: DROP INDEX of a BRIN index is rolled back.  Updates by that
 * transaction may have dropped versions.  If the ranges are then summarized again, a
 * conflict may be missed.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_am_d.h"
#include "executor/executor.h"
#include "index/index.h"
#include "index/other_mark.h"
#include "index/other_method.h"
#include "lib/ilist.h"
#include "nodes/pathnodes.h"
#include "optimizer/plancat.h"
#include "own.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

/*
 * In the query's own memory, so it is gone with that, however the query ends.  Its
 * snapshot is registered no longer than its subtransaction lasts, which that memory
 * may survive.
 */
typedef struct OpenQuery
{
	dlist_node	node;
	bool		listed;
	SubTransactionId subid;
	Snapshot	snapshot;
	MemoryContextCallback callback;
} OpenQuery;

static dlist_head open_queries = DLIST_STATIC_INIT(open_queries);

static get_relation_info_hook_type prev_get_relation_info_hook = NULL;
static ExecutorStart_hook_type prev_ExecutorStart_hook = NULL;

/*
 * May the index lack something although it does not say so?
 */
static bool
may_lack_something(Oid relid, const IndexOptInfo *index)
{
	if (GIN_BUILDS_IN_PARALLEL && index->relam == GIN_AM_OID)
		return true;
	if (inplace_is_other_method(index->relam))
		return inplace_other_marked(get_rel_persistence(relid), index->indexoid);
	return index->relam == BRIN_AM_OID && IsolationIsSerializable();
}

/*
 * Does the snapshot see what the command "cmin" of transaction "xmin" did?  The
 * command is known only if "own" is set.
 */
static bool
snapshot_sees(Snapshot snapshot, TransactionId xmin, bool own, CommandId cmin)
{
	if (!IsMVCCSnapshot(snapshot))
		return false;
	return own ? cmin < snapshot->curcid : !XidInMVCCSnapshot(xmin, snapshot);
}

static bool
is_younger_than_snapshot(Oid indexoid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(indexoid));
	TransactionId xmin;
	CommandId	cmin = InvalidCommandId;
	bool		own;
	dlist_iter	iter;

	if (!HeapTupleIsValid(tuple))
		return false;
	xmin = HeapTupleHeaderGetXmin(tuple->t_data);
	own = TransactionIdIsCurrentTransactionId(xmin);
	if (own)
		cmin = HeapTupleHeaderGetCmin(tuple->t_data);
	ReleaseSysCache(tuple);

	/* (TransactionXmin is that of the oldest snapshot the session has) */
	if (TransactionIdPrecedes(xmin, TransactionXmin))
		return false;
	if ((own && IsolationUsesXactSnapshot()) || !ActiveSnapshotSet() ||
		!snapshot_sees(GetActiveSnapshot(), xmin, own, cmin))
		return true;
	dlist_foreach(iter, &open_queries)
	{
		OpenQuery  *query = dlist_container(OpenQuery, node, iter.cur);

		if (!snapshot_sees(query->snapshot, xmin, own, cmin))
			return true;
	}
	return false;
}

/* the table is locked, by the planner or by whoever executes the query */
bool
inplace_is_inplace_table(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);
	bool		result = RelationIsInplace(rel);

	table_close(rel, NoLock);
	return result;
}

static void
leave_out_young_indexes(PlannerInfo *root, Oid relid, bool inhparent,
						RelOptInfo *rel)
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

		if (!may_lack_something(relid, index) ||
			!is_younger_than_snapshot(index->indexoid) ||
			!inplace_is_inplace_table(relid))
			continue;
		rel->indexlist = foreach_delete_current(rel->indexlist, lc);

		/* a later transaction may use it */
		root->glob->transientPlan = true;
	}
}

static void
forget_query(OpenQuery *query)
{
	if (query->listed)
		dlist_delete(&query->node);
	query->listed = false;
}

static void
query_ended(void *arg)
{
	forget_query((OpenQuery *) arg);
}

static void
queries_after_subxact(SubXactEvent event, SubTransactionId subid,
					  SubTransactionId parent, void *arg)
{
	dlist_mutable_iter iter;

	if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
		return;
	dlist_foreach_modify(iter, &open_queries)
	{
		OpenQuery  *query = dlist_container(OpenQuery, node, iter.cur);

		if (query->subid != subid)
			continue;
		if (event == SUBXACT_EVENT_COMMIT_SUB)
			query->subid = parent;
		else
			forget_query(query);
	}
}

static void
queries_after_xact(XactEvent event, void *arg)
{
	dlist_mutable_iter iter;

	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PARALLEL_PRE_COMMIT ||
		event == XACT_EVENT_PRE_PREPARE)
		return;
	dlist_foreach_modify(iter, &open_queries)
	{
		forget_query(dlist_container(OpenQuery, node, iter.cur));
	}
}

static void
note_open_query(QueryDesc *queryDesc, int eflags)
{
	OpenQuery  *query;

	NoLockInUserCode();
	if (prev_ExecutorStart_hook)
		prev_ExecutorStart_hook(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);
	if (!InplaceInstalledHere())
		return;

	/* what READ COMMITTED is not has a single snapshot */
	if (IsolationUsesXactSnapshot() || queryDesc->snapshot == InvalidSnapshot)
		return;
	query = MemoryContextAlloc(queryDesc->estate->es_query_cxt, sizeof(OpenQuery));
	query->listed = true;
	query->subid = GetCurrentSubTransactionId();
	query->snapshot = queryDesc->snapshot;
	query->callback.func = query_ended;
	query->callback.arg = query;
	MemoryContextRegisterResetCallback(queryDesc->estate->es_query_cxt,
									   &query->callback);
	dlist_push_head(&open_queries, &query->node);
}

void
inplace_young_index_init(void)
{
	prev_ExecutorStart_hook = ExecutorStart_hook;
	ExecutorStart_hook = note_open_query;
	RegisterXactCallback(queries_after_xact, NULL);
	RegisterSubXactCallback(queries_after_subxact, NULL);
	prev_get_relation_info_hook = get_relation_info_hook;
	get_relation_info_hook = leave_out_young_indexes;
}

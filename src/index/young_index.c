/*-------------------------------------------------------------------------
 *
 * young_index.c
 *	  Indexes that are not for a transaction whose snapshot is older.
 *
 * An index that is built while older snapshots exist may lack what these need to
 * come to a row.  Where the build finds that it does it says so
 * (ii_BrokenHotChain), and the server keeps the index from them.  There are two cases
 * in which that is not known:
 *
 *	  GIN from PostgreSQL 18 on.  What a worker of a parallel build finds
 *	  stays with the worker.
 *
 *	  BRIN.  A summary is made of all versions that there are, so MVCC snapshots
 *	  find what they see.  But a SERIALIZABLE one has to come to a row by values,
 *	  too, that the row has had meanwhile, to be found in conflict with who made
 *	  them; and versions may have been dropped before there was the index
 *	  (undo/squeeze.c; with it none are).
 *
 * So the planner does not hear of such an index of an inplace table, if it is younger
 * than the transaction's snapshot, as if it had indcheckxmin.  How old it is
 * tells pg_class: a new file for the index, by whatever command, is a new
 * row there.  (Other commands make one, too; then the index is not used for a
 * while.)  In READ COMMITTED it is left out only of plans that are made with a snapshot
 * to which its builder is still running (by a STABLE function of an older query), and
 * of those made while the session has an older snapshot, which may use the plan, too.
 *
 * Not so if DROP INDEX of a BRIN index is rolled back: updates by that transaction may
 * have dropped versions.  If the ranges are then summarized anew, a conflict may
 * be missed.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_am_d.h"
#include "index/ddl.h"
#include "nodes/pathnodes.h"
#include "optimizer/plancat.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

static get_relation_info_hook_type prev_get_relation_info_hook = NULL;

/*
 * May the index lack something although it does not say so?
 */
static bool
may_lack_something(const IndexOptInfo *index)
{
	if (GIN_BUILDS_IN_PARALLEL && index->relam == GIN_AM_OID)
		return true;
	return index->relam == BRIN_AM_OID && IsolationIsSerializable();
}

/*
 * TransactionXmin is that of the oldest snapshot the session has.
 */
static bool
is_younger_than_snapshot(Oid indexoid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(indexoid));
	Snapshot	snapshot;
	TransactionId xmin;

	if (!HeapTupleIsValid(tuple))
		return false;
	xmin = HeapTupleHeaderGetXmin(tuple->t_data);
	ReleaseSysCache(tuple);
	if (TransactionIdPrecedes(xmin, TransactionXmin))
		return false;
	if (IsolationUsesXactSnapshot() || !ActiveSnapshotSet())
		return true;
	snapshot = GetActiveSnapshot();
	return !IsMVCCSnapshot(snapshot) ||
		TransactionIdPrecedes(TransactionXmin, snapshot->xmin) ||
		XidInMVCCSnapshot(xmin, snapshot);
}

static bool
is_inplace_table(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);	/* locked by the planner */
	bool		result = RelationIsInplace(rel);

	table_close(rel, NoLock);
	return result;
}

static void
leave_out_young_indexes(PlannerInfo *root, Oid relid, bool inhparent,
						RelOptInfo *rel)
{
	ListCell   *lc;

	if (prev_get_relation_info_hook)
		prev_get_relation_info_hook(root, relid, inhparent, rel);
	if (inhparent)
		return;

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		if (!may_lack_something(index) ||
			!is_younger_than_snapshot(index->indexoid) ||
			!is_inplace_table(relid))
			continue;
		rel->indexlist = foreach_delete_current(rel->indexlist, lc);

		/* a later transaction may use it */
		root->glob->transientPlan = true;
	}
}

void
inplace_young_index_init(void)
{
	prev_get_relation_info_hook = get_relation_info_hook;
	get_relation_info_hook = leave_out_young_indexes;
}

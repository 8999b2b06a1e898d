/*-------------------------------------------------------------------------
 *
 * late_open.c
 *	  The indexes of a table that is updated are opened when the executor has to
 *	  insert into them.
 *
 * The executor opens (and locks) all indexes of the table before the first row
 * of an UPDATE, for new versions have new TIDs as a rule.  Here they do not:
 * what an update in place changes in indexes it does itself (taking.c).  For an
 * UPDATE of one row this opening and closing would be most of what the indexes
 * cost.
 *
 * So the start of an UPDATE notes an array of no indexes as opened.  When
 * a row is moved, or has to be told to summarizing indexes, the real ones take
 * its place before the table's part of the update comes back, which is before
 * the executor looks for them.
 *
 * Invariants
 *	 1. Only an UPDATE of a single table has this: with partitions, in MERGE and
 *		in INSERT ON CONFLICT the executor inserts into the same table
 *		too, and asks nobody here before.
 *	 2. The executor hands over the row to be updated in the slot
 *		ri_newTupleSlot, while the statement is the one that runs (load.c); either
 *		tells whose it is.  Others that update the same table at the same time
 *		(functions called by the statement, replication) have slots of their own, and
 *		are not that statement.
 *	 3. A note stands for as long as the executor's state, by a callback of its
 *		memory context, or until the indexes are opened.  Where the (sub)transaction
 *		of the statement is aborted that may be longer than the relation is open (the state
 *		of a function in SQL stays, up to 17, until it is called again): then it ends
 *		with that.
 *
 * No lock that matters is missing: whatever may not happen to an index while its
 * table is updated is kept off by the lock of the table, as for DELETE, which
 * does not open indexes either.  What the session itself may not do to an open index,
 * in triggers and functions, is refused here from when the executor would have opened
 * it: REINDEX, DROP INDEX, ALTER INDEX.  Only that: functions that read the table for
 * an index and build none (BRIN's to summarize ranges, amcheck's) may, as with open
 * indexes.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "commands/tablecmds.h"
#include "executor/executor.h"
#include "index/index.h"
#include "index/late_open.h"
#include "lib/ilist.h"
#include "nodes/execnodes.h"
#include "own.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "xact_end.h"

typedef struct LateOpen
{
	dlist_node	node;
	bool		listed;
	EState	   *estate;
	ResultRelInfo *rri;
	SubTransactionId subid;		/* of the statement */
	MemoryContextCallback callback;
} LateOpen;

static ExecutorStart_hook_type prev_ExecutorStart_hook = NULL;
static object_access_hook_type prev_object_access_hook = NULL;

static dlist_head late_opens = DLIST_STATIC_INIT(late_opens);

/* stands for the indexes until they are opened; has none, see ri_NumIndices */
static Relation not_opened[1] = {NULL};

static void
forget(void *arg)
{
	LateOpen   *late = (LateOpen *) arg;

	if (late->listed)
		dlist_delete(&late->node);
	late->listed = false;
}

static void
late_open_subxact(SubXactEvent event, SubTransactionId subid,
				  SubTransactionId parent, void *arg)
{
	dlist_mutable_iter iter;

	if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
		return;
	dlist_foreach_modify(iter, &late_opens)
	{
		LateOpen   *late = dlist_container(LateOpen, node, iter.cur);

		if (late->subid != subid)
			continue;
		if (event == SUBXACT_EVENT_COMMIT_SUB)
			late->subid = parent;
		else
			forget(late);
	}
}

static void
late_open_xact(XactEvent event, void *arg)
{
	dlist_mutable_iter iter;

	if (!XactIsRolledBack(event))
		return;
	dlist_foreach_modify(iter, &late_opens)
		forget(dlist_container(LateOpen, node, iter.cur));
}

static void
open_late(QueryDesc *queryDesc)
{
	ModifyTableState *mt = (ModifyTableState *) queryDesc->planstate;
	ResultRelInfo *rri;
	LateOpen   *late;

	if (!IsA(mt, ModifyTableState) || mt->operation != CMD_UPDATE ||
		mt->mt_nrels != 1 || mt->rootResultRelInfo != mt->resultRelInfo)
		return;
	rri = mt->resultRelInfo;
	if (!RelationIsInplace(rri->ri_RelationDesc) ||
		!rri->ri_RelationDesc->rd_rel->relhasindex ||
		rri->ri_IndexRelationDescs != NULL)
		return;

	late = MemoryContextAlloc(queryDesc->estate->es_query_cxt, sizeof(LateOpen));
	late->estate = queryDesc->estate;
	late->rri = rri;
	late->subid = GetCurrentSubTransactionId();
	late->callback.func = forget;
	late->callback.arg = late;
	MemoryContextRegisterResetCallback(queryDesc->estate->es_query_cxt,
									   &late->callback);
	dlist_push_head(&late_opens, &late->node);
	late->listed = true;
	rri->ri_NumIndices = 0;
	rri->ri_IndexRelationDescs = not_opened;
}

/* once too often does no harm, once too few would leave the row without entries */
static bool
may_be_of(const LateOpen *late, Relation rel, TupleTableSlot *slot)
{
	return late->rri->ri_newTupleSlot == slot ||
		(late->estate == inplace_executor_estate && late->rri->ri_RelationDesc == rel);
}

/*
 * The row in the slot needs new entries by the executor.  No page is locked.
 */
void
inplace_open_indexes(Relation rel, TupleTableSlot *slot)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &late_opens)
	{
		LateOpen   *late = dlist_container(LateOpen, node, iter.cur);
		ResultRelInfo *rri = late->rri;
		MemoryContext old;

		if (!may_be_of(late, rel, slot))
			continue;
		Assert(rri->ri_IndexRelationDescs == not_opened);
		forget(late);
		rri->ri_IndexRelationDescs = NULL;
		old = MemoryContextSwitchTo(late->estate->es_query_cxt);
		ExecOpenIndices(rri, false);
		MemoryContextSwitchTo(old);
	}
}

/*
 * Is there an UPDATE of the table that would have its indexes open by now?  (They
 * are opened for the first row to be updated, when its projection is there.)
 */
bool
inplace_indexes_in_use(Oid tableid)
{
	dlist_iter	iter;

	dlist_foreach(iter, &late_opens)
	{
		ResultRelInfo *rri = dlist_container(LateOpen, node, iter.cur)->rri;

		if (RelationGetRelid(rri->ri_RelationDesc) == tableid &&
			rri->ri_projectNewInfoValid)
			return true;
	}
	return false;
}

/* as the server's CheckTableNotInUse() */
void
inplace_check_index_not_in_use(Oid tableid, const char *indexname,
							   const char *stmt)
{
	if (inplace_indexes_in_use(tableid))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("cannot %s \"%s\" because it is being used by active queries in this session",
						stmt, indexname)));
}

/*
 * ALTER INDEX, which the server refuses by the index being open, but for its name.
 */
void
inplace_check_alter_index(AlterTableStmt *stmt)
{
	Oid			relid;

	if (dlist_is_empty(&late_opens))
		return;
	/* locks it, and checks, as the statement does */
	relid = AlterTableLookupRelation(stmt, AlterTableGetLockLevel(stmt->cmds));
	if (OidIsValid(relid) && get_rel_relkind(relid) == RELKIND_INDEX)
		inplace_check_index_not_in_use(IndexGetRelation(relid, false),
									   get_rel_name(relid), "ALTER TABLE");
}

static void
refuse_drop(ObjectAccessType access, Oid classId, Oid objectId, int subId,
			void *arg)
{
	if (prev_object_access_hook)
		prev_object_access_hook(access, classId, objectId, subId, arg);
	if (access == OAT_DROP && classId == RelationRelationId && subId == 0 &&
		!dlist_is_empty(&late_opens) && InplaceInstalledHere() &&
		get_rel_relkind(objectId) == RELKIND_INDEX)
		inplace_check_index_not_in_use(IndexGetRelation(objectId, false),
									   get_rel_name(objectId), "DROP INDEX");
}

static void
late_open_executor_start(QueryDesc *queryDesc, int eflags)
{
	NoLockInUserCode();
	if (prev_ExecutorStart_hook)
		prev_ExecutorStart_hook(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);
	if (queryDesc->operation == CMD_UPDATE && InplaceInstalledHere())
		open_late(queryDesc);
}

void
inplace_late_open_init(void)
{
	prev_ExecutorStart_hook = ExecutorStart_hook;
	ExecutorStart_hook = late_open_executor_start;
	prev_object_access_hook = object_access_hook;
	object_access_hook = refuse_drop;
	RegisterXactCallback(late_open_xact, NULL);
	RegisterSubXactCallback(late_open_subxact, NULL);
}

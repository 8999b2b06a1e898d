/*-------------------------------------------------------------------------
 *
 * whose_page.c
 *	  Tables whose file is another access method's.
 *
 * A program that swaps the files of two tables in the catalog, and knows only
 * heap, may give a heap table the file of an inplace table, or the other way
 * round.  A page of a heap table under our method is found whenever it is read
 * (RowPage, page/page.h).  Heap's functions look at nothing that would tell them,
 * and take a page of ours for rows of theirs; an index-only scan looks at no
 * page at all.  So the first page with rows of a table is looked at
 * (page/whose_file.c) before a statement uses it: when it is planned, when the
 * executor opens it to put rows there, and before utility statements that read or
 * write tables.
 *
 * Not found are heap tables that nothing but autovacuum comes to, and partitions
 * that nothing but an INSERT into their parent does: there is no hook on
 * the way.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "ddl/whose_page.h"
#include "executor/executor.h"
#include "nodes/parsenodes.h"
#include "optimizer/plancat.h"
#include "own.h"
#include "page/whose_file.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "undo/worker.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

static get_relation_info_hook_type prev_get_relation_info_hook = NULL;
static ExecutorStart_hook_type prev_ExecutorStart_hook = NULL;

/* how long statements of a session wait for an undo worker in all (after_upgrade.c) */
#define AFTER_UPGRADE_WAIT_MS	10000

/*
 * After pg_upgrade a worker looks whose TOAST tables are.  Give it the time, for what
 * touches large values would be refused.  The table is locked, its TOAST table is not.
 */
static void
wait_for_after_upgrade(Relation rel)
{
	static bool waited = false;
	TimestampTz start;

	if (waited || !RelationIsInplace(rel) ||
		!OidIsValid(rel->rd_rel->reltoastrelid) || RecoveryInProgress())
		return;
	start = GetCurrentTimestamp();
	while (inplace_has_mark_of_upgrade(rel->rd_rel->reltoastrelid))
	{
		CHECK_FOR_INTERRUPTS();
		if (!UndoWorkerMayCome() ||
			TimestampDifferenceExceeds(start, GetCurrentTimestamp(),
									   AFTER_UPGRADE_WAIT_MS))
		{
			waited = true;
			return;
		}
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 20, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}

static void
look_at(Relation rel)
{
	if (inplace_check_whose_file(rel))
		wait_for_after_upgrade(rel);
}

/* ---------------- statements ---------------- */

/*
 * The statement takes its own lock after us.  If that is a stronger one, ours must
 * not be in its way.
 */
static void
check_relid(Oid relid, bool wait)
{
	Relation	rel;

	if (!OidIsValid(relid) || relid < FirstNormalObjectId)
		return;
	if (wait)
		LockRelationOid(relid, AccessShareLock);
	else if (!ConditionalLockRelationOid(relid, AccessShareLock))
		return;
	rel = try_relation_open(relid, NoLock);
	if (rel != NULL)
	{
		look_at(rel);
		relation_close(rel, NoLock);
	}
	UnlockRelationOid(relid, AccessShareLock);
}

static void
check_named(const RangeVar *rv, bool wait)
{
	if (rv != NULL)
		check_relid(RangeVarGetRelid(rv, NoLock, true), wait);
}

/*
 * For a statement that looks whose the table is before it locks it: a role without
 * rights is not to wait, nor to stand in the queue for the lock.
 */
static void
check_maintained(const RangeVar *rv)
{
	Oid			relid = rv == NULL ? InvalidOid :
		RangeVarGetRelid(rv, NoLock, true);

	if (OidIsValid(relid) && CheckRelationMaintainer(relid))
		check_relid(relid, true);
}

/*
 * All tables of the database, for a VACUUM or ANALYZE that names none.
 */
static void
check_all(void)
{
	Relation	pg_class = table_open(RelationRelationId, AccessShareLock);
	TableScanDesc scan = table_beginscan_catalog(pg_class, 0, NULL);
	List	   *relids = NIL;
	HeapTuple	tuple;
	ListCell   *lc;

	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		if (form->relam == HEAP_TABLE_AM_OID && form->oid >= FirstNormalObjectId &&
			(form->relkind == RELKIND_RELATION || form->relkind == RELKIND_MATVIEW ||
			 form->relkind == RELKIND_TOASTVALUE) &&
			!isOtherTempNamespace(form->relnamespace))
			relids = lappend_oid(relids, form->oid);
	}
	table_endscan(scan);
	table_close(pg_class, AccessShareLock);
	foreach(lc, relids)
		check_relid(lfirst_oid(lc), false);
	list_free(relids);
}

static void
check_vacuum(VacuumStmt *stmt)
{
	ListCell   *lc;

	if (stmt->rels == NIL)
		check_all();
	foreach(lc, stmt->rels)
	{
		VacuumRelation *vrel = lfirst_node(VacuumRelation, lc);

		/* SKIP_LOCKED must not wait; what others have locked is left to them */
		if (OidIsValid(vrel->oid))
			check_relid(vrel->oid, false);
		else
			check_named(vrel->relation, false);
	}
}

/*
 * An ALTER TABLE that looks at rows, or may?  (That autovacuum is to leave the table
 * alone can be said of any.)
 */
static bool
may_read_rows(AlterTableStmt *stmt)
{
	ListCell   *lc;

	if (stmt->objtype != OBJECT_TABLE && stmt->objtype != OBJECT_MATVIEW)
		return false;
	foreach(lc, stmt->cmds)
	{
		AlterTableType type = lfirst_node(AlterTableCmd, lc)->subtype;

		if (type != AT_SetRelOptions && type != AT_ResetRelOptions)
			return true;
	}
	return false;
}

/*
 * Before a utility statement that reads or writes tables.  What the planner
 * sees of a statement is left to the planner.
 */
void
inplace_check_tables_of(Node *stmt)
{
	if (!IsTransactionState() || !InplaceInstalledHere())
		return;
	switch (nodeTag(stmt))
	{
		case T_VacuumStmt:
			check_vacuum((VacuumStmt *) stmt);
			break;
		case T_ClusterStmt:
			check_maintained(((ClusterStmt *) stmt)->relation);
			break;
		case T_IndexStmt:
			check_maintained(((IndexStmt *) stmt)->relation);
			break;
		case T_ReindexStmt:
			if (((ReindexStmt *) stmt)->kind == REINDEX_OBJECT_TABLE)
				check_maintained(((ReindexStmt *) stmt)->relation);
			break;
		case T_CopyStmt:
			check_named(((CopyStmt *) stmt)->relation, true);
			break;
		case T_AlterTableStmt:
			if (may_read_rows((AlterTableStmt *) stmt))
				check_maintained(((AlterTableStmt *) stmt)->relation);
			break;
		default:
			break;
	}
}

static void
look_before_planning(PlannerInfo *root, Oid relid, bool inhparent,
					 RelOptInfo *info)
{
	Relation	rel;

	if (prev_get_relation_info_hook)
		prev_get_relation_info_hook(root, relid, inhparent, info);
	if (relid < FirstNormalObjectId || !InplaceInstalledHere())
		return;
	/* the planner has it locked */
	rel = RelationIdGetRelation(relid);
	if (!RelationIsValid(rel))
		return;
	look_at(rel);
	RelationClose(rel);
}

static void
look_before_writing(QueryDesc *queryDesc, int eflags)
{
	ListCell   *lc;

	if (prev_ExecutorStart_hook)
		prev_ExecutorStart_hook(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);
	if (!InplaceInstalledHere())
		return;

	/* an INSERT's table is not asked about in planning */
	foreach(lc, queryDesc->estate->es_opened_result_relations)
	{
		Relation	rel = ((ResultRelInfo *) lfirst(lc))->ri_RelationDesc;

		if (rel->rd_rel->relam == HEAP_TABLE_AM_OID ||
			OidIsValid(rel->rd_rel->reltoastrelid))
			look_at(rel);
	}
}

void
inplace_whose_page_init(void)
{
	prev_get_relation_info_hook = get_relation_info_hook;
	get_relation_info_hook = look_before_planning;
	prev_ExecutorStart_hook = ExecutorStart_hook;
	ExecutorStart_hook = look_before_writing;
}

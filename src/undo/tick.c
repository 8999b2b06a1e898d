/*-------------------------------------------------------------------------
 *
 * tick.c
 *	  The transactions of a tick of the undo worker, and the table that it
 *	  restores rows of.
 *
 * Locks: none on the table that anybody would have to wait for: RowExclusiveLock is
 * taken if it can be had at once and released after a page of undo.
 *
 * Invariant: the worker's xmin is set only while it looks into catalogs.  A catalog snapshot
 * that is left to the transaction's end would keep VACUUM of every table from removing
 * rows, and from setting pages all-visible, for as long as the tick lasts.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "page/whose_file.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "undo/space.h"
#include "undo/tick.h"
#include "undo/undo.h"
#include "undo/undorel.h"
#include "undo/worker.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* ---------------- the table ---------------- */

void
UndoTargetClose(UndoTick *tick)
{
	if (tick->target_valid && tick->target != NULL)
		relation_close(tick->target, RowExclusiveLock);
	tick->target = NULL;
	tick->target_valid = false;
}

/* look for it again, if it was missing */
void
UndoTargetForgetMissing(UndoTick *tick)
{
	if (tick->target == NULL)
		UndoTargetClose(tick);
}

/*
 * The relation with that storage.  The cache behind RelidByRelfilenumber also
 * remembers what it did not find, and learns that the relation's maker has
 * committed only after the horizon has moved on.  So once the answer "there
 * is none" is final the catalog itself is asked, with a new snapshot.  So it is when
 * the answer is a temporary table: up to 17 that cache may take it for one of ours, for
 * their file numbers may be the same.
 */
static Oid
TargetRelid(UndoTick *tick, Oid spc, Oid relnumber)
{
	Oid			relid = RelidByRelfilenumber(spc, relnumber);
	Relation	pg_class;
	SysScanDesc scan;
	ScanKeyData key[2];
	HeapTuple	tuple;

	if (OidIsValid(relid) ? get_rel_persistence(relid) != RELPERSISTENCE_TEMP :
		!tick->past_horizon)
		return relid;

	relid = InvalidOid;
	InvalidateCatalogSnapshot();
	pg_class = table_open(RelationRelationId, AccessShareLock);
	ScanKeyInit(&key[0], Anum_pg_class_reltablespace, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(spc == MyDatabaseTableSpace ? 0 : spc));
	ScanKeyInit(&key[1], Anum_pg_class_relfilenode, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relnumber));
	scan = systable_beginscan(pg_class, ClassTblspcRelfilenodeIndexId, true,
							  NULL, 2, key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		if (form->relpersistence != RELPERSISTENCE_TEMP)
			relid = form->oid;
	}
	systable_endscan(scan);
	table_close(pg_class, AccessShareLock);
	return relid;
}

/*
 * Open the inplace table with that storage, if there is one and nobody is
 * altering it.
 */
static void
TargetOpen(UndoTick *tick, Oid spc, Oid relnumber)
{
	Oid			relid;
	Relation	rel;
	bool		moved = false;

	UndoTargetClose(tick);
	LocatorSpc(tick->target_locator) = spc;
	LocatorDb(tick->target_locator) = MyDatabaseId;
	LocatorRel(tick->target_locator) = relnumber;
	tick->target_valid = true;

	tick->target_missing = tick->past_horizon ? UNDO_SCAN_DONE : UNDO_SCAN_WAIT;
	relid = TargetRelid(tick, spc, relnumber);
	if (!OidIsValid(relid) && spc != MyDatabaseTableSpace && !tick->releasing)
	{
		/*
		 * CREATE DATABASE and ALTER DATABASE may take all tables of the
		 * default tablespace to another one.  (No snapshot is from before
		 * that.  File numbers are unique in a tablespace only.)
		 */
		relid = TargetRelid(tick, MyDatabaseTableSpace, relnumber);
		moved = true;
	}
	if (!OidIsValid(relid))
		return;
	if (!ConditionalLockRelationOid(relid, RowExclusiveLock))
	{
		tick->target_missing = UNDO_SCAN_LATER;
		return;
	}
	rel = try_relation_open(relid, NoLock);
	if (rel == NULL)
	{
		UnlockRelationOid(relid, RowExclusiveLock);
		return;
	}
	if (LocatorRel(RelLocator(rel)) != relnumber ||
		LocatorSpc(RelLocator(rel)) != (moved ? MyDatabaseTableSpace : spc))
	{
		/* changed before we had the lock: look again in the next tick */
		relation_close(rel, RowExclusiveLock);
		tick->target_missing = UNDO_SCAN_LATER;
		return;
	}
	if (!RelationIsInplace(rel))
	{
		RowsOwner	owner = ROWS_HEAPS;

		/* a TOAST table of ours after pg_upgrade: ddl/after_upgrade.c */
		if (rel->rd_rel->relkind == RELKIND_TOASTVALUE &&
			rel->rd_rel->relam == HEAP_TABLE_AM_OID)
			owner = inplace_whose_rows(rel);
		tick->target_missing = owner == ROWS_OURS || owner == ROWS_UNSURE ?
			UNDO_SCAN_LATER : UNDO_SCAN_DONE;
		relation_close(rel, RowExclusiveLock);
		return;
	}
	tick->target = rel;
	tick->target_nblocks = RelationGetNumberOfBlocks(rel);
}

/*
 * The same, if it is not open already.
 */
Relation
UndoTargetGet(Oid spc, Oid relnumber, void *arg)
{
	UndoTick   *tick = (UndoTick *) arg;

	if (!tick->target_valid ||
		LocatorSpc(tick->target_locator) != spc ||
		LocatorRel(tick->target_locator) != relnumber)
	{
		TargetOpen(tick, spc, relnumber);
		InvalidateCatalogSnapshot();
	}
	/* see the invariant */
	Assert(!TransactionIdIsValid(MyProc->xmin));
	return tick->target;
}

void
UndoTargetLetGo(void *arg)
{
	UndoTargetClose((UndoTick *) arg);
}

/* ---------------- transactions ---------------- */

/*
 * Begin a transaction with the undo relation open.  False if it is gone, or
 * about to go.
 */
bool
UndoTickBegin(UndoTick *tick)
{
	StartTransactionCommand();
	UndoReportRenewed();
	tick->undorel = NULL;
	if (!ConditionalLockRelationOid(tick->undo_relid, AccessShareLock))
		return false;
	tick->undorel = try_relation_open(tick->undo_relid, NoLock);
	InvalidateCatalogSnapshot();
	return tick->undorel != NULL &&
		RelFileLocatorEquals(RelLocator(tick->undorel), tick->space->locator);
}

void
UndoTickEnd(UndoTick *tick)
{
	UndoTargetClose(tick);
	if (tick->undorel != NULL)
		relation_close(tick->undorel, NoLock);
	tick->undorel = NULL;
	CommitTransactionCommand();
	if (tick->restored > 0)
		pg_atomic_fetch_add_u64(&tick->space->rows_restored, tick->restored);
	tick->restored = 0;
}

/* let go of all locks, as others may be waiting for them */
bool
UndoTickRenew(UndoTick *tick)
{
	UndoTickEnd(tick);
	return UndoTickBegin(tick);
}

/*
 * Do a part of the tick.  An error in it is logged, and must not keep the rest
 * from being done.  Returns false if the tick has to end.
 */
bool
UndoTickTry(UndoTick *tick, bool (*part) (UndoTick *tick, uint32 n), uint32 n,
			bool *failed)
{
	MemoryContext oldcontext = CurrentMemoryContext;
	volatile bool ok = true;
	volatile bool caught = false;

	PG_TRY();
	{
		ok = part(tick, n);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(oldcontext);
		HOLD_INTERRUPTS();
		EmitErrorReport();
		AbortCurrentTransaction();
		FlushErrorState();
		RESUME_INTERRUPTS();
		caught = true;
	}
	PG_END_TRY();

	*failed = caught;
	if (!caught)
		return ok;
	tick->target = NULL;
	tick->target_valid = false;
	tick->restored = 0;
	return UndoTickBegin(tick);
}

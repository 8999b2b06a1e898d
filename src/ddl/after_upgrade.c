/*-------------------------------------------------------------------------
 *
 * after_upgrade.c
 *	  TOAST tables of ours after pg_upgrade.
 *
 * pg_upgrade has the new cluster make each TOAST table anew, and gives it the old file
 * afterwards.  What it is made from does not say whose it was.  So it is a heap table
 * there (ddl.c), and the file tells what it has to be: inplace.after_upgrade() looks
 * at its first page with rows, and puts the right access method into the catalog.  A
 * TOAST table without rows stays heap's.
 *
 * Until then its undo waits (undo/tick.c).  And statements on the table are refused (whose_page.c).  Autovacuum asks none
 * of these hooks.  So a worker is ended when its first transaction commits, which it does
 * before it vacuums anything.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "ddl/whose_page.h"
#include "own.h"
#include "page/whose_file.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/rel.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(inplace_after_upgrade);

/*
 * Tables that may be ours and have a TOAST table.
 */
static List *
candidates(void)
{
	Relation	pg_class = table_open(RelationRelationId, AccessShareLock);
	TableScanDesc scan = table_beginscan_catalog(pg_class, 0, NULL);
	List	   *relids = NIL;
	HeapTuple	tuple;

	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		if ((form->relkind == RELKIND_RELATION || form->relkind == RELKIND_MATVIEW) &&
			OidIsValid(form->reltoastrelid) && form->oid >= FirstNormalObjectId &&
			form->relam != HEAP_TABLE_AM_OID &&
			form->relpersistence != RELPERSISTENCE_TEMP)
			relids = lappend_oid(relids, form->oid);
	}
	table_endscan(scan);
	table_close(pg_class, AccessShareLock);
	return relids;
}

/*
 * Is the table ours, and its TOAST table a heap table with a file of ours?
 */
static bool
toast_is_mistaken(Relation rel, LOCKMODE lockmode)
{
	Relation	toastrel;
	bool		result;

	toastrel = table_open(rel->rd_rel->reltoastrelid, lockmode);
	result = toastrel->rd_rel->relam == HEAP_TABLE_AM_OID &&
		inplace_heap_has_our_file(toastrel);
	table_close(toastrel, result ? NoLock : lockmode);
	return result;
}

/*
 * The same, with the TOAST table locked exclusively if so.  Those that are right are
 * looked at beside others who use them.
 */
static bool
lock_mistaken_toast(Relation rel)
{
	if (!RelationIsInplace(rel) || !OidIsValid(rel->rd_rel->reltoastrelid) ||
		!toast_is_mistaken(rel, AccessShareLock))
		return false;

	/* (two that came here with it would wait for each other) */
	UnlockRelationOid(rel->rd_rel->reltoastrelid, AccessShareLock);
	return toast_is_mistaken(rel, AccessExclusiveLock);
}

static void
set_method(Oid relid, Oid am)
{
	Relation	pg_class = table_open(RelationRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(relid));

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relid);
	((Form_pg_class) GETSTRUCT(tuple))->relam = am;
	CatalogTupleUpdate(pg_class, &tuple->t_self, tuple);
	heap_freetuple(tuple);
	table_close(pg_class, RowExclusiveLock);
}

Datum
inplace_after_upgrade(PG_FUNCTION_ARGS)
{
	List	   *relids;
	ListCell   *lc;
	int64		n = 0;

	InplaceRequirePreload();
	PreventCommandIfReadOnly("inplace.after_upgrade()");
	relids = candidates();
	foreach(lc, relids)
	{
		Relation	rel = try_relation_open(lfirst_oid(lc), AccessShareLock);

		CHECK_FOR_INTERRUPTS();
		if (rel == NULL)
			continue;
		if (lock_mistaken_toast(rel))
		{
			/* (nothing depends on its method but through its table) */
			set_method(rel->rd_rel->reltoastrelid, rel->rd_rel->relam);
			n++;
		}
		relation_close(rel, AccessShareLock);
	}
	PG_RETURN_INT64(n);
}

/*
 * An error if the TOAST table is a mistaken one that nobody has vacuumed yet.  What is
 * locked is left out: its holder knows what it is.
 */
static void
check_unvacuumed_toast(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			toastid = InvalidOid;
	bool		unvacuumed = false;

	if (HeapTupleIsValid(tuple))
	{
		toastid = ((Form_pg_class) GETSTRUCT(tuple))->reltoastrelid;
		ReleaseSysCache(tuple);
		tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(toastid));
	}
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		unvacuumed = form->relam == HEAP_TABLE_AM_OID && form->relpages == 0;
		ReleaseSysCache(tuple);
	}
	if (unvacuumed && ConditionalLockRelationOid(toastid, AccessShareLock))
	{
		Relation	toastrel = try_relation_open(toastid, NoLock);

		if (toastrel != NULL)
		{
			inplace_check_whose_file(toastrel);
			relation_close(toastrel, NoLock);
		}
		UnlockRelationOid(toastid, AccessShareLock);
	}
}

/*
 * Before the first commit of an autovacuum worker.
 */
static void
guard_autovacuum(XactEvent event, void *arg)
{
	static bool looked = false;
	List	   *relids;
	ListCell   *lc;

	if (event != XACT_EVENT_PRE_COMMIT || looked ||
		MyBackendType != B_AUTOVAC_WORKER || !InplaceInstalledHere())
		return;
	looked = true;
	relids = candidates();
	foreach(lc, relids)
		check_unvacuumed_toast(lfirst_oid(lc));
	list_free(relids);
}

void
inplace_after_upgrade_init(void)
{
	RegisterXactCallback(guard_autovacuum, NULL);
}

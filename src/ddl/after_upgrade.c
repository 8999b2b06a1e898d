/*-------------------------------------------------------------------------
 *
 * after_upgrade.c
 *	  TOAST tables of ours, and of heap's, after pg_upgrade.
 *
 * pg_upgrade has the new cluster make each TOAST table anew, and gives it the old file
 * afterwards.  What it is made from does not say whose it was.  So each TOAST table of an
 * inplace table is ours there (ddl.c), and has a mark (page/whose_file.c).  The file
 * tells what it has to be: inplace.after_upgrade() puts the right access method into
 * the catalog, and takes the mark away.  One without rows comes to be of the method that
 * inplace.toast_in_place says.
 *
 * Ours and not heap's, because all our functions know a page of heap's, and heap's do
 * not know ours.  Until then what touches its values, and VACUUM, is refused.  As a rule
 * nobody notices: the first undo worker that comes to the database does it, and statements
 * wait for that (whose_page.c).
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
#include "catalog/objectaccess.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "ddl/ddl.h"
#include "ddl/whose_page.h"
#include "miscadmin.h"
#include "own.h"
#include "page/whose_file.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
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
 * The method that the TOAST table of a table of ours has to have.  One of ours without
 * the mark has been ours all along, whatever its pages look like.
 */
static Oid
right_method(Relation rel, Relation toastrel, bool marked)
{
	RowsOwner	owner = inplace_whose_rows(toastrel);

	if (owner == ROWS_UNSURE ||
		(owner == ROWS_HEAPS && RelationIsInplace(toastrel) && !marked))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("cannot tell whose file TOAST table \"%s\" has",
						RelationGetRelationName(toastrel)),
				 errdetail("Pages are damaged, or those of a heap table are in a file of inplace's.")));
	switch (owner)
	{
		case ROWS_OURS:
			return rel->rd_rel->relam;
		case ROWS_HEAPS:
			return HEAP_TABLE_AM_OID;
		default:
			break;
	}
	return marked && !inplace_toast_in_place ? HEAP_TABLE_AM_OID : toastrel->rd_rel->relam;
}

static bool
is_to_be_changed(Relation rel, Oid toastid, LOCKMODE lockmode, Oid *am, bool *marked)
{
	Relation	toastrel = table_open(toastid, lockmode);
	bool		result;

	*marked = inplace_has_mark_of_upgrade(toastid);
	*am = right_method(rel, toastrel, *marked);
	result = *marked || *am != toastrel->rd_rel->relam;
	table_close(toastrel, result ? NoLock : lockmode);
	return result;
}

static bool
set_method(Oid relid, Oid am)
{
	Relation	pg_class = table_open(RelationRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(relid));
	bool		changed;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relid);
	changed = ((Form_pg_class) GETSTRUCT(tuple))->relam != am;
	((Form_pg_class) GETSTRUCT(tuple))->relam = am;
	if (changed)
		CatalogTupleUpdate(pg_class, &tuple->t_self, tuple);
	heap_freetuple(tuple);
	table_close(pg_class, RowExclusiveLock);
	return changed;
}

/*
 * Has the TOAST table been given another method?  One that is right is looked at beside
 * others who use it.  With dont_wait, *later is set if it is locked by others.
 */
static bool
settle_toast(Relation rel, bool dont_wait, bool *later)
{
	Oid			toastid = rel->rd_rel->reltoastrelid;
	bool		marked;
	Oid			am;

	if (!RelationIsInplace(rel) || !OidIsValid(toastid) ||
		!is_to_be_changed(rel, toastid, AccessShareLock, &am, &marked))
		return false;

	/* (two that came here with it would wait for each other) */
	UnlockRelationOid(toastid, AccessShareLock);
	if (dont_wait)
	{
		if (!ConditionalLockRelationOid(toastid, AccessExclusiveLock))
		{
			*later = true;
			return false;
		}
	}
	if (!is_to_be_changed(rel, toastid, dont_wait ? NoLock : AccessExclusiveLock,
						  &am, &marked))
		return false;
	if (marked)
		inplace_mark_of_upgrade(toastid, false);

	/* (nothing depends on its method but through its table) */
	return set_method(toastid, am);
}

/*
 * The same in a subtransaction: what is wrong with one table is not to stop those behind it.
 */
static bool
settle_or_warn(Oid relid)
{
	MemoryContext oldcontext = CurrentMemoryContext;
	ResourceOwner oldowner = CurrentResourceOwner;
	volatile bool changed = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(oldcontext);
	PG_TRY();
	{
		Relation	rel = try_relation_open(relid, AccessShareLock);

		if (rel != NULL)
		{
			changed = settle_toast(rel, false, NULL);
			relation_close(rel, AccessShareLock);
		}
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(oldcontext);
		edata = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(oldcontext);
		CurrentResourceOwner = oldowner;
		if (edata->sqlerrcode == ERRCODE_QUERY_CANCELED)
			ReThrowError(edata);
		changed = false;
		ereport(WARNING,
				(errcode(edata->sqlerrcode),
				 errmsg("TOAST table of \"%s\" is left as it is: %s",
						get_rel_name(relid), edata->message)));
		FreeErrorData(edata);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(oldcontext);
	CurrentResourceOwner = oldowner;
	return changed;
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
		CHECK_FOR_INTERRUPTS();
		if (settle_or_warn(lfirst_oid(lc)))
			n++;
	}
	PG_RETURN_INT64(n);
}

/* ---------------- in an undo worker ---------------- */

/*
 * Tables whose TOAST tables have the mark.
 */
static List *
tables_with_mark(void)
{
	List	   *relids;
	List	   *marked = NIL;
	ListCell   *lc;

	if (!InplaceInstalledNow())
		return NIL;
	relids = candidates();
	foreach(lc, relids)
	{
		HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(lfirst_oid(lc)));
		Oid			toastid;

		CHECK_FOR_INTERRUPTS();
		if (!HeapTupleIsValid(tuple))
			continue;
		toastid = ((Form_pg_class) GETSTRUCT(tuple))->reltoastrelid;
		ReleaseSysCache(tuple);
		if (OidIsValid(toastid) && inplace_has_mark_of_upgrade(toastid))
		{
			MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

			marked = lappend_oid(marked, lfirst_oid(lc));
			MemoryContextSwitchTo(old);
		}
	}
	return marked;
}

/*
 * False if the table, or its TOAST table, is locked by others.
 */
static bool
settle_marked(Oid relid)
{
	bool		later = false;
	Relation	rel;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	if (!ConditionalLockRelationOid(relid, AccessShareLock))
		later = true;
	else if ((rel = try_relation_open(relid, NoLock)) != NULL)
	{
		(void) settle_toast(rel, true, &later);
		relation_close(rel, NoLock);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	return !later;
}

static void
report_and_go_on(MemoryContext oldcontext)
{
	MemoryContextSwitchTo(oldcontext);
	HOLD_INTERRUPTS();
	EmitErrorReport();
	AbortCurrentTransaction();
	FlushErrorState();
	RESUME_INTERRUPTS();
	MemoryContextSwitchTo(oldcontext);
}

/*
 * The same, before the worker does anything else.  Each table in a transaction of its
 * own, for there may be more than locks can be had, and an error is not to stop those
 * behind it.  Nobody is waited for.  False if some are locked by others.  If *failed there
 * were errors: then all that is left is for later.
 */
bool
inplace_settle_marked(bool *failed)
{
	MemoryContext oldcontext = CurrentMemoryContext;
	List	   *volatile relids = NIL;
	ListCell   *lc;
	volatile bool later = false;

	*failed = false;
	PG_TRY();
	{
		StartTransactionCommand();
		PushActiveSnapshot(GetTransactionSnapshot());
		relids = tables_with_mark();
		PopActiveSnapshot();
		CommitTransactionCommand();
	}
	PG_CATCH();
	{
		report_and_go_on(oldcontext);
		*failed = true;
	}
	PG_END_TRY();
	foreach(lc, relids)
	{
		CHECK_FOR_INTERRUPTS();
		PG_TRY();
		{
			if (!settle_marked(lfirst_oid(lc)))
				later = true;
		}
		PG_CATCH();
		{
			report_and_go_on(oldcontext);
			*failed = true;
		}
		PG_END_TRY();
	}
	MemoryContextSwitchTo(oldcontext);
	list_free(relids);
	return !later || *failed;
}

/* ---------------- while pg_upgrade restores the catalogs ---------------- */

static object_access_hook_type prev_object_access_hook = NULL;

static void
mark_created(ObjectAccessType access, Oid classId, Oid objectId, int subId, void *arg)
{
	Relation	rel;

	if (prev_object_access_hook)
		prev_object_access_hook(access, classId, objectId, subId, arg);
	if (access != OAT_POST_CREATE || classId != RelationRelationId || subId != 0 ||
		!InplaceInstalledHere())
		return;

	/* the catalog does not show it yet */
	rel = RelationIdGetRelation(objectId);
	if (!RelationIsValid(rel))
		return;
	if (rel->rd_rel->relkind == RELKIND_TOASTVALUE && RelationIsInplace(rel))
		inplace_mark_of_upgrade(objectId, true);
	RelationClose(rel);
}

void
inplace_after_upgrade_init(void)
{
	if (!IsBinaryUpgrade)
		return;
	prev_object_access_hook = object_access_hook;
	object_access_hook = mark_created;
}

/*-------------------------------------------------------------------------
 *
 * convert.c
 *	  What inplace.convert has to know of the catalogs, as they are now.
 *
 * The function itself is SQL (40-convert.sql), and an SQL query reads catalogs
 * with the snapshot of the transaction.  In REPEATABLE READ that may be older
 * than our lock, and names and partitions of then are not what ALTER TABLE
 * will find.  So all of it is looked up here, as DDL does it: after the lock,
 * by OID.
 *
 * Nothing is opened, for without the library preloaded there are answers, too.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/catalog.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "ddl/convert.h"
#include "ddl/default_method.h"
#include "ddl/opclass.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "own.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(inplace_lock_convertible);
PG_FUNCTION_INFO_V1(inplace_convertible_indexes);
Datum		inplace_lock_convertible(PG_FUNCTION_ARGS);
Datum		inplace_convertible_indexes(PG_FUNCTION_ARGS);

/*
 * A relation and, if it is partitioned, all below it: parents first, and not
 * the children of a mere inheritance parent, which have nothing to do with it.
 */
List *
inplace_partition_tree(Oid relid, LOCKMODE lockmode)
{
	char		relkind = get_rel_relkind(relid);

	if (!RELKIND_HAS_PARTITIONS(relkind))
		return list_make1_oid(relid);
	return find_all_inheritors(relid, lockmode, NULL);
}

/* ---------------- tables ---------------- */

static void
check_kind(Form_pg_class form)
{
	if (form->relkind != RELKIND_RELATION && form->relkind != RELKIND_MATVIEW &&
		form->relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table or materialized view",
						NameStr(form->relname))));
	if (isOtherTempNamespace(form->relnamespace))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot convert temporary tables of other sessions")));
}

/*
 * Can it be converted, and by this user?  To own it is enough, as for ALTER TABLE.
 */
static void
check_convertible(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Form_pg_class form;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	form = (Form_pg_class) GETSTRUCT(tuple);
	check_kind(form);
	if (!has_privs_of_role(GetUserId(), form->relowner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of table %s",
						DatumGetCString(DirectFunctionCall1(regclassout,
															ObjectIdGetDatum(relid))))));
	if (relid < FirstNormalObjectId ||
		IsCatalogNamespace(form->relnamespace) || IsToastNamespace(form->relnamespace))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot convert system catalog \"%s\"",
						NameStr(form->relname))));
	ReleaseSysCache(tuple);
}

static bool
is_user_catalog_table(HeapTuple pg_class)
{
	bool		isnull;
	Datum		reloptions = SysCacheGetAttr(RELOID, pg_class,
											 Anum_pg_class_reloptions, &isnull);
	StdRdOptions *options;

	if (isnull)
		return false;
	options = (StdRdOptions *)
		heap_reloptions(((Form_pg_class) GETSTRUCT(pg_class))->relkind,
						reloptions, false);
	return options != NULL && options->user_catalog_table;
}

static void
put_member(ReturnSetInfo *rsinfo, Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Form_pg_class form;
	const char *method;
	Datum		values[5] = {0};
	bool		nulls[5] = {0};

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relid);
	form = (Form_pg_class) GETSTRUCT(tuple);
	if (form->relkind != RELKIND_FOREIGN_TABLE)
	{
		method = OidIsValid(form->relam) ? get_am_name(form->relam) : NULL;
		values[0] = ObjectIdGetDatum(relid);
		values[1] = NameGetDatum(&form->relname);
		values[2] = CharGetDatum(form->relkind);
		nulls[3] = method == NULL;
		if (method != NULL)
			values[3] = DirectFunctionCall1(namein, CStringGetDatum(method));
		values[4] = BoolGetDatum(is_user_catalog_table(tuple));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	ReleaseSysCache(tuple);
}

/*
 * inplace.lock_convertible(rel regclass): locks a table with its partitions,
 * and tells what they are.
 */
Datum
inplace_lock_convertible(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	ListCell   *lc;

	/* before anybody has to wait for our lock */
	check_convertible(relid);
	PreventCommandDuringRecovery("inplace.convert()");
	LockRelationOid(relid, AccessExclusiveLock);
	/* it may have been dropped, or given to another owner, while we waited */
	check_convertible(relid);

	InitMaterializedSRF(fcinfo, 0);
	foreach(lc, inplace_partition_tree(relid, AccessExclusiveLock))
		put_member((ReturnSetInfo *) fcinfo->resultinfo, lfirst_oid(lc));
	return (Datum) 0;
}

/* ---------------- indexes ---------------- */

static List *
indexes_of(Oid tableid)
{
	Relation	pg_index = table_open(IndexRelationId, AccessShareLock);
	List	   *result = NIL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(tableid));
	scan = systable_beginscan(pg_index, IndexIndrelidIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		result = lappend_oid(result, ((Form_pg_index) GETSTRUCT(tuple))->indexrelid);
	systable_endscan(scan);
	table_close(pg_index, AccessShareLock);
	return result;
}

static bool
opclasses_have_counterparts(HeapTuple pg_index, Oid am)
{
	bool		isnull;
	oidvector  *opclasses = (oidvector *)
		DatumGetPointer(SysCacheGetAttr(INDEXRELID, pg_index,
										Anum_pg_index_indclass, &isnull));

	Assert(!isnull);
	for (int i = 0; i < opclasses->dim1; i++)
	{
		if (!inplace_opclass_may_have_counterpart(opclasses->values[i], am))
			return false;
	}
	return true;
}

/*
 * Is it one that inplace.set_index_method can give the method (check_change()
 * there), of the other method up to now?
 */
static bool
index_is_convertible(Oid indexid, Oid am)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexid));
	Form_pg_index form;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;			/* without a lock: dropped meanwhile */
	form = (Form_pg_index) GETSTRUCT(tuple);
	result = inplace_relation_am(indexid) == (am == BTREE_AM_OID ? InplaceBtreeAm() : BTREE_AM_OID) &&
		!form->indisprimary && !form->indisexclusion &&
		(am == BTREE_AM_OID || !form->indisunique || UNIQUE_INDEX_OF_ANY_METHOD) &&
		!OidIsValid(get_index_constraint(indexid)) &&
		opclasses_have_counterparts(tuple, am);
	ReleaseSysCache(tuple);
	return result;
}

/*
 * All of a partitioned index's tree, or none of it.
 */
static List *
convertible_tree(Oid root, Oid am)
{
	List	   *tree = inplace_partition_tree(root, NoLock);
	ListCell   *lc;

	foreach(lc, tree)
	{
		if (!index_is_convertible(lfirst_oid(lc), am))
			return NIL;
	}
	return tree;
}

/*
 * inplace.convertible_indexes(rel regclass, method name): the indexes of a table,
 * and of all below it, that can get the method.  Those attached to others are found
 * with these, unless these are those of a table further up.
 */
Datum
inplace_convertible_indexes(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	Oid			am = get_index_am_oid(NameStr(*PG_GETARG_NAME(1)), true);
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	List	   *found = NIL;
	ListCell   *table;
	ListCell   *index;

	InitMaterializedSRF(fcinfo, 0);
	if (am != BTREE_AM_OID && (!OidIsValid(am) || am != InplaceBtreeAm()))
		return (Datum) 0;
	foreach(table, inplace_partition_tree(relid, NoLock))
	{
		foreach(index, indexes_of(lfirst_oid(table)))
		{
			if (!get_rel_relispartition(lfirst_oid(index)))
				found = list_concat(found, convertible_tree(lfirst_oid(index), am));
		}
	}
	list_sort(found, list_oid_cmp);
	foreach(index, found)
	{
		Datum		values[2] = {ObjectIdGetDatum(lfirst_oid(index)), PG_GETARG_DATUM(1)};
		bool		nulls[2] = {0};

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

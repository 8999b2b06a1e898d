/*-------------------------------------------------------------------------
 *
 * index_method.c
 *	  Changing an index from btree to inplace_btree and back.
 *
 * The two have one file format.  What distinguishes them is what is in the
 * catalogs (pg_class.relam; pg_index.indclass with its dependencies), and that
 * an inplace_btree of an inplace table may have entries of former keys.  So an
 * index becomes inplace_btree by a change of the catalogs alone, and btree by the
 * same, after which it is rebuilt if its table is an inplace table.  It
 * keeps its OID, and with that all that depends on it or is said about it.
 *
 * Relation cache.  The server takes an index's method to be fixed: an entry that
 * cannot be dropped (because the index was made, or given a new file, by this
 * transaction) keeps the routine and operator families of the former method.
 * So it must be safe to have the routine of inplace_btree in an entry that says
 * btree, which is also what a rolled back subtransaction may leave behind:
 *	 - to inplace_btree, such an entry is set up again;
 *	 - to btree, it stays as it is, since the routine of inplace_btree works on
 *	   btree indexes just as well, until the end of the transaction;
 *	 - whether an index may get entries of former keys goes by relam, which is always
 *	   true (taking.c).
 * The opposite, nbtree's own routine in the entry of an inplace_btree index,
 * never happens.
 *
 * Rollback.  If a change to inplace_btree is rolled back the file is a btree's
 * again, whose entries nobody compares with their rows: entries of new keys that
 * updates of the transaction have put into it would lead to rows that do not
 * have them.  So until the change is committed the index takes no in-place
 * updates, and rows move (taking.c).  The transaction that made its pg_index row shows
 * that.  An index that the transaction itself made, in an outer subtransaction, gets a
 * new file, which goes with the change.
 *
 * Lock order: the table (SHARE ROW EXCLUSIVE or more, by the caller), the index.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/partition.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "commands/defrem.h"
#include "ddl/convert.h"
#include "ddl/index_method.h"
#include "ddl/older_keys.h"
#include "ddl/opclass.h"
#include "fmgr.h"
#include "index/as_btree.h"
#include "index/btree_handler.h"
#include "index/late_open.h"
#include "own.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/relcache.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(inplace_set_index_method);

/*
 * The operator classes that the index has with the other method; NULL if one
 * of them does not exist.
 */
static oidvector *
opclasses_for(HeapTuple pg_index, Oid am)
{
	bool		isnull;
	oidvector  *old = (oidvector *)
		DatumGetPointer(SysCacheGetAttr(INDEXRELID, pg_index,
										Anum_pg_index_indclass, &isnull));
	oidvector  *new = buildoidvector(old->values, old->dim1);

	Assert(!isnull);
	for (int i = 0; i < new->dim1; i++)
	{
		new->values[i] = am == BTREE_AM_OID ?
			inplace_original_of_opclass(old->values[i]) :
			inplace_mirror_of_opclass(old->values[i]);
		if (!OidIsValid(new->values[i]))
			return NULL;
	}
	return new;
}

static HeapTuple
copy_pg_index(Oid indexid)
{
	HeapTuple	tuple = SearchSysCacheCopy1(INDEXRELID, ObjectIdGetDatum(indexid));

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for index %u", indexid);
	return tuple;
}

bool
inplace_index_can_have_method(Oid indexid, Oid am)
{
	HeapTuple	tuple = copy_pg_index(indexid);
	bool		result = opclasses_for(tuple, am) != NULL;

	heap_freetuple(tuple);
	return result;
}

static void
update_pg_index(Oid indexid, HeapTuple tuple, oidvector *opclasses)
{
	Relation	pg_index = table_open(IndexRelationId, RowExclusiveLock);
	Datum		values[Natts_pg_index] = {0};
	bool		isnull[Natts_pg_index] = {0};
	bool		replace[Natts_pg_index] = {0};
	HeapTuple	changed;

	values[Anum_pg_index_indclass - 1] = PointerGetDatum(opclasses);
	replace[Anum_pg_index_indclass - 1] = true;
	changed = heap_modify_tuple(tuple, RelationGetDescr(pg_index), values,
								isnull, replace);
	CatalogTupleUpdate(pg_index, &changed->t_self, changed);
	heap_freetuple(changed);
	table_close(pg_index, RowExclusiveLock);
}

static void
update_dependencies(Oid indexid, oidvector *opclasses)
{
	ObjectAddresses *addrs = new_object_addresses();
	ObjectAddress index;

	ObjectAddressSet(index, RelationRelationId, indexid);
	deleteDependencyRecordsForClass(RelationRelationId, indexid,
									OperatorClassRelationId, DEPENDENCY_NORMAL);
	for (int i = 0; i < opclasses->dim1; i++)
	{
		ObjectAddress opclass;

		ObjectAddressSet(opclass, OperatorClassRelationId, opclasses->values[i]);
		add_exact_object_address(&opclass, addrs);
	}
	record_object_address_dependencies(&index, addrs, DEPENDENCY_NORMAL);
	free_object_addresses(addrs);
	inplace_depend_on_originals(indexid, opclasses);
}

/*
 * See above.  Nobody else has the index open: the caller has made sure.
 */
static void
update_relcache(Oid indexid, oidvector *opclasses)
{
	Relation	index = index_open(indexid, NoLock);
	MemoryContext old_context = index->rd_indexcxt;
	HeapTuple	old_tuple = index->rd_indextuple;

	if (index->rd_rel->relam != BTREE_AM_OID && !inplace_index_is_btree(index))
	{
		/* (the server would go on with the options in the old context) */
		index->rd_opcoptions = NULL;
		RelationInitIndexAccessInfo(index);
		MemoryContextDelete(old_context);
		heap_freetuple(old_tuple);
	}
	else
	{
		/* the one thing that the server looks up in this copy */
		bool		isnull;
		oidvector  *copy = (oidvector *)
			DatumGetPointer(SysCacheGetAttr(INDEXRELID, old_tuple,
											Anum_pg_index_indclass, &isnull));

		Assert(!isnull && copy->dim1 == opclasses->dim1);
		memcpy(copy->values, opclasses->values, sizeof(Oid) * copy->dim1);
	}
	index_close(index, NoLock);
}

/*
 * The index has been built for btree, from rows with versions that may have other keys:
 * snapshots that need these must not use it.  CREATE INDEX says so in
 * the same way, REINDEX does not.
 */
static void
hide_from_older_snapshots(Oid indexid)
{
	Relation	pg_index = table_open(IndexRelationId, RowExclusiveLock);
	HeapTuple	tuple;

	tuple = copy_pg_index(indexid);
	((Form_pg_index) GETSTRUCT(tuple))->indcheckxmin = true;
	CatalogTupleUpdate(pg_index, &tuple->t_self, tuple);
	heap_freetuple(tuple);
	table_close(pg_index, RowExclusiveLock);
	CommandCounterIncrement();
}

/*
 * The caller has locked the table, and knows that the index has no constraint,
 * and that its parent and its parts, if it is partitioned, change with it.
 */
void
inplace_index_set_method(Oid indexid, Oid am)
{
	Relation	index = index_open(indexid, AccessExclusiveLock);
	Oid			tableid = index->rd_index->indrelid;
	Relation	table = table_open(tableid, NoLock);
	char		persistence = index->rd_rel->relpersistence;
	bool		rebuild = RelationIsInplace(table) &&
		index->rd_rel->relkind == RELKIND_INDEX &&
		(am == BTREE_AM_OID ||
		 (index->rd_createSubid != InvalidSubTransactionId &&
		  index->rd_createSubid != GetCurrentSubTransactionId()));
	HeapTuple	tuple = copy_pg_index(indexid);
	oidvector  *opclasses = opclasses_for(tuple, am);

	if (opclasses == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("index \"%s\" has an operator class that access method \"%s\" lacks",
						RelationGetRelationName(index), get_am_name(am))));
	/* entries in use are not set up again */
	if (index->rd_refcnt != 1 || inplace_indexes_in_use(tableid))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("cannot change the access method of index \"%s\" because it is being used by active queries in this session",
						RelationGetRelationName(index))));
	index_close(index, NoLock);
	table_close(table, NoLock);

	inplace_index_set_relam(indexid, am);
	update_pg_index(indexid, tuple, opclasses);
	update_dependencies(indexid, opclasses);
	heap_freetuple(tuple);
	/* which of its indexes take in-place updates is kept with the table */
	CacheInvalidateRelcacheByRelid(tableid);
	CommandCounterIncrement();
	update_relcache(indexid, opclasses);

	if (rebuild)
	{
		uint32		met = inplace_builds_with_older_keys(indexid);

		ReindexIndex(indexid, persistence);
		/* of rows that it has changed in the catalogs others may come */
		CommandCounterIncrement();
		if (am == BTREE_AM_OID && inplace_builds_with_older_keys(indexid) != met)
			hide_from_older_snapshots(indexid);
	}
}

/* what a partitioned index and those attached to it have in common */
static Oid
root_index(Oid indexid)
{
	return get_rel_relispartition(indexid) ?
		llast_oid(get_partition_ancestors(indexid)) : indexid;
}

/*
 * Lock the index with all of its partition tree, tables first, and return the
 * indexes, a list of one if there is no tree.
 */
static List *
lock_index_tree(Oid indexid)
{
	for (;;)
	{
		Oid			root = root_index(indexid);
		Oid			tableid = IndexGetRelation(root, true);

		CHECK_FOR_INTERRUPTS();
		if (OidIsValid(tableid))
		{
			/* before anybody has to wait for our locks */
			if (!CheckRelationOwner(tableid))
				aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX,
							   get_rel_name(root));
			LockRelationOid(tableid, AccessExclusiveLock);
			(void) inplace_partition_tree(tableid, AccessExclusiveLock);
		}
		else if (root == indexid || !OidIsValid(IndexGetRelation(indexid, true)))
			ereport(ERROR,
					get_rel_name(indexid) ?
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("\"%s\" is not an index", get_rel_name(indexid))) :
					(errcode(ERRCODE_UNDEFINED_TABLE),
					 errmsg("relation with OID %u does not exist", indexid)));
		/* it may have been attached, detached or dropped while we waited */
		if (root_index(indexid) != root || !OidIsValid(tableid) ||
			IndexGetRelation(root, true) != tableid)
			continue;
		LockRelationOid(root, AccessExclusiveLock);
		return inplace_partition_tree(root, AccessExclusiveLock);
	}
}

/* is the method of the index one that can be changed, by this user, to "am"? */
static void
check_change(Oid indexid, Oid am, const char *method)
{
	Relation	index = index_open(indexid, NoLock);
	Oid			old_am = index->rd_rel->relam;

	if (!CheckRelationOwner(index->rd_index->indrelid))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX,
					   RelationGetRelationName(index));
	if (IsSystemRelation(index) || RELATION_IS_OTHER_TEMP(index) ||
		(old_am != BTREE_AM_OID && old_am != InplaceBtreeAm()) ||
		index->rd_index->indisprimary || index->rd_index->indisexclusion ||
		OidIsValid(get_index_constraint(indexid)) ||
		(am != BTREE_AM_OID && index->rd_index->indisunique &&
		 !UNIQUE_INDEX_OF_ANY_METHOD))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot change the access method of index \"%s\" to \"%s\"",
						RelationGetRelationName(index), method)));
	index_close(index, NoLock);
}

static Oid
index_am(Oid indexid)
{
	Relation	index = index_open(indexid, NoLock);
	Oid			am = index->rd_rel->relam;

	index_close(index, NoLock);
	return am;
}

/*
 * inplace.set_index_method(index regclass, method name), for inplace.convert.
 * Returns whether there was anything to change.
 *
 * The server gives a partitioned index and those attached to it one method, and
 * attaches none with another.  So the change of one is that of all.
 */
Datum
inplace_set_index_method(PG_FUNCTION_ARGS)
{
	Oid			indexid = PG_GETARG_OID(0);
	Name		method = PG_GETARG_NAME(1);
	Oid			am;
	Oid			tableid;
	List	   *indexes;
	ListCell   *lc;
	bool		changed = false;

	InplaceRequirePreload();
	PreventCommandIfReadOnly("inplace.set_index_method()");
	am = get_index_am_oid(NameStr(*method), false);
	if (am != BTREE_AM_OID && am != InplaceBtreeAm())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot change an index to access method \"%s\"",
						NameStr(*method)),
				 errhint("Use \"inplace_btree\" or \"btree\".")));
	tableid = IndexGetRelation(indexid, true);
	if (OidIsValid(tableid) && !CheckRelationOwner(tableid))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, get_rel_name(indexid));
	indexes = lock_index_tree(indexid);
	foreach(lc, indexes)
		check_change(lfirst_oid(lc), am, NameStr(*method));
	foreach(lc, indexes)
	{
		if (index_am(lfirst_oid(lc)) == am)
			continue;
		inplace_index_set_method(lfirst_oid(lc), am);
		changed = true;
	}
	PG_RETURN_BOOL(changed);
}

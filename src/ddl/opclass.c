/*-------------------------------------------------------------------------
 *
 * opclass.c
 *	  The operator classes of btree are those of inplace_btree.
 *
 * Each operator class of btree has a mirror: a row of pg_opclass that says
 * inplace_btree, and the same as the original otherwise: name, schema, input
 * type, default or not, and operator family.  The family is btree's own.  So
 * operators and functions need no copies, what ALTER OPERATOR FAMILY does
 * counts for both methods at once, and the planner and ON CONFLICT find in an
 * inplace_btree index the families that they look for in a btree.  (What the
 * server does with a class takes the family from its row; the method of the
 * family counts only where a family is looked up by name.)
 *
 * Invariants
 *	 1. A mirror is a member of the extension, owned by the bootstrap superuser,
 *		and depends on nothing else.  So pg_dump leaves it to the extension, and
 *		nothing that is dropped takes it, and with it the extension, along.
 *	 2. It follows its original, to which it belongs by name and schema, input type
 *		and family:
 *		- it is made when the original is made (by any statement, of an extension's
 *		  script as well), or, if the original was there before the extension, or
 *		  was made by a transaction that did not see the extension yet, by
 *		  CREATE EXTENSION (mirror_opclasses) or by the first CREATE INDEX that
 *		  needs it;
 *		- it is renamed, and moved to another schema, with it; if the name is taken
 *		  there it is dropped, and if an index uses it that is an error;
 *		- it goes after the statement that has dropped the original, not with
 *		  the original: the statement may be about to drop the mirror itself,
 *		  because it drops both extensions.
 *	 3. An index that uses a mirror depends on the original, too, so that this is
 *		dropped as if the index were a btree.
 *	 4. What a class of inplace_btree means, that is its family and input type, never
 *		changes: the entries of an index are in its order.  A mirror gets another
 *		name or schema, or gives way to another class, with an OID of its own.  One
 *		that is in use never gives way.
 *
 * A class made for inplace_btree by a user (CREATE OPERATOR CLASS ... USING
 * inplace_btree) has a family of inplace_btree, by which it is told from mirrors.
 * It is left alone; a class of btree with its name, made later, gets no mirror,
 * and neither of the two is the other's counterpart.  pg_dump writes the one of
 * btree first, whichever was; so in its script the other one replaces the mirror.
 *
 * Without the library in shared_preload_libraries nothing follows.  What then has
 * been renamed away from a mirror in use is found by mirror_opclasses; until then
 * the mirror has no original, and a class of btree with its name none.
 *
 * All this is done in object access hooks.  They are called before the changed
 * row can be seen: SnapshotSelf shows it, the system caches still have the row
 * before.
 *
 * pg_upgrade restores the members of an extension one by one and makes them
 * members afterwards, so there the mirrors are made by the dump's own statements.
 *
 * Lock order: the original (SHARE UPDATE EXCLUSIVE, when a mirror is made
 * for a class that others see), pg_opclass.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "ddl/default_method.h"
#include "ddl/opclass.h"
#include "fmgr.h"
#include "own.h"
#include "parser/parse_type.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(inplace_mirror_opclasses);

static object_access_hook_type prev_object_access_hook = NULL;

/* mirrors that have lost their originals; in TopTransactionContext */
static List *orphans = NIL;

/* ---------------- rows of pg_opclass ---------------- */

static Oid
class_named(Oid am, Form_pg_opclass form)
{
	return GetSysCacheOid3(CLAAMNAMENSP, Anum_pg_opclass_oid,
						   ObjectIdGetDatum(am),
						   NameGetDatum(&form->opcname),
						   ObjectIdGetDatum(form->opcnamespace));
}

/*
 * ... that means the same.  (Classes of the two methods have a family in common only
 * if one is a mirror.)
 */
static Oid
counterpart(Oid am, Form_pg_opclass form)
{
	Oid			opclass = class_named(am, form);

	return OidIsValid(opclass) &&
		get_opclass_input_type(opclass) == form->opcintype &&
		get_opclass_family(opclass) == form->opcfamily ? opclass : InvalidOid;
}

/*
 * Has the class one that means the same for the other method, or, being one of
 * btree, would it get one?
 */
bool
inplace_opclass_may_have_counterpart(Oid opclass, Oid am)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Form_pg_opclass form;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_opclass) GETSTRUCT(tuple);
	result = OidIsValid(counterpart(am, form)) ||
		(am != BTREE_AM_OID && !OidIsValid(class_named(am, form)));
	ReleaseSysCache(tuple);
	return result;
}

static Oid
family_method(Oid family)
{
	HeapTuple	tuple = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(family));
	Oid			method = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		method = ((Form_pg_opfamily) GETSTRUCT(tuple))->opfmethod;
		ReleaseSysCache(tuple);
	}
	return method;
}

/* of a class of inplace_btree; the original, and the family, may be gone */
static bool
is_mirror(Oid opclass, Oid am)
{
	return family_method(get_opclass_family(opclass)) != am;
}

/*
 * By an index, or whatever else depends on it.  As for the server's DROP, an index
 * that somebody else is about to make does not count; it will find its class gone.
 */
static bool
in_use(Oid opclass)
{
	Relation	pg_depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	bool		found;

	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(OperatorClassRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(opclass));
	scan = systable_beginscan(pg_depend, DependReferenceIndexId, true, NULL,
							  2, keys);
	found = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	table_close(pg_depend, AccessShareLock);
	return found;
}

/* a user's own default class for the type */
static bool
has_default(Oid am, Oid intype)
{
	Relation	pg_opclass = table_open(OperatorClassRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found = false;

	ScanKeyInit(&key, Anum_pg_opclass_opcmethod, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(am));
	scan = systable_beginscan(pg_opclass, OpclassAmNameNspIndexId, true, NULL,
							  1, &key);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_opclass form = (Form_pg_opclass) GETSTRUCT(tuple);

		found = form->opcintype == intype && form->opcdefault;
	}
	systable_endscan(scan);
	table_close(pg_opclass, AccessShareLock);
	return found;
}

/* as the command at hand has left it, or NULL */
static HeapTuple
copy_current_row(Oid relid, Oid index, AttrNumber oid_column, Oid oid)
{
	Relation	catalog = table_open(relid, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, oid_column, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(oid));
	scan = systable_beginscan(catalog, index, true, SnapshotSelf, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		tuple = heap_copytuple(tuple);
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return tuple;
}

static HeapTuple
copy_current_class(Oid opclass)
{
	return copy_current_row(OperatorClassRelationId, OpclassOidIndexId,
							Anum_pg_opclass_oid, opclass);
}

/* *form gets an OID, and is otherwise as wanted */
static void
insert_class(Form_pg_opclass form)
{
	Relation	pg_opclass = table_open(OperatorClassRelationId, RowExclusiveLock);
	Datum		values[Natts_pg_opclass];
	bool		isnull[Natts_pg_opclass] = {0};
	HeapTuple	tuple;

	form->oid = GetNewOidWithIndex(pg_opclass, OpclassOidIndexId,
								   Anum_pg_opclass_oid);
	values[Anum_pg_opclass_oid - 1] = ObjectIdGetDatum(form->oid);
	values[Anum_pg_opclass_opcmethod - 1] = ObjectIdGetDatum(form->opcmethod);
	values[Anum_pg_opclass_opcname - 1] = NameGetDatum(&form->opcname);
	values[Anum_pg_opclass_opcnamespace - 1] = ObjectIdGetDatum(form->opcnamespace);
	values[Anum_pg_opclass_opcowner - 1] = ObjectIdGetDatum(form->opcowner);
	values[Anum_pg_opclass_opcfamily - 1] = ObjectIdGetDatum(form->opcfamily);
	values[Anum_pg_opclass_opcintype - 1] = ObjectIdGetDatum(form->opcintype);
	values[Anum_pg_opclass_opcdefault - 1] = BoolGetDatum(form->opcdefault);
	values[Anum_pg_opclass_opckeytype - 1] = ObjectIdGetDatum(form->opckeytype);
	tuple = heap_form_tuple(RelationGetDescr(pg_opclass), values, isnull);
	CatalogTupleInsert(pg_opclass, tuple);
	heap_freetuple(tuple);
	table_close(pg_opclass, RowExclusiveLock);
}

/* a mirror gets the name of the class *original, which means the same */
static void
update_mirror(Oid mirror, Form_pg_opclass original)
{
	Relation	pg_opclass = table_open(OperatorClassRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopy1(CLAOID, ObjectIdGetDatum(mirror));
	Form_pg_opclass form;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for opclass %u", mirror);
	form = (Form_pg_opclass) GETSTRUCT(tuple);
	Assert(form->opcfamily == original->opcfamily &&
		   form->opcintype == original->opcintype);
	namestrcpy(&form->opcname, NameStr(original->opcname));
	form->opcnamespace = original->opcnamespace;
	form->opcdefault = original->opcdefault;
	CatalogTupleUpdate(pg_opclass, &tuple->t_self, tuple);
	heap_freetuple(tuple);
	table_close(pg_opclass, RowExclusiveLock);
}

static Oid
create_mirror(Oid am, Form_pg_opclass original)
{
	FormData_pg_opclass form = *original;
	ObjectAddress mirror;
	ObjectAddress extension;
	ObjectAddress method;

	form.opcmethod = am;
	form.opcowner = BOOTSTRAP_SUPERUSERID;
	form.opcdefault = original->opcdefault && !has_default(am, original->opcintype);
	insert_class(&form);
	ObjectAddressSet(mirror, OperatorClassRelationId, form.oid);
	ObjectAddressSet(extension, ExtensionRelationId,
					 InplaceExtension());
	recordDependencyOn(&mirror, &extension, DEPENDENCY_EXTENSION);
	/* so that indexes keep the access method, as those of any other do */
	ObjectAddressSet(method, AccessMethodRelationId, am);
	recordDependencyOn(&mirror, &method, DEPENDENCY_AUTO);
	return form.oid;
}

static void
drop_mirror(Oid mirror)
{
	ObjectAddress object;

	ObjectAddressSet(object, OperatorClassRelationId, mirror);
	performDeletion(&object, DROP_RESTRICT,
					PERFORM_DELETION_INTERNAL | PERFORM_DELETION_QUIETLY |
					PERFORM_DELETION_SKIP_EXTENSIONS);
}

/* is the name free now for a class that means something else? */
static bool
make_room(Oid am, Form_pg_opclass form)
{
	Oid			opclass = class_named(am, form);

	if (!OidIsValid(opclass))
		return true;
	if (!is_mirror(opclass, am) || in_use(opclass))
		return false;
	drop_mirror(opclass);
	return true;
}

/*
 * The mirror of a class of btree, which is made if it is not there (of one
 * of inplace_btree: itself); InvalidOid for a class of another method, or if
 * its name is taken.
 */
Oid
inplace_mirror_of_opclass(Oid opclass)
{
	Oid			am = InplaceBtreeAm();
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	FormData_pg_opclass form;
	Oid			mirror;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for opclass %u", opclass);
	form = *(Form_pg_opclass) GETSTRUCT(tuple);
	ReleaseSysCache(tuple);
	if (form.opcmethod == am)
		return opclass;
	if (form.opcmethod != BTREE_AM_OID)
		return InvalidOid;
	if (OidIsValid(class_named(am, &form)))
		return counterpart(am, &form);

	/* nobody else makes it, or drops or renames the original, from here on */
	LockDatabaseObject(OperatorClassRelationId, opclass, 0,
					   ShareUpdateExclusiveLock);
	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("operator class \"%s\" was concurrently dropped",
						NameStr(form.opcname))));
	form = *(Form_pg_opclass) GETSTRUCT(tuple);
	ReleaseSysCache(tuple);
	if (OidIsValid(class_named(am, &form)))
		return counterpart(am, &form);
	mirror = create_mirror(am, &form);
	CommandCounterIncrement();
	return mirror;
}

/* the class of btree that a class of inplace_btree mirrors, or InvalidOid */
Oid
inplace_original_of_opclass(Oid opclass)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Form_pg_opclass form;
	Oid			result = InvalidOid;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	form = (Form_pg_opclass) GETSTRUCT(tuple);
	if (form->opcmethod == InplaceBtreeAm())
		result = counterpart(BTREE_AM_OID, form);
	ReleaseSysCache(tuple);
	return result;
}

/* ---------------- what happens to originals ---------------- */

static void
class_created(Oid opclass, Oid am)
{
	HeapTuple	tuple = copy_current_class(opclass);
	Form_pg_opclass form;

	if (!HeapTupleIsValid(tuple))
		return;
	form = (Form_pg_opclass) GETSTRUCT(tuple);
	if (form->opcmethod == BTREE_AM_OID)
	{
		/* that of a class dropped just before, which stays if it will do */
		Oid			mirror = counterpart(am, form);

		if (OidIsValid(mirror))
			update_mirror(mirror, form);
		else if (make_room(am, form))
			create_mirror(am, form);
	}
	heap_freetuple(tuple);
}

/* its drop, by the server or below, has to wait for the end of the statement */
static void
remember_orphan(Oid mirror)
{
	MemoryContext oldcontext = MemoryContextSwitchTo(TopTransactionContext);

	orphans = lappend_oid(orphans, mirror);
	MemoryContextSwitchTo(oldcontext);
}

static void
class_renamed(Form_pg_opclass old, Form_pg_opclass new, Oid am)
{
	Oid			mirror = counterpart(am, old);

	if (!OidIsValid(mirror))
		return;
	if (!OidIsValid(class_named(am, new)))
	{
		update_mirror(mirror, new);
		return;
	}
	if (in_use(mirror))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot rename operator class \"%s\" or move it to another schema, because access method \"inplace_btree\" has a class \"%s\" of its own there",
						NameStr(old->opcname), NameStr(new->opcname)),
				 errdetail("Indexes of access method \"inplace_btree\" use operator class \"%s\".",
						   NameStr(old->opcname)),
				 errhint("Rename the class of access method \"inplace_btree\" first, or change the indexes to btree with inplace.set_index_method.")));
	remember_orphan(mirror);
}

static void
class_altered(Oid opclass, Oid am)
{
	HeapTuple	before = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	HeapTuple	after = copy_current_class(opclass);
	Form_pg_opclass old;
	Form_pg_opclass new;
	bool		renamed;

	if (!HeapTupleIsValid(before) || !HeapTupleIsValid(after))
		elog(ERROR, "cache lookup failed for opclass %u", opclass);
	old = (Form_pg_opclass) GETSTRUCT(before);
	new = (Form_pg_opclass) GETSTRUCT(after);
	renamed = strcmp(NameStr(old->opcname), NameStr(new->opcname)) != 0 ||
		old->opcnamespace != new->opcnamespace;
	if (renamed && old->opcmethod == am && is_mirror(opclass, am))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("operator class \"%s\" of access method \"inplace_btree\" cannot be renamed or moved to another schema",
						NameStr(old->opcname)),
				 errhint("It follows the one of access method \"btree\".")));
	if (renamed && old->opcmethod == BTREE_AM_OID)
		class_renamed(old, new, am);
	heap_freetuple(after);
	ReleaseSysCache(before);
}

static void
class_dropped(Oid opclass, Oid am)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Form_pg_opclass form;
	Oid			mirror;

	if (!HeapTupleIsValid(tuple))
		return;
	form = (Form_pg_opclass) GETSTRUCT(tuple);
	if (form->opcmethod == BTREE_AM_OID &&
		OidIsValid(mirror = counterpart(am, form)))
		remember_orphan(mirror);
	ReleaseSysCache(tuple);
}

/*
 * The server records that an index depends on its operator classes.  By class of
 * inplace_btree, this adds the original.
 */
void
inplace_depend_on_originals(Oid indexid, const oidvector *opclasses)
{
	ObjectAddresses *addrs = NULL;
	ObjectAddress index;

	for (int i = 0; i < opclasses->dim1; i++)
	{
		Oid			original = inplace_original_of_opclass(opclasses->values[i]);
		ObjectAddress opclass;

		if (!OidIsValid(original))
			continue;
		if (addrs == NULL)
			addrs = new_object_addresses();
		ObjectAddressSet(opclass, OperatorClassRelationId, original);
		add_exact_object_address(&opclass, addrs);
	}
	if (addrs == NULL)
		return;
	ObjectAddressSet(index, RelationRelationId, indexid);
	record_object_address_dependencies(&index, addrs, DEPENDENCY_NORMAL);
	free_object_addresses(addrs);
}

/*
 * The server knows by their OIDs the classes that compare bytes, and so cannot do with
 * collations for which different strings may be equal.  It does not know ours.
 */
static void
refuse_bytes_of_nondeterministic(Oid opclass, Oid collation)
{
	Oid			original;
	HeapTuple	tuple;

	if (!OidIsValid(collation) || get_collation_isdeterministic(collation))
		return;
	original = inplace_original_of_opclass(opclass);
	if (original != TEXT_BTREE_PATTERN_OPS_OID &&
		original != VARCHAR_BTREE_PATTERN_OPS_OID &&
		original != BPCHAR_BTREE_PATTERN_OPS_OID)
		return;
	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(original));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator class %u", original);
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("nondeterministic collations are not supported for operator class \"%s\"",
					NameStr(((Form_pg_opclass) GETSTRUCT(tuple))->opcname))));
}

static void
relation_created(Oid relid)
{
	HeapTuple	tuple = copy_current_row(IndexRelationId, IndexRelidIndexId,
										 Anum_pg_index_indexrelid, relid);
	bool		isnull;
	oidvector  *opclasses;
	oidvector  *collations;

	if (!HeapTupleIsValid(tuple))
		return;
	opclasses = (oidvector *)
		DatumGetPointer(SysCacheGetAttr(INDEXRELID, tuple, Anum_pg_index_indclass, &isnull));
	Assert(!isnull);
	collations = (oidvector *)
		DatumGetPointer(SysCacheGetAttr(INDEXRELID, tuple, Anum_pg_index_indcollation, &isnull));
	Assert(!isnull);
	for (int i = 0; i < opclasses->dim1; i++)
		refuse_bytes_of_nondeterministic(opclasses->values[i], collations->values[i]);
	inplace_depend_on_originals(relid, opclasses);
	heap_freetuple(tuple);
}

static void
follow(ObjectAccessType access, Oid classId, Oid objectId, int subId, void *arg)
{
	Oid			am;

	if (prev_object_access_hook)
		prev_object_access_hook(access, classId, objectId, subId, arg);
	if (subId != 0 || !IsTransactionState() ||
		(classId != OperatorClassRelationId &&
		 !(classId == RelationRelationId && access == OAT_POST_CREATE)) ||
		!InplaceInstalledHere())
		return;
	am = InplaceBtreeAm();
	if (!OidIsValid(am))
		return;

	if (classId == RelationRelationId)
		relation_created(objectId);
	else if (access == OAT_POST_CREATE && !IsBinaryUpgrade)
		class_created(objectId, am);
	else if (access == OAT_POST_ALTER)
		class_altered(objectId, am);
	else if (access == OAT_DROP)
		class_dropped(objectId, am);
}

/*
 * After a statement.  A drop may have been rolled back, the class may be there
 * again, and the mirror may be gone with the extension; so look.
 */
void
inplace_drop_orphaned_mirrors(void)
{
	List	   *list = orphans;
	ListCell   *lc;

	if (likely(list == NIL) || !IsTransactionState())
		return;
	orphans = NIL;
	/* (a rename cannot be seen yet) */
	CommandCounterIncrement();
	foreach(lc, list)
	{
		Oid			mirror = lfirst_oid(lc);

		if (SearchSysCacheExists1(CLAOID, ObjectIdGetDatum(mirror)) &&
			!OidIsValid(inplace_original_of_opclass(mirror)))
			drop_mirror(mirror);
	}
	list_free(list);
}

/*
 * What is dropped otherwise than by a statement: temporary schemas.
 */
static void
transaction_ends(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			inplace_drop_orphaned_mirrors();
			break;
		case XACT_EVENT_ABORT:
			orphans = NIL;
			break;
		default:
			break;
	}
}

/* ---------------- SQL ---------------- */

/*
 * A mirror without an original goes.  One that is in use gets the name of a class that
 * means the same, and has no mirror, as its original that has been renamed; or stays.
 */
static void
settle_orphan(Oid mirror, Oid am, List *without_mirror)
{
	ListCell   *lc;

	if (!in_use(mirror))
	{
		drop_mirror(mirror);
		return;
	}
	foreach(lc, without_mirror)
	{
		HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(lfirst_oid(lc)));
		Form_pg_opclass form;
		bool		found;

		if (!HeapTupleIsValid(tuple))
			continue;
		form = (Form_pg_opclass) GETSTRUCT(tuple);
		found = form->opcintype == get_opclass_input_type(mirror) &&
			form->opcfamily == get_opclass_family(mirror) &&
			!OidIsValid(class_named(am, form));
		if (found)
			update_mirror(mirror, form);
		ReleaseSysCache(tuple);
		if (found)
		{
			CommandCounterIncrement();
			return;
		}
	}
}

/* does this make one for the class of btree, which may be gone? */
static bool
complete_mirror(Oid opclass, Oid am)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	bool		missing;

	if (!HeapTupleIsValid(tuple))
		return false;
	missing = !OidIsValid(class_named(am, (Form_pg_opclass) GETSTRUCT(tuple)));
	ReleaseSysCache(tuple);
	if (missing)
		(void) inplace_mirror_of_opclass(opclass);
	return missing;
}

/*
 * inplace.mirror_opclasses(), for CREATE EXTENSION: makes the mirrors that are
 * missing, and drops those without an original.  Returns the number of those made.
 */
Datum
inplace_mirror_opclasses(PG_FUNCTION_ARGS)
{
	Oid			am = InplaceBtreeAm();
	Relation	pg_opclass;
	SysScanDesc scan;
	HeapTuple	tuple;
	List	   *originals = NIL;
	List	   *mirrors = NIL;
	ListCell   *lc;
	int			created = 0;

	PreventCommandIfReadOnly("inplace.mirror_opclasses()");
	if (!OidIsValid(am))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("access method \"inplace_btree\" does not exist")));

	pg_opclass = table_open(OperatorClassRelationId, AccessShareLock);
	scan = systable_beginscan(pg_opclass, InvalidOid, false, NULL, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_opclass form = (Form_pg_opclass) GETSTRUCT(tuple);

		if (form->opcmethod == am)
			mirrors = lappend_oid(mirrors, form->oid);
		else if (form->opcmethod == BTREE_AM_OID &&
				 !OidIsValid(counterpart(am, form)))
			originals = lappend_oid(originals, form->oid);
	}
	systable_endscan(scan);
	table_close(pg_opclass, AccessShareLock);

	foreach(lc, mirrors)
	{
		if (is_mirror(lfirst_oid(lc), am) &&
			!OidIsValid(inplace_original_of_opclass(lfirst_oid(lc))))
			settle_orphan(lfirst_oid(lc), am, originals);
	}
	foreach(lc, originals)
	{
		if (complete_mirror(lfirst_oid(lc), am))
			created++;
	}
	PG_RETURN_INT32(created);
}

/* what it stores, and no operators and functions, which are in the family */
static bool
has_storage_only(CreateOpClassStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->items)
	{
		if (lfirst_node(CreateOpClassItem, lc)->itemtype != OPCLASS_ITEM_STORAGETYPE)
			return false;
	}
	return true;
}

static Oid
storage_type(CreateOpClassStmt *stmt, Oid intype)
{
	Oid			type = InvalidOid;
	ListCell   *lc;

	foreach(lc, stmt->items)
	{
		CreateOpClassItem *item = lfirst_node(CreateOpClassItem, lc);

		if (item->itemtype == OPCLASS_ITEM_STORAGETYPE)
			type = typenameTypeId(NULL, item->storedtype);
	}
	return type == intype ? InvalidOid : type;
}

/*
 * CREATE OPERATOR CLASS ... USING inplace_btree as pg_upgrade writes it of a
 * mirror, for a family that inplace_btree has not; false of any other.
 *
 * The family may be there, because the user has made one with the name of btree's.
 * Then it is a mirror if its original is there (which the dump has before), and it
 * brings nothing else, as mirrors do not.
 */
bool
inplace_restore_mirror(CreateOpClassStmt *stmt)
{
	Oid			am = InplaceBtreeAm();
	FormData_pg_opclass form = {0};
	List	   *family = stmt->opfamilyname != NIL ?
		stmt->opfamilyname : stmt->opclassname;
	bool		ambiguous;
	char	   *name;

	if (!IsBinaryUpgrade || !superuser() || !OidIsValid(am) ||
		get_am_oid(stmt->amname, true) != am)
		return false;
	ambiguous = OidIsValid(get_opfamily_oid(am, family, true));

	form.opcmethod = am;
	form.opcnamespace = QualifiedNameGetCreationNamespace(stmt->opclassname, &name);
	namestrcpy(&form.opcname, name);
	form.opcowner = GetUserId();
	form.opcfamily = get_opfamily_oid(BTREE_AM_OID, family, ambiguous);
	form.opcintype = typenameTypeId(NULL, stmt->datatype);
	form.opcdefault = stmt->isDefault;
	if (ambiguous &&
		!(has_storage_only(stmt) && OidIsValid(counterpart(BTREE_AM_OID, &form))))
		return false;
	form.opckeytype = storage_type(stmt, form.opcintype);
	insert_class(&form);
	return true;
}

/*
 * Before CREATE OPERATOR CLASS ... USING inplace_btree of a dump.  Nobody but a
 * superuser may make one.
 */
void
inplace_before_create_opclass(CreateOpClassStmt *stmt)
{
	FormData_pg_opclass form = {0};
	char	   *schema;
	char	   *name;

	if (IsBinaryUpgrade || XactReadOnly || !inplace_restoring_dump() ||
		!superuser() || !OidIsValid(InplaceBtreeAm()) ||
		get_am_oid(stmt->amname, true) != InplaceBtreeAm())
		return;
	DeconstructQualifiedName(stmt->opclassname, &schema, &name);
	form.opcnamespace = schema != NULL ? get_namespace_oid(schema, true) :
		InvalidOid;
	namestrcpy(&form.opcname, name);
	if (OidIsValid(form.opcnamespace))
		(void) make_room(InplaceBtreeAm(), &form);
}

void
inplace_opclass_init(void)
{
	prev_object_access_hook = object_access_hook;
	object_access_hook = follow;
	RegisterXactCallback(transaction_ends, NULL);
}

/*-------------------------------------------------------------------------
 *
 * own.c
 *	  What belongs to the extension in this database.
 *
 * Names are not trusted.  Whoever may create a schema, a table or a function may
 * give it any name, in a database without the extension as well.  So this is the
 * one place where the extension looks for something of its own.  All else goes by
 * the OIDs that it gives.
 *
 * What a look-up rests on
 *	 1. The extension's name.  It is the name of a control file in the server's
 *		installation, nobody but a superuser can create the extension, and
 *		it cannot be renamed.
 *	 2. An access method is ours if it is a member of that extension, of the
 *		right type, and its handler is the function in C that we call so.
 *		Nobody but a superuser can create any, none can be renamed, and none of
 *		ours can be taken out of the extension (InplaceKeepMembers).
 *	 3. A relation with undo is one whose access method is ours, and that is a
 *		member of the extension; which of the two its persistence says.
 *	 4. The schema is that of the handler.
 *
 * Invalidation.  The answer is kept by each backend until pg_am changes, as it
 * does when the extension is created or dropped.  "Absent" is kept if there is no
 * access method called "inplace", and for no other reason.  If there is one that
 * is not (yet) a member of the extension, as while pg_upgrade restores a
 * database, the next call looks again.
 *
 * Catalogs cannot be looked at without a transaction, with a page locked, and
 * while WAL is decoded.  Then the answer is the one of before.  Nor does a backend
 * know of an invalidation before it takes it in.  Neither harms a query: it has
 * locked the tables and indexes that it uses before it is planned or started,
 * and has taken in with that all that was sent before.  What locks nothing
 * first asks InplaceInstalledNow().
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "nodes/parsenodes.h"
#include "own.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#define EXTENSION_NAME	"inplace"

/* how often look() looks, before it takes an answer that may be outdated already */
#define MAX_LOOKS	3

typedef struct OwnObjects
{
	Oid			extension;
	Oid			schema;
	Oid			table_am;
	Oid			undo_am;
	Oid			btree_am;
} OwnObjects;

OwnState	inplace_own_state = OWN_UNKNOWN;

/* valid if OWN_PRESENT; what they were before, or zero, if OWN_UNKNOWN */
static OwnObjects own;
static uint64 invalidations = 0;

static void
own_invalidate(Datum arg, int cacheid, uint32 hashvalue)
{
	invalidations++;
	inplace_own_state = OWN_UNKNOWN;
}

/*
 * Is the function our handler of access methods, called that in C?  If so *schema
 * is where it is.
 */
static bool
is_handler(Oid funcid, Oid result_type, const char *symbol, Oid *schema)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	Form_pg_proc proc;
	bool		isnull;
	bool		result = false;

	if (!HeapTupleIsValid(tuple))
		return false;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	if (proc->prolang == ClanguageId && proc->prokind == PROKIND_FUNCTION &&
		!proc->proretset && proc->prorettype == result_type &&
		proc->pronargs == 1 && proc->proargtypes.values[0] == INTERNALOID)
	{
		Datum		src = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc,
										  &isnull);
		char	   *name = TextDatumGetCString(src);

		result = strcmp(name, symbol) == 0;
		pfree(name);
		*schema = proc->pronamespace;
	}
	ReleaseSysCache(tuple);
	return result;
}

/*
 * The extension's access method of that name and type, or InvalidOid.  *exists:
 * there is one of that name, of the extension or not.
 */
static Oid
own_access_method(Oid extension, const char *name, char type,
				  const char *handler, Oid *schema, bool *exists)
{
	HeapTuple	tuple = SearchSysCache1(AMNAME, CStringGetDatum(name));
	FormData_pg_am form;
	Oid			result_type = type == AMTYPE_TABLE ? TABLE_AM_HANDLEROID :
		INDEX_AM_HANDLEROID;

	*exists = HeapTupleIsValid(tuple);
	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	form = *(Form_pg_am) GETSTRUCT(tuple);
	ReleaseSysCache(tuple);

	if (!OidIsValid(extension))
		extension = get_extension_oid(EXTENSION_NAME, true);
	if (!OidIsValid(extension) || form.amtype != type ||
		!is_handler(form.amhandler, result_type, handler, schema) ||
		getExtensionOfObject(AccessMethodRelationId, form.oid) != extension)
		return InvalidOid;
	return form.oid;
}

static bool
look_up(OwnObjects *found, bool *exists)
{
	Oid			schema;
	bool		other_exists;

	memset(found, 0, sizeof(OwnObjects));
	found->table_am = own_access_method(InvalidOid, "inplace", AMTYPE_TABLE,
										"inplace_table_handler",
										&found->schema, exists);
	if (!OidIsValid(found->table_am))
		return false;
	found->extension = get_extension_oid(EXTENSION_NAME, false);
	found->undo_am = own_access_method(found->extension, "inplace_undo",
									   AMTYPE_TABLE, "inplace_undo_handler",
									   &schema, &other_exists);
	found->btree_am = own_access_method(found->extension, "inplace_btree",
										AMTYPE_INDEX, "inplace_btree_handler",
										&schema, &other_exists);
	return true;
}

static bool
look(void)
{
	static bool registered = false;
	OwnObjects	found;
	bool		present;
	bool		exists;
	uint64		began;
	int			tries = 0;

	if (!IsTransactionState() || !OidIsValid(MyDatabaseId) ||
		HistoricSnapshotActive())
		return OidIsValid(own.table_am);
	if (!registered)
	{
		CacheRegisterSyscacheCallback(AMOID, own_invalidate, (Datum) 0);
		registered = true;
	}

	/*
	 * The look-up itself may take in an invalidation.  Where each one does,
	 * as with debug_discard_caches, the last answer serves this call alone.
	 */
	do
	{
		began = invalidations;
		present = look_up(&found, &exists);
	} while (began != invalidations && ++tries < MAX_LOOKS);

	own = found;
	if (began != invalidations)
		return present;
	if (present)
		inplace_own_state = OWN_PRESENT;
	else if (!exists)
		inplace_own_state = OWN_ABSENT;
	return present;
}

/* a locked page holds interrupts off */
bool
InplaceLookHere(void)
{
	return InterruptHoldoffCount > 0 ? OidIsValid(own.table_am) : look();
}

/*
 * The same, for what does not lock a table or index first: in a transaction that has been
 * open since before the extension was created, too.
 */
bool
InplaceInstalledNow(void)
{
	if (inplace_own_state == OWN_ABSENT && IsTransactionState() &&
		InterruptHoldoffCount == 0)
		AcceptInvalidationMessages();
	return InplaceInstalledHere();
}

Oid
InplaceExtension(void)
{
	return InplaceInstalledHere() ? own.extension : InvalidOid;
}

Oid
InplaceSchema(void)
{
	return InplaceInstalledHere() ? own.schema : InvalidOid;
}

Oid
InplaceTableAm(void)
{
	return InplaceInstalledHere() ? own.table_am : InvalidOid;
}

Oid
InplaceUndoAm(void)
{
	return InplaceInstalledHere() ? own.undo_am : InvalidOid;
}

Oid
InplaceBtreeAm(void)
{
	return InplaceInstalledHere() ? own.btree_am : InvalidOid;
}

/*
 * pg_repack, if it is installed.  An extension may be known by its name: only
 * by a control file on the server can one of that name be made.
 */
Oid
InplacePgRepack(void)
{
	return get_extension_oid("pg_repack", true);
}

/* without opening it; InvalidOid if it is gone */
Oid
inplace_relation_am(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			am = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		am = ((Form_pg_class) GETSTRUCT(tuple))->relam;
		ReleaseSysCache(tuple);
	}
	return am;
}

/* is it a member of the extension? */
bool
InplaceOwns(Oid classid, Oid objectid)
{
	return InplaceInstalledHere() &&
		getExtensionOfObject(classid, objectid) == own.extension;
}

/* ---------------- the undo relations ---------------- */

static bool
relation_is(Oid relid, Oid am, char relpersistence)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Form_pg_class form;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_class) GETSTRUCT(tuple);
	result = form->relam == am && RELKIND_HAS_TABLE_AM(form->relkind) &&
		(relpersistence == '\0' || form->relpersistence == relpersistence);
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Is the relation that was found before still there?  This asks pg_class only.
 */
bool
InplaceStillUndoRelation(Oid relid, char relpersistence)
{
	return OidIsValid(relid) && OidIsValid(own.undo_am) &&
		relation_is(relid, own.undo_am, relpersistence);
}

/*
 * That of the permanent, or of the unlogged, tables; InvalidOid if there is none.
 * It looks without asking what is locked, so it must not be called with a page locked.
 */
Oid
InplaceUndoRelation(char relpersistence)
{
	Oid			am;
	Oid			result = InvalidOid;
	Relation	pg_depend;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	if (inplace_own_state == OWN_UNKNOWN)
		(void) look();
	am = own.undo_am;
	if (!OidIsValid(am) || inplace_own_state == OWN_ABSENT)
		return InvalidOid;
	pg_depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(AccessMethodRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(am));
	scan = systable_beginscan(pg_depend, DependReferenceIndexId, true, NULL,
							  2, keys);
	while (!OidIsValid(result) &&
		   HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		if (form->classid == RelationRelationId &&
			relation_is(form->objid, am, relpersistence) &&
			getExtensionOfObject(RelationRelationId, form->objid) == own.extension)
			result = form->objid;
	}
	systable_endscan(scan);
	table_close(pg_depend, AccessShareLock);
	return result;
}

bool
InplaceIsUndoRelation(Oid relid)
{
	return OidIsValid(relid) && OidIsValid(InplaceUndoAm()) &&
		relation_is(relid, InplaceUndoAm(), '\0');
}

/* ---------------- membership ---------------- */

/*
 * Before ALTER EXTENSION inplace DROP ...: access methods and undo relations stay
 * members, by which they are known; so does the schema, for pg_dump.
 */
void
InplaceKeepMembers(AlterExtensionContentsStmt *stmt)
{
	ObjectAddress object;
	Relation	rel = NULL;

	if (stmt->action >= 0 || creating_extension ||
		!InplaceInstalledHere() ||
		get_extension_oid(stmt->extname, true) != own.extension ||
		(stmt->objtype != OBJECT_ACCESS_METHOD &&
		 stmt->objtype != OBJECT_TABLE && stmt->objtype != OBJECT_MATVIEW &&
		 stmt->objtype != OBJECT_SCHEMA))
		return;
	/* locked as the statement does it, which must be the owner's */
	if (!ExtensionOwnedBy(own.extension, GetUserId()))
		return;
	object = get_object_address(stmt->objtype, stmt->object, &rel,
								ShareUpdateExclusiveLock, false);
	if (rel != NULL)
		relation_close(rel, NoLock);
	if (InplaceOwns(object.classId, object.objectId) &&
		(stmt->objtype == OBJECT_ACCESS_METHOD ||
		 stmt->objtype == OBJECT_SCHEMA ||
		 InplaceIsUndoRelation(object.objectId)))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("%s cannot be removed from extension \"%s\"",
						getObjectDescription(&object, false), EXTENSION_NAME),
				 errhint("The extension finds it by that, and pg_dump leaves it to the extension.")));
}

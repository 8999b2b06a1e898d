/*-------------------------------------------------------------------------
 *
 * default_table.c
 *	  The method of tables that are made without naming one.
 *
 * default_table_access_method is what people want for tables of theirs.  The
 * tables that extensions make for themselves are read and written by code that
 * knows heap tuples only (heap_insert, heap_update, systable scans), so those
 * are heap's, unless it is said otherwise:
 *	 - what the script of an extension makes, where the statement has no USING;
 *	 - what C code makes by a call of DefineRelation(), with no statement.  The
 *	   server chooses the method there, and we see the table when it is made
 *	   and empty (the hook of object access): then it becomes heap's.  If it
 *	   turns out to be a child of an inplace table, it is made what its parent is:
 *	   it holds rows of a user.
 * A statement that C code executes (SPI) is taken for a user's: by such ones
 * functions in SQL and PL/pgSQL make tables, on behalf of a user, and partitions.
 *
 * pg_repack copies a table into one that it makes without USING, and swaps the
 * files of the two.  So the copy gets the method of the table.  It is known by its
 * schema, which is the extension's own, and by its name.  Likewise the indexes that
 * it makes are of the method that they are said to be of.
 *
 * All of this only where the default is inplace or the table copied is.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_namespace_d.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "ddl/default_method.h"
#include "ddl/default_table.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
#include "own.h"
#include "storage/bufmgr.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

static object_access_hook_type prev_object_access_hook = NULL;

/* a statement is about to make a table, whose method it has */
static bool statement_makes_table = false;

/* the table that we have made heap's last, and may yet be a child */
static Oid	made_heap = InvalidOid;

static bool
default_is_inplace(Oid am)
{
	return OidIsValid(am) &&
		get_table_am_oid(default_table_access_method, true) == am;
}

/* ---------------- pg_repack ---------------- */

/*
 * The number at the end of such a name, or InvalidOid.
 */
static Oid
oid_in_name(const char *name, const char *prefix)
{
	size_t		len = strlen(prefix);
	char	   *end;
	unsigned long n;

	if (strncmp(name, prefix, len) != 0 || name[len] < '1' || name[len] > '9')
		return InvalidOid;
	errno = 0;
	n = strtoul(name + len, &end, 10);
	if (*end != '\0' || errno != 0 || n > OID_MAX)
		return InvalidOid;
	return (Oid) n;
}

static bool
is_schema_of_repack(const char *schema)
{
	Oid			extension = InplacePgRepack();
	Oid			nspoid;

	if (!OidIsValid(extension) || schema == NULL)
		return false;
	nspoid = get_namespace_oid(schema, true);
	return OidIsValid(nspoid) &&
		getExtensionOfObject(NamespaceRelationId, nspoid) == extension;
}

/*
 * The method of the table that pg_repack copies into this one; NULL if it is none
 * of its copies.
 */
static const char *
method_for_repack(const RangeVar *rv)
{
	Oid			relid;
	Oid			am;

	if (!is_schema_of_repack(rv->schemaname))
		return NULL;
	relid = oid_in_name(rv->relname, "table_");
	am = OidIsValid(relid) ? inplace_relation_am(relid) : InvalidOid;
	/* what else it makes there is its own */
	return OidIsValid(am) ? get_am_name(am) : "heap";
}

/*
 * Is it the copy of an index that pg_repack makes?
 */
bool
inplace_is_index_of_repack(const IndexStmt *stmt)
{
	Oid			indexid;

	if (stmt->idxname == NULL || stmt->relation == NULL ||
		!OidIsValid(indexid = oid_in_name(stmt->idxname, "index_")) ||
		!OidIsValid(InplacePgRepack()))
		return false;
	return is_schema_of_repack(stmt->relation->schemaname) ||
		get_rel_relkind(indexid) == RELKIND_INDEX;
}

/* ---------------- statements ---------------- */

/*
 * Does a partition get its parent's method from the server?
 */
static bool
follows_parent(const CreateStmt *stmt)
{
#if PG_VERSION_NUM >= 170000
	Oid			parent;

	if (stmt->partbound == NULL)
		return false;
	parent = RangeVarGetRelid(linitial_node(RangeVar, stmt->inhRelations),
							  NoLock, true);
	return OidIsValid(parent) && OidIsValid(inplace_relation_am(parent));
#else
	return false;
#endif
}

static const char *
method_for(const RangeVar *rv)
{
	Oid			am = InplaceTableAm();
	const char *repack;

	if (!OidIsValid(am))
		return NULL;
	if ((repack = method_for_repack(rv)) != NULL)
		return repack;
	return creating_extension && default_is_inplace(am) ? "heap" : NULL;
}

/*
 * The statement to execute instead, or NULL.
 */
static Node *
with_method(Node *stmt)
{
	const char *method;

	if (IsA(stmt, CreateStmt))
	{
		CreateStmt *create = (CreateStmt *) stmt;

		if (create->accessMethod != NULL || create->partspec != NULL ||
			follows_parent(create) ||
			(method = method_for(create->relation)) == NULL)
			return NULL;
		create = copyObject(create);
		create->accessMethod = pstrdup(method);
		return (Node *) create;
	}
	else
	{
		CreateTableAsStmt *create = (CreateTableAsStmt *) stmt;

		if (create->into->accessMethod != NULL ||
			(method = method_for(create->into->rel)) == NULL)
			return NULL;
		create = copyObject(create);
		create->into->accessMethod = pstrdup(method);
		return (Node *) create;
	}
}

static bool
makes_table(Node *stmt)
{
	/* (EXPLAIN ANALYZE makes it, too) */
	if (IsA(stmt, ExplainStmt))
	{
		Node	   *query = ((ExplainStmt *) stmt)->query;

		return IsA(query, Query) && ((Query *) query)->utilityStmt != NULL &&
			IsA(((Query *) query)->utilityStmt, CreateTableAsStmt);
	}
	return IsA(stmt, CreateStmt) || IsA(stmt, CreateTableAsStmt);
}

/*
 * Before a utility statement; the result is for inplace_table_statement_ends().
 */
bool
inplace_table_statement_begins(Node *stmt)
{
	bool		outer = statement_makes_table;

	statement_makes_table = IsTransactionState() && makes_table(stmt);
	made_heap = InvalidOid;
	return outer;
}

/*
 * The statement to execute instead of the one that has begun, or NULL.
 */
Node *
inplace_table_statement_instead(Node *stmt)
{
	return statement_makes_table && !IsA(stmt, ExplainStmt) ?
		with_method(stmt) : NULL;
}

/*
 * After it, also after an error: that may end a subtransaction only, within a
 * statement that has yet to make its table.
 */
void
inplace_table_statement_ends(bool outer)
{
	statement_makes_table = outer;
}

/* ---------------- tables of C code ---------------- */

/*
 * The table is new and empty, and its files are as either method makes them.
 */
static void
change_method(Oid relid, Oid from, Oid to)
{
	Relation	pg_class;
	HeapTuple	tuple;

	/* its row in the catalog is of this command */
	CommandCounterIncrement();
	pg_class = table_open(RelationRelationId, RowExclusiveLock);
	tuple = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relid);
	((Form_pg_class) GETSTRUCT(tuple))->relam = to;
	CatalogTupleUpdate(pg_class, &tuple->t_self, tuple);
	heap_freetuple(tuple);
	table_close(pg_class, RowExclusiveLock);
	if (changeDependencyFor(RelationRelationId, relid, AccessMethodRelationId,
							from, to) != 1)
		elog(ERROR, "could not change access method dependency of relation %u",
			 relid);
	CacheInvalidateRelcacheByRelid(relid);
	CommandCounterIncrement();
}

static void
table_made(Oid relid)
{
	Relation	rel = RelationIdGetRelation(relid);
	Oid			am;
	char		relkind;
	bool		is_ours;

	if (!RelationIsValid(rel))
		return;
	am = rel->rd_rel->relam;
	relkind = rel->rd_rel->relkind;
	is_ours = RelationIsInplace(rel);
	RelationClose(rel);
	if (relkind != RELKIND_RELATION && relkind != RELKIND_MATVIEW &&
		relkind != RELKIND_PARTITIONED_TABLE)
		return;

	made_heap = InvalidOid;
	if (statement_makes_table)
		statement_makes_table = false;
	else if (is_ours && default_is_inplace(am))
	{
		change_method(relid, am, HEAP_TABLE_AM_OID);
		made_heap = relid;
	}
}

static void
child_made(Oid relid, Oid parent)
{
	Oid			am = InplaceTableAm();
	Relation	rel;
	bool		empty;

	if (!OidIsValid(am) || inplace_relation_am(parent) != am)
		return;
	made_heap = InvalidOid;
	rel = RelationIdGetRelation(relid);
	if (!RelationIsValid(rel))
		return;
	empty = RelationGetNumberOfBlocks(rel) == 0;
	RelationClose(rel);
	if (empty)
		change_method(relid, HEAP_TABLE_AM_OID, am);
}

static void
follow(ObjectAccessType access, Oid classId, Oid objectId, int subId, void *arg)
{
	if (prev_object_access_hook)
		prev_object_access_hook(access, classId, objectId, subId, arg);
	if (access == OAT_POST_CREATE && classId == RelationRelationId && subId == 0)
	{
		/* rewrites make tables that have the method of the one rewritten */
		if (!((ObjectAccessPostCreate *) arg)->is_internal &&
			InplaceInstalledHere())
			table_made(objectId);
	}
	else if (access == OAT_POST_ALTER && classId == InheritsRelationId &&
			 OidIsValid(made_heap) && objectId == made_heap &&
			 InplaceInstalledHere())
		child_made(objectId, ((ObjectAccessPostAlter *) arg)->auxiliary_id);
}

static void
transaction_ends(XactEvent event, void *arg)
{
	statement_makes_table = false;
	made_heap = InvalidOid;
}

static void
subtransaction_ends(SubXactEvent event, SubTransactionId id,
					SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		made_heap = InvalidOid;
}

void
inplace_default_table_init(void)
{
	prev_object_access_hook = object_access_hook;
	object_access_hook = follow;
	RegisterXactCallback(transaction_ends, NULL);
	RegisterSubXactCallback(subtransaction_ends, NULL);
}

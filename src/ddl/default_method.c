/*-------------------------------------------------------------------------
 *
 * default_method.c
 *	  CREATE INDEX on an inplace table makes an inplace_btree index.
 *
 * inplace.default_index_method.  The parser does not tell whether btree was
 * written or is implied, so both become inplace_btree, right before the
 * statement is executed; the server then does with the statement what it does
 * with any that says so.  Not changed are
 *	 - indexes of constraints;
 *	 - unique indexes up to PostgreSQL 17, whose executor refuses ON CONFLICT
 *	   on tables with a unique index that is not btree;
 *	 - what a dump says: a script of pg_dump or pg_restore means btree where it
 *	   writes btree.  Such a session is known by two settings that these scripts
 *	   make and nobody else has reason to make together.  (The script of an
 *	   extension that CREATE EXTENSION runs in it is not part of the dump: it makes
 *	   what it made on the server that was dumped.)
 *
 *	 - the copies of indexes that pg_repack makes (ddl/default_table.c).
 *
 * Partitions.  The server wants one method for a partitioned index and what is
 * attached to it, whether it makes the parts or is given them one by one.  So
 * all tables of a partition tree get the same: inplace_btree if any of its
 * partitions is an inplace table, or those to come will be.  (On other tables
 * an inplace_btree index is a btree in all but name.)
 *
 * A constraint made of an existing index (ADD CONSTRAINT ... USING INDEX) has
 * to be btree for the server, so the index becomes one first.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "commands/tablecmds.h"
#include "ddl/default_method.h"
#include "ddl/default_table.h"
#include "ddl/index_method.h"
#include "ddl/opclass.h"
#include "nodes/nodeFuncs.h"
#include "own.h"
#include "parser/parse_utilcmd.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/syscache.h"

int			inplace_default_index_method = DEFAULT_INDEX_INPLACE_BTREE;

bool
inplace_restoring_dump(void)
{
	return IsBinaryUpgrade ||
		(!check_function_bodies && !creating_extension &&
		 (!row_security || namespace_search_path[0] == '\0'));
}

/* ---------------- CREATE INDEX ---------------- */

/*
 * Partitions may come and go while we look; that changes what the best choice
 * would have been, no more.
 */
static bool
partition_tree_is_inplace(Oid root, Oid table_am)
{
	bool		has_tables = false;
	ListCell   *lc;

	if (inplace_relation_am(root) == table_am)
		return true;
	foreach(lc, find_all_inheritors(root, NoLock, NULL))
	{
		Oid			relid = lfirst_oid(lc);

		if (get_rel_relkind(relid) != RELKIND_RELATION)
			continue;
		if (inplace_relation_am(relid) == table_am)
			return true;
		has_tables = true;
	}
	return !has_tables && !OidIsValid(inplace_relation_am(root)) &&
		get_table_am_oid(default_table_access_method, true) == table_am;
}

static bool
table_wants_inplace_btree(Oid relid)
{
	Oid			table_am = InplaceTableAm();
	Oid			root = relid;

	if (!OidIsValid(table_am))
		return false;
	if (get_rel_relispartition(relid))
		root = llast_oid(get_partition_ancestors(relid));
	if (get_rel_relkind(root) == RELKIND_PARTITIONED_TABLE)
		return partition_tree_is_inplace(root, table_am);
	return inplace_relation_am(root) == table_am;
}

/* the type that a column of a transformed statement has */
static Oid
index_elem_type(Oid relid, IndexElem *elem)
{
	AttrNumber	attnum;

	if (elem->name == NULL)
		return exprType(elem->expr);
	attnum = get_attnum(relid, elem->name);
	return attnum > 0 ? get_atttype(relid, attnum) : InvalidOid;
}

static Oid
opclass_of_elem(Oid am, IndexElem *elem, Oid type)
{
	return elem->opclass != NIL ? get_opclass_oid(am, elem->opclass, true) :
		GetDefaultOpClass(type, am);
}

/*
 * False if inplace_btree would take what is named, or needed, for another class than
 * btree does (one of its own, in a schema that is searched before), and if it
 * is a class that btree has not, and the statement will fail.
 */
static bool
mirror_opclasses_of(Oid relid, IndexStmt *stmt, const char *query)
{
	ListCell   *lc;

	/* for the types of expressions */
	if (!stmt->transformed)
		stmt = transformIndexStmt(relid, copyObject(stmt), query);
	foreach(lc, stmt->indexParams)
	{
		IndexElem  *elem = lfirst_node(IndexElem, lc);
		Oid			type = index_elem_type(relid, elem);
		Oid			opclass;
		Oid			mirror;

		/* (no such column: the server will say so) */
		if (!OidIsValid(type))
			return false;
		opclass = opclass_of_elem(BTREE_AM_OID, elem, type);
		if (!OidIsValid(opclass))
			return false;
		mirror = inplace_mirror_of_opclass(opclass);
		if (!OidIsValid(mirror) ||
			opclass_of_elem(InplaceBtreeAm(), elem, type) != mirror)
			return false;
	}
	return true;
}

static bool
becomes_inplace_btree(IndexStmt *stmt)
{
	return inplace_default_index_method == DEFAULT_INDEX_INPLACE_BTREE &&
		strcmp(stmt->accessMethod, DEFAULT_INDEX_TYPE) == 0 &&
		!stmt->primary && !stmt->isconstraint && stmt->excludeOpNames == NIL &&
		!inplace_is_index_of_repack(stmt) &&
		(!stmt->unique || UNIQUE_INDEX_OF_ANY_METHOD) &&
		!inplace_restoring_dump();
}

/*
 * The statement to execute instead, or NULL.  Mirrors of the operator classes
 * are made, if they are not there, for an index that is said to be
 * inplace_btree as well.
 *
 * The table is locked here as the statement is going to, and with its checks,
 * so that it is the same table then.
 */
IndexStmt *
inplace_index_stmt(IndexStmt *stmt, const char *query)
{
	bool		becomes = becomes_inplace_btree(stmt);
	Oid			relid;
	IndexStmt  *changed;

	if (!OidIsValid(InplaceBtreeAm()) ||
		(!becomes && get_am_oid(stmt->accessMethod, true) != InplaceBtreeAm()))
		return NULL;
	/* these fail, with a better message than ours would be */
	if (XactReadOnly || IsInParallelMode() || stmt->relation == NULL)
		return NULL;

	relid = RangeVarGetRelidExtended(stmt->relation,
									 stmt->concurrent ? ShareUpdateExclusiveLock : ShareLock,
									 RVR_MISSING_OK,
									 RangeVarCallbackOwnsRelation, NULL);
	if (!OidIsValid(relid) ||
		(becomes && !table_wants_inplace_btree(relid)) ||
		!mirror_opclasses_of(relid, stmt, query) || !becomes)
		return NULL;

	changed = copyObject(stmt);
	changed->accessMethod = get_am_name(InplaceBtreeAm());
	return changed;
}

/* ---------------- ALTER TABLE ... ADD CONSTRAINT ... USING INDEX ---------------- */

static void
become_btree(Oid relid, const char *index_name)
{
	Oid			indexid = get_relname_relid(index_name, get_rel_namespace(relid));

	if (!OidIsValid(indexid) ||
		get_rel_relkind(indexid) != RELKIND_INDEX ||
		IndexGetRelation(indexid, true) != relid ||
		inplace_relation_am(indexid) != InplaceBtreeAm() ||
		!inplace_index_can_have_method(indexid, BTREE_AM_OID))
		return;
	/* one method for all of a partitioned index, and this is but a part */
	if (get_rel_relispartition(indexid))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" cannot become that of a constraint, because it is part of a partitioned index of access method \"%s\"",
						index_name, get_am_name(InplaceBtreeAm())),
				 errhint("Change the partitioned index first, with inplace.set_index_method.")));
	ereport(NOTICE,
			(errmsg("index \"%s\" becomes a btree index, as constraints need",
					index_name)));
	inplace_index_set_method(indexid, BTREE_AM_OID);
}

void
inplace_before_alter_table(AlterTableStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);
		Constraint *constraint;
		Oid			relid;

		if (cmd->subtype != AT_AddConstraint || cmd->def == NULL ||
			!IsA(cmd->def, Constraint))
			continue;
		constraint = (Constraint *) cmd->def;
		if (constraint->indexname == NULL || XactReadOnly ||
			!OidIsValid(InplaceBtreeAm()))
			continue;
		/* locks the table, and checks, as the statement does */
		relid = AlterTableLookupRelation(stmt, AlterTableGetLockLevel(stmt->cmds));
		if (OidIsValid(relid))
			become_btree(relid, constraint->indexname);
	}
}

/*-------------------------------------------------------------------------
 *
 * ddl.h
 *	  The SQL face of inplace_btree: which statements make such indexes, and
 *	  changing the method of an index that is there.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_DDL_H
#define INPLACE_DDL_H

#include "nodes/parsenodes.h"
#include "storage/lockdefs.h"
#include "tcop/utility.h"

typedef enum DefaultIndexMethod
{
	DEFAULT_INDEX_INPLACE_BTREE,
	DEFAULT_INDEX_BTREE,
} DefaultIndexMethod;

/* default_method.c */
extern int	inplace_default_index_method;

extern Oid	inplace_relation_am(Oid relid);
extern bool inplace_restoring_dump(void);
extern IndexStmt *inplace_index_stmt(IndexStmt *stmt, const char *query);
extern void inplace_before_alter_table(AlterTableStmt *stmt);

/* inplace.c */
extern VacuumStmt *inplace_vacuum_stmt(VacuumStmt *stmt, bool toplevel,
									   bool with_names);

/* above.c */
extern void inplace_above_init(ProcessUtility_hook_type hook);

/* planner.c */
extern void inplace_planner_init(void);

/* young_index.c */
extern void inplace_young_index_init(void);

/* opclass.c */
extern void inplace_opclass_init(void);
extern Oid	inplace_mirror_of_opclass(Oid opclass);
extern Oid	inplace_original_of_opclass(Oid opclass);
extern bool inplace_opclass_may_have_counterpart(Oid opclass, Oid am);
extern void inplace_depend_on_originals(Oid indexid, const oidvector *opclasses);
extern void inplace_drop_orphaned_mirrors(void);
extern bool inplace_restore_mirror(CreateOpClassStmt *stmt);
extern void inplace_before_create_opclass(CreateOpClassStmt *stmt);

/* index_method.c */
extern bool inplace_index_can_have_method(Oid indexid, Oid am);
extern void inplace_index_set_method(Oid indexid, Oid am);

/* utility.c */
extern void inplace_utility_init(void);

/* convert.c */
extern List *inplace_partition_tree(Oid relid, LOCKMODE lockmode);

#endif							/* INPLACE_DDL_H */

/*-------------------------------------------------------------------------
 *
 * opclass.h
 *	  Operator classes of inplace_btree; see opclass.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_OPCLASS_H
#define INPLACE_OPCLASS_H

#include "inplace.h"

#include "nodes/parsenodes.h"

extern void inplace_opclass_init(void);
extern Oid	inplace_mirror_of_opclass(Oid opclass);
extern Oid	inplace_original_of_opclass(Oid opclass);
extern bool inplace_opclass_may_have_counterpart(Oid opclass, Oid am);
extern void inplace_depend_on_originals(Oid indexid, const oidvector *opclasses);
extern void inplace_drop_orphaned_mirrors(void);
extern bool inplace_restore_mirror(CreateOpClassStmt *stmt);
extern void inplace_before_create_opclass(CreateOpClassStmt *stmt);

#endif							/* INPLACE_OPCLASS_H */

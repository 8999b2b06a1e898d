/*-------------------------------------------------------------------------
 *
 * late_open.h
 *	  Opening indexes only where an update needs them; see late_open.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_LATE_OPEN_H
#define INPLACE_LATE_OPEN_H

#include "inplace.h"

#include "nodes/parsenodes.h"

extern void inplace_open_indexes(Relation rel, TupleTableSlot *slot);
extern bool inplace_indexes_in_use(Oid tableid);
extern void inplace_check_index_not_in_use(Oid tableid, const char *indexname,
										   const char *stmt);
extern void inplace_check_alter_index(AlterTableStmt *stmt);

#endif							/* INPLACE_LATE_OPEN_H */

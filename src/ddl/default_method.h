/*-------------------------------------------------------------------------
 *
 * default_method.h
 *	  Which method an index is made with; see default_method.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_DEFAULT_METHOD_H
#define INPLACE_DEFAULT_METHOD_H

#include "inplace.h"

#include "nodes/parsenodes.h"

typedef enum DefaultIndexMethod
{
	DEFAULT_INDEX_INPLACE_BTREE,
	DEFAULT_INDEX_BTREE,
} DefaultIndexMethod;

extern int	inplace_default_index_method;

extern bool inplace_restoring_dump(void);
extern IndexStmt *inplace_index_stmt(IndexStmt *stmt, const char *query);
extern void inplace_before_alter_table(AlterTableStmt *stmt);

#endif							/* INPLACE_DEFAULT_METHOD_H */

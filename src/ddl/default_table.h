/*-------------------------------------------------------------------------
 *
 * default_table.h
 *	  The method of tables that are made without naming one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_DEFAULT_TABLE_H
#define INPLACE_DEFAULT_TABLE_H

#include "inplace.h"

#include "nodes/parsenodes.h"

extern bool inplace_is_index_of_repack(const IndexStmt *stmt);
extern bool inplace_table_statement_begins(Node *stmt);
extern Node *inplace_table_statement_instead(Node *stmt);
extern void inplace_table_statement_ends(bool outer);
extern void inplace_default_table_init(void);

#endif							/* INPLACE_DEFAULT_TABLE_H */

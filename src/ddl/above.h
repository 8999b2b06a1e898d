/*-------------------------------------------------------------------------
 *
 * above.h
 *	  Statements that another extension executes are changed first.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_ABOVE_H
#define INPLACE_ABOVE_H

#include "inplace.h"

#include "tcop/utility.h"

extern void inplace_above_init(ProcessUtility_hook_type hook);

/* utility.c: the VACUUM to be executed in the place of this one, or NULL for none */
extern VacuumStmt *inplace_vacuum_stmt(VacuumStmt *stmt, bool toplevel,
									   bool with_names);

#endif							/* INPLACE_ABOVE_H */

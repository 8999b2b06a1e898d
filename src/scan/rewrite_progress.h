/*-------------------------------------------------------------------------
 *
 * rewrite_progress.h
 *	  Progress of ALTER TABLE ... SET ACCESS METHOD, from and to inplace.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_REWRITE_PROGRESS_H
#define INPLACE_REWRITE_PROGRESS_H

#include "inplace.h"

#include "nodes/parsenodes.h"
#include "utils/rel.h"

/* the table that is being rewritten, or InvalidOid */
extern Oid	inplace_rewriting;

extern bool RewriteProgressBegin(AlterTableStmt *stmt);
extern void RewriteProgressEnd(void);
extern void RewriteProgressRowWritten(Relation rel);
extern void RewriteProgressPageRead(Relation rel, int nrows);
extern void RewriteProgressReadAll(Relation rel);

#endif							/* INPLACE_REWRITE_PROGRESS_H */

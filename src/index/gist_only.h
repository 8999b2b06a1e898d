/*-------------------------------------------------------------------------
 *
 * gist_only.h
 *	  Index-only scans of GiST indexes under which rows are updated in place; see
 *	  gist_only.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_GIST_ONLY_H
#define INPLACE_GIST_ONLY_H

#include "inplace.h"

#include "nodes/execnodes.h"

extern void inplace_gist_plan_is_old(Relation index);
extern void inplace_gist_only_check(IndexOnlyScanState *ios, Snapshot snapshot);

#endif							/* INPLACE_GIST_ONLY_H */

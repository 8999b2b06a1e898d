/*-------------------------------------------------------------------------
 *
 * check_btree.h
 *	  Checking an index; see check_btree.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_CHECK_BTREE_H
#define INPLACE_CHECK_BTREE_H

#include "inplace.h"

#include "access/itup.h"

extern bool InsightValuesFit(TupleDesc desc, IndexTuple itup, int natts, int end);

/*
 * Tell what is wrong with an index, which is a B-tree.  False if
 * that is such that it cannot even be scanned.
 */
typedef void (*InsightReport) (void *arg, const char *problem);

extern bool InsightCheckBtree(Relation table, Relation index,
							  InsightReport report, void *arg);

#endif							/* INPLACE_CHECK_BTREE_H */

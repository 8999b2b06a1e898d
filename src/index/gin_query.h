/*-------------------------------------------------------------------------
 *
 * gin_query.h
 *	  Queries of GIN indexes that a key too many keeps rows out of; see gin_query.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_GIN_QUERY_H
#define INPLACE_GIN_QUERY_H

#include "inplace.h"

#include "nodes/execnodes.h"
#include "utils/rel.h"

/* what keys of former versions do to the queries of an operator class */
typedef enum GinClass
{
	GIN_UNKNOWN,				/* nobody here knows */
	GIN_MONOTONE,				/* they never keep a row out */
	GIN_TEXT_SEARCH,			/* ... but in a text search with a NOT */
	GIN_INT_QUERY				/* ... but in a query_int of intarray */
} GinClass;

extern GinClass inplace_gin_class(Relation index, int column);
extern bool inplace_gin_keeps_rows_out(Relation index);
extern void inplace_gin_query_look(BitmapIndexScanState *bis);

#endif							/* INPLACE_GIN_QUERY_H */

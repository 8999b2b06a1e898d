/*-------------------------------------------------------------------------
 *
 * gin_entry.h
 *	  New entries in a GIN index; see gin_entry.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_GIN_ENTRY_H
#define INPLACE_GIN_ENTRY_H

#include "inplace.h"

extern void inplace_gin_insert(Relation index, const Datum *values, const bool *isnull,
							   ItemPointer tid);

#endif							/* INPLACE_GIN_ENTRY_H */

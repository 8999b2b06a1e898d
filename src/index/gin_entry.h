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

#include "index/other_entry.h"

extern void inplace_gin_insert(Relation index, const EntryValues *v, const EntryValues *had,
							   ItemPointer tid);

#endif							/* INPLACE_GIN_ENTRY_H */

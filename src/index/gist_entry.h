/*-------------------------------------------------------------------------
 *
 * gist_entry.h
 *	  Has a GiST index an entry already?  See gist_entry.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_GIST_ENTRY_H
#define INPLACE_GIST_ENTRY_H

#include "inplace.h"

/* of a version, in the index */
typedef struct EntryValues
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
} EntryValues;

extern bool inplace_gist_has_entry(Relation index, EntryValues *values,
								   EntryValues *old, ItemPointer tid,
								   bool one_entry);

#endif							/* INPLACE_GIST_ENTRY_H */

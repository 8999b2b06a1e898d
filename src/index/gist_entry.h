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

/* is there an entry of the TID already? */
typedef enum EntrySought
{
	ENTRY_MISSING,
	ENTRY_THERE,
	ENTRY_NOT_SEEN				/* on so many pages */
} EntrySought;

/* before a row is changed, no more pages are looked at for it */
#define MAX_PAGES_TO_VISIT	50

extern bool inplace_gist_same_entry(Relation index, EntryValues *a, EntryValues *b);
extern EntrySought inplace_gist_find_entry(Relation index, EntryValues *values,
										   ItemPointer tid, int max_pages);

#endif							/* INPLACE_GIST_ENTRY_H */

/*-------------------------------------------------------------------------
 *
 * other_entry.h
 *	  Entries of hash and GiST indexes that are looked for; see gist_entry.c and
 *	  hash_entry.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_OTHER_ENTRY_H
#define INPLACE_OTHER_ENTRY_H

#include "inplace.h"

#include "access/itup.h"
#include "storage/bufpage.h"

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

/*
 * A leaf page of a GiST index that may get an entry, as long as it has this LSN; or none.
 */
typedef struct EntryPlace
{
	BlockNumber blk;
	XLogRecPtr	lsn;
} EntryPlace;

/* before a row is changed, no more pages are looked at for it */
#define MAX_PAGES_TO_VISIT	50

/* all pages are looked at that need be */
#define ALL_PAGES			0

/* raises an error if the copy of a page is damaged, or so many pages are too many */
typedef void (*EntryPageCheck) (void *arg, BlockNumber blk, Page page, int64 npages);

extern bool inplace_gist_same_key(TupleDesc desc, IndexTuple x, IndexTuple y);
extern bool inplace_gist_same_entry(Relation index, EntryValues *a, EntryValues *b);
extern EntrySought inplace_gist_find_entry(Relation index, EntryValues *values,
										   ItemPointer tid, int max_pages,
										   EntryPlace *place);
extern bool inplace_gist_look_for_entry(Relation index, EntryValues *values,
										ItemPointer tid, EntryPageCheck check,
										void *arg);
extern bool inplace_gist_insert(Relation table, Relation index, EntryValues *values,
								ItemPointer tid, const EntryPlace *place);
extern EntrySought inplace_hash_find_entry(Relation index, Datum value,
										   ItemPointer tid, int max_pages);

#endif							/* INPLACE_OTHER_ENTRY_H */

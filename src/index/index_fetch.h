/*-------------------------------------------------------------------------
 *
 * index_fetch.h
 *	  The entry that has led to a row.
 *
 * A scan of an inplace_btree notes the entry along with each TID that it gives, and
 * the table's side asks for it where the row may have others.  Both do that by
 * these functions: the fields are for them and index_fetch.c alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_INDEX_FETCH_H
#define INPLACE_INDEX_FETCH_H

#include "inplace.h"

#include "access/itup.h"
#include "access/relscan.h"
#include "btree/standby_scan.h"

/*
 * What fetching rows through an index has to do with the index; scan/fetch.c has
 * more behind it.
 */
typedef struct InplaceEntryFetch
{
	IndexFetchTableData base;	/* must be first */

	/* the entry that the next TID is from, of an inplace_btree */
	Relation	index;
	IndexTuple	itup;

	IndexScanDesc only_scan;	/* the scan, if it is an index-only scan */
	bool		has_payload;	/* ... and of an index with INCLUDE columns */
	MemoryContext cxt;			/* that of the scan */
	IndexTuple	formed;			/* the entry with the visible payload */

	StandbyScan standby;		/* if the scan began on one */
} InplaceEntryFetch;

typedef struct FetchedEntry
{
	Relation	index;
	IndexTuple	itup;			/* NULL: the index is not an inplace_btree, or
								 * this is a unique check of nbtree's */
} FetchedEntry;

extern void inplace_entry_fetch_init(InplaceEntryFetch *fetch, Relation rel);
extern void inplace_entry_fetch_rescan(InplaceEntryFetch *fetch,
									   IndexScanDesc scan);
extern bool inplace_fetched_entry_matches(InplaceEntryFetch *fetch,
										  const FetchedEntry *entry,
										  TupleTableSlot *slot);

/* what the index's side has of a scan's fetch, or NULL: it fetches no rows of ours */
static inline InplaceEntryFetch *
inplace_entry_fetch(IndexScanDesc scan)
{
	if (scan->xs_heapfetch == NULL || !RelationIsInplace(scan->heapRelation))
		return NULL;
	return (InplaceEntryFetch *) scan->xs_heapfetch;
}

/* the index's side: the next TID is from this entry; NULL: there is no next one */
static inline void
inplace_note_entry(InplaceEntryFetch *fetch, Relation index, IndexTuple itup)
{
	fetch->index = index;
	fetch->itup = itup;
}

/*
 * The table's side: which entry is the TID from?  An index-only scan notes none, since it goes
 * to the table for some rows only; its caller has the entry.
 */
static inline FetchedEntry
inplace_fetched_entry(const InplaceEntryFetch *fetch)
{
	FetchedEntry entry;

	entry.index = fetch->index;
	entry.itup = fetch->itup;
	if (fetch->only_scan != NULL)
	{
		entry.index = fetch->only_scan->indexRelation;
		entry.itup = fetch->only_scan->xs_itup;
	}
	return entry;
}

/* will the row of each entry be fetched? */
static inline bool
inplace_fetches_each_row(const InplaceEntryFetch *fetch)
{
	return fetch->only_scan == NULL;
}

/* what a scan keeps that began on a standby */
static inline StandbyScan *
inplace_fetch_standby(InplaceEntryFetch *fetch)
{
	return &fetch->standby;
}

#endif							/* INPLACE_INDEX_FETCH_H */

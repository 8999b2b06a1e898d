/*-------------------------------------------------------------------------
 *
 * index_fetch.c
 *	  The entry that has led to a row: what is not done for each row.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "index/entry.h"
#include "index/index_fetch.h"
#include "utils/memutils.h"

/* "fetch" is full of zeros */
void
inplace_entry_fetch_init(InplaceEntryFetch *fetch, Relation rel)
{
	fetch->base.rel = rel;
	fetch->cxt = CurrentMemoryContext;
}

/* a scan of an inplace_btree begins, or begins again */
void
inplace_entry_fetch_rescan(InplaceEntryFetch *fetch, IndexScanDesc scan)
{
	fetch->only_scan = scan->xs_want_itup ? scan : NULL;
	fetch->has_payload = scan->xs_want_itup &&
		inplace_has_payload(scan->indexRelation);
}

/*
 * The entry's payload may not be that of the version seen: have the scan
 * return an entry whose is.
 */
static void
return_payload(InplaceEntryFetch *fetch, const FetchedEntry *entry,
			   TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(fetch->cxt);

	if (fetch->formed)
		pfree(fetch->formed);
	fetch->formed = NULL;
	fetch->formed = inplace_entry_with_payload(entry->index, entry->itup, slot);
	fetch->only_scan->xs_itup = fetch->formed;
	MemoryContextSwitchTo(old);
}

/*
 * Is it the entry of the version in the slot?  If so, an index-only scan will return what
 * this version has.
 */
bool
inplace_fetched_entry_matches(InplaceEntryFetch *fetch, const FetchedEntry *entry,
							  TupleTableSlot *slot)
{
	if (!inplace_entry_matches_slot(entry->index, entry->itup, slot))
		return false;
	if (fetch->has_payload)
		return_payload(fetch, entry, slot);
	return true;
}

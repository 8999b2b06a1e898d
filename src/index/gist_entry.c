/*-------------------------------------------------------------------------
 *
 * gist_entry.c
 *	  Has a GiST index an entry already, with that key and TID?
 *
 * No operator class need have an operator that finds it.  But the key of a downlink
 * covers those below: to add one of these to it does not change it.  So the search goes
 * down wherever that is so for the key looked for.  Nulls are covered by every key, and
 * signatures near the root cover nearly all, so it might go through the whole index.
 *
 * An entry must not be there twice: an index-only scan returns rows of all-visible pages without
 * asking the table, and would return one again.  So it is looked for twice, too.  Before
 * the row is changed the search gives up after a number of pages, and then the row moves.
 * The second search, when the row has been changed, does not: it has about as far to go.  It is
 * needed, since VACUUM may have taken out in between what the first has found.
 *
 * There is no search where the row has no other entry than that of its version before.
 *
 * Pages are copied, and looked at with nothing locked.  One that has been split since the
 * downlink to it was read is known by its NSN, as in GiST's own scans; then the page to
 * its right is looked at, too.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/gist_private.h"
#include "index/insert_info.h"
#include "index/other_entry.h"
#include "miscadmin.h"
#include "page/compare.h"
#include "storage/predicate.h"
#include "utils/memutils.h"

/* a page to be looked at */
typedef struct PageToVisit
{
	BlockNumber blk;
	GistNSN		parent_lsn;		/* when the downlink was read */
} PageToVisit;

typedef struct EntrySearch
{
	Relation	index;
	GISTSTATE  *state;
	IndexTuple	entry;			/* looked for */
	ItemPointer tid;
	List	   *pages;
	MemoryContext page_cxt;		/* for computing, of one page */
} EntrySearch;

static void
visit_later(EntrySearch *search, BlockNumber blk, GistNSN parent_lsn)
{
	PageToVisit *page = palloc(sizeof(PageToVisit));

	page->blk = blk;
	page->parent_lsn = parent_lsn;
	search->pages = lappend(search->pages, page);
}

static bool
same_key(TupleDesc desc, IndexTuple x, IndexTuple y)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		bool		a_null;
		bool		b_null;
		Datum		a = index_getattr(x, i + 1, desc, &a_null);
		Datum		b = index_getattr(y, i + 1, desc, &b_null);

		if (a_null != b_null ||
			(!a_null && !inplace_same_value(a, b, att->attbyval, att->attlen)))
			return false;
	}
	return true;
}

/* may the entry be below this downlink? */
static bool
is_covered(EntrySearch *search, IndexTuple downlink)
{
	MemoryContext old = MemoryContextSwitchTo(search->page_cxt);
	bool		result = gistgetadjusted(search->index, downlink, search->entry,
										 search->state) == NULL;

	MemoryContextSwitchTo(old);
	return result;
}

/* is the entry on the leaf page, or where may it be below the inner page? */
static bool
look_at_page(EntrySearch *search, Page page, GistNSN parent_lsn)
{
	if (PageIsNew(page))
		return false;
	if (parent_lsn != 0 &&
		(GistFollowRight(page) || parent_lsn < GistPageGetNSN(page)) &&
		GistPageGetOpaque(page)->rightlink != InvalidBlockNumber)
		visit_later(search, GistPageGetOpaque(page)->rightlink, parent_lsn);
	if (GistPageIsDeleted(page))
		return false;
	for (OffsetNumber off = FirstOffsetNumber; off <= PageGetMaxOffsetNumber(page); off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		IndexTuple	itup = (IndexTuple) PageGetItem(page, lp);

		if (!GistPageIsLeaf(page))
		{
			if (is_covered(search, itup))
				visit_later(search, ItemPointerGetBlockNumber(&itup->t_tid),
							PageGetLSN(page));
		}
		else if (!ItemIdIsDead(lp) && ItemPointerEquals(&itup->t_tid, search->tid) &&
				 same_key(search->state->leafTupdesc, search->entry, itup))
			return true;
	}
	return false;
}

static EntrySought
visit_pages(EntrySearch *search, int max_pages)
{
	PGAlignedBlock *copy = palloc(sizeof(PGAlignedBlock));

	for (int i = 0; search->pages != NIL; i++)
	{
		PageToVisit *page = llast(search->pages);
		Buffer		buffer;

		if (max_pages > 0 && i >= max_pages)
			return ENTRY_NOT_SEEN;
		CHECK_FOR_INTERRUPTS();
		buffer = ReadBuffer(search->index, page->blk);
		search->pages = list_delete_last(search->pages);
		LockBuffer(buffer, GIST_SHARE);
		memcpy(copy->data, BufferGetPage(buffer), BLCKSZ);
		UnlockReleaseBuffer(buffer);
		if (look_at_page(search, (Page) copy->data, page->parent_lsn))
		{
			/* it stands in for the insertion of an entry */
			if (max_pages != ONLY_LOOKING)
				CheckForSerializableConflictIn(search->index, NULL, page->blk);
			return ENTRY_THERE;
		}
		pfree(page);
		MemoryContextReset(search->page_cxt);
	}
	return ENTRY_MISSING;
}

/* memory is the caller's to free */
EntrySought
inplace_gist_find_entry(Relation index, EntryValues *values, ItemPointer tid, int max_pages)
{
	EntrySearch search = {0};
	EntrySought result;

	search.index = index;
	search.state = inplace_gist_state(index);
	search.page_cxt = AllocSetContextCreate(CurrentMemoryContext, "inplace gist page",
											ALLOCSET_DEFAULT_SIZES);
	search.entry = gistFormTuple(search.state, index, values->values, values->isnull, true);
	search.tid = tid;
	visit_later(&search, GIST_ROOT_BLKNO, 0);
	result = visit_pages(&search, max_pages);
	MemoryContextDelete(search.page_cxt);
	return result;
}

/* would the two have one entry?  Memory is the caller's to free. */
bool
inplace_gist_same_entry(Relation index, EntryValues *a, EntryValues *b)
{
	GISTSTATE  *state = inplace_gist_state(index);

	return same_key(state->leafTupdesc,
					gistFormTuple(state, index, a->values, a->isnull, true),
					gistFormTuple(state, index, b->values, b->isnull, true));
}

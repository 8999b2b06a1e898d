/*-------------------------------------------------------------------------
 *
 * gist_entry.c
 *	  Has a GiST index an entry already, with that key and TID?
 *
 * No operator class need have an operator that finds it.  But the key of a downlink
 * covers those below: to add one of these to it does not change it.  So the search goes
 * down wherever that is so for the key looked for.  Nulls are covered by every key, and
 * signatures near the root cover nearly all, so it might go through the whole index.  It
 * gives up after a number of pages, and has the entry inserted.  Then it may be there
 * twice, which scans do not mind, since they return a row once (other_fetch.c).  VACUUM
 * leaves such a row its mark (sweep_bulk.c), until it moves.
 *
 * There is no search where the row has no other entry than that of its version before, and
 * that is another one.
 *
 * Pages are copied, and looked at with nothing locked.  One that has been split since the
 * downlink to it was read is known by its NSN, as in GiST's own scans; then the page to
 * its right is looked at, too.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/gist_private.h"
#include "index/gist_entry.h"
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

/* no more pages are looked at */
#define MAX_PAGES_TO_VISIT	50

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
same_key(const EntrySearch *search, IndexTuple itup)
{
	TupleDesc	desc = search->state->leafTupdesc;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		bool		a_null;
		bool		b_null;
		Datum		a = index_getattr(search->entry, i + 1, desc, &a_null);
		Datum		b = index_getattr(itup, i + 1, desc, &b_null);

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
				 same_key(search, itup))
			return true;
	}
	return false;
}

static IndexTuple
form_entry(const EntrySearch *search, EntryValues *v)
{
	return gistFormTuple(search->state, search->index, v->values, v->isnull, true);
}

static bool
visit_pages(EntrySearch *search)
{
	PGAlignedBlock *copy = palloc(sizeof(PGAlignedBlock));

	for (int i = 0; search->pages != NIL && i < MAX_PAGES_TO_VISIT; i++)
	{
		PageToVisit *page = llast(search->pages);
		Buffer		buffer = ReadBuffer(search->index, page->blk);

		CHECK_FOR_INTERRUPTS();
		search->pages = list_delete_last(search->pages);
		LockBuffer(buffer, GIST_SHARE);
		memcpy(copy->data, BufferGetPage(buffer), BLCKSZ);
		UnlockReleaseBuffer(buffer);
		if (look_at_page(search, (Page) copy->data, page->parent_lsn))
		{
			/* it stands in for the insertion of an entry */
			CheckForSerializableConflictIn(search->index, NULL, page->blk);
			return true;
		}
		MemoryContextReset(search->page_cxt);
	}
	return false;
}

/*
 * "old" is what the version before has, or NULL.  "one_entry": the row has no other entry than
 * that of it.  Memory is the caller's to free.
 */
bool
inplace_gist_has_entry(Relation index, EntryValues *values, EntryValues *old,
					   ItemPointer tid, bool one_entry)
{
	EntrySearch search = {0};
	bool		found = false;

	search.index = index;
	search.state = initGISTstate(index);
	search.state->tempCxt = createTempGistContext();
	search.page_cxt = AllocSetContextCreate(CurrentMemoryContext, "inplace gist page",
											ALLOCSET_DEFAULT_SIZES);
	search.entry = form_entry(&search, values);
	search.tid = tid;
	if (!one_entry || old == NULL || same_key(&search, form_entry(&search, old)))
	{
		visit_later(&search, GIST_ROOT_BLKNO, 0);
		found = visit_pages(&search);
	}
	freeGISTstate(search.state);
	return found;
}

/*-------------------------------------------------------------------------
 *
 * gist_entry.c
 *	  Has a GiST index an entry already, with that key and TID?  If not, it gets it.
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
 * There is no search where the row has no other entry than that of its version before, nor a
 * second one if the table's page has not been changed since the first (modify/update.c).
 *
 * Pages are copied, and looked at with nothing locked, but for an insertion where all keys
 * are boxes and all columns of fixed length.  That runs no code of a class, decompresses
 * nothing, and takes less time than to copy the page.  A page that
 * has been split since the downlink to it was read is known by its NSN, as in GiST's own scans.
 * Then the page to its right is looked at, too.
 *
 * Where keys are boxes, as those of points, it takes little to see whether a downlink covers
 * the new entry.  A leaf page under such a downlink is as good a place for it as GiST would
 * choose: no key above it is enlarged.  So the entry is put on the first of them that has
 * room, without GiST's way through the tree.  The search before the change has come by such a
 * page as a rule, and tells it.  If none has room, one of them may be rid of entries of
 * former keys (gist_prune.c).  Pages are split by GiST alone.  The leaf
 * page has to be what it was when it was looked at, which its LSN tells.  As long as it is, its
 * downlink covers the entry: nothing makes the key of a downlink smaller but that the page
 * below is split.
 *
 * Lock order: one page of the index, with nothing under it.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/gist_private.h"
#include "index/gist_prune.h"
#include "index/insert_info.h"
#include "index/other_entry.h"
#include "miscadmin.h"
#include "page/compare.h"
#include "storage/predicate.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/geo_decls.h"
#include "utils/memutils.h"

/* where a place has not been found after so many pages, it is for GiST to find one */
#define MAX_PAGES_FOR_PLACE	10

/* a page to be looked at */
typedef struct PageToVisit
{
	BlockNumber blk;
	GistNSN		parent_lsn;		/* when the downlink was read */
	bool		has_covering;	/* a downlink of its own that covers the entry */
} PageToVisit;

typedef struct EntrySearch
{
	Relation	index;
	GISTSTATE  *state;
	IndexTuple	entry;			/* looked for */
	ItemPointer tid;
	List	   *pages;
	MemoryContext page_cxt;		/* for computing, of one page */
	bool		all_boxes;		/* and none of them null */
	bool		under_lock;		/* pages are looked at, not copied */
	bool		wants_place;	/* for the entry, if it is not found; */
	bool		wants_full;		/* ... or one that might have room */
	bool		place_will_do;	/* ... which it will not be */
	EntryPlace	place;			/* a leaf page with room for it, as long as it
								 * has this LSN */
	EntryPageCheck check;		/* NULL if pages are trusted */
	void	   *check_arg;
	BlockNumber full_place;		/* a page that would be one if it had room, */
	PGAlignedBlock *full;		/* ... and a copy */
	bool		is_box[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	GISTENTRY	keys[INDEX_MAX_KEYS];	/* of the entry */
} EntrySearch;

/*
 * Is the key a box (that of a point, or a circle's), so that what covers it can be told
 * without the functions of the class?
 */
static bool
key_is_box(const GISTSTATE *state, int att)
{
	return state->unionFn[att].fn_oid == F_GIST_BOX_UNION &&
		state->equalFn[att].fn_oid == F_GIST_BOX_SAME &&
		!OidIsValid(state->decompressFn[att].fn_oid);
}

static void
begin_search(EntrySearch *search, Relation index, EntryValues *values, ItemPointer tid)
{
	memset(search, 0, offsetof(EntrySearch, is_box));
	search->index = index;
	search->state = inplace_gist_state(index);
	search->entry = gistFormTuple(search->state, index, values->values, values->isnull, true);
	search->entry->t_tid = *tid;
	search->tid = tid;
	gistDeCompressAtt(search->state, index, search->entry, NULL, (OffsetNumber) 0,
					  search->keys, search->isnull);
	search->all_boxes = true;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		search->is_box[i] = key_is_box(search->state, i);
		search->all_boxes &= search->is_box[i] && !search->isnull[i];
	}
	if (!search->all_boxes)
		search->page_cxt = AllocSetContextCreate(CurrentMemoryContext, "inplace gist page",
												 ALLOCSET_DEFAULT_SIZES);
	/* (values of INCLUDE columns might have to be decompressed) */
	search->under_lock = search->all_boxes;
	for (int i = 0; i < RelationGetDescr(index)->natts; i++)
		search->under_lock &= TupleDescAttr(search->state->leafTupdesc, i)->attlen > 0;
	search->place.blk = InvalidBlockNumber;
}

static void
end_search(EntrySearch *search)
{
	if (search->page_cxt != NULL)
		MemoryContextDelete(search->page_cxt);
}

static void
visit_later(EntrySearch *search, BlockNumber blk, GistNSN parent_lsn, bool has_covering)
{
	PageToVisit *page = palloc(sizeof(PageToVisit));

	page->blk = blk;
	page->parent_lsn = parent_lsn;
	page->has_covering = has_covering;
	search->pages = lappend(search->pages, page);
}

bool
inplace_gist_same_key(TupleDesc desc, IndexTuple x, IndexTuple y)
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

/*
 * as gist_box_union() has it, which would not enlarge the box.  (Most do not cover the other, which
 * is seen at once.  Which of the sides it is cannot be foretold, so there is one branch for all of
 * them.  With NaNs these comparisons say nothing.)
 */
static inline bool
box_covers(const BOX *box, const BOX *other)
{
	if ((box->high.x < other->high.x) | (box->low.x > other->low.x) |
		(box->high.y < other->high.y) | (box->low.y > other->low.y))
		return false;
	return !float8_lt(box->high.x, other->high.x) &&
		!float8_gt(box->low.x, other->low.x) &&
		!float8_lt(box->high.y, other->high.y) &&
		!float8_gt(box->low.y, other->low.y);
}

/* would the union of the two be the key of the downlink? */
static bool
key_covers(EntrySearch *search, int att, Datum downlink)
{
	GISTENTRY	entry;
	Datum		both;
	bool		isnull;

	gistdentryinit(search->state, att, &entry, downlink, search->index, NULL,
				   (OffsetNumber) 0, false, false);
	gistMakeUnionKey(search->state, att, &entry, false, &search->keys[att], false,
					 &both, &isnull);
	return gistKeyIsEQ(search->state, att, entry.key, both);
}

/*
 * The same if all keys are boxes.  The key columns come first, so they stand one behind
 * the other, unless there are nulls.
 */
static inline bool
boxes_cover(EntrySearch *search, IndexTuple downlink)
{
	const BOX  *boxes = (const BOX *) ((char *) downlink +
									   IndexInfoFindDataOffset(downlink->t_info));

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(search->index); i++)
		if (!box_covers(&boxes[i], DatumGetBoxP(search->keys[i].key)))
			return false;
	return true;
}

/* may the entry be below this downlink?  (As gistgetadjusted() would return nothing.) */
static bool
is_covered(EntrySearch *search, IndexTuple downlink)
{
	MemoryContext old;
	bool		result = true;

	if (search->all_boxes && !IndexTupleHasNulls(downlink))
		return boxes_cover(search, downlink);
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(search->index) && result; i++)
	{
		bool		isnull;
		Datum		key;

		if (search->isnull[i])
			continue;
		key = index_getattr(downlink, i + 1, search->state->leafTupdesc, &isnull);
		if (isnull)
			return false;
		if (search->is_box[i])
			result = box_covers(DatumGetBoxP(key), DatumGetBoxP(search->keys[i].key));
		else
		{
			old = MemoryContextSwitchTo(search->page_cxt);
			result = key_covers(search, i, key);
			MemoryContextSwitchTo(old);
		}
	}
	return result;
}

/* has the page been split since the downlink to it was read? */
static bool
was_split(Page page, GistNSN parent_lsn)
{
	return parent_lsn != 0 &&
		(GistFollowRight(page) || parent_lsn < GistPageGetNSN(page));
}

/* the entry may be put on the leaf page, if there is room */
static void
note_place(EntrySearch *search, Page page, XLogRecPtr lsn, BlockNumber blk)
{
	if (!gistnospace(page, &search->entry, 1, InvalidOffsetNumber, 0))
	{
		search->place.blk = blk;
		search->place.lsn = lsn;
	}
	else if (search->wants_full && search->full == NULL)
	{
		search->full_place = blk;
		search->full = palloc(sizeof(PGAlignedBlock));
		memcpy(search->full->data, page, BLCKSZ);
		PageSetLSN((Page) search->full->data, lsn);
	}
}

/* (as ItemPointerEquals, which is called for each entry of a page) */
static inline bool
same_tid(const ItemPointerData *a, const ItemPointerData *b)
{
	return a->ip_blkid.bi_lo == b->ip_blkid.bi_lo && a->ip_posid == b->ip_posid &&
		a->ip_blkid.bi_hi == b->ip_blkid.bi_hi;
}

static bool
is_on_leaf(EntrySearch *search, Page page)
{
	ItemPointerData tid = *search->tid;
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);

	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		IndexTuple	itup = (IndexTuple) PageGetItem(page, lp);

		if (same_tid(&itup->t_tid, &tid) && !ItemIdIsDead(lp) &&
			inplace_gist_same_key(search->state->leafTupdesc, search->entry, itup))
			return true;
	}
	return false;
}

/*
 * Is the entry on the leaf page, or where may it be below the inner page?  The page is a copy, or
 * locked, with "lsn" as its LSN.
 */
static bool
look_at_page(EntrySearch *search, Page page, XLogRecPtr lsn, const PageToVisit *visit)
{
	bool		split;

	if (PageIsNew(page))
		return false;
	split = was_split(page, visit->parent_lsn);
	if (split && GistPageGetOpaque(page)->rightlink != InvalidBlockNumber)
		visit_later(search, GistPageGetOpaque(page)->rightlink, visit->parent_lsn, false);
	if (GistPageIsDeleted(page))
		return false;
	if (!GistPageIsLeaf(page))
	{
		OffsetNumber maxoff = PageGetMaxOffsetNumber(page);

		for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
		{
			IndexTuple	itup = (IndexTuple) PageGetItem(page, PageGetItemId(page, off));

			if (is_covered(search, itup))
				visit_later(search, ItemPointerGetBlockNumber(&itup->t_tid), lsn, true);
		}
		return false;
	}

	if (search->wants_place && search->place.blk == InvalidBlockNumber &&
		visit->has_covering && !split && !GistFollowRight(page))
		note_place(search, page, lsn, visit->blk);
	return !search->place_will_do && is_on_leaf(search, page);
}

/*
 * Look at the page with nothing locked, or under its lock if no code of a class is needed.
 */
static bool
visit_page(EntrySearch *search, PGAlignedBlock *copy, const PageToVisit *visit, int64 npages)
{
	Buffer		buffer = ReadBuffer(search->index, visit->blk);
	XLogRecPtr	lsn;
	bool		found;

	LockBuffer(buffer, GIST_SHARE);
	/* (a hint that is logged may change it meanwhile) */
	lsn = BufferGetLSNAtomic(buffer);
	if (copy == NULL)
	{
		found = look_at_page(search, BufferGetPage(buffer), lsn, visit);
		UnlockReleaseBuffer(buffer);
		return found;
	}
	memcpy(copy->data, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	if (search->check)
		search->check(search->check_arg, visit->blk, (Page) copy->data, npages);
	return look_at_page(search, (Page) copy->data, lsn, visit);
}

static EntrySought
visit_pages(EntrySearch *search, int max_pages)
{
	PGAlignedBlock *copy = search->under_lock && search->check == NULL ? NULL :
		palloc(sizeof(PGAlignedBlock));

	for (int i = 0; search->pages != NIL; i++)
	{
		PageToVisit *page = llast(search->pages);

		if ((max_pages > 0 && i >= max_pages) ||
			(search->place_will_do && search->place.blk != InvalidBlockNumber))
			return ENTRY_NOT_SEEN;
		CHECK_FOR_INTERRUPTS();
		search->pages = list_delete_last(search->pages);
		if (visit_page(search, copy, page, (int64) i + 1 + list_length(search->pages)))
		{
			/* it stands in for the insertion of an entry */
			if (search->check == NULL)
				CheckForSerializableConflictIn(search->index, NULL, page->blk);
			return ENTRY_THERE;
		}
		pfree(page);
		if (search->page_cxt != NULL)
			MemoryContextReset(search->page_cxt);
	}
	return ENTRY_MISSING;
}

/* make room where there was none */
static void
make_place(EntrySearch *search, Relation table)
{
	if (search->full == NULL || !inplace_gist_can_prune(search->index, search->state))
		return;
	search->place.lsn = inplace_gist_prune(table, search->index, search->state,
										   search->full_place, (Page) search->full->data);
	if (!XLogRecPtrIsInvalid(search->place.lsn))
		search->place.blk = search->full_place;
}

/*
 * The entry onto the leaf page that has been found for it.  False if that has been changed since.
 */
static bool
put_entry(EntrySearch *search, Relation table)
{
	Buffer		buffer = ReadBuffer(search->index, search->place.blk);
	Page		page;
	List	   *splitinfo;
	bool		unchanged;

	LockBuffer(buffer, GIST_EXCLUSIVE);
	page = BufferGetPage(buffer);
	unchanged = PageGetLSN(page) == search->place.lsn &&
		!gistnospace(page, &search->entry, 1, InvalidOffsetNumber, 0);
	if (unchanged)
	{
		Assert(GistPageIsLeaf(page) && !GistPageIsDeleted(page) && !GistFollowRight(page));
		CheckForSerializableConflictIn(search->index, NULL, search->place.blk);
		gistplacetopage(search->index, 0, search->state, buffer, &search->entry, 1,
						InvalidOffsetNumber, NULL, InvalidBuffer, &splitinfo, true,
						table, false);
		Assert(splitinfo == NIL);
	}
	UnlockReleaseBuffer(buffer);
	return unchanged;
}

/*
 * "place": where the entry may be put if it is missing, if the search has come by such a page.
 * Memory is the caller's to free.
 */
EntrySought
inplace_gist_find_entry(Relation index, EntryValues *values, ItemPointer tid, int max_pages,
						EntryPlace *place)
{
	EntrySearch search;
	EntrySought result;

	begin_search(&search, index, values, tid);
	search.wants_place = search.all_boxes;
	visit_later(&search, GIST_ROOT_BLKNO, 0, true);
	result = visit_pages(&search, max_pages);
	end_search(&search);
	*place = search.place;
	return result;
}

/*
 * The same for inplace.check(): not for an insertion, and no page is trusted that "check" has
 * not seen, which ends the search by an error.
 */
bool
inplace_gist_look_for_entry(Relation index, EntryValues *values, ItemPointer tid,
							EntryPageCheck check, void *arg)
{
	EntrySearch search;
	bool		result;

	begin_search(&search, index, values, tid);
	search.check = check;
	search.check_arg = arg;
	visit_later(&search, GIST_ROOT_BLKNO, 0, true);
	result = visit_pages(&search, ALL_PAGES) == ENTRY_THERE;
	end_search(&search);
	return result;
}

/*
 * See to it that the entry is there.  "place": it is not, and may be put there; NULL if nothing is
 * known.  False if it is missing, and GiST has to find a place for it.  No page is locked; memory
 * is the caller's to free.
 */
bool
inplace_gist_insert(Relation table, Relation index, EntryValues *values, ItemPointer tid,
					const EntryPlace *place)
{
	EntrySearch search;
	bool		missing = place != NULL;
	bool		done = false;

	begin_search(&search, index, values, tid);
	search.wants_place = search.wants_full = search.all_boxes;
	search.place_will_do = missing;
	if (missing && place->blk != InvalidBlockNumber)
	{
		search.place = *place;
		done = put_entry(&search, table);
		search.place.blk = InvalidBlockNumber;
	}
	if (!done && (!missing || search.wants_place))
	{
		visit_later(&search, GIST_ROOT_BLKNO, 0, true);
		done = visit_pages(&search, missing ? MAX_PAGES_FOR_PLACE : 0) == ENTRY_THERE;
		if (!done && search.place.blk == InvalidBlockNumber)
			make_place(&search, table);
		done = done || (search.place.blk != InvalidBlockNumber && put_entry(&search, table));
	}
	end_search(&search);
	return done;
}

/* would the two have one entry?  Memory is the caller's to free. */
bool
inplace_gist_same_entry(Relation index, EntryValues *a, EntryValues *b)
{
	GISTSTATE  *state = inplace_gist_state(index);

	return inplace_gist_same_key(state->leafTupdesc,
								 gistFormTuple(state, index, a->values, a->isnull, true),
								 gistFormTuple(state, index, b->values, b->isnull, true));
}

/*-------------------------------------------------------------------------
 *
 * gist_entry.c
 *	  Has a GiST index an entry already, with that key and TID?
 *
 * No operator class need have an operator that finds it.  But the key of a downlink
 * covers those below: to add one of these to it does not change it.  So the search goes
 * down wherever that is so for the key looked for.
 *
 * Pages are copied, and looked at with nothing locked.  A page that is split meanwhile may
 * hide the entry.  Then there will be a second one, which does no harm but that
 * VACUUM cannot take the row's mark off (sweep_bulk.c).  So the search is given up, too,
 * where it leads to many pages, as it does for nulls, which every key covers.
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

/* so many pages are looked at */
#define MOST_PAGES	32

typedef struct EntrySearch
{
	Relation	index;
	GISTSTATE  *state;
	IndexTuple	entry;			/* looked for */
	ItemPointer tid;
	List	   *blocks;			/* to be visited */
} EntrySearch;

static bool
same_key(EntrySearch *search, IndexTuple itup)
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

/* is the entry on the leaf page, or where may it be below the inner page? */
static bool
look_at_page(EntrySearch *search, Page page)
{
	bool		leaf = GistPageIsLeaf(page);

	if (PageIsNew(page) || GistPageIsDeleted(page))
		return false;
	for (OffsetNumber off = FirstOffsetNumber; off <= PageGetMaxOffsetNumber(page); off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		IndexTuple	itup = (IndexTuple) PageGetItem(page, lp);

		if (!leaf)
		{
			if (gistgetadjusted(search->index, itup, search->entry, search->state) == NULL)
				search->blocks = lcons_int((int) ItemPointerGetBlockNumber(&itup->t_tid),
										   search->blocks);
		}
		else if (!ItemIdIsDead(lp) && ItemPointerEquals(&itup->t_tid, search->tid) &&
				 same_key(search, itup))
			return true;
	}
	return false;
}

/* memory is the caller's to free */
bool
inplace_gist_has_entry(Relation index, const Datum *values, const bool *isnull,
					   ItemPointer tid)
{
	EntrySearch search = {0};
	PGAlignedBlock *copy = palloc(sizeof(PGAlignedBlock));
	bool		found = false;
	int			pages = 0;

	if (isnull[0])
		return false;
	search.index = index;
	search.state = initGISTstate(index);
	search.state->tempCxt = createTempGistContext();
	search.entry = gistFormTuple(search.state, index, unconstify(Datum *, values),
								 unconstify(bool *, isnull), true);
	search.tid = tid;
	search.blocks = list_make1_int(GIST_ROOT_BLKNO);
	while (search.blocks != NIL && !found && pages++ < MOST_PAGES)
	{
		BlockNumber blk = (BlockNumber) linitial_int(search.blocks);
		Buffer		buffer = ReadBuffer(index, blk);

		CHECK_FOR_INTERRUPTS();
		search.blocks = list_delete_first(search.blocks);
		LockBuffer(buffer, GIST_SHARE);
		memcpy(copy->data, BufferGetPage(buffer), BLCKSZ);
		UnlockReleaseBuffer(buffer);
		found = look_at_page(&search, (Page) copy->data);
		/* it stands in for the insertion of an entry */
		if (found)
			CheckForSerializableConflictIn(index, NULL, blk);
	}
	freeGISTstate(search.state);
	return found;
}

/*-------------------------------------------------------------------------
 *
 * dedup.c
 *	  What nbtree's deduplication would make of a leaf page.  It is asked before nbtree
 *	  comes to it (index_delete.c), and before pages are put together (merge.c).
 *
 * Entries count as equal here if their keys have the same bytes.  nbtree compares values one
 * by one, and may find some more.
 *
 * The page is locked by the caller.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/nbtree.h"
#include "btree/item.h"
#include "index/dedup.h"
#include "index/entry.h"

/*
 * With less room than this nbtree would not be content with a bottom-up deletion either.
 * nbtree tells how long the entry to come is only if that is more than it would ask for
 * anyway.  If not, the entry may be longer than any on the page, but hardly twice as long.
 */
#define ENOUGH_ROOM		(BLCKSZ / 24)
#define ENOUGH_ENTRIES	2
#define USUAL_TARGET	(BLCKSZ / 16)

/* (nbtree's own macro for the option takes relations that say btree only) */
bool
inplace_index_deduplicates(Relation index)
{
	bool		heapkeyspace;
	bool		allequalimage;

	_bt_metaversion(index, &heapkeyspace, &allequalimage);
	return heapkeyspace && allequalimage && !inplace_has_payload(index) &&
		(index->rd_options == NULL ||
		 ((BTOptions *) index->rd_options)->deduplicate_items);
}

/* entries that would become one */
typedef struct Pending
{
	IndexTuple	base;			/* the first of them, or NULL */
	int			nentries;
	int			ntids;
	Size		size;			/* what they take on the page as they are */
} Pending;

static inline Size
posting_size(IndexTuple base, int ntids)
{
	return MAXALIGN(entry_key_size(base) + ntids * sizeof(ItemPointerData));
}

static inline int
entry_ntids(IndexTuple itup)
{
	return BTreeTupleIsPosting(itup) ? BTreeTupleGetNPosting(itup) : 1;
}

static inline Size
entry_size(IndexTuple itup)
{
	return MAXALIGN(IndexTupleSize(itup)) + sizeof(ItemIdData);
}

static inline Size
pending_gain(const Pending *p)
{
	return p->nentries < 2 ? 0 :
		p->size - posting_size(p->base, p->ntids) - sizeof(ItemIdData);
}

/* may the entry go with those before it? */
static inline bool
goes_with(const Pending *p, IndexTuple itup, Size most)
{
	return p->base != NULL && entries_identical(p->base, itup) &&
		posting_size(p->base, p->ntids + entry_ntids(itup)) <= most;
}

/*
 * Would so much become free that the page need not be split for now?  Posting lists that
 * are there stay whole, and become no longer than half of the longest entry.  The target
 * is that of nbtree's bottom-up deletion.
 */
bool
dedup_makes_room(Page page, Size bottomup_target)
{
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	Size		most = Min(BTMaxItemSizeOf(page) / 2, INDEX_SIZE_MASK);
	Pending		p = {0};
	Size		gain = 0;
	Size		longest_key = 0;
	Size		needed = bottomup_target > USUAL_TARGET ? bottomup_target : ENOUGH_ROOM;

	for (OffsetNumber off = P_FIRSTDATAKEY(BTPageGetOpaque(page)); off <= maxoff; off++)
	{
		IndexTuple	itup = (IndexTuple) PageGetItem(page, PageGetItemId(page, off));

		if (!goes_with(&p, itup, most))
		{
			gain += pending_gain(&p);
			p = (Pending)
			{
				itup, 0, 0, 0
			};
		}
		p.nentries++;
		p.ntids += entry_ntids(itup);
		p.size += entry_size(itup);
		longest_key = Max(longest_key, entry_key_size(itup));
	}
	gain += pending_gain(&p);
	return gain >= Max(needed, ENOUGH_ENTRIES * longest_key);
}

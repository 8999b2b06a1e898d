/*-------------------------------------------------------------------------
 *
 * check_btree.c
 *	  inplace.check(): is a B-tree (of either method) what it should be?
 *
 * amcheck takes indexes of the method btree only.  So here is, for every page,
 *	 - its line pointers lead to entries, and posting lists are what they say
 * and if that is so of all, then for every leaf page
 *	 - its entries are in order, TIDs included, and not above its high key;
 *	 - its right sibling leads back to it and begins at its high key;
 *	 - the tree leads to it: a search for its first and for its last entry
 *	   ends here (so downlinks and the high keys on the way are right).
 *
 * Only what is certain is reported
 *	  A page is copied under its share lock, and looked at without.  What
 *	  concerns other pages is a finding only if the page's LSN is still the same
 *	  afterwards: a split changes the page itself, and so does the deletion of
 *	  a neighbour.  Where there are no LSNs (unlogged and temporary tables)
 *	  these are left out.
 *
 * No page is locked while code of an operator class runs.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/nbtree.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "insight/insight.h"

typedef struct BtreeCheck
{
	Relation	table;
	Relation	index;
	InsightReport report;
	void	   *arg;
	BlockNumber block;
	PGAlignedBlock page;
	PGAlignedBlock right;
	bool		heapkeyspace;
} BtreeCheck;

static void
finding(BtreeCheck *bc, OffsetNumber off, const char *problem)
{
	if (off == InvalidOffsetNumber)
		bc->report(bc->arg, psprintf("block %u: %s", bc->block, problem));
	else
		bc->report(bc->arg, psprintf("block %u, offset %u: %s", bc->block, off,
									 problem));
}

/* false if the page is new */
static bool
copy_page(BtreeCheck *bc, BlockNumber block, char *copy)
{
	Buffer		buffer = ReadBuffer(bc->index, block);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(copy, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	return !PageIsNew((Page) copy);
}

static bool
page_unchanged(BtreeCheck *bc)
{
	PGAlignedBlock now;

	return copy_page(bc, bc->block, now.data) &&
		PageGetLSN((Page) now.data) == PageGetLSN((Page) bc->page.data);
}

static bool
header_good(Page page)
{
	PageHeader	ph = (PageHeader) page;

	return ph->pd_special == BLCKSZ - MAXALIGN(sizeof(BTPageOpaqueData)) &&
		ph->pd_lower >= SizeOfPageHeaderData && ph->pd_lower <= ph->pd_upper &&
		ph->pd_upper <= ph->pd_special;
}

/* an item that may be looked at, or NULL */
static IndexTuple
good_item(Page page, OffsetNumber off)
{
	PageHeader	ph = (PageHeader) page;
	ItemId		lp = PageGetItemId(page, off);
	IndexTuple	itup;

	if (!ItemIdHasStorage(lp) || ItemIdGetOffset(lp) < ph->pd_upper ||
		ItemIdGetOffset(lp) != MAXALIGN(ItemIdGetOffset(lp)) ||
		ItemIdGetLength(lp) < sizeof(IndexTupleData) ||
		ItemIdGetOffset(lp) + ItemIdGetLength(lp) > ph->pd_special)
		return NULL;
	itup = (IndexTuple) PageGetItem(page, lp);
	return IndexTupleSize(itup) <= ItemIdGetLength(lp) &&
		IndexTupleSize(itup) >= sizeof(IndexTupleData) ? itup : NULL;
}

static const char *
posting_problem(IndexTuple itup)
{
	int			n;

	if (BTreeTupleIsPivot(itup))
		return "entry of a leaf page is marked as one of an inner page";
	if (!BTreeTupleIsPosting(itup))
		return NULL;
	n = BTreeTupleGetNPosting(itup);
	if (n < 2 ||
		BTreeTupleGetPostingOffset(itup) + n * sizeof(ItemPointerData) > IndexTupleSize(itup))
		return "posting list does not fit its entry";
	for (int i = 1; i < n; i++)
		if (ItemPointerCompare(BTreeTupleGetPostingN(itup, i - 1),
							   BTreeTupleGetPostingN(itup, i)) >= 0)
			return "posting list is not in order";
	return NULL;
}

/* an entry's key, with its last TID */
static BTScanInsert
last_key(BtreeCheck *bc, IndexTuple itup)
{
	BTScanInsert key = _bt_mkscankey(bc->index, itup);

	if (key->scantid != NULL)
		key->scantid = BTreeTupleGetMaxHeapTID(itup);
	return key;
}

/* can everything on the page be looked at? */
static bool
page_sound(BtreeCheck *bc)
{
	Page		page = (Page) bc->page.data;
	BTPageOpaque opaque;
	OffsetNumber maxoff;

	if (!header_good(page))
	{
		finding(bc, InvalidOffsetNumber, "page header is wrong");
		return false;
	}
	opaque = BTPageGetOpaque(page);
	maxoff = PageGetMaxOffsetNumber(page);
	if (P_ISDELETED(opaque))
		return true;
	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		IndexTuple	itup = good_item(page, off);
		const char *problem = NULL;

		if (itup == NULL)
			problem = "line pointer does not lead to an entry";
		else if (P_ISLEAF(opaque) && off >= P_FIRSTDATAKEY(opaque))
			problem = posting_problem(itup);
		if (problem != NULL)
		{
			finding(bc, off, problem);
			return false;
		}
	}
	if (!P_RIGHTMOST(opaque) && maxoff < P_HIKEY)
	{
		finding(bc, InvalidOffsetNumber, "page has no high key");
		return false;
	}
	return true;
}

/* are the entries of a leaf page in order? */
static bool
check_order(BtreeCheck *bc)
{
	Page		page = (Page) bc->page.data;
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	OffsetNumber first = P_FIRSTDATAKEY(opaque);
	int			limit = bc->heapkeyspace ? -1 : 0;

	for (OffsetNumber off = first; off <= maxoff; off++)
	{
		BTScanInsert key = last_key(bc, good_item(page, off));
		bool		good = true;

		CHECK_FOR_INTERRUPTS();
		if (off < maxoff && _bt_compare(bc->index, key, page, off + 1) > limit)
		{
			finding(bc, off, "entry is not below the next one");
			good = false;
		}
		else if (off == maxoff && !P_RIGHTMOST(opaque) &&
				 _bt_compare(bc->index, key, page, P_HIKEY) > 0)
		{
			finding(bc, off, "entry is above the page's high key");
			good = false;
		}
		pfree(key);
		if (!good)
			return false;
	}
	return true;
}

static void
check_right_sibling(BtreeCheck *bc)
{
	Page		page = (Page) bc->page.data;
	Page		right = (Page) bc->right.data;
	BTPageOpaque opaque = BTPageGetOpaque(page);
	BTPageOpaque ropaque;
	const char *problem = NULL;

	if (P_RIGHTMOST(opaque))
		return;
	if (opaque->btpo_next >= RelationGetNumberOfBlocks(bc->index) ||
		!copy_page(bc, opaque->btpo_next, bc->right.data) || !header_good(right))
		problem = psprintf("right link leads to block %u, which is no page of the index",
						   opaque->btpo_next);
	else
	{
		ropaque = BTPageGetOpaque(right);
		if (ropaque->btpo_prev != bc->block)
			problem = psprintf("right sibling %u has left link %u",
							   opaque->btpo_next, ropaque->btpo_prev);
		else if (!P_IGNORE(ropaque) && P_ISLEAF(ropaque) &&
				 PageGetMaxOffsetNumber(right) >= P_FIRSTDATAKEY(ropaque))
		{
			IndexTuple	itup = good_item(right, P_FIRSTDATAKEY(ropaque));

			if (itup != NULL && posting_problem(itup) == NULL)
			{
				BTScanInsert key = _bt_mkscankey(bc->index, itup);

				if (_bt_compare(bc->index, key, page, P_HIKEY) < 0)
					problem = psprintf("right sibling %u begins below the high key",
									   opaque->btpo_next);
				pfree(key);
			}
		}
	}
	if (problem != NULL && page_unchanged(bc))
		finding(bc, InvalidOffsetNumber, problem);
}

static void
check_search(BtreeCheck *bc, OffsetNumber off)
{
	Page		page = (Page) bc->page.data;
	IndexTuple	itup = good_item(page, off);
	BTScanInsert key = _bt_mkscankey(bc->index, itup);
	BlockNumber found = InvalidBlockNumber;
	BTStack		stack;
	Buffer		buffer;

	stack = BtSearchLeaf(bc->index, bc->table, key, &buffer);
	if (BufferIsValid(buffer))
	{
		found = BufferGetBlockNumber(buffer);
		_bt_relbuf(bc->index, buffer);
	}
	if (stack)
		_bt_freestack(stack);
	pfree(key);
	if (found != bc->block && page_unchanged(bc))
		finding(bc, off, found == InvalidBlockNumber ?
				"search for the entry leads nowhere" :
				psprintf("search for the entry leads to block %u", found));
}

static void
check_leaf(BtreeCheck *bc)
{
	Page		page = (Page) bc->page.data;
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);

	if (!P_ISLEAF(opaque) || P_IGNORE(opaque) || !check_order(bc) ||
		!RelationNeedsWAL(bc->index))
		return;
	check_right_sibling(bc);
	/* equal keys of old indexes may go on from page to page */
	if (bc->heapkeyspace && maxoff >= P_FIRSTDATAKEY(opaque))
	{
		check_search(bc, P_FIRSTDATAKEY(opaque));
		check_search(bc, maxoff);
	}
}

/*
 * False if the index must not be scanned, for nbtree trusts its pages.
 */
bool
InsightCheckBtree(Relation table, Relation index, InsightReport report, void *arg)
{
	BtreeCheck *bc = palloc(sizeof(BtreeCheck));
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext,
											  "inplace check btree page",
											  ALLOCSET_DEFAULT_SIZES);
	BlockNumber nblocks = RelationGetNumberOfBlocks(index);
	bool		sound = true;

	bc->table = table;
	bc->index = index;
	bc->report = report;
	bc->arg = arg;

	for (int pass = 1; pass <= 2 && sound; pass++)
	{
		if (pass == 2)
		{
			bool		allequalimage;

			_bt_metaversion(index, &bc->heapkeyspace, &allequalimage);
		}
		for (bc->block = BTREE_METAPAGE + 1; bc->block < nblocks; bc->block++)
		{
			MemoryContext old = MemoryContextSwitchTo(cxt);

			CHECK_FOR_INTERRUPTS();
			if (copy_page(bc, bc->block, bc->page.data))
			{
				if (!page_sound(bc))
					sound = false;
				else if (pass == 2)
					check_leaf(bc);
			}
			MemoryContextSwitchTo(old);
			MemoryContextReset(cxt);
		}
	}
	MemoryContextDelete(cxt);
	pfree(bc);
	return sound;
}

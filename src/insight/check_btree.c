/*-------------------------------------------------------------------------
 *
 * check_btree.c
 *	  inplace.check(): is a B-tree (of either method) what it should be?
 *
 * amcheck takes indexes of the method btree only.  So here is, for every page,
 *	 - its line pointers lead to entries with the attributes that they are to have
 *	   there, whose values end within them, and posting lists are what they say;
 *	 - its flags and its level agree, its right sibling is of that level and leads
 *	   back to it, its downlinks lead to pages one level below
 * (so nbtree's own functions can go through the index, and come to an end) and if that
 * is so of all, then for every leaf page
 *	 - its entries are in order, TIDs included, and not above its high key;
 *	 - its right sibling begins at its high key;
 *	 - the tree leads to it: a search for its first and for its last entry
 *	   ends here (so downlinks and the high keys on the way are right).
 *
 * Only what is certain is reported
 *	  A page is copied under its share lock, and looked at without.  What
 *	  concerns other pages is a finding only if the page's LSN is still the same
 *	  afterwards: a split changes the page itself, and so does the deletion of
 *	  a neighbour.  Where there are no LSNs (unlogged and temporary tables) all
 *	  of the page is compared, and what follows the first pass on other pages is
 *	  left out.
 *
 * No page is locked while code of an operator class runs.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/nbtree.h"
#include "insight/check_btree.h"
#include "miscadmin.h"
#include "utils/memutils.h"


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

	if (!copy_page(bc, bc->block, now.data))
		return false;
	if (!RelationNeedsWAL(bc->index))
		return memcmp(now.data, bc->page.data, BLCKSZ) == 0;
	return PageGetLSN((Page) now.data) == PageGetLSN((Page) bc->page.data);
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

/* do the values of the first attributes end within so many bytes of the entry? */
bool
InsightValuesFit(TupleDesc desc, IndexTuple itup, int natts, int end)
{
	int			begin = IndexInfoFindDataOffset(itup->t_info);
	int			size = end - begin;
	char	   *data = (char *) itup + begin;
	bits8	   *nulls = IndexTupleHasNulls(itup) ?
		(bits8 *) ((char *) itup + sizeof(IndexTupleData)) : NULL;
	int			off = 0;

	for (int i = 0; i < natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (nulls != NULL && att_isnull(i, nulls))
			continue;
		if (att->attlen == -1)
		{
			if (off >= size)
				return false;
			off = att_align_pointer(off, att->attalign, -1, data + off);
			if (off >= size || VARATT_IS_EXTERNAL(data + off) ||
				(!VARATT_IS_1B(data + off) && off + VARHDRSZ > size))
				return false;
			off += VARSIZE_ANY(data + off);
		}
		else
		{
			off = att_align_nominal(off, att->attalign);
			if (att->attlen > 0)
				off += att->attlen;
			else
			{
				char	   *end = off < size ? memchr(data + off, 0, size - off) : NULL;

				if (end == NULL)
					return false;
				off = end + 1 - data;
			}
		}
		if (off > size)
			return false;
	}
	return true;
}

static const char *
entry_problem(BtreeCheck *bc, Page page, OffsetNumber off)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	IndexTuple	itup = good_item(page, off);
	const char *problem = NULL;
	int			natts;

	if (itup == NULL)
		return "line pointer does not lead to an entry";
	if (P_IGNORE(opaque))
		return NULL;
	if (P_ISLEAF(opaque) && off >= P_FIRSTDATAKEY(opaque))
		problem = posting_problem(itup);
	else if (BTreeTupleIsPosting(itup) ||
			 (bc->heapkeyspace && !BTreeTupleIsPivot(itup)))
		problem = "entry of an inner page, or high key, is not marked as one";
	if (problem != NULL)
		return problem;
	natts = BTreeTupleGetNAtts(itup, bc->index);
	if (natts > IndexRelationGetNumberOfAttributes(bc->index) ||
		!_bt_check_natts(bc->index, bc->heapkeyspace, page, off))
		return "entry has a wrong number of attributes";

	/*
	 * (in indexes as they were made before 12 the first one of an inner page
	 * has none)
	 */
	if (!(!bc->heapkeyspace && !P_ISLEAF(opaque) && off == P_FIRSTDATAKEY(opaque)) &&
		!InsightValuesFit(RelationGetDescr(bc->index), itup, natts,
						  BTreeTupleIsPosting(itup) ? (int) BTreeTupleGetPostingOffset(itup) :
						  (int) IndexTupleSize(itup)))
		return "entry's values do not fit it";
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

#define KNOWN_FLAGS	(BTP_LEAF | BTP_ROOT | BTP_DELETED | BTP_HALF_DEAD | \
					 BTP_SPLIT_END | BTP_HAS_GARBAGE | BTP_INCOMPLETE_SPLIT | \
					 BTP_HAS_FULLXID)

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
	if (opaque->btpo_flags & ~KNOWN_FLAGS)
	{
		finding(bc, InvalidOffsetNumber, "page has flags that there are not");
		return false;
	}
	if (P_ISDELETED(opaque))
		return true;
	if (P_ISLEAF(opaque) != (opaque->btpo_level == 0))
	{
		finding(bc, InvalidOffsetNumber, "page's level and flags do not agree");
		return false;
	}
	if (!P_RIGHTMOST(opaque) && maxoff < P_HIKEY)
	{
		finding(bc, InvalidOffsetNumber, "page has no high key");
		return false;
	}
	if (!P_ISLEAF(opaque) && maxoff < P_FIRSTDATAKEY(opaque))
	{
		finding(bc, InvalidOffsetNumber, "inner page has no entry");
		return false;
	}
	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		const char *problem = entry_problem(bc, page, off);

		if (problem != NULL)
		{
			finding(bc, off, problem);
			return false;
		}
	}
	return true;
}

/* what is wrong with a link from our page to that block? */
static const char *
link_problem(BtreeCheck *bc, const char *what, BlockNumber block, uint32 level,
			 bool sibling)
{
	Page		other = (Page) bc->right.data;
	BTPageOpaque opaque;

	if (block == BTREE_METAPAGE || block >= RelationGetNumberOfBlocks(bc->index) ||
		!copy_page(bc, block, other) || !header_good(other))
		return psprintf("%s leads to block %u, which is no page of the index",
						what, block);
	opaque = BTPageGetOpaque(other);
	if (sibling && opaque->btpo_prev != bc->block)
		return psprintf("right sibling %u has left link %u", block, opaque->btpo_prev);
	/* (a page on its way to be deleted is above a deleted one) */
	if (!P_IGNORE(opaque) && opaque->btpo_level != level)
		return psprintf("%s leads to block %u, which is of level %u", what, block,
						opaque->btpo_level);
	return NULL;
}

/*
 * Do the page's links lead to where nbtree can follow them, so that this comes to an
 * end?
 */
static bool
links_sound(BtreeCheck *bc)
{
	Page		page = (Page) bc->page.data;
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber off = InvalidOffsetNumber;
	const char *problem = NULL;

	if (P_IGNORE(opaque))
		return true;
	if (!P_RIGHTMOST(opaque))
		problem = link_problem(bc, "right link", opaque->btpo_next,
							   opaque->btpo_level, true);
	if (problem == NULL && !P_ISLEAF(opaque))
		for (off = P_FIRSTDATAKEY(opaque);
			 off <= PageGetMaxOffsetNumber(page) && problem == NULL;
			 off++)
			problem = link_problem(bc, "downlink",
								   BTreeTupleGetDownLink(good_item(page, off)),
								   opaque->btpo_level - 1, false);
	if (problem == NULL || !page_unchanged(bc))
		return true;
	finding(bc, off == InvalidOffsetNumber ? off : OffsetNumberPrev(off), problem);
	return false;
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

/* is the first entry of the right sibling (bc->right) below our high key? */
static bool
right_begins_below(BtreeCheck *bc)
{
	Page		right = (Page) bc->right.data;
	BTPageOpaque opaque = BTPageGetOpaque(right);
	OffsetNumber first = P_FIRSTDATAKEY(opaque);
	BTScanInsert key;
	bool		result;

	if (P_IGNORE(opaque) || PageGetMaxOffsetNumber(right) < first ||
		entry_problem(bc, right, first) != NULL)
		return false;
	key = _bt_mkscankey(bc->index, good_item(right, first));
	result = _bt_compare(bc->index, key, (Page) bc->page.data, P_HIKEY) < 0;
	pfree(key);
	return result;
}

/*
 * Does the right sibling follow the page?  The links have been checked before, but the
 * page may have changed since.  False if the sibling does not follow: then a walk to the
 * right may come back, however well the links agree.
 */
static bool
check_right_sibling(BtreeCheck *bc)
{
	BTPageOpaque opaque = BTPageGetOpaque((Page) bc->page.data);
	const char *problem;

	if (P_RIGHTMOST(opaque))
		return true;
	problem = link_problem(bc, "right link", opaque->btpo_next, 0, true);
	if (problem == NULL && right_begins_below(bc))
		problem = psprintf("right sibling %u begins below the high key",
						   opaque->btpo_next);
	if (problem == NULL || !page_unchanged(bc))
		return true;
	finding(bc, InvalidOffsetNumber, problem);
	return false;
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

/* false if the leaves cannot be gone through */
static bool
check_leaf(BtreeCheck *bc)
{
	Page		page = (Page) bc->page.data;
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);

	if (!P_ISLEAF(opaque) || P_IGNORE(opaque) || !check_order(bc) ||
		!RelationNeedsWAL(bc->index))
		return true;
	if (!check_right_sibling(bc))
		return false;
	/* equal keys of old indexes may go on from page to page */
	if (bc->heapkeyspace && maxoff >= P_FIRSTDATAKEY(opaque))
	{
		check_search(bc, P_FIRSTDATAKEY(opaque));
		check_search(bc, maxoff);
	}
	return true;
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
	bool		allequalimage;

	bc->table = table;
	bc->index = index;
	bc->report = report;
	bc->arg = arg;

	_bt_metaversion(index, &bc->heapkeyspace, &allequalimage);
	for (int pass = 1; pass <= 2 && sound; pass++)
		for (bc->block = BTREE_METAPAGE + 1; bc->block < nblocks; bc->block++)
		{
			MemoryContext old = MemoryContextSwitchTo(cxt);

			CHECK_FOR_INTERRUPTS();
			if (copy_page(bc, bc->block, bc->page.data))
			{
				if (!page_sound(bc) || (pass == 1 && !links_sound(bc)))
					sound = false;
				else if (pass == 2 && !check_leaf(bc))
					sound = false;
			}
			MemoryContextSwitchTo(old);
			MemoryContextReset(cxt);
		}
	MemoryContextDelete(cxt);
	pfree(bc);
	return sound;
}

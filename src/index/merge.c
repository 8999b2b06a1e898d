/*-------------------------------------------------------------------------
 *
 * merge.c
 *	  Merging sparse leaf pages of an inplace_btree, in VACUUM.
 *
 * nbtree gives a leaf page back when its last entry has gone.  In an index whose
 * keys wander (the time of the last change, a balance) entries leave a page one by
 * one and come back somewhere else, so most pages are nearly empty before
 * they are free.  Here the entries of two neighbours that fit one page together go to
 * the right one of them, and the left one is deleted as an empty page is.
 *
 * The change
 *	  In one critical section and one WAL record (wal/log_merge.c): the entries of
 *	  the left page come before those of the right one, the left page
 *	  becomes half-dead, and the parent's downlink to it leads to the right one,
 *	  whose own downlink goes.  That is what the first stage of nbtree's page
 *	  deletion does to an empty page, so the key space moves to the right with its
 *	  entries, and nbtree does the second stage, at once (if there is a crash in
 *	  between, in the next VACUUM).
 *
 * Why nobody is misled
 *	 - Who descends to the left page, or comes to it from its left sibling, passes
 *	   over it and finds the entries on the right page.
 *	 - A scan that has been on one of the two pages: there is none (in_flight.c).
 *	 - An insertion holds its leaf page locked from the search to the change; a
 *	   unique check that goes on to the right from there may meet entries twice, which
 *	   makes no difference to it.
 *	 - VACUUM, of which there is one, goes through an index in the order of the file
 *	   before or after merging, but not during it.
 *	 - A page that is merged has not been let go of: its number is not used anew
 *	   before all snapshots of the time have ended, which is nbtree's rule for any
 *	   deleted page.
 *	 - Predicate locks of the left page go over to the right one.
 *
 * When
 *	  After a VACUUM has been through the index for another reason, if a sample of
 *	  its pages is sparse.  Pages that would fit together but for duplicates that nbtree
 *	  has not put into posting lists yet (it does so when a page is about to
 *	  split) are deduplicated first.  Two pages are merged if the result leaves some
 *	  room, so that it is not split by the next insertion.
 *
 * What is not merged: the last child of a parent, whose right sibling is another's;
 * the rightmost page, and the one before it, where ascending keys go; the leftmost
 * one (18's nbtree asserts that a scan to the left does not end at a half-dead page);
 * pages with an incomplete split.
 *
 * Lock order, as everywhere in nbtree: the left page, the right one, the parent.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/nbtree.h"
#include "access/xloginsert.h"
#include "catalog/pg_am_d.h"
#include "index/in_flight.h"
#include "index/index.h"
#include "miscadmin.h"
#include "storage/predicate.h"
#include "utils/memutils.h"
#include "vacuum/vacuum.h"
#include "wal/wal.h"

bool		inplace_merge_index_pages = true;

/* the room for entries of a page that has a high key of no size */
#define PAGE_ROOM \
	(BLCKSZ - SizeOfPageHeaderData - MAXALIGN(sizeof(BTPageOpaqueData)))

/*
 * Two pages are merged if their entries take no more than this of a page.  (With
 * less, pages of which each takes half of one stay as they are for ever: the
 * index of a balance was 1.8 times as large as rebuilt with 7/10, and 1.45 times with
 * this, for as much WAL, since a page about to split gets rid of former keys and
 * duplicates first.)
 */
#define MERGED_FILL		(PAGE_ROOM * 24 / 25)

/*
 * How many pages are looked at first; the index is worth it if so many of a hundred
 * have less than half of that.
 */
#define SAMPLE_PAGES	100
#define SPARSE_PAGES	10

/*
 * When a scan is in the way: how often to try again, after this time; and after
 * how many merges given up because of that to leave the index alone.
 */
#define TRIES			10
#define RETRY_USEC		1000
#define GIVE_UP			20

typedef struct MergeState
{
	Relation	table;
	Relation	index;
	bool		dedup;			/* equal entries may be put together */
	BlockNumber merged;
	int			given_up;		/* in a row */
	BTVacState	vstate;			/* for nbtree's page deletion */
	MemoryContext cxt;			/* reset after each merge */
} MergeState;

typedef enum MergeResult
{
	MERGE_DONE,
	MERGE_NOT,
	MERGE_BUSY					/* a scan is in the way */
} MergeResult;

/* ---------------- how full is a page? ---------------- */

static inline Size
key_size(IndexTuple itup)
{
	return BTreeTupleIsPosting(itup) ? BTreeTupleGetPostingOffset(itup) :
		IndexTupleSize(itup);
}

static inline bool
identical_keys(IndexTuple a, IndexTuple b)
{
	Size		size = key_size(a);

	return key_size(b) == size &&
		IndexTupleHasNulls(a) == IndexTupleHasNulls(b) &&
		memcmp((char *) a + sizeof(IndexTupleData),
			   (char *) b + sizeof(IndexTupleData),
			   size - sizeof(IndexTupleData)) == 0;
}

/* as posting lists of nbtree's largest size */
static Size
deduplicated_size(Page page, Size key, int ntids)
{
	int			most = Max(1, ((int) BTMaxItemSizeOf(page) / 2 - (int) key) /
						   (int) sizeof(ItemPointerData));
	int			full = ntids / most;
	int			rest = ntids % most;
	Size		size = full *
		(MAXALIGN(key + most * sizeof(ItemPointerData)) + sizeof(ItemIdData));

	if (rest == 1)
		size += MAXALIGN(key) + sizeof(ItemIdData);
	else if (rest > 1)
		size += MAXALIGN(key + rest * sizeof(ItemPointerData)) + sizeof(ItemIdData);
	return size;
}

/* what the entries take as they are */
static Size
entries_size(Page page)
{
	Size		size = 0;

	for (OffsetNumber off = P_FIRSTDATAKEY(BTPageGetOpaque(page));
		 off <= PageGetMaxOffsetNumber(page); off++)
		size += MAXALIGN(IndexTupleSize((IndexTuple) PageGetItem(page, PageGetItemId(page, off)))) +
			sizeof(ItemIdData);
	return size;
}

/* ... and when deduplicated, about */
static Size
needed_size(MergeState *ms, Page page)
{
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	IndexTuple	base = NULL;
	int			ntids = 0;
	Size		size = 0;

	if (!ms->dedup)
		return entries_size(page);
	for (OffsetNumber off = P_FIRSTDATAKEY(BTPageGetOpaque(page));
		 off <= maxoff; off++)
	{
		IndexTuple	itup = (IndexTuple) PageGetItem(page, PageGetItemId(page, off));

		if (base == NULL || !identical_keys(base, itup))
		{
			if (base != NULL)
				size += deduplicated_size(page, key_size(base), ntids);
			base = itup;
			ntids = 0;
		}
		ntids += BTreeTupleIsPosting(itup) ? BTreeTupleGetNPosting(itup) : 1;
	}
	if (base != NULL)
		size += deduplicated_size(page, key_size(base), ntids);
	return size;
}

static bool
is_candidate(Page page)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);

	return P_ISLEAF(opaque) && !P_IGNORE(opaque) && !P_ISROOT(opaque) &&
		!P_RIGHTMOST(opaque) && !P_INCOMPLETE_SPLIT(opaque);
}

/* by pages spread evenly over the file */
static bool
is_sparse(MergeState *ms)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(ms->index);
	BlockNumber step = Max(1, nblocks / SAMPLE_PAGES);
	int			n = 0;
	int			nsparse = 0;

	for (BlockNumber blk = BTREE_METAPAGE + 1; blk < nblocks; blk += step)
	{
		Buffer		buffer;
		Page		page;

		VacuumDelayPoint();
		buffer = ReadBuffer(ms->index, blk);
		_bt_lockbuf(ms->index, buffer, BT_READ);
		page = BufferGetPage(buffer);
		if (!PageIsNew(page) && is_candidate(page))
		{
			n++;
			if (needed_size(ms, page) < MERGED_FILL / 2)
				nsparse++;
		}
		_bt_relbuf(ms->index, buffer);
	}
	return nsparse > 1 && nsparse * 100 >= n * SPARSE_PAGES;
}

/* ---------------- one merge ---------------- */

/*
 * The way down to a leaf page, whose high key is given.
 */
static BTStack
stack_to(MergeState *ms, IndexTuple hikey)
{
	BTScanInsert key = _bt_mkscankey(ms->index, hikey);
	BTStack		stack;
	Buffer		buffer;

	BtSetPivotSearch(key);
	stack = BtSearchLeaf(ms->index, ms->table, key, &buffer);
	if (BufferIsValid(buffer))
		_bt_relbuf(ms->index, buffer);
	pfree(key);
	return stack;
}

static bool
has_dead_items(Page page)
{
	for (OffsetNumber off = P_FIRSTDATAKEY(BTPageGetOpaque(page));
		 off <= PageGetMaxOffsetNumber(page); off++)
		if (ItemIdIsDead(PageGetItemId(page, off)))
			return true;
	return false;
}

/* the page is locked; nbtree logs that */
static void
deduplicate(MergeState *ms, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	OffsetNumber first = P_FIRSTDATAKEY(BTPageGetOpaque(page));

	/* nbtree's has no way to deal with dead ones */
	if (PageGetMaxOffsetNumber(page) <= first || has_dead_items(page))
		return;
	BtDedupPass(ms->index, buffer, ms->table);
}

/*
 * Do the entries of both fit the right one?
 */
static bool
make_fit(MergeState *ms, Buffer lbuf, Buffer rbuf)
{
	Page		left = BufferGetPage(lbuf);
	Page		right = BufferGetPage(rbuf);

	if (needed_size(ms, left) + needed_size(ms, right) > MERGED_FILL)
		return false;
	if (entries_size(left) <= PageGetExactFreeSpace(right))
		return true;
	if (!ms->dedup)
		return false;
	deduplicate(ms, lbuf);
	deduplicate(ms, rbuf);
	return entries_size(left) <= PageGetExactFreeSpace(right);
}

/*
 * The parent, locked, and where in it the downlink to the left page is, if the
 * next one leads to the right page.
 */
static Buffer
lock_parent(MergeState *ms, BTStack stack, BlockNumber left, BlockNumber right,
			OffsetNumber *poffset)
{
	Buffer		buffer = BtGetStackBuf(ms->index, ms->table, stack, left);
	Page		page;
	IndexTuple	next;

	if (!BufferIsValid(buffer))
		return InvalidBuffer;
	page = BufferGetPage(buffer);
	*poffset = stack->bts_offset;
	if (*poffset < PageGetMaxOffsetNumber(page))
	{
		next = (IndexTuple) PageGetItem(page, PageGetItemId(page, *poffset + 1));
		if (BTreeTupleGetDownLink(next) == right)
			return buffer;
	}
	_bt_relbuf(ms->index, buffer);
	return InvalidBuffer;
}

/* the entries of a page, one after the other; returns their length */
static Size
copy_entries(Page page, char *entries)
{
	char	   *p = entries;

	for (OffsetNumber off = P_FIRSTDATAKEY(BTPageGetOpaque(page));
		 off <= PageGetMaxOffsetNumber(page); off++)
	{
		IndexTuple	itup = (IndexTuple) PageGetItem(page, PageGetItemId(page, off));

		memcpy(p, itup, IndexTupleSize(itup));
		p += MAXALIGN(IndexTupleSize(itup));
	}
	return p - entries;
}

static void
change_pages(MergeState *ms, Buffer lbuf, Buffer rbuf, Buffer pbuf,
			 OffsetNumber poffset)
{
	Page		left = BufferGetPage(lbuf);
	Page		right = BufferGetPage(rbuf);
	Page		result = PageGetTempPage(right);
	char	   *entries = palloc0(BLCKSZ);
	Size		len = copy_entries(left, entries);
	BlockNumber left_block = BufferGetBlockNumber(lbuf);
	BlockNumber right_block = BufferGetBlockNumber(rbuf);
	BlockNumber prev = BTPageGetOpaque(left)->btpo_prev;

	if (!inplace_page_merge(result, right, entries, len))
		elog(ERROR, "entries of block %u do not fit block %u of index \"%s\"",
			 left_block, right_block, RelationGetRelationName(ms->index));
	PredicateLockPageCombine(ms->index, left_block, right_block);

	START_CRIT_SECTION();
	PageRestoreTempPage(result, right);
	MarkBufferDirty(rbuf);
	inplace_page_make_half_dead(left, prev, right_block);
	MarkBufferDirty(lbuf);
	inplace_page_drop_downlink(BufferGetPage(pbuf), poffset, right_block);
	MarkBufferDirty(pbuf);
	if (RelationNeedsWAL(ms->index))
		inplace_log_merge(rbuf, lbuf, pbuf, poffset, prev, entries, len);
	END_CRIT_SECTION();
	pfree(entries);
}

/* both pages are locked */
static MergeResult
merge_locked(MergeState *ms, Buffer lbuf, Buffer rbuf, BTStack stack)
{
	Page		left = BufferGetPage(lbuf);
	Page		right = BufferGetPage(rbuf);
	Buffer		pbuf;
	OffsetNumber poffset;

	if (!is_candidate(left) || P_LEFTMOST(BTPageGetOpaque(left)) ||
		!is_candidate(right) ||
		BTPageGetOpaque(left)->btpo_next != BufferGetBlockNumber(rbuf) ||
		BTPageGetOpaque(right)->btpo_prev != BufferGetBlockNumber(lbuf) ||
		PageGetMaxOffsetNumber(left) < P_FIRSTDATAKEY(BTPageGetOpaque(left)))
		return MERGE_NOT;
	if (in_flight_any(RelLocator(ms->index)))
		return MERGE_BUSY;
	if (!make_fit(ms, lbuf, rbuf))
		return MERGE_NOT;
	pbuf = lock_parent(ms, stack, BufferGetBlockNumber(lbuf),
					   BufferGetBlockNumber(rbuf), &poffset);
	if (!BufferIsValid(pbuf))
		return MERGE_NOT;
	change_pages(ms, lbuf, rbuf, pbuf, poffset);
	_bt_relbuf(ms->index, pbuf);
	return MERGE_DONE;
}

/* no page is locked; "hikey" is the left page's */
static MergeResult
merge_pages(MergeState *ms, BlockNumber left, BlockNumber right, IndexTuple hikey)
{
	MemoryContext old = MemoryContextSwitchTo(ms->cxt);
	BTStack		stack = stack_to(ms, hikey);
	MergeResult result = MERGE_NOT;

	for (int i = 0; stack != NULL && i < TRIES; i++)
	{
		Buffer		lbuf = _bt_getbuf(ms->index, left, BT_WRITE);
		Buffer		rbuf = _bt_getbuf(ms->index, right, BT_WRITE);

		/* the page is not to be left half-dead */
		HOLD_INTERRUPTS();
		result = merge_locked(ms, lbuf, rbuf, stack);
		_bt_relbuf(ms->index, rbuf);
		if (result == MERGE_DONE)
			_bt_pagedel(ms->index, lbuf, &ms->vstate);
		else
			_bt_relbuf(ms->index, lbuf);
		RESUME_INTERRUPTS();
		if (result != MERGE_BUSY)
			break;
		CHECK_FOR_INTERRUPTS();
		pg_usleep(RETRY_USEC);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(ms->cxt);
	return result;
}

/* ---------------- the index ---------------- */

/*
 * A leaf page as it was when it was looked at.
 */
typedef struct LeafNote
{
	BlockNumber block;
	BlockNumber next;			/* or P_NONE */
	bool		candidate;
	Size		needed;
	IndexTuple	hikey;			/* a copy, or NULL */
} LeafNote;

/* unlocks the page */
static void
note_leaf(MergeState *ms, Buffer buffer, LeafNote *note)
{
	Page		page = BufferGetPage(buffer);

	note->block = BufferGetBlockNumber(buffer);
	note->next = BTPageGetOpaque(page)->btpo_next;
	note->candidate = is_candidate(page);
	note->hikey = NULL;
	if (note->candidate)
	{
		note->needed = needed_size(ms, page);
		note->hikey = CopyIndexTuple((IndexTuple) PageGetItem(page, PageGetItemId(page, P_HIKEY)));
	}
	_bt_relbuf(ms->index, buffer);
}

static void
merge_neighbours(MergeState *ms, const LeafNote *left, LeafNote *right)
{
	if (!left->candidate || !right->candidate || left->needed == 0 ||
		left->needed + right->needed > MERGED_FILL)
		return;
	switch (merge_pages(ms, left->block, right->block, left->hikey))
	{
		case MERGE_DONE:
			right->needed += left->needed;
			ms->merged++;
			ms->given_up = 0;
			break;
		case MERGE_BUSY:
			ms->given_up++;
			break;
		case MERGE_NOT:
			break;
	}
}

/*
 * Go along the leaves, two neighbours at a time.  Entries move to the right, so
 * after a merge the right page is next, with what it has got.
 */
static void
merge_along(MergeState *ms)
{
	LeafNote	left;
	LeafNote	right;

	note_leaf(ms, BtLeftmostLeaf(ms->index), &left);
	while (left.next != P_NONE && ms->given_up < GIVE_UP)
	{
		VacuumDelayPoint();
		note_leaf(ms, _bt_getbuf(ms->index, left.next, BT_READ), &right);
		merge_neighbours(ms, &left, &right);
		if (left.hikey)
			pfree(left.hikey);
		left = right;
	}
}

/* (nbtree's own macro takes relations that say btree only) */
static bool
deduplicates(Relation index)
{
	return index->rd_options == NULL ||
		((BTOptions *) index->rd_options)->deduplicate_items;
}

/*
 * Returns how many pages have been deleted.  They go into the free space map when
 * nbtree goes through the index the next time.
 */
BlockNumber
inplace_merge_leaves(IndexVacuumInfo *info, Relation table)
{
	Relation	index = info->index;
	MergeState	ms = {0};
	IndexBulkDeleteResult stats = {0};
	bool		heapkeyspace;
	bool		allequalimage;

	if (!inplace_merge_index_pages)
		return 0;
	_bt_metaversion(index, &heapkeyspace, &allequalimage);
	/* indexes as they were made before 12 are not worth a thought */
	if (!heapkeyspace)
		return 0;
	ms.table = table;
	ms.index = index;
	ms.dedup = allequalimage && deduplicates(index) && !inplace_has_payload(index);
	/* (without room for pages that could be used anew at once) */
	ms.vstate.info = info;
	ms.vstate.stats = &stats;
	ms.cxt = AllocSetContextCreate(CurrentMemoryContext, "inplace merge",
								   ALLOCSET_DEFAULT_SIZES);
	if (is_sparse(&ms))
	{
		Oid			relam = index->rd_rel->relam;

		/* a parent may have to be split, which nbtree does for its own only */
		PG_TRY();
		{
			index->rd_rel->relam = BTREE_AM_OID;
			merge_along(&ms);
		}
		PG_FINALLY();
		{
			index->rd_rel->relam = relam;
		}
		PG_END_TRY();
	}
	MemoryContextDelete(ms.cxt);
	return ms.merged;
}

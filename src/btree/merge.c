/*-------------------------------------------------------------------------
 *
 * merge.c
 *	  Merging two neighbouring leaf pages of an inplace_btree, or moving entries
 *	  from one to the other.
 *
 * merge_leaves.c says which and when, in VACUUM.  Entries always go to the right: all
 * of the left page's, which is deleted then, or those at its end.
 *
 * A merge
 *	  In one critical section and one WAL record (wal/log_merge.c): the entries of
 *	  the left page come before those of the right one, the left page
 *	  becomes half-dead, and the parent's downlink to it leads to the right one,
 *	  whose own downlink goes.  That is what the first stage of nbtree's page
 *	  deletion does to an empty page, so the key space moves to the right with its
 *	  entries, and nbtree does the second stage, at once (if there is a crash in
 *	  between, in the next VACUUM).
 *
 * A shift
 *	  Likewise in one record: the entries at the end of the left page come before
 *	  those of the right one, the left page gets the high key that a split there would
 *	  give it, and the parent's downlink to the right page the same.
 *
 * Why nobody is misled
 *	 - A descent to the left page, or a step to it from its left sibling, passes
 *	   over it, or finds that its key is beyond the high key.  Either way it finds
 *	   the entries on the right page.
 *	 - A scan that has been on one of the two pages: there is none (in_flight.c; of
 *	   the left page nobody has a pin, either).
 *	 - An insertion holds its leaf page locked from the search to the change; a
 *	   unique check that goes on to the right from there may meet entries twice, which
 *	   makes no difference to it.
 *	 - VACUUM, of which there is one, goes through an index in the order of the file
 *	   before or after merging, but not during it.
 *	 - The number of a merged page is not used again before all snapshots of the time
 *	   have ended, which is nbtree's rule for any deleted page.
 *	 - Predicate locks of the left page go over to the right one, or are taken there too.
 *
 * What is not changed: the last child of a parent, whose right sibling is another's;
 * the rightmost page, where ascending keys go, and with it the one before as the left
 * of two; the leftmost one (18's nbtree asserts that a scan to the left does not end at a
 * half-dead page); pages with an incomplete split.
 *
 * Lock order, as everywhere in nbtree: the left page, the right one, the parent.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/nbtree.h"
#include "access/xloginsert.h"
#include "btree/in_flight.h"
#include "btree/item.h"
#include "btree/merge.h"
#include "miscadmin.h"
#include "storage/predicate.h"
#include "utils/memutils.h"
#include "wal/log_btree.h"

/*
 * When a scan is in the way: how often to try again, and after this time.
 */
#define TRIES			10
#define RETRY_USEC		1000

/* ---------------- how full is a page? ---------------- */

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
Size
merge_needed_size(MergeState *ms, Page page)
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

		if (base == NULL || !entries_identical(base, itup))
		{
			if (base != NULL)
				size += deduplicated_size(page, entry_key_size(base), ntids);
			base = itup;
			ntids = 0;
		}
		ntids += BTreeTupleIsPosting(itup) ? BTreeTupleGetNPosting(itup) : 1;
	}
	if (base != NULL)
		size += deduplicated_size(page, entry_key_size(base), ntids);
	return size;
}

bool
merge_is_candidate(Page page)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);

	return P_ISLEAF(opaque) && !P_IGNORE(opaque) && !P_ISROOT(opaque) &&
		!P_RIGHTMOST(opaque) && !P_INCOMPLETE_SPLIT(opaque);
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

	if (merge_needed_size(ms, left) + merge_needed_size(ms, right) > ms->merged_fill)
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

/*
 * How many of the pages, neighbours of which the first one's high key is given, has
 * the first one's parent?
 */
int
merge_siblings(MergeState *ms, const BlockNumber *blocks, int n, IndexTuple hikey)
{
	MemoryContext old = MemoryContextSwitchTo(ms->cxt);
	BTStack		stack = stack_to(ms, hikey);
	Buffer		buffer = InvalidBuffer;
	int			found = 0;

	if (stack != NULL)
		buffer = BtGetStackBuf(ms->index, ms->table, stack, blocks[0]);
	if (BufferIsValid(buffer))
	{
		Page		page = BufferGetPage(buffer);

		for (OffsetNumber off = stack->bts_offset;
			 found < n && off <= PageGetMaxOffsetNumber(page); off++)
		{
			IndexTuple	itup = (IndexTuple) PageGetItem(page, PageGetItemId(page, off));

			if (BTreeTupleGetDownLink(itup) != blocks[found])
				break;
			found++;
		}
		_bt_relbuf(ms->index, buffer);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(ms->cxt);
	return found;
}

/* the entries of a page from "first" on, one after the other; returns their length */
static Size
copy_entries(Page page, OffsetNumber first, char *entries)
{
	char	   *p = entries;

	for (OffsetNumber off = first; off <= PageGetMaxOffsetNumber(page); off++)
	{
		IndexTuple	itup = (IndexTuple) PageGetItem(page, PageGetItemId(page, off));

		memcpy(p, itup, IndexTupleSize(itup));
		p += MAXALIGN(IndexTupleSize(itup));
	}
	return p - entries;
}

/* the right page with entries before its own, in a page of its own */
static Page
right_with_entries(MergeState *ms, Buffer rbuf, const char *entries, Size len)
{
	Page		right = BufferGetPage(rbuf);
	Page		result = PageGetTempPage(right);

	if (!inplace_page_merge(result, right, entries, len))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("entries of its left sibling do not fit block %u of index \"%s\"",
						BufferGetBlockNumber(rbuf),
						RelationGetRelationName(ms->index))));
	return result;
}

static void
merge_change(MergeState *ms, Buffer lbuf, Buffer rbuf, Buffer pbuf,
			 OffsetNumber poffset)
{
	Page		left = BufferGetPage(lbuf);
	BTPageOpaque opaque = BTPageGetOpaque(left);
	char	   *entries = palloc0(BLCKSZ);
	Size		len = copy_entries(left, P_FIRSTDATAKEY(opaque), entries);
	Page		result = right_with_entries(ms, rbuf, entries, len);
	BlockNumber right_block = BufferGetBlockNumber(rbuf);
	BlockNumber prev = opaque->btpo_prev;

	PredicateLockPageCombine(ms->index, BufferGetBlockNumber(lbuf), right_block);

	START_CRIT_SECTION();
	PageRestoreTempPage(result, BufferGetPage(rbuf));
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

/* may entries go from one to the other? */
static bool
are_neighbours(Buffer lbuf, Buffer rbuf)
{
	BTPageOpaque left = BTPageGetOpaque(BufferGetPage(lbuf));
	BTPageOpaque right = BTPageGetOpaque(BufferGetPage(rbuf));

	return merge_is_candidate(BufferGetPage(lbuf)) &&
		merge_is_candidate(BufferGetPage(rbuf)) &&
		!P_LEFTMOST(left) &&
		left->btpo_next == BufferGetBlockNumber(rbuf) &&
		right->btpo_prev == BufferGetBlockNumber(lbuf) &&
		PageGetMaxOffsetNumber(BufferGetPage(lbuf)) >= P_FIRSTDATAKEY(left);
}

/* both pages are locked, and are_neighbours(); the left one is let go of */
static MergeResult
merge_locked(MergeState *ms, Buffer lbuf, Buffer rbuf, BTStack stack)
{
	Buffer		pbuf;
	OffsetNumber poffset;

	if (!make_fit(ms, lbuf, rbuf))
		return MERGE_NOT;
	pbuf = lock_parent(ms, stack, BufferGetBlockNumber(lbuf),
					   BufferGetBlockNumber(rbuf), &poffset);
	if (!BufferIsValid(pbuf))
		return MERGE_NOT;
	merge_change(ms, lbuf, rbuf, pbuf, poffset);
	_bt_relbuf(ms->index, pbuf);
	return MERGE_DONE;
}

/* ---------------- one shift ---------------- */

/*
 * From where on the left page's entries find room on the right page, if that is filled
 * up to what a packed page has; one stays at least.
 */
static OffsetNumber
first_to_shift(MergeState *ms, Page left, Page right)
{
	OffsetNumber maxoff = PageGetMaxOffsetNumber(left);
	OffsetNumber first = maxoff + 1;
	Size		filled = entries_size(right);
	Size		room;

	if (filled >= ms->packed_fill)
		return first;
	room = Min(ms->packed_fill - filled, PageGetExactFreeSpace(right));
	while (first > P_FIRSTDATAKEY(BTPageGetOpaque(left)) + 1)
	{
		ItemId		lp = PageGetItemId(left, first - 1);
		Size		size = MAXALIGN(ItemIdGetLength(lp)) + sizeof(ItemIdData);

		if (size > room)
			break;
		room -= size;
		first--;
	}
	return first;
}

/* the downlink after the one at "off" may get a key of another length */
static bool
parent_has_room(Page parent, OffsetNumber off, IndexTuple hikey)
{
	ItemId		lp = PageGetItemId(parent, OffsetNumberNext(off));

	return PageGetExactFreeSpace(parent) + MAXALIGN(ItemIdGetLength(lp)) >=
		MAXALIGN(IndexTupleSize(hikey));
}

static void
shift_change(MergeState *ms, Buffer lbuf, Buffer rbuf, Buffer pbuf,
			 OffsetNumber poffset, OffsetNumber first, IndexTuple hikey)
{
	Page		left = BufferGetPage(lbuf);
	Page		left_result = PageGetTempPage(left);
	char	   *entries = palloc0(BLCKSZ);
	Size		len = copy_entries(left, first, entries);
	Page		result = right_with_entries(ms, rbuf, entries, len);
	BlockNumber right_block = BufferGetBlockNumber(rbuf);

	if (!inplace_page_cut(left_result, left, hikey, first))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("no room for a high key in block %u of index \"%s\"",
						BufferGetBlockNumber(lbuf),
						RelationGetRelationName(ms->index))));
	PredicateLockPageSplit(ms->index, BufferGetBlockNumber(lbuf), right_block);

	START_CRIT_SECTION();
	PageRestoreTempPage(result, BufferGetPage(rbuf));
	MarkBufferDirty(rbuf);
	PageRestoreTempPage(left_result, left);
	MarkBufferDirty(lbuf);
	if (!inplace_page_rekey_downlink(BufferGetPage(pbuf), poffset, hikey, right_block))
		elog(PANIC, "no room for a downlink in block %u of index \"%s\"",
			 BufferGetBlockNumber(pbuf), RelationGetRelationName(ms->index));
	MarkBufferDirty(pbuf);
	if (RelationNeedsWAL(ms->index))
		inplace_log_shift(rbuf, lbuf, pbuf, poffset, first, hikey, entries, len);
	END_CRIT_SECTION();
	pfree(entries);
}

static MergeResult
shift_locked(MergeState *ms, Buffer lbuf, Buffer rbuf, BTStack stack)
{
	Page		left = BufferGetPage(lbuf);
	OffsetNumber first;
	IndexTuple	hikey;
	Buffer		pbuf;
	OffsetNumber poffset;
	MergeResult result = MERGE_NOT;

	if (ms->dedup)
	{
		deduplicate(ms, lbuf);
		deduplicate(ms, rbuf);
	}
	first = first_to_shift(ms, left, BufferGetPage(rbuf));
	if (first > PageGetMaxOffsetNumber(left))
		return MERGE_NOT;
	hikey = _bt_truncate(ms->index,
						 (IndexTuple) PageGetItem(left, PageGetItemId(left, first - 1)),
						 (IndexTuple) PageGetItem(left, PageGetItemId(left, first)),
						 ms->inskey);
	pbuf = lock_parent(ms, stack, BufferGetBlockNumber(lbuf),
					   BufferGetBlockNumber(rbuf), &poffset);
	if (!BufferIsValid(pbuf))
		return MERGE_NOT;
	if (parent_has_room(BufferGetPage(pbuf), poffset, hikey))
	{
		shift_change(ms, lbuf, rbuf, pbuf, poffset, first, hikey);
		result = MERGE_DONE;
	}
	_bt_relbuf(ms->index, pbuf);
	return result;
}

/* ---------------- with both pages locked ---------------- */

/* a change that has both pages, locked, and the way to their parent */
typedef MergeResult (*ChangeLocked) (MergeState *ms, Buffer lbuf, Buffer rbuf,
									 BTStack stack);

/*
 * May a scan be between two pages of the index, or use what it has copied of the page
 * whose entries are to go?  Scans have said so (in_flight.c).  We ask for the pin as well,
 * for a backend that reads the page without having said so.
 */
static bool
misleads_a_scan(MergeState *ms, Buffer lbuf)
{
	return in_flight_any(RelLocator(ms->index)) || !IsBufferCleanupOK(lbuf);
}

static MergeResult
change_once(MergeState *ms, const MergePair *pair, BTStack stack, ChangeLocked change)
{
	Buffer		lbuf = _bt_getbuf(ms->index, pair->left, BT_WRITE);
	Buffer		rbuf = _bt_getbuf(ms->index, pair->right, BT_WRITE);
	MergeResult result = MERGE_NOT;

	/* the page is not to be left half-dead */
	HOLD_INTERRUPTS();
	if (are_neighbours(lbuf, rbuf))
		result = misleads_a_scan(ms, lbuf) ? MERGE_BUSY :
			change(ms, lbuf, rbuf, stack);
	_bt_relbuf(ms->index, rbuf);
	if (P_ISHALFDEAD(BTPageGetOpaque(BufferGetPage(lbuf))) && result == MERGE_DONE)
		_bt_pagedel(ms->index, lbuf, &ms->vstate);
	else
		_bt_relbuf(ms->index, lbuf);
	RESUME_INTERRUPTS();
	return result;
}

/* no page is locked */
static MergeResult
change_pair(MergeState *ms, const MergePair *pair, ChangeLocked change)
{
	MemoryContext old = MemoryContextSwitchTo(ms->cxt);
	BTStack		stack = stack_to(ms, pair->hikey);
	MergeResult result = MERGE_NOT;

	for (int i = 0; stack != NULL && i < TRIES; i++)
	{
		result = change_once(ms, pair, stack, change);
		if (result != MERGE_BUSY)
			break;
		CHECK_FOR_INTERRUPTS();
		pg_usleep(RETRY_USEC);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(ms->cxt);
	return result;
}

MergeResult
merge_pages(MergeState *ms, const MergePair *pair)
{
	return change_pair(ms, pair, merge_locked);
}

MergeResult
merge_shift_entries(MergeState *ms, const MergePair *pair)
{
	return change_pair(ms, pair, shift_locked);
}

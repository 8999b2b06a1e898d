/*-------------------------------------------------------------------------
 *
 * sweep.c
 *	  Going through an inplace_btree for VACUUM, to take out stale entries.
 *
 * The leaf pages are visited from left to right.  On each the entries of rows
 * that VACUUM is interested in are given to nbtree's own deletion, which asks
 * index_delete.c which of them nobody needs, deletes those and logs that with
 * the horizon for standbys.  What is left gets the payload of INCLUDE columns that
 * its row has.
 *
 * Looking up rows is what a sweep costs, and most indexes of a table with stale
 * rows have nothing for it to find.  So an index is gone through once before, to
 * count the entries of each row, and only rows with more than one are looked
 * up: the row's present version has an entry (invariant 1 in index.h), so if there is
 * one alone that is it.  If the row is updated meanwhile this does not hold, but
 * then VACUUM leaves it alone (IP_UNCHANGED).  An entry may be met twice, on both
 * sides of a page split, which costs a look.  Not so in an index with a predicate,
 * where the one entry may be that of a version before the row has left it; nor
 * in one with INCLUDE columns, where the one entry has to be put right; nor in one that
 * CREATE INDEX CONCURRENTLY has not done with.
 *
 * Of rows with versions that held snapshots need only entries go that are between
 * snapshots (row/between.c).  Such rows keep their mark.  Entries stay whose keys would
 * have to be computed: only those of present versions are.
 *
 * An entry that is there when the sweep begins is met: a page split moves
 * entries to the right only, and pages are unlinked by VACUUM alone, of which
 * there is one.
 *
 * Keys that have to be computed, or fetched from a TOAST table, are so between two
 * locks of the page, the first of which tells which rows it is about (version_keys.c).
 *
 * Lock order: one leaf page at a time, exclusively if there is something to look
 * at, and under it what index_delete.c takes.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/nbtree.h"
#include "access/xloginsert.h"
#include "commands/vacuum.h"
#include "index/entry.h"
#include "index/key.h"
#include "index/stale_rows.h"
#include "index/sweep.h"
#include "index/version_keys.h"
#include "miscadmin.h"
#include "page/page.h"
#include "page/tuple.h"
#include "row/visibility.h"
#include "utils/memutils.h"

/* how often it is looked whether there are more leaves than pages */
#define CIRCLE_CHECK_PAGES	1024

typedef struct SweepState
{
	Relation	table;
	Relation	index;
	StaleRows  *rows;
	VersionKeys keys;			/* of the rows on the page */
	SweepOp		sweep;
	BlockNumber empty_pages;
	Size		freed;			/* bytes */
	MemoryContext page_cxt;		/* reset after each page */
} SweepState;

static void
add_tid(SweepState *ss, ItemPointer tid, OffsetNumber off)
{
	TM_IndexDelete *deltid = &ss->sweep.op.deltids[ss->sweep.op.ndeltids];
	TM_IndexStatus *status = &ss->sweep.op.status[ss->sweep.op.ndeltids];

	if (!stale_rows_wanted(ss->rows, tid))
		return;
	deltid->tid = *tid;
	deltid->id = ss->sweep.op.ndeltids++;
	status->idxoffnum = off;
	status->knowndeletable = false;
	status->promising = false;
	status->freespace = 1;
}

/*
 * Note the entries of a locked page that are worth a look.
 */
static void
collect_tids(SweepState *ss, Page page)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);

	ss->sweep.op.ndeltids = 0;
	if (P_IGNORE(opaque))
		return;
	for (OffsetNumber off = P_FIRSTDATAKEY(opaque); off <= maxoff; off++)
	{
		IndexTuple	itup = (IndexTuple) PageGetItem(page, PageGetItemId(page, off));

		if (!BTreeTupleIsPosting(itup))
			add_tid(ss, &itup->t_tid, off);
		else
			for (int i = 0; i < BTreeTupleGetNPosting(itup); i++)
				add_tid(ss, BTreeTupleGetPostingN(itup, i), off);
	}
}

/*
 * The version of a row that VACUUM has noted, if it is still that: its key is to be
 * known when the index page is locked.
 */
static void
want_key(SweepState *ss, ItemPointer tid)
{
	BlockNumber blk = ItemPointerGetBlockNumber(tid);
	OffsetNumber off = ItemPointerGetOffsetNumber(tid);
	Buffer		buffer = ReadBuffer(ss->table, blk);
	Page		page;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = RowPage(ss->table, buffer);
	if (off <= PageGetMaxOffsetNumber(page) &&
		ItemIdIsNormal(PageGetItemId(page, off)))
	{
		ItemId		lp = PageGetItemId(page, off);
		InplaceTupleHeader tup = (InplaceTupleHeader) PageGetItem(page, lp);

		if ((tup->t_infomask & IP_STALE) && (tup->t_natts & IP_UNCHANGED) &&
			(inplace_key_is_computed(ss->index) ||
			 inplace_has_external_key(ss->table, ss->index, tup, tid)))
			version_keys_want(&ss->keys, tid, tup, RowLength(tup, lp), true);
	}
	UnlockReleaseBuffer(buffer);
}

/*
 * Compute the keys of the rows whose entries have been collected from the page.  It
 * is not locked, only pinned.
 */
static void
compute_keys(SweepState *ss)
{
	version_keys_free(&ss->keys);
	for (int i = 0; i < ss->sweep.op.ndeltids; i++)
	{
		CHECK_FOR_INTERRUPTS();
		want_key(ss, &ss->sweep.op.deltids[i].tid);
		if (version_keys_are_many(&ss->keys))
			version_keys_compute(&ss->keys);
	}
	version_keys_compute(&ss->keys);
}

/*
 * The entry as it has to be for the row that it leads to, or NULL if there is
 * nothing to do: it is as it should be, or somebody has changed the row.
 */
static IndexTuple
right_entry(SweepState *ss, IndexTuple itup)
{
	BlockNumber blk = ItemPointerGetBlockNumber(&itup->t_tid);
	OffsetNumber off = ItemPointerGetOffsetNumber(&itup->t_tid);
	Buffer		buffer = ReadBuffer(ss->table, blk);
	Page		page;
	IndexTuple	result = NULL;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = RowPage(ss->table, buffer);
	if (off <= PageGetMaxOffsetNumber(page) &&
		ItemIdIsNormal(PageGetItemId(page, off)))
	{
		InplaceTupleHeader tup = PageGetTupleAt(page, off);

		if ((tup->t_infomask & IP_STALE) && (tup->t_natts & IP_UNCHANGED))
			result = inplace_entry_of_tuple(ss->table, ss->index, itup, tup);
	}
	UnlockReleaseBuffer(buffer);
	return result;
}

/*
 * Put the payload of wanted rows right.  A row's newest version is what everybody
 * sees, so no other payload is of use to anybody.  Where the new one does not
 * fit, the row keeps its mark.
 *
 * WAL gets an image of the page: nbtree has no record for it, and a generic
 * one does not know its hints.
 */
static void
fix_payloads(SweepState *ss, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	OffsetNumber offs[MaxIndexTuplesPerPage];
	IndexTuple	entries[MaxIndexTuplesPerPage];
	int			n = 0;
	bool		changed = false;

	for (OffsetNumber off = P_FIRSTDATAKEY(BTPageGetOpaque(page));
		 off <= maxoff; off++)
	{
		IndexTuple	itup = (IndexTuple) PageGetItem(page, PageGetItemId(page, off));

		/* (an index with INCLUDE columns has no posting lists) */
		if (BTreeTupleIsPosting(itup) ||
			!stale_rows_wanted(ss->rows, &itup->t_tid))
			continue;
		entries[n] = right_entry(ss, itup);
		if (entries[n] != NULL)
			offs[n++] = off;
	}
	if (n == 0)
		return;

	START_CRIT_SECTION();
	for (int i = 0; i < n; i++)
	{
		Size		size = IndexTupleSize(entries[i]);

		if (size <= BTMaxItemSizeOf(page) &&
			PageIndexTupleOverwrite(page, offs[i], (Item) entries[i], size))
			changed = true;
		else
			stale_rows_drop(ss->rows, &entries[i]->t_tid);
	}
	if (changed)
	{
		MarkBufferDirty(buffer);
		if (RelationNeedsWAL(ss->index))
			log_newpage_buffer(buffer, true);
	}
	END_CRIT_SECTION();
}

/*
 * One leaf page, share-locked; it stays locked.  Between the two locks it may
 * be split: what has gone to the right is met there.  An entry that has come, or a row
 * that has been changed, is not one of those that VACUUM has noted, or has no
 * key computed: it is left, and the row keeps its mark.
 */
static void
sweep_page(SweepState *ss, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	Size		free_space;

	collect_tids(ss, page);
	if (ss->sweep.op.ndeltids == 0)
		return;

	_bt_unlockbuf(ss->index, buffer);
	if (ss->sweep.keys != NULL)
		compute_keys(ss);
	_bt_lockbuf(ss->index, buffer, BT_WRITE);
	collect_tids(ss, page);
	if (ss->sweep.op.ndeltids == 0)
		return;

	ss->sweep.op.iblknum = BufferGetBlockNumber(buffer);
	free_space = PageGetExactFreeSpace(page);
	_bt_delitems_delete_check(ss->index, buffer, ss->table, &ss->sweep.op);
	ss->freed += PageGetExactFreeSpace(page) - free_space;
	if (inplace_has_payload(ss->index))
	{
		MemoryContext old = MemoryContextSwitchTo(ss->page_cxt);

		fix_payloads(ss, buffer);
		MemoryContextSwitchTo(old);
		MemoryContextReset(ss->page_cxt);
	}
	if (PageGetMaxOffsetNumber(page) < P_FIRSTDATAKEY(BTPageGetOpaque(page)))
		ss->empty_pages++;
}

/*
 * Count the entries of a share-locked page; are there second ones of a row?
 */
static bool
count_page(SweepState *ss, Page page)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	bool		more = false;

	if (P_IGNORE(opaque))
		return false;
	for (OffsetNumber off = P_FIRSTDATAKEY(opaque); off <= maxoff; off++)
	{
		IndexTuple	itup = (IndexTuple) PageGetItem(page, PageGetItemId(page, off));

		if (!BTreeTupleIsPosting(itup))
			more |= stale_rows_met(ss->rows, &itup->t_tid);
		else
			for (int i = 0; i < BTreeTupleGetNPosting(itup); i++)
				more |= stale_rows_met(ss->rows, BTreeTupleGetPostingN(itup, i));
	}
	return more;
}

/*
 * In a damaged index the links between leaves may lead back.  Only this VACUUM
 * frees pages for others, so nobody meets more leaves than the file has pages.
 */
bool
inplace_leaves_in_circle(Relation index, BlockNumber visited)
{
	return visited % CIRCLE_CHECK_PAGES == 0 &&
		visited > RelationGetNumberOfBlocks(index);
}

/* unlocks the page, and returns the next one, share-locked, if there is one */
static Buffer
next_leaf(Relation index, Buffer buffer, BlockNumber *visited)
{
	BlockNumber next = BTPageGetOpaque(BufferGetPage(buffer))->btpo_next;

	_bt_relbuf(index, buffer);
	if (inplace_leaves_in_circle(index, ++*visited))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("right links of index \"%s\" lead in a circle, by way of block %u",
						RelationGetRelationName(index), next),
				 errhint("Please REINDEX it.")));
	if (next == P_NONE)
		return InvalidBuffer;
	VacuumDelayPoint();
	return _bt_getbuf(index, next, BT_READ);
}

static bool
count_entries(SweepState *ss)
{
	bool		more = false;
	BlockNumber visited = 0;

	for (Buffer buffer = BtLeftmostLeaf(ss->index); BufferIsValid(buffer);
		 buffer = next_leaf(ss->index, buffer, &visited))
		more |= count_page(ss, BufferGetPage(buffer));
	return more;
}

/* does each version of a row have an entry, that is nothing but its key? */
static bool
can_be_counted(Relation index)
{
	return index->rd_index->indisvalid &&
		RelationGetIndexPredicate(index) == NIL && !inplace_has_payload(index);
}

/* may keys have to be computed, or values to be fetched? */
static bool
keys_are_wanted(Relation table, Relation index)
{
	if (inplace_key_is_computed(index))
		return inplace_index_key(index)->readable;
	if (!OidIsValid(table->rd_rel->reltoastrelid))
		return false;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (TupleDescAttr(RelationGetDescr(index), i)->attlen == -1)
			return true;
	return false;
}

/*
 * Delete the entries that no version of their row which is visible by the
 * horizon has; of rows with versions between held snapshots and others, those that
 * lead to such versions alone.  Returns the number of pages left empty; "freed" is raised by the
 * bytes that there are for others.
 */
BlockNumber
inplace_sweep_index(Relation table, Relation index, TransactionId horizon,
					const UndoBounds *bounds, StaleRows *rows, Size *freed)
{
	SweepState	ss = {0};
	BlockNumber visited = 0;

	(void) inplace_index_key(index);	/* while no page is locked */
	ss.table = table;
	ss.index = index;
	ss.rows = rows;
	stale_rows_begin_index(rows, true);
	if (can_be_counted(index))
	{
		if (!count_entries(&ss))
			return 0;
		rows->only_more = true;
	}

	ss.sweep.op.irel = index;
	ss.sweep.op.bottomup = true;	/* there may be nothing to delete */
	ss.sweep.op.bottomupfreespace = SWEEP_EVERYTHING;
	ss.sweep.op.deltids = palloc(MaxTIDsPerBTreePage * sizeof(TM_IndexDelete));
	ss.sweep.op.status = palloc(MaxTIDsPerBTreePage * sizeof(TM_IndexStatus));
	ss.page_cxt = AllocSetContextCreate(CurrentMemoryContext, "inplace sweep",
										ALLOCSET_DEFAULT_SIZES);
	version_keys_init(&ss.keys, table, index);
	ss.sweep.horizon = horizon;
	ss.sweep.bounds = bounds;
	ss.sweep.rows = rows;
	ss.sweep.keys = keys_are_wanted(table, index) ? &ss.keys : NULL;

	for (Buffer buffer = BtLeftmostLeaf(index); BufferIsValid(buffer);
		 buffer = next_leaf(index, buffer, &visited))
		sweep_page(&ss, buffer);

	version_keys_free(&ss.keys);
	MemoryContextDelete(ss.page_cxt);
	pfree(ss.sweep.op.deltids);
	pfree(ss.sweep.op.status);
	*freed += ss.freed;
	return ss.empty_pages;
}

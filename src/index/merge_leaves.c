/*-------------------------------------------------------------------------
 *
 * merge_leaves.c
 *	  Merging sparse leaf pages of an inplace_btree, in VACUUM: which ones, and when.
 *
 * nbtree gives a leaf page back when its last entry has gone.  In an index whose
 * keys wander (the time of the last change, a balance) entries leave a page one by
 * one and come back somewhere else, so most pages are nearly empty before
 * they are free.  So after a VACUUM that has been through the index for another reason
 * neighbours whose entries fit one page together are merged (merge.c), if a sample of
 * the pages is sparse.
 *
 * Packing
 *	  Where no two of them fit one page, up to PACK_PAGES neighbours whose entries fit
 *	  one page less are packed: from the right end each page is filled up from its left
 *	  sibling, until the first one's entries fit the second page.  The pages are filled
 *	  to less than a rebuilt index has, as the next changes come to all of them.
 *
 * In both cases entries count as they will be: those that would fit but for duplicates
 * that nbtree has not put into posting lists yet (it does so when a page is about
 * to split) are deduplicated first.
 *
 * Locks: a page at a time, to read it; for a change see merge.c.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/nbtree.h"
#include "btree/merge.h"
#include "catalog/pg_am_d.h"
#include "commands/vacuum.h"
#include "index/as_btree.h"
#include "index/dedup.h"
#include "index/merge_leaves.h"
#include "index/sweep.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "undo/holders.h"
#include "utils/memutils.h"

bool		inplace_merge_index_pages = true;

/*
 * How many pages are looked at first.  Merging is worth it if so many of a hundred
 * have less than half of what a merged page may have; packing, if all together
 * take less than this of what they would have as packed pages, and have so many entries
 * a page that these can be filled (of long ones much WAL is written for a page), and if
 * such a part of the entries has just been removed.
 */
#define SAMPLE_PAGES	100
#define SPARSE_PAGES	10
#define PACK_MIN_ITEMS	30
#define PACK_MIN_REMOVED	0.04
#define PACK_BELOW(fill)	((fill) * 19 / 20)

/*
 * If the table grows nothing is packed, and two pages become one only if it has half its
 * room left, about.
 */
#define GROWING_FILL	(PAGE_ROOM * 11 / 20)

/*
 * A packed page has this, or the index's fillfactor if that is less.  By a simulation
 * of the index of a balance, and by experiment: with more, pages split again sooner.
 */
#define PACKED_PERCENT	87

/* one page of so many is saved; with more, too much is moved for it */
#define PACK_PAGES		8

/* after how many changes given up because of scans to leave the index alone */
#define GIVE_UP			20

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

/* neighbours, from left to right, the last one just looked at */
typedef struct Window
{
	LeafNote	notes[PACK_PAGES];
	int			n;
} Window;

/* ---------------- is it worth it? ---------------- */

typedef struct Sample
{
	int			n;
	int			nsparse;
	Size		needed;
	Size		nitems;
} Sample;

static void
sample_page(MergeState *ms, BlockNumber blk, Sample *sample)
{
	Buffer		buffer = ReadBuffer(ms->index, blk);
	Page		page = BufferGetPage(buffer);

	_bt_lockbuf(ms->index, buffer, BT_READ);
	if (!PageIsNew(page) && merge_is_candidate(page))
	{
		Size		needed = merge_needed_size(ms, page);

		sample->n++;
		sample->needed += needed;
		sample->nitems += PageGetMaxOffsetNumber(page);
		if (needed < ms->merged_fill / 2)
			sample->nsparse++;
	}
	_bt_relbuf(ms->index, buffer);
}

/*
 * Rows come in, so pages that are full would split again: what is removed makes room for those.
 */
static bool
is_growing(const RemovedEntries *removed)
{
	return removed->grown > TABLE_GROWS;
}

/*
 * Do so many rows come in the place of those removed, as in a queue, that packed pages
 * would be full before the next VACUUM?  They would split, and take more than before.
 */
static bool
is_passed_through(const RemovedEntries *removed)
{
	double		room = 1 - PACKED_PERCENT / 100.0;

	return inplace_prune_between && removed->share + removed->grown > room &&
		removed->inserted > room;
}

/*
 * Pages that fill up and split at random have as much room as those that packing is
 * for, but nobody takes anything away from them.
 */
static bool
may_pack(MergeState *ms, const Sample *sample, double pages_each,
		 const RemovedEntries *removed)
{
	double		entries = sample->needed * pages_each;

	return (removed->xids_are_taken || removed->is_alone) && !is_growing(removed) &&
		!is_passed_through(removed) &&
		removed->bytes + removed->share * entries >= PACK_MIN_REMOVED * entries &&
		sample->n > PACK_PAGES &&
		sample->nitems >= PACK_MIN_ITEMS * sample->n &&
		sample->needed < PACK_BELOW(ms->packed_fill) * sample->n;
}

/* by pages spread evenly over the file; sets "pack" */
static bool
is_sparse(MergeState *ms, const RemovedEntries *removed)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(ms->index);
	BlockNumber step = Max(1, nblocks / SAMPLE_PAGES);
	Sample		sample = {0};

	for (BlockNumber blk = BTREE_METAPAGE + 1; blk < nblocks; blk += step)
	{
		VacuumDelayPoint();
		sample_page(ms, blk, &sample);
	}
	ms->pack = may_pack(ms, &sample, step, removed);
	return ms->pack ||
		(sample.nsparse > 1 && sample.nsparse * 100 >= sample.n * SPARSE_PAGES);
}

/* ---------------- notes ---------------- */

/* unlocks the page */
static void
note_leaf(MergeState *ms, Buffer buffer, LeafNote *note)
{
	Page		page = BufferGetPage(buffer);

	note->block = BufferGetBlockNumber(buffer);
	note->next = BTPageGetOpaque(page)->btpo_next;
	/* (no entries leave the leftmost one) */
	note->candidate = merge_is_candidate(page) && !P_LEFTMOST(BTPageGetOpaque(page));
	note->needed = 0;
	note->hikey = NULL;
	if (note->candidate)
	{
		note->needed = merge_needed_size(ms, page);
		note->hikey = CopyIndexTuple((IndexTuple) PageGetItem(page, PageGetItemId(page, P_HIKEY)));
	}
	_bt_relbuf(ms->index, buffer);
}

static void
forget_note(LeafNote *note)
{
	if (note->hikey)
		pfree(note->hikey);
	note->hikey = NULL;
}

/* all but the last "keep" ones */
static void
forget_notes(Window *w, int keep)
{
	int			drop = w->n - keep;

	for (int i = 0; i < drop; i++)
		forget_note(&w->notes[i]);
	memmove(w->notes, w->notes + drop, keep * sizeof(LeafNote));
	w->n = keep;
}

/* ---------------- changes ---------------- */

static MergeResult
change_neighbours(MergeState *ms, const LeafNote *left, const LeafNote *right,
				  MergeResult (*change) (MergeState *ms, const MergePair *pair))
{
	MergePair	pair = {left->block, right->block, left->hikey};
	MergeResult result = change(ms, &pair);

	if (result == MERGE_BUSY)
		ms->given_up++;
	return result;
}

/* the last two, of which one is left */
static void
merge_last_two(MergeState *ms, Window *w)
{
	LeafNote   *left = &w->notes[w->n - 2];
	LeafNote   *right = left + 1;

	if (change_neighbours(ms, left, right, merge_pages) != MERGE_DONE)
		return;
	right->needed += left->needed;
	ms->merged++;
	ms->given_up = 0;
	forget_note(left);
	*left = *right;
	w->n--;
}

/*
 * The last "len" ones become one less.  If that ends half way no harm is done.
 */
static void
pack_last(MergeState *ms, Window *w, int len)
{
	LeafNote   *first = &w->notes[w->n - len];
	LeafNote   *last = first + len - 1;

	for (LeafNote *right = last; right > first + 1; right--)
		if (change_neighbours(ms, right - 1, right, merge_shift_entries) == MERGE_BUSY)
			return;
	if (change_neighbours(ms, first, first + 1, merge_pages) == MERGE_DONE)
	{
		ms->merged++;
		ms->given_up = 0;
	}
}

/* how many of the last "len" ones has the parent of the first of them? */
static int
siblings_of_last(MergeState *ms, const Window *w, int len)
{
	const LeafNote *first = &w->notes[w->n - len];
	BlockNumber blocks[PACK_PAGES];

	for (int i = 0; i < len; i++)
		blocks[i] = first[i].block;
	return merge_siblings(ms, blocks, len, first->hikey);
}

/* how many of the last ones fit one page less?  0 if no number does */
static int
packable(MergeState *ms, const Window *w)
{
	Size		needed = w->notes[w->n - 1].needed;

	for (int len = 2; len <= w->n; len++)
	{
		const LeafNote *note = &w->notes[w->n - len];

		if (!note->candidate || note->needed == 0)
			break;
		needed += note->needed;
		if (needed <= (len == 2 ? ms->merged_fill : (len - 1) * ms->packed_fill))
			return len;
	}
	return 0;
}

/*
 * Go along the leaves.  Entries move to the right, so after a change the last page is
 * looked at again, with what it has got.
 */
static void
merge_along(MergeState *ms)
{
	Window		w = {0};
	BlockNumber next;
	BlockNumber visited = 0;

	note_leaf(ms, BtLeftmostLeaf(ms->index), &w.notes[w.n++]);
	next = w.notes[0].next;
	while (next != P_NONE && ms->given_up < GIVE_UP)
	{
		int			len;
		LeafNote   *last;

		VacuumDelayPoint();
		if (inplace_leaves_in_circle(ms->index, ++visited))
		{
			/* VACUUM has done what it has to */
			ereport(LOG,
					(errcode(ERRCODE_INDEX_CORRUPTED),
					 errmsg("right links of index \"%s\" lead in a circle, by way of block %u",
							RelationGetRelationName(ms->index), next),
					 errhint("Please REINDEX it.")));
			break;
		}
		if (w.n == (ms->pack ? PACK_PAGES : 2))
			forget_notes(&w, w.n - 1);
		last = &w.notes[w.n++];
		note_leaf(ms, _bt_getbuf(ms->index, next, BT_READ), last);
		next = last->next;

		len = last->candidate ? packable(ms, &w) : 0;
		if (!last->candidate)
			forget_notes(&w, 1);
		else if (len == 2)
			merge_last_two(ms, &w);
		else if (len > 2)
		{
			int			siblings = siblings_of_last(ms, &w, len);

			/* entries go from child to child of one parent only */
			if (siblings < len)
			{
				forget_notes(&w, len - Max(siblings, 1));
				continue;
			}
			pack_last(ms, &w, len);
			forget_notes(&w, 1);
			/* it has been filled */
			w.notes[0].needed = Max(w.notes[0].needed, ms->packed_fill);
		}
	}
	forget_notes(&w, 0);
}

/* ---------------- the index ---------------- */

static int
packed_percent(Relation index)
{
	return index->rd_options == NULL ? PACKED_PERCENT :
		Min(PACKED_PERCENT, ((BTOptions *) index->rd_options)->fillfactor);
}

/* a parent may have to be split, which nbtree does for its own only */
static void
merge_as_btree(MergeState *ms)
{
	ActsAsBtree as;

	/* nobody else deletes pages, or scans the index in physical order */
	Assert(CheckRelationLockedByMe(ms->table, ShareUpdateExclusiveLock, true));
	Assert(_bt_vacuum_cycleid(ms->index) == 0);

	inplace_act_as_btree(&as, ms->index);
	PG_TRY();
	{
		ms->inskey = _bt_mkscankey(ms->index, NULL);
		merge_along(ms);
	}
	PG_FINALLY();
	{
		inplace_act_as_itself(&as);
	}
	PG_END_TRY();
}

/*
 * Returns how many pages have been deleted.  They go into the free space map when
 * nbtree goes through the index the next time.
 */
BlockNumber
inplace_merge_leaves(IndexVacuumInfo *info, Relation table,
					 const RemovedEntries *removed)
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
	ms.dedup = inplace_index_deduplicates(index);
	ms.packed_fill = PAGE_ROOM * packed_percent(index) / 100;
	ms.merged_fill = is_growing(removed) ? GROWING_FILL : MERGED_FILL;
	/* (without room for pages that could be reused at once) */
	ms.vstate.info = info;
	ms.vstate.stats = &stats;
	ms.cxt = AllocSetContextCreate(CurrentMemoryContext, "inplace merge",
								   ALLOCSET_DEFAULT_SIZES);
	if (is_sparse(&ms, removed))
		merge_as_btree(&ms);
	MemoryContextDelete(ms.cxt);
	return ms.merged;
}

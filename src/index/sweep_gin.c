/*-------------------------------------------------------------------------
 *
 * sweep_gin.c
 *	  Going through a GIN index for VACUUM, to take out stale entries.
 *
 * GIN's own deletion asks about a TID, wherever it stands; what is stale is a TID
 * under a key that its row does not have any more.  So the leaf pages of the entry tree
 * are visited here, from left to right, and of each entry the posting list or tree.
 * First the list of pending entries is worked off: what is in it when VACUUM
 * has noted its rows comes into the tree.  Entries that are made later are those of rows
 * that have been changed, which VACUUM leaves alone.
 *
 * The keys of the rows as they are at present are extracted with no page locked, and
 * kept for a while, since a row has many.  What is found to be stale is deleted with
 * the page locked, if its row is unchanged still (present_row.c).  Between the two
 * the page may have changed: an entry that does not look as before has the page
 * visited again.
 *
 * An entry that is there when the sweep begins is met: pages of the entry tree are
 * never deleted, those of posting trees by VACUUM alone, of which there is one, and
 * splits move entries to the right.  A posting list that becomes a tree makes
 * its entry look otherwise.  Only the root, of either kind of tree, changes into an
 * inner page where it stands; then the tree is gone through again.
 *
 * An index whose key is computed, and not known to come out as it did when it was inserted
 * (key.c), loses nothing.  A row with another key than its own there keeps its mark.
 *
 * An entry whose TIDs have all gone stays, as with GIN's own deletion.  Empty
 * pages of posting trees are left for that to give back.
 *
 * Lock order: one page of the index at a time, exclusively for deletions, and under it
 * table pages, one at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/gin_private.h"
#include "commands/vacuum.h"
#include "index/key.h"
#include "index/other_method.h"
#include "index/present_row.h"
#include "index/sweep_gin.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "wal/log_gin.h"

/* ginvacuum.c's, which has no header */
struct GinVacuumState
{
	Relation	index;
	IndexBulkDeleteResult *result;
	IndexBulkDeleteCallback callback;
	void	   *callback_state;
	GinState	ginstate;
	BufferAccessStrategy strategy;
	MemoryContext tmpCxt;
};

/* the keys that a row has at present */
typedef struct RowKeys
{
	ItemPointerData tid;		/* must be first */
	bool		known;			/* else its entries are left alone */
	int			n[INDEX_MAX_KEYS];	/* of each column, in order */
	Datum	   *keys[INDEX_MAX_KEYS];
	GinNullCategory *categories[INDEX_MAX_KEYS];
} RowKeys;

typedef struct GinSweep
{
	Relation	table;
	Relation	index;
	StaleRows  *rows;
	BufferAccessStrategy strategy;
	GinState	ginstate;
	MemoryContext page_cxt;		/* of the page at hand */
	MemoryContext keys_cxt;		/* of the rows' keys */
	HTAB	   *keys;
	Size		memory;			/* for them */
	bool		deletes;		/* else rows with former keys keep their mark */
	int64		deleted;
	bool		emptied;		/* a page of a posting tree */
} GinSweep;

/* a key, and TIDs under it */
typedef struct GinEntry
{
	struct GinEntry *next;
	OffsetNumber off;			/* on the entry page */
	IndexTuple	itup;			/* as it was, a copy */
	OffsetNumber attnum;
	Datum		key;
	GinNullCategory category;
	BlockNumber tree;			/* of its TIDs, or InvalidBlockNumber */
	ItemPointer stale;			/* in order */
	int			nstale;
} GinEntry;

/* ---------------- the keys of rows ---------------- */

static void
forget_keys(GinSweep *gs)
{
	HASHCTL		ctl = {0};

	MemoryContextReset(gs->keys_cxt);
	ctl.keysize = sizeof(ItemPointerData);
	ctl.entrysize = sizeof(RowKeys);
	ctl.hcxt = gs->keys_cxt;
	gs->keys = hash_create("inplace gin sweep", 1024, &ctl,
						   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

typedef struct ExtractWork
{
	GinSweep   *gs;
	RowKeys    *rk;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
} ExtractWork;

static void
do_extract_work(void *arg)
{
	ExtractWork *ew = (ExtractWork *) arg;
	RowKeys    *rk = ew->rk;

	for (int i = 0; i < RelationGetDescr(ew->gs->index)->natts; i++)
	{
		int32		n;

		rk->keys[i] = ginExtractEntries(&ew->gs->ginstate, i + 1, ew->values[i],
										ew->isnull[i], &n, &rk->categories[i]);
		rk->n[i] = n;
	}
}

/*
 * If the key cannot be computed the row keeps its entries, and its mark.  Values may
 * be in the TOAST table.
 */
static void
extract_keys(GinSweep *gs, RowKeys *rk, InplaceTupleHeader tup)
{
	ExtractWork ew = {0};
	ResourceOwner owner = NULL;
	ErrorData  *error;
	KeyOf		key;

	ew.gs = gs;
	ew.rk = rk;
	key = inplace_key_guarded(gs->table, gs->index, tup, &rk->tid, true,
							  gs->keys_cxt, &owner, ew.values, ew.isnull, &error);
	if (key == KEY_FOUND &&
		!inplace_guarded(do_extract_work, &ew, gs->keys_cxt, &owner, &error))
		key = KEY_UNKNOWN;
	inplace_end_guarded(&owner);
	if (key == KEY_UNKNOWN)
		stale_rows_drop(gs->rows, &rk->tid);
	else
		rk->known = true;
}

static RowKeys *
keys_of_row(GinSweep *gs, ItemPointer tid)
{
	RowKeys    *rk;
	bool		found;
	MemoryContext old;
	InplaceTupleHeader tup;

	AssertNoPageLock();
	rk = hash_search(gs->keys, tid, HASH_FIND, NULL);
	if (rk != NULL)
		return rk;
	if (MemoryContextMemAllocated(gs->keys_cxt, true) > gs->memory)
		forget_keys(gs);

	old = MemoryContextSwitchTo(gs->keys_cxt);
	rk = hash_search(gs->keys, tid, HASH_ENTER, &found);
	rk->known = false;
	memset(rk->n, 0, sizeof(rk->n));
	tup = inplace_copy_noted_row(gs->table, tid);
	if (tup != NULL)
		extract_keys(gs, rk, tup);
	MemoryContextSwitchTo(old);
	return rk;
}

/* is the row known not to have the key? */
static bool
has_lost_key(GinSweep *gs, ItemPointer tid, const GinEntry *entry)
{
	RowKeys    *rk = keys_of_row(gs, tid);
	int			att = entry->attnum - 1;
	int			low = 0;
	int			high;

	if (!rk->known)
		return false;
	high = rk->n[att];
	while (low < high)
	{
		int			mid = low + (high - low) / 2;
		int			cmp = ginCompareEntries(&gs->ginstate, entry->attnum,
											entry->key, entry->category,
											rk->keys[att][mid],
											rk->categories[att][mid]);

		if (cmp == 0)
			return false;
		if (cmp < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return true;
}

/* note which of the TIDs under the entry's key are stale; no page is locked */
static void
find_stale(GinSweep *gs, GinEntry *entry, ItemPointer items, int nitems)
{
	entry->nstale = 0;
	entry->stale = palloc(Max(nitems, 1) * sizeof(ItemPointerData));
	for (int i = 0; i < nitems; i++)
	{
		if (!stale_rows_wanted(gs->rows, &items[i]))
			continue;
		CHECK_FOR_INTERRUPTS();
		if (!has_lost_key(gs, &items[i], entry))
			continue;
		if (gs->deletes)
			entry->stale[entry->nstale++] = items[i];
		else
			stale_rows_drop(gs->rows, &items[i]);
	}
	if (entry->nstale > 0)
		inplace_tell_standbys(gs->table, gs->rows);
}

static int
compare_items(const void *a, const void *b)
{
	return ItemPointerCompare((ItemPointer) a, (ItemPointer) b);
}

/* is the TID to be deleted?  The page that it stands on is locked. */
static bool
still_stale(GinSweep *gs, const GinEntry *entry, ItemPointer tid)
{
	if (bsearch(tid, entry->stale, entry->nstale, sizeof(ItemPointerData),
				compare_items) == NULL ||
		!inplace_noted_row_unchanged(gs->table, tid))
		return false;
	gs->deleted++;
	return true;
}

/* ---------------- posting trees ---------------- */

typedef struct TreeCallback
{
	GinSweep   *gs;
	GinEntry   *entry;
} TreeCallback;

static bool
tree_item_is_stale(ItemPointer tid, void *arg)
{
	TreeCallback *tc = (TreeCallback *) arg;

	return still_stale(tc->gs, tc->entry, tid);
}

static Buffer
read_page(GinSweep *gs, BlockNumber blk)
{
	return ReadBufferExtended(gs->index, MAIN_FORKNUM, blk, RBM_NORMAL, gs->strategy);
}

/* the leftmost leaf, pinned */
static Buffer
leftmost_tree_leaf(GinSweep *gs, BlockNumber root)
{
	BlockNumber blk = root;

	for (;;)
	{
		Buffer		buffer = read_page(gs, blk);
		Page		page = BufferGetPage(buffer);
		bool		leaf;

		LockBuffer(buffer, GIN_SHARE);
		leaf = GinPageIsLeaf(page);
		if (!leaf)
			blk = PostingItemGetBlockNumber(GinDataPageGetPostingItem(page, FirstOffsetNumber));
		LockBuffer(buffer, GIN_UNLOCK);
		if (leaf)
			return buffer;
		ReleaseBuffer(buffer);
	}
}

static void
delete_from_leaf(GinSweep *gs, Buffer buffer, GinEntry *entry)
{
	GinVacuumState gvs = {0};
	IndexBulkDeleteResult result = {0};
	TreeCallback tc = {gs, entry};

	gvs.index = gs->index;
	gvs.result = &result;
	gvs.callback = tree_item_is_stale;
	gvs.callback_state = &tc;
	gvs.ginstate = gs->ginstate;
	gvs.strategy = gs->strategy;
	gvs.tmpCxt = CurrentMemoryContext;
	ginVacuumPostingTreeLeaf(gs->index, buffer, &gvs);
}

/* one leaf, pinned; false if it is none any more.  *next is the one after it. */
static bool
sweep_tree_leaf(GinSweep *gs, Buffer buffer, GinEntry *entry, BlockNumber *next)
{
	Page		page = BufferGetPage(buffer);
	ItemPointerData all;
	ItemPointer items = NULL;
	int			nitems = 0;
	bool		leaf;

	ItemPointerSetMin(&all);
	LockBuffer(buffer, GIN_SHARE);
	leaf = GinPageIsLeaf(page);
	if (leaf)
	{
		items = GinDataLeafPageGetItems(page, &nitems, all);
		*next = GinPageGetOpaque(page)->rightlink;
	}
	LockBuffer(buffer, GIN_UNLOCK);
	if (!leaf)
		return false;

	find_stale(gs, entry, items, nitems);
	if (entry->nstale == 0)
		return true;
	LockBuffer(buffer, GIN_EXCLUSIVE);
	leaf = GinPageIsLeaf(page);
	if (leaf)
	{
		delete_from_leaf(gs, buffer, entry);
		gs->emptied |= GinDataLeafPageIsEmpty(page);
		*next = GinPageGetOpaque(page)->rightlink;
	}
	LockBuffer(buffer, GIN_UNLOCK);
	return leaf;
}

static void
sweep_tree(GinSweep *gs, GinEntry *entry)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext,
											  "inplace gin posting tree",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	Buffer		buffer = leftmost_tree_leaf(gs, entry->tree);

	for (;;)
	{
		BlockNumber next = InvalidBlockNumber;
		bool		leaf = sweep_tree_leaf(gs, buffer, entry, &next);

		ReleaseBuffer(buffer);
		MemoryContextReset(cxt);
		if (leaf && next == InvalidBlockNumber)
			break;
		VacuumDelayPoint();
		buffer = leaf ? read_page(gs, next) : leftmost_tree_leaf(gs, entry->tree);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
}

/* ---------------- the entry tree ---------------- */

/*
 * The entries of a copy of a page: those with stale TIDs in a list to *lists, those
 * with a tree of them to *trees.
 */
static void
look_at_entries(GinSweep *gs, Page copy, GinEntry **lists, GinEntry **trees)
{
	*lists = *trees = NULL;
	for (OffsetNumber off = FirstOffsetNumber; off <= PageGetMaxOffsetNumber(copy); off++)
	{
		GinEntry   *entry = palloc0(sizeof(GinEntry));
		IndexTuple	itup = (IndexTuple) PageGetItem(copy, PageGetItemId(copy, off));
		ItemPointer items;
		int			nitems;

		entry->off = off;
		entry->itup = itup;
		entry->attnum = gintuple_get_attrnum(&gs->ginstate, itup);
		entry->key = gintuple_get_key(&gs->ginstate, itup, &entry->category);
		entry->tree = InvalidBlockNumber;
		if (GinIsPostingTree(itup))
		{
			entry->tree = GinGetPostingTree(itup);
			entry->next = *trees;
			*trees = entry;
			continue;
		}
		items = ginReadTuple(&gs->ginstate, entry->attnum, itup, &nitems);
		find_stale(gs, entry, items, nitems);
		pfree(items);
		if (entry->nstale > 0)
		{
			entry->next = *lists;
			*lists = entry;
		}
	}
}

static bool
is_as_before(Page page, OffsetNumber off, IndexTuple itup)
{
	ItemId		lp = PageGetItemId(page, off);

	return ItemIdGetLength(lp) >= IndexTupleSize(itup) &&
		memcmp(PageGetItem(page, lp), itup, IndexTupleSize(itup)) == 0;
}

/* where the entry is on the locked page, as it was; InvalidOffsetNumber: nowhere */
static OffsetNumber
find_entry(Page page, const GinEntry *entry)
{
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);

	if (entry->off <= maxoff && is_as_before(page, entry->off, entry->itup))
		return entry->off;
	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
		if (is_as_before(page, off, entry->itup))
			return off;
	return InvalidOffsetNumber;
}

/* the entry without its stale TIDs, or NULL if it stays; the page is locked */
static IndexTuple
entry_without_stale(GinSweep *gs, GinEntry *entry)
{
	int			nitems;
	int			left = 0;
	ItemPointer items = ginReadTuple(&gs->ginstate, entry->attnum, entry->itup,
									 &nitems);
	GinPostingList *list = NULL;

	for (int i = 0; i < nitems; i++)
		if (!still_stale(gs, entry, &items[i]))
			items[left++] = items[i];
	if (left == nitems)
		return NULL;
	if (left > 0)
		list = ginCompressPostingList(items, left, GinMaxItemSize, NULL);
	return GinFormTuple(&gs->ginstate, entry->attnum, entry->key, entry->category,
						(char *) list, list ? SizeOfGinPostingList(list) : 0,
						left, true);
}

/*
 * Take the stale TIDs out of the lists.  The page is locked.  False if one of the
 * entries was not as before.
 */
static bool
delete_from_lists(GinSweep *gs, Buffer buffer, GinEntry *lists)
{
	Page		page = BufferGetPage(buffer);
	Page		changed = NULL;
	bool		all = true;

	for (GinEntry *entry = lists; entry != NULL; entry = entry->next)
	{
		OffsetNumber off = find_entry(changed ? changed : page, entry);
		IndexTuple	itup;

		if (off == InvalidOffsetNumber)
		{
			all = false;
			continue;
		}
		itup = entry_without_stale(gs, entry);
		if (itup == NULL)
			continue;
		if (changed == NULL)
			changed = PageGetTempPageCopy(page);
		PageIndexTupleDelete(changed, off);
		if (PageAddItem(changed, (Item) itup, IndexTupleSize(itup), off, false, false) != off)
			elog(ERROR, "failed to add item to index page in \"%s\"",
				 RelationGetRelationName(gs->index));
	}
	if (changed != NULL)
	{
		START_CRIT_SECTION();
		PageRestoreTempPage(changed, page);
		MarkBufferDirty(buffer);
		inplace_log_gin_entries(gs->index, buffer);
		END_CRIT_SECTION();
	}
	return all;
}

/*
 * One leaf page, pinned.  False if it is not a leaf any more, and has to be looked for
 * again; else *next is the page after it, unless *again says that it has to be visited
 * again itself.
 */
static bool
sweep_entry_page(GinSweep *gs, Buffer buffer, BlockNumber *next, bool *again)
{
	Page		page = BufferGetPage(buffer);
	Page		copy = palloc(BLCKSZ);
	GinEntry   *lists;
	GinEntry   *trees;
	bool		leaf;

	*again = false;
	LockBuffer(buffer, GIN_SHARE);
	memcpy(copy, page, BLCKSZ);
	LockBuffer(buffer, GIN_UNLOCK);
	if (!GinPageIsLeaf(copy))
		return false;
	*next = GinPageGetOpaque(copy)->rightlink;

	look_at_entries(gs, copy, &lists, &trees);
	if (lists != NULL)
	{
		LockBuffer(buffer, GIN_EXCLUSIVE);
		leaf = GinPageIsLeaf(page);
		if (leaf)
		{
			*again = !delete_from_lists(gs, buffer, lists);
			*next = GinPageGetOpaque(page)->rightlink;
		}
		LockBuffer(buffer, GIN_UNLOCK);
		if (!leaf)
			return false;
	}
	/* (if it is visited again these are all done with) */
	if (!*again)
		for (GinEntry *entry = trees; entry != NULL; entry = entry->next)
			sweep_tree(gs, entry);
	return true;
}

/* the leftmost leaf, pinned */
static Buffer
leftmost_entry_leaf(GinSweep *gs)
{
	BlockNumber blk = GIN_ROOT_BLKNO;

	for (;;)
	{
		Buffer		buffer = read_page(gs, blk);
		Page		page = BufferGetPage(buffer);
		bool		leaf;

		LockBuffer(buffer, GIN_SHARE);
		leaf = GinPageIsLeaf(page);
		if (!leaf)
			blk = GinGetDownlink((IndexTuple)
								 PageGetItem(page, PageGetItemId(page, FirstOffsetNumber)));
		LockBuffer(buffer, GIN_UNLOCK);
		if (leaf)
			return buffer;
		ReleaseBuffer(buffer);
	}
}

static void
sweep_entries(GinSweep *gs)
{
	Buffer		buffer = leftmost_entry_leaf(gs);

	for (;;)
	{
		BlockNumber next = InvalidBlockNumber;
		bool		again;
		bool		leaf = sweep_entry_page(gs, buffer, &next, &again);

		MemoryContextReset(gs->page_cxt);
		VacuumDelayPoint();
		if (leaf && again)
			continue;
		ReleaseBuffer(buffer);
		if (leaf && next == InvalidBlockNumber)
			break;
		buffer = leaf ? read_page(gs, next) : leftmost_entry_leaf(gs);
	}
}

/*
 * Delete the entries of the rows' former keys.  Keys take so many bytes of memory.
 * *emptied: pages may be given back.
 */
int64
inplace_sweep_gin(Relation table, Relation index, StaleRows *rows, Size memory,
				  BufferAccessStrategy strategy, bool *emptied)
{
	GinSweep	gs = {0};
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext,
											  "inplace gin sweep",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);

	(void) inplace_index_key(index);
	stale_rows_begin_index(rows, false);
	gs.table = table;
	gs.index = index;
	gs.rows = rows;
	gs.deletes = inplace_other_keys_are_known(index);
	gs.memory = memory;
	gs.strategy = strategy;
	initGinState(&gs.ginstate, index);
	gs.keys_cxt = AllocSetContextCreate(cxt, "inplace gin keys",
										ALLOCSET_DEFAULT_SIZES);
	forget_keys(&gs);
	gs.page_cxt = AllocSetContextCreate(cxt, "inplace gin page",
										ALLOCSET_DEFAULT_SIZES);

	/* what is in the list now; only that of later changes may be left */
	ginInsertCleanup(&gs.ginstate, false, false, true, NULL);

	MemoryContextSwitchTo(gs.page_cxt);
	sweep_entries(&gs);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	*emptied = gs.emptied;
	return gs.deleted;
}

/*-------------------------------------------------------------------------
 *
 * check_other.c
 *	  inplace.check(): the entries of GIN, hash and GiST indexes, with their keys.
 *
 * Such an index is walked through (CheckOtherWalk): what each entry says is told as the row's TID
 * and a digest of the key.  For GIN each key of a TID counts as an entry.  Then a row's keys
 * (CheckOtherRowKeys) are looked for among the digests.  Of those that are not there the
 * index is asked (CheckOtherHasEntry): digests are of bytes, and keys need only be equal;
 * and a walk may have missed an entry that was moved meanwhile.
 *
 * Hash and GiST indexes are walked block by block, and splits move entries to blocks that have been
 * looked at.  The search for an entry goes as the method's own scans go.  For GiST it relies on what
 * the operator class does (gist_entry.c), so what it does not find is looked for by another walk.
 *
 * GIN is walked from left to right: first the list of pending entries, then the leaves of the
 * entry tree, and from there the posting trees.  Entries come into the tree before they leave the
 * list.  The pages of the list are copied with the next one locked before the one is let go of, which
 * keeps them from being taken away.  In the entry tree pages are split to the right, and never
 * deleted.  Those that are deleted from a posting tree still lead to the right, and are not used
 * again as long as there is our snapshot.  (On a standby nothing sees to that; one that is a page of
 * another kind by now is no finding there.)
 *
 * Pages are copied, and looked at with nothing locked, once they are seen to be what they should.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/gin_private.h"
#include "access/gist_private.h"
#include "access/hash.h"
#include "access/xlog.h"
#include "catalog/pg_am_d.h"
#include "common/hashfn.h"
#include "index/insert_info.h"
#include "index/other_entry.h"
#include "insight/check_btree.h"
#include "insight/check_other.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

typedef struct Walk
{
	Relation	index;
	GinState   *gin;
	GISTSTATE  *gist;
	CheckOtherEntry tell;
	void	   *arg;
	int64		visited;		/* pages by links */
	MemoryContext cxt;			/* of one page */
} Walk;

static void
begin_walk(Walk *walk, Relation index, CheckOtherEntry tell, void *arg)
{
	memset(walk, 0, sizeof(Walk));
	walk->index = index;
	walk->tell = tell;
	walk->arg = arg;
	if (index->rd_rel->relam == GIN_AM_OID)
		walk->gin = inplace_gin_state(index);
	else if (index->rd_rel->relam == GIST_AM_OID)
		walk->gist = inplace_gist_state(index);
	walk->cxt = AllocSetContextCreate(CurrentMemoryContext, "inplace check index page",
									  ALLOCSET_DEFAULT_SIZES);
}

/* ---------------- digests ---------------- */

static uint64
digest_of_bytes(StringInfo buf)
{
	return hash_bytes_extended((unsigned char *) buf->data, buf->len, 0);
}

static uint64
digest_of_gin_key(GinState *gin, OffsetNumber attnum, Datum key, GinNullCategory category)
{
	StringInfoData buf;
	uint64		result;

	initStringInfo(&buf);
	appendBinaryStringInfo(&buf, (char *) &attnum, sizeof(attnum));
	appendStringInfoChar(&buf, (char) category);
	if (category == GIN_CAT_NORM_KEY)
		CheckFingerprint(&buf, TupleDescAttr(gin->origTupdesc, attnum - 1), key, false);
	result = digest_of_bytes(&buf);
	pfree(buf.data);
	return result;
}

static uint64
digest_of_gist_entry(GISTSTATE *gist, IndexTuple itup)
{
	TupleDesc	desc = gist->leafTupdesc;
	StringInfoData buf;
	uint64		result;

	initStringInfo(&buf);
	for (int i = 0; i < desc->natts; i++)
	{
		bool		isnull;
		Datum		value = index_getattr(itup, i + 1, desc, &isnull);

		CheckFingerprint(&buf, TupleDescAttr(desc, i), value, isnull);
	}
	result = digest_of_bytes(&buf);
	pfree(buf.data);
	return result;
}

/* ---------------- pages ---------------- */

INPLACE_NORETURN static void
damaged(BlockNumber blk, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("block %u: %s", blk, what)));
}

/* nothing outside the page is looked at */
static void
check_copy(BlockNumber blk, Page page, Size special)
{
	PageHeader	ph = (PageHeader) page;

	if (ph->pd_special != BLCKSZ - MAXALIGN(special) ||
		ph->pd_lower < SizeOfPageHeaderData || ph->pd_lower > ph->pd_upper ||
		ph->pd_upper > ph->pd_special)
		damaged(blk, "page header is wrong");
}

/* an entry on the copy of a page */
static IndexTuple
entry_at(BlockNumber blk, Page page, OffsetNumber off)
{
	ItemId		lp = PageGetItemId(page, off);
	IndexTuple	itup;

	if (!ItemIdHasStorage(lp) || ItemIdGetOffset(lp) < ((PageHeader) page)->pd_upper ||
		ItemIdGetOffset(lp) != MAXALIGN(ItemIdGetOffset(lp)) ||
		ItemIdGetLength(lp) < sizeof(IndexTupleData) ||
		ItemIdGetOffset(lp) + ItemIdGetLength(lp) > ((PageHeader) page)->pd_special)
		damaged(blk, "line pointer leads to no entry");
	itup = (IndexTuple) PageGetItem(page, lp);
	if (IndexTupleSize(itup) > ItemIdGetLength(lp) ||
		IndexTupleSize(itup) < sizeof(IndexTupleData))
		damaged(blk, "entry is longer than its line pointer says");
	return itup;
}

static Page
copy_of(Relation index, BlockNumber blk)
{
	Page		copy = palloc(BLCKSZ);
	Buffer		buffer = ReadBuffer(index, blk);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(copy, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	return copy;
}

/* ---------------- hash and GiST ---------------- */

static void
tell_hash_page(Walk *walk, BlockNumber blk, Page page)
{
	HashPageOpaque opaque;

	check_copy(blk, page, sizeof(HashPageOpaqueData));
	opaque = HashPageGetOpaque(page);
	if (opaque->hasho_page_id != HASHO_PAGE_ID)
		damaged(blk, "page is not one of a hash index");
	if (!(opaque->hasho_flag & (LH_BUCKET_PAGE | LH_OVERFLOW_PAGE)))
		return;
	for (OffsetNumber off = FirstOffsetNumber; off <= PageGetMaxOffsetNumber(page); off++)
	{
		IndexTuple	itup = entry_at(blk, page, off);

		if (IndexTupleHasNulls(itup) ||
			IndexTupleSize(itup) < sizeof(IndexTupleData) + sizeof(uint32))
			damaged(blk, "entry has no hash value");
		if (!ItemIdIsDead(PageGetItemId(page, off)))
			walk->tell(walk->arg, &itup->t_tid, _hash_get_indextuple_hashkey(itup));
	}
}

static void
tell_gist_page(Walk *walk, BlockNumber blk, Page page)
{
	check_copy(blk, page, sizeof(GISTPageOpaqueData));
	if (GistPageGetOpaque(page)->gist_page_id != GIST_PAGE_ID)
		damaged(blk, "page is not one of a GiST index");
	if (!GistPageIsLeaf(page) || GistPageIsDeleted(page))
		return;
	for (OffsetNumber off = FirstOffsetNumber; off <= PageGetMaxOffsetNumber(page); off++)
	{
		IndexTuple	itup = entry_at(blk, page, off);

		if (!InsightValuesFit(walk->gist->leafTupdesc, itup, walk->gist->leafTupdesc->natts,
							  IndexTupleSize(itup)))
			damaged(blk, "entry's values do not fit it");
		if (!ItemIdIsDead(PageGetItemId(page, off)))
			walk->tell(walk->arg, &itup->t_tid, digest_of_gist_entry(walk->gist, itup));
	}
}

static void
walk_blocks(Walk *walk)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(walk->index);
	MemoryContext old = MemoryContextSwitchTo(walk->cxt);

	/* (the first block of a hash index is its meta page) */
	for (BlockNumber blk = walk->gist ? 0 : 1; blk < nblocks; blk++)
	{
		Page		page = copy_of(walk->index, blk);

		CHECK_FOR_INTERRUPTS();
		if (PageIsNew(page))
			;
		else if (walk->gist)
			tell_gist_page(walk, blk, page);
		else
			tell_hash_page(walk, blk, page);
		MemoryContextReset(walk->cxt);
	}
	MemoryContextSwitchTo(old);
}

/* ---------------- GIN ---------------- */

/* links that lead round are not followed for ever */
static void
count_page(Walk *walk, BlockNumber blk)
{
	walk->visited++;
	if (walk->visited % 1024 == 0 &&
		walk->visited > 2 * (int64) RelationGetNumberOfBlocks(walk->index) + 1024)
		damaged(blk, "links between pages lead round");
}

static Page
copy_of_gin(Walk *walk, BlockNumber blk, bool data)
{
	Page		page = copy_of(walk->index, blk);

	CHECK_FOR_INTERRUPTS();
	count_page(walk, blk);
	if (PageIsNew(page))
		damaged(blk, "page is new");
	check_copy(blk, page, sizeof(GinPageOpaqueData));
	if (GinPageIsList(page) || GinPageIsData(page) != data)
	{
		if (data && RecoveryInProgress())
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("page %u of index \"%s\" has been used again while it was checked",
							blk, RelationGetRelationName(walk->index))));
		damaged(blk, "page is of another kind than what leads to it");
	}
	return page;
}

/* a key, its column, and what kind of null it is */
typedef struct GinKey
{
	OffsetNumber attnum;
	Datum		key;
	GinNullCategory category;
} GinKey;

/* "end": where in the entry the key ends at most */
static void
get_gin_key(Walk *walk, BlockNumber blk, IndexTuple itup, int end, GinKey *k)
{
	GinState   *gin = walk->gin;
	int			begin = IndexInfoFindDataOffset(itup->t_info);
	int16		attnum = 1;

	/* (a null key has its category there) */
	if (begin + (gin->oneCol ? 0 : (int) sizeof(attnum)) + (IndexTupleHasNulls(itup) ? 1 : 0) > end)
		damaged(blk, "entry's key does not fit it");
	if (!gin->oneCol)
		memcpy(&attnum, (char *) itup + begin, sizeof(attnum));
	if (attnum < 1 || attnum > gin->origTupdesc->natts)
		damaged(blk, "entry is of a column that there is not");
	if (gin->oneCol ? !InsightValuesFit(gin->origTupdesc, itup, 1, end) :
		!InsightValuesFit(gin->tupdesc[attnum - 1], itup, 2, end))
		damaged(blk, "entry's key does not fit it");
	k->attnum = attnum;
	k->key = gintuple_get_key(gin, itup, &k->category);
}

/* copies of the pages of pending entries, as of one moment; in CurrentMemoryContext */
static List *
copy_pending_pages(Walk *walk)
{
	Buffer		buffer = ReadBuffer(walk->index, GIN_METAPAGE_BLKNO);
	List	   *pages = NIL;
	BlockNumber next;

	LockBuffer(buffer, GIN_SHARE);
	next = GinPageGetMeta(BufferGetPage(buffer))->head;
	while (next != InvalidBlockNumber)
	{
		BlockNumber blk = next;
		Buffer		last = buffer;
		Page		copy = palloc(BLCKSZ);

		buffer = ReadBuffer(walk->index, blk);
		LockBuffer(buffer, GIN_SHARE);
		UnlockReleaseBuffer(last);
		memcpy(copy, BufferGetPage(buffer), BLCKSZ);
		InplaceEndIfAsked();
		count_page(walk, blk);
		check_copy(blk, copy, sizeof(GinPageOpaqueData));
		if (!GinPageIsList(copy))
			damaged(blk, "page is not one of pending entries");
		pages = lappend(pages, copy);
		next = GinPageGetOpaque(copy)->rightlink;
	}
	UnlockReleaseBuffer(buffer);
	return pages;
}

/* an entry of a leaf page: where its key ends at most, and its TIDs fit it */
static int
end_of_key(BlockNumber blk, IndexTuple itup)
{
	Size		size = IndexTupleSize(itup);
	Size		begin;

	if (GinIsPostingTree(itup))
		return size;
	begin = GinGetPostingOffset(itup);
	if (GinGetNPosting(itup) == 0)
		return Min(begin, size);
	if (begin < sizeof(IndexTupleData) || begin > size ||
		(GinItupIsCompressed(itup) ?
		 begin + offsetof(GinPostingList, bytes) > size ||
		 begin + SizeOfGinPostingList((GinPostingList *) GinGetPosting(itup)) > size :
		 begin + GinGetNPosting(itup) * sizeof(ItemPointerData) > size))
		damaged(blk, "posting list does not fit its entry");
	return begin;
}

/* do the lists of TIDs on a leaf of a posting tree end where they should? */
static void
check_posting_leaf(BlockNumber blk, Page page)
{
	char	   *at;
	char	   *end;

	if (!GinPageIsCompressed(page))
	{
		if (GinPageGetOpaque(page)->maxoff * sizeof(ItemPointerData) > GinDataPageMaxDataSize)
			damaged(blk, "page has more TIDs than fit it");
		return;
	}
	at = (char *) GinDataLeafPageGetPostingList(page);
	end = page + ((PageHeader) page)->pd_lower;
	if (end < at)
		damaged(blk, "page header is wrong");
	while (at < end)
	{
		if (end - at < (int) offsetof(GinPostingList, bytes) ||
			end - at < (int) SizeOfGinPostingList((GinPostingList *) at))
			damaged(blk, "posting list does not fit its page");
		at += SizeOfGinPostingList((GinPostingList *) at);
	}
}

typedef void (*PendingEntry) (Walk *walk, ItemPointer tid, GinKey *key, void *arg);

static void
walk_pending(Walk *walk, PendingEntry fn, void *arg)
{
	ListCell   *lc;

	foreach(lc, copy_pending_pages(walk))
	{
		Page		page = (Page) lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		for (OffsetNumber off = FirstOffsetNumber; off <= PageGetMaxOffsetNumber(page); off++)
		{
			IndexTuple	itup = entry_at(GIN_METAPAGE_BLKNO, page, off);
			GinKey		key;

			get_gin_key(walk, GIN_METAPAGE_BLKNO, itup, IndexTupleSize(itup), &key);
			fn(walk, &itup->t_tid, &key, arg);
		}
	}
}

/* the leftmost leaf below a root */
static Page
leftmost_leaf(Walk *walk, BlockNumber root, bool data)
{
	BlockNumber blk = root;

	for (;;)
	{
		Page		page = copy_of_gin(walk, blk, data);

		if (GinPageIsLeaf(page))
			return page;
		if (data)
		{
			if (GinPageGetOpaque(page)->maxoff < FirstOffsetNumber)
				damaged(blk, "inner page is empty");
			blk = PostingItemGetBlockNumber(GinDataPageGetPostingItem(page, FirstOffsetNumber));
		}
		else
		{
			if (PageGetMaxOffsetNumber(page) < FirstOffsetNumber)
				damaged(blk, "inner page is empty");
			blk = GinGetDownlink(entry_at(blk, page, FirstOffsetNumber));
		}
		pfree(page);
	}
}

/* tell of all TIDs, or find one: true */
static bool
look_at_tids(Walk *walk, ItemPointer items, int nitems, uint64 digest, ItemPointer sought)
{
	for (int i = 0; i < nitems; i++)
	{
		if (sought == NULL)
			walk->tell(walk->arg, &items[i], digest);
		else if (ItemPointerEquals(&items[i], sought))
			return true;
	}
	return false;
}

static bool
walk_posting_tree(Walk *walk, BlockNumber root, uint64 digest, ItemPointer sought)
{
	BlockNumber blk = root;
	Page		page = leftmost_leaf(walk, root, true);
	ItemPointerData all;

	ItemPointerSetMin(&all);
	for (;;)
	{
		BlockNumber next = GinPageGetOpaque(page)->rightlink;

		if (!GinPageIsDeleted(page))
		{
			int			nitems;
			ItemPointer items;

			check_posting_leaf(blk, page);
			items = GinDataLeafPageGetItems(page, &nitems, all);
			if (look_at_tids(walk, items, nitems, digest, sought))
				return true;
			pfree(items);
		}
		pfree(page);
		if (next == InvalidBlockNumber)
			return false;
		blk = next;
		page = copy_of_gin(walk, blk, true);
	}
}

/* the TIDs of an entry of a leaf page, which is a copy */
static bool
look_at_gin_entry(Walk *walk, BlockNumber blk, IndexTuple itup, GinKey *key,
				  uint64 digest, ItemPointer sought)
{
	ItemPointer items;
	int			nitems;

	if (GinIsPostingTree(itup))
		return walk_posting_tree(walk, GinGetPostingTree(itup), digest, sought);
	(void) end_of_key(blk, itup);
	items = ginReadTuple(walk->gin, key->attnum, itup, &nitems);
	return look_at_tids(walk, items, nitems, digest, sought);
}

static void
tell_pending(Walk *walk, ItemPointer tid, GinKey *key, void *arg)
{
	walk->tell(walk->arg, tid,
			   digest_of_gin_key(walk->gin, key->attnum, key->key, key->category));
}

static void
walk_gin(Walk *walk)
{
	MemoryContext old = MemoryContextSwitchTo(walk->cxt);
	BlockNumber blk = GIN_ROOT_BLKNO;
	Page		page;

	walk_pending(walk, tell_pending, NULL);
	MemoryContextReset(walk->cxt);
	page = leftmost_leaf(walk, blk, false);
	for (;;)
	{
		BlockNumber next = GinPageGetOpaque(page)->rightlink;

		for (OffsetNumber off = FirstOffsetNumber; off <= PageGetMaxOffsetNumber(page); off++)
		{
			IndexTuple	itup = entry_at(blk, page, off);
			GinKey		key;

			get_gin_key(walk, blk, itup, end_of_key(blk, itup), &key);
			look_at_gin_entry(walk, blk, itup, &key,
							  digest_of_gin_key(walk->gin, key.attnum, key.key, key.category),
							  NULL);
		}
		MemoryContextReset(walk->cxt);
		if (next == InvalidBlockNumber)
			break;
		blk = next;
		page = copy_of_gin(walk, blk, false);
	}
	MemoryContextSwitchTo(old);
}

typedef struct PendingSearch
{
	ItemPointer tid;
	const CheckOtherKey *key;
	bool		found;
} PendingSearch;

static void
is_pending(Walk *walk, ItemPointer tid, GinKey *key, void *arg)
{
	PendingSearch *search = (PendingSearch *) arg;
	const CheckOtherKey *k = search->key;

	if (ItemPointerEquals(tid, search->tid) && key->attnum == k->attnum &&
		ginCompareEntries(walk->gin, key->attnum, key->key, key->category,
						  k->key, k->category) == 0)
		search->found = true;
}

/* (in this order: what leaves the list is in the tree by then) */
static bool
gin_has_entry(Walk *walk, const CheckOtherKey *key, ItemPointer tid)
{
	PendingSearch search = {tid, key, false};
	GinBtreeData btree;
	GinBtreeStack *stack;
	IndexTuple	itup = NULL;
	GinKey		k = {key->attnum, key->key, key->category};
	BlockNumber blk;

	walk_pending(walk, is_pending, &search);
	if (search.found)
		return true;
	ginPrepareEntryScan(&btree, key->attnum, key->key, key->category, walk->gin);
	stack = GinFindLeafToRead(&btree);
	blk = stack->blkno;
	if (btree.findItem(&btree, stack))
	{
		Page		page = BufferGetPage(stack->buffer);

		itup = CopyIndexTuple((IndexTuple) PageGetItem(page, PageGetItemId(page, stack->off)));
	}
	LockBuffer(stack->buffer, GIN_UNLOCK);
	freeGinBtreeStack(stack);
	return itup != NULL && look_at_gin_entry(walk, blk, itup, &k, 0, tid);
}

/* ---------------- what is exported ---------------- */

/* of each entry, and for GIN of each key of each row; "tell" may not keep the TID */
void
CheckOtherWalk(Relation index, CheckOtherEntry tell, void *arg)
{
	Walk		walk;

	begin_walk(&walk, index, tell, arg);
	if (walk.gin)
		walk_gin(&walk);
	else
		walk_blocks(&walk);
	MemoryContextDelete(walk.cxt);
}

/*
 * What entries are a row's, whose values those are, to have?  In CurrentMemoryContext.
 */
int
CheckOtherRowKeys(Relation index, Datum *values, bool *isnull, CheckOtherKey **keys)
{
	Oid			relam = index->rd_rel->relam;
	GinState   *gin;
	int			n = 0;

	if (relam != GIN_AM_OID)
	{
		*keys = palloc0(sizeof(CheckOtherKey));
		if (relam == GIST_AM_OID)
		{
			GISTSTATE  *gist = inplace_gist_state(index);

			(*keys)->digest = digest_of_gist_entry(gist, gistFormTuple(gist, index, values,
																	   isnull, true));
			return 1;
		}
		/* (a hash index has no nulls) */
		if (isnull[0])
			return 0;
		(*keys)->digest = _hash_datum2hashkey(index, values[0]);
		return 1;
	}
	gin = inplace_gin_state(index);
	*keys = NULL;
	for (int att = 1; att <= gin->origTupdesc->natts; att++)
	{
		GinNullCategory *categories;
		int32		nentries;
		Datum	   *entries = ginExtractEntries(gin, att, values[att - 1], isnull[att - 1],
												&nentries, &categories);

		if (nentries <= 0)
			continue;
		*keys = *keys == NULL ? palloc(sizeof(CheckOtherKey) * nentries) :
			repalloc(*keys, sizeof(CheckOtherKey) * (n + nentries));
		for (int i = 0; i < nentries; i++)
		{
			CheckOtherKey *key = &(*keys)[n++];

			key->attnum = att;
			key->key = entries[i];
			key->category = categories[i];
			key->digest = digest_of_gin_key(gin, att, entries[i], categories[i]);
		}
	}
	return n;
}

typedef struct SearchByWalk
{
	ItemPointer tid;
	uint64		digest;
	bool		found;
} SearchByWalk;

static void
is_sought(void *arg, ItemPointer tid, uint64 digest)
{
	SearchByWalk *search = (SearchByWalk *) arg;

	if (digest == search->digest && ItemPointerEquals(tid, search->tid))
		search->found = true;
}

/* Has the index this entry of the row's? */
bool
CheckOtherHasEntry(Relation index, const CheckOtherKey *key, Datum *values, bool *isnull,
				   ItemPointer tid)
{
	MemoryContext old;
	Walk		walk;
	SearchByWalk search = {tid, key->digest, false};

	begin_walk(&walk, index, NULL, NULL);
	old = MemoryContextSwitchTo(walk.cxt);
	if (walk.gin)
		search.found = gin_has_entry(&walk, key, tid);
	else if (walk.gist == NULL)
		search.found = inplace_hash_find_entry(index, values[0], tid, ONLY_LOOKING) == ENTRY_THERE;
	else
	{
		EntryValues v;

		memcpy(v.values, values, sizeof(Datum) * IndexRelationGetNumberOfAttributes(index));
		memcpy(v.isnull, isnull, sizeof(bool) * IndexRelationGetNumberOfAttributes(index));
		search.found = inplace_gist_find_entry(index, &v, tid, ONLY_LOOKING) == ENTRY_THERE;
		if (!search.found)
			CheckOtherWalk(index, is_sought, &search);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(walk.cxt);
	return search.found;
}

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
 * That goes for inner pages, too, in the walk and in the search: GIN's and hash's own searches
 * trust a page, and do not end where links lead round.  So those here go the same way on copies.
 * What a GiST operator class does with the bytes of a damaged key is its own affair.
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
#include "insight/check_copy.h"
#include "insight/check_other.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
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

/* links that lead round are not followed for ever */
static void
count_page(Walk *walk, BlockNumber blk)
{
	walk->visited++;
	if (walk->visited % 1024 == 0 && InsightTooManyPages(walk->index, walk->visited))
		InsightDamaged(blk, "links between pages lead round");
}

/* an entry of an inner page leads to a page below the root, which came before it */
static void
check_downlink(Walk *walk, BlockNumber blk, BlockNumber root, BlockNumber downlink)
{
	if (downlink <= root || downlink >= RelationGetNumberOfBlocks(walk->index))
		InsightDamaged(blk, "downlink leads to no page");
}

/* ---------------- hash and GiST ---------------- */

static void
check_hash_page(BlockNumber blk, Page page)
{
	InsightCheckCopy(blk, page, sizeof(HashPageOpaqueData));
	if (HashPageGetOpaque(page)->hasho_page_id != HASHO_PAGE_ID)
		InsightDamaged(blk, "page is not one of a hash index");
}

static IndexTuple
hash_entry_at(BlockNumber blk, Page page, OffsetNumber off)
{
	IndexTuple	itup = InsightEntryAt(blk, page, off);

	if (IndexTupleHasNulls(itup) ||
		IndexTupleSize(itup) < sizeof(IndexTupleData) + sizeof(uint32))
		InsightDamaged(blk, "entry has no hash value");
	return itup;
}

static void
tell_hash_page(Walk *walk, BlockNumber blk, Page page)
{
	check_hash_page(blk, page);
	if (!(HashPageGetOpaque(page)->hasho_flag & (LH_BUCKET_PAGE | LH_OVERFLOW_PAGE)))
		return;
	for (OffsetNumber off = FirstOffsetNumber; off <= PageGetMaxOffsetNumber(page); off++)
	{
		IndexTuple	itup = hash_entry_at(blk, page, off);

		if (!ItemIdIsDead(PageGetItemId(page, off)))
			walk->tell(walk->arg, &itup->t_tid, _hash_get_indextuple_hashkey(itup));
	}
}

/* a leaf page or an inner one */
static void
check_gist_page(Walk *walk, BlockNumber blk, Page page)
{
	TupleDesc	desc = walk->gist->leafTupdesc;
	int			natts = desc->natts;

	InsightCheckCopy(blk, page, sizeof(GISTPageOpaqueData));
	if (GistPageGetOpaque(page)->gist_page_id != GIST_PAGE_ID)
		InsightDamaged(blk, "page is not one of a GiST index");
	if (GistPageIsDeleted(page))
		return;
	/* (inner pages have no INCLUDE columns) */
	if (!GistPageIsLeaf(page))
		natts = IndexRelationGetNumberOfKeyAttributes(walk->index);
	for (OffsetNumber off = FirstOffsetNumber; off <= PageGetMaxOffsetNumber(page); off++)
	{
		IndexTuple	itup = InsightEntryAt(blk, page, off);

		if (!InsightValuesFit(desc, itup, natts, IndexTupleSize(itup)))
			InsightDamaged(blk, "entry's values do not fit it");
		if (!GistPageIsLeaf(page))
			check_downlink(walk, blk, GIST_ROOT_BLKNO,
						   ItemPointerGetBlockNumberNoCheck(&itup->t_tid));
	}
}

static void
tell_gist_page(Walk *walk, BlockNumber blk, Page page)
{
	check_gist_page(walk, blk, page);
	if (!GistPageIsLeaf(page) || GistPageIsDeleted(page))
		return;
	for (OffsetNumber off = FirstOffsetNumber; off <= PageGetMaxOffsetNumber(page); off++)
	{
		IndexTuple	itup = InsightEntryAt(blk, page, off);

		if (!ItemIdIsDead(PageGetItemId(page, off)))
			walk->tell(walk->arg, &itup->t_tid, digest_of_gist_entry(walk->gist, itup));
	}
}

static void
walk_blocks(Walk *walk)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(walk->index);
	MemoryContext old = MemoryContextSwitchTo(walk->cxt);

	for (BlockNumber blk = 0; blk < nblocks; blk++)
	{
		Page		page = InsightCopyBlock(walk->index, blk);

		CHECK_FOR_INTERRUPTS();
		/* (a root or a meta page is there from the first) */
		if (PageIsNew(page) && blk == 0)
			InsightDamaged(blk, "page is new");
		else if (PageIsNew(page))
			;
		else if (walk->gist)
			tell_gist_page(walk, blk, page);
		else
			tell_hash_page(walk, blk, page);
		MemoryContextReset(walk->cxt);
	}
	MemoryContextSwitchTo(old);
}

/* the page of a block that is pinned, and that a link leads to */
static Page
copy_of_hash(Walk *walk, Buffer buffer, uint16 type)
{
	BlockNumber blk = BufferGetBlockNumber(buffer);
	Page		page = InsightCopyBuffer(buffer);

	CHECK_FOR_INTERRUPTS();
	count_page(walk, blk);
	if (PageIsNew(page))
		InsightDamaged(blk, "page is new");
	check_hash_page(blk, page);
	if ((HashPageGetOpaque(page)->hasho_flag & LH_PAGE_TYPE) != type)
		InsightDamaged(blk, "page is of another kind than what leads to it");
	return page;
}

static HashMetaPage
copy_of_hash_meta(Walk *walk)
{
	Buffer		buffer = InsightReadBlock(walk->index, HASH_METAPAGE);
	HashMetaPage metap = HashPageGetMeta(copy_of_hash(walk, buffer, LH_META_PAGE));

	ReleaseBuffer(buffer);
	/* (each bucket has a page, from the first) */
	if (metap->hashm_magic != HASH_MAGIC ||
		metap->hashm_maxbucket >= RelationGetNumberOfBlocks(walk->index))
		InsightDamaged(HASH_METAPAGE, "meta page is wrong");
	return metap;
}

typedef struct PinnedBucket
{
	Bucket		bucket;
	Buffer		buffer;			/* its first page */
} PinnedBucket;

/*
 * The bucket of a hash value, and the one that it is being split from.  (As
 * _hash_getbucketbuf_from_hashkey() finds it, and hash_entry.c says why either is pinned.)
 */
static void
pin_buckets(Walk *walk, uint32 hash, PinnedBucket *its, PinnedBucket *old)
{
	for (;;)
	{
		HashMetaPage metap = copy_of_hash_meta(walk);
		HashPageOpaque opaque;

		its->bucket = _hash_hashkey2bucket(hash, metap->hashm_maxbucket,
										   metap->hashm_highmask, metap->hashm_lowmask);
		if (its->bucket > metap->hashm_maxbucket)
			InsightDamaged(HASH_METAPAGE, "meta page is wrong");
		its->buffer = InsightReadBlock(walk->index, BUCKET_TO_BLKNO(metap, its->bucket));
		opaque = HashPageGetOpaque(copy_of_hash(walk, its->buffer, LH_BUCKET_PAGE));
		/* otherwise it has been split since the meta page was read */
		if (opaque->hasho_prevblkno <= metap->hashm_maxbucket)
		{
			if (H_BUCKET_BEING_POPULATED(opaque) && its->bucket > 0)
			{
				old->bucket = its->bucket & (((Bucket) 1 << pg_leftmost_one_pos32(its->bucket)) - 1);
				old->buffer = InsightReadBlock(walk->index, BUCKET_TO_BLKNO(metap, old->bucket));
			}
			return;
		}
		ReleaseBuffer(its->buffer);
	}
}

static bool
bucket_has_entry(Walk *walk, PinnedBucket *pinned, uint32 hash, ItemPointer tid)
{
	Buffer		buffer = pinned->buffer;
	uint16		type = LH_BUCKET_PAGE;

	for (;;)
	{
		Page		page = copy_of_hash(walk, buffer, type);
		BlockNumber blk = BufferGetBlockNumber(buffer);
		BlockNumber next = HashPageGetOpaque(page)->hasho_nextblkno;
		bool		found = false;

		if (HashPageGetOpaque(page)->hasho_bucket != pinned->bucket)
			InsightDamaged(blk, "page is of another bucket than what leads to it");
		for (OffsetNumber off = FirstOffsetNumber;
			 off <= PageGetMaxOffsetNumber(page) && !found; off++)
		{
			IndexTuple	itup = hash_entry_at(blk, page, off);

			found = _hash_get_indextuple_hashkey(itup) == hash &&
				!ItemIdIsDead(PageGetItemId(page, off)) &&
				ItemPointerEquals(&itup->t_tid, tid);
		}
		pfree(page);
		if (buffer != pinned->buffer)
			ReleaseBuffer(buffer);
		if (found || !BlockNumberIsValid(next))
			return found;
		buffer = InsightReadBlock(walk->index, next);
		type = LH_OVERFLOW_PAGE;
	}
}

static bool
hash_has_entry(Walk *walk, uint32 hash, ItemPointer tid)
{
	PinnedBucket its;
	PinnedBucket old = {0, InvalidBuffer};
	bool		found;

	pin_buckets(walk, hash, &its, &old);
	found = bucket_has_entry(walk, &its, hash, tid) ||
		(BufferIsValid(old.buffer) && bucket_has_entry(walk, &old, hash, tid));
	if (BufferIsValid(old.buffer))
		ReleaseBuffer(old.buffer);
	ReleaseBuffer(its.buffer);
	return found;
}

/* of one that a link leads to; "npages": so many with those to be visited yet */
static void
check_sought_gist_page(void *arg, BlockNumber blk, Page page, int64 npages)
{
	Walk	   *walk = (Walk *) arg;

	if (InsightTooManyPages(walk->index, npages))
		InsightDamaged(blk, "links between pages lead round");
	if (PageIsNew(page))
		InsightDamaged(blk, "page is new");
	check_gist_page(walk, blk, page);
}

/* ---------------- GIN ---------------- */

static Page
copy_of_gin(Walk *walk, BlockNumber blk, bool data)
{
	Page		page = InsightCopyBlock(walk->index, blk);

	CHECK_FOR_INTERRUPTS();
	count_page(walk, blk);
	if (PageIsNew(page))
		InsightDamaged(blk, "page is new");
	InsightCheckCopy(blk, page, sizeof(GinPageOpaqueData));
	if (GinPageIsList(page) || GinPageIsData(page) != data)
	{
		if (data && RecoveryInProgress())
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("page %u of index \"%s\" has been used again while it was checked",
							blk, RelationGetRelationName(walk->index))));
		InsightDamaged(blk, "page is of another kind than what leads to it");
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
		InsightDamaged(blk, "entry's key does not fit it");
	if (!gin->oneCol)
		memcpy(&attnum, (char *) itup + begin, sizeof(attnum));
	if (attnum < 1 || attnum > gin->origTupdesc->natts)
		InsightDamaged(blk, "entry is of a column that there is not");
	if (gin->oneCol ? !InsightValuesFit(gin->origTupdesc, itup, 1, end) :
		!InsightValuesFit(gin->tupdesc[attnum - 1], itup, 2, end))
		InsightDamaged(blk, "entry's key does not fit it");
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

		buffer = InsightReadBlock(walk->index, blk);
		LockBuffer(buffer, GIN_SHARE);
		UnlockReleaseBuffer(last);
		memcpy(copy, BufferGetPage(buffer), BLCKSZ);
		InplaceEndIfAsked();
		count_page(walk, blk);
		InsightCheckCopy(blk, copy, sizeof(GinPageOpaqueData));
		if (!GinPageIsList(copy))
			InsightDamaged(blk, "page is not one of pending entries");
		pages = lappend(pages, copy);
		next = GinPageGetOpaque(copy)->rightlink;
	}
	UnlockReleaseBuffer(buffer);
	return pages;
}

/* as ginpostinglist.c has it */
#define OFFSET_BITS		11
#define BITS_IN_BYTE	7
#define MAX_BYTES		7

/*
 * Does a compressed list end where it should, with TIDs that ascend from the last one before it?
 * The server's function that unpacks it takes that for granted.
 */
static bool
list_fits(GinPostingList *list, Size room, uint64 *last)
{
	unsigned char *at = list->bytes;
	unsigned char *end;
	OffsetNumber off;
	uint64		tid;

	if (room < offsetof(GinPostingList, bytes) || room < SizeOfGinPostingList(list))
		return false;
	off = GinItemPointerGetOffsetNumber(&list->first);
	tid = ((uint64) GinItemPointerGetBlockNumber(&list->first) << OFFSET_BITS) | off;
	if (off == InvalidOffsetNumber || off >> OFFSET_BITS != 0 || tid <= *last)
		return false;
	end = at + list->nbytes;
	while (at < end)
	{
		uint64		more = 0;
		int			n = 0;

		do
		{
			if (at == end || n == MAX_BYTES)
				return false;
			more |= (uint64) (*at & 0x7F) << (BITS_IN_BYTE * n++);
		} while (*at++ & 0x80);
		tid += more;
		if (more == 0 || (tid & ((1 << OFFSET_BITS) - 1)) == 0 || tid >> (32 + OFFSET_BITS) != 0)
			return false;
	}
	*last = tid;
	return true;
}

/* an entry of a leaf page: where its key ends at most, and its TIDs fit it */
static int
end_of_key(BlockNumber blk, IndexTuple itup)
{
	Size		size = IndexTupleSize(itup);
	Size		begin;
	uint64		last = 0;

	if (GinIsPostingTree(itup))
		return size;
	begin = GinGetPostingOffset(itup);
	if (GinGetNPosting(itup) == 0)
		return Min(begin, size);
	if (begin < sizeof(IndexTupleData) || begin > size ||
		(GinItupIsCompressed(itup) ?
		 !list_fits((GinPostingList *) GinGetPosting(itup), size - begin, &last) :
		 begin + GinGetNPosting(itup) * sizeof(ItemPointerData) > size))
		InsightDamaged(blk, "posting list does not fit its entry");
	return begin;
}

/* do the lists of TIDs on a leaf of a posting tree end where they should? */
static void
check_posting_leaf(BlockNumber blk, Page page)
{
	char	   *at;
	char	   *end;
	uint64		last = 0;

	if (!GinPageIsCompressed(page))
	{
		if (GinPageGetOpaque(page)->maxoff * sizeof(ItemPointerData) > GinDataPageMaxDataSize)
			InsightDamaged(blk, "page has more TIDs than fit it");
		return;
	}
	at = (char *) GinDataLeafPageGetPostingList(page);
	end = page + ((PageHeader) page)->pd_lower;
	if (end < at)
		InsightDamaged(blk, "page header is wrong");
	while (at < end)
	{
		if (!list_fits((GinPostingList *) at, end - at, &last))
			InsightDamaged(blk, "posting list does not fit its page");
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
			IndexTuple	itup = InsightEntryAt(GIN_METAPAGE_BLKNO, page, off);
			GinKey		key;

			get_gin_key(walk, GIN_METAPAGE_BLKNO, itup, IndexTupleSize(itup), &key);
			fn(walk, &itup->t_tid, &key, arg);
		}
	}
}

/* the leftmost leaf of a posting tree */
static Page
leftmost_posting_leaf(Walk *walk, BlockNumber root)
{
	BlockNumber blk = root;

	for (;;)
	{
		Page		page = copy_of_gin(walk, blk, true);

		if (GinPageIsLeaf(page))
			return page;
		if (GinPageGetOpaque(page)->maxoff < FirstOffsetNumber)
			InsightDamaged(blk, "inner page is empty");
		blk = PostingItemGetBlockNumber(GinDataPageGetPostingItem(page, FirstOffsetNumber));
		pfree(page);
	}
}

/* of the entry tree; returns its first downlink */
static BlockNumber
check_inner_page(Walk *walk, BlockNumber blk, Page page)
{
	for (OffsetNumber off = FirstOffsetNumber; off <= PageGetMaxOffsetNumber(page); off++)
	{
		IndexTuple	itup = InsightEntryAt(blk, page, off);
		GinKey		key;

		get_gin_key(walk, blk, itup, IndexTupleSize(itup), &key);
		check_downlink(walk, blk, GIN_ROOT_BLKNO, GinGetDownlink(itup));
	}
	if (PageGetMaxOffsetNumber(page) < FirstOffsetNumber)
		InsightDamaged(blk, "inner page is empty");
	return GinGetDownlink(InsightEntryAt(blk, page, FirstOffsetNumber));
}

/* the page to the right of another, if there is one: of the same level */
static Page
right_of(Walk *walk, Page page, BlockNumber *blk)
{
	Page		next;

	if (GinPageRightMost(page))
		return NULL;
	*blk = GinPageGetOpaque(page)->rightlink;
	next = copy_of_gin(walk, *blk, false);
	if (GinPageIsLeaf(next) != GinPageIsLeaf(page))
		InsightDamaged(*blk, "page is of another level than the one to its left");
	return next;
}

/* the leftmost leaf of the entry tree, whose inner pages are checked */
static Page
leftmost_entry_leaf(Walk *walk, BlockNumber *leaf)
{
	BlockNumber down = GIN_ROOT_BLKNO;

	for (;;)
	{
		BlockNumber blk = down;
		Page		page = copy_of_gin(walk, blk, false);

		if (GinPageIsLeaf(page))
		{
			*leaf = blk;
			return page;
		}
		down = check_inner_page(walk, blk, page);
		for (;;)
		{
			Page		next = right_of(walk, page, &blk);

			pfree(page);
			if (next == NULL)
				break;
			page = next;
			(void) check_inner_page(walk, blk, page);
		}
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
	Page		page = leftmost_posting_leaf(walk, root);
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
tell_entry_leaf(Walk *walk, BlockNumber blk, Page page)
{
	for (OffsetNumber off = FirstOffsetNumber; off <= PageGetMaxOffsetNumber(page); off++)
	{
		IndexTuple	itup = InsightEntryAt(blk, page, off);
		GinKey		key;

		get_gin_key(walk, blk, itup, end_of_key(blk, itup), &key);
		look_at_gin_entry(walk, blk, itup, &key,
						  digest_of_gin_key(walk->gin, key.attnum, key.key, key.category),
						  NULL);
	}
}

static void
walk_gin(Walk *walk)
{
	MemoryContext old = MemoryContextSwitchTo(walk->cxt);
	BlockNumber blk;
	Page		page;

	walk_pending(walk, tell_pending, NULL);
	MemoryContextSwitchTo(old);
	MemoryContextReset(walk->cxt);
	page = leftmost_entry_leaf(walk, &blk);
	while (page != NULL)
	{
		Page		left = page;

		MemoryContextSwitchTo(walk->cxt);
		tell_entry_leaf(walk, blk, page);
		MemoryContextSwitchTo(old);
		MemoryContextReset(walk->cxt);
		page = right_of(walk, left, &blk);
		pfree(left);
	}
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

/* is the key of an entry before the one that is sought (-1), or the same (0)? */
static int
compare_gin_key(Walk *walk, BlockNumber blk, Page page, OffsetNumber off, const GinKey *sought)
{
	IndexTuple	itup = InsightEntryAt(blk, page, off);
	GinKey		key;

	get_gin_key(walk, blk, itup,
				GinPageIsLeaf(page) ? end_of_key(blk, itup) : (int) IndexTupleSize(itup), &key);
	return ginCompareAttEntries(walk->gin, key.attnum, key.key, key.category,
								sought->attnum, sought->key, sought->category);
}

/*
 * The first entry that is not before the one that is sought; or past the last.  The last downlink
 * of the rightmost page has no bound, and its key may even be less than the one before.
 */
static OffsetNumber
first_not_before(Walk *walk, BlockNumber blk, Page page, const GinKey *sought)
{
	OffsetNumber low = FirstOffsetNumber;
	OffsetNumber high = PageGetMaxOffsetNumber(page) + 1;

	if (!GinPageIsLeaf(page) && GinPageRightMost(page))
		high = Max(high - 1, low);
	while (low < high)
	{
		OffsetNumber mid = low + (high - low) / 2;

		if (compare_gin_key(walk, blk, page, mid, sought) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* In the entry tree.  (As ginFindLeafPage() goes down.) */
static bool
tree_has_entry(Walk *walk, const GinKey *sought, ItemPointer tid)
{
	BlockNumber blk = GIN_ROOT_BLKNO;
	Page		page = copy_of_gin(walk, blk, false);

	for (;;)
	{
		OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
		OffsetNumber off = first_not_before(walk, blk, page, sought);

		if (off > maxoff && !GinPageRightMost(page))
		{
			Page		left = page;

			page = right_of(walk, left, &blk);
			pfree(left);
			continue;
		}
		if (GinPageIsLeaf(page))
		{
			GinKey		key = *sought;

			return off <= maxoff &&
				compare_gin_key(walk, blk, page, off, sought) == 0 &&
				look_at_gin_entry(walk, blk, InsightEntryAt(blk, page, off), &key, 0, tid);
		}
		if (maxoff < FirstOffsetNumber)
			InsightDamaged(blk, "inner page is empty");
		blk = GinGetDownlink(InsightEntryAt(blk, page, off));
		pfree(page);
		page = copy_of_gin(walk, blk, false);
	}
}

/* (in this order: what leaves the list is in the tree by then) */
static bool
gin_has_entry(Walk *walk, const CheckOtherKey *key, ItemPointer tid)
{
	PendingSearch search = {tid, key, false};
	GinKey		sought = {key->attnum, key->key, key->category};

	walk_pending(walk, is_pending, &search);
	return search.found || tree_has_entry(walk, &sought, tid);
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
		search.found = hash_has_entry(&walk, (uint32) key->digest, tid);
	else
	{
		EntryValues v;

		memcpy(v.values, values, sizeof(Datum) * IndexRelationGetNumberOfAttributes(index));
		memcpy(v.isnull, isnull, sizeof(bool) * IndexRelationGetNumberOfAttributes(index));
		search.found = inplace_gist_look_for_entry(index, &v, tid, check_sought_gist_page, &walk);
		if (!search.found)
			CheckOtherWalk(index, is_sought, &search);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(walk.cxt);
	return search.found;
}

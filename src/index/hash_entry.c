/*-------------------------------------------------------------------------
 *
 * hash_entry.c
 *	  Has a hash index an entry already, with that hash value and TID?
 *
 * Its scans count as scans of the index, and go through all of a bucket.  Here the pages of the
 * bucket are looked at one by one, and not all of them if there are many (gist_entry.c).
 *
 * While a bucket is split its entries are copied, and may not have come to the new one yet.  Those
 * in the old one stay as long as that is pinned.  So, as in hash's own scans, the old bucket is
 * pinned first, and the new one looked at then, and the old one last.  The pin of a bucket
 * keeps VACUUM from putting its pages together meanwhile.
 *
 * Lock order: one page of the index at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/hash.h"
#include "index/other_entry.h"
#include "miscadmin.h"
#include "storage/predicate.h"

typedef struct HashSearch
{
	Relation	index;
	uint32		hash;
	ItemPointer tid;
	int			pages_left;
} HashSearch;

static bool
page_has(const HashSearch *search, Page page)
{
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);

	for (OffsetNumber off = _hash_binsearch(page, search->hash); off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		IndexTuple	itup = (IndexTuple) PageGetItem(page, lp);

		if (_hash_get_indextuple_hashkey(itup) != search->hash)
			break;
		if (!ItemIdIsDead(lp) && ItemPointerEquals(&itup->t_tid, search->tid))
			return true;
	}
	return false;
}

/*
 * Look through a bucket, whose first page is pinned, and stays so.
 */
static EntrySought
look_through_bucket(HashSearch *search, Buffer first)
{
	Buffer		buffer = first;
	EntrySought result = ENTRY_MISSING;

	for (;;)
	{
		Page		page = BufferGetPage(buffer);
		BlockNumber next = InvalidBlockNumber;

		CHECK_FOR_INTERRUPTS();
		if (search->pages_left-- == 0)
			result = ENTRY_NOT_SEEN;
		else
		{
			LockBuffer(buffer, BUFFER_LOCK_SHARE);
			if (page_has(search, page))
				result = ENTRY_THERE;
			next = HashPageGetOpaque(page)->hasho_nextblkno;
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		}
		if (buffer != first)
			ReleaseBuffer(buffer);
		if (result != ENTRY_MISSING || !BlockNumberIsValid(next))
			return result;
		buffer = ReadBuffer(search->index, next);
	}
}

EntrySought
inplace_hash_find_entry(Relation index, Datum value, ItemPointer tid, int max_pages)
{
	HashSearch	search;
	Buffer		bucket;
	Buffer		old_bucket = InvalidBuffer;
	HashPageOpaque opaque;
	EntrySought result;

	search.index = index;
	search.hash = _hash_datum2hashkey(index, value);
	search.tid = tid;
	search.pages_left = max_pages > 0 ? max_pages : -1;

	bucket = _hash_getbucketbuf_from_hashkey(index, search.hash, HASH_READ, NULL);
	opaque = HashPageGetOpaque(BufferGetPage(bucket));
	if (H_BUCKET_BEING_POPULATED(opaque))
	{
		BlockNumber old_blkno = _hash_get_oldblock_from_newbucket(index, opaque->hasho_bucket);

		LockBuffer(bucket, BUFFER_LOCK_UNLOCK);
		old_bucket = _hash_getbuf(index, old_blkno, HASH_READ, LH_BUCKET_PAGE);
		LockBuffer(old_bucket, BUFFER_LOCK_UNLOCK);
	}
	else
		LockBuffer(bucket, BUFFER_LOCK_UNLOCK);

	result = look_through_bucket(&search, bucket);
	if (result == ENTRY_MISSING && BufferIsValid(old_bucket))
		result = look_through_bucket(&search, old_bucket);

	/* it stands in for the insertion of an entry */
	if (result == ENTRY_THERE)
		CheckForSerializableConflictIn(index, NULL, BufferGetBlockNumber(bucket));
	if (BufferIsValid(old_bucket))
		ReleaseBuffer(old_bucket);
	ReleaseBuffer(bucket);
	return result;
}

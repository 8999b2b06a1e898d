/*-------------------------------------------------------------------------
 *
 * check_copy.c
 *	  inplace.check(): copies of the pages of indexes, which may be damaged.
 *
 * What is wrong is an error, which inplace.check() makes a finding (CheckGuarded).
 *
 * Lock order: one page of the index.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "insight/check_copy.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

void
InsightDamaged(BlockNumber blk, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("block %u: %s", blk, what)));
}

/* nothing outside the page is looked at */
void
InsightCheckCopy(BlockNumber blk, Page page, Size special)
{
	PageHeader	ph = (PageHeader) page;

	if (ph->pd_special != BLCKSZ - MAXALIGN(special) ||
		ph->pd_lower < SizeOfPageHeaderData || ph->pd_lower > ph->pd_upper ||
		ph->pd_upper > ph->pd_special)
		InsightDamaged(blk, "page header is wrong");
}

/* an entry on the copy of a page */
IndexTuple
InsightEntryAt(BlockNumber blk, Page page, OffsetNumber off)
{
	ItemId		lp = PageGetItemId(page, off);
	IndexTuple	itup;

	if (!ItemIdHasStorage(lp) || ItemIdGetOffset(lp) < ((PageHeader) page)->pd_upper ||
		ItemIdGetOffset(lp) != MAXALIGN(ItemIdGetOffset(lp)) ||
		ItemIdGetLength(lp) < sizeof(IndexTupleData) ||
		ItemIdGetOffset(lp) + ItemIdGetLength(lp) > ((PageHeader) page)->pd_special)
		InsightDamaged(blk, "line pointer leads to no entry");
	itup = (IndexTuple) PageGetItem(page, lp);
	if (IndexTupleSize(itup) > ItemIdGetLength(lp) ||
		IndexTupleSize(itup) < sizeof(IndexTupleData))
		InsightDamaged(blk, "entry is longer than its line pointer says");
	return itup;
}

/* (what is not there is not read: that might make the file longer) */
Buffer
InsightReadBlock(Relation index, BlockNumber blk)
{
	if (blk >= RelationGetNumberOfBlocks(index))
		InsightDamaged(blk, "page is past the index's end");
	return ReadBuffer(index, blk);
}

Page
InsightCopyBuffer(Buffer buffer)
{
	Page		copy = palloc(BLCKSZ);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(copy, BufferGetPage(buffer), BLCKSZ);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return copy;
}

Page
InsightCopyBlock(Relation index, BlockNumber blk)
{
	Buffer		buffer = InsightReadBlock(index, blk);
	Page		copy = InsightCopyBuffer(buffer);

	ReleaseBuffer(buffer);
	return copy;
}

/* no page is visited more than once, or again because of a split; so many are too many */
bool
InsightTooManyPages(Relation index, int64 npages)
{
	return npages > 1024 &&
		npages > 2 * (int64) RelationGetNumberOfBlocks(index) + 1024;
}

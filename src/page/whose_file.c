/*-------------------------------------------------------------------------
 *
 * whose_file.c
 *	  Is a heap table's file one of ours?  See ddl/whose_page.c and
 *	  ddl/after_upgrade.c.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/page.h"
#include "page/whose_file.h"
#include "storage/bufmgr.h"
#include "storage/smgr.h"
#include "utils/rel.h"

/*
 * A copy of a page as it is in shared buffers, or else on disk: a page that is
 * damaged must not fail those who do not need it, nor stay in a buffer.
 */
void
inplace_copy_page(Relation rel, BlockNumber blk, Page copy)
{
	Buffer		recent = PrefetchBuffer(rel, MAIN_FORKNUM, blk).recent_buffer;

	if (BufferIsValid(recent) &&
		ReadRecentBuffer(RelLocator(rel), MAIN_FORKNUM, blk, recent))
	{
		LockBuffer(recent, BUFFER_LOCK_SHARE);
		memcpy(copy, BufferGetPage(recent), BLCKSZ);
		UnlockReleaseBuffer(recent);
	}
	else
		smgrread(RelationGetSmgr(rel), MAIN_FORKNUM, blk, copy);
}

/*
 * Is the first page of a heap table that anything is on one of ours?
 */
bool
inplace_heap_has_our_file(Relation rel)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);

	for (BlockNumber blk = 0; blk < nblocks; blk++)
	{
		PGIOAlignedBlock copy;
		Page		page = (Page) copy.data;

		CHECK_FOR_INTERRUPTS();
		inplace_copy_page(rel, blk, page);
		if (!inplace_page_is_blank(page))
			return ((PageHeader) page)->pd_special == BLCKSZ && RowPageIsMarked(page);
	}
	return false;
}

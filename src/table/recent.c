/*-------------------------------------------------------------------------
 *
 * recent.c
 *	  Pinning the page of a row that a command comes to by its TID.
 *
 * UPDATE, DELETE and row locks come to the page of each row two or three
 * times, and rows of one page mostly follow one another.  The buffer manager
 * finds the page by a hash table under a lock.  Two things are tried first.
 *
 * The scan that found the row has its page pinned as a rule.  It tells where
 * it keeps the buffer ("holder"), and its pin is borrowed: good until control
 * goes back to the executor, which alone can move or end the scan.  A holder
 * that lets go of its page sets its variable to InvalidBuffer, or to the next
 * page's buffer; one that goes away says so (inplace_forget_row_page).  At the
 * abort of a transaction or subtransaction scans go away without a word, so
 * the holder is forgotten then.
 *
 * Otherwise the buffer of the last time is tried.  It is a guess: nothing is
 * pinned between the calls, and the server checks that the buffer still has
 * the page.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/xact.h"
#include "pgstat.h"
#include "table/table.h"

static RelFileLocator recent_locator;
static BlockNumber recent_block = InvalidBlockNumber;
static Buffer recent_buffer = InvalidBuffer;
static const Buffer *holder = NULL;

/*
 * A scan has this page now; the buffer is pinned, for as long as it is in
 * *where.
 */
void
inplace_note_row_page(Relation rel, BlockNumber blk, const Buffer *where)
{
	if (BufferIsLocal(*where))
		return;
	recent_locator = RelLocator(rel);
	recent_block = blk;
	recent_buffer = *where;
	holder = where;
}

/* "where" is no more */
void
inplace_forget_row_page(const Buffer *where)
{
	if (holder == where)
		holder = NULL;
}

static void
recent_xact_callback(XactEvent event, void *arg)
{
	holder = NULL;
}

static void
recent_subxact_callback(SubXactEvent event, SubTransactionId mySubid,
						SubTransactionId parentSubid, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		holder = NULL;
}

/* once, by the postmaster: its children inherit them */
void
inplace_register_row_page_callbacks(void)
{
	RegisterXactCallback(recent_xact_callback, NULL);
	RegisterSubXactCallback(recent_subxact_callback, NULL);
}

/*
 * The page's buffer, pinned.  With *borrowed the pin is somebody else's, to be
 * left alone, and stands until the caller returns to the executor.
 */
Buffer
inplace_borrow_row_page(Relation rel, BlockNumber blk, bool *borrowed)
{
	Buffer		buffer;

	if (recent_block == blk &&
		RelFileLocatorEquals(recent_locator, RelLocator(rel)))
	{
		if (holder != NULL && *holder == recent_buffer)
		{
			*borrowed = true;
			pgstat_count_buffer_read(rel);
			pgstat_count_buffer_hit(rel);
			return recent_buffer;
		}
		if (ReadRecentBuffer(recent_locator, MAIN_FORKNUM, blk, recent_buffer))
		{
			*borrowed = false;
			pgstat_count_buffer_read(rel);
			pgstat_count_buffer_hit(rel);
			return recent_buffer;
		}
	}
	*borrowed = false;
	buffer = ReadBuffer(rel, blk);
	if (!BufferIsLocal(buffer))
	{
		recent_locator = RelLocator(rel);
		recent_block = blk;
		recent_buffer = buffer;
		holder = NULL;
	}
	return buffer;
}

/* the same, with a pin of the caller's own */
Buffer
inplace_read_row_page(Relation rel, BlockNumber blk)
{
	bool		borrowed;
	Buffer		buffer = inplace_borrow_row_page(rel, blk, &borrowed);

	if (borrowed)
		IncrBufferRefCount(buffer);
	return buffer;
}

/*-------------------------------------------------------------------------
 *
 * recent.c
 *	  Pinning the page of a row that a command comes to by its TID.
 *
 * UPDATE, DELETE and row locks come to the page of each row two or three
 * times, and rows of one page mostly follow one another.  The buffer manager
 * finds the page by a hash table under a lock; here the buffer of the last
 * time is tried first.  It is a guess: nothing is pinned between the calls, and
 * the server checks that the buffer still has the page.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "pgstat.h"
#include "table/table.h"

static RelFileLocator recent_locator;
static BlockNumber recent_block = InvalidBlockNumber;
static Buffer recent_buffer = InvalidBuffer;

/* a scan has this page now; the buffer is pinned */
void
inplace_note_row_page(Relation rel, BlockNumber blk, Buffer buffer)
{
	if (BufferIsLocal(buffer))
		return;
	recent_locator = RelLocator(rel);
	recent_block = blk;
	recent_buffer = buffer;
}

Buffer
inplace_read_row_page(Relation rel, BlockNumber blk)
{
	Buffer		buffer;

	if (recent_block == blk &&
		RelFileLocatorEquals(recent_locator, RelLocator(rel)) &&
		ReadRecentBuffer(recent_locator, MAIN_FORKNUM, blk, recent_buffer))
	{
		pgstat_count_buffer_read(rel);
		pgstat_count_buffer_hit(rel);
		return recent_buffer;
	}
	buffer = ReadBuffer(rel, blk);
	inplace_note_row_page(rel, blk, buffer);
	return buffer;
}

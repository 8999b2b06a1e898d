/*-------------------------------------------------------------------------
 *
 * guess.c
 *	  Where a page was last found in shared buffers.
 *
 * The buffer manager finds a page by a hash table, under one of 128 locks that all
 * share: some four places of memory far from each other, and the processor
 * waits for most of them where rows are looked up here and there, by bottom-up
 * deletion hundreds for an index page.  So the buffer that had the page the last
 * time is tried first.
 *
 * The guesses of all processes are in one table of shared memory, a buffer's
 * number at the place that the page's number leads to.  A backend that finds the page
 * elsewhere overwrites it.  There are at least twice as many places as buffers, of 4
 * bytes each: one or two thousandths of shared_buffers.  A place does not say of which
 * page it is.  The buffer's descriptor says that, and has to be looked at anyway: it
 * tells two pages apart that lead to one place, and shows that a page has gone.
 *
 * A guess is never relied on: it is pinned by ReadRecentBuffer, which checks
 * under the lock of the buffer's header that it has the page.
 *
 * Locks: none; places are read and written as a whole.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/guess.h"
#include "port/pg_bitutils.h"
#include "storage/shmem.h"

/* without shared memory, as in a library loaded too late, one guess */
static pg_atomic_uint32 own_guess;

pg_atomic_uint32 *page_guesses = &own_guess;
uint32		page_guesses_mask = 0;

static uint32
page_guess_places(void)
{
	return pg_nextpower2_32(NBuffers) * 2;
}

Size
PageGuessShmemSize(void)
{
	return mul_size(page_guess_places(), sizeof(pg_atomic_uint32));
}

void
PageGuessShmemInit(void)
{
	bool		found;

	page_guesses = ShmemInitStruct("inplace page guesses", PageGuessShmemSize(), &found);
	page_guesses_mask = page_guess_places() - 1;
	if (found)
		return;
	for (uint32 i = 0; i <= page_guesses_mask; i++)
		pg_atomic_init_u32(&page_guesses[i], InvalidBuffer);
}

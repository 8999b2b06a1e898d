/*-------------------------------------------------------------------------
 *
 * recent.c
 *	  Pinning the page of a row that a command comes to by its TID.
 *
 * UPDATE, DELETE and row locks come to the page of each row two or three
 * times, and rows of one page mostly follow one another.  The buffer manager
 * finds the page by a hash table, under one of 128 locks that all share: some four
 * places of memory far from each other, and the processor waits for most of them
 * where rows are looked up here and there, by bottom-up deletion hundreds for an
 * index page.  Two things are tried first.
 *
 * The scan that found the row has its page pinned as a rule, in a ScanPin, and
 * its pin is lent: good until control goes back to the executor, which alone
 * can move or end the scan, or until code of users is run, which may do so,
 * too (inplace_own_row_page).  Whether the pinned buffer has the page that is
 * wanted is decided by the buffer's tag, which a pin keeps from changing; what
 * the scan has read before, and in which mode, does not matter.  A scan that
 * goes away says so (ScanPinEnd).  At the abort of a transaction or
 * subtransaction scans go away without a word, so the pin is forgotten then.
 * With assertions it is checked that the pin is one, and that no scan lets go
 * of it while it is lent.
 *
 * Otherwise the buffer that had the page the last time is tried, that of this
 * process or of all.  It is a guess: nothing is pinned between the calls, and it is
 * never relied on.  ReadRecentBuffer checks under the lock of the buffer's header
 * that it still has the page.
 *
 * The guesses of all processes are in one table of shared memory, a buffer's
 * number at the place that the page's number leads to.  A backend that finds the page
 * elsewhere overwrites it.  There are at least twice as many places as buffers, of 4
 * bytes each: one or two thousandths of shared_buffers.  A place does not say of which
 * page it is.  The buffer's descriptor says that, and has to be looked at anyway: it
 * tells two pages apart that lead to one place, and shows that a page has gone.
 *
 * What a guess may not change is which pages stay in memory.  The server counts
 * a buffer's uses when it finds it in the regular way, and not when it is told
 * where to look.  So a guess is taken only where there is nothing left to count, or
 * for a page that the command has come to just before.
 *
 * A guess is known before the buffer is pinned, and that is used too: the
 * memory of a page in shared buffers is fetched towards the processor while
 * the buffer is still being pinned.  A caller that knows which rows come next has
 * it fetched some rows before.  Nothing that is read there counts, so a wrong guess
 * does no harm.
 *
 * Locks: none; places of guesses are read and written as a whole.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/xact.h"
#include "page/recent.h"
#include "page/tuple.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "port/pg_bitutils.h"
#include "storage/buf_internals.h"
#include "storage/shmem.h"

static RelFileLocator recent_locator;
static BlockNumber recent_block = InvalidBlockNumber;
static Buffer recent_buffer = InvalidBuffer;

/* the scan that has read a page last, and the pin that is lent just now */
static const ScanPin *holder = NULL;
static const ScanPin *lent = NULL;

/*
 * What will be looked at first: the page's header and the row's line pointer.
 * (Compilers leave out calls of a function that does nothing but this.)
 */
static pg_attribute_always_inline void
fetch_towards_processor(Buffer buffer, OffsetNumber off)
{
	char	   *page = BufferBlocks + (Size) (buffer - 1) * BLCKSZ;

	PrefetchMemory(page);
	PrefetchMemory(page + SizeOfPageHeaderData +
				   ((off & INPLACE_OFFSET_MASK) - 1) * sizeof(ItemIdData));
}

/* ---------------- the guesses of all processes ---------------- */

/* without shared memory, as in a library loaded too late, one guess */
static pg_atomic_uint32 own_guess;

static pg_atomic_uint32 *page_guesses = &own_guess;
static uint32 page_guesses_mask = 0;

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

/*
 * Neighbouring pages have neighbouring places.  Databases that are copies of one
 * another have files of the same numbers.
 */
static inline pg_atomic_uint32 *
page_guess_place(Relation rel, BlockNumber blk)
{
	RelFileLocator loc = RelLocator(rel);
	uint32		place = blk + (LocatorRel(loc) + LocatorDb(loc) * 0x85EBCA6Bu) * 0x9E3779B1u;

	return &page_guesses[place & page_guesses_mask];
}

/*
 * The buffer to try, or InvalidBuffer.  Not for temporary tables, whose file may
 * have the number of another's.
 */
static inline Buffer
page_guess(Relation rel, BlockNumber blk)
{
	Assert(!RelationUsesLocalBuffers(rel));
	return (Buffer) pg_atomic_read_u32(page_guess_place(rel, blk));
}

/*
 * The page has been found in this buffer.  The place is written only if that is
 * news, so that it stays in the caches of all processors that read it.
 */
static inline void
note_page_guess(Relation rel, BlockNumber blk, Buffer buffer)
{
	pg_atomic_uint32 *place = page_guess_place(rel, blk);

	Assert(!BufferIsLocal(buffer));
	if (pg_atomic_read_u32(place) != (uint32) buffer)
		pg_atomic_write_u32(place, (uint32) buffer);
}

/*
 * Does the buffer look as if it had the page?  Nothing is locked or pinned, so
 * that may change at any time, and a tag may be seen half changed.
 */
static inline bool
page_guess_holds(Relation rel, BlockNumber blk, Buffer buffer)
{
	const BufferTag *tag = &GetBufferDescriptor(buffer - 1)->tag;
	RelFileLocator loc = BufferTagLocator(tag);

	return tag->blockNum == blk && tag->forkNum == MAIN_FORKNUM &&
		RelFileLocatorEquals(loc, RelLocator(rel));
}

/* ---------------- the pins of scans ---------------- */

static inline void
note_recent(Relation rel, BlockNumber blk, Buffer buffer)
{
	recent_locator = RelLocator(rel);
	recent_block = blk;
	recent_buffer = buffer;
}

/*
 * The scan has this page now, pinned for it.
 */
void
ScanPinTake(ScanPin *pin, Relation rel, BlockNumber blk, Buffer buffer)
{
	Assert(!BufferIsValid(pin->buffer));
	Assert(BufferGetBlockNumber(buffer) == blk);
	pin->buffer = buffer;
	if (BufferIsLocal(buffer))
		return;
	note_recent(rel, blk, buffer);
	holder = pin;
}

void
ScanPinDrop(ScanPin *pin)
{
	Buffer		buffer = pin->buffer;

	if (!BufferIsValid(buffer))
		return;
	Assert(lent != pin);
	pin->buffer = InvalidBuffer;
	ReleaseBuffer(buffer);
}

/* the memory of the pin is going to be freed */
void
ScanPinEnd(ScanPin *pin)
{
	ScanPinDrop(pin);
	if (holder == pin)
		holder = NULL;
}

/*
 * Does the scan that was the last to read a page have this one?
 */
static inline bool
holder_has(Relation rel, BlockNumber blk)
{
	Buffer		buffer;

	if (holder == NULL || RelationUsesLocalBuffers(rel))
		return false;
	buffer = holder->buffer;
	if (!BufferIsValid(buffer) || BufferIsLocal(buffer))
		return false;
	/* (asserts that it is pinned) */
	Assert(BufferGetBlockNumber(buffer) != InvalidBlockNumber);
	return page_guess_holds(rel, blk, buffer);
}

static void
recent_xact_callback(XactEvent event, void *arg)
{
	holder = NULL;
	lent = NULL;
}

static void
recent_subxact_callback(SubXactEvent event, SubTransactionId mySubid,
						SubTransactionId parentSubid, void *arg)
{
	if (event != SUBXACT_EVENT_ABORT_SUB)
		return;
	holder = NULL;
	lent = NULL;
}

/* once, by the postmaster: its children inherit them */
void
inplace_register_row_page_callbacks(void)
{
	RegisterXactCallback(recent_xact_callback, NULL);
	RegisterSubXactCallback(recent_subxact_callback, NULL);
}

/* ---------------- pinning by a guess ---------------- */

/*
 * Pin the buffer if it has the page, and there are no uses left to count.
 */
static inline bool
pin_guess(Relation rel, BlockNumber blk, Buffer buffer)
{
	BufferDesc *desc = GetBufferDescriptor(buffer - 1);

	if (!page_guess_holds(rel, blk, buffer) ||
		BUF_STATE_GET_USAGECOUNT(pg_atomic_read_u32(&desc->state)) !=
		BM_MAX_USAGE_COUNT ||
		!ReadRecentBuffer(RelLocator(rel), MAIN_FORKNUM, blk, buffer))
		return false;
	CountBufferHit(rel);
	return true;
}

/*
 * A page is going to be told to inplace_expect_page.
 */
void
inplace_foresee_page(Relation rel, BlockNumber blk)
{
	if (!RelationUsesLocalBuffers(rel))
		PrefetchMemory(page_guess_place(rel, blk));
}

/*
 * A page is going to be asked for by inplace_prefetch_row_page.
 */
void
inplace_expect_page(Relation rel, BlockNumber blk)
{
	Buffer		guess;

	if (RelationUsesLocalBuffers(rel))
		return;
	guess = page_guess(rel, blk);
	if (BufferIsValid(guess))
		PrefetchMemory(GetBufferDescriptor(guess - 1));
}

/*
 * The buffer of a page of which the row at off will be looked at, for
 * inplace_pin_prefetched, if we know where it is in shared buffers.
 */
Buffer
inplace_expected_row_page(Relation rel, BlockNumber blk, OffsetNumber off)
{
	Buffer		buffer = page_guess(rel, blk);

	if (!BufferIsValid(buffer) || !page_guess_holds(rel, blk, buffer))
		return InvalidBuffer;
	fetch_towards_processor(buffer, off);
	return buffer;
}

/*
 * PrefetchBuffer, for a page of which the row at off will be looked at.  The
 * buffer, if it is in memory, is for inplace_pin_prefetched; until then pages
 * may come and go.
 */
Buffer
inplace_prefetch_row_page(Relation rel, BlockNumber blk, OffsetNumber off)
{
	Buffer		buffer = InvalidBuffer;

	if (!RelationUsesLocalBuffers(rel))
		buffer = page_guess(rel, blk);
	if (!BufferIsValid(buffer) || !page_guess_holds(rel, blk, buffer))
	{
		buffer = PrefetchBuffer(rel, MAIN_FORKNUM, blk).recent_buffer;
		if (!BufferIsValid(buffer) || BufferIsLocal(buffer))
			return InvalidBuffer;
		note_page_guess(rel, blk, buffer);
		PrefetchMemory(GetBufferDescriptor(buffer - 1));
	}
	fetch_towards_processor(buffer, off);
	return buffer;
}

/*
 * ... and some rows later, when the line pointer should be near the processor: the
 * row itself.  "recent" is what inplace_prefetch_row_page returned.  Whatever is read there
 * now is a place in memory to fetch, no more.
 */
NO_SANITIZE_ADDRESS void
inplace_prefetch_row(Buffer recent, OffsetNumber off)
{
	char	   *page = BufferBlocks + (Size) (recent - 1) * BLCKSZ;
	const ItemIdData *lp = PageGetItemId((Page) page, off & INPLACE_OFFSET_MASK);

	PrefetchMemory(page + ItemIdGetOffset(lp) % BLCKSZ);
}

Buffer
inplace_pin_prefetched(Relation rel, BlockNumber blk, Buffer recent)
{
	if (BufferIsValid(recent) && pin_guess(rel, blk, recent))
		return recent;
	return inplace_pin_row_page(rel, blk, FirstOffsetNumber);
}

/*
 * The page's buffer, pinned; off is the row that will be looked at.
 */
Buffer
inplace_pin_row_page(Relation rel, BlockNumber blk, OffsetNumber off)
{
	Buffer		guess;
	Buffer		buffer;

	if (RelationUsesLocalBuffers(rel))
		return ReadBuffer(rel, blk);

	guess = page_guess(rel, blk);
	if (BufferIsValid(guess))
	{
		fetch_towards_processor(guess, off);
		if (pin_guess(rel, blk, guess))
			return guess;
	}
	buffer = ReadBuffer(rel, blk);
	note_page_guess(rel, blk, buffer);
	return buffer;
}

/*
 * A row is going to be fetched soon.
 */
void
inplace_expect_row(Relation rel, const ItemPointerData *tid)
{
	Buffer		guess;

	if (RelationUsesLocalBuffers(rel))
		return;
	guess = page_guess(rel, ItemPointerGetBlockNumberNoCheck(tid));
	if (BufferIsValid(guess))
	{
		PrefetchMemory(GetBufferDescriptor(guess - 1));
		fetch_towards_processor(guess, ItemPointerGetOffsetNumberNoCheck(tid));
	}
}

/* ---------------- for commands ---------------- */

/*
 * The page's buffer, pinned.  With *borrowed the pin is a scan's, to be left alone,
 * and stands until inplace_return_row_page, or inplace_own_row_page.
 */
Buffer
inplace_borrow_row_page(Relation rel, BlockNumber blk, bool *borrowed)
{
	Buffer		buffer;

	*borrowed = holder_has(rel, blk);
	if (*borrowed)
	{
		Assert(lent == NULL);
		lent = holder;
		CountBufferHit(rel);
		return holder->buffer;
	}
	if (recent_block == blk && !RelationUsesLocalBuffers(rel) &&
		RelFileLocatorEquals(recent_locator, RelLocator(rel)) &&
		ReadRecentBuffer(recent_locator, MAIN_FORKNUM, blk, recent_buffer))
	{
		CountBufferHit(rel);
		return recent_buffer;
	}
	buffer = inplace_pin_row_page(rel, blk, FirstOffsetNumber);
	if (!BufferIsLocal(buffer))
		note_recent(rel, blk, buffer);
	return buffer;
}

void
inplace_return_row_page(Buffer buffer, bool borrowed)
{
	if (borrowed)
		lent = NULL;
	else
		ReleaseBuffer(buffer);
}

/*
 * Before code is run that may do anything: have a pin of one's own.
 */
void
inplace_own_row_page(Buffer buffer, bool *borrowed)
{
	if (!*borrowed)
		return;
	IncrBufferRefCount(buffer);
	*borrowed = false;
	lent = NULL;
}

Buffer
inplace_read_row_page(Relation rel, BlockNumber blk)
{
	bool		borrowed;
	Buffer		buffer = inplace_borrow_row_page(rel, blk, &borrowed);

	inplace_own_row_page(buffer, &borrowed);
	return buffer;
}

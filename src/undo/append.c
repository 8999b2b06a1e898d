/*-------------------------------------------------------------------------
 *
 * append.c
 *	  Writing undo: the extents that a transaction has, where it appends, and
 *	  what becomes of them at its end.
 *
 * See space.c for the states of an extent, the invariants and the lock order.
 *
 * Reserving
 *	  UndoPrepare is called with a data page locked.  Before that, with nothing
 *	  locked (no_lock.h), UndoReserve takes an extent, extends the file, assigns an
 *	  xid, reports a limit and reads the current page.  A caller that has a page
 *	  locked, and knows how much undo the change takes, asks UndoHasRoom.  If there
 *	  is no room it unlocks the page, reserves, locks it again and looks whether
 *	  anything has changed.  What is reserved stays so until it is written to,
 *	  for the extent is the transaction's own.
 *	  What the change takes is in an UndoRoom (append.h), from the function that
 *	  computes it to UndoPrepare.  A reservation that is too small, or forgotten, is
 *	  found at each change by that, and not at the end of an extent only.
 *	  A transaction that has not written undo yet calls UndoBegin first, so
 *	  that it need not lock the page twice.
 *
 * Images apart
 *	  Images of evicted rows (row/evict.c) go to extents of their own: a backend has two
 *	  writers for each kind.  An old snapshot wants all images, and hardly any record of
 *	  rows that are updated over and over (row/squeeze.c), whose extents are given back
 *	  under it.  An extent is given back as a whole, so one image among such records would
 *	  keep them all.  Which sort an extent is for stands in UndoExtent.images, and a writer
 *	  goes on only in one of its own.  A change that a limit would make fail is put
 *	  among images all the same (UndoTakeAny, UndoTakeFromImages).  In all else the two are
 *	  alike, at aborts, too, although no image is ever rolled back.  What is reserved for a
 *	  change stays so when rows are evicted.
 *
 * The pin
 *	  A transaction keeps the pages that it writes to pinned until it ends, for
 *	  each of its rows needs them again.  They are of extents that it owns,
 *	  so nobody wants to drop them from the buffers.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/tuple.h"
#include "process_exit.h"
#include "undo/append.h"
#include "undo/limit.h"
#include "undo/record.h"
#include "undo/space.h"
#include "undo/temp.h"
#include "undo/undo.h"
#include "undo/undorel.h"
#include "undo/worker.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#define InvalidExtent PG_UINT32_MAX

/* an extent that the open transaction has written to */
typedef struct OwnedExtent
{
	UndoSpace  *space;
	UndoExtent *ext;
	uint32		number;
} OwnedExtent;

/* where this backend appends: changes, or images of evicted rows */
typedef struct UndoWriter
{
	bool		images;
	int			cur;			/* index in owned, or -1 */
	bool		on_disk;		/* the file reaches to the end of that extent */
	bool		unreadable;		/* its last page could not be read */
	UndoSpace  *last_space;		/* the extent that the last transaction ... */
	uint32		last;			/* ... ended in */
	Buffer		recent_buffer;	/* a guess where the current page is */
	BlockNumber recent_block;
	bool		pinned;			/* more than a guess: recent_buffer is pinned,
								 * until the transaction ends */
} UndoWriter;

#define IDLE_WRITER(images) \
	{(images), -1, false, false, NULL, 0, InvalidBuffer, InvalidBlockNumber, false}
#define NWRITERS (2 * UNDO_SHARED_KINDS)

static UndoWriter writers[NWRITERS] = {
	IDLE_WRITER(false), IDLE_WRITER(true),	/* UNDO_LOGGED */
	IDLE_WRITER(false), IDLE_WRITER(true)	/* UNDO_UNLOGGED */
};

/* truncations of the file, which is another one after the extension was made again */
typedef struct SeenCut
{
	RelFileLocator locator;
	uint32		cut;			/* that we know of */
} SeenCut;

static SeenCut seen_cut[UNDO_SHARED_KINDS];

static OwnedExtent *owned = NULL;
static int	nowned = 0;
static int	max_owned = 0;
static int	nflagged = 0;		/* owned[0 .. nflagged) have NEEDS_SCAN */

/* deepest subtransaction that may have written since it was looked at */
static int	written_level = 0;

/*
 * The change that this transaction has put into undo last.  When it updates a row
 * and looks at it again, it wants the command of its change, and need not read
 * the record for that.  Until the transaction has ended its extents are its own,
 * so no other record comes to that place.
 */
typedef struct LastChange
{
	UndoKind	kind;
	UndoPtr		ptr;			/* InvalidUndoPtr: none */
	TransactionId xid;
	CommandId	cid;
} LastChange;

static LastChange last_change = {UNDO_LOGGED, InvalidUndoPtr, InvalidTransactionId, 0};

/* records written, but for those that leave others their room (UndoRoom.beside) */
static uint64 nwritten = 0;

static UndoInsert *prepared = NULL; /* between UndoPrepare and UndoRelease */
static UndoWriter *prepared_writer = NULL;

static inline UndoWriter *
UndoWriterFor(UndoKind kind, bool images)
{
	Assert(kind < UNDO_SHARED_KINDS);
	return &writers[2 * kind + (images ? 1 : 0)];
}

static void UndoForgetAtExit(void);

/* ---------------- taking extents, and handing them back ---------------- */

/*
 * Own extent n if it is partial, below limit, and of images or not.  The space's lock is
 * held, shared will do.
 */
static bool
UndoTryPartial(UndoSpace *sp, uint32 n, uint32 limit, bool images)
{
	UndoExtent *ext;
	uint32		state;

	if (n >= Min(sp->nextents, limit))
		return false;
	ext = UndoExtentAt(sp, n);
	if (ext->images != images)
		return false;
	state = pg_atomic_read_u32(&ext->state);
	while ((state & EXT_STATE_MASK) == EXT_PARTIAL)
	{
		if (pg_atomic_compare_exchange_u32(&ext->state, &state,
										   (state & ~EXT_STATE_MASK) | EXT_OWNED))
		{
			/* before anything is written to it (release.c) */
			pg_atomic_write_u64(&ext->ended, EXT_STILL_OWNED);
			return true;
		}
	}
	return false;
}

static bool
UndoFindPartial(UndoSpace *sp, UndoWriter *w, uint32 limit, bool images,
				uint32 *number)
{
	if (w->last_space == sp && UndoTryPartial(sp, w->last, limit, images))
	{
		*number = w->last;
		return true;
	}
	for (int i = 0; i < UNDO_RECENT; i++)
	{
		uint32		n = pg_atomic_read_u32(&sp->recent[images][(MyProcPid + i) % UNDO_RECENT]);

		if (UndoTryPartial(sp, n, limit, images))
		{
			*number = n;
			return true;
		}
	}
	return false;
}

/*
 * Own a free extent, or a new one; with the lock held exclusively.  False if there is
 * none.
 */
static bool
UndoTakeFree(UndoSpace *sp, uint32 n, bool images)
{
	UndoExtent *ext;

	if (n == sp->nextents && !UndoSpaceAddExtent(sp))
		return false;
	sp->first_free = n + 1;

	ext = UndoExtentAt(sp, n);
	ext->fill = 0;
	ext->scanned = 0;
	ext->images = images;
	pg_atomic_write_u32(&ext->newest_xid, InvalidTransactionId);
	pg_atomic_write_u32(&ext->state, EXT_OWNED);
	pg_atomic_write_u64(&ext->ended, EXT_STILL_OWNED);
	pg_atomic_write_u64(&ext->begun, pg_atomic_add_fetch_u64(&sp->clock, 1));
	return true;
}

/*
 * With the lock held exclusively: an extent, or InvalidExtent if a limit has been
 * reached: with *full that of inplace.undo_extents, without inplace.undo_limit.
 * Extents from "retreat" up are left alone only as long as there are free ones below.
 * Rather than that a change fails it goes where images are, with which it may be kept for
 * longer.
 */
static uint32
UndoTakeAny(UndoSpace *sp, UndoWriter *w, bool limited, bool *full)
{
	uint32		lowest = UndoLowestFree(sp);
	bool		allowed = !limited || UndoLimitAllows(lowest);
	uint32		n;

	*full = allowed;
	if ((!allowed || lowest >= pg_atomic_read_u32(&sp->retreat)) &&
		UndoFindPartial(sp, w, PG_UINT32_MAX, w->images, &n))
		return n;
	if (allowed && UndoTakeFree(sp, lowest, w->images))
		return lowest;
	if (!w->images && UndoFindPartial(sp, w, PG_UINT32_MAX, true, &n))
		return n;
	return InvalidExtent;
}

/*
 * Make room in owned, so that nothing can fail once an extent is taken.
 */
static void
UndoReserveOwned(void)
{
	if (nowned < max_owned)
		return;
	if (owned == NULL)
		owned = MemoryContextAlloc(TopMemoryContext, 16 * sizeof(OwnedExtent));
	else
		owned = repalloc_huge(owned, (Size) max_owned * 2 * sizeof(OwnedExtent));
	max_owned = max_owned ? max_owned * 2 : 16;
}

/*
 * Let go of the page that is kept pinned.  It may be locked only if the caller
 * unlocks it first.
 */
static void
UndoUnpinPage(UndoWriter *w)
{
	ResourceOwner save = CurrentResourceOwner;

	if (!w->pinned)
		return;
	w->pinned = false;
	CurrentResourceOwner = TopTransactionResourceOwner;
	ReleaseBuffer(w->recent_buffer);
	CurrentResourceOwner = save;
}

/*
 * Rather than fail, changes go where this transaction has put images.
 */
static bool
UndoTakeFromImages(UndoKind kind, UndoWriter *w)
{
	UndoWriter *from = UndoWriterFor(kind, true);

	if (w == from || from->cur < 0 || from->unreadable)
		return false;
	UndoUnpinPage(from);
	w->cur = from->cur;
	w->on_disk = from->on_disk;
	w->unreadable = false;
	from->cur = -1;
	return true;
}

/*
 * False if a limit has been reached, and missing_ok.
 */
static bool
UndoTakeExtent(UndoKind kind, UndoWriter *w, bool limited, bool missing_ok)
{
	UndoSpace  *sp;
	uint32		n;
	bool		full;

	AssertNoPageLock();
	InplaceForgetAtExit(UndoForgetAtExit);
	UndoReserveOwned();
	UndoUnpinPage(w);

	sp = UndoSpaceLock(kind, LW_SHARED);
	if (!UndoFindPartial(sp, w, pg_atomic_read_u32(&sp->retreat), w->images, &n))
	{
		UndoSpaceUnlock(sp);
		sp = UndoSpaceLock(kind, LW_EXCLUSIVE);
		n = UndoTakeAny(sp, w, limited, &full);
		if (n == InvalidExtent)
		{
			UndoSpaceUnlock(sp);
			if (UndoTakeFromImages(kind, w))
				return true;
			if (missing_ok)
				return false;
			if (full)
				UndoReportFull(sp);
			UndoReportLimit(sp);
		}
	}
	owned[nowned].space = sp;
	owned[nowned].ext = UndoExtentAt(sp, n);
	owned[nowned].number = n;
	w->cur = nowned++;
	w->on_disk = owned[w->cur].ext->fill > 0;
	w->unreadable = false;
	UndoSpaceUnlock(sp);

	/*
	 * A worker that leaves sets worker_pid to 0 and only then looks for
	 * extents a last time, and so does the launcher with launcher_knows; what
	 * made the extent ours was a full barrier.  A launcher that knows of
	 * extents must not be woken by each transaction until a worker may start.
	 */
	if (!UndoSpaceHasWorker(sp) && pg_atomic_read_u32(&sp->launcher_knows) == 0)
		UndoWorkerWakeup();
	return true;
}

/*
 * The open transaction has aborted changes in what it has written so far.
 * Extents stay flagged while they are owned, so each is visited once.
 */
static void
UndoFlagOwned(void)
{
	for (; nflagged < nowned; nflagged++)
		pg_atomic_fetch_or_u32(&owned[nflagged].ext->state,
							   EXT_NEEDS_SCAN | EXT_DIRTY);
}

/*
 * The writer whose extent is the i-th, if that is one to append to later on; or NULL.  If
 * its last page cannot be read the next transaction, and all after it, would fail because
 * of that, too.
 */
static UndoWriter *
UndoWriterToGoOn(int i)
{
	for (int k = 0; k < NWRITERS; k++)
		if (writers[k].cur == i)
			return writers[k].unreadable ? NULL : &writers[k];
	return NULL;
}

/*
 * End of the transaction: let go of all extents.  No locks, nothing that can fail.
 */
static void
UndoHandBack(bool needs_scan)
{
	if (needs_scan)
		UndoFlagOwned();
	for (int i = 0; i < nowned; i++)
	{
		OwnedExtent *o = &owned[i];
		UndoWriter *w = UndoWriterToGoOn(i);
		uint32		new_state = w != NULL ? EXT_PARTIAL : EXT_FULL;
		uint32		state = pg_atomic_read_u32(&o->ext->state);

		if (w != NULL)
		{
			pg_atomic_uint32 *recent =
				&o->space->recent[o->ext->images][o->number % UNDO_RECENT];

			w->last_space = o->space;
			w->last = o->number;
			/* all read that; mostly it is there already */
			if (pg_atomic_read_u32(recent) != o->number)
				pg_atomic_write_u32(recent, o->number);
		}
		pg_atomic_write_u64(&o->ext->ended, pg_atomic_read_u64(&o->space->clock));
		while (!pg_atomic_compare_exchange_u32(&o->ext->state, &state,
											   (state & ~EXT_STATE_MASK) | new_state))
			;
	}
	for (int i = 0; i < NWRITERS; i++)
	{
		UndoUnpinPage(&writers[i]);
		writers[i].cur = -1;
		writers[i].unreadable = false;
	}
	nowned = 0;
	nflagged = 0;
	written_level = 0;
	last_change.ptr = InvalidUndoPtr;
	prepared = NULL;
}

/* the process ends, and its rollback has not come to us */
static void
UndoForgetAtExit(void)
{
	UndoHandBack(true);
}

/* ---------------- transaction callbacks ---------------- */

static void
UndoXactCallback(XactEvent event, void *arg)
{
	if (undo_shared == NULL)
		return;

	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			UndoTempPreCommit();
			break;
		case XACT_EVENT_COMMIT:
			UndoTempAtCommit();
			UndoHandBack(false);
			break;
		case XACT_EVENT_PARALLEL_COMMIT:
			/* the leader, whose changes are concerned, may yet abort */
			UndoTempAtCommit();
			UndoHandBack(true);
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
		case XACT_EVENT_PREPARE:
			/* a prepared transaction may yet be rolled back */
			UndoTempAtAbort();
			UndoHandBack(true);
			break;
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			break;
	}
}

static void
UndoSubXactCallback(SubXactEvent event, SubTransactionId mySubid,
					SubTransactionId parentSubid, void *arg)
{
	int			level;

	if (undo_shared == NULL)
		return;

	level = GetCurrentTransactionNestLevel();
	if (event == SUBXACT_EVENT_COMMIT_SUB)
	{
		UndoTempSubCommit(level);
		written_level = Min(written_level, level - 1);
	}
	else if (event == SUBXACT_EVENT_ABORT_SUB)
	{
		UndoTempSubAbort(level);
		if (written_level >= level)
			UndoFlagOwned();
		written_level = Min(written_level, level - 1);
		prepared = NULL;
		/* the undo relation may be one that was made since, and goes now */
		for (int i = 0; i < NWRITERS; i++)
			UndoUnpinPage(&writers[i]);
	}
}

/*
 * Once, by the postmaster: its children inherit them.
 */
void
UndoRegisterCallbacks(void)
{
	RegisterXactCallback(UndoXactCallback, NULL);
	RegisterSubXactCallback(UndoSubXactCallback, NULL);
}

/* ---------------- writing ---------------- */

/*
 * The file must reach to the end of the current extent.
 */
static void
UndoExtendFile(UndoWriter *w, Relation undorel)
{
	UndoSpace  *sp = owned[w->cur].space;
	BlockNumber want = UndoExtentStart(owned[w->cur].number + 1);
	SeenCut    *seen = &seen_cut[sp->kind];
	BlockNumber nblocks;

	AssertNoPageLock();
	LWLockAcquire(&sp->extend_lock.lock, LW_EXCLUSIVE);

	/*
	 * Segments that are open here count as full, whatever has been cut off
	 * since: that is told by an invalidation, and this statement may have
	 * begun before it.
	 */
	if (seen->cut != pg_atomic_read_u32(&sp->cut) ||
		!RelFileLocatorEquals(seen->locator, sp->locator))
	{
		smgrrelease(RelationGetSmgr(undorel));
		seen->locator = sp->locator;
		seen->cut = pg_atomic_read_u32(&sp->cut);
	}
	nblocks = smgrnblocks(RelationGetSmgr(undorel), MAIN_FORKNUM);
	if (nblocks < want)
		ZeroExtend(RelationGetSmgr(undorel), MAIN_FORKNUM, nblocks,
				   want - nblocks);
	LWLockRelease(&sp->extend_lock.lock);
	w->on_disk = true;
}

/*
 * Read the page, pinned for the transaction.  What a read that fails has begun is left
 * to the caller's resource owner, which may be a subtransaction's: the page, or the one
 * that has to be written to make room for it, would be busy until the transaction ends.
 */
static Buffer
UndoReadForXact(Relation undorel, BlockNumber block, ReadBufferMode mode)
{
	ResourceOwner save = CurrentResourceOwner;
	Buffer		buffer = ReadBufferExtended(undorel, MAIN_FORKNUM, block, mode,
											NULL);

	CurrentResourceOwner = TopTransactionResourceOwner;
	IncrBufferRefCount(buffer);
	CurrentResourceOwner = save;
	ReleaseBuffer(buffer);
	return buffer;
}

/*
 * Without reading it, if it is where it was the last time.
 */
static bool
UndoPinRecent(UndoWriter *w, Relation undorel, BlockNumber block)
{
	ResourceOwner save = CurrentResourceOwner;
	bool		pinned;

	if (w->recent_block != block || !BufferIsValid(w->recent_buffer))
		return false;
	CurrentResourceOwner = TopTransactionResourceOwner;
	pinned = ReadRecentBuffer(RelLocator(undorel), MAIN_FORKNUM, block,
							  w->recent_buffer);
	CurrentResourceOwner = save;
	return pinned;
}

/*
 * Pin the page.  With "init" also zero and lock it, to begin a new page.  The pin
 * is kept for the next records, so it belongs to the transaction, not to the
 * command or subtransaction.
 */
static Buffer
UndoPinPage(UndoWriter *w, Relation undorel, BlockNumber block, bool init)
{
	Assert(!w->pinned);
	if (init)
		w->recent_buffer = UndoReadForXact(undorel, block, RBM_ZERO_AND_LOCK);
	else if (!UndoPinRecent(w, undorel, block))
	{
		w->unreadable = true;
		w->recent_buffer = UndoReadForXact(undorel, block, RBM_NORMAL);
		w->unreadable = false;
	}
	w->recent_block = block;
	w->pinned = true;
	return w->recent_buffer;
}

/*
 * Pin and lock the page of the current extent that has room for len bytes;
 * InvalidBuffer if none has.
 */
static Buffer
UndoFindRoom(UndoWriter *w, Relation undorel, Size len, UndoInsert *ui)
{
	OwnedExtent *o = &owned[w->cur];
	BlockNumber block;
	Buffer		buffer;
	PageHeader	ph;

	if (o->ext->fill > 0)
	{
		block = UndoExtentStart(o->number) + o->ext->fill - 1;
		if (w->pinned && w->recent_block == block)
			buffer = w->recent_buffer;
		else
		{
			UndoUnpinPage(w);
			buffer = UndoPinPage(w, undorel, block, false);
		}
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		ph = (PageHeader) BufferGetPage(buffer);
		if (PageIsNew((Page) ph) || ph->pd_lower < SizeOfPageHeaderData ||
			ph->pd_lower > ph->pd_special || ph->pd_special > BLCKSZ)
		{
			w->unreadable = true;
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("block %u of relation \"%s.%s\" is not a page of undo",
							block, INPLACE_SCHEMA,
							RelationGetRelationName(undorel))));
		}
		if (ph->pd_special - ph->pd_lower >= len)
		{
			ui->ptr = UndoPtrMake(block, ph->pd_lower);
			ui->init = false;
			return buffer;
		}
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}

	if (o->ext->fill >= UNDO_EXTENT_BLOCKS)
		return InvalidBuffer;
	block = UndoExtentStart(o->number) + o->ext->fill;
	UndoUnpinPage(w);
	buffer = UndoPinPage(w, undorel, block, true);
	ui->ptr = UndoPtrMake(block, SizeOfPageHeaderData);
	ui->init = true;
	return buffer;
}

/*
 * Is the current extent one of this undo relation, and can be written to?  Not if
 * somebody drops and creates the extension while writing.
 */
static inline bool
UndoIsCurrent(UndoWriter *w, Relation undorel)
{
	return w->cur >= 0 && !w->unreadable &&
		RelFileLocatorEquals(owned[w->cur].space->locator, RelLocator(undorel));
}

/* the page begun last of the current extent, if it has one */
static inline BlockNumber
UndoCurrentBlock(const UndoWriter *w)
{
	const OwnedExtent *o = &owned[w->cur];

	return UndoExtentStart(o->number) + o->ext->fill - 1;
}

/*
 * Is there room for so many records on pages of their own, or for len bytes on the
 * current page?
 */
static bool
UndoRoomIsThere(UndoKind kind, bool images, int pages, Size len)
{
	UndoWriter *w = UndoWriterFor(kind, images);
	PageHeader	ph;

	if (!UndoIsCurrent(w, UndoRelGet(kind, false)) || !w->on_disk ||
		!TransactionIdIsValid(GetCurrentTransactionIdIfAny()))
		return false;
	if (owned[w->cur].ext->fill + pages <= UNDO_EXTENT_BLOCKS)
		return true;
	if (!w->pinned || w->recent_block != UndoCurrentBlock(w))
		return false;
	/* nobody else writes to it */
	ph = (PageHeader) BufferGetPage(w->recent_buffer);
	return ph->pd_special >= ph->pd_lower + len;
}

bool
UndoHasRoom(Relation rel, UndoRoom *room)
{
	UndoKind	kind = UndoKindOf(rel);

	room->there = kind == UNDO_TEMP ||
		UndoRoomIsThere(kind, room->images, room->pages, room->len);
	/* an image takes nothing of a change's room, found before or not */
	room->beside = room->images;
	room->written = nwritten;
	return room->there;
}

/*
 * For the caller's room pages of their own are left: it may count on those, or on the
 * rest of the current page, in which case there are no others.
 */
bool
UndoHasRoomBeside(Relation rel, UndoRoom *room)
{
	UndoKind	kind = UndoKindOf(rel);

	Assert(!room->images);
	room->there = kind == UNDO_TEMP ||
		UndoRoomIsThere(kind, false, room->pages + UNDO_SPARE_PAGES, BLCKSZ);
	room->beside = true;
	room->written = nwritten;
	return room->there;
}

/*
 * For images, which are to stop well before undo is full.
 */
bool
UndoHasRoomToSpare(Relation rel, UndoRoom *room)
{
	UndoKind	kind = UndoKindOf(rel);
	UndoSpace  *sp;

	Assert(room->images && kind != UNDO_TEMP);
	if (!UndoHasRoom(rel, room))
		return false;
	sp = owned[UndoWriterFor(kind, true)->cur].space;
	room->there = UndoLimitSpares(sp, *(volatile uint32 *) &sp->first_free);
	return room->there;
}

static bool
UndoReserveInternal(Relation rel, const UndoRoom *room, bool limited,
					bool missing_ok)
{
	UndoKind	kind = UndoKindOf(rel);
	UndoWriter *w;
	Relation	undorel;

	AssertNoPageLock();
	Assert(room->pages <= UNDO_EXTENT_BLOCKS);
	if (kind == UNDO_TEMP)
		return true;

	(void) GetCurrentTransactionId();
	UndoReportRenewed();
	w = UndoWriterFor(kind, room->images);
	undorel = UndoRelGet(kind, false);
	for (;;)
	{
		if (UndoIsCurrent(w, undorel))
		{
			if (!w->on_disk)
				UndoExtendFile(w, undorel);
			if (owned[w->cur].ext->fill > 0 &&
				(!w->pinned || w->recent_block != UndoCurrentBlock(w)))
			{
				UndoUnpinPage(w);
				(void) UndoPinPage(w, undorel, UndoCurrentBlock(w), false);
			}
			if (UndoRoomIsThere(kind, room->images, room->pages, room->len))
				return true;
		}
		/* the one that is full stays ours until the transaction ends */
		if (!UndoTakeExtent(kind, w, limited, missing_ok))
			return false;
	}
}

void
UndoReserve(Relation rel, const UndoRoom *room)
{
	(void) UndoReserveInternal(rel, room, true, false);
}

/*
 * For images: false if undo is near its limits.
 */
bool
UndoReserveToSpare(Relation rel, const UndoRoom *room)
{
	Assert(room->images);
	return UndoHasSpare(rel) && UndoReserveInternal(rel, room, true, true);
}

/*
 * Bytes left on the current page of images, as far as that is known without reading it.
 */
Size
UndoSpaceOnImagePage(Relation rel)
{
	UndoKind	kind = UndoKindOf(rel);
	UndoWriter *w = UndoWriterFor(kind, true);
	PageHeader	ph;

	if (!UndoIsCurrent(w, UndoRelGet(kind, false)) || !w->pinned ||
		w->recent_block != UndoCurrentBlock(w))
		return 0;
	ph = (PageHeader) BufferGetPage(w->recent_buffer);
	return ph->pd_special - ph->pd_lower;
}

/*
 * For the rollback of a row: it is what makes room again, and readers do it
 * too, so inplace.undo_limit is not for it.  False if undo is full, and missing_ok.
 */
bool
UndoReserveRestore(Relation rel, const UndoRoom *room, bool missing_ok)
{
	return UndoReserveInternal(rel, room, false, missing_ok);
}

void
UndoBegin(Relation rel)
{
	UndoKind	kind = UndoKindOf(rel);
	UndoRoom	little = UndoRoomFor(1, 1);

	if (kind != UNDO_TEMP && UndoWriterFor(kind, false)->cur < 0)
		(void) UndoReserveInternal(rel, &little, true, true);
}

/*
 * A test asks for more than is written, to see what happens.
 */
static inline Size
UndoTestedExcess(void)
{
#ifdef USE_ASSERT_CHECKING
	const char *excess = GetConfigOption("inplace_test.undo_excess", true, false);

	return excess ? atoi(excess) : 0;
#else
	return 0;
#endif
}

/*
 * Take len bytes of the room.  What it does not answer for is not written, though there
 * might be a place for it: at the end of an extent a file would grow with a page locked.
 */
static void
UndoTakeRoom(Relation rel, UndoRoom *room, Size len)
{
	Size		excess = UndoTestedExcess();

	if (unlikely(!room->there || room->records < 1 || room->len < len + excess))
	{
		Assert(excess > 0);
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg_internal("undo of %zu bytes for relation \"%s\" was not reserved",
								 len, RelationGetRelationName(rel)),
				 errdetail_internal("%d records of %zu bytes were reserved%s.",
									room->records, room->len,
									room->there ? "" : ", but not looked for")));
	}

	/* nothing else has come in between, but what leaves room for this */
	Assert(room->written == nwritten);
	if (!room->beside)
		room->written = ++nwritten;
	room->records--;
	room->len -= len;
}

void
UndoPrepare(Relation rel, UndoRoom *room, Size len, TransactionId newest_xid,
			UndoInsert *ui)
{
	UndoKind	kind = UndoKindOf(rel);
	UndoWriter *w;
	Relation	undorel;
	TransactionId xid;

	Assert(len <= UNDO_MAX_RECORD);
	UndoTakeRoom(rel, room, len);
	ui->by_name = false;
	ui->from_page = false;
	ui->on_aborted = false;

	if (kind == UNDO_TEMP)
	{
		UndoTempPrepare(rel, len, ui);
		return;
	}

	xid = GetCurrentTransactionId();
	written_level = Max(written_level, GetCurrentTransactionNestLevel());
	w = UndoWriterFor(kind, room->images);
	undorel = UndoRelGet(kind, false);

	/* no extent is taken here, and no file grows */
	ui->buffer = InvalidBuffer;
	if (UndoIsCurrent(w, undorel) && w->on_disk)
		ui->buffer = UndoFindRoom(w, undorel, len, ui);
	if (!BufferIsValid(ui->buffer))
		elog(ERROR, "undo of %zu bytes reserved for relation \"%s\" is not there",
			 len, RelationGetRelationName(rel));
	UndoExtentAdvanceXid(owned[w->cur].ext, xid);
	if (TransactionIdIsNormal(newest_xid))
		UndoExtentAdvanceXid(owned[w->cur].ext, newest_xid);
	ui->needs_wal = (kind == UNDO_LOGGED);
	prepared = ui;
	prepared_writer = w;
}

/*
 * For a lock that stays where a change is taken back.  on_aborted: the version below was
 * rolled back, too.  If it is not taken back at once the way to it goes through the lock's
 * record (UndoLocksOpenChange does not tell a rolled back change from a committed one).
 */
void
UndoPrepareRestore(Relation rel, UndoRoom *room, Size len,
				   TransactionId newest_xid, bool on_aborted, UndoInsert *ui)
{
	UndoPrepare(rel, room, len, newest_xid, ui);
	ui->on_aborted = on_aborted;
}

/*
 * A change comes first of what is written with it; locks and links are none.
 */
static inline void
UndoNoteChange(const UndoInsert *ui, const char *rec)
{
	UndoRecordHeader hdr;

	memcpy(&hdr, rec, SizeOfUndoRecordHeader);
	if (hdr.ur_type == UNDO_LOCK || hdr.ur_type == UNDO_LINK)
		return;
	last_change.kind = owned[prepared_writer->cur].space->kind;
	last_change.ptr = ui->ptr;
	last_change.xid = hdr.ur_xid;
	last_change.cid = hdr.ur_cid;
}

void
UndoAppend(UndoInsert *ui, const char *rec, Size len)
{
	Page		page = BufferGetPage(ui->buffer);

	if (ui->init)
		UndoPageInit(page);
	UndoPagePut(page, UndoPtrOffset(ui->ptr), rec, len);
	MarkBufferDirty(ui->buffer);

	if (BufferIsLocal(ui->buffer))
		UndoTempAppended(ui);
	else
	{
		UndoExtent *ext = owned[prepared_writer->cur].ext;

		Assert(prepared == ui);
		if (ui->init)
			ext->fill++;
		if (ui->on_aborted || UndoLocksOpenChange(rec, len))
			pg_atomic_fetch_or_u32(&ext->state, EXT_NEEDS_SCAN | EXT_DIRTY);
		UndoNoteChange(ui, rec);
	}
}

/*
 * The command of a change, without reading its record; false if that is not
 * known.  "xid" is running, and ours.
 */
bool
UndoOwnChangeCid(Relation rel, UndoPtr ptr, TransactionId xid, CommandId *cid)
{
	if (ptr != last_change.ptr || xid != last_change.xid ||
		ptr == InvalidUndoPtr || UndoKindOf(rel) != last_change.kind)
		return false;
	*cid = last_change.cid;
	return true;
}

void
UndoRegister(UndoInsert *ui, uint8 block_id)
{
	if (ui->needs_wal)
		XLogRegisterBuffer(block_id, ui->buffer,
						   REGBUF_STANDARD | (ui->init ? REGBUF_WILL_INIT : 0));
}

void
UndoSetLSN(UndoInsert *ui, XLogRecPtr lsn)
{
	if (ui->needs_wal)
		PageSetLSN(BufferGetPage(ui->buffer), lsn);
}

void
UndoRelease(UndoInsert *ui)
{
	if (BufferIsLocal(ui->buffer))
		ReleaseBuffer(ui->buffer);
	else
		LockBuffer(ui->buffer, BUFFER_LOCK_UNLOCK);
	ui->buffer = InvalidBuffer;
	prepared = NULL;
}

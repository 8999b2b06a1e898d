/*-------------------------------------------------------------------------
 *
 * restore_extents.c
 *	  Restoring the aborted changes recorded in extents of undo.
 *
 * Aborted changes are looked for as soon as the transaction has ended, so that
 * its rows do not stay slow for as long as some snapshot holds the undo
 * back.  A relation that is not in the catalog may be one that an open or
 * prepared transaction has made; only when newest_xid has passed the horizon
 * is it certain that it is gone.
 *
 * A tick restores for RESTORE_MS at most, and the next one goes on from there:
 * a large rollback must not keep undo that nobody needs from being given back.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "miscadmin.h"
#include "undo/restore_extents.h"
#include "undo/scan_page.h"
#include "undo/space.h"
#include "undo/tick.h"
#include "undo/undo.h"
#include "undo/undo_rows.h"
#include "undo/worker.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/*
 * Extents whose scan ended with an error.  The more there are, the later they are
 * tried again, for each try is a message in the log.
 */
#define BROKEN_PER_RETRY	16

typedef struct BrokenExtent
{
	UndoKind	kind;
	uint32		number;
	TimestampTz retry;
} BrokenExtent;

static uint32 next_to_restore[UNDO_SHARED_KINDS];
static BrokenExtent *broken = NULL;
static int	nbroken = 0;
static int	broken_size = 0;

static UndoScanResult
RestoreRecord(const UndoRecordHeader *hdr, void *arg)
{
	UndoTick   *tick = (UndoTick *) arg;

	if (UndoTargetGet(hdr->ur_spc, hdr->ur_rel, tick) == NULL)
		return tick->target_missing;
	if (hdr->ur_block < tick->target_nblocks &&
		undo_rows->restore(tick->target, hdr->ur_block, hdr->ur_off))
		tick->restored++;
	return UNDO_SCAN_DONE;
}

/*
 * Nothing is left to restore in the extent, unless somebody aborted while we
 * looked (DIRTY), or is writing to it now.
 */
static void
ExtentScanned(UndoExtent *ext)
{
	uint32		state;

	UndoExtentAdvanceXid(ext, ReadNextTransactionId());
	state = pg_atomic_read_u32(&ext->state);
	while (UndoExtentIsIdle(state) && !(state & EXT_DIRTY))
		if (pg_atomic_compare_exchange_u32(&ext->state, &state,
										   state & ~(EXT_NEEDS_SCAN | EXT_WAIT)))
			break;
}

/*
 * Restore the aborted changes recorded on a page.  Returns false if the tick has to
 * end.
 */
bool
UndoRestoreBlock(UndoTick *tick, BlockNumber blk, UndoScanResult *result)
{
	PGAlignedBlock copy;
	Buffer		buffer;

	CHECK_FOR_INTERRUPTS();
	if (UndoWorkerShouldStop())
		return false;

	buffer = ReadBuffer(tick->undorel, blk);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(copy.data, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);

	/*
	 * A relation that was missing is looked for once a page, or once an
	 * extent if it will not come any more.
	 */
	if (tick->target_missing != UNDO_SCAN_DONE)
		UndoTargetForgetMissing(tick);
	*result = UndoScanPage((Page) copy.data, blk, RestoreRecord, tick);
	return tick->target == NULL || UndoTickRenew(tick);
}

/*
 * Restore the aborted changes recorded in extent n.  Returns false if the
 * tick has to end.
 */
static bool
ExtentScan(UndoTick *tick, uint32 n)
{
	UndoExtent *ext = UndoExtentAt(tick->space, n);
	UndoScanResult worst = UNDO_SCAN_DONE;
	uint32		state;
	uint16		fill;

	UndoWorkerCheckClaim(tick->space);
	tick->past_horizon = UndoExtentPastHorizon(tick, ext);
	UndoTargetForgetMissing(tick);

	/*
	 * Before "fill" is read.  A transaction that takes the extent from here
	 * on, and aborts, sets DIRTY again.  One that has taken it already may
	 * have done so, and does it once only (UndoFlagOwned): then we must not
	 * clear it.
	 */
	state = pg_atomic_read_u32(&ext->state);
	do
	{
		if (!UndoExtentIsIdle(state))
			return true;
	} while (!pg_atomic_compare_exchange_u32(&ext->state, &state,
											 state & ~(EXT_DIRTY | EXT_WAIT)));
	fill = ext->fill;

	for (uint16 i = ext->scanned; i < fill; i++)
	{
		UndoScanResult r;

		if (!UndoRestoreBlock(tick, UndoExtentStart(n) + i, &r))
			return false;

		/* the last page may still grow */
		if (r == UNDO_SCAN_DONE && worst == UNDO_SCAN_DONE && i + 1 < fill)
			ext->scanned = i + 1;
		if (r == UNDO_SCAN_LATER ||
			(r == UNDO_SCAN_WAIT && worst == UNDO_SCAN_DONE))
			worst = r;
	}

	if (worst != UNDO_SCAN_LATER)
		tick->progress = true;
	if (worst == UNDO_SCAN_DONE)
		ExtentScanned(ext);
	else if (worst == UNDO_SCAN_WAIT)
		pg_atomic_fetch_or_u32(&ext->state, EXT_WAIT);
	return true;
}

static bool
ExtentIsBroken(UndoKind kind, uint32 n)
{
	for (int i = 0; i < nbroken; i++)
		if (broken[i].kind == kind && broken[i].number == n)
		{
			if (GetCurrentTimestamp() < broken[i].retry)
				return true;
			broken[i] = broken[--nbroken];
			return false;
		}
	return false;
}

static void
NoteBroken(UndoKind kind, uint32 n)
{
	if (nbroken == broken_size)
	{
		int			size = Max(16, broken_size * 2);

		broken = broken == NULL ?
			MemoryContextAlloc(TopMemoryContext, size * sizeof(BrokenExtent)) :
			repalloc(broken, size * sizeof(BrokenExtent));
		broken_size = size;
	}
	broken[nbroken].kind = kind;
	broken[nbroken].number = n;
	broken[nbroken].retry =
		TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
									(1 + nbroken / BROKEN_PER_RETRY) *
									(int64) ERROR_RETRY_MS);
	nbroken++;
}

/*
 * Scan an extent; after an error it is left alone for a while, however many of
 * them there are: others have to be given back all the same.
 */
static bool
ExtentScanCatch(UndoTick *tick, uint32 n)
{
	bool		failed;
	bool		ok;

	ok = UndoTickTry(tick, ExtentScan, n, &failed);
	if (failed)
		NoteBroken(tick->kind, n);
	return ok;
}

/*
 * Can something be restored in extent n now?
 */
static bool
ExtentWantsScan(UndoTick *tick, uint32 n)
{
	UndoExtent *ext = UndoExtentAt(tick->space, n);
	uint32		state = pg_atomic_read_u32(&ext->state);

	if (!(state & EXT_NEEDS_SCAN) || !UndoExtentIsIdle(state))
		return false;
	if ((state & EXT_WAIT) && !(state & EXT_DIRTY) &&
		!UndoExtentPastHorizon(tick, ext))
	{
		/* it may be one that was raised when the extent was scanned before */
		UndoTickWaitsFor(tick, pg_atomic_read_u32(&ext->newest_xid));
		return false;
	}
	return nbroken == 0 || !ExtentIsBroken(tick->kind, n);
}

bool
UndoRestoreExtents(UndoTick *tick)
{
	TimestampTz start = GetCurrentTimestamp();
	uint32		nextents = UndoSpaceExtents(tick->space);
	uint32		first = nextents == 0 ? 0 : next_to_restore[tick->kind] % nextents;

	tick->progress = false;
	for (uint32 i = 0; i < nextents && !tick->more; i++)
	{
		uint32		n = (first + i) % nextents;

		if (!ExtentWantsScan(tick, n))
			continue;
		if (!ExtentScanCatch(tick, n))
			return false;
		next_to_restore[tick->kind] = n + 1;
		/* a table that is locked is not waited for without a pause */
		tick->more = tick->progress &&
			TimestampDifferenceExceeds(start, GetCurrentTimestamp(),
									   RESTORE_MS);
	}
	UndoTargetClose(tick);
	return true;
}

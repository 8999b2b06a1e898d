/*-------------------------------------------------------------------------
 *
 * discard.c
 *	  Giving undo back.  Run by a database's undo worker, which first restores
 *	  aborted changes (restore_extents.c), then makes extents free, and then cuts
 *	  off the end of the file (shrink.c).
 *
 * An extent is given back when
 *	  1. it is not owned by an open transaction,
 *	  2. its newest_xid precedes the horizon of this database, so that every
 *		 snapshot sees all committed changes recorded in it, and
 *	  3. the aborted changes recorded in it have been restored on their
 *		 pages (NEEDS_SCAN is not set), and the snapshots that can have seen
 *		 the pages before that have gone, too.
 *
 * or when nobody is led to it any more (release.c).  For extents without a place in
 * the map (the tail, space.c) the same goes for all of them together.
 *
 * The last part of 3 is needed because a reader may copy a page and follow
 * its rows' undo later, from the copy.  The horizon says nothing about an
 * aborted xid then: the reader's snapshot may be much younger.  So when a scan
 * of an extent has found nothing left to restore, newest_xid is raised to the
 * next xid.  If nobody uses that xid soon, the worker does so itself, or an
 * idle database would never get its space back; but not while xids run short, when
 * the space can wait.  It does so too if the extent has got changes since, of a
 * prepared transaction, which are looked at again only behind that xid.  The same
 * xid, in the discard record, makes standbys cancel the queries that could be in that
 * position.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "commands/dbcommands.h"
#include "storage/lmgr.h"
#include "undo/discard.h"
#include "undo/holders.h"
#include "undo/restore_extents.h"
#include "undo/scan_page.h"
#include "undo/shrink.h"
#include "undo/space.h"
#include "undo/tick.h"
#include "undo/undo.h"
#include "undo/undo_log.h"
#include "undo/undo_rows.h"
#include "undo/undorel.h"
#include "undo/worker.h"
#include "utils/timestamp.h"

/* ---------------- extents that nobody is led to ---------------- */

static bool
MarkReleasable(UndoTick *tick, uint32 nextents)
{
	UndoReleaseJob job = {
		tick->kind, tick->space, nextents, tick->undorel, tick->horizon, UndoTargetGet, UndoTargetLetGo, tick
	};

	tick->releasable = palloc0(nextents / 8 + 1);
	tick->more_release = undo_rows->find_releasable(&job, tick->releasable,
													&tick->all_ended);
	tick->nreleasable = nextents;
	UndoTargetClose(tick);
	return true;
}

/*
 * Look for them.  After trouble with a table or its undo it is tried again
 * only after a while.  Returns false if the tick has to end.
 */
static bool
FindReleasable(UndoTick *tick)
{
	static TimestampTz retry = 0;
	bool		failed;
	bool		ok;

	tick->nreleasable = 0;
	tick->more_release = false;
	if (!UndoHoldersAny() || GetCurrentTimestamp() < retry)
		return true;
	tick->past_horizon = false;
	tick->releasing = true;
	ok = UndoTickTry(tick, MarkReleasable, UndoSpaceExtents(tick->space), &failed);
	tick->releasing = false;
	if (failed)
	{
		tick->nreleasable = 0;
		retry = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ERROR_RETRY_MS);
	}
	return ok;
}

/*
 * Nobody has written to it since it was looked at: it was full.
 */
static bool
ExtentStartRelease(UndoTick *tick, uint32 n, UndoExtent *ext)
{
	uint32		state = EXT_FULL;

	return n < tick->nreleasable &&
		(tick->releasable[n / 8] & (1 << (n % 8))) != 0 &&
		pg_atomic_compare_exchange_u32(&ext->state, &state, EXT_DISCARD);
}

/* ---------------- making extents free ---------------- */

/*
 * Take the extent away from backends that could append to it, if it may be given
 * back.
 */
static bool
ExtentStartDiscard(UndoTick *tick, UndoExtent *ext)
{
	uint32		state = pg_atomic_read_u32(&ext->state);
	uint32		old = state;

	if (!UndoExtentIsIdle(state) || (state & EXT_NEEDS_SCAN))
		return false;
	if (!UndoExtentPastHorizon(tick, ext))
	{
		UndoTickWaitsFor(tick, pg_atomic_read_u32(&ext->newest_xid));
		return false;
	}
	if (!pg_atomic_compare_exchange_u32(&ext->state, &state, EXT_DISCARD))
		return false;
	/* somebody may have had it in between */
	if (!UndoExtentPastHorizon(tick, ext))
	{
		pg_atomic_write_u32(&ext->state, old);
		return false;
	}
	return true;
}

/*
 * Give back all that can be.  The WAL record comes before the first byte that
 * is overwritten.
 */
static void
DiscardExtents(UndoTick *tick)
{
	UndoSpace  *sp = tick->space;
	TransactionId newest = InvalidTransactionId;
	uint32		lowest = PG_UINT32_MAX;
	uint32		highest = 0;
	uint32		nextents;

	UndoWorkerCheckClaim(sp);
	nextents = UndoSpaceExtents(sp);
	for (uint32 n = 0; n < nextents; n++)
	{
		UndoExtent *ext = UndoExtentAt(sp, n);
		TransactionId xid;

		/* left by a worker that had an error before it was logged */
		if (pg_atomic_read_u32(&ext->state) == EXT_DISCARD)
			pg_atomic_write_u32(&ext->state, EXT_FULL);
		if (!ExtentStartDiscard(tick, ext) && !ExtentStartRelease(tick, n, ext))
			continue;
		xid = pg_atomic_read_u32(&ext->newest_xid);
		if (TransactionIdIsValid(xid) &&
			(!TransactionIdIsValid(newest) || TransactionIdFollows(xid, newest)))
			newest = xid;
		lowest = Min(lowest, n);
		highest = Max(highest, n);
	}
	if (lowest == PG_UINT32_MAX)
		return;

	if (tick->kind == UNDO_LOGGED && TransactionIdIsValid(newest))
	{
		inplace_log_discard(MyDatabaseId, newest);
		if (TransactionIdPrecedes(newest, tick->horizon) ||
			(TransactionIdIsValid(tick->all_ended) &&
			 TransactionIdPrecedes(newest, tick->all_ended)))
			UndoNoteDiscarded(sp, newest);
	}

	LWLockAcquire(&sp->lock.lock, LW_EXCLUSIVE);
	for (uint32 n = lowest; n <= highest; n++)
	{
		UndoExtent *ext = UndoExtentAt(sp, n);

		if (pg_atomic_read_u32(&ext->state) == EXT_DISCARD)
			pg_atomic_write_u32(&ext->state, EXT_FREE);
	}
	sp->first_free = Min(sp->first_free, lowest);
	LWLockRelease(&sp->lock.lock);
}

/* ---------------- extents without a place in the map ---------------- */

/*
 * Restore what was aborted in the tail (space.c), page after page.  That waits until
 * all its transactions have ended, so it is gone through once.  Returns false if
 * the tick has to end.
 */
static bool
TailScan(UndoTick *tick, uint32 unused)
{
	UndoSpace  *sp = tick->space;
	TimestampTz start = GetCurrentTimestamp();

	UndoWorkerCheckClaim(sp);
	tick->past_horizon = true;
	while (sp->tail_scanned < sp->tail_end)
	{
		UndoScanResult result;

		if (!UndoRestoreBlock(tick, sp->tail_scanned, &result))
			return false;
		if (result != UNDO_SCAN_DONE)
			return true;
		sp->tail_scanned++;
		if (sp->tail_scanned < sp->tail_end &&
			TimestampDifferenceExceeds(start, GetCurrentTimestamp(),
									   RESTORE_MS))
		{
			tick->more = true;
			break;
		}
	}
	/* as in ExtentScanned */
	if (sp->tail_scanned == sp->tail_end)
		sp->tail_xid = ReadNextTransactionId();
	return true;
}

static void
TailReport(UndoTick *tick)
{
	static bool reported[UNDO_SHARED_KINDS];

	if (reported[tick->kind])
		return;
	reported[tick->kind] = true;
	ereport(LOG,
			(errmsg("undo of database \"%s\" has %u extents more than \"inplace.undo_extents\" (%d) has places for",
					get_database_name(MyDatabaseId), UndoTailExtents(tick->space),
					inplace_undo_extents),
			 errdetail("They are given back when nothing in them is needed any more; until then the file does not grow."),
			 errhint("With \"inplace.undo_extents\" of %u or more, after a restart, it could.",
					 UndoExtentsWanted())));
}

/*
 * Give the tail back if it can be: the conditions are those of an extent.
 * Returns false if the tick has to end.
 */
static bool
DiscardTail(UndoTick *tick)
{
	static TimestampTz retry = 0;
	UndoSpace  *sp = tick->space;

	if (sp->tail_end == 0)
		return true;
	TailReport(tick);
	if (!TransactionIdPrecedes(sp->tail_xid, tick->horizon))
	{
		UndoTickWaitsFor(tick, sp->tail_xid);
		return true;
	}
	if (sp->tail_scanned < sp->tail_end)
	{
		bool		failed = false;
		bool		ok = true;

		if (GetCurrentTimestamp() >= retry)
			ok = UndoTickTry(tick, TailScan, 0, &failed);
		if (failed)
			retry = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ERROR_RETRY_MS);
		if (ok)
			UndoTargetClose(tick);
		return ok;
	}

	if (tick->kind == UNDO_LOGGED)
	{
		inplace_log_discard(MyDatabaseId, sp->tail_xid);
		UndoNoteDiscarded(sp, sp->tail_xid);
	}
	UndoWorkerCheckClaim(sp);
	LWLockAcquire(&sp->lock.lock, LW_EXCLUSIVE);
	UndoTailEnd(sp);
	LWLockRelease(&sp->lock.lock);
	return true;
}

/* ---------------- the tick ---------------- */

static void
DiscardTickSpace(UndoTick *tick)
{
	/* our own catalog snapshot must not hold the horizon back */
	InvalidateCatalogSnapshot();
	tick->horizon = GetOldestNonRemovableTransactionId(tick->undorel);
	tick->space->horizon = tick->horizon;
	UndoHoldersLook(tick->horizon);

	if (!UndoRestoreExtents(tick) || !FindReleasable(tick))
		return;
	DiscardExtents(tick);
	if (!DiscardTail(tick))
		return;
	UndoShrink(tick->space, tick->undorel);
}

/*
 * The worker's space of a kind, marked as having a worker; NULL if the
 * database has no undo of that kind.
 */
static UndoSpace *
DiscardAttach(UndoKind kind, Oid *undo_relid)
{
	UndoSpace  *sp = NULL;
	Relation	undorel;
	bool		claimed;

	*undo_relid = InvalidOid;
	undorel = UndoRelGet(kind, true);
	if (undorel != NULL &&
		ConditionalLockRelationOid(RelationGetRelid(undorel), AccessShareLock))
	{
		/* it may have been dropped before we had the lock */
		undorel = UndoRelGet(kind, true);
		if (undorel != NULL)
		{
			sp = UndoSpaceLock(kind, LW_SHARED);
			claimed = UndoWorkerClaim(sp);
			UndoSpaceUnlock(sp);
			if (!claimed)
				UndoWorkerCheckClaim(sp);
			*undo_relid = RelationGetRelid(undorel);
		}
	}
	return sp;
}

/*
 * Do what can be done now.  Returns false if this database has no undo at all
 * (the extension is not there); *in_use says whether extents are left, *more
 * whether to come again at once.
 */
bool
UndoDiscardTick(bool *in_use, bool *more)
{
	UndoSpace  *spaces[UNDO_SHARED_KINDS];
	Oid			relids[UNDO_SHARED_KINDS];
	RelFileLocator locators[UNDO_SHARED_KINDS];
	int			nspaces = 0;
	bool		burn = false;

	*in_use = false;
	*more = false;

	StartTransactionCommand();
	for (int kind = 0; kind < UNDO_SHARED_KINDS; kind++)
	{
		spaces[kind] = DiscardAttach((UndoKind) kind, &relids[kind]);
		if (spaces[kind] != NULL)
			locators[nspaces++] = spaces[kind]->locator;
		else if (OidIsValid(UndoRelid((UndoKind) kind)))
			*in_use = true;		/* locked just now: come again */
	}
	CommitTransactionCommand();

	/* what an extension that was dropped has left in shared memory */
	if (nspaces == UNDO_SHARED_KINDS || !*in_use)
		UndoSpacesForget(MyDatabaseId, locators, nspaces);

	for (int kind = 0; kind < UNDO_SHARED_KINDS; kind++)
	{
		UndoTick	tick = {0};

		if (spaces[kind] == NULL)
			continue;
		tick.kind = (UndoKind) kind;
		tick.space = spaces[kind];
		tick.undo_relid = relids[kind];
		UndoForgetDiscarded(tick.space);
		if (!UndoSpaceIsEmpty(tick.space))
		{
			if (UndoTickBegin(&tick))
				DiscardTickSpace(&tick);
			UndoTickEnd(&tick);
		}
		if (!UndoSpaceIsEmpty(tick.space))
			*in_use = true;
		burn |= tick.burn;
		*more |= tick.more || tick.more_release;
	}

	/* see the head of the file */
	if (burn && !InplaceXidsRunShort())
	{
		StartTransactionCommand();
		(void) GetCurrentTransactionId();
		CommitTransactionCommand();
	}
	return nspaces > 0 || *in_use;
}

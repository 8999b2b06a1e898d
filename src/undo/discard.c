/*-------------------------------------------------------------------------
 *
 * discard.c
 *	  Giving undo back: restoring aborted changes and making extents free.
 *	  Run by a database's undo worker, which then cuts off the end of the file
 *	  (shrink.c).
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
 * the space can wait.  The same xid, in the discard record, makes standbys cancel
 * the queries that could be in that position.
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
 * Locks: none on the relation being restored that anybody would have to wait
 * for: RowExclusiveLock is taken if it can be had at once and released
 * after a page of undo.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "commands/dbcommands.h"
#include "undo/discard.h"
#include "undo/holders.h"
#include "undo/record.h"
#include "undo/shrink.h"
#include "undo/space.h"
#include "undo/undo_log.h"
#include "undo/undo_rows.h"
#include "undo/undorel.h"
#include "undo/worker.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

/* how long a tick may restore aborted changes, about */
#define RESTORE_MS				500

/* after an extent could not be scanned because of an error */
#define ERROR_RETRY_MS			60000

/* what one tick of a space works with */
typedef struct DiscardState
{
	UndoKind	kind;
	Oid			undo_relid;
	Relation	undorel;		/* opened, AccessShareLock */
	UndoSpace  *space;
	TransactionId horizon;
	bool		burn;			/* an extent waits for an unused xid to pass */
	bool		more;			/* there is something left to restore now */
	bool		more_release;	/* extents were found, and not all looked at */
	bool		progress;		/* not all that was scanned is to wait */
	uint8	   *releasable;		/* extents that nobody is led to, as bits, */
	uint32		nreleasable;	/* ... and how many bits */
	TransactionId all_ended;	/* transactions before have ended */

	/* the relation being restored */
	RelFileLocator target_locator;
	Relation	target;
	BlockNumber target_nblocks;
	UndoScanResult target_missing;	/* what to answer if target is NULL */
	bool		target_valid;
	bool		past_horizon;	/* of the extent being scanned */
	bool		releasing;		/* not restoring: a wrong table is worse than
								 * none */
	uint64		restored;		/* since the last commit */
} DiscardState;

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

/* ---------------- what became of a transaction ---------------- */

/*
 * Undo that was read back after a restart may be of any age: an xid whose
 * commit status has been removed is not referred to by any row, and one
 * that is still to come belongs to an earlier age.
 */
static UndoXidFate
UndoGetXidFate(TransactionId xid)
{
	UndoXidFate fate;

	if (!TransactionIdIsNormal(xid) ||
		TransactionIdFollowsOrEquals(xid, ReadNextTransactionId()))
		return UNDO_XID_DONE;
	if (TransactionIdIsInProgress(xid))
		return UNDO_XID_RUNNING;

	LWLockAcquire(XactTruncationLock, LW_SHARED);
	if (TransactionIdPrecedes(xid, TransamVariables->oldestClogXid))
		fate = UNDO_XID_DONE;
	else
		fate = TransactionIdDidCommit(xid) ? UNDO_XID_DONE : UNDO_XID_ABORTED;
	LWLockRelease(XactTruncationLock);
	return fate;
}

/*
 * The transaction whose rollback this record is needed for: for a lock that
 * of the change under it, since the way to that change's record may lead
 * through the lock's.
 */
static TransactionId
UndoRecordXid(const char *raw, Size maxlen)
{
	const UndoRecordHeader *hdr = (const UndoRecordHeader *) raw;
	UndoRecord	rec;

	if (hdr->ur_type != UNDO_LOCK)
		return hdr->ur_xid;
	if (!UndoParse(raw, maxlen, NULL, &rec))
		return InvalidTransactionId;
	return rec.old.t_xid;
}

/*
 * Look at all records of a copy of an undo page.
 */
UndoScanResult
UndoScanPage(Page page, BlockNumber blk, UndoRestoreCallback restore, void *arg)
{
	PageHeader	ph = (PageHeader) page;
	UndoScanResult result = UNDO_SCAN_DONE;
	TransactionId last_xid = InvalidTransactionId;
	UndoXidFate last_fate = UNDO_XID_DONE;
	uint16		off = SizeOfPageHeaderData;

	if (PageIsNew(page))
		return UNDO_SCAN_DONE;

	while (off < ph->pd_lower)
	{
		UndoRecordHeader hdr;
		TransactionId xid;
		Size		left = Min(ph->pd_lower, BLCKSZ) - off;
		UndoScanResult r = UNDO_SCAN_DONE;

		if (left >= SizeOfUndoRecordHeader)
			memcpy(&hdr, (char *) page + off, SizeOfUndoRecordHeader);
		if (left < SizeOfUndoRecordHeader ||
			hdr.ur_len < SizeOfUndoRecordHeader || hdr.ur_len > left)
		{
			ereport(WARNING,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("invalid undo record at offset %u of undo block %u, rest of the block is skipped",
							off, blk)));
			break;
		}

		xid = UndoRecordXid((char *) page + off, left);
		if (xid != last_xid)
		{
			last_fate = UndoGetXidFate(xid);
			last_xid = xid;
		}
		if (last_fate == UNDO_XID_RUNNING)
			r = UNDO_SCAN_WAIT;
		else if (last_fate == UNDO_XID_ABORTED)
			r = restore(&hdr, arg);

		/* LATER is stronger than WAIT: it asks for a scan soon */
		if (r == UNDO_SCAN_LATER ||
			(r == UNDO_SCAN_WAIT && result == UNDO_SCAN_DONE))
			result = r;
		off += hdr.ur_len;
	}
	return result;
}

/* ---------------- the relation being restored ---------------- */

static void
TargetClose(DiscardState *ds)
{
	if (ds->target_valid && ds->target != NULL)
		relation_close(ds->target, RowExclusiveLock);
	ds->target = NULL;
	ds->target_valid = false;
}

/*
 * The relation with that storage.  The cache behind RelidByRelfilenumber also
 * remembers what it did not find, and learns that the relation's maker has
 * committed only after the horizon has moved on.  So once the answer "there
 * is none" is final the catalog itself is asked, with a new snapshot.
 */
static Oid
TargetRelid(DiscardState *ds, Oid spc, Oid relnumber)
{
	Oid			relid = RelidByRelfilenumber(spc, relnumber);
	Relation	pg_class;
	SysScanDesc scan;
	ScanKeyData key[2];
	HeapTuple	tuple;

	if (OidIsValid(relid) || !ds->past_horizon)
		return relid;

	InvalidateCatalogSnapshot();
	pg_class = table_open(RelationRelationId, AccessShareLock);
	ScanKeyInit(&key[0], Anum_pg_class_reltablespace, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(spc == MyDatabaseTableSpace ? 0 : spc));
	ScanKeyInit(&key[1], Anum_pg_class_relfilenode, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relnumber));
	scan = systable_beginscan(pg_class, ClassTblspcRelfilenodeIndexId, true,
							  NULL, 2, key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		if (form->relpersistence != RELPERSISTENCE_TEMP)
			relid = form->oid;
	}
	systable_endscan(scan);
	table_close(pg_class, AccessShareLock);
	return relid;
}

/*
 * Open the inplace table with that storage, if there is one and nobody is
 * altering it.
 */
static void
TargetOpen(DiscardState *ds, Oid spc, Oid relnumber)
{
	Oid			relid;
	Relation	rel;
	bool		moved = false;

	TargetClose(ds);
	LocatorSpc(ds->target_locator) = spc;
	LocatorDb(ds->target_locator) = MyDatabaseId;
	LocatorRel(ds->target_locator) = relnumber;
	ds->target_valid = true;

	ds->target_missing = ds->past_horizon ? UNDO_SCAN_DONE : UNDO_SCAN_WAIT;
	relid = TargetRelid(ds, spc, relnumber);
	if (!OidIsValid(relid) && spc != MyDatabaseTableSpace && !ds->releasing)
	{
		/*
		 * CREATE DATABASE and ALTER DATABASE may take all tables of the
		 * default tablespace to another one.  (No snapshot is from before
		 * that.  File numbers are unique in a tablespace only.)
		 */
		relid = TargetRelid(ds, MyDatabaseTableSpace, relnumber);
		moved = true;
	}
	if (!OidIsValid(relid))
		return;
	if (!ConditionalLockRelationOid(relid, RowExclusiveLock))
	{
		ds->target_missing = UNDO_SCAN_LATER;
		return;
	}
	rel = try_relation_open(relid, NoLock);
	if (rel == NULL)
	{
		UnlockRelationOid(relid, RowExclusiveLock);
		return;
	}
	if (LocatorRel(RelLocator(rel)) != relnumber ||
		LocatorSpc(RelLocator(rel)) != (moved ? MyDatabaseTableSpace : spc))
	{
		/* changed before we had the lock: look again in the next tick */
		relation_close(rel, RowExclusiveLock);
		ds->target_missing = UNDO_SCAN_LATER;
		return;
	}
	if (!RelationIsInplace(rel))
	{
		relation_close(rel, RowExclusiveLock);
		ds->target_missing = UNDO_SCAN_DONE;
		return;
	}
	ds->target = rel;
	ds->target_nblocks = RelationGetNumberOfBlocks(rel);
}

/*
 * The same, if it is not open already.
 */
static Relation
TargetGet(Oid spc, Oid relnumber, void *arg)
{
	DiscardState *ds = (DiscardState *) arg;

	if (!ds->target_valid ||
		LocatorSpc(ds->target_locator) != spc ||
		LocatorRel(ds->target_locator) != relnumber)
		TargetOpen(ds, spc, relnumber);
	return ds->target;
}

static void
TargetLetGo(void *arg)
{
	TargetClose((DiscardState *) arg);
}

static UndoScanResult
RestoreRecord(const UndoRecordHeader *hdr, void *arg)
{
	DiscardState *ds = (DiscardState *) arg;

	if (TargetGet(hdr->ur_spc, hdr->ur_rel, ds) == NULL)
		return ds->target_missing;
	if (hdr->ur_block < ds->target_nblocks &&
		undo_rows->restore(ds->target, hdr->ur_block, hdr->ur_off))
		ds->restored++;
	return UNDO_SCAN_DONE;
}

/* ---------------- transactions of a tick ---------------- */

/*
 * Begin a transaction with the undo relation open.  False if it is gone, or
 * about to go.
 */
static bool
TickBegin(DiscardState *ds)
{
	StartTransactionCommand();
	UndoReportRenewed();
	ds->undorel = NULL;
	if (!ConditionalLockRelationOid(ds->undo_relid, AccessShareLock))
		return false;
	ds->undorel = try_relation_open(ds->undo_relid, NoLock);
	return ds->undorel != NULL &&
		RelFileLocatorEquals(RelLocator(ds->undorel), ds->space->locator);
}

static void
TickEnd(DiscardState *ds)
{
	TargetClose(ds);
	if (ds->undorel != NULL)
		relation_close(ds->undorel, NoLock);
	ds->undorel = NULL;
	CommitTransactionCommand();
	if (ds->restored > 0)
		pg_atomic_fetch_add_u64(&ds->space->rows_restored, ds->restored);
	ds->restored = 0;
}

/* let go of all locks, as others may be waiting for them */
static bool
TickRenew(DiscardState *ds)
{
	TickEnd(ds);
	return TickBegin(ds);
}

/*
 * Do a part of the tick.  An error in it is logged, and must not keep the rest
 * from being done.  Returns false if the tick has to end.
 */
static bool
TickTry(DiscardState *ds, bool (*part) (DiscardState *ds, uint32 n), uint32 n,
		bool *failed)
{
	MemoryContext oldcontext = CurrentMemoryContext;
	volatile bool ok = true;
	volatile bool caught = false;

	PG_TRY();
	{
		ok = part(ds, n);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(oldcontext);
		HOLD_INTERRUPTS();
		EmitErrorReport();
		AbortCurrentTransaction();
		FlushErrorState();
		RESUME_INTERRUPTS();
		caught = true;
	}
	PG_END_TRY();

	*failed = caught;
	if (!caught)
		return ok;
	ds->target = NULL;
	ds->target_valid = false;
	ds->restored = 0;
	return TickBegin(ds);
}

/* ---------------- scanning for aborted changes ---------------- */

static bool
ExtentPastHorizon(DiscardState *ds, UndoExtent *ext)
{
	TransactionId newest = pg_atomic_read_u32(&ext->newest_xid);

	return !TransactionIdIsValid(newest) ||
		TransactionIdPrecedes(newest, ds->horizon);
}

static bool
StateIsIdle(uint32 state)
{
	return (state & EXT_STATE_MASK) == EXT_PARTIAL ||
		(state & EXT_STATE_MASK) == EXT_FULL;
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
	while (StateIsIdle(state) && !(state & EXT_DIRTY))
		if (pg_atomic_compare_exchange_u32(&ext->state, &state,
										   state & ~(EXT_NEEDS_SCAN | EXT_WAIT)))
			break;
}

/*
 * Restore the aborted changes recorded on a page.  Returns false if the tick has to
 * end.
 */
static bool
BlockScan(DiscardState *ds, BlockNumber blk, UndoScanResult *result)
{
	PGAlignedBlock copy;
	Buffer		buffer;

	CHECK_FOR_INTERRUPTS();
	if (UndoWorkerShouldStop())
		return false;

	buffer = ReadBuffer(ds->undorel, blk);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(copy.data, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);

	/* a relation that was missing is looked for once a page */
	if (ds->target_valid && ds->target == NULL)
		TargetClose(ds);
	*result = UndoScanPage((Page) copy.data, blk, RestoreRecord, ds);
	return ds->target == NULL || TickRenew(ds);
}

/*
 * Restore the aborted changes recorded in extent n.  Returns false if the
 * tick has to end.
 */
static bool
ExtentScan(DiscardState *ds, uint32 n)
{
	UndoExtent *ext = UndoExtentAt(ds->space, n);
	UndoScanResult worst = UNDO_SCAN_DONE;
	uint32		state;
	uint16		fill;

	UndoWorkerCheckClaim(ds->space);
	ds->past_horizon = ExtentPastHorizon(ds, ext);

	/*
	 * Before "fill" is read.  A transaction that takes the extent from here
	 * on, and aborts, sets DIRTY again.  One that has taken it already may
	 * have done so, and does it once only (UndoFlagOwned): then we must not
	 * clear it.
	 */
	state = pg_atomic_read_u32(&ext->state);
	do
	{
		if (!StateIsIdle(state))
			return true;
	} while (!pg_atomic_compare_exchange_u32(&ext->state, &state,
											 state & ~(EXT_DIRTY | EXT_WAIT)));
	fill = ext->fill;

	for (uint16 i = ext->scanned; i < fill; i++)
	{
		UndoScanResult r;

		if (!BlockScan(ds, UndoExtentStart(n) + i, &r))
			return false;

		/* the last page may still grow */
		if (r == UNDO_SCAN_DONE && worst == UNDO_SCAN_DONE && i + 1 < fill)
			ext->scanned = i + 1;
		if (r == UNDO_SCAN_LATER ||
			(r == UNDO_SCAN_WAIT && worst == UNDO_SCAN_DONE))
			worst = r;
	}

	if (worst != UNDO_SCAN_LATER)
		ds->progress = true;
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
ExtentScanCatch(DiscardState *ds, uint32 n)
{
	bool		failed;
	bool		ok;

	ok = TickTry(ds, ExtentScan, n, &failed);
	if (failed)
		NoteBroken(ds->kind, n);
	return ok;
}

/*
 * Can something be restored in extent n now?
 */
static bool
ExtentWantsScan(DiscardState *ds, uint32 n)
{
	UndoExtent *ext = UndoExtentAt(ds->space, n);
	uint32		state = pg_atomic_read_u32(&ext->state);

	if (!(state & EXT_NEEDS_SCAN) || !StateIsIdle(state))
		return false;
	if ((state & EXT_WAIT) && !(state & EXT_DIRTY) &&
		!ExtentPastHorizon(ds, ext))
		return false;
	return nbroken == 0 || !ExtentIsBroken(ds->kind, n);
}

static bool
RestoreExtents(DiscardState *ds)
{
	TimestampTz start = GetCurrentTimestamp();
	uint32		nextents = UndoSpaceExtents(ds->space);
	uint32		first = nextents == 0 ? 0 : next_to_restore[ds->kind] % nextents;

	ds->progress = false;
	for (uint32 i = 0; i < nextents && !ds->more; i++)
	{
		uint32		n = (first + i) % nextents;

		if (!ExtentWantsScan(ds, n))
			continue;
		if (!ExtentScanCatch(ds, n))
			return false;
		next_to_restore[ds->kind] = n + 1;
		/* a table that is locked is not waited for without a pause */
		ds->more = ds->progress &&
			TimestampDifferenceExceeds(start, GetCurrentTimestamp(),
									   RESTORE_MS);
	}
	TargetClose(ds);
	return true;
}

/* ---------------- extents that nobody is led to ---------------- */

static bool
MarkReleasable(DiscardState *ds, uint32 nextents)
{
	UndoReleaseJob job = {
		ds->kind, ds->space, nextents, ds->undorel, ds->horizon, TargetGet, TargetLetGo, ds
	};

	ds->releasable = palloc0(nextents / 8 + 1);
	ds->more_release = undo_rows->find_releasable(&job, ds->releasable,
												  &ds->all_ended);
	ds->nreleasable = nextents;
	TargetClose(ds);
	return true;
}

/*
 * Look for them.  After trouble with a table or its undo it is tried again
 * only after a while.  Returns false if the tick has to end.
 */
static bool
FindReleasable(DiscardState *ds)
{
	static TimestampTz retry = 0;
	bool		failed;
	bool		ok;

	ds->nreleasable = 0;
	ds->more_release = false;
	if (!UndoHoldersAny() || GetCurrentTimestamp() < retry)
		return true;
	ds->past_horizon = false;
	ds->releasing = true;
	ok = TickTry(ds, MarkReleasable, UndoSpaceExtents(ds->space), &failed);
	ds->releasing = false;
	if (failed)
	{
		ds->nreleasable = 0;
		retry = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ERROR_RETRY_MS);
	}
	return ok;
}

/*
 * Nobody has written to it since it was looked at: it was full.
 */
static bool
ExtentStartRelease(DiscardState *ds, uint32 n, UndoExtent *ext)
{
	uint32		state = EXT_FULL;

	return n < ds->nreleasable &&
		(ds->releasable[n / 8] & (1 << (n % 8))) != 0 &&
		pg_atomic_compare_exchange_u32(&ext->state, &state, EXT_DISCARD);
}

/* ---------------- making extents free ---------------- */

/*
 * Take the extent away from backends that could append to it, if it may be given
 * back.
 */
static bool
ExtentStartDiscard(DiscardState *ds, UndoExtent *ext)
{
	uint32		state = pg_atomic_read_u32(&ext->state);
	uint32		old = state;

	if (!StateIsIdle(state) || (state & EXT_NEEDS_SCAN))
		return false;
	if (!ExtentPastHorizon(ds, ext))
	{
		TransactionId newest = pg_atomic_read_u32(&ext->newest_xid);

		if (!TransactionIdPrecedes(newest, ReadNextTransactionId()))
			ds->burn = true;
		return false;
	}
	if (!pg_atomic_compare_exchange_u32(&ext->state, &state, EXT_DISCARD))
		return false;
	/* somebody may have had it in between */
	if (!ExtentPastHorizon(ds, ext))
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
DiscardExtents(DiscardState *ds)
{
	UndoSpace  *sp = ds->space;
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
		if (!ExtentStartDiscard(ds, ext) && !ExtentStartRelease(ds, n, ext))
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

	if (ds->kind == UNDO_LOGGED && TransactionIdIsValid(newest))
	{
		inplace_log_discard(MyDatabaseId, newest);
		if (TransactionIdPrecedes(newest, ds->horizon) ||
			(TransactionIdIsValid(ds->all_ended) &&
			 TransactionIdPrecedes(newest, ds->all_ended)))
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
TailScan(DiscardState *ds, uint32 unused)
{
	UndoSpace  *sp = ds->space;
	TimestampTz start = GetCurrentTimestamp();

	UndoWorkerCheckClaim(sp);
	ds->past_horizon = true;
	while (sp->tail_scanned < sp->tail_end)
	{
		UndoScanResult result;

		if (!BlockScan(ds, sp->tail_scanned, &result))
			return false;
		if (result != UNDO_SCAN_DONE)
			return true;
		sp->tail_scanned++;
		if (sp->tail_scanned < sp->tail_end &&
			TimestampDifferenceExceeds(start, GetCurrentTimestamp(),
									   RESTORE_MS))
		{
			ds->more = true;
			break;
		}
	}
	/* as in ExtentScanned */
	if (sp->tail_scanned == sp->tail_end)
		sp->tail_xid = ReadNextTransactionId();
	return true;
}

static void
TailReport(DiscardState *ds)
{
	static bool reported[UNDO_SHARED_KINDS];

	if (reported[ds->kind])
		return;
	reported[ds->kind] = true;
	ereport(LOG,
			(errmsg("undo of database \"%s\" has %u extents more than \"inplace.undo_extents\" (%d) has places for",
					get_database_name(MyDatabaseId), UndoTailExtents(ds->space),
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
DiscardTail(DiscardState *ds)
{
	static TimestampTz retry = 0;
	UndoSpace  *sp = ds->space;

	if (sp->tail_end == 0)
		return true;
	TailReport(ds);
	if (!TransactionIdPrecedes(sp->tail_xid, ds->horizon))
	{
		if (!TransactionIdPrecedes(sp->tail_xid, ReadNextTransactionId()))
			ds->burn = true;
		return true;
	}
	if (sp->tail_scanned < sp->tail_end)
	{
		bool		failed = false;
		bool		ok = true;

		if (GetCurrentTimestamp() >= retry)
			ok = TickTry(ds, TailScan, 0, &failed);
		if (failed)
			retry = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ERROR_RETRY_MS);
		if (ok)
			TargetClose(ds);
		return ok;
	}

	if (ds->kind == UNDO_LOGGED)
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
DiscardTickSpace(DiscardState *ds)
{
	/* our own catalog snapshot must not hold the horizon back */
	InvalidateCatalogSnapshot();
	ds->horizon = GetOldestNonRemovableTransactionId(ds->undorel);
	ds->space->horizon = ds->horizon;
	UndoHoldersLook(ds->horizon);

	if (!RestoreExtents(ds) || !FindReleasable(ds))
		return;
	DiscardExtents(ds);
	if (!DiscardTail(ds))
		return;
	UndoShrink(ds->space, ds->undorel);
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
		DiscardState ds = {0};

		if (spaces[kind] == NULL)
			continue;
		ds.kind = (UndoKind) kind;
		ds.space = spaces[kind];
		ds.undo_relid = relids[kind];
		UndoForgetDiscarded(ds.space);
		if (!UndoSpaceIsEmpty(ds.space))
		{
			if (TickBegin(&ds))
				DiscardTickSpace(&ds);
			TickEnd(&ds);
		}
		if (!UndoSpaceIsEmpty(ds.space))
			*in_use = true;
		burn |= ds.burn;
		*more |= ds.more || ds.more_release;
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

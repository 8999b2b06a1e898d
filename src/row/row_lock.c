/*-------------------------------------------------------------------------
 *
 * row_lock.c
 *	  Row locks: their strengths, reading them off a row, and recording them.
 *
 * Where a lock is kept
 *	  A lock never hides the version under it.  If no snapshot can need an
 *	  older version, the locker stands where the undo pointer was
 *	  (LOCK_DIRECT).  Otherwise an UNDO_LOCK record has the locker and the
 *	  header as it was, and the undo pointer leads to it (LOCK_INDIRECT).
 *	  Such records do not stack: a second locker makes a new record with a
 *	  multixact over the same base header.
 *
 *	  The extent of an UNDO_LOCK record is kept until both the locker's and the
 *	  row version's transactions are past the horizon, for the record leads on
 *	  to the version's undo.
 *
 * The row lock that this backend took last
 *	  ON CONFLICT DO UPDATE, SELECT ... FOR UPDATE, BEFORE ROW triggers and
 *	  EvalPlanQual lock a row and update it next.  Where the lock stands in an
 *	  UNDO_LOCK record the update would read that back from undo, with the row's
 *	  page exclusively locked and others waiting for it.  So it is remembered.
 *
 *	  The record's place names it as long as its transaction runs, for it is not
 *	  discarded before.  The exception is a place that is given to another record,
 *	  after a subtransaction has been rolled back.  So what is here is forgotten
 *	  before another UNDO_LOCK record is built; no other backend writes to our undo.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/visibilitymap.h"
#include "freeze/freeze_stats.h"
#include "page/page.h"
#include "page/tuple.h"
#include "row/change.h"
#include "row/lock_trace.h"
#include "row/row_lock.h"
#include "row/rowcheck.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "undo/append.h"
#include "undo/record.h"
#include "undo/undo.h"
#include "wal/log.h"

const LOCKMODE inplace_row_lockmode[] = {
	AccessShareLock,			/* LockTupleKeyShare */
	RowShareLock,				/* LockTupleShare */
	ExclusiveLock,				/* LockTupleNoKeyExclusive */
	AccessExclusiveLock			/* LockTupleExclusive */
};

bool
inplace_lock_modes_conflict(LockTupleMode a, LockTupleMode b)
{
	return DoLockModesConflict(inplace_row_lockmode[a], inplace_row_lockmode[b]);
}

LockTupleMode
inplace_member_mode(MultiXactStatus status)
{
	switch (status)
	{
		case MultiXactStatusForKeyShare:
			return LockTupleKeyShare;
		case MultiXactStatusForShare:
			return LockTupleShare;
		case MultiXactStatusForNoKeyUpdate:
		case MultiXactStatusNoKeyUpdate:
			return LockTupleNoKeyExclusive;
		case MultiXactStatusForUpdate:
		case MultiXactStatusUpdate:
			return LockTupleExclusive;
	}
	return LockTupleExclusive;
}

static MultiXactStatus
mode_status(LockTupleMode mode)
{
	switch (mode)
	{
		case LockTupleKeyShare:
			return MultiXactStatusForKeyShare;
		case LockTupleShare:
			return MultiXactStatusForShare;
		case LockTupleNoKeyExclusive:
			return MultiXactStatusForNoKeyUpdate;
		case LockTupleExclusive:
			return MultiXactStatusForUpdate;
	}
	return MultiXactStatusForUpdate;
}

/* strength of the change that made the newest version */
LockTupleMode
inplace_change_mode(InplaceTupleHeader tup)
{
	if (tup->t_infomask & IP_KEYS_UPDATED)
		return LockTupleExclusive;
	if ((tup->t_infomask & IP_DELETED) && !(tup->t_infomask & IP_MOVED))
		return LockTupleExclusive;
	return LockTupleNoKeyExclusive;
}

/* the row lock that we took last, see the file header */
static struct
{
	LocalTransactionId lxid;	/* of the lock's transaction, or invalid */
	RelFileLocator locator;
	BlockNumber blk;
	OffsetNumber off;
	UndoPtr		ptr;
	InplaceTupleHeaderData base;	/* the row's header without it */
	TransactionId locker;		/* or multixact */
	LockTrace	trace;
}			own_lock;

static void
note_own_lock(Relation rel, BlockNumber blk, OffsetNumber off,
			  UndoPtr ptr, const InplaceTupleHeaderData *base,
			  TransactionId locker, const LockTrace *trace)
{
	own_lock.lxid = ProcLxid(MyProc);
	own_lock.locator = RelLocator(rel);
	own_lock.blk = blk;
	own_lock.off = off;
	own_lock.ptr = ptr;
	own_lock.base = *base;
	own_lock.locker = locker;
	own_lock.trace = *trace;
}

static void
forget_own_lock(void)
{
	own_lock.lxid = InvalidLocalTransactionId;
}

static bool
is_own_lock(Relation rel, BlockNumber blk, OffsetNumber off,
			UndoPtr ptr, TransactionId *locker, LockTrace *trace,
			InplaceTupleHeader base)
{
	if (own_lock.ptr != ptr || own_lock.blk != blk || own_lock.off != off ||
		!LocalTransactionIdIsValid(own_lock.lxid) ||
		own_lock.lxid != ProcLxid(MyProc) ||
		!RelFileLocatorEquals(own_lock.locator, RelLocator(rel)))
		return false;
	*locker = own_lock.locker;
	*trace = own_lock.trace;
	*base = own_lock.base;
	return true;
}

bool
inplace_get_lockers(Relation rel, InplaceTupleHeader tup, BlockNumber blk,
					OffsetNumber off, RowLockers *lockers)
{
	uint16		hints = tup->t_infomask & IP_HINT_BITS;
	UndoRecord	rec;
	bool		found = false;

	lockers->base = *tup;
	HdrForgetSweep(&lockers->base);
	/* (after a crash it may be committed, see insert.c) */
	if (unlikely(HdrIsSpeculative(tup)))
		HdrEndSpeculation(&lockers->base, FirstCommandId);
	lockers->base.t_infomask &= ~(IP_LOCK_BITS | IP_PADDED);
	lockers->multi = (tup->t_infomask & IP_LOCK_MULTI) != 0;
	lockers->mode = HdrLockMode(tup);
	lockers->xid = InvalidTransactionId;

	if (!HdrIsLocked(tup))
		return false;

	lockers->trace.before = false;
	lockers->trace.undone = 0;
	lockers->trace.nold = 0;
	if (HdrHasDirectLocker(tup))
	{
		lockers->xid = HdrDirectLocker(tup);
		lockers->trace.undone = HdrDirectUndone(tup);
		lockers->base.t_infomask |= IP_FRESH;
		HdrSetFreshCid(&lockers->base, FirstCommandId);
		return true;
	}

	if (is_own_lock(rel, blk, off, HdrUndoPtr(tup), &lockers->xid,
					&lockers->trace, &lockers->base))
	{
		Assert(UndoFetch(rel, HdrUndoPtr(tup), blk, off, tup, false, &rec) &&
			   rec.hdr.ur_type == UNDO_LOCK &&
			   memcmp(rec.payload, &lockers->xid, sizeof(uint32)) == 0 &&
			   memcmp(&rec.old, &lockers->base, SizeOfInplaceTupleHeader) == 0);
		found = true;
	}
	else if (UndoFetch(rel, HdrUndoPtr(tup), blk, off, tup, true, &rec) &&
			 rec.hdr.ur_type == UNDO_LOCK)
	{
		memcpy(&lockers->xid, rec.payload, sizeof(uint32));
		inplace_trace_parse(&rec, &lockers->trace);
		lockers->base = rec.old;
		found = true;
	}
	if (found)
	{
		lockers->base.t_infomask &= ~(IP_LOCK_BITS | IP_PADDED | IP_HINT_BITS);
		lockers->base.t_infomask |= hints | (tup->t_infomask & IP_FROZEN);
		/* the row stands where it does, whatever it was like before the lock */
		lockers->base.t_natts |= tup->t_natts & IP_ALIGNED;
		return true;
	}

	/*
	 * Given back: the lockers are gone and everybody sees the version, which
	 * may be that the row is gone (moved, with a lock of the mover's own).
	 */
	if (lockers->base.t_infomask & IP_DELETED)
		HdrSetUndoPtr(&lockers->base, InvalidUndoPtr);
	else
	{
		lockers->base.t_infomask |= IP_FRESH;
		HdrSetFreshCid(&lockers->base, FirstCommandId);
	}
	return false;
}

bool
inplace_lockers_alive(const RowLockers *lockers)
{
	if (!TransactionIdIsValid(lockers->xid))
		return false;
	if (lockers->multi)
		return MultiXactIdIsRunning(lockers->xid, true);
	return TransactionIdIsInProgress(lockers->xid);
}

bool
inplace_compute_lockers(const RowCheck *rc, TransactionId xid,
						LockTupleMode mode, TransactionId *locker,
						bool *multi, LockTupleMode *strongest)
{
	bool		old_alive = rc->locked && inplace_lockers_alive(&rc->lockers);

	if (!old_alive)
	{
		*locker = xid;
		*multi = false;
		*strongest = mode;
		return TransactionIdIsValid(xid);
	}

	*locker = rc->lockers.xid;
	*multi = rc->lockers.multi;
	*strongest = rc->lockers.mode;
	if (!TransactionIdIsValid(xid))
		return true;

	*strongest = Max(mode, rc->lockers.mode);
	if (rc->lockers.multi)
		*locker = MultiXactIdExpand(rc->lockers.xid, xid, mode_status(mode));
	else if (TransactionIdEquals(rc->lockers.xid, xid))
		*locker = xid;			/* our own, made stronger */
	else
	{
		*locker = MultiXactIdCreate(rc->lockers.xid,
									mode_status(rc->lockers.mode),
									xid, mode_status(mode));
		*multi = true;
	}
	if (rc->lockers.multi)
		*multi = true;
	return true;
}

void
inplace_header_lock_indirect(InplaceTupleHeader hdr, UndoPtr ptr, bool multi,
							 LockTupleMode mode)
{
	hdr->t_infomask &= ~(IP_LOCK_BITS | IP_FRESH | IP_SPECULATIVE);
	hdr->t_infomask |= IP_LOCK_INDIRECT | (mode << IP_LOCK_MODE_SHIFT) |
		(multi ? IP_LOCK_MULTI : 0);
	HdrSetUndoPtr(hdr, ptr);
}

void
inplace_header_lock_direct(InplaceTupleHeader hdr, TransactionId locker,
						   bool multi, LockTupleMode mode, uint8 undone)
{
	hdr->t_infomask &= ~(IP_LOCK_BITS | IP_FRESH | IP_SPECULATIVE);
	hdr->t_infomask |= IP_LOCK_DIRECT | (mode << IP_LOCK_MODE_SHIFT) |
		(multi ? IP_LOCK_MULTI : 0);
	HdrSetDirectLocker(hdr, locker, undone);
}

Size
inplace_build_lock_undo(char *dst, Relation rel, BlockNumber blk,
						OffsetNumber off, const InplaceTupleHeaderData *base,
						TransactionId locker, const LockTrace *trace)
{
	char		payload[sizeof(uint32) + sizeof(trace->old)];
	Size		len = trace->nold * sizeof(OldLocker);

	Assert(TransactionIdIsValid(GetCurrentTransactionIdIfAny()));
	forget_own_lock();
	memcpy(payload, &locker, sizeof(uint32));
	memcpy(payload + sizeof(uint32), trace->old, len);
	return UndoBuild(dst, UNDO_LOCK, GetCurrentTransactionIdIfAny(),
					 inplace_trace_flags(trace),
					 LocatorSpc(RelLocator(rel)), LocatorRel(RelLocator(rel)),
					 blk, off, base, base, false,
					 payload, sizeof(uint32) + len);
}

/* the undo that a lock of a row takes */
UndoRoom
inplace_lock_room(void)
{
	return UndoRoomFor(1, UNDO_LOCK_RECORD_SIZE);
}

/*
 * What standbys know is asked here, once: the undo worker that leaves forgets it
 * (UndoStandbysKnow), and then it would seem that undo is needed, but none is reserved.
 */
bool
inplace_lock_lacks_undo(Relation rel, RowCheck *rc, UndoRoom *room)
{
	*room = inplace_lock_room();
	if (UndoHasRoom(rel, room))
		return false;
	rc->nothing_older = inplace_nothing_older(rel, &rc->base, rc->status);
	return !rc->nothing_older;
}

void
inplace_set_row_lock(Relation rel, Buffer buffer, Buffer vmbuffer,
					 OffsetNumber off, const RowCheck *rc, UndoRoom *room,
					 TransactionId xid, TransactionId locker, bool multi,
					 LockTupleMode mode)
{
	BlockNumber blk = BufferGetBlockNumber(buffer);
	Page		page = RowPage(rel, buffer);
	InplaceTupleHeader tup = PageGetTupleAt(page, off);
	InplaceTupleHeaderData hdr = rc->base;
	InplaceTupleHeaderData base = rc->base;
	char		undo[UNDO_LOCK_RECORD_SIZE];
	Size		undo_len = 0;
	UndoInsert	ui;
	LockTrace	trace;
	bool		clear_frozen;
	FreezeUnset unset;

	hdr.t_infomask |= tup->t_infomask & (IP_PADDED | IP_HINT_BITS);
	if (rc->nothing_older || inplace_nothing_older(rel, &base, rc->status))
		inplace_header_lock_direct(&hdr, locker, multi, mode, 0);
	else
	{
		TransactionId newest = inplace_undo_newest(rc);

		if (multi)
		{
			/* its members may be newer than anything we know of the row */
			newest = ReadNextTransactionId();
			TransactionIdRetreat(newest);
		}
		inplace_trace_add(rc, xid, rc->replacer, &trace);
		undo_len = inplace_build_lock_undo(undo, rel, blk, off, &base, locker,
										   &trace);
		UndoPrepare(rel, room, undo_len, newest, &ui);
		inplace_header_lock_indirect(&hdr, ui.ptr, multi, mode);
	}

	START_CRIT_SECTION();
	/* VACUUM must come by again, to take the lockers off in time */
	clear_frozen = FreezeClearVisible(rel, buffer, vmbuffer,
									  VISIBILITYMAP_ALL_FROZEN, &unset);
	memcpy(tup, &hdr, SizeOfInplaceTupleHeader);
	MarkBufferDirty(buffer);
	if (undo_len > 0)
		UndoAppend(&ui, undo, undo_len);
	inplace_log_header(rel, buffer, off, clear_frozen, undo_len > 0 ? &ui : NULL, undo,
					   undo_len);
	END_CRIT_SECTION();

	if (undo_len > 0)
	{
		UndoRelease(&ui);
		note_own_lock(rel, blk, off, ui.ptr, &base, locker, &trace);
	}
	FreezeNoteUnset(rel, &unset, false);
}

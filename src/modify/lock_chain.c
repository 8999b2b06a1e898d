/*-------------------------------------------------------------------------
 *
 * lock_chain.c
 *	  Row locks and the versions that follow the one to be locked.
 *
 * In heap, a backend that locks a version that has been replaced locks the versions
 * that follow it as well, one after the other, and waits for the transactions in the
 * way there.  SELECT FOR does so (TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS):
 *
 *	- FOR KEY SHARE of a version whose replacement, in progress or committed,
 *	  leaves the keys alone: the versions are locked together.  Heap waits with
 *	  NOWAIT and SKIP LOCKED, too, and does not queue.
 *
 *	- Any lock, after it has waited for the change that replaced the version.
 *	  It waits for the transactions in the way at the versions that follow, in the
 *	  queue of its own version only, unless one of these has been replaced by
 *	  a change in its way as well.  Then, in READ COMMITTED, it goes to the newest
 *	  version, where it has to queue, in the latter case.  With a snapshot for
 *	  the whole transaction it fails.  A backend that comes when the change has
 *	  committed already fails at once, or goes on to the newest one.
 *
 * How the first version that follows came about does not matter, or is what was
 * waited for.  What counts are the locks on it, and the changes that replaced it and
 * those after it.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "modify/lock_chain.h"
#include "page/page.h"
#include "page/tuple.h"
#include "row/change.h"
#include "row/lock_trace.h"
#include "row/row_lock.h"
#include "row/rowcheck.h"
#include "row/target.h"
#include "row/visibility.h"
#include "row/walk.h"
#include "undo/append.h"
#include "undo/record.h"
#include "undo/undo.h"


/* of a version of the row there */
static XidStatus
status_at(Relation rel, const ItemPointerData *tid, InplaceTupleHeader hdr)
{
	return inplace_copied_xid_status(rel, hdr, ItemPointerGetBlockNumber(tid),
									 ItemPointerGetOffsetNumber(tid));
}

/* is this the version meant?  Only committed ones are locked. */
static bool
is_version_meant(Relation rel, const RowTarget *target, const ItemPointerData *tid,
				 InplaceTupleHeader hdr)
{
	XidStatus	status = status_at(rel, tid, hdr);

	return status == XID_COMMITTED &&
		inplace_is_target(target, hdr, status, InvalidCommandId);
}

/*
 * Did the change that replaced the version meant leave the keys alone?
 */
bool
inplace_keys_outlive(Relation rel, InplaceTupleHeader tup,
					 const RowTarget *target)
{
	InplaceTupleHeaderData hdr = *tup;
	UndoWalkGuard guard = {0};
	UndoRecord	rec;

	if (target->kind == TARGET_NEWEST)
		return false;
	for (;;)
	{
		InplaceTupleHeaderData newer = hdr;

		if (!inplace_version_before(rel, &target->tid, &hdr, true, &guard, &rec))
			return false;
		if (is_version_meant(rel, target, &target->tid, &hdr))
			return (newer.t_infomask & IP_MOVED_PARTITION) == 0 &&
				inplace_change_mode(&newer) != LockTupleExclusive;
	}
}

/*
 * Which comes first among the lockers in the way and the transaction that changes,
 * or has changed, the version (if valid)?  Heap has all of them in one multixact,
 * goes through it by xid, and has nothing more to do where it comes to a lock
 * of our own.  "replaced" says that it is a version before the newest: then lockers
 * that are not known to have come before it was replaced do not count.
 */
static TransactionId
first_in_the_way(Relation rel, InplaceTupleHeader tup, const ItemPointerData *tid,
				 LockTupleMode mode, TransactionId changer, bool replaced)
{
	RowLockers	lockers;
	MemoryLocks memory;
	MultiXactMember single;
	MultiXactMember *members = &single;
	int			nmembers = 1;
	TransactionId found = changer;

	/* (those in memory are of the newest version) */
	inplace_get_memory_locks(rel, ItemPointerGetBlockNumber(tid),
							 ItemPointerGetOffsetNumber(tid), &memory);
	if (!replaced && memory.own)
		return InvalidTransactionId;
	if (!replaced && TransactionIdIsValid(memory.xid) &&
		inplace_lock_modes_conflict(mode, memory.mode) &&
		(!TransactionIdIsValid(found) || memory.xid < found))
		found = memory.xid;
	if (!inplace_get_lockers(rel, tup, ItemPointerGetBlockNumber(tid),
							 ItemPointerGetOffsetNumber(tid), &lockers))
		return found;
	if (lockers.multi)
		nmembers = GetMultiXactIdMembers(lockers.xid, &members, false, true);
	else
		single.xid = lockers.xid;

	for (int i = 0; i < nmembers; i++)
	{
		TransactionId xid = members[i].xid;

		if (TransactionIdIsValid(found) && xid > found)
			continue;
		if (replaced &&
			!TransactionIdIsValid(inplace_trace_replacer(&lockers, xid)))
			continue;
		if (TransactionIdIsCurrentTransactionId(xid))
		{
			found = InvalidTransactionId;
			break;
		}
		if (inplace_lock_modes_conflict(mode, lockers.multi ?
										inplace_member_mode(members[i].status) :
										lockers.mode) &&
			TransactionIdIsInProgress(xid))
			found = xid;
	}
	if (lockers.multi && nmembers > 0)
		pfree(members);
	return found;
}

/*
 * The part of the chain at one TID, whose page is locked.  *next is where it
 * goes on, or invalid.
 */
static ChainVerdict
conflict_here(Relation rel, InplaceTupleHeader tup, const ItemPointerData *tid,
			  const RowTarget *target, LockTupleMode mode,
			  TransactionId *xwait, ItemPointer next)
{
	InplaceTupleHeaderData hdr = *tup;
	UndoWalkGuard guard = {0};
	UndoRecord	rec;
	TransactionId changer = InvalidTransactionId;
	TransactionId first_gone = InvalidTransactionId;	/* with whose change */
	bool		moved = (tup->t_infomask & IP_MOVED) != 0;
	bool		any_here = false;	/* of the versions to look at */

	ItemPointerSetInvalid(next);
	for (;;)
	{
		InplaceTupleHeaderData newer = hdr;
		XidStatus	status = status_at(rel, tid, &newer);
		bool		first = !inplace_version_before(rel, tid, &hdr, true, &guard,
													&rec);

		if (status == XID_CURRENT)
			return CHAIN_FREE;
		if (target != NULL && first)
			return CHAIN_GONE;	/* long replaced */
		if (target != NULL && is_version_meant(rel, target, tid, &hdr))
			break;
		any_here = true;
		if (first)
		{
			/*
			 * The row was put here; if a FOR UPDATE of its own transaction
			 * came on top, that is in the flags only (lock.c).
			 */
			if (status == XID_IN_PROGRESS &&
				(newer.t_infomask & IP_KEYS_UPDATED) &&
				inplace_lock_modes_conflict(mode, LockTupleExclusive))
				changer = newer.t_xid;
			break;
		}
		if (inplace_lock_modes_conflict(mode, inplace_change_mode(&newer)))
		{
			if (status == XID_COMMITTED)
				first_gone = newer.t_xid;
			else if (status == XID_IN_PROGRESS)
				changer = newer.t_xid;
		}
	}

	if (TransactionIdIsValid(first_gone))
	{
		*xwait = first_in_the_way(rel, tup, tid, mode, first_gone, true);
		if (TransactionIdEquals(*xwait, first_gone))
			return CHAIN_GONE;
		if (TransactionIdIsValid(*xwait))
			return CHAIN_BUSY;
	}
	if (any_here || !moved)
	{
		*xwait = first_in_the_way(rel, tup, tid, mode, changer, false);
		if (TransactionIdIsValid(*xwait))
			return CHAIN_BUSY;
	}
	if (moved && !(tup->t_infomask & IP_MOVED_PARTITION))
		(void) inplace_moved_to(rel, tup, tid, next);
	return CHAIN_FREE;
}

/*
 * Put the lock on the row there, in which nothing is in its way.  The page is locked.
 * False if there is no undo reserved for that, or if the last change has been rolled back
 * since the page was locked: then the row has to be restored first.
 */
static bool
lock_here(Relation rel, Buffer buffer, Buffer vmbuffer, const ItemPointerData *tid,
		  LockTupleMode mode, const ChainLock *lock, UndoRoom *room)
{
	OffsetNumber off = ItemPointerGetOffsetNumber(tid);
	InplaceTupleHeader tup = PageGetTupleAt(BufferGetPage(buffer), off);
	RowCheck	rc = {0};
	TransactionId locker;
	bool		multi;
	LockTupleMode strongest;

	rc.status = inplace_xid_status(rel, tup, buffer);
	if (rc.status == XID_CURRENT)
		return true;
	if (rc.status == XID_ABORTED)
		return false;
	rc.locked = inplace_get_lockers(rel, tup, ItemPointerGetBlockNumber(tid),
									off, &rc.lockers);
	rc.base = rc.lockers.base;
	if (inplace_lock_lacks_undo(rel, &rc, room))
		return false;
	rc.replacer = lock->replacer;
	inplace_compute_lockers(&rc, lock->xid, mode, &locker, &multi, &strongest);
	inplace_set_row_lock(rel, buffer, vmbuffer, off, &rc, room, lock->xid,
						 locker, multi, strongest);
	return true;
}

typedef enum PlaceResult
{
	PLACE_SEEN,					/* the verdict counts */
	PLACE_LACKS_UNDO,			/* reserve it, and look again */
	PLACE_MOVE_UNDONE,			/* the row is not there: look where it was
								 * before */
	PLACE_GONE					/* the row is not there any more */
} PlaceResult;

/* a place of the chain */
typedef struct ChainPlace
{
	ItemPointerData tid;
	const RowTarget *target;	/* as in ChainStart */
	TransactionId mover;
} ChainPlace;

/*
 * With the page of the place that a move leads to locked: has the move been rolled back?
 * If not, it stays so until the page is unlocked, or at least the row stays: only when its
 * transaction is known to have been rolled back does anybody take the row away.
 */
static bool
move_undone(TransactionId mover)
{
	/* (first what mostly is so, and needs no look at the proc array) */
	return !TransactionIdDidCommit(mover) &&
		!TransactionIdIsInProgress(mover) && !TransactionIdDidCommit(mover);
}

/*
 * The same as inplace_chain_conflict() for one place, which is locked if nothing is in the
 * way there.  Its page is locked, if there is one; "found" says that there is a row.
 * *next is the place after this one, or has no TID.
 */
static PlaceResult
look_at_place(Relation rel, Buffer buffer, Buffer vmbuffer, bool found,
			  const ChainPlace *place, bool may_be_gone, LockTupleMode mode,
			  const ChainLock *lock, UndoRoom *room, ChainVerdict *verdict,
			  TransactionId *xwait, ChainPlace *next)
{
	InplaceTupleHeader tup;

	if (TransactionIdIsValid(place->mover) && move_undone(place->mover))
		return PLACE_MOVE_UNDONE;
	if (!found)
		return may_be_gone ? PLACE_GONE : PLACE_SEEN;
	tup = PageGetTupleAt(RowPage(rel, buffer), ItemPointerGetOffsetNumber(&place->tid));
	if (may_be_gone && !inplace_put_by(rel, tup, &place->tid, place->mover))
		return PLACE_GONE;

	*verdict = conflict_here(rel, tup, &place->tid, place->target, mode, xwait,
							 &next->tid);
	next->mover = HdrXid(tup);
	if (*verdict == CHAIN_FREE && lock != NULL &&
		!lock_here(rel, buffer, vmbuffer, &place->tid, mode, lock, room))
		return PLACE_LACKS_UNDO;
	return PLACE_SEEN;
}

/*
 * Is there anything in the way of a lock on the versions that follow the one
 * meant?  With CHAIN_BUSY, *xwait is the transaction to wait for.
 *
 * No page is locked on the way from place to place.  Each place must be that where the row
 * was put by the transaction that moved it from the place before.  If that has been rolled
 * back meanwhile the place may be another row's: we begin again.  So does the caller, if
 * it was the move to the place where we begin: nothing is in the way then.  If it has
 * committed the row may still be gone for some (see row/between.c).
 *
 * With lock each place where nothing is in the way is locked before its page is
 * unlocked.  As in heap, the places that follow are locked first and the version meant
 * last: between a look and a lock, somebody could delete the row there.
 */
ChainVerdict
inplace_chain_conflict(Relation rel, const ChainStart *start, LockTupleMode mode,
					   const ChainLock *lock, TransactionId *xwait)
{
	const ChainPlace first = {start->tid, start->target, start->mover};
	ChainPlace	place = first;
	TransactionId undone = InvalidTransactionId;

	/*
	 * A walk begins with a version of its first place, or comes from the
	 * place before.
	 */
	Assert((start->target != NULL) == !TransactionIdIsValid(start->mover));
	Assert(start->target == NULL || (lock == NULL && !start->may_be_gone));
	for (;;)
	{
		Buffer		buffer = InvalidBuffer;
		Buffer		vmbuffer = InvalidBuffer;
		ChainVerdict verdict = CHAIN_FREE;
		PlaceResult result;
		UndoRoom	room = inplace_lock_room();
		ChainPlace	next = {0};
		bool		found = false;

		CHECK_FOR_INTERRUPTS();
		/* (VACUUM may have cut off the page since, if the row is gone) */
		if (!start->may_be_gone ||
			ItemPointerGetBlockNumber(&place.tid) < RelationGetNumberOfBlocks(rel))
		{
			buffer = ReadBuffer(rel, ItemPointerGetBlockNumber(&place.tid));
			found = inplace_lock_row_page(rel, buffer, ItemPointerGetOffsetNumber(&place.tid),
										  &vmbuffer);
		}
		result = look_at_place(rel, buffer, vmbuffer, found, &place, start->may_be_gone,
							   mode, lock, &room, &verdict, xwait, &next);
		if (BufferIsValid(buffer))
			UnlockReleaseBuffer(buffer);
		if (BufferIsValid(vmbuffer))
			ReleaseBuffer(vmbuffer);

		switch (result)
		{
			case PLACE_GONE:
				return CHAIN_GONE;
			case PLACE_MOVE_UNDONE:
				if (TransactionIdEquals(place.mover, first.mover))
					return CHAIN_FREE;
				/* the place before has been restored when we come by again */
				if (TransactionIdEquals(place.mover, undone))
					ereport(ERROR,
							(errcode(ERRCODE_DATA_CORRUPTED),
							 errmsg("transaction %u, which moved a row of relation \"%s\" to (%u,%u), was rolled back, but the row is not where it was before",
									place.mover, RelationGetRelationName(rel),
									ItemPointerGetBlockNumber(&place.tid),
									ItemPointerGetOffsetNumber(&place.tid))));
				undone = place.mover;
				place = first;
				break;
			case PLACE_LACKS_UNDO:
				/* nothing is reserved if there is room */
				UndoReserve(rel, &room);
				break;
			case PLACE_SEEN:
				if (verdict != CHAIN_FREE || !ItemPointerIsValid(&next.tid))
					return verdict;
				place = next;
				break;
		}
	}
}

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
first_in_the_way(Relation rel, InplaceTupleHeader tup, ItemPointer tid,
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
conflict_here(Relation rel, InplaceTupleHeader tup, ItemPointer tid,
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
lock_here(Relation rel, Buffer buffer, Buffer vmbuffer, ItemPointer tid,
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

/*
 * A row is not where it was put by the transaction that moved it.  Has that been rolled
 * back since we were at the place before?
 */
static bool
move_undone(TransactionId mover)
{
	return !TransactionIdIsInProgress(mover) && !TransactionIdDidCommit(mover);
}

/*
 * Is there anything in the way of a lock on the versions that follow the one
 * meant, whose TID is tid?  Without a target, on those from the first at tid on?
 * With CHAIN_BUSY, *xwait is the transaction to wait for.
 *
 * If lock has a mover, which has committed, each place must be that where the row was put
 * by the transaction that moved it from the place before.  Else it is gone (see
 * row/between.c), or that transaction has been rolled back: then we begin again.
 *
 * With lock (and no target) each place where nothing is in the way is locked before
 * its page is unlocked.  As in heap, the places that follow are locked first and the
 * version meant last: between a look and a lock, somebody could delete the row there.
 */
ChainVerdict
inplace_chain_conflict(Relation rel, ItemPointerData tid,
					   const RowTarget *target, LockTupleMode mode,
					   const ChainLock *lock, TransactionId *xwait)
{
	TransactionId mover = lock != NULL ? lock->mover : InvalidTransactionId;
	ItemPointerData first = tid;

	Assert(target == NULL || lock == NULL);
	for (;;)
	{
		Buffer		buffer;
		OffsetNumber off = ItemPointerGetOffsetNumber(&tid);
		Buffer		vmbuffer = InvalidBuffer;
		ChainVerdict verdict = CHAIN_FREE;
		bool		again = false;
		bool		gone = false;
		TransactionId put_by = mover;
		UndoRoom	room = inplace_lock_room();
		ItemPointerData next;

		CHECK_FOR_INTERRUPTS();
		ItemPointerSetInvalid(&next);
		/* (VACUUM may have cut off the page since, if the place was empty) */
		buffer = InvalidBuffer;
		if (!TransactionIdIsValid(put_by) ||
			ItemPointerGetBlockNumber(&tid) < RelationGetNumberOfBlocks(rel))
			buffer = ReadBuffer(rel, ItemPointerGetBlockNumber(&tid));
		if (BufferIsValid(buffer) && inplace_lock_row_page(rel, buffer, off, &vmbuffer))
		{
			InplaceTupleHeader tup = PageGetTupleAt(RowPage(rel, buffer), off);

			gone = TransactionIdIsValid(put_by) && !inplace_put_by(rel, tup, &tid, put_by);
			if (!gone)
				verdict = conflict_here(rel, tup, &tid, target, mode, xwait, &next);
			if (!gone && verdict == CHAIN_FREE && lock != NULL)
				again = !lock_here(rel, buffer, vmbuffer, &tid, mode, lock, &room);
			if (TransactionIdIsValid(mover) && !again)
				mover = PageGetTupleAt(RowPage(rel, buffer), off)->t_xid;
		}
		else
			gone = TransactionIdIsValid(put_by);
		if (BufferIsValid(buffer))
			UnlockReleaseBuffer(buffer);
		if (BufferIsValid(vmbuffer))
			ReleaseBuffer(vmbuffer);
		if (gone)
		{
			if (TransactionIdEquals(put_by, lock->mover) || !move_undone(put_by))
				return CHAIN_GONE;
			tid = first;
			mover = lock->mover;
			continue;
		}
		if (again)
		{
			/* nothing is reserved if there is room */
			UndoReserve(rel, &room);
			continue;
		}
		if (verdict != CHAIN_FREE || !ItemPointerIsValid(&next))
			return verdict;
		tid = next;
		target = NULL;
	}
}

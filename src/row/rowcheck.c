/*-------------------------------------------------------------------------
 *
 * rowcheck.c
 *	  The decision whether a row may be changed or locked, and whom to wait
 *	  for.
 *
 * Strengths and conflicts are heap's: a change of the row counts as a lock
 * of strength Exclusive (delete, change of a key) or NoKeyExclusive.  How
 * locks are kept is in row_lock.c, how a backend waits in lock_queue.c.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/page.h"
#include "page/tuple.h"
#include "row/lock_trace.h"
#include "row/row_lock.h"
#include "row/rowcheck.h"
#include "row/target.h"
#include "row/visibility.h"
#include "row/walk.h"
#include "undo/record.h"
#include "undo/space.h"
#include "undo/undo.h"
#include "utils/snapmgr.h"

/*
 * Was the row put there by "mover"?  Not if that is not known, because the undo of
 * its first version has been given back.
 */
bool
inplace_put_by(Relation rel, InplaceTupleHeader tup, const ItemPointerData *tid,
			   TransactionId mover)
{
	InplaceTupleHeaderData hdr = *tup;
	UndoWalkGuard guard = {0};
	UndoRecord	rec;

	while (inplace_version_before(rel, tid, &hdr, true, &guard, &rec))
		;
	return TagIsFirst(hdr.t_tag) && TransactionIdEquals(hdr.t_xid, mover);
}

bool
inplace_is_first_version(InplaceTupleHeader base, XidStatus status)
{
	return status == XID_COMMITTED &&
		(base->t_infomask & (IP_FROZEN | IP_FRESH)) != 0;
}

bool
inplace_removable_here(Relation rel, InplaceTupleHeader base, XidStatus status)
{
	return status == XID_COMMITTED &&
		HdrIsSeenByAll(GlobalVisTestFor(rel), base);
}

bool
inplace_nothing_older(Relation rel, InplaceTupleHeader base, XidStatus status)
{
	return inplace_is_first_version(base, status) ||
		(inplace_removable_here(rel, base, status) &&
		 UndoStandbysKnow(rel, base->t_xid));
}

bool
inplace_cut_older(Relation rel, InplaceTupleHeader base, XidStatus status,
				  bool can_tell, bool *conflict)
{
	*conflict = false;
	if (inplace_is_first_version(base, status))
		return true;
	if (!inplace_removable_here(rel, base, status))
		return false;
	if (UndoStandbysKnow(rel, base->t_xid))
		return true;
	*conflict = can_tell;
	return can_tell;
}

/*
 * Nobody holds a lock that conflicts with this share lock.  But a transaction
 * that did may still be in what would be heap's multixact; "strongest" is the
 * strongest mode of all its members.  Then the backend queues, behind those that
 * wait for others of the row's lockers.
 */
static inline bool
queues_nevertheless(const RowCheck *rc, LockTupleMode mode,
					LockTupleMode strongest)
{
	if (rc->lockers.trace.undone > 0)
		strongest = Max(strongest,
						(LockTupleMode) (rc->lockers.trace.undone - 1));
	return mode == LockTupleShare ? strongest >= LockTupleNoKeyExclusive :
		mode == LockTupleKeyShare && strongest == LockTupleExclusive;
}

/*
 * Find the conflict of the lockers on the page with "mode".  Sets wait_xid or
 * wait_multi and returns true if somebody else has to end first.
 */
static bool
page_lockers_conflict(RowCheck *rc, LockTupleMode mode)
{
	MultiXactMember *members;
	int			nmembers;
	LockTupleMode strongest = LockTupleKeyShare;
	bool		conflict = false;

	rc->own_lock = false;
	rc->must_queue = false;
	if (!rc->locked)
		return false;

	if (!rc->lockers.multi)
	{
		if (TransactionIdIsCurrentTransactionId(rc->lockers.xid))
		{
			rc->own_lock = true;
			rc->own_mode = rc->lockers.mode;
			return false;
		}
		if (inplace_lock_modes_conflict(mode, rc->lockers.mode) &&
			TransactionIdIsInProgress(rc->lockers.xid))
		{
			rc->wait_xid = rc->lockers.xid;
			return true;
		}
		rc->must_queue = queues_nevertheless(rc, mode, strongest) &&
			TransactionIdIsInProgress(rc->lockers.xid);
		return false;
	}

	nmembers = GetMultiXactIdMembers(rc->lockers.xid, &members, false, true);
	for (int i = 0; i < nmembers; i++)
	{
		LockTupleMode m = inplace_member_mode(members[i].status);

		strongest = Max(strongest, m);
		if (TransactionIdIsCurrentTransactionId(members[i].xid))
		{
			if (!rc->own_lock || m > rc->own_mode)
				rc->own_mode = m;
			rc->own_lock = true;
		}
		else if (inplace_lock_modes_conflict(mode, m) &&
				 TransactionIdIsInProgress(members[i].xid))
			conflict = true;
	}
	if (nmembers > 0)
		pfree(members);
	if (conflict)
		rc->wait_multi = rc->lockers.xid;
	else
		rc->must_queue = queues_nevertheless(rc, mode, strongest) &&
			MultiXactIdIsRunning(rc->lockers.xid, true);
	return conflict;
}

/*
 * ... of all lockers
 */
static bool
lockers_conflict(RowCheck *rc, LockTupleMode mode)
{
	const MemoryLocks *memory = &rc->memory;
	bool		conflict = page_lockers_conflict(rc, mode);

	if (memory->own)
	{
		if (!rc->own_lock || memory->own_mode > rc->own_mode)
			rc->own_mode = memory->own_mode;
		rc->own_lock = true;
	}
	if (TransactionIdIsValid(memory->xid) &&
		inplace_lock_modes_conflict(mode, memory->mode))
	{
		if (TransactionIdIsValid(rc->wait_xid))
			rc->wait_locker = memory->xid;
		else
			rc->wait_xid = memory->xid;
		conflict = true;
	}
	return conflict;
}

static void
fill_tmfd(Relation rel, InplaceTupleHeader tup, const RowTarget *target,
		  CommandId cid, TM_FailureData *tmfd)
{
	ItemPointerData tid = target->tid;

	tmfd->xmax = tup->t_xid;
	tmfd->cmax = cid;
	tmfd->ctid = tid;
	if (tup->t_infomask & IP_MOVED_PARTITION)
		ItemPointerSetMovedPartitions(&tmfd->ctid);
	else if (tup->t_infomask & IP_MOVED)
		(void) inplace_moved_to(rel, tup, &tid, &tmfd->ctid);
}

/* of a version of the row that is meant */
static XidStatus
target_status(Relation rel, const RowTarget *target, InplaceTupleHeader hdr)
{
	return inplace_copied_xid_status(rel, hdr,
									 ItemPointerGetBlockNumber(&target->tid),
									 ItemPointerGetOffsetNumber(&target->tid));
}

/*
 * FOR KEY SHARE does not mind changes of the row that leave its keys alone, in
 * progress or committed since: it locks the version that is meant.  Is that
 * below such changes, at this TID?  Then *replacer is the transaction that made
 * the first of them.  If the row was moved, the caller looks at where it went.
 */
static bool
target_below_nonkey_changes(Relation rel, InplaceTupleHeader tup,
							const RowTarget *target, TransactionId *replacer)
{
	InplaceTupleHeaderData hdr = *tup;
	UndoWalkGuard guard = {0};
	UndoRecord	rec;

	for (;;)
	{
		XidStatus	status = target_status(rel, target, &hdr);

		if (hdr.t_infomask & (IP_KEYS_UPDATED | IP_MOVED_PARTITION) ||
			((hdr.t_infomask & IP_DELETED) && !(hdr.t_infomask & IP_MOVED)))
			return false;

		if (!inplace_version_before(rel, &target->tid, &hdr,
									status == XID_COMMITTED, &guard, &rec))
			return false;

		status = target_status(rel, target, &hdr);
		if (status == XID_COMMITTED &&
			inplace_is_target(target, &hdr, status, InvalidCommandId))
		{
			*replacer = rec.replaced.xid;
			return true;
		}
		if (status == XID_ABORTED)
			return false;
	}
}

TransactionId
inplace_replacer_of(Relation rel, InplaceTupleHeader hdr,
					const RowTarget *target)
{
	UndoWalkGuard guard = {0};
	UndoRecord	rec;

	for (;;)
	{
		XidStatus	status;

		if (!inplace_version_before(rel, &target->tid, hdr, true, &guard, &rec))
			return InvalidTransactionId;
		status = target_status(rel, target, hdr);
		if (status == XID_COMMITTED &&
			inplace_is_target(target, hdr, status, InvalidCommandId))
			return rec.replaced.xid;
	}
}

/*
 * The xid to wait for.  As on heap it is that of the first change of the last
 * committed version that is in our way.  All later changes are of the same
 * transaction, but may be of subtransactions that are over without having ended:
 * released, or of a block that was left.  To wait for one of these would be to
 * wait for the whole transaction, though the rollback of a savepoint may take all
 * changes with it.
 */
TransactionId
inplace_first_in_the_way(Relation rel, const ItemPointerData *tid,
						 InplaceTupleHeader tup, LockTupleMode mode)
{
	InplaceTupleHeaderData hdr = *tup;
	TransactionId xid = tup->t_xid;
	UndoWalkGuard guard = {0};
	UndoRecord	rec;

	while (inplace_version_before(rel, tid, &hdr, true, &guard, &rec) &&
		   inplace_copied_xid_status(rel, &hdr, ItemPointerGetBlockNumber(tid),
									 ItemPointerGetOffsetNumber(tid)) == XID_IN_PROGRESS)
		if (inplace_lock_modes_conflict(mode, inplace_change_mode(&hdr)))
			xid = hdr.t_xid;
	return xid;
}

/*
 * Another transaction's change is in progress.  Has the version meant been
 * replaced by a committed one before that already?  Then there is nothing to wait
 * for.  FOR KEY SHARE does not count replacements that leave the keys alone.  The
 * version which is being changed is the one to queue for.
 */
static bool
replaced_before(Relation rel, InplaceTupleHeader tup, const RowTarget *target,
				LockTupleMode mode, RowCheck *rc)
{
	InplaceTupleHeaderData hdr = *tup;
	UndoWalkGuard guard = {0};
	UndoRecord	rec;
	TransactionId replacer;

	for (;;)
	{
		XidStatus	status;

		inplace_queue_for(rc, &hdr);
		if (!inplace_version_before(rel, &target->tid, &hdr, false, &guard, &rec))
			return false;
		status = target_status(rel, target, &hdr);
		if (status == XID_COMMITTED)
		{
			inplace_queue_for(rc, &hdr);
			return !inplace_is_target(target, &hdr, status, InvalidCommandId) &&
				!(mode == LockTupleKeyShare &&
				  target_below_nonkey_changes(rel, &hdr, target, &replacer));
		}
		if (status != XID_IN_PROGRESS)
			return false;
	}
}

/*
 * The row was deleted.  Had the version meant been replaced by another before?
 * Then heap's callers are told of that.  FOR KEY SHARE goes on to the delete if
 * the keys are the same.
 */
static bool
updated_before_delete(Relation rel, InplaceTupleHeader tup,
					  const RowTarget *target, LockTupleMode mode)
{
	InplaceTupleHeaderData hdr = *tup;
	UndoWalkGuard guard = {0};
	UndoRecord	rec;
	TransactionId replacer;

	if (target->kind == TARGET_NEWEST)
		return false;
	if (!inplace_version_before(rel, &target->tid, &hdr, true, &guard, &rec))
		return false;
	return !inplace_is_target(target, &hdr,
							  target_status(rel, target, &hdr),
							  InvalidCommandId) &&
		!(mode == LockTupleKeyShare &&
		  target_below_nonkey_changes(rel, &hdr, target, &replacer));
}

/*
 * We have changed the row since the caller's command began, with its newest
 * version by command cid.  The command that replaced the version the caller
 * means is the first of these: it may be the caller's own, and the others those
 * of functions called by it later.  If that version had been replaced by another
 * transaction before, heap's callers come to the newest version by following
 * its successors, and are told of the command that made it.
 */
static CommandId
replacing_cid(Relation rel, InplaceTupleHeader tup, const RowTarget *target,
			  CommandId curcid, CommandId cid)
{
	BlockNumber blk = ItemPointerGetBlockNumber(&target->tid);
	OffsetNumber off = ItemPointerGetOffsetNumber(&target->tid);
	CommandId	newest = cid;
	InplaceTupleHeaderData hdr = *tup;
	UndoWalkGuard guard = {0};
	UndoRecord	rec;

	if (target->kind == TARGET_NEWEST)
		return newest;
	for (;;)
	{
		XidStatus	status;
		CommandId	older;

		if (!inplace_version_before(rel, &target->tid, &hdr, false, &guard, &rec))
			return cid;
		status = inplace_copied_xid_status(rel, &hdr, blk, off);
		if (status != XID_CURRENT)
			return status == XID_COMMITTED &&
				!inplace_is_target(target, &hdr, status, InvalidCommandId) ? newest : cid;
		older = inplace_change_cid(rel, &hdr, blk, off);
		/* (an insert does not replace anything) */
		if (older < curcid || older == InvalidCommandId ||
			(hdr.t_infomask & (IP_FRESH | IP_SPECULATIVE)) != 0)
			return cid;
		cid = older;
	}
}

/*
 * The newest version is of our own transaction.  Returns TM_Ok if the row may be
 * changed as far as that goes.
 */
static TM_Result
check_own_change(Relation rel, InplaceTupleHeader tup, const RowTarget *target,
				 CommandId curcid, RowCheck *rc, TM_FailureData *tmfd)
{
	bool		deleted = (tup->t_infomask & IP_DELETED) != 0;

	rc->cid = inplace_change_cid(rel, tup,
								 ItemPointerGetBlockNumber(&target->tid),
								 ItemPointerGetOffsetNumber(&target->tid));
	if (rc->cid >= curcid)
	{
		fill_tmfd(rel, tup, target,
				  replacing_cid(rel, tup, target, curcid, rc->cid), tmfd);
		if ((rc->base.t_infomask & (IP_FRESH | IP_SPECULATIVE)) != 0)
			return TM_Invisible;
		/* is it this version itself that is meant? */
		if (!deleted && target->kind != TARGET_SEEN &&
			inplace_is_target(target, tup, rc->status, rc->cid))
			return TM_Invisible;
		return TM_SelfModified;
	}
	if (deleted)
	{
		fill_tmfd(rel, tup, target, rc->cid, tmfd);
		return TM_Invisible;
	}
	return TM_Ok;
}

/*
 * The newest version is of a transaction in progress.
 */
static TM_Result
check_change_in_progress(Relation rel, InplaceTupleHeader tup,
						 const RowTarget *target, LockTupleMode mode,
						 RowCheck *rc, TM_FailureData *tmfd)
{
	if (rc->base.t_infomask & (IP_FRESH | IP_SPECULATIVE))
	{
		/* not there yet for anybody else */
		fill_tmfd(rel, tup, target, InvalidCommandId, tmfd);
		return TM_Invisible;
	}
	if (!inplace_lock_modes_conflict(mode, inplace_change_mode(tup)) &&
		target_below_nonkey_changes(rel, tup, target, &rc->replacer))
	{
		rc->below_busy = true;
		return lockers_conflict(rc, mode) ? TM_BeingModified : TM_Ok;
	}
	if (replaced_before(rel, tup, target, mode, rc))
	{
		if (inplace_old_version_locked(rel, tup, target, mode, rc))
			return TM_BeingModified;
		fill_tmfd(rel, tup, target, InvalidCommandId, tmfd);
		tmfd->ctid = target->tid;
		return TM_Updated;
	}

	/*
	 * Wait for lockers in the way, too, before looking again.  Heap has all
	 * of them in one multixact, and the first in the queue stays first for
	 * all of them.  (A lock in memory is the changer's own here.)
	 */
	if (lockers_conflict(rc, mode))
		rc->wait_locker = rc->wait_xid;
	rc->wait_xid = inplace_first_in_the_way(rel, &target->tid, tup, mode);
	return TM_BeingModified;
}

/*
 * The newest version is a delete, or a move, that has committed.
 */
static TM_Result
check_deleted(Relation rel, InplaceTupleHeader tup, const RowTarget *target,
			  LockTupleMode mode, RowCheck *rc, TM_FailureData *tmfd)
{
	if (mode == LockTupleKeyShare && target->kind != TARGET_NEWEST &&
		(tup->t_infomask & IP_MOVED) &&
		target_below_nonkey_changes(rel, tup, target, &rc->replacer))
	{
		rc->below_busy = true;
		return TM_Ok;
	}
	if ((tup->t_infomask & IP_MOVED) &&
		inplace_old_version_locked(rel, tup, target, mode, rc))
		return TM_BeingModified;
	fill_tmfd(rel, tup, target, InvalidCommandId, tmfd);
	if ((tup->t_infomask & (IP_MOVED | IP_MOVED_PARTITION)) != 0 ||
		updated_before_delete(rel, tup, target, mode))
		return TM_Updated;
	return TM_Deleted;
}

/*
 * The newest version, ours or committed, has replaced the one that is meant.
 */
static TM_Result
check_replaced(Relation rel, InplaceTupleHeader tup, const RowTarget *target,
			   LockTupleMode mode, RowCheck *rc, TM_FailureData *tmfd)
{
	if (mode == LockTupleKeyShare && rc->status == XID_COMMITTED &&
		target_below_nonkey_changes(rel, tup, target, &rc->replacer))
	{
		rc->below_busy = true;
		return lockers_conflict(rc, mode) ? TM_BeingModified : TM_Ok;
	}
	if (inplace_old_version_locked(rel, tup, target, mode, rc))
		return TM_BeingModified;
	fill_tmfd(rel, tup, target, rc->cid, tmfd);
	return TM_Updated;
}

TM_Result
inplace_row_check(Relation rel, Buffer buffer, const RowTarget *target,
				  CommandId curcid, LockTupleMode mode, RowCheck *rc,
				  TM_FailureData *tmfd)
{
	BlockNumber blk = ItemPointerGetBlockNumber(&target->tid);
	OffsetNumber off = ItemPointerGetOffsetNumber(&target->tid);
	InplaceTupleHeader tup = PageGetTupleAt(RowPage(rel, buffer), off);
	TM_Result	result;

	rc->wait_xid = InvalidTransactionId;
	rc->wait_multi = InvalidMultiXactId;
	rc->wait_locker = InvalidTransactionId;
	rc->below_busy = false;
	rc->replacer = InvalidTransactionId;
	rc->old_version = false;
	rc->own_lock = false;
	rc->retry = false;
	rc->nothing_older = false;
	rc->cid = InvalidCommandId;
	rc->status = inplace_xid_status(rel, tup, buffer);
	if (rc->status == XID_ABORTED)
	{
		/* ended since the page was locked: the row has to be restored first */
		rc->retry = true;
		return TM_BeingModified;
	}
	rc->locked = inplace_get_lockers(rel, tup, blk, off, &rc->lockers);
	rc->base = rc->lockers.base;
	inplace_get_memory_locks(rel, blk, off, &rc->memory);
	inplace_queue_for(rc, &rc->base);

	/*
	 * Undo records say which versions are known to be committed, so that
	 * nobody has to ask for an xid that the commit log no longer has.
	 */
	if (rc->status == XID_COMMITTED)
		rc->base.t_infomask |= IP_COMMITTED;

	switch (rc->status)
	{
		case XID_CURRENT:
			result = check_own_change(rel, tup, target, curcid, rc, tmfd);
			if (result != TM_Ok)
				return result;
			break;

		case XID_IN_PROGRESS:
			return check_change_in_progress(rel, tup, target, mode, rc, tmfd);

		case XID_COMMITTED:
			if (tup->t_infomask & IP_DELETED)
				return check_deleted(rel, tup, target, mode, rc, tmfd);
			break;

		case XID_ABORTED:
			elog(ERROR, "aborted row version was not restored");
	}

	if (!inplace_is_target(target, tup, rc->status, rc->cid))
		return check_replaced(rel, tup, target, mode, rc, tmfd);

	if (lockers_conflict(rc, mode) || (rc->must_queue && !target->queued))
		return TM_BeingModified;
	Assert(target->kind != TARGET_OURS ||
		   rc->own_lock || rc->status == XID_CURRENT);
	return TM_Ok;
}

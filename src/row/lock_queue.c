/*-------------------------------------------------------------------------
 *
 * lock_queue.c
 *	  Waiting for a row.
 *
 * Nobody waits with a page locked.  A backend that has to wait takes the
 * heavyweight tuple lock first, so that waiters are served in turn.  It takes
 * that of the version which it is about to lock.  This is the newest committed
 * version; or the version meant, though it has been replaced, while somebody
 * still holds a lock on that.  On heap each version is a tuple with a TID of
 * its own; here a lock's block and offset are made from the row's TID and the
 * version (queue_place).  A backend that goes on to a newer version gives up
 * its place at the one before, unless it gets the lock of the newer one
 * without a wait (lock.c).
 *
 * The gate.  Many backends may come from an older version at the same time, because
 * they had waited for it, and find that the newest one is being changed again.  On
 * heap all of them wait for that change, and all wake up at its end, mostly to find
 * the next one.  Here they come in one by one: a heavyweight tuple lock, of a name
 * that no version has, is the row's gate (lock.c).  The backend that has it waits for
 * the change, the others for the gate.
 *
 * Invariants of the gate
 *	1. A backend with the gate waits only for a transaction that all others at the gate
 *	   would have to wait for too.  Those are backends that want more than FOR KEY
 *	   SHARE, block, and have no lock_timeout.  So a gate makes no deadlock: who waits
 *	   for it would wait for the same transaction without it.  Before any other wait
 *	   the gate is given up.
 *	2. Nobody has a gate and a place in one of the row's queues, and nobody waits for
 *	   either with the other.
 *	3. A backend gives the gate up before tuple_lock returns to the executor.
 *
 * A deadlock of two, one of which waits for the other at the gate, is one of three by the
 * server's count: the backend that has the gate is in it.  As in a version's queue it
 * may be the one that notices, and is ended for the others.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "common/hashfn.h"
#include "page/tuple.h"
#include "row/lock_queue.h"
#include "row/row_lock.h"
#include "row/rowcheck.h"
#include "row/target.h"
#include "row/visibility.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"

static void
lock_not_available(Relation rel)
{
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("could not obtain lock on row in relation \"%s\"",
					RelationGetRelationName(rel))));
}

static bool
wait_for_xid(Relation rel, ItemPointer tid, TransactionId xid,
			 LockWaitPolicy policy, XLTW_Oper oper)
{
	if (policy == LockWaitBlock)
		XactLockTableWait(xid, rel, tid, oper);
	else if (!TryXactLockTableWait(xid, policy == LockWaitError && log_lock_failures))
	{
		if (policy == LockWaitError)
			lock_not_available(rel);
		return false;
	}
	return true;
}

/*
 * What the lock on a version names.  A row's first version at its TID has the
 * TID; others have their tags on top of the offset.  Tags come again after 125
 * updates.  That many can happen while a backend waits to change the keys, as
 * others with FOR KEY SHARE let the row be updated; and backends that wait for
 * different versions must not stand in one queue.  So the upper half of the block
 * number tells the transactions apart that made the versions.  If two versions,
 * of one row or of two, have the same place nevertheless, a backend waits longer
 * than it would have to.
 */
static void
queue_place(ItemPointer place, ItemPointer tid, const RowCheck *rc)
{
	BlockNumber blk = ItemPointerGetBlockNumber(tid);

	if (!TagIsFirst(rc->queue_tag))
		blk ^= murmurhash32(rc->queue_xid) & 0xFFFF0000;
	TidSetVersion(place, blk, ItemPointerGetOffsetNumber(tid), rc->queue_tag);
}

void
inplace_row_gate_take(Relation rel, const ItemPointerData *tid, RowQueue *gate)
{
	Assert(!gate->held);
	TidSetGate(&gate->place, ItemPointerGetBlockNumber(tid),
			   ItemPointerGetOffsetNumber(tid));
	gate->mode = LockTupleNoKeyExclusive;
	LockTuple(rel, &gate->place, inplace_row_lockmode[gate->mode]);
	gate->held = true;
}

/*
 * Take a place in a queue.  A backend that has a place in that of an older
 * version already keeps it until it has the new one, if it gets that at once.
 * So those behind it, which go the same way, come after it.
 */
static bool
join_queue(Relation rel, ItemPointer place, LockTupleMode mode,
		   LockWaitPolicy policy, RowQueue *queue)
{
	LOCKMODE	lockmode = inplace_row_lockmode[mode];
	RowQueue	before = *queue;

	if (queue->held && ItemPointerEquals(&queue->place, place))
		return true;
	queue->place = *place;
	queue->mode = mode;
	queue->held = TryLockTuple(rel, place, lockmode,
							   policy == LockWaitError && log_lock_failures);
	inplace_row_wait_done(rel, &before);
	if (queue->held)
		return true;
	if (policy == LockWaitBlock)
	{
		LockTuple(rel, place, lockmode);
		queue->held = true;
		return true;
	}
	if (policy == LockWaitError)
		lock_not_available(rel);
	return false;
}

/*
 * Wait for the lockers and the change in the way; returns false if that is not to be.
 * They come in heap's order: there all are in one multixact, which is gone through by
 * xid.  Two backends that have to wait for each other, and for the same third one, notice
 * that at once only if the third does not come first.
 */
static bool
wait_for_all(Relation rel, ItemPointer tid, const RowCheck *rc, LockTupleMode mode,
			 LockWaitPolicy policy, XLTW_Oper oper)
{
	TransactionId few[2];
	TransactionId *xids = few;
	MultiXactMember *members = NULL;
	int			nmembers = 0;
	int			n = 0;
	bool		done = true;

	if (MultiXactIdIsValid(rc->wait_multi))
	{
		nmembers = GetMultiXactIdMembers(rc->wait_multi, &members, false, true);
		xids = palloc((Max(nmembers, 0) + 2) * sizeof(TransactionId));
	}
	if (TransactionIdIsValid(rc->wait_xid))
		xids[n++] = rc->wait_xid;
	if (TransactionIdIsValid(rc->wait_locker))
		xids[n++] = rc->wait_locker;
	for (int i = 0; i < nmembers; i++)
		if (!TransactionIdIsCurrentTransactionId(members[i].xid) &&
			inplace_lock_modes_conflict(mode, inplace_member_mode(members[i].status)))
			xids[n++] = members[i].xid;
	if (n > 1)
		qsort(xids, n, sizeof(TransactionId), xidComparator);

	for (int i = 0; i < n && done; i++)
		if (n == 1 || TransactionIdIsInProgress(xids[i]))
			done = wait_for_xid(rel, tid, xids[i], policy, oper);

	if (nmembers > 0)
		pfree(members);
	if (xids != few)
		pfree(xids);
	return done;
}

bool
inplace_row_wait(Relation rel, RowTarget *target, const RowCheck *rc,
				 LockTupleMode mode, LockWaitPolicy policy, XLTW_Oper oper,
				 RowQueue *queue)
{
	ItemPointer tid = &target->tid;

	/*
	 * A backend that already holds a lock on the row, or has changed it, does
	 * not queue behind those that wait for it: that would be a deadlock.  In
	 * heap a changed row has another TID, where nobody queues.
	 */
	if (queue != NULL && !rc->own_lock && rc->status != XID_CURRENT)
	{
		ItemPointerData place;

		queue_place(&place, tid, rc);
		if (!join_queue(rel, &place, mode, policy, queue))
			return false;
	}
	if (queue != NULL)
	{
		if (rc->old_version)
			target->queued_old = true;
		else
			target->queued = true;
	}

	return wait_for_all(rel, tid, rc, mode, policy, oper);
}

void
inplace_row_wait_done(Relation rel, RowQueue *queue)
{
	if (queue->held)
		UnlockTuple(rel, &queue->place, inplace_row_lockmode[queue->mode]);
	queue->held = false;
}

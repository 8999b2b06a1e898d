/*-------------------------------------------------------------------------
 *
 * lock.c
 *	  tuple_lock: SELECT ... FOR, EvalPlanQual, triggers, ON CONFLICT.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/transam.h"
#include "modify/lock_chain.h"
#include "modify/modify.h"
#include "nodes/lockoptions.h"
#include "page/page.h"
#include "page/page_lock.h"
#include "page/recent.h"
#include "page/slot.h"
#include "page/tuple.h"
#include "row/change.h"
#include "row/lock_queue.h"
#include "row/row_lock.h"
#include "row/rowcheck.h"
#include "row/target.h"
#include "row/visibility.h"
#include "row/walk.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "undo/append.h"
#include "undo/holders.h"
#include "wal/log.h"

/*
 * Does the caller mean what it has found with SnapshotDirty?  ON CONFLICT DO
 * UPDATE and the apply worker come with a TID that they found like that, and with
 * no flags.  A trigger under REPEATABLE READ comes without flags too, but means
 * the version of its snapshot.  The slot tells them apart; a statement can have both.
 */
static bool
means_found_row(uint8 flags, TupleTableSlot *slot)
{
	if (flags != 0)
		return false;
	return !IsolationUsesXactSnapshot() ||
		inplace_result_slot(slot) == RESULT_SLOT_CONFLICT;
}

/*
 * Put the version that was locked (or, after a failure, the newest) into the
 * slot.  Page locked.
 */
static void
store_locked(Relation rel, Buffer buffer, const RowTarget *target,
			 bool below_busy, TupleTableSlot *slot, ItemPointer tid)
{
	Page		page = RowPage(rel, buffer);
	BlockNumber blk = ItemPointerGetBlockNumber(&target->tid);
	OffsetNumber off = ItemPointerGetOffsetNumber(&target->tid);
	RowVersion *version = inplace_scratch_version();
	SnapshotData dirty;
	Snapshot	snapshot = SnapshotAny;
	bool		found;

	InitDirtySnapshot(dirty);
	if (below_busy)
		snapshot = target->kind == TARGET_NEWEST ? &dirty : target->snapshot;
	if (below_busy &&
		(target->kind == TARGET_FOUND || target->kind == TARGET_OURS))
		found = inplace_fetch_target(rel, buffer, target, version);
	else
		found = inplace_fetch_version(rel, buffer, true, page, blk, off,
									  snapshot, version);
	if (found)
	{
		inplace_store_tuple(slot, RelationGetRelid(rel), &target->tid,
							version->tuple, version->len, &version->info, true);
		if (tid)
			TidSetTagged(tid, blk, off, version->info.tag);
	}
	else
		ExecClearTuple(slot);
}

/*
 * A row that we inserted or updated needs no lock but that.  A FOR UPDATE on it
 * is stronger than an update that left the keys alone: it excludes FOR KEY
 * SHARE.  If this very (sub)transaction put the row there, whether it is new or
 * was moved, a flag says so, for backends that come along the chain.  Other
 * transactions take no notice of it once we have ended.  All else is a lock as
 * on any other row.
 */
static void
mark_own_row_exclusive(Relation rel, Buffer buffer, Buffer vmbuffer,
					   OffsetNumber off)
{
	InplaceTupleHeader tup = PageGetTupleAt(RowPage(rel, buffer), off);

	Assert((tup->t_infomask & (IP_KEYS_UPDATED | IP_SPECULATIVE)) == 0);
	START_CRIT_SECTION();
	tup->t_infomask |= IP_KEYS_UPDATED;
	MarkBufferDirty(buffer);
	inplace_log_header(rel, buffer, off, false, NULL, NULL, 0);
	END_CRIT_SECTION();
}

/*
 * The state of one call.  Between any two looks at the row its page is unlocked:
 * nobody waits, and nobody reads other pages of the table, with it locked.
 */
typedef struct RowLocking
{
	Relation	rel;
	LockTupleMode mode;
	LockWaitPolicy wait_policy;
	bool		follow;			/* locks what follows the version meant, too */
	bool		find_last;		/* goes on to the newest version */
	bool		shares_page;	/* may come to a lock in memory: looks at the
								 * row with its page share-locked */
	TM_FailureData *tmfd;
	Buffer		buffer;			/* pinned */
	Buffer		vmbuffer;
	RowTarget	target;
	RowCheck	rc;				/* as of the last look */
	UndoRoom	room;			/* for the lock */
	RowQueue	queue;
	RowQueue	left;			/* of an older version, still held */
	RowQueue	gate;			/* never held with a place, see lock_queue.c */
	bool		check_chain;	/* has waited for a change; what came after? */
	bool		chain_free;		/* nothing in the way */
	ItemPointerData locked_at;	/* where the row moves, and is locked already, */
	TransactionId locked_mover; /* by this transaction */
} RowLocking;

static inline InplaceTupleHeader
current_tuple(RowLocking *rl)
{
	return PageGetTupleAt(RowPage(rl->rel, rl->buffer),
						  ItemPointerGetOffsetNumber(&rl->target.tid));
}

static void
leave(RowLocking *rl)
{
	ReleaseBuffer(rl->buffer);
	if (BufferIsValid(rl->vmbuffer))
		ReleaseBuffer(rl->vmbuffer);
	inplace_row_wait_done(rl->rel, &rl->left);
	inplace_row_wait_done(rl->rel, &rl->queue);
	inplace_row_wait_done(rl->rel, &rl->gate);
}

/* the first change, of whatever kind, of the transaction that is changing the version */
static TransactionId
first_change(RowLocking *rl)
{
	return inplace_first_in_the_way(rl->rel, &rl->target.tid, current_tuple(rl),
									LockTupleExclusive);
}

/*
 * Share-lock the page.  Returns the row; NULL, with the page unlocked, if there is none.
 */
static InplaceTupleHeader
share_row_page(RowLocking *rl)
{
	OffsetNumber off = ItemPointerGetOffsetNumber(&rl->target.tid);
	Page		page;

	inplace_lock_page(rl->buffer, LW_SHARED);
	page = RowPage(rl->rel, rl->buffer);
	if (off <= PageGetMaxOffsetNumber(page) &&
		ItemIdIsNormal(PageGetItemId(page, off)))
		return PageGetTupleAt(page, off);
	LockBuffer(rl->buffer, BUFFER_LOCK_UNLOCK);
	return NULL;
}

/*
 * Is another transaction changing the version, in whatever way?  On the way to the
 * newest version a backend stops at such a one only to wait for that transaction.  If
 * so the page stays share-locked.  Backends that have waited for an older version, or for
 * the gate, mostly find just that.
 */
static bool
somebody_is_changing(RowLocking *rl)
{
	InplaceTupleHeader tup = share_row_page(rl);

	if (tup == NULL)
		return false;
	/* (whether it is a new row does not show if it is locked) */
	if (!(tup->t_infomask & (IP_FRESH | IP_SPECULATIVE)) &&
		!HdrIsLocked(tup) &&
		inplace_xid_status(rl->rel, tup, rl->buffer) == XID_IN_PROGRESS)
	{
		memset(&rl->rc, 0, sizeof(rl->rc));
		rl->rc.status = XID_IN_PROGRESS;
		rl->rc.wait_xid = first_change(rl);
		return true;
	}
	LockBuffer(rl->buffer, BUFFER_LOCK_UNLOCK);
	return false;
}

/*
 * Lock the row's page, as inplace_lock_row_page does.  A lock in memory leaves the page as
 * it is, so it is share-locked for that: of rows on one page many may be locked
 * at once.  What else may be needed is found out with the page locked; then it is
 * locked exclusively, from then on.
 */
static bool
lock_page(RowLocking *rl)
{
	if (rl->shares_page)
	{
		InplaceTupleHeader tup = share_row_page(rl);

		if (tup != NULL)
		{
			if (inplace_xid_status(rl->rel, tup, rl->buffer) != XID_ABORTED)
				return true;
			LockBuffer(rl->buffer, BUFFER_LOCK_UNLOCK);
		}
		rl->shares_page = false;
	}
	return inplace_lock_row_page(rl->rel, rl->buffer,
								 ItemPointerGetOffsetNumber(&rl->target.tid),
								 &rl->vmbuffer);
}

/*
 * Look at the row; if there is one its page is locked, and the tuple normal.
 * *passing: see above.
 */
static TM_Result
look_at_row(RowLocking *rl, CommandId cid, bool *passing)
{
	TM_Result	result;

	*passing = rl->tmfd->traversed && somebody_is_changing(rl);
	if (*passing)
		return TM_BeingModified;
	if (!lock_page(rl))
	{
		rl->tmfd->ctid = rl->target.tid;
		return TM_Deleted;
	}
	result = inplace_row_check(rl->rel, rl->buffer, &rl->target, cid, rl->mode,
							   &rl->rc, rl->tmfd);
	if (!rl->tmfd->traversed || rl->rc.status != XID_IN_PROGRESS ||
		(result != TM_Ok && result != TM_BeingModified))
		return result;

	*passing = true;
	rl->rc.wait_xid = first_change(rl);
	rl->rc.wait_locker = InvalidTransactionId;
	rl->rc.wait_multi = InvalidMultiXactId;
	return TM_BeingModified;
}

/*
 * Is all that is in the way another's lock in memory?  Every change by others has to wait for
 * that.  A row lock is mostly followed by a change, which would be waited for with the gate.
 */
static bool
locked_in_memory_only(const RowCheck *rc)
{
	return rc->status == XID_COMMITTED && !rc->old_version &&
		TransactionIdIsValid(rc->memory.xid) &&
		TransactionIdEquals(rc->wait_xid, rc->memory.xid) &&
		!TransactionIdIsValid(rc->wait_locker) &&
		!MultiXactIdIsValid(rc->wait_multi);
}

/*
 * Does the backend wait at the gate to the newest version, or with it?  That is for a
 * change, which all have to wait for that come to the gate; or for a lock in memory, if
 * it has the gate already.  A place in the queue that others with weaker locks may have
 * led to is kept, as on heap: a backend that wants to update without changing a key has
 * waited only for those whom all at the gate wait for, and would meet the others
 * there again.
 *
 * At the gate the wait for all that are before us is one wait, which on heap is one for each
 * of them: so a backend with a lock_timeout passes it by.
 */
static bool
waits_at_gate(const RowLocking *rl, bool passing)
{
	if (rl->wait_policy != LockWaitBlock || rl->mode == LockTupleKeyShare ||
		(rl->queue.held && rl->mode != LockTupleNoKeyExclusive) || LockTimeout > 0)
		return false;
	return passing ||
		(rl->gate.held && rl->mode == LockTupleNoKeyExclusive &&
		 locked_in_memory_only(&rl->rc));
}

/*
 * The page is unlocked.  Take the gate, to look at the row again; or wait with it.
 */
static void
wait_at_gate(RowLocking *rl, bool passing)
{
	inplace_row_wait_done(rl->rel, &rl->queue);
	if (!rl->gate.held)
		inplace_row_gate_take(rl->rel, &rl->target.tid, &rl->gate);
	else
		(void) inplace_row_wait(rl->rel, &rl->target, &rl->rc, rl->mode, LockWaitBlock,
								passing ? XLTW_FetchUpdated : XLTW_Lock, NULL);
}

/*
 * Unlock the page and wait for the transaction that is in the way.  False if that is
 * not to be.
 */
static bool
wait_for_row(RowLocking *rl, bool passing)
{
	const RowCheck *rc = &rl->rc;
	bool		changing = rc->status == XID_IN_PROGRESS;
	bool		deleting = (rc->base.t_infomask & (IP_DELETED | IP_MOVED)) == IP_DELETED;
	bool		beyond;

	if (rc->retry)
	{
		LockBuffer(rl->buffer, BUFFER_LOCK_UNLOCK);
		return true;
	}

	/* not for this version, but for those that follow: see lock_chain.c */
	beyond = rl->follow && rl->mode == LockTupleKeyShare && !passing &&
		(rc->below_busy ||
		 (changing &&
		  inplace_keys_outlive(rl->rel, current_tuple(rl), &rl->target)));
	rl->chain_free = false;
	rl->check_chain = rl->follow &&
		(rc->old_version || (changing && !deleting && !passing));

	LockBuffer(rl->buffer, BUFFER_LOCK_UNLOCK);
	inplace_row_wait_done(rl->rel, &rl->left);
	if (waits_at_gate(rl, passing))
	{
		wait_at_gate(rl, passing);
		return true;
	}
	inplace_row_wait_done(rl->rel, &rl->gate);
	if (beyond)
		return inplace_row_wait(rl->rel, &rl->target, rc, rl->mode, LockWaitBlock,
								XLTW_LockUpdated, NULL);
	return inplace_row_wait(rl->rel, &rl->target, rc, rl->mode, rl->wait_policy,
							passing ? XLTW_FetchUpdated : XLTW_Lock,
							passing ? NULL : &rl->queue);
}

/*
 * We have waited for the change that replaced the version meant.  Unlock the
 * page and look at the versions that follow.  Those behind us in its queue wait,
 * too.
 */
static void
look_at_successors(RowLocking *rl)
{
	ChainStart	start = {.tid = rl->target.tid,.target = &rl->target};
	TransactionId xwait;

	/* nobody takes the gate who comes here */
	Assert(!rl->gate.held);
	LockBuffer(rl->buffer, BUFFER_LOCK_UNLOCK);
	switch (inplace_chain_conflict(rl->rel, &start, rl->mode, NULL, &xwait))
	{
		case CHAIN_BUSY:
			XactLockTableWait(xwait, rl->rel, &rl->target.tid, XLTW_LockUpdated);
			break;
		case CHAIN_GONE:
			rl->target.gone = true;
			rl->check_chain = false;
			break;
		case CHAIN_FREE:
			rl->chain_free = true;
			rl->check_chain = false;
			break;
	}
}

/*
 * From now on the newest version is meant.  The backends behind us in the queue of the
 * one before that go the same way come when we have locked it, unless we have to
 * wait again.  The page is unlocked.
 */
static void
go_on_to_newest(RowLocking *rl, ItemPointerData tid)
{
	rl->tmfd->traversed = true;
	inplace_row_wait_done(rl->rel, &rl->gate);
	if (rl->queue.held)
	{
		inplace_row_wait_done(rl->rel, &rl->left);
		rl->left = rl->queue;
		rl->queue.held = false;
	}
	rl->buffer = ReleaseAndReadBuffer(rl->buffer, rl->rel,
									  ItemPointerGetBlockNumber(&tid));
	rl->target.tid = tid;
	rl->target.kind = TARGET_NEWEST;
	/* if nothing is in the way, heap has locked it by now */
	rl->target.queued = rl->chain_free;
	rl->target.queued_old = false;
	rl->target.gone = false;
	rl->chain_free = false;
	rl->check_chain = false;
}

/* did this very (sub)transaction put the row there, new or moved? */
static bool
put_here(RowLocking *rl, TransactionId xid)
{
	return rl->rc.status == XID_CURRENT &&
		TransactionIdEquals(rl->rc.base.t_xid, xid) &&
		(rl->rc.base.t_infomask & (IP_FRESH | IP_SPECULATIVE)) != 0;
}

/*
 * Do we have as much already?
 */
static bool
have_lock(RowLocking *rl, TransactionId xid)
{
	const RowCheck *rc = &rl->rc;

	if (rc->own_lock && rc->own_mode >= rl->mode)
		return true;
	return rc->status == XID_CURRENT &&
		(rl->mode != LockTupleExclusive || put_here(rl, xid) ||
		 (rc->base.t_infomask & IP_KEYS_UPDATED));
}

/*
 * FOR KEY SHARE may have the version meant, but the row is being moved, or was: has it
 * still to be locked where it goes?  What was done about another move, which has been
 * rolled back meanwhile, does not count.
 */
static bool
moves_unlocked(RowLocking *rl, ItemPointer moving)
{
	InplaceTupleHeader tup = current_tuple(rl);

	return rl->rc.below_busy && (tup->t_infomask & IP_MOVED) &&
		inplace_moved_to(rl->rel, tup, &rl->target.tid, moving) &&
		!(ItemPointerIsValid(&rl->locked_at) &&
		  ItemPointerEquals(&rl->locked_at, moving) &&
		  TransactionIdEquals(rl->locked_mover, rl->rc.base.t_xid));
}

/*
 * Unlock the page and lock the row along the chain, to begin again then; returns false
 * if the lock cannot be had after all.  If we have it already, it has gone along.
 */
static bool
lock_where_it_moves(RowLocking *rl, ItemPointerData moving, TransactionId xid)
{
	ChainStart	start = {.tid = moving,.mover = rl->rc.base.t_xid};
	ChainLock	lock = {.xid = xid,.replacer = rl->rc.replacer};
	bool		locked = have_lock(rl, xid);
	TransactionId xwait;

	/* nobody takes the gate who wants FOR KEY SHARE */
	Assert(!rl->gate.held);
	rl->tmfd->xmax = current_tuple(rl)->t_xid;
	LockBuffer(rl->buffer, BUFFER_LOCK_UNLOCK);
	inplace_row_wait_done(rl->rel, &rl->left);

	/*
	 * A row that this transaction's snapshot does not see may have gone
	 * since, from where the one that it sees was moved to (row/between.c). It
	 * may rely on another session that its snapshot is from.
	 */
	start.may_be_gone = !locked && inplace_prune_between && IsolationUsesXactSnapshot() &&
		TransactionIdDidCommit(start.mover);
	switch (inplace_chain_conflict(rl->rel, &start, rl->mode, locked ? NULL : &lock,
								   &xwait))
	{
		case CHAIN_GONE:
			if (!rl->find_last)
			{
				rl->tmfd->ctid = moving;
				return false;
			}
			/* then only the end of the chain will do */
			go_on_to_newest(rl, rl->target.tid);
			break;
		case CHAIN_BUSY:
			XactLockTableWait(xwait, rl->rel, &moving, XLTW_LockUpdated);
			break;
		case CHAIN_FREE:
			/* (or the move has been rolled back: another one has another xid) */
			rl->locked_at = moving;
			rl->locked_mover = start.mover;
			break;
	}
	return true;
}

/*
 * Will the lock stand in memory?
 */
static bool
lock_in_memory(const RowLocking *rl)
{
	const RowCheck *rc = &rl->rc;

	return rl->mode >= LockTupleNoKeyExclusive && rc->status == XID_COMMITTED &&
		!rc->below_busy && inplace_memory_lock_room() &&
		!(rc->locked && inplace_lockers_alive(&rc->lockers));
}

/*
 * A FOR UPDATE of a row that we have put there: mark_own_row_exclusive.
 */
static bool
marks_own_row(RowLocking *rl, TransactionId xid)
{
	return rl->mode == LockTupleExclusive && put_here(rl, xid) &&
		(current_tuple(rl)->t_infomask & (IP_KEYS_UPDATED | IP_SPECULATIVE)) == 0;
}

/*
 * Can the lock be taken with the page locked as it is, and the undo that is reserved?
 * If not, the page is unlocked, and we look at the row again.
 */
static bool
can_take_lock(RowLocking *rl, TransactionId xid)
{
	bool		unchanged = have_lock(rl, xid) || lock_in_memory(rl);

	if (rl->shares_page && (!unchanged || marks_own_row(rl, xid)))
	{
		LockBuffer(rl->buffer, BUFFER_LOCK_UNLOCK);
		rl->shares_page = false;
		return false;
	}
	if (unchanged || !inplace_lock_lacks_undo(rl->rel, &rl->rc, &rl->room))
		return true;
	LockBuffer(rl->buffer, BUFFER_LOCK_UNLOCK);
	UndoReserve(rl->rel, &rl->room);
	return false;
}

/*
 * The row is ours to lock, and its page locked.  Where it moves we have it already.  False
 * if another backend was quicker; the page is unlocked then.
 */
static bool
take_lock(RowLocking *rl, TransactionId xid, TupleTableSlot *slot, ItemPointer tid)
{
	const RowCheck *rc = &rl->rc;
	OffsetNumber off = ItemPointerGetOffsetNumber(&rl->target.tid);
	bool		have = have_lock(rl, xid);
	bool		in_memory = !have && lock_in_memory(rl);
	TransactionId locker;
	bool		multi;
	LockTupleMode strongest;

	if (in_memory &&
		!inplace_take_memory_lock(rl->rel, ItemPointerGetBlockNumber(&rl->target.tid),
								  off, xid, rl->mode))
	{
		Assert(rl->shares_page);
		LockBuffer(rl->buffer, BUFFER_LOCK_UNLOCK);
		CHECK_FOR_INTERRUPTS();
		return false;
	}
	if (marks_own_row(rl, xid))
		mark_own_row_exclusive(rl->rel, rl->buffer, rl->vmbuffer, off);
	store_locked(rl->rel, rl->buffer, &rl->target, rc->below_busy, slot, tid);
	if (have || in_memory)
		return true;

	Assert(!rl->shares_page);
	inplace_compute_lockers(rc, xid, rl->mode, &locker, &multi, &strongest);
	inplace_set_row_lock(rl->rel, rl->buffer, rl->vmbuffer, off, rc, &rl->room, xid,
						 locker, multi, strongest);
	return true;
}

static void
begin_locking(RowLocking *rl, Relation rel, ItemPointer tid, Snapshot snapshot,
			  TupleTableSlot *slot, LockTupleMode mode,
			  LockWaitPolicy wait_policy, uint8 flags, TM_FailureData *tmfd)
{
	tmfd->traversed = false;
	tmfd->xmax = InvalidTransactionId;
	tmfd->cmax = InvalidCommandId;

	rl->rel = rel;
	rl->mode = mode;
	rl->wait_policy = wait_policy;
	rl->follow = (flags & TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS) != 0;
	rl->find_last = (flags & TUPLE_LOCK_FLAG_FIND_LAST_VERSION) != 0;
	rl->tmfd = tmfd;
	rl->shares_page = mode >= LockTupleNoKeyExclusive && inplace_memory_lock_room();
	inplace_target_init(&rl->target, tid, snapshot);
	/* found in another way: the row is meant, whatever its version */
	if (rl->target.kind == TARGET_SEEN && means_found_row(flags, slot) &&
		!inplace_target_found_row(rel, tid, slot, &rl->target))
		rl->target.kind = TARGET_NEWEST;
}

TM_Result
inplace_tuple_lock(Relation rel, ItemPointer tid, Snapshot snapshot,
				   TupleTableSlot *slot, CommandId cid, LockTupleMode mode,
				   LockWaitPolicy wait_policy, uint8 flags,
				   TM_FailureData *tmfd)
{
	RowLocking	rl = {0};
	TransactionId xid;
	TM_Result	result;
	OffsetNumber off;
	Page		page;
	bool		passing;
	ItemPointerData moving;

	InplaceRequirePreload();
	xid = GetCurrentTransactionId();
	MultiXactIdSetOldestMember();
	inplace_expect_memory_locks();
	begin_locking(&rl, rel, tid, snapshot, slot, mode, wait_policy, flags, tmfd);

	rl.buffer = inplace_read_row_page(rel, ItemPointerGetBlockNumber(&rl.target.tid));
	for (;;)
	{
		result = look_at_row(&rl, cid, &passing);

		if (rl.check_chain &&
			(result == TM_Updated ||
			 (result == TM_BeingModified && rl.rc.old_version)) &&
			!(current_tuple(&rl)->t_infomask & IP_MOVED_PARTITION))
		{
			look_at_successors(&rl);
			continue;
		}

		if (result == TM_BeingModified)
		{
			if (wait_for_row(&rl, passing))
				continue;
			leave(&rl);
			tmfd->ctid = rl.target.tid;
			return TM_WouldBlock;
		}

		if (result == TM_Ok && moves_unlocked(&rl, &moving))
		{
			if (lock_where_it_moves(&rl, moving, xid))
				continue;
			leave(&rl);
			return TM_Updated;
		}

		if (result == TM_Updated && rl.find_last)
		{
			LockBuffer(rl.buffer, BUFFER_LOCK_UNLOCK);
			if (ItemPointerIndicatesMovedPartitions(&tmfd->ctid))
				ereport(ERROR,
						(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
						 errmsg("tuple to be locked was already moved to another partition due to concurrent update")));
			go_on_to_newest(&rl, tmfd->ctid);
			continue;
		}
		if (result == TM_Ok &&
			!(can_take_lock(&rl, xid) && take_lock(&rl, xid, slot, tid)))
			continue;
		break;
	}

	/*
	 * On the way along a chain of versions what was changed by ourselves
	 * later than this command is reported as such, not as invisible.
	 */
	if (result == TM_Invisible && tmfd->traversed)
		result = (rl.rc.status == XID_CURRENT) ? TM_SelfModified : TM_Deleted;

	page = RowPage(rel, rl.buffer);
	off = ItemPointerGetOffsetNumber(&rl.target.tid);
	if (result != TM_Ok && off <= PageGetMaxOffsetNumber(page) &&
		ItemIdIsNormal(PageGetItemId(page, off)))
		store_locked(rel, rl.buffer, &rl.target, false, slot, NULL);
	LockBuffer(rl.buffer, BUFFER_LOCK_UNLOCK);
	leave(&rl);
	return result;
}

/*-------------------------------------------------------------------------
 *
 * lock.c
 *	  tuple_lock: SELECT ... FOR, EvalPlanQual, triggers, ON CONFLICT.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "nodes/lockoptions.h"
#include "storage/lmgr.h"
#include "table/lock_chain.h"
#include "table/rowcheck.h"
#include "wal/wal.h"

/*
 * Does the caller mean the row, whatever its version?  ON CONFLICT DO UPDATE
 * and the apply worker come with a TID that they found through an index with
 * SnapshotDirty, and with no flags; a trigger under REPEATABLE READ comes
 * without flags too, but means the version of its snapshot.  (The slot tells; a
 * statement can have both.)
 */
static bool
means_newest(uint8 flags, TupleTableSlot *slot)
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
	Page		page = BufferGetPage(buffer);
	BlockNumber blk = ItemPointerGetBlockNumber(&target->tid);
	OffsetNumber off = ItemPointerGetOffsetNumber(&target->tid);
	RowVersion *version = RowVersionAlloc();
	SnapshotData dirty;
	Snapshot	snapshot = SnapshotAny;
	bool		found;

	InitDirtySnapshot(dirty);
	if (below_busy)
		snapshot = target->newest ? &dirty : target->snapshot;
	if (below_busy && target->tag != 0)
		found = inplace_fetch_tagged(rel, buffer, page, blk, off, target->tag,
									 version);
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
	pfree(version);
}

/*
 * A row that we inserted or updated needs no lock but that.  A FOR UPDATE on it
 * is stronger than an update that left the keys alone: it excludes FOR KEY
 * SHARE.  If this very (sub)transaction put the row there, whether it is new or
 * was moved, a flag says so, for those who come along the chain.  Other
 * transactions take no notice of it once we have ended.  All else is a lock as
 * on any other row.
 */
static void
mark_own_row_exclusive(Relation rel, Buffer buffer, Buffer vmbuffer,
					   OffsetNumber off)
{
	InplaceTupleHeader tup = PageGetTupleAt(BufferGetPage(buffer), off);

	if (tup->t_infomask & (IP_KEYS_UPDATED | IP_SPECULATIVE))
		return;
	START_CRIT_SECTION();
	tup->t_infomask |= IP_KEYS_UPDATED;
	MarkBufferDirty(buffer);
	inplace_log_header(rel, buffer, off, false, NULL, NULL, 0);
	END_CRIT_SECTION();
}

TM_Result
inplace_tuple_lock(Relation rel, ItemPointer tid, Snapshot snapshot,
				   TupleTableSlot *slot, CommandId cid, LockTupleMode mode,
				   LockWaitPolicy wait_policy, uint8 flags,
				   TM_FailureData *tmfd)
{
	RowTarget	target;
	RowCheck	rc;
	TransactionId xid;
	TM_Result	result;
	Buffer		buffer;
	Buffer		vmbuffer = InvalidBuffer;
	Page		page;
	OffsetNumber off;
	RowQueue	queue = {0};
	RowQueue	left = {0};		/* of an older version, still held */
	bool		follow = (flags & TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS) != 0;
	bool		check_chain = false;
	bool		chain_free = false;
	bool		chain_checked = false;
	bool		passing;
	ItemPointerData moving;
	bool		moves = false;

	InplaceRequirePreload();
	tmfd->traversed = false;
	tmfd->xmax = InvalidTransactionId;
	tmfd->cmax = InvalidCommandId;

	TidClean(&target.tid, tid);
	target.tag = TidTag(tid);
	target.newest = means_newest(flags, slot) && target.tag == 0;
	target.queued = false;
	target.queued_old = false;
	target.gone = false;
	target.snapshot = snapshot;

	xid = GetCurrentTransactionId();
	MultiXactIdSetOldestMember();

	buffer = inplace_read_row_page(rel, ItemPointerGetBlockNumber(&target.tid));
	for (;;)
	{
		off = ItemPointerGetOffsetNumber(&target.tid);
		page = BufferGetPage(buffer);
		if (!inplace_lock_row_page(rel, buffer, off, &vmbuffer))
		{
			tmfd->ctid = target.tid;
			result = TM_Deleted;
			break;
		}
		result = inplace_row_check(rel, buffer, &target, cid, mode, &rc, tmfd);

		/*
		 * Who goes along the versions does not stop at one that somebody is
		 * changing, in whatever way, but to wait for him.
		 */
		passing = tmfd->traversed && rc.status == XID_IN_PROGRESS && !rc.retry &&
			(result == TM_BeingModified || result == TM_Ok);
		if (passing)
		{
			result = TM_BeingModified;
			rc.wait_xid = PageGetTupleAt(page, off)->t_xid;
			rc.wait_locker = InvalidTransactionId;
			rc.wait_multi = InvalidMultiXactId;
		}

		if (check_chain &&
			(result == TM_Updated ||
			 (result == TM_BeingModified && rc.old_version)) &&
			!(PageGetTupleAt(page, off)->t_infomask & IP_MOVED_PARTITION))
		{
			TransactionId xwait;

			/*
			 * Not this version; but see lock_chain.c.  Those behind us in its
			 * queue wait, too.
			 */
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
			switch (inplace_chain_conflict(rel, target.tid, &target, mode,
										   &xwait))
			{
				case CHAIN_BUSY:
					XactLockTableWait(xwait, rel, &target.tid, XLTW_LockUpdated);
					break;
				case CHAIN_GONE:
					target.gone = true;
					check_chain = false;
					break;
				case CHAIN_FREE:
					chain_free = true;
					check_chain = false;
					break;
			}
			continue;
		}

		if (result == TM_BeingModified)
		{
			bool		beyond;
			bool		done;

			if (rc.retry)
			{
				LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
				continue;
			}
			beyond = follow && mode == LockTupleKeyShare && !passing &&
				(rc.below_busy ||
				 (rc.status == XID_IN_PROGRESS &&
				  inplace_keys_outlive(rel, PageGetTupleAt(page, off), &target)));
			chain_free = false;
			check_chain = follow &&
				(rc.old_version ||
				 (!passing && rc.status == XID_IN_PROGRESS &&
				  !((rc.base.t_infomask & IP_DELETED) &&
					!(rc.base.t_infomask & IP_MOVED))));
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
			inplace_row_wait_done(rel, mode, &left);
			if (beyond)
				done = inplace_row_wait(rel, &target, &rc, mode, LockWaitBlock,
										XLTW_LockUpdated, NULL);
			else if (passing)
				done = inplace_row_wait(rel, &target, &rc, mode, wait_policy,
										XLTW_FetchUpdated, NULL);
			else
				done = inplace_row_wait(rel, &target, &rc, mode, wait_policy,
										XLTW_Lock, &queue);
			if (!done)
			{
				inplace_row_wait_done(rel, mode, &queue);
				ReleaseBuffer(buffer);
				if (BufferIsValid(vmbuffer))
					ReleaseBuffer(vmbuffer);
				tmfd->ctid = target.tid;
				return TM_WouldBlock;
			}
			continue;
		}

		if (result == TM_Ok && rc.below_busy && !chain_checked &&
			(PageGetTupleAt(page, off)->t_infomask & IP_MOVED) &&
			inplace_moved_to(rel, PageGetTupleAt(page, off), &target.tid, &moving))
		{
			ChainVerdict verdict;
			TransactionId xwait;

			/* look along the chain with no page locked, then begin again */
			tmfd->xmax = PageGetTupleAt(page, off)->t_xid;
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
			inplace_row_wait_done(rel, mode, &left);
			verdict = inplace_chain_conflict(rel, moving, NULL, mode, &xwait);
			if (verdict == CHAIN_GONE)
			{
				if (flags & TUPLE_LOCK_FLAG_FIND_LAST_VERSION)
				{
					/* then only the end of the chain will do */
					tmfd->traversed = true;
					target.newest = true;
					continue;
				}
				inplace_row_wait_done(rel, mode, &queue);
				ReleaseBuffer(buffer);
				if (BufferIsValid(vmbuffer))
					ReleaseBuffer(vmbuffer);
				tmfd->ctid = moving;
				return TM_Updated;
			}
			if (verdict == CHAIN_BUSY)
				XactLockTableWait(xwait, rel, &moving, XLTW_LockUpdated);
			chain_checked = (verdict == CHAIN_FREE);
			continue;
		}

		if (result == TM_Updated && (flags & TUPLE_LOCK_FLAG_FIND_LAST_VERSION))
		{
			tmfd->traversed = true;
			if (ItemPointerIndicatesMovedPartitions(&tmfd->ctid))
			{
				LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
				ereport(ERROR,
						(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
						 errmsg("tuple to be locked was already moved to another partition due to concurrent update")));
			}

			/*
			 * Those behind us in the queue of this version, who go the same
			 * way, come when we have locked the one that follows, unless we
			 * have to wait again.
			 */
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
			inplace_row_wait_done(rel, mode, &left);
			left = queue;
			queue.held = false;
			if (!ItemPointerEquals(&tmfd->ctid, &target.tid))
			{
				buffer = ReleaseAndReadBuffer(buffer, rel,
											  ItemPointerGetBlockNumber(&tmfd->ctid));
				target.tid = tmfd->ctid;
			}
			target.tag = 0;
			target.newest = true;
			/* heap has locked it by now, having queued for the one before */
			target.queued = chain_free;
			target.queued_old = false;
			target.gone = false;
			chain_free = false;
			check_chain = false;
			continue;
		}
		break;
	}

	/*
	 * On the way along a chain of versions what was changed by ourselves
	 * later than this command is reported as such, not as invisible.
	 */
	if (result == TM_Invisible && tmfd->traversed)
		result = (rc.status == XID_CURRENT) ? TM_SelfModified : TM_Deleted;

	if (result == TM_Ok)
	{
		TransactionId locker;
		bool		multi;
		LockTupleMode strongest;
		InplaceTupleHeader tup = PageGetTupleAt(page, off);
		bool		enough = rc.own_lock && rc.own_mode >= mode;

		if (rc.status == XID_CURRENT)
		{
			bool		with_row = TransactionIdEquals(rc.base.t_xid, xid) &&
				(rc.base.t_infomask & (IP_FRESH | IP_SPECULATIVE)) != 0;

			if (mode == LockTupleExclusive && with_row)
				mark_own_row_exclusive(rel, buffer, vmbuffer, off);
			if (mode != LockTupleExclusive || with_row ||
				(rc.base.t_infomask & IP_KEYS_UPDATED))
				enough = true;
		}

		store_locked(rel, buffer, &target, rc.below_busy, slot, tid);

		if (!enough)
		{
			if (rc.below_busy && (tup->t_infomask & IP_MOVED) &&
				inplace_moved_to(rel, tup, &target.tid, &moving))
				moves = true;
			inplace_compute_lockers(&rc, xid, mode, &locker, &multi, &strongest);
			inplace_set_row_lock(rel, buffer, vmbuffer, off, &rc, xid, locker,
								 multi, strongest);
		}
	}
	else if (off <= PageGetMaxOffsetNumber(page) &&
			 ItemIdIsNormal(PageGetItemId(page, off)))
		store_locked(rel, buffer, &target, false, slot, NULL);

	UnlockReleaseBuffer(buffer);
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);

	if (moves)
		inplace_lock_where_it_moves(rel, moving, xid, rc.replacer, mode);

	inplace_row_wait_done(rel, mode, &left);
	inplace_row_wait_done(rel, mode, &queue);
	return result;
}

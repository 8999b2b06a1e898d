/*-------------------------------------------------------------------------
 *
 * lock.c
 *	  tuple_lock: SELECT ... FOR, EvalPlanQual, triggers, ON CONFLICT.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "nodes/execnodes.h"
#include "nodes/lockoptions.h"
#include "table/rowcheck.h"
#include "wal/wal.h"

/* the slot for the row in the way of ON CONFLICT DO UPDATE? */
static bool
is_conflict_slot(List *relinfos, TupleTableSlot *slot)
{
	ListCell   *lc;

	foreach(lc, relinfos)
	{
		OnConflictSetState *oc = ((ResultRelInfo *) lfirst(lc))->ri_onConflict;

		if (oc != NULL && oc->oc_Existing == slot)
			return true;
	}
	return false;
}

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
	EState	   *estate = inplace_executor_estate;

	if (flags != 0)
		return false;
	return !IsolationUsesXactSnapshot() ||
		(estate != NULL &&
		 (is_conflict_slot(estate->es_opened_result_relations, slot) ||
		  is_conflict_slot(estate->es_tuple_routing_result_relations, slot)));
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
 * A row that is being moved by a transaction in progress, with no change of
 * key: whoever locks it FOR KEY SHARE locks the row where it goes too.
 * Follows the chain of moves to its end.
 */
static void
lock_where_it_moves(Relation rel, ItemPointerData tid, TransactionId mover,
					TransactionId xid, LockTupleMode mode)
{
	for (;;)
	{
		Buffer		buffer;
		Page		page;
		OffsetNumber off = ItemPointerGetOffsetNumber(&tid);
		InplaceTupleHeader tup;
		RowCheck	rc;
		ItemPointerData next;
		Buffer		vmbuffer = InvalidBuffer;
		bool		more = false;

		buffer = ReadBuffer(rel, ItemPointerGetBlockNumber(&tid));
		page = BufferGetPage(buffer);
		if (inplace_lock_row_page(rel, buffer, off, &vmbuffer))
		{
			tup = PageGetTupleAt(page, off);
			memset(&rc, 0, sizeof(rc));
			rc.status = inplace_xid_status(tup, buffer);
			if (rc.status == XID_IN_PROGRESS || rc.status == XID_COMMITTED)
			{
				TransactionId locker;
				bool		multi;
				LockTupleMode strongest;

				rc.locked = inplace_get_lockers(rel, tup,
												ItemPointerGetBlockNumber(&tid),
												off, &rc.lockers);
				rc.base = rc.lockers.base;
				if ((tup->t_infomask & IP_MOVED) &&
					!(tup->t_infomask & IP_KEYS_UPDATED))
					more = inplace_moved_to(rel, tup, &tid, &next);
				inplace_compute_lockers(&rc, xid, mode, &locker, &multi,
										&strongest);
				inplace_set_row_lock(rel, buffer, vmbuffer, off, &rc, locker,
									 multi, strongest);
			}
		}
		UnlockReleaseBuffer(buffer);
		if (BufferIsValid(vmbuffer))
			ReleaseBuffer(vmbuffer);
		if (!more)
			break;
		tid = next;
	}
}

/*
 * Before that: is the row, where it goes, changed or locked in a way that FOR
 * KEY SHARE has to wait for?  Returns whom to wait for; *gone if such a change
 * has been committed.
 */
static TransactionId
conflict_where_it_moves(Relation rel, ItemPointerData tid, bool *gone)
{
	*gone = false;

	for (;;)
	{
		Buffer		buffer = ReadBuffer(rel, ItemPointerGetBlockNumber(&tid));
		OffsetNumber off = ItemPointerGetOffsetNumber(&tid);
		TransactionId xwait = InvalidTransactionId;
		ItemPointerData next;
		bool		more = false;
		Page		page;

		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		page = BufferGetPage(buffer);
		if (off <= PageGetMaxOffsetNumber(page) &&
			ItemIdIsNormal(PageGetItemId(page, off)))
		{
			InplaceTupleHeader tup = PageGetTupleAt(page, off);

			XidStatus	status = inplace_xid_status(tup, buffer);

			if (status == XID_IN_PROGRESS || status == XID_COMMITTED)
			{
				if ((tup->t_infomask & IP_KEYS_UPDATED) ||
					((tup->t_infomask & IP_DELETED) &&
					 !(tup->t_infomask & IP_MOVED)))
				{
					if (status == XID_COMMITTED)
						*gone = true;
					else
						xwait = tup->t_xid;
				}
				else if (tup->t_infomask & IP_MOVED)
					more = inplace_moved_to(rel, tup, &tid, &next);
			}
		}
		UnlockReleaseBuffer(buffer);
		if (TransactionIdIsValid(xwait) || !more)
			return xwait;
		tid = next;
	}
}

/*
 * A row that we inserted or updated needs no lock but that.  A FOR UPDATE on it
 * is stronger: it excludes FOR KEY SHARE, by those who come to a new row along
 * the chain, too.
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
	bool		have_tuple_lock = false;
	bool		chain_checked = false;
	ItemPointerData moving;
	TransactionId mover = InvalidTransactionId;

	InplaceRequirePreload();
	tmfd->traversed = false;
	tmfd->xmax = InvalidTransactionId;
	tmfd->cmax = InvalidCommandId;

	TidClean(&target.tid, tid);
	target.tag = TidTag(tid);
	target.newest = means_newest(flags, slot) && target.tag == 0;
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

		if (result == TM_BeingModified)
		{
			bool		done;

			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
			if (rc.retry)
				continue;
			done = inplace_row_wait(rel, &target.tid, &rc, mode, wait_policy,
									XLTW_Lock, &have_tuple_lock);
			if (!done)
			{
				inplace_row_wait_done(rel, &target.tid, mode, have_tuple_lock);
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
			bool		gone;

			/* look along the chain with no page locked, then begin again */
			tmfd->xmax = PageGetTupleAt(page, off)->t_xid;
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
			rc.wait_multi = InvalidMultiXactId;
			rc.wait_xid = conflict_where_it_moves(rel, moving, &gone);
			if (gone)
			{
				if (flags & TUPLE_LOCK_FLAG_FIND_LAST_VERSION)
				{
					/* then only the end of the chain will do */
					tmfd->traversed = true;
					target.newest = true;
					continue;
				}
				inplace_row_wait_done(rel, &target.tid, mode, have_tuple_lock);
				ReleaseBuffer(buffer);
				if (BufferIsValid(vmbuffer))
					ReleaseBuffer(vmbuffer);
				tmfd->ctid = moving;
				return TM_Updated;
			}
			chain_checked = !TransactionIdIsValid(rc.wait_xid);
			if (!chain_checked &&
				!inplace_row_wait(rel, &target.tid, &rc, mode, wait_policy,
								  XLTW_Lock, &have_tuple_lock))
			{
				inplace_row_wait_done(rel, &target.tid, mode, have_tuple_lock);
				ReleaseBuffer(buffer);
				if (BufferIsValid(vmbuffer))
					ReleaseBuffer(vmbuffer);
				tmfd->ctid = target.tid;
				return TM_WouldBlock;
			}
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
			if (!ItemPointerEquals(&tmfd->ctid, &target.tid))
			{
				/* the row lives on elsewhere */
				LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
				inplace_row_wait_done(rel, &target.tid, mode, have_tuple_lock);
				have_tuple_lock = false;
				buffer = ReleaseAndReadBuffer(buffer, rel,
											  ItemPointerGetBlockNumber(&tmfd->ctid));
				target.tid = tmfd->ctid;
			}
			else
				LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
			target.tag = 0;
			target.newest = true;
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
			enough = true;
			if (mode == LockTupleExclusive)
				mark_own_row_exclusive(rel, buffer, vmbuffer, off);
		}

		store_locked(rel, buffer, &target, rc.below_busy, slot, tid);

		if (!enough)
		{
			if (rc.below_busy && (tup->t_infomask & IP_MOVED) &&
				inplace_moved_to(rel, tup, &target.tid, &moving))
				mover = tup->t_xid;
			inplace_compute_lockers(&rc, xid, mode, &locker, &multi, &strongest);
			inplace_set_row_lock(rel, buffer, vmbuffer, off, &rc, locker, multi,
								 strongest);
		}
	}
	else if (off <= PageGetMaxOffsetNumber(page) &&
			 ItemIdIsNormal(PageGetItemId(page, off)))
		store_locked(rel, buffer, &target, false, slot, NULL);

	UnlockReleaseBuffer(buffer);
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);

	if (TransactionIdIsValid(mover))
		lock_where_it_moves(rel, moving, mover, xid, mode);

	inplace_row_wait_done(rel, &target.tid, mode, have_tuple_lock);
	return result;
}

/*-------------------------------------------------------------------------
 *
 * change.c
 *	  What all changes of a row have in common: updates, deletes, locks, and
 *	  taking an aborted change back.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/visibilitymap.h"
#include "page/page_lock.h"
#include "page/page.h"
#include "page/tuple.h"
#include "row/change.h"
#include "row/lock_trace.h"
#include "row/restore.h"
#include "row/row_lock.h"
#include "row/rowcheck.h"
#include "row/target.h"
#include "row/visibility.h"
#include "undo/append.h"

/*
 * Lock the page for a change of the row, with the visibility map page pinned
 * if the page is all-visible and aborted changes of the row taken back.
 * Returns false if there is no row.
 */
bool
inplace_lock_row_page(Relation rel, Buffer buffer, OffsetNumber off,
					  Buffer *vmbuffer)
{
	Page		page = BufferGetPage(buffer);
	BlockNumber blk = BufferGetBlockNumber(buffer);
	UndoRoom	room;

	for (;;)
	{
		if (PageIsAllVisible(page))
			visibilitymap_pin(rel, blk, vmbuffer);
		inplace_lock_page(buffer, LW_EXCLUSIVE);
		(void) RowPage(rel, buffer);
		if (PageIsAllVisible(page) && !visibilitymap_pin_ok(blk, *vmbuffer))
		{
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
			continue;
		}

		for (;;)
		{
			if (off > PageGetMaxOffsetNumber(page) ||
				!ItemIdIsNormal(PageGetItemId(page, off)))
				return false;
			if (inplace_xid_status(rel, PageGetTupleAt(page, off), buffer) != XID_ABORTED)
				return true;
			if (InplaceRestoreNeedsUndo(rel, buffer, off, &room))
				break;
			(void) InplaceRestoreRow(rel, buffer, off, &room);
		}
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		(void) UndoReserveRestore(rel, &room, false);
	}
}

/*
 * There is no row where the target was.
 */
TM_Result
inplace_target_gone(const RowTarget *target, TM_FailureData *tmfd)
{
	tmfd->ctid = target->tid;
	tmfd->xmax = InvalidTransactionId;
	tmfd->cmax = InvalidCommandId;
	return TM_Deleted;
}

/*
 * The row may be changed, but for this: a caller that has a crosscheck snapshot
 * changes only what that sees.
 */
TM_Result
inplace_crosscheck(Relation rel, Buffer buffer, const RowTarget *target,
				   Snapshot crosscheck, TM_FailureData *tmfd)
{
	OffsetNumber off = ItemPointerGetOffsetNumber(&target->tid);

	if (crosscheck == InvalidSnapshot ||
		inplace_newest_visible(rel, buffer, off, crosscheck))
		return TM_Ok;
	tmfd->ctid = target->tid;
	tmfd->xmax = PageGetTupleAt(RowPage(rel, buffer), off)->t_xid;
	tmfd->cmax = InvalidCommandId;
	return TM_Updated;
}

/*
 * What undo is needed to keep lockers that are alive across a change of the
 * row: an UNDO_LOCK record at ptr over header hdr (which gets its lock bits).
 * Returns its length, 0 if there are none.
 */
Size
inplace_keep_lockers(Relation rel, BlockNumber blk, OffsetNumber off,
					 const RowCheck *rc, InplaceTupleHeader hdr, UndoPtr ptr,
					 char *dst)
{
	TransactionId locker;
	bool		multi;
	LockTupleMode mode;
	LockTrace	trace;
	Size		len;

	/*
	 * A lock that this very (sub)transaction took goes with its change,
	 * unless it is on an older version, too; that of an outer one has to be
	 * there again after a rollback to a savepoint.
	 */
	if (!rc->lockers.multi &&
		TransactionIdEquals(rc->lockers.xid, GetCurrentTransactionIdIfAny()) &&
		!TransactionIdIsValid(inplace_trace_replacer(&rc->lockers,
													 rc->lockers.xid)))
		return 0;

	if (!inplace_compute_lockers(rc, InvalidTransactionId, LockTupleKeyShare,
								 &locker, &multi, &mode))
		return 0;
	inplace_trace_keep(rc, &trace);
	len = inplace_build_lock_undo(dst, rel, blk, off, hdr, locker, &trace);
	inplace_header_lock_indirect(hdr, ptr, multi, mode);
	return len;
}

/* the newest xid that can need the undo of a change of this row */
TransactionId
inplace_undo_newest(const RowCheck *rc)
{
	/* everybody sees a frozen version, and its xid may be of an earlier age */
	TransactionId newest = (rc->base.t_infomask & IP_FROZEN) ?
		InvalidTransactionId : rc->base.t_xid;

	if (rc->locked && TransactionIdIsValid(rc->lockers.xid))
	{
		if (rc->lockers.multi)
		{
			newest = ReadNextTransactionId();
			TransactionIdRetreat(newest);
		}
		else if (TransactionIdFollows(rc->lockers.xid, newest))
			newest = rc->lockers.xid;
	}
	return newest;
}

/*-------------------------------------------------------------------------
 *
 * restore.c
 *	  Rollback of one row, on its page.
 *
 * An aborted change stays on its page until somebody needs the row changed,
 * prunes the page, or the undo worker comes by.  Readers do without: they
 * follow the undo.  Nothing here depends on which backend does it or when, or on
 * whether the transaction rolled back, was killed, or died with the server.
 *
 * The room is there: an item's length is never cut below what the versions
 * of a transaction in progress may need (tuple.h).
 *
 * Lockers of the row that are still alive (FOR KEY SHARE beside the aborted
 * update) keep their lock on the version that comes back.
 *
 * A bare delete comes with the others of its page: a statement that deleted
 * many rows is taken back with one record a page.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/parallel.h"
#include "page/delta.h"
#include "page/page.h"
#include "page/tuple.h"
#include "row/change.h"
#include "row/lock_trace.h"
#include "row/restore.h"
#include "row/row_lock.h"
#include "row/rowcheck.h"
#include "row/visibility.h"
#include "undo/append.h"
#include "undo/record.h"
#include "undo/undo.h"
#include "wal/log.h"
#include "wal/log_vacuum.h"

/* an insert that did not happen */
static void
kill_aborted_insert(Relation rel, Buffer buffer, OffsetNumber off)
{
	Page		page = RowPage(rel, buffer);
	PageItems	items;

	/* compacting finds a corrupted page, but that is too late then */
	inplace_check_items(rel, page, BufferGetBlockNumber(buffer), &items);

	START_CRIT_SECTION();
	inplace_page_apply_prune(page, &off, 1, NULL, 0, NULL, 0, &items);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(rel))
		inplace_log_prune(rel, buffer, InvalidTransactionId, &off, 1,
						  NULL, 0, NULL, 0);
	END_CRIT_SECTION();
}

/*
 * Can this process write undo?  In parallel mode nobody gets an xid any more:
 * not VACUUM with parallel workers, nor these, nor a subtransaction.  The undo
 * worker will come by.  It cannot while an index is built, but then there is
 * an xid, which the parallel workers have too; for their extents see space.c.
 * A caller that must restore the row has reserved undo (room).  Others leave the row as
 * it is if there is no room besides that of the backend that has the page locked (own).
 */
static UndoRoom *
room_to_write(Relation rel, UndoRoom *room, UndoRoom *own)
{
	if (!TransactionIdIsValid(GetCurrentTransactionIdIfAny()))
		return IsInParallelMode() ? NULL : room;
	if (room != NULL)
		return room;
	*own = UndoRoomFor(1, UNDO_LOCK_RECORD_SIZE);
	return UndoHasRoomBeside(rel, own) ? own : NULL;
}

/*
 * A transaction makes at most INPLACE_MAX_TAG versions of a row, and restoring each may
 * take the record of a lock.
 */
UndoRoom
InplaceRestoreRoom(void)
{
	StaticAssertStmt(UNDO_RESTORE_PAGES * (UNDO_MAX_RECORD / UNDO_LOCK_RECORD_SIZE) >=
					 INPLACE_MAX_TAG, "a row could not be restored");
	StaticAssertStmt(UNDO_RESTORE_PAGES > UNDO_SPARE_PAGES,
					 "optional work would find no room");
	return UndoRoomForRestore(INPLACE_MAX_TAG,
							  INPLACE_MAX_TAG * UNDO_LOCK_RECORD_SIZE);
}

/*
 * Is the row's newest version aborted, with a lock that may have to be written to
 * undo, and no room reserved for that?  (Only the newest version has a lock.)
 */
bool
InplaceRestoreNeedsUndo(Relation rel, Buffer buffer, OffsetNumber off,
						UndoRoom *room)
{
	InplaceTupleHeader tup;

	*room = InplaceRestoreRoom();
	if (!ItemIdIsNormal(PageGetItemId(BufferGetPage(buffer), off)))
		return false;
	tup = PageGetTupleAt(BufferGetPage(buffer), off);
	return HdrIsLocked(tup) &&
		inplace_xid_status(rel, tup, buffer) == XID_ABORTED &&
		!UndoHasRoom(rel, room) &&
		(TransactionIdIsValid(GetCurrentTransactionIdIfAny()) ||
		 !IsInParallelMode());
}

/*
 * Make the row as it was before the change that the undo record describes.
 * False if that takes undo, for a lock that stays, and this is not the process
 * to write it.
 */
static bool
restore_version(Relation rel, Buffer buffer, OffsetNumber off,
				const RowCheck *rc, const UndoRecord *rec, UndoRoom *room)
{
	BlockNumber blk = BufferGetBlockNumber(buffer);
	Page		page = RowPage(rel, buffer);
	ItemId		lp = PageGetItemId(page, off);
	InplaceTupleHeader tup = (InplaceTupleHeader) PageGetItem(page, lp);
	Size		tuplen = inplace_tuple_len(tup, ItemIdGetLength(lp));
	InplaceTupleHeader old = palloc(BLCKSZ);
	Size		oldlen = tuplen;
	RowCheck	oldrc = *rc;
	char		undo[UNDO_LOCK_RECORD_SIZE];
	Size		undo_len = 0;
	UndoInsert	ui;
	TransactionId locker;
	bool		multi;
	LockTupleMode mode;
	LockTrace	trace;

	if (rec->hdr.ur_type == UNDO_UPDATE)
	{
		int			len;

		len = delta_apply(rec->payload, rec->payload_len,
						  (char *) tup + SizeOfInplaceTupleHeader,
						  tuplen - SizeOfInplaceTupleHeader,
						  (char *) old + SizeOfInplaceTupleHeader,
						  ItemIdGetLength(lp) - SizeOfInplaceTupleHeader);
		if (len < 0)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("undo does not fit row (%u,%u) of relation \"%s\"",
							blk, off, RelationGetRelationName(rel))));
		oldlen = len + SizeOfInplaceTupleHeader;
	}
	else
		memcpy(old, tup, tuplen);
	*old = rec->old;

	/* (what a change frees is kept for its undoing; see page/page.c) */
	if (!inplace_page_can_grow(page, off, old, oldlen))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("no room to restore row (%u,%u) of relation \"%s\"",
						blk, off, RelationGetRelationName(rel))));

	if (inplace_compute_lockers(rc, InvalidTransactionId, LockTupleKeyShare,
								&locker, &multi, &mode))
	{
		inplace_trace_restore(rc, &rc->base, &trace);
		oldrc.base = rec->old;
		oldrc.status = inplace_copied_xid_status(rel, &oldrc.base, blk, off);
		if (oldrc.status != XID_ABORTED &&
			inplace_nothing_older(rel, &oldrc.base, oldrc.status))
			inplace_header_lock_direct(old, locker, multi, mode, trace.undone);
		else
		{
			UndoRoom	own;

			room = room_to_write(rel, room, &own);
			if (room == NULL)
			{
				pfree(old);
				return false;
			}
			(void) GetCurrentTransactionId();	/* stands in the record */
			undo_len = inplace_build_lock_undo(undo, rel, blk, off, &rec->old,
											   locker, &trace);
			UndoPrepareRestore(rel, room, undo_len,
							   inplace_undo_newest(&oldrc),
							   oldrc.status == XID_ABORTED, &ui);
			inplace_header_lock_indirect(old, ui.ptr, multi, mode);
		}
	}

	START_CRIT_SECTION();
	if (!inplace_page_replace(page, off, old, oldlen, true))
		elog(PANIC, "failed to restore row (%u,%u) of relation \"%s\"",
			 blk, off, RelationGetRelationName(rel));
	MarkBufferDirty(buffer);
	if (undo_len > 0)
		UndoAppend(&ui, undo, undo_len);
	inplace_log_restore(rel, buffer, off, old, oldlen,
						undo_len > 0 ? &ui : NULL, undo, undo_len);
	END_CRIT_SECTION();

	if (undo_len > 0)
		UndoRelease(&ui);
	pfree(old);
	return true;
}

/*
 * Take back all aborted bare deletes of a page, in one record, though the caller came
 * for one of them.  Their old headers are in the new ones; they have no locks, and only
 * one version is below.
 */
static void
restore_bare_deletes(Relation rel, Buffer buffer)
{
	Page		page = RowPage(rel, buffer);
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	OffsetNumber offs[InplaceMaxTuplesPerPage];
	int			n = 0;

	inplace_check_items(rel, page, BufferGetBlockNumber(buffer), NULL);
	for (OffsetNumber off = FirstOffsetNumber;
		 off <= maxoff && n < InplaceMaxTuplesPerPage; off++)
	{
		InplaceTupleHeader tup;

		if (!ItemIdIsNormal(PageGetItemId(page, off)))
			continue;
		tup = PageGetTupleAt(page, off);
		if (HdrIsBareDelete(tup) &&
			inplace_xid_status(rel, tup, buffer) == XID_ABORTED)
			offs[n++] = off;
	}

	START_CRIT_SECTION();
	inplace_page_undo_deletes(page, offs, n);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(rel))
		inplace_log_undo_deletes(rel, buffer, offs, n);
	END_CRIT_SECTION();
}

/*
 * The record of a lock on an aborted version, which leads to the version before, is kept
 * until this has been restored.  Without it the row would look like an insert that did not
 * happen.
 */
static void
check_not_lost(Relation rel, InplaceTupleHeader tup, BlockNumber blk,
			   OffsetNumber off)
{
	if (HdrIsLocked(tup))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("the lock of row (%u,%u) of relation \"%s\", whose last change was rolled back, leads to undo record %u/%u, which does not exist",
						blk, off, RelationGetRelationName(rel),
						UndoPtrBlock(HdrUndoPtr(tup)),
						UndoPtrOffset(HdrUndoPtr(tup)))));
}

bool
InplaceRestoreRow(Relation rel, Buffer buffer, OffsetNumber off, UndoRoom *room)
{
	BlockNumber blk = BufferGetBlockNumber(buffer);
	Page		page = RowPage(rel, buffer);
	bool		changed = false;
	UndoRecord *rec = palloc(sizeof(UndoRecord));
	UndoWalkGuard guard = {0};

	for (;;)
	{
		InplaceTupleHeader tup;
		RowCheck	rc;

		if (!ItemIdIsNormal(PageGetItemId(page, off)))
			break;
		tup = PageGetTupleAt(page, off);
		if (inplace_xid_status(rel, tup, buffer) != XID_ABORTED)
			break;
		if (HdrIsBareDelete(tup))
		{
			restore_bare_deletes(rel, buffer);
			changed = true;
			break;
		}
		memset(&rc, 0, sizeof(rc));
		rc.locked = inplace_get_lockers(rel, tup, blk, off, &rc.lockers);
		rc.base = rc.lockers.base;
		if (!rc.locked)
			check_not_lost(rel, tup, blk, off);

		if (rc.base.t_infomask & (IP_FRESH | IP_SPECULATIVE))
		{
			kill_aborted_insert(rel, buffer, off);
			changed = true;
			break;
		}
		UndoFetch(rel, HdrUndoPtr(&rc.base), blk, off, &rc.base, false, rec);
		UndoWalkCheck(&guard, rel, HdrUndoPtr(&rc.base), blk, off);
		if (!restore_version(rel, buffer, off, &rc, rec, room))
		{
			/* a caller that must have the row restored would try for ever */
			if (room != NULL)
				elog(ERROR, "could not restore row (%u,%u) of relation \"%s\"",
					 blk, off, RelationGetRelationName(rel));
			break;
		}
		changed = true;
	}

	pfree(rec);
	return changed;
}

bool
InplaceRestoreTid(Relation rel, BlockNumber block, OffsetNumber off)
{
	Buffer		buffer;
	Page		page;
	UndoRoom	room;
	bool		changed = false;

	buffer = ReadBuffer(rel, block);
	for (;;)
	{
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		page = RowPage(rel, buffer);
		if (PageIsNew(page) || off > PageGetMaxOffsetNumber(page))
			break;
		inplace_check_items(rel, page, block, NULL);
		/* a change may be rolled back at any time, and then it needs undo */
		if (!ItemIdIsNormal(PageGetItemId(page, off)) ||
			inplace_xid_status(rel, PageGetTupleAt(page, off), buffer) != XID_ABORTED)
			break;
		if (!InplaceRestoreNeedsUndo(rel, buffer, off, &room))
		{
			changed = InplaceRestoreRow(rel, buffer, off, &room);
			break;
		}
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		(void) UndoReserveRestore(rel, &room, false);
	}
	UnlockReleaseBuffer(buffer);
	return changed;
}

/*
 * Is there a row whose newest version is aborted, from this one on?
 */
static bool
next_aborted(Relation rel, Buffer buffer, OffsetNumber *off)
{
	Page		page = RowPage(rel, buffer);
	OffsetNumber maxoff = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);

	for (; *off <= maxoff; (*off)++)
	{
		bool		all_visible;

		if (ItemIdIsNormal(PageGetItemId(page, *off)) &&
			inplace_row_state(rel, PageGetTupleAt(page, *off), buffer,
							  InvalidTransactionId, NULL,
							  &all_visible) == ROW_ABORTED_CHANGE)
			return true;
	}
	return false;
}

void
inplace_restore_page(Relation rel, Buffer buffer, bool must)
{
	OffsetNumber off = FirstOffsetNumber;
	UndoRoom	room;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	while (next_aborted(rel, buffer, &off))
	{
		if (must && InplaceRestoreNeedsUndo(rel, buffer, off, &room))
		{
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
			(void) UndoReserveRestore(rel, &room, false);
			LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
			continue;
		}
		(void) InplaceRestoreRow(rel, buffer, off, must ? &room : NULL);
		off++;
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
}

/*-------------------------------------------------------------------------
 *
 * delete.c
 *	  Deleting rows.
 *
 * The row stays on its page, its header says DELETED; the undo record has
 * the header as it was, or, as a rule, the new header itself has what there
 * is to say about it (a bare delete, tuple.h).  Pruning takes the row away
 * once everybody sees the delete.
 *
 * The undo worker does not hear of bare deletes.  If they are rolled back,
 * scans that meet them bring the rows back.  So do VACUUM, pruning, and a backend
 * that is about to change the row.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/visibilitymap.h"
#include "freeze/freeze_stats.h"
#include "modify/modify.h"
#include "modify/room.h"
#include "modify/toast.h"
#include "page/page.h"
#include "page/recent.h"
#include "page/tuple.h"
#include "pgstat.h"
#include "row/change.h"
#include "row/lock_queue.h"
#include "row/row_lock.h"
#include "row/rowcheck.h"
#include "row/target.h"
#include "row/visibility.h"
#include "storage/predicate.h"
#include "undo/append.h"
#include "undo/record.h"
#include "undo/undo.h"
#include "utils/relcache.h"
#include "utils/snapmgr.h"
#include "wal/log_delete.h"
#include "wal/logical.h"

/*
 * What a delete has found out before the row is changed.
 */
typedef struct DeletePreparation
{
	Bitmapset  *id_attrs;		/* columns of the replica identity */
	InplaceTupleHeader gone;	/* a copy of the row, if need be */
	Size		gone_len;
	LogicalChange lc;			/* for logical decoding, */
	bool		logical;		/* if need be */
	bool		cut;			/* the way to older versions */
	bool		conflict;		/* ... standbys must be told */
	bool		bare;			/* without undo, */
	UndoRoom	room;			/* or with room for this */
} DeletePreparation;

/*
 * The change itself, the page locked.  cut: nobody needs an older version;
 * conflict: but standbys must be told so.
 */
static void
delete_bare(Relation rel, Buffer buffer, Buffer vmbuffer, OffsetNumber off,
			TransactionId xid, CommandId cid,
			const InplaceTupleHeaderData *base, bool changingPart,
			bool conflict, LogicalChange *lc, FreezeUnset *unset)
{
	Page		page = RowPage(rel, buffer);
	InplaceTupleHeader tup = PageGetTupleAt(page, off);
	bool		clear;

	START_CRIT_SECTION();
	clear = FreezeClearVisible(rel, buffer, vmbuffer,
							   VISIBILITYMAP_VALID_BITS, unset);
	HdrSetBareDelete(tup, xid, cid, changingPart);
	PageSetPrunable(page, xid);
	MarkBufferDirty(buffer);
	inplace_log_bare_delete(rel, buffer, off, xid, cid, base, changingPart,
							conflict, clear, lc);
	END_CRIT_SECTION();
}

static void
delete_with_undo(Relation rel, Buffer buffer, Buffer vmbuffer,
				 OffsetNumber off, TransactionId xid, CommandId cid,
				 const RowCheck *rc, bool changingPart, DeletePreparation *dp,
				 FreezeUnset *unset)
{
	Page		page = BufferGetPage(buffer);
	BlockNumber blk = BufferGetBlockNumber(buffer);
	InplaceTupleHeader tup = PageGetTupleAt(page, off);
	InplaceTupleHeaderData hdr = rc->base;
	char		undo[SizeOfUndoRecordHeader + SizeOfInplaceTupleHeader +
					 UNDO_LOCK_RECORD_SIZE];
	Size		undo_len;
	Size		change_len;
	UndoInsert	ui;
	bool		clear;

	hdr.t_xid = xid;
	hdr.t_infomask &= IP_STALE;
	hdr.t_infomask |= (tup->t_infomask & IP_PADDED) | IP_DELETED | IP_KEYS_UPDATED;
	if (changingPart)
		hdr.t_infomask |= IP_MOVED_PARTITION;

	undo_len = UndoBuild(undo, UNDO_DELETE, xid, cid,
						 LocatorSpc(RelLocator(rel)), LocatorRel(RelLocator(rel)),
						 blk, off, &rc->base, &hdr, dp->cut, NULL, 0);
	change_len = undo_len;
	UndoPrepare(rel, &dp->room, undo_len + (rc->locked ? UNDO_LOCK_RECORD_SIZE : 0),
				inplace_undo_newest(rc), &ui);
	HdrSetUndoPtr(&hdr, ui.ptr);
	if (rc->locked)
		undo_len += inplace_keep_lockers(rel, blk, off, rc, &hdr,
										 ui.ptr + undo_len, undo + undo_len);

	START_CRIT_SECTION();
	clear = FreezeClearVisible(rel, buffer, vmbuffer,
							   VISIBILITYMAP_VALID_BITS, unset);
	memcpy(tup, &hdr, SizeOfInplaceTupleHeader);
	PageSetPrunable(page, xid);
	MarkBufferDirty(buffer);
	UndoAppend(&ui, undo, undo_len);
	inplace_log_delete(rel, buffer, &hdr, &rc->base, dp->conflict, clear, &ui, undo,
					   change_len, undo_len, dp->logical ? &dp->lc : NULL);
	END_CRIT_SECTION();

	UndoRelease(&ui);
}

static void
forget_preparation(DeletePreparation *dp)
{
	if (dp->gone)
		pfree(dp->gone);
	if (dp->logical)
		pfree(dp->lc.tuples);
	dp->gone = NULL;
	dp->logical = false;
}

/*
 * With the row's page locked, and the row ours to delete: is there all that the
 * delete takes?  If not, the page is unlocked for it, and the row has to be looked at
 * again: undo is reserved, and for logical decoding values in the TOAST table are
 * fetched, of a copy of the row.  It counts as long as the row is the same.
 */
static bool
delete_prepared(DeletePreparation *dp, Relation rel, Buffer buffer,
				ItemPointer tid, RowCheck *rc, CommandId cid)
{
	Page		page = BufferGetPage(buffer);
	OffsetNumber off = ItemPointerGetOffsetNumber(tid);
	ItemId		lp = PageGetItemId(page, off);
	InplaceTupleHeader tup = PageGetTupleAt(page, off);

	if (dp->gone && (dp->gone_len != ItemIdGetLength(lp) ||
					 !same_header(dp->gone, tup)))
		forget_preparation(dp);

	if (!dp->gone &&
		((tup->t_natts & IP_HASEXTERNAL) || RowsAreDecoded(rel)))
	{
		bool		fetch = (tup->t_natts & IP_HASEXTERNAL) != 0 &&
			RowsAreDecoded(rel);

		dp->gone_len = ItemIdGetLength(lp);
		dp->gone = palloc(dp->gone_len);
		memcpy(dp->gone, tup, dp->gone_len);
		if (fetch)
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		dp->logical = inplace_logical_prepare(&dp->lc, rel, NULL, dp->gone, tid,
											  dp->id_attrs, true);
		if (fetch)
			return false;
	}

	dp->cut = inplace_cut_older(rel, &rc->base, rc->status,
								!rc->locked && RelationNeedsWAL(rel),
								&dp->conflict);
	dp->bare = dp->cut && !rc->locked && cid <= BARE_MAX_CID;
	dp->room = UndoRoomFor(1, SizeOfUndoRecordHeader + SizeOfInplaceTupleHeader +
						   (rc->locked ? UNDO_LOCK_RECORD_SIZE : 0));
	if (dp->bare || UndoHasRoom(rel, &dp->room))
		return true;
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	UndoReserve(rel, &dp->room);
	return false;
}

TM_Result
inplace_tuple_delete(Relation rel, ItemPointer tid, CommandId cid,
					 Snapshot snapshot, Snapshot crosscheck, bool wait,
					 TM_FailureData *tmfd, bool changingPart)
{
	RowTarget	target;
	RowCheck	rc;
	TransactionId xid;
	TM_Result	result;
	Buffer		buffer;
	bool		borrowed;		/* the pin on it */
	Buffer		vmbuffer = InvalidBuffer;
	BlockNumber blk;
	OffsetNumber off;
	RowQueue	queue = {0};
	ItemPointerData read_version;
	FreezeUnset unset;
	DeletePreparation dp = {0};

	InplaceRequirePreload();
	if (IsInParallelMode())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot delete tuples during a parallel operation")));

	inplace_target_init(&target, tid, snapshot);
	blk = ItemPointerGetBlockNumber(&target.tid);
	off = ItemPointerGetOffsetNumber(&target.tid);
	tmfd->traversed = false;
	xid = GetCurrentTransactionId();
	if (RowsAreDecoded(rel))
		dp.id_attrs = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_IDENTITY_KEY);

	buffer = inplace_borrow_row_page(rel, blk, &borrowed);
	for (;;)
	{
		if (!inplace_lock_row_page(rel, buffer, off, &vmbuffer))
		{
			result = inplace_target_gone(&target, tmfd);
			break;
		}
		result = inplace_row_check(rel, buffer, &target, cid, LockTupleExclusive,
								   &rc, tmfd);
		if (result == TM_Ok)
			result = inplace_crosscheck(rel, buffer, &target, crosscheck, tmfd);
		if (result == TM_Ok)
		{
			if (delete_prepared(&dp, rel, buffer, &target.tid, &rc, cid))
				break;
			continue;
		}
		if (result != TM_BeingModified || (!wait && !rc.retry))
			break;
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		if (rc.retry)
			continue;
		inplace_row_wait(rel, &target, &rc, LockTupleExclusive, LockWaitBlock,
						 XLTW_Delete, &queue);
	}

	if (result != TM_Ok)
	{
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		inplace_return_row_page(buffer, borrowed);
		if (BufferIsValid(vmbuffer))
			ReleaseBuffer(vmbuffer);
		inplace_row_wait_done(rel, &queue);
		forget_preparation(&dp);
		bms_free(dp.id_attrs);
		if (result == TM_Invisible)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("attempted to delete invisible tuple")));
		return result;
	}

	TidSetVersion(&read_version, blk, off, rc.base.t_tag);
	CheckForSerializableConflictIn(rel, &read_version, blk);

	if (dp.bare)
		delete_bare(rel, buffer, vmbuffer, off, xid, cid, &rc.base, changingPart,
					dp.conflict, dp.logical ? &dp.lc : NULL, &unset);
	else
		delete_with_undo(rel, buffer, vmbuffer, off, xid, cid, &rc, changingPart,
						 &dp, &unset);
	UnlockAfterDelete(rel, buffer, off);
	if (rc.memory.own)
		inplace_drop_memory_lock(rel, blk, off);
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);
	FreezeNoteUnset(rel, &unset, false);

	if (dp.gone && (dp.gone->t_natts & IP_HASEXTERNAL))
		inplace_toast_delete(rel, dp.gone, &target.tid, false);
	forget_preparation(&dp);
	bms_free(dp.id_attrs);
	inplace_return_row_page(buffer, borrowed);
	inplace_row_wait_done(rel, &queue);
	pgstat_count_heap_delete(rel);
	return TM_Ok;
}

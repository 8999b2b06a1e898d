/*-------------------------------------------------------------------------
 *
 * evict.c
 *	  Deleted rows that give up their space to others.
 *
 * A deleted row stays on its page, as it was, for snapshots that do not see the
 * delete.  When somebody needs room there, its values go to undo, and it shrinks to
 * its header, whose undo pointer leads to them:
 *
 *	  page: header of the delete, values  ->  page: header of the delete
 *	  undo: the record of the delete          undo: the same, with the values
 *
 * Nothing else is changed.  The record is the delete's, or the move's, made anew: of the
 * same transaction and command, with the same old header, so that the chain goes on where
 * it went, and is not longer by anything.  Whoever does not see the delete goes back along
 * it as ever, and finds the values there (walk.c).  Whoever does see it never looked at
 * them.  Everybody else who reads values off a page must ask HdrIsEvicted() first; a
 * number of attributes that no table has makes that an assertion, or an error.
 *
 * Which rows
 *	  Those whose deleter has committed: a delete in progress may be rolled back, and
 *	  then the row needs its place.  Of a row that was moved to another place the link is
 *	  kept, in the record.  None with a lock on it: an update that moves a row without a
 *	  change of its keys may leave one.  None of a temporary table, whose undo goes at the
 *	  end of each transaction.
 *
 * Why the record is there as long as it is needed
 *	  It is needed as long as some snapshot does not see the deleter, whose xid is in the
 *	  record and counts for the extent (UndoPrepare's newest_xid).  So an extent is
 *	  not given back before all see it, or before no chain leads there (release.c).  It does
 *	  not matter who has written the record, nor whether that transaction commits: nothing
 *	  is rolled back of it, for the xid in the record is that of the deleter.  An old header
 *	  that leads further leads to where a record of the chain has led.
 *	  Images have extents of their own (undo/append.c).  They are wanted until the snapshot
 *	  ends, and changes of other rows beside them would have to stay for as long.
 *
 * What it is worth
 *	  A row costs its values, and some 40 bytes, in undo.  So it is done only when somebody
 *	  wants the room, an insert or an update that does not find any on a page, and only if
 *	  much is won at once.  Readers and VACUUM do not evict: VACUUM tells the free space map
 *	  what there is to be had (modify/room.c).  And only while undo is far from its limits,
 *	  so that changes are not refused for it (undo/limit.c).
 *
 * Lock order: the data page, exclusively, then undo pages, one at a time.  Undo is
 * reserved before (no_lock.h).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/parallel.h"
#include "page/page.h"
#include "page/tuple.h"
#include "row/evict.h"
#include "row/visibility.h"
#include "undo/space.h"
#include "undo/undo.h"
#include "undo/undorel.h"
#include "utils/guc.h"
#include "wal/log_evict.h"

bool		inplace_evict_deleted_rows = true;

/*
 * A row stays as it is if its values are less than what undo takes besides: so eviction
 * never takes more than two bytes of undo for one of the page.
 */
#define EVICT_MIN_VALUES	(SizeOfUndoRecordHeader + SizeOfInplaceTupleHeader)

/*
 * So many records of undo are read with a page locked.  Their rows have more than
 * EVICT_WORTH bytes; what is left is for the next who comes.
 */
#define EVICT_MAX_READS		100

bool
inplace_may_evict(Relation rel)
{
	return inplace_evict_deleted_rows && !RecoveryInProgress() &&
		UndoKindOf(rel) != UNDO_TEMP &&
		(RelationNeedsWAL(rel) || !RelationIsPermanent(rel));
}

/*
 * Undo takes an xid.  In parallel mode nobody gets one any more, and when xids run short
 * none is taken for this.
 */
bool
inplace_can_evict(Relation rel)
{
	return inplace_may_evict(rel) &&
		(TransactionIdIsValid(GetCurrentTransactionIdIfAny()) ||
		 (!IsInParallelMode() && !InplaceXidsRunShort()));
}

static bool
evicts_always(void)
{
#ifdef USE_ASSERT_CHECKING
	const char *always = GetConfigOption("inplace_test.evict_always", true, false);

	return always != NULL && strcmp(always, "on") == 0;
#else
	return false;
#endif
}

/*
 * Of a page that has not been checked, too: first of all the row has to be on it.
 */
static inline bool
has_values_to_evict(ItemId lp, InplaceTupleHeader tup)
{
	return ItemIdGetLength(lp) >= SizeOfInplaceTupleHeader + EVICT_MIN_VALUES &&
		ItemIdGetOffset(lp) + ItemIdGetLength(lp) <= BLCKSZ &&
		(tup->t_infomask & (IP_DELETED | IP_FROZEN)) == IP_DELETED &&
		!HdrIsEvicted(tup);
}

static inline bool
may_be_evicted(Relation rel, Buffer buffer, ItemId lp, InplaceTupleHeader tup)
{
	return has_values_to_evict(lp, tup) && HdrHasUndo(tup) && !HdrIsLocked(tup) &&
		inplace_xid_status(rel, tup, buffer) == XID_COMMITTED;
}

Size
inplace_evictable_bytes(Page page)
{
	/* the page may be damaged: nothing past its end is looked at */
	OffsetNumber maxoff = Min(PageGetMaxOffsetNumber(page), InplaceMaxTuplesPerPage);
	Size		sum = 0;

	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);

		if (ItemIdIsNormal(lp) &&
			has_values_to_evict(lp, (InplaceTupleHeader) PageGetItem(page, lp)))
			sum += ItemIdGetLength(lp) - SizeOfInplaceTupleHeader;
	}
	return sum;
}

Size
inplace_evictable_now(Relation rel, Buffer buffer, TransactionId deleted_before,
					  TransactionId *newest)
{
	Page		page = RowPage(rel, buffer);
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	Size		sum = 0;

	*newest = InvalidTransactionId;
	if (inplace_evictable_bytes(page) < EVICT_WORTH ||
		maxoff >= InplaceMaxTuplesPerPage)
		return 0;
	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		InplaceTupleHeader tup;

		if (!ItemIdIsNormal(lp))
			continue;
		tup = (InplaceTupleHeader) PageGetItem(page, lp);
		if (!may_be_evicted(rel, buffer, lp, tup) ||
			!TransactionIdPrecedes(HdrXid(tup), deleted_before))
			continue;
		sum += ItemIdGetLength(lp) - SizeOfInplaceTupleHeader;
		if (!TransactionIdIsValid(*newest) || TransactionIdFollows(HdrXid(tup), *newest))
			*newest = HdrXid(tup);
	}
	return sum >= EVICT_WORTH ? sum : 0;
}

/*
 * What the delete's record says, which that of the eviction takes the place of.  False if
 * it is not there: then the row is one that nobody needs.  False, too, if enough records have
 * been read.
 */
static bool
read_delete(Relation rel, BlockNumber blk, InplaceTupleHeader tup, EvictedRow *row,
			UndoRecord *rec, int *reads_left)
{
	row->bare = HdrIsBareDelete(tup);
	if (row->bare)
	{
		UndoBareDelete(tup, &row->cid, &row->old);
		return true;
	}
	if (--*reads_left < 0)
		return false;

	/* the page is locked, and the record may have to be read from disk */
	if (unlikely(InterruptPending))
		InplaceEndIfAsked();
	if (!UndoFetch(rel, HdrUndoPtr(tup), blk, row->off, tup, true, rec) ||
		rec->hdr.ur_type != ((tup->t_infomask & IP_MOVED) ? UNDO_MOVE : UNDO_DELETE))
		return false;
	row->cid = rec->hdr.ur_cid;
	row->old = rec->old;
	if (tup->t_infomask & IP_MOVED)
		memcpy(row->link, rec->payload, SizeOfUndoMoveLink);
	return true;
}

bool
inplace_plan_eviction(Relation rel, Buffer buffer, OffsetNumber off_to_keep,
					  Size needed, EvictPlan *plan)
{
	Page		page = RowPage(rel, buffer);
	BlockNumber blk = BufferGetBlockNumber(buffer);
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	UndoRecord *rec;
	int			pages = 1;
	int			reads_left = EVICT_MAX_READS;
	Size		on_page = 0;
	Size		sum = 0;
	Size		worth = unlikely(evicts_always()) ? 1 : Max(needed, EVICT_WORTH);

	plan->n = 0;
	plan->gain = 0;
	plan->newest_xid = InvalidTransactionId;
	if (PageIsNew(page) || inplace_evictable_bytes(page) < worth)
		return false;

	/* compacting finds a corrupted page, but that is too late then */
	inplace_check_items(rel, page, blk, NULL);
	rec = palloc(sizeof(UndoRecord));
	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		InplaceTupleHeader tup;
		EvictedRow *row = &plan->rows[plan->n];

		if (!ItemIdIsNormal(lp) || off == off_to_keep)
			continue;
		tup = (InplaceTupleHeader) PageGetItem(page, lp);
		if (!may_be_evicted(rel, buffer, lp, tup))
			continue;
		row->off = off;
		row->undo_len = UndoEvictedSize(tup, RowLength(tup, lp));
		if (row->undo_len > UNDO_MAX_RECORD ||
			!read_delete(rel, blk, tup, row, rec, &reads_left))
			continue;

		/* on pages of their own, the rest is for another time */
		if (on_page + row->undo_len > UNDO_MAX_RECORD)
		{
			if (++pages > UNDO_EVICT_PAGES)
				break;
			on_page = 0;
		}
		on_page += row->undo_len;
		sum += row->undo_len;
		plan->gain += ItemIdGetLength(lp) - SizeOfInplaceTupleHeader;
		if (!TransactionIdIsValid(plan->newest_xid) ||
			TransactionIdFollows(HdrXid(tup), plan->newest_xid))
			plan->newest_xid = HdrXid(tup);
		plan->n++;
	}
	pfree(rec);
	plan->room = UndoRoomForEviction(sum);
	return plan->n > 0 && plan->gain >= worth;
}

bool
inplace_reserve_eviction(Relation rel, const UndoRoom *room)
{
	if (!inplace_can_evict(rel) || !UndoReserveToSpare(rel, room))
		return false;
	UndoNoteEvictions(UndoKindOf(rel));
	return true;
}

bool
inplace_eviction_has_room(Relation rel, EvictPlan *plan)
{
	return inplace_can_evict(rel) && UndoHasRoomToSpare(rel, &plan->room) &&
		UndoNotesEvictions(UndoKindOf(rel));
}

/*
 * Evict n of the rows, whose records go to one page of undo.
 */
static void
evict_rows(Relation rel, Buffer buffer, EvictPlan *plan, const EvictedRow *rows, int n)
{
	static char undo[UNDO_MAX_RECORD];
	Page		page = RowPage(rel, buffer);
	BlockNumber blk = BufferGetBlockNumber(buffer);
	Size		undo_len = 0;
	EvictRecord record;
	UndoInsert	ui;

	for (int i = 0; i < n; i++)
	{
		ItemId		lp = PageGetItemId(page, rows[i].off);
		InplaceTupleHeader tup = (InplaceTupleHeader) PageGetItem(page, lp);

		undo_len += UndoBuildEvicted(undo + undo_len, RelLocator(rel), blk, &rows[i],
									 tup, RowLength(tup, lp));
	}
	UndoPrepare(rel, &plan->room, undo_len, plan->newest_xid, &ui);
	record.rel = rel;
	record.buffer = buffer;
	record.rows = rows;
	record.n = n;
	record.ui = &ui;
	record.undo = undo;
	record.undo_len = undo_len;

	/* before it is decided how to log this, as for an update */
	MarkBufferDirty(buffer);
	inplace_prepare_evict_record(&record);

	START_CRIT_SECTION();
	UndoAppend(&ui, undo, undo_len);
	if (!record.from_page)
		inplace_page_apply_evict(page, rows, n, ui.ptr);
	inplace_log_evict(&record);
	if (record.from_page)
		inplace_page_apply_evict(page, rows, n, ui.ptr);
	END_CRIT_SECTION();

	UndoRelease(&ui);
}

void
inplace_evict(Relation rel, Buffer buffer, EvictPlan *plan)
{
	int			done = 0;

	while (done < plan->n)
	{
		Size		limit = UndoSpaceOnImagePage(rel);
		Size		len = 0;
		int			n = 0;

		/* what is left of a page of undo is used up first */
		if (limit < plan->rows[done].undo_len)
			limit = UNDO_MAX_RECORD;
		while (done + n < plan->n && len + plan->rows[done + n].undo_len <= limit)
			len += plan->rows[done + n++].undo_len;
		evict_rows(rel, buffer, plan, &plan->rows[done], n);
		done += n;
	}
}

void
inplace_evict_in_test(Relation rel, Buffer buffer)
{
	static EvictPlan plan;		/* large, and never in use twice */
	UndoRoom	room = UndoRoomForEviction(BLCKSZ);

	if (likely(!evicts_always()) || InterruptHoldoffCount > 0 ||
		!inplace_can_evict(rel) ||
		!TransactionIdIsValid(((PageHeader) BufferGetPage(buffer))->pd_prune_xid) ||
		!inplace_reserve_eviction(rel, &room))
		return;
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (inplace_plan_eviction(rel, buffer, InvalidOffsetNumber, 1, &plan) &&
		inplace_eviction_has_room(rel, &plan))
		inplace_evict(rel, buffer, &plan);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
}

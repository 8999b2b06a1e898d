/*-------------------------------------------------------------------------
 *
 * update.c
 *	  Updates, in place where that can be.
 *
 * An update is in place if
 *	 - no column of an index that cannot take it has changed (summarizing
 *	   indexes can, from PostgreSQL 16 on, and inplace_btree ones, which get
 *	   a new entry each if their key changed: index/index.h),
 *	 - the new row fits on the page, after a prune if need be,
 *	 - the transaction would not give two versions of the row the same tag,
 *	 - what changed fits an undo page.
 * Otherwise the row is moved: its header says DELETED and MOVED, the undo
 * record has the new TID, and the new row is FRESH.
 *
 * The change itself is in update_in_place.c and update_move.c, what is special
 * about rows with values in the TOAST table in update_toast.c.
 *
 * Lock order: data pages (by block number, through RelationGetBufferForTuple)
 * -> undo page -> visibility map pages (pinned before).
 *
 * The page is let go of while values are compressed, while they are stored, with the row
 * locked before, as on heap, and while a page for a moved row is looked for.  Nothing marks
 * the row then; instead its header is compared afterwards, and if somebody else was there
 * all is looked at again.  Values are compressed in vain once at most: from then on the
 * row is locked before, or those who lock it all the time would keep an update away.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/heaptoast.h"
#include "index/late_open.h"
#include "index/other_method.h"
#include "index/taking.h"
#include "modify/modify.h"
#include "modify/returning.h"
#include "modify/room.h"
#include "modify/toast.h"
#include "modify/update.h"
#include "page/compare.h"
#include "page/delta.h"
#include "page/page.h"
#include "page/recent.h"
#include "page/slot.h"
#include "page/tuple.h"
#include "pgstat.h"
#include "row/change.h"
#include "row/evict.h"
#include "row/link.h"
#include "row/lock_queue.h"
#include "row/row_lock.h"
#include "row/rowcheck.h"
#include "row/target.h"
#include "row/visibility.h"
#include "scan/fetch.h"
#include "storage/predicate.h"
#include "undo/append.h"
#include "undo/undo.h"
#include "utils/relcache.h"
#include "utils/snapmgr.h"
#include "vacuum/prune.h"
#include "wal/logical.h"

/* of the next update */
static ShiftedBytes next_shifted = {0, 0};

void
inplace_update_is_of_shifted(int len, int shift)
{
	next_shifted.len = len;
	next_shifted.shift = shift;
}

/*
 * Compare the new row with the newest version on the page.
 */
static void
find_changes(UpdateState *us)
{
	InplaceTupleHeader tup = current_tuple(us);
	Size		oldlen = inplace_tuple_len(tup, item_len(us));

	if (!inplace_diff_rows(RelationGetDescr(us->rel), tup, oldlen,
						   us->newtup, us->newlen, &us->diff))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("row (%u,%u) of relation \"%s\" is damaged",
						us->blk, us->off, RelationGetRelationName(us->rel))));
	if (us->shifted.len != 0)
		inplace_diff_moved(tup, oldlen, us->newtup, us->newlen, us->shifted.len,
						   us->shifted.shift, &us->diff);
	us->index_changed = inplace_diff_overlaps(&us->diff, us->index_attrs);
	us->summary_changed = inplace_diff_overlaps(&us->diff, us->summary_attrs);
	us->key_changed = inplace_diff_overlaps(&us->diff, us->key_attrs);
	us->leaves_old_entry = us->taking != NULL &&
		inplace_taking_changed(us->taking, &us->diff);
	if (us->leaves_old_entry && us->keys_verified && us->keys_distinct)
		us->leaves_old_entry = inplace_taking_keys_verified(us->taking);
	if (us->leaves_old_entry && us->taking->payload_changed &&
		(us->newlen > MAX_ROW_WITH_PAYLOAD ||
		 (us->newtup->t_natts & IP_HASEXTERNAL)))
		us->index_changed = true;
}

/*
 * The row's newest version is not the one meant, which is what the update was
 * made from and decides how strong a lock it takes.
 */
static bool
key_of_target_changed(UpdateState *us)
{
	RowVersion *version = RowVersionAlloc();
	RowDiff    *diff = palloc(sizeof(RowDiff));
	bool		changed = us->key_changed;
	bool		found = false;

	if (us->target.kind == TARGET_OURS)
		found = inplace_fetch_target(us->rel, us->buffer, &us->target, version);
	else if (us->target.snapshot != InvalidSnapshot &&
			 us->target.snapshot->snapshot_type == SNAPSHOT_MVCC)
		found = inplace_fetch_version(us->rel, us->buffer, true,
									  RowPage(us->rel, us->buffer), us->blk,
									  us->off, us->target.snapshot, version);
	if (found &&
		inplace_diff_rows(RelationGetDescr(us->rel), version->tuple,
						  version->len, us->newtup, us->newlen, diff))
		changed = inplace_diff_overlaps(diff, us->key_attrs);
	pfree(diff);
	pfree(version);
	return changed;
}

/*
 * Might the next version have the tag of another one that our own transaction has made, or
 * has replaced?  A trigger event tells these apart by their tags.
 */
static bool
tag_would_wrap(UpdateState *us)
{
	InplaceTupleHeaderData hdr = us->rc.base;
	UndoWalkGuard guard = {0};
	UndoRecord	rec;
	ItemPointerData tid;

	if (us->rc.status != XID_CURRENT || likely(!TagEndsHalf(hdr.t_tag)))
		return false;
	TidSet(&tid, us->blk, us->off);
	while (inplace_version_before(us->rel, &tid, &hdr, false, &guard, &rec) &&
		   !(hdr.t_infomask & IP_FROZEN) &&
		   TransactionIdIsCurrentTransactionId(hdr.t_xid))
		if (!TagsInOneHalf(hdr.t_tag, us->rc.base.t_tag))
			return true;
	return false;
}

/* under an index of another method */
static bool
leaves_former_key(UpdateState *us)
{
	return us->leaves_old_entry && !us->index_changed &&
		inplace_taking_wants_old(us->taking);
}

/* if it does: do the indexes take that yet, and are there not too many already? */
static bool
former_key_may_stay(UpdateState *us)
{
	return !leaves_former_key(us) ||
		(inplace_taking_others_known(us->rel, us->taking) &&
		 !inplace_other_leaves_place(&us->rc.base, us->xid, &us->target.tid));
}

/* the record's own part and what keeping the locks takes */
static bool
undo_fits(UpdateState *us)
{
	return SizeOfUndoRecordHeader + SizeOfInplaceTupleHeader +
		us->delta_len + 2 * UNDO_LOCK_RECORD_SIZE <= UNDO_MAX_RECORD;
}

/*
 * The undo that the change takes, and links under it.  Whether the row will be moved is
 * not known yet, and where it goes may take more than what changed.
 */
static UndoRoom
undo_room(UpdateState *us)
{
	Size		len = inplace_update_undo_size(us);

	if (us->rc.status == XID_COMMITTED &&
		!inplace_is_first_version(&us->rc.base, us->rc.status) &&
		UndoLinkIsDue(us->xid, NextTag(us->rc.base.t_tag)))
		return UndoRoomFor(2, UNDO_MAX_RECORD + len);
	return UndoRoomFor(1, len);
}

/*
 * Is that reserved?  If not, the page is unlocked for it.
 */
static bool
undo_reserved(UpdateState *us)
{
	us->delta_len = delta_size(&us->diff.edits, true);
	us->room = undo_room(us);
	if (likely(UndoHasRoom(us->rel, &us->room)))
		return true;
	LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
	UndoReserve(us->rel, &us->room);
	return false;
}

/*
 * Room on the page?  Prunes if there is not.
 */
static bool
fits_on_page(UpdateState *us)
{
	Page		page = RowPage(us->rel, us->buffer);

	if (inplace_page_can_grow(page, us->off, us->newtup, us->newlen))
		return true;
	inplace_page_prune(us->rel, us->buffer, GlobalVisTestFor(us->rel), us->off);
	return inplace_page_can_grow(page, us->off, us->newtup, us->newlen);
}

/*
 * There is no room on the page: make some, if deleted rows have it.  False if the page has
 * been unlocked to reserve undo for that.
 */
static bool
evict_for_row(UpdateState *us)
{
	static EvictPlan plan;		/* large, and never in use twice */
	Size		room = inplace_page_free_space(RowPage(us->rel, us->buffer));
	Size		needed = us->newlen + MAXIMUM_ALIGNOF + sizeof(ItemIdData);

	if (room < needed)
	{
		/* what may not stay has not been looked at yet */
		(void) inplace_page_prune(us->rel, us->buffer, GlobalVisTestFor(us->rel),
								  us->off);
		room = inplace_page_free_space(RowPage(us->rel, us->buffer));
	}
	if (room >= needed || !inplace_can_evict(us->rel) ||
		!inplace_plan_eviction(us->rel, us->buffer, us->off, needed - room, &plan))
		return true;
	if (inplace_eviction_has_room(us->rel, &plan))
		inplace_evict(us->rel, us->buffer, &plan);
	else if (!us->evict_reserved)
	{
		us->evict_reserved = true;
		LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
		(void) inplace_reserve_eviction(us->rel, &plan.room);
		return false;
	}
	return true;
}

static void
finish_slot(UpdateState *us, TupleTableSlot *slot, bool in_place)
{
	Relation	rel = us->rel;
	VersionTag	tag = us->newtup->t_tag;

	if (!in_place)
		ItemPointerSet(&slot->tts_tid, BufferGetBlockNumber(us->newbuf),
					   us->newoff);
	else if (rel->trigdesc && rel->trigdesc->trig_update_after_row)
		TidSetTagged(&slot->tts_tid, us->blk, us->off, tag);
	else
		ItemPointerSet(&slot->tts_tid, us->blk, us->off);
	slot->tts_tableOid = RelationGetRelid(rel);

	if (TTS_IS_INPLACE(slot))
	{
		InplaceTupleTableSlot *is = (InplaceTupleTableSlot *) slot;

		is->has_sysattrs = true;
		is->xmin = us->xid;

		/*
		 * Where the row was locked first (ON CONFLICT DO UPDATE, BEFORE ROW
		 * triggers) heap's new row still has the lock in xmax, and people
		 * tell the two outcomes of an upsert by RETURNING xmax = 0.
		 */
		is->xmax = us->target.kind == TARGET_OURS ? us->xid : InvalidTransactionId;
		is->cmin = us->cid;
		is->cmax = us->cid;
		is->replaced = false;
		is->tag = in_place ? tag : FirstVersionTag;
	}
}

/*
 * Form the new row, as the caller gave it: if it has to be toasted that comes later.
 */
static void
form_row(UpdateState *us, TupleTableSlot *slot)
{
	TupleDesc	desc = RelationGetDescr(us->rel);
	uint16		flags;

	us->newtup = inplace_slot_ready_row(us->rel, slot, &us->newlen);
	if (us->newtup != NULL)
		return;

	slot_getallattrs(slot);
	us->newlen = inplace_compute_size(desc, slot->tts_values, slot->tts_isnull,
									  &flags);
	us->newtup = (InplaceTupleHeader) palloc(us->newlen);
	inplace_fill_tuple(desc, slot->tts_values, slot->tts_isnull, flags,
					   us->newtup, us->newlen);
}

static InplaceTupleHeader
copy_current(UpdateState *us)
{
	InplaceTupleHeader copy = palloc(item_len(us));

	memcpy(copy, current_tuple(us), item_len(us));
	return copy;
}

/*
 * What logical decoding needs of the update.  Values in the TOAST table are fetched
 * for it, so if the old row has any the page is unlocked (and old a copy).
 */
static void
prepare_logical(UpdateState *us, InplaceTupleHeader old)
{
	us->logical = inplace_logical_prepare(&us->lc, us->rel, us->newtup, old,
										  &us->target.tid, us->id_attrs,
										  inplace_diff_overlaps(&us->diff, us->id_attrs));
}

static void
forget_logical(UpdateState *us)
{
	if (us->logical)
		pfree(us->lc.tuples);
	us->logical = false;
}

/*
 * Keys that are computed, and operator classes where equal keys need not be
 * identical: see what becomes of them, and whether the row can stay.  The code of
 * operator classes may update rows, too.
 */
static pg_noinline void
verify_keys(UpdateState *us, InplaceTupleHeader old, Size len,
			TupleTableSlot *slot)
{
	inplace_own_row_page(us->buffer, &us->borrowed);
	us->keys_distinct = inplace_taking_verify_keys(us->rel, us->taking, old, len,
												   &us->rc.base, slot,
												   &us->target.tid);
	us->keys_verified = true;
}

/* ---------------- the whole of it ---------------- */

static void
get_attrs(UpdateState *us)
{
	Relation	rel = us->rel;

	us->summary_attrs = NULL;
	us->id_attrs = NULL;
#if PG_VERSION_NUM >= 160000
	us->index_attrs = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_HOT_BLOCKING);
	us->summary_attrs = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_SUMMARIZED);
#else
	us->index_attrs = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_ALL);
#endif
	us->key_attrs = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_KEY);
	if (RowsAreDecoded(rel))
		us->id_attrs = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_IDENTITY_KEY);
	if (us->taking != NULL)
	{
		bms_free(us->index_attrs);
		us->index_attrs = bms_copy(TakingBlockingAttrs(us->taking));
	}
}

static void
free_attrs(UpdateState *us)
{
	bms_free(us->index_attrs);
	bms_free(us->summary_attrs);
	bms_free(us->key_attrs);
	bms_free(us->id_attrs);
}

static LockTupleMode
lock_mode(UpdateState *us)
{
	return us->key_changed ? LockTupleExclusive : LockTupleNoKeyExclusive;
}

/*
 * May the row be updated?  "compared": find_changes() has been possible.
 */
static TM_Result
check_target(UpdateState *us, bool compared, Snapshot crosscheck,
			 TM_FailureData *tmfd)
{
	Relation	rel = us->rel;
	TM_Result	result;

	result = inplace_row_check(rel, us->buffer, &us->target, us->cid,
							   lock_mode(us), &us->rc, tmfd);
	if ((result == TM_Updated ||
		 (result == TM_BeingModified && !us->rc.retry &&
		  (us->rc.status == XID_IN_PROGRESS || us->rc.old_version))) &&
		compared && key_of_target_changed(us) != us->key_changed)
	{
		us->key_changed = !us->key_changed;
		result = inplace_row_check(rel, us->buffer, &us->target, us->cid,
								   lock_mode(us), &us->rc, tmfd);
	}
	if (result == TM_Ok)
		result = inplace_crosscheck(rel, us->buffer, &us->target, crosscheck,
									tmfd);
	return result;
}

/*
 * Our own FOR UPDATE goes on to exclude FOR KEY SHARE; on a version of our own the
 * lock of another subtransaction is kept as a lock.
 */
static bool
excludes_key_share(UpdateState *us)
{
	if (us->rc.own_lock && us->rc.own_mode == LockTupleExclusive &&
		(us->rc.status != XID_CURRENT ||
		 (!us->rc.lockers.multi &&
		  TransactionIdEquals(us->rc.lockers.xid,
							  GetCurrentTransactionIdIfAny()))))
		return true;
	return us->rc.status == XID_CURRENT &&
		(us->rc.base.t_infomask & IP_KEYS_UPDATED);
}

/*
 * Let go of all.  What was stored in the TOAST table for the new row has to go
 * again.
 */
static void
give_up(UpdateState *us)
{
	LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
	forget_logical(us);
	if (us->toasting)
		inplace_toast_forget(us->toasting);
	inplace_return_row_page(us->buffer, us->borrowed);
	if (BufferIsValid(us->vmbuffer))
		ReleaseBuffer(us->vmbuffer);
	if (us->reserved)
		inplace_toast_delete_replaced(us->rel, us->newtup, us->oldcopy,
									  &us->target.tid, true);
}

/*
 * The change, with the pages locked; lets go of them.
 */
static void
change_row(UpdateState *us, TupleTableSlot *slot, bool in_place)
{
	Relation	rel = us->rel;
	ItemPointerData version;

	TidSetVersion(&version, us->blk, us->off, us->rc.base.t_tag);
	CheckForSerializableConflictIn(rel, &version, us->blk);

	if (RowsAreDecoded(rel) && !us->logical)
	{
		InplaceTupleHeader old = copy_current(us);

		Assert(!(old->t_natts & IP_HASEXTERNAL));
		prepare_logical(us, old);
		pfree(old);
	}
	if (in_place && us->leaves_old_entry && inplace_taking_wants_old(us->taking))
		us->replaced = copy_current(us);
	if (in_place)
		inplace_update_in_place(us);
	else
		inplace_update_by_move(us);
	forget_logical(us);
	finish_slot(us, slot, in_place);

	if (BufferIsValid(us->newbuf) && us->newbuf != us->buffer)
		LockBuffer(us->newbuf, BUFFER_LOCK_UNLOCK);
	if (in_place)
		LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
	else
		UnlockAfterDelete(rel, us->buffer, us->off);
	if (us->rc.memory.own)
		inplace_drop_memory_lock(rel, us->blk, us->off);
	if (TidHasTag(&slot->tts_tid))
		inplace_slot_tagged(rel);
	if (us->oldcopy)
		inplace_toast_delete_replaced(rel, us->oldcopy, us->newtup,
									  &us->target.tid, false);
	if (us->searched)
	{
		if (BufferIsValid(us->newvm))
			ReleaseBuffer(us->newvm);
		if (us->newbuf != us->buffer)
			ReleaseBuffer(us->newbuf);
	}
	inplace_return_row_page(us->buffer, us->borrowed);
	if (BufferIsValid(us->vmbuffer))
		ReleaseBuffer(us->vmbuffer);
}

/*
 * What a step of an update says.
 */
typedef enum UpdateStep
{
	STEP_GO,					/* go on; the page is locked */
	STEP_AGAIN,					/* the page was unlocked: look again */
	STEP_STOP					/* the result stands; the page is locked */
} UpdateStep;

/*
 * The page is locked again.  Does what was made of the row as it was then still
 * hold?  If not, it is made again, with the page unlocked.
 */
static UpdateStep
look_at_copies(UpdateState *us, TupleTableSlot *slot)
{
	if (us->keys_verified && !same_header(&us->verified_hdr, current_tuple(us)))
		us->keys_verified = false;

	/* is the version copied not there any more?  (nothing was stored) */
	if (us->oldcopy && !us->reserved &&
		!same_header(&us->oldcopy_hdr, current_tuple(us)))
	{
		LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
		forget_logical(us);
		/* others come to the row all the time, maybe only to lock it */
		if (us->needs_toast && (us->toasting || us->toasted))
			us->locks_first = true;
		inplace_update_forget_copy(us);
		if (us->needs_toast)
		{
			pfree(us->newtup);
			form_row(us, slot);
		}
		return STEP_AGAIN;
	}

	/* nobody but lockers comes to a row that is reserved */
	if (us->reserved && !HdrSameVersion(current_tuple(us), &us->oldcopy_hdr))
		elog(ERROR, "row (%u,%u) of relation \"%s\" was changed though locked",
			 us->blk, us->off, RelationGetRelationName(us->rel));
	return STEP_GO;
}

/*
 * May the row be updated?  Waits for others if need be.
 */
static UpdateStep
check_or_wait(UpdateState *us, Snapshot crosscheck, bool wait,
			  TM_FailureData *tmfd, LockTupleMode *lockmode, RowQueue *queue,
			  TM_Result *result)
{
	bool		compared = !us->needs_toast || us->toasted;

	/*
	 * A row that is too large before toasting cannot be compared by offsets;
	 * it is after toasting.  Until then its key columns are compared when it
	 * has been copied.  (An evicted row is not there to be changed.)
	 */
	if (compared && !HdrIsEvicted(current_tuple(us)))
		find_changes(us);
	else
		us->key_changed = us->key_changed_early;
	*result = check_target(us, compared, crosscheck, tmfd);
	*lockmode = lock_mode(us);
	if (*result == TM_BeingModified && (wait || us->rc.retry))
	{
		LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
		if (!us->rc.retry)
			inplace_row_wait(us->rel, &us->target, &us->rc, *lockmode,
							 LockWaitBlock, XLTW_Update, queue);
		return STEP_AGAIN;
	}
	if (*result != TM_Ok)
		return STEP_STOP;

	if (excludes_key_share(us))
		us->key_changed = true;
	return STEP_GO;
}

/*
 * Copy the old row if one of the two has values in the TOAST table, or is to have
 * some; then make the new row against it, with the page unlocked.  Before values
 * are stored the old row is locked.  If it might do to compress them that is tried first.
 */
static UpdateStep
toast_row(UpdateState *us, TupleTableSlot *slot)
{
	ToastNeed	need = TOAST_STORES;

	if (us->toasted ||
		!(us->needs_toast || (current_tuple(us)->t_natts & IP_HASEXTERNAL)))
		return STEP_GO;

	if (us->oldcopy == NULL)
	{
		us->oldcopy = copy_current(us);
		us->oldcopy_hdr = *us->oldcopy;
	}
	if (!us->needs_toast)
		need = TOAST_KEEPS;
	else if (us->toasting == NULL)
		need = inplace_update_toast_need(us, slot, us->oldcopy);
	if (need == TOAST_COMPRESSES && us->locks_first)
		need = TOAST_STORES;

	if (need == TOAST_STORES)
	{
		UndoRoom	room = inplace_lock_room();
		bool		has_room = UndoHasRoom(us->rel, &room);

		us->key_changed_early = inplace_update_keys_differ(us, slot, us->oldcopy);
		if (!has_room || (us->key_changed_early && !us->key_changed))
		{
			LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
			if (!has_room)
				UndoReserve(us->rel, &room);
			return STEP_AGAIN;
		}
		inplace_update_reserve_row(us, lock_mode(us), &room);
		us->reserved = true;
	}
	LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
	CHECK_FOR_INTERRUPTS();
	if (us->needs_toast)
		inplace_update_toast(us, slot, need == TOAST_COMPRESSES);
	else
		us->toasted = true;
	return STEP_AGAIN;
}

/*
 * What is computed or fetched for the change with the page unlocked: keys, what
 * logical decoding needs, and room in undo.
 */
static UpdateStep
prepare_change(UpdateState *us, TupleTableSlot *slot)
{
	if (us->leaves_old_entry && !us->index_changed && !us->keys_verified &&
		inplace_taking_has_unsure_keys(us->rel, us->taking, &us->rc.base))
	{
		InplaceTupleHeader old = copy_current(us);
		Size		len = inplace_tuple_len(old, item_len(us));

		us->verified_lsn = PageGetLSN(RowPage(us->rel, us->buffer));
		/* an operator class's code: not with the page locked */
		LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
		us->verified_hdr = *old;
		verify_keys(us, old, len, slot);
		pfree(old);
		return STEP_AGAIN;
	}

	/* (the row may move all the same, which does no harm) */
	if (leaves_former_key(us) && !us->others_asked &&
		!inplace_taking_others_known(us->rel, us->taking))
	{
		LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
		us->others_asked = true;
		inplace_taking_start_others(us->rel, us->taking);
		return STEP_AGAIN;
	}

	if (us->oldcopy && !us->logical && RowsAreDecoded(us->rel))
	{
		LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
		prepare_logical(us, us->oldcopy);
		return STEP_AGAIN;
	}

	return undo_reserved(us) ? STEP_GO : STEP_AGAIN;
}

/*
 * Where the new row goes: *in_place, or to a page that is locked, too.
 */
static UpdateStep
choose_place(UpdateState *us, bool *in_place)
{
	bool		may_stay = !us->index_changed &&
		(!us->keys_verified || us->keys_distinct) &&
		!tag_would_wrap(us) && former_key_may_stay(us) && undo_fits(us);

	*in_place = may_stay && fits_on_page(us);
	if (!*in_place && RoomIsScarce())
	{
		if (!evict_for_row(us))
			return STEP_AGAIN;
		*in_place = may_stay && fits_on_page(us);
	}
	if (!*in_place && !inplace_update_find_page(us))
		return STEP_AGAIN;
	return STEP_GO;
}

/*
 * Lock the row's page and see what the update takes.  STEP_GO: the row may be
 * changed now.
 */
static UpdateStep
try_update(UpdateState *us, TupleTableSlot *slot, Snapshot crosscheck,
		   bool wait, TM_FailureData *tmfd, LockTupleMode *lockmode,
		   RowQueue *queue, TM_Result *result, bool *in_place)
{
	UpdateStep	step;

	if (!inplace_lock_row_page(us->rel, us->buffer, us->off, &us->vmbuffer))
	{
		*result = inplace_target_gone(&us->target, tmfd);
		return STEP_STOP;
	}

	if ((step = look_at_copies(us, slot)) != STEP_GO ||
		(step = check_or_wait(us, crosscheck, wait, tmfd, lockmode, queue,
							  result)) != STEP_GO ||
		(step = toast_row(us, slot)) != STEP_GO)
		return step;

	if (us->newlen > InplaceMaxTupleSize)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("row is too big: size %zu, maximum size %zu",
						us->newlen, (Size) InplaceMaxTupleSize)));

	if ((step = prepare_change(us, slot)) != STEP_GO)
		return step;
	return choose_place(us, in_place);
}

/*
 * The whole update; result TM_Ok with *in_place told, or what stands in the
 * way.
 */
static TM_Result
do_update(UpdateState *us, TupleTableSlot *slot, Snapshot crosscheck,
		  bool wait, TM_FailureData *tmfd, LockTupleMode *lockmode,
		  bool *in_place)
{
	Relation	rel = us->rel;
	TM_Result	result = TM_Ok;
	RowQueue	queue = {0};

	get_attrs(us);
	form_row(us, slot);
	us->needs_toast = (us->newtup->t_natts & IP_HASEXTERNAL) != 0 ||
		us->newlen > TOAST_TUPLE_THRESHOLD;
	us->oldcopy = NULL;
	us->toasting = NULL;
	us->toasted = false;
	us->locks_first = false;
	us->key_changed_early = false;
	us->reserved = false;
	us->evict_reserved = false;

	us->buffer = inplace_borrow_row_page(rel, us->blk, &us->borrowed);
	us->vmbuffer = InvalidBuffer;
	us->newbuf = InvalidBuffer;
	us->newvm = InvalidBuffer;
	us->searched = false;
	us->keys_verified = false;
	us->others_asked = false;
	us->logical = false;
	UndoBegin(rel);

	while (try_update(us, slot, crosscheck, wait, tmfd, lockmode, &queue,
					  &result, in_place) == STEP_AGAIN)
		;

	if (result == TM_Ok)
		change_row(us, slot, *in_place);
	else
		give_up(us);
	if (us->oldcopy)
		pfree(us->oldcopy);
	inplace_row_wait_done(rel, &queue);
	free_attrs(us);
	if (result == TM_Invisible)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("attempted to update invisible tuple")));
	if (result != TM_Ok)
		return result;

	/*
	 * The server counts a dead row for every update.  One in place leaves
	 * nothing for VACUUM, unless it is the row's first that leaves an entry
	 * behind in an index, or of a row that VACUUM has to go through the
	 * indexes for again; that stays so if it is rolled back.
	 */
	CountUpdate(rel, *in_place, !*in_place && us->newbuf != us->buffer);
	if (*in_place && !us->needs_sweep)
		pgstat_update_heap_dead_tuples(rel, 1);
	return TM_Ok;
}

#if PG_VERSION_NUM >= 160000
TM_Result
inplace_tuple_update(Relation rel, ItemPointer otid, TupleTableSlot *slot,
					 CommandId cid, Snapshot snapshot, Snapshot crosscheck,
					 bool wait, TM_FailureData *tmfd, LockTupleMode *lockmode,
					 TU_UpdateIndexes *update_indexes)
#else
TM_Result
inplace_tuple_update(Relation rel, ItemPointer otid, TupleTableSlot *slot,
					 CommandId cid, Snapshot snapshot, Snapshot crosscheck,
					 bool wait, TM_FailureData *tmfd, LockTupleMode *lockmode,
					 bool *update_indexes)
#endif
{
	UpdateState us;
	TM_Result	result;
	bool		in_place = false;
	TakingIndexes *taking;

	us.shifted = next_shifted;
	next_shifted.len = 0;
	InplaceRequirePreload();
	if (IsInParallelMode())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot update tuples during a parallel operation")));

	taking = inplace_taking_indexes(rel);

	us.rel = rel;
	inplace_target_init(&us.target, otid, snapshot);
	us.blk = ItemPointerGetBlockNumber(&us.target.tid);
	us.off = ItemPointerGetOffsetNumber(&us.target.tid);
	us.cid = cid;
	us.xid = GetCurrentTransactionId();
	tmfd->traversed = false;

	us.taking = taking;
	us.replaced = NULL;
	result = do_update(&us, slot, crosscheck, wait, tmfd, lockmode, &in_place);
	pfree(us.newtup);

#if PG_VERSION_NUM >= 160000
	*update_indexes = result != TM_Ok ? TU_None :
		!in_place ? TU_All :
		us.summary_changed ? TU_Summarizing : TU_None;
#else
	*update_indexes = result == TM_Ok && !in_place;
#endif

	if (result == TM_Ok && (!in_place || us.summary_changed))
		inplace_open_indexes(rel, slot);

	inplace_rows_put++;
	if (result == TM_Ok && in_place && us.leaves_old_entry)
		inplace_insert_entries(rel, taking, &us.target.tid, us.replaced, slot);
	if (us.replaced)
		pfree(us.replaced);
	if (taking)
		pfree(taking);
	return result;
}

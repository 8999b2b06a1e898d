/*-------------------------------------------------------------------------
 *
 * update_in_place.c
 *	  The change of an update in place: its undo, the page, its WAL record.
 *
 * The caller (update.c) has the page locked, has seen that the row may be changed, and that
 * there is room for the new row and its undo.
 *
 * Lock order: data page -> undo page -> visibility map page (pinned before).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "freeze/freeze_stats.h"
#include "index/taking.h"
#include "modify/update.h"
#include "page/delta.h"
#include "page/page.h"
#include "page/tuple.h"
#include "row/change.h"
#include "row/link.h"
#include "row/row_lock.h"
#include "row/rowcheck.h"
#include "row/visibility.h"
#include "undo/append.h"
#include "undo/record.h"
#include "undo/undo.h"
#include "wal/log_update.h"

/*
 * What the change writes, put together with the page locked: no code of users runs
 * in between, so there is one of each.
 */
static char change_undo[UNDO_MAX_RECORD + UNDO_LOCK_RECORD_SIZE];	/* and a lock kept */
static char change_payload[BLCKSZ * 2];

/* in a critical section; that there is room has been seen to */
static void
replace_row(UpdateState *us)
{
	if (!inplace_page_replace(RowPage(us->rel, us->buffer), us->off, us->newtup,
							  us->newlen, true))
		elog(PANIC, "failed to update row in place");
}

/*
 * Does the update leave something for VACUUM that it would not have done before?  A row
 * that has been swept (and locked since, maybe) has no version in undo; with this one
 * its sweep counts for nothing any more.  What former keys leave in indexes of other methods
 * nothing but VACUUM takes out.
 */
static bool
needs_sweep(const UpdateState *us)
{
	if (us->leaves_old_entry && inplace_taking_wants_old(us->taking))
		return true;
	if (us->rc.base.t_infomask & IP_STALE)
		return (us->rc.base.t_infomask & IP_FRESH) != 0;
	return us->leaves_old_entry;
}

/*
 * Has nobody changed the row's page since keys were verified?
 */
static bool
page_is_as_verified(UpdateState *us)
{
	return us->keys_verified && RelationNeedsWAL(us->rel) &&
		PageGetLSN(RowPage(us->rel, us->buffer)) == us->verified_lsn;
}

void
inplace_update_in_place(UpdateState *us)
{
	Relation	rel = us->rel;
	InplaceTupleHeader tup = current_tuple(us);
	char	   *oldimg = (char *) tup + SizeOfInplaceTupleHeader;
	char	   *newimg = (char *) us->newtup + SizeOfInplaceTupleHeader;
	InplaceTupleHeader hdr = us->newtup;
	bool		nothing_older;
	Size		payload_len;
	Size		undo_len;
	Size		change_len;
	UndoInsert	ui;
	UpdateRecord record;
	bool		clear;
	FreezeUnset unset;

	hdr->t_xid = us->xid;
	hdr->t_tag = NextTag(us->rc.base.t_tag);
	hdr->t_infomask = (us->rc.base.t_infomask & IP_STALE) |
		(us->leaves_old_entry ? IP_STALE : 0) |
		(us->key_changed ? IP_KEYS_UPDATED : 0);

	us->needs_sweep = needs_sweep(us);
	if (us->leaves_old_entry)
		inplace_taking_note_absent(rel, us->taking, &us->diff, &us->rc.base,
								   page_is_as_verified(us));

	/*
	 * Where nobody on this server needs anything older the undo record is
	 * short, and the WAL record compact; it can tell standbys.
	 */
	nothing_older = inplace_cut_older(rel, &us->rc.base, us->rc.status,
									  !us->rc.locked && us->diff.same_size &&
									  RelationNeedsWAL(rel) &&
									  hdr->t_natts == us->rc.base.t_natts,
									  &us->conflict);

	/* older versions pile up: from time to time a way round them */
	if (!nothing_older && us->rc.status == XID_COMMITTED)
		UndoLinkPut(rel, us->blk, us->off, tup,
					inplace_tuple_len(tup, item_len(us)), hdr, &us->rc.base,
					&us->room);
	UndoRoomCut(&us->room, 1, inplace_update_undo_size(us));

	payload_len = delta_encode(&us->diff.edits, true, oldimg, newimg, change_payload);
	change_len = UndoBuild(change_undo, UNDO_UPDATE, us->xid, us->cid,
						   LocatorSpc(RelLocator(rel)),
						   LocatorRel(RelLocator(rel)),
						   us->blk, us->off, &us->rc.base, hdr, nothing_older,
						   change_payload, payload_len);
	undo_len = change_len;

	UndoPrepare(rel, &us->room, change_len +
				(us->rc.locked ? UNDO_LOCK_RECORD_SIZE : 0),
				inplace_undo_newest(&us->rc), &ui);
	HdrSetUndoPtr(hdr, ui.ptr);
	if (us->rc.locked)
		undo_len += inplace_keep_lockers(rel, us->blk, us->off, &us->rc, hdr,
										 ui.ptr + change_len,
										 change_undo + change_len);

	record.rel = rel;
	record.oldtup = tup;
	record.newtup = us->newtup;
	record.diff = &us->diff;
	record.base = &us->rc.base;
	record.conflict = us->conflict;
	record.ui = &ui;
	record.undo = change_undo;
	record.change_len = change_len;
	record.undo_len = undo_len;

	/*
	 * First of all: then a checkpoint that begins after it has been decided
	 * how to log this does not end before the record is there.
	 */
	MarkBufferDirty(us->buffer);
	inplace_prepare_update_record(&record);

	START_CRIT_SECTION();
	clear = FreezeClearVisible(rel, us->buffer, us->vmbuffer,
							   VISIBILITYMAP_VALID_BITS, &unset);
	UndoAppend(&ui, change_undo, undo_len);
	/* else after its record, which leaves the old row to the page */
	if (!record.from_page)
		replace_row(us);
	inplace_log_update(&record, us->buffer, clear, us->logical ? &us->lc : NULL);
	if (record.from_page)
		replace_row(us);
	END_CRIT_SECTION();

	UndoRelease(&ui);
	FreezeNoteUnset(rel, &unset, false);
}

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
#include "wal/log.h"
#include "wal/log_update.h"
#include "wal/wal.h"


/*
 * The compact form of the update's WAL record, from which redo makes the undo
 * record as well; see wal.h.  Returns its length.
 */
static Size
build_compact_wal(UpdateState *us, UndoInsert *ui, const char *undo,
				  const char *oldimg, const char *newimg)
{
	UndoRecordHeader uh;
	uint16		w = us->off | XLIP_UPD_COMPACT;
	char	   *p = us->wal;
	int			pos = 0;

	memcpy(&uh, undo, SizeOfUndoRecordHeader);
	if (us->cid != FirstCommandId)
		w |= XLIP_UPD_CID;
	if (us->key_changed)
		w |= XLIP_UPD_KEYS;
	if (uh.ur_flags & UR_TAG_ZERO)
		w |= XLIP_UPD_TAG_ZERO;
	if (uh.ur_flags & UR_TAG_WRAPPED)
		w |= XLIP_UPD_TAG_WRAPPED;
	if (uh.ur_flags & UR_FROZEN)
		w |= XLIP_UPD_OLD_FROZEN;
	if (us->conflict)
		w |= XLIP_UPD_CONFLICT;

	memcpy(p, &w, 2);
	p = inplace_wal_put_undo_place(p + 2, ui, RelLocator(us->rel));
	p = varint_put(p, us->xid - us->rc.base.t_xid);
	if (us->cid != FirstCommandId)
		p = varint_put(p, us->cid);
	for (int i = 0; i < us->diff.edits.n; i++)
	{
		DeltaEdit  *e = &us->diff.edits.edit[i];

		p = varint_put(p, e->old_start - pos);
		p = varint_put(p, e->old_len);
		memcpy(p, oldimg + e->old_start, e->old_len);
		p += e->old_len;
		memcpy(p, newimg + e->new_start, e->new_len);
		p += e->new_len;
		pos = e->old_start + e->old_len;
	}
	return p - us->wal;
}

/*
 * The data of the change's WAL record, in us->wal; see wal.h.  Returns its length.
 * from_page: redo takes the old row from its page; compact: or from the record, and
 * makes the undo record as well.
 */
static Size
build_wal(UpdateState *us, UndoInsert *ui, const char *oldimg,
		  const char *newimg, bool from_page, bool compact)
{
	uint16		w = us->off;
	Size		len = 2 + SizeOfInplaceTupleHeader;

	if (from_page)
		return inplace_wal_build_update(us->wal, ui, us->rel, us->undo,
										&us->rc.base, us->newtup, us->conflict,
										&us->diff.edits, oldimg, newimg);
	if (compact)
		return build_compact_wal(us, ui, us->undo, oldimg, newimg);
	memcpy(us->wal, &w, 2);
	memcpy(us->wal + 2, us->newtup, SizeOfInplaceTupleHeader);
	return len + delta_encode(&us->diff.edits, false, oldimg, newimg,
							  us->wal + len);
}

/* in a critical section; that there is room has been seen to */
static void
replace_row(UpdateState *us)
{
	if (!inplace_page_replace(RowPage(us->rel, us->buffer), us->off, us->newtup,
							  us->newlen, true))
		elog(PANIC, "failed to update row in place");
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
	UndoRecordHeader uh;
	UndoInsert	ui;
	bool		single;			/* no lock is kept beside the change */
	bool		from_page;
	bool		compact;
	Size		wal_len = 0;
	bool		clear;
	FreezeUnset unset;

	hdr->t_xid = us->xid;
	hdr->t_tag = NextTag(us->rc.base.t_tag);
	hdr->t_infomask = (us->rc.base.t_infomask & IP_STALE) |
		(us->stale ? IP_STALE : 0) |
		(us->key_changed ? IP_KEYS_UPDATED : 0);

	/*
	 * A row that has been swept (and locked since, maybe) has no version in
	 * undo; with this one its sweep counts for nothing any more.
	 */
	us->needs_sweep = (us->rc.base.t_infomask & IP_STALE) ?
		(us->rc.base.t_infomask & IP_FRESH) != 0 : us->stale;
	if (us->stale)
		inplace_taking_note_absent(rel, us->taking, &us->diff, &us->rc.base);

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
					inplace_tuple_len(tup, item_len(us)), hdr, &us->rc.base);

	payload_len = delta_encode(&us->diff.edits, true, oldimg, newimg, us->payload);
	change_len = UndoBuild(us->undo, UNDO_UPDATE, us->xid, us->cid,
						   LocatorSpc(RelLocator(rel)),
						   LocatorRel(RelLocator(rel)),
						   us->blk, us->off, &us->rc.base, hdr, nothing_older,
						   us->payload, payload_len);
	undo_len = change_len;
	memcpy(&uh, us->undo, SizeOfUndoRecordHeader);

	UndoPrepare(rel, change_len +
				(us->rc.locked ? UNDO_LOCK_RECORD_SIZE : 0),
				inplace_undo_newest(&us->rc), &ui);
	HdrSetUndoPtr(hdr, ui.ptr);
	if (us->rc.locked)
		undo_len += inplace_keep_lockers(rel, us->blk, us->off, &us->rc, hdr,
										 ui.ptr + change_len,
										 us->undo + change_len);

	single = undo_len == change_len;
	from_page = RelationNeedsWAL(rel) && single &&
		inplace_wal_old_row_on_page(tup, &us->rc.base);
	compact = from_page ||
		(us->diff.same_size && single &&
		 (uh.ur_flags & UR_RELATIVE_HEADER) != 0 &&
		 HdrNatts(hdr) == HdrNatts(&us->rc.base));
	if (RelationNeedsWAL(rel))
		wal_len = build_wal(us, &ui, oldimg, newimg, from_page, compact);

	START_CRIT_SECTION();
	clear = FreezeClearVisible(rel, us->buffer, us->vmbuffer,
							   VISIBILITYMAP_VALID_BITS, &unset);
	MarkBufferDirty(us->buffer);
	UndoAppend(&ui, us->undo, undo_len);
	/* else after its record, which leaves the old row to the page */
	if (!from_page)
		replace_row(us);
	if (RelationNeedsWAL(rel))
		inplace_log_update(rel, us->buffer, us->wal, wal_len, clear, &ui,
						   compact ? NULL : us->undo, undo_len,
						   us->logical ? &us->lc : NULL);
	else if (ui.needs_wal)
		inplace_log_undo_alone(&ui, us->undo, undo_len);
	if (from_page)
		replace_row(us);
	END_CRIT_SECTION();

	UndoRelease(&ui);
	FreezeNoteUnset(rel, &unset, false);
}

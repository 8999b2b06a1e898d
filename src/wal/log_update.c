/*-------------------------------------------------------------------------
 *
 * log_update.c
 *	  The WAL record of an update in place, in its three forms (wal.h).
 *
 * The undo of an update has the old bytes of what changed.  They are on the
 * page when the record is replayed.  So the record may leave the old row to the
 * page: it has the new bytes alone, and redo makes the undo record from the row
 * as it stands before it changes it (redo/redo_update.c).  A compact record that
 * does not has the old bytes beside the new ones (redo/redo_compact.c).  If the
 * undo record cannot be made from either the WAL record has it whole, and of the
 * row its header and the delta.
 *
 * Why the old row is there
 *	  An image that the record itself carries is of the page as it was
 *	  *before* the change: the record is inserted first and the page changed
 *	  afterwards, in one critical section, with the page locked and marked
 *	  dirty from before the insertion on.  Nobody sees or writes the page in
 *	  between, and a checkpoint that begins after the insertion finds it dirty
 *	  and waits for the lock.  Redo restores such an image and then applies the
 *	  record.
 *
 *	  Without an image the page is what replay has made of it, provided that it
 *	  is not newer than the record; a page newer than a record of its own is
 *	  what a crash leaves behind.  Let R be the redo pointer before the record
 *	  (the last one, of whatever checkpoint).  Replay that meets the record
 *	  began at R or before: after a crash, from a restart point, from a base
 *	  backup, or on a server rewound by pg_rewind.  So it has passed the first
 *	  record after R that refers to the page.  If that one has an image, or
 *	  initializes the page, it put the page into the state of that moment,
 *	  whatever it was before.  It creates the file or the block if they are gone
 *	  again in the end.  From there on each record finds the page
 *	  as it was when the record was made.  That the first record after R has an
 *	  image or begins the page is what inplace_pages_protected promises
 *	  (protect.c): it takes full_page_writes to have been on since R.
 *
 *	  R and full_page_writes may change between the decision and the
 *	  insertion.  If R moves the server makes the image.  If full_page_writes
 *	  is switched off at the same time there may be none: the caller sees that
 *	  after the insertion and at once inserts a record with the undo, while the
 *	  pages are locked (log.c), and gives the data page that record's LSN.
 *	  So either the data page was not written, and replay finds the old row; or
 *	  the second record is in the WAL, and this one's undo is not missed.
 *
 *	  WAL may end between the two.  Then replay has the only copy of the undo once the
 *	  data page is written, and another replay would not make it.  This is a record
 *	  without an image of a page that no record since the redo pointer has referred to.
 *	  Where such a record is replayed, the undo is written to disk before the page is
 *	  changed.
 *
 *	  wal_consistency_checking compares a page with the image in its record, so
 *	  it needs records made after the change: then the old bytes are logged.
 *	  So they are with full_page_writes off, and where the old header cannot be
 *	  told from the page (locks that are taken off or kept).
 *
 * Lock order in redo: data page, then undo page, as in the change itself.  The
 * undo record is there before the row that leads to it can be seen.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/compare.h"
#include "page/delta.h"
#include "page/protect.h"
#include "page/tuple.h"
#include "rmgr.h"
#include "undo/append.h"
#include "undo/undo.h"
#include "utils/rel.h"
#include "wal/log.h"
#include "wal/log_update.h"
#include "wal/wal.h"

/* the data of the record that is being made */
static char record_data[BLCKSZ * 2];

/* the image of a row that deltas are about (delta.h) */
static const char *
row_image(InplaceTupleHeader tup)
{
	return (const char *) tup + SizeOfInplaceTupleHeader;
}

/*
 * The old version's header, for the undo record, from what is on the page
 * (with its lock, if it has one) and the infomask that the version has
 * without.
 */
InplaceTupleHeaderData
inplace_wal_old_header(const InplaceTupleHeaderData *tup, uint16 infomask,
					   CommandId cid)
{
	InplaceTupleHeaderData old = *tup;

	HdrForgetSweep(&old);
	old.t_infomask = infomask;
	if (infomask & IP_FRESH)
		HdrSetFreshCid(&old, cid);
	return old;
}

/*
 * May the record leave the old row to the page?
 */
static bool
old_row_on_page(const UpdateRecord *ur)
{
	InplaceTupleHeaderData old;

	if (wal_consistency_checking[RM_INPLACE_ID] || !inplace_pages_protected())
		return false;
	old = inplace_wal_old_header(ur->oldtup, ur->base->t_infomask,
								 HdrInsertCid(ur->base));
	return memcmp(&old, ur->base, SizeOfInplaceTupleHeader) == 0;
}

/*
 * The form that leaves the old row to the page.
 */
static Size
build_from_page(const UpdateRecord *ur, const UndoRecordHeader *uh)
{
	const InplaceTupleHeaderData *newhdr = ur->newtup;
	uint16		w = uh->ur_off | XLIP_UPD_COMPACT;
	char	   *p = record_data;

	if (uh->ur_cid != FirstCommandId)
		w |= XLIP_UPD_CID;
	if (newhdr->t_infomask & IP_KEYS_UPDATED)
		w |= XLIP_UPD_KEYS;
	if (newhdr->t_infomask & IP_STALE)
		w |= XLIP_UPD_STALE;
	if (newhdr->t_natts != ur->base->t_natts)
		w |= XLIP_UPD_NATTS;
	if (!(uh->ur_flags & UR_RELATIVE_HEADER))
		w |= XLIP_UPD_WHOLE_HEADER;
	if (ur->conflict)
		w |= XLIP_UPD_CONFLICT;

	ur->ui->from_page = true;
	memcpy(p, &w, sizeof(w));
	p = inplace_wal_put_undo_place(p + sizeof(w), ur->ui, RelLocator(ur->rel));
	if (w & XLIP_UPD_CID)
		p = varint_put(p, uh->ur_cid);
	if (w & XLIP_UPD_CONFLICT)
		p = varint_put(p, uh->ur_xid - ur->base->t_xid);
	if (w & XLIP_UPD_NATTS)
	{
		memcpy(p, &newhdr->t_natts, sizeof(uint16));
		p += sizeof(uint16);
	}
	if (w & XLIP_UPD_WHOLE_HEADER)
	{
		InplaceTupleHeaderData old;
		CommandId	cid;

		memcpy(&old, ur->undo + SizeOfUndoRecordHeader, SizeOfInplaceTupleHeader);
		cid = (old.t_infomask & IP_FRESH) ? HdrFreshCid(&old) : 0;
		Assert((old.t_infomask & XLIP_OLD_HAS_CID) == 0);
		if (cid != 0)
			old.t_infomask |= XLIP_OLD_HAS_CID;
		memcpy(p, &old.t_infomask, sizeof(uint16));
		p += sizeof(uint16);
		if (cid != 0)
			p = varint_put(p, cid);
	}
	p += delta_encode(&ur->diff->edits, false, row_image(ur->oldtup),
					  row_image(ur->newtup), p);
	return p - record_data;
}

/*
 * The compact form that has the old bytes.
 */
static Size
build_compact(const UpdateRecord *ur, const UndoRecordHeader *uh)
{
	const char *oldimg = row_image(ur->oldtup);
	const char *newimg = row_image(ur->newtup);
	uint16		w = uh->ur_off | XLIP_UPD_COMPACT;
	char	   *p = record_data;
	int			pos = 0;

	if (uh->ur_cid != FirstCommandId)
		w |= XLIP_UPD_CID;
	if (ur->newtup->t_infomask & IP_KEYS_UPDATED)
		w |= XLIP_UPD_KEYS;
	if (uh->ur_flags & UR_TAG_ZERO)
		w |= XLIP_UPD_TAG_ZERO;
	if (uh->ur_flags & UR_TAG_WRAPPED)
		w |= XLIP_UPD_TAG_WRAPPED;
	if (uh->ur_flags & UR_FROZEN)
		w |= XLIP_UPD_OLD_FROZEN;
	if (ur->conflict)
		w |= XLIP_UPD_CONFLICT;

	memcpy(p, &w, sizeof(w));
	p = inplace_wal_put_undo_place(p + sizeof(w), ur->ui, RelLocator(ur->rel));
	p = varint_put(p, uh->ur_xid - ur->base->t_xid);
	if (w & XLIP_UPD_CID)
		p = varint_put(p, uh->ur_cid);
	for (int i = 0; i < ur->diff->edits.n; i++)
	{
		const DeltaEdit *e = &ur->diff->edits.edit[i];

		p = varint_put(p, e->old_start - pos);
		p = varint_put(p, e->old_len);
		memcpy(p, oldimg + e->old_start, e->old_len);
		p += e->old_len;
		memcpy(p, newimg + e->new_start, e->new_len);
		p += e->new_len;
		pos = e->old_start + e->old_len;
	}
	return p - record_data;
}

/*
 * The form from which only the row is made.
 */
static Size
build_plain(const UpdateRecord *ur, const UndoRecordHeader *uh)
{
	char	   *p = record_data;

	memcpy(p, &uh->ur_off, sizeof(uint16));
	p += sizeof(uint16);
	memcpy(p, ur->newtup, SizeOfInplaceTupleHeader);
	p += SizeOfInplaceTupleHeader;
	p += delta_encode(&ur->diff->edits, false, row_image(ur->oldtup),
					  row_image(ur->newtup), p);
	return p - record_data;
}

/*
 * Make the record's data, before the critical section: from the row as it
 * stands on its page, and with the undo page locked.
 */
void
inplace_prepare_update_record(UpdateRecord *ur)
{
	UndoRecordHeader uh;
	bool		single = ur->undo_len == ur->change_len;

	ur->from_page = false;
	ur->compact = false;
	ur->len = 0;
	if (!RelationNeedsWAL(ur->rel))
		return;

	memcpy(&uh, ur->undo, SizeOfUndoRecordHeader);
	ur->from_page = single && old_row_on_page(ur);
	ur->compact = ur->from_page ||
		(ur->diff->same_size && single &&
		 (uh.ur_flags & UR_RELATIVE_HEADER) != 0 &&
		 HdrNatts(ur->newtup) == HdrNatts(ur->base));
	if (ur->from_page)
		ur->len = build_from_page(ur, &uh);
	else if (ur->compact)
		ur->len = build_compact(ur, &uh);
	else
		ur->len = build_plain(ur, &uh);
}

void
inplace_log_update(const UpdateRecord *ur, Buffer buffer, bool clear,
				   const LogicalChange *lc)
{
	if (!RelationNeedsWAL(ur->rel))
		inplace_log_undo_alone(ur->ui, ur->undo, ur->undo_len);
	else
		inplace_log_change(ur->rel, buffer, XLOG_IP_UPDATE, record_data, ur->len,
						   clear, ur->ui, ur->compact ? NULL : ur->undo,
						   ur->undo_len, lc);
}

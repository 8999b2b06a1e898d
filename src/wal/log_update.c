/*-------------------------------------------------------------------------
 *
 * log_update.c
 *	  The WAL record of an update in place that leaves the old row to the page.
 *	  Replay is in redo/redo_update.c.
 *
 * The undo of an update has the old bytes of what changed.  They are on the
 * page when the record is replayed, so the record has the new bytes alone, and
 * redo makes the undo record from the row as it stands before it changes it.
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

#include "page/delta.h"
#include "page/protect.h"
#include "page/tuple.h"
#include "rmgr.h"
#include "undo/append.h"
#include "undo/undo.h"
#include "wal/log.h"
#include "wal/log_update.h"
#include "wal/wal.h"


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
 * "base": the row's header without locks, as the undo record is to have it.
 */
bool
inplace_wal_old_row_on_page(const InplaceTupleHeaderData *tup,
							const InplaceTupleHeaderData *base)
{
	InplaceTupleHeaderData old;

	if (wal_consistency_checking[RM_INPLACE_ID] || !inplace_pages_protected())
		return false;
	old = inplace_wal_old_header(tup, base->t_infomask, HdrInsertCid(base));
	return memcmp(&old, base, SizeOfInplaceTupleHeader) == 0;
}

Size
inplace_wal_build_update(char *dst, UndoInsert *ui, Relation rel,
						 const char *undo, const InplaceTupleHeaderData *base,
						 const InplaceTupleHeaderData *newhdr, bool conflict,
						 const DeltaEdits *edits, const char *oldimg,
						 const char *newimg)
{
	UndoRecordHeader uh;
	uint16		w;
	char	   *p = dst;

	memcpy(&uh, undo, SizeOfUndoRecordHeader);
	w = uh.ur_off | XLIP_UPD_COMPACT;
	if (uh.ur_cid != FirstCommandId)
		w |= XLIP_UPD_CID;
	if (newhdr->t_infomask & IP_KEYS_UPDATED)
		w |= XLIP_UPD_KEYS;
	if (newhdr->t_infomask & IP_STALE)
		w |= XLIP_UPD_STALE;
	if (newhdr->t_natts != base->t_natts)
		w |= XLIP_UPD_NATTS;
	if (!(uh.ur_flags & UR_RELATIVE_HEADER))
		w |= XLIP_UPD_WHOLE_HEADER;
	if (conflict)
		w |= XLIP_UPD_CONFLICT;

	ui->from_page = true;
	memcpy(p, &w, sizeof(w));
	p = inplace_wal_put_undo_place(p + sizeof(w), ui, RelLocator(rel));
	if (w & XLIP_UPD_CID)
		p = varint_put(p, uh.ur_cid);
	if (w & XLIP_UPD_CONFLICT)
		p = varint_put(p, uh.ur_xid - base->t_xid);
	if (w & XLIP_UPD_NATTS)
	{
		memcpy(p, &newhdr->t_natts, sizeof(uint16));
		p += sizeof(uint16);
	}
	if (w & XLIP_UPD_WHOLE_HEADER)
	{
		InplaceTupleHeaderData old;
		CommandId	cid;

		memcpy(&old, undo + SizeOfUndoRecordHeader, SizeOfInplaceTupleHeader);
		cid = (old.t_infomask & IP_FRESH) ? HdrFreshCid(&old) : 0;
		Assert((old.t_infomask & XLIP_OLD_HAS_CID) == 0);
		if (cid != 0)
			old.t_infomask |= XLIP_OLD_HAS_CID;
		memcpy(p, &old.t_infomask, sizeof(uint16));
		p += sizeof(uint16);
		if (cid != 0)
			p = varint_put(p, cid);
	}
	p += delta_encode(edits, false, oldimg, newimg, p);
	return p - dst;
}

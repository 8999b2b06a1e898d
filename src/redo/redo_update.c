/*-------------------------------------------------------------------------
 *
 * redo_update.c
 *	  Replay of an update in place that leaves the old row to the page.
 *
 * Why the old row is there, and the record: wal/log_update.c.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/xlogutils.h"
#include "page/delta.h"
#include "page/tuple.h"
#include "redo/redo.h"
#include "undo/record.h"
#include "undo/undo.h"
#include "wal/log.h"
#include "wal/log_update.h"
#include "wal/wal.h"

/* a record of that kind, taken apart */
typedef struct PageUpdate
{
	OffsetNumber off;
	uint16		flags;
	UndoPlace	undo;
	CommandId	cid;
	uint32		age;			/* with CONFLICT */
	uint16		natts;			/* with NATTS */
	uint16		old_infomask;	/* with WHOLE_HEADER */
	CommandId	old_cid;
	const char *delta;
	Size		delta_len;
} PageUpdate;

static const char *
get_uint16(const char *p, const char *end, uint16 *v)
{
	if (end - p < sizeof(uint16))
		return NULL;
	memcpy(v, p, sizeof(uint16));
	return p + sizeof(uint16);
}

static bool
parse(XLogReaderState *record, const char *data, Size len, PageUpdate *pu)
{
	const char *p = data;
	const char *end = data + len;
	uint16		w;

	if ((p = get_uint16(p, end, &w)) == NULL)
		return false;
	pu->off = w & INPLACE_OFFSET_MASK;
	pu->flags = w & ~INPLACE_OFFSET_MASK;
	pu->cid = FirstCommandId;
	pu->old_cid = FirstCommandId;
	p = inplace_wal_get_undo_place(record, p, end, &pu->undo);
	if (p && (w & XLIP_UPD_CID))
		p = varint_get(p, end, &pu->cid);
	if (p && (w & XLIP_UPD_CONFLICT))
		p = varint_get(p, end, &pu->age);
	if (p && (w & XLIP_UPD_NATTS))
		p = get_uint16(p, end, &pu->natts);
	if (p && (w & XLIP_UPD_WHOLE_HEADER))
	{
		p = get_uint16(p, end, &pu->old_infomask);
		if (p && (pu->old_infomask & XLIP_OLD_HAS_CID))
			p = varint_get(p, end, &pu->old_cid);
		pu->old_infomask &= ~XLIP_OLD_HAS_CID;
	}
	if (p == NULL)
		return false;
	pu->delta = p;
	pu->delta_len = end - p;
	return true;
}

/*
 * The undo record, by the function that made it in the first place.  With a
 * relative header only what that needs of the two headers matters.
 */
static Size
rebuild_undo(XLogReaderState *record, const PageUpdate *pu,
			 InplaceTupleHeader tup, Size tuplen,
			 const InplaceTupleHeaderData *newhdr, char *dst)
{
	static char payload[UNDO_MAX_RECORD];
	RelFileLocator loc;
	BlockNumber blk;
	InplaceTupleHeaderData old;
	bool		whole = (pu->flags & XLIP_UPD_WHOLE_HEADER) != 0;
	int			len;

	XLogRecGetBlockTag(record, 0, &loc, NULL, &blk);
	len = delta_invert(pu->delta, pu->delta_len,
					   (char *) tup + SizeOfInplaceTupleHeader,
					   tuplen - SizeOfInplaceTupleHeader,
					   payload, sizeof(payload));
	if (len < 0 ||
		SizeOfUndoRecordHeader + SizeOfInplaceTupleHeader + len > UNDO_MAX_RECORD)
		inplace_bad_record(record, "delta does not fit its row");
	old = inplace_wal_old_header(tup, whole ? pu->old_infomask :
								 tup->t_infomask & (IP_FROZEN | IP_STALE),
								 pu->old_cid);
	return UndoBuild(dst, UNDO_UPDATE, XLogRecGetXid(record), pu->cid,
					 LocatorSpc(loc), LocatorRel(loc), blk, pu->off, &old,
					 newhdr, !whole, payload, len);
}

void
inplace_redo_update_from_page(XLogReaderState *record, const char *data,
							  Size len, bool clear_visible)
{
	static char undo[UNDO_MAX_RECORD];
	PageUpdate	pu;
	RelFileLocator loc;
	InplaceTupleHeaderData hdr;
	InplaceTupleHeader tup;
	Buffer		buffer;
	Page		page;
	XLogRedoAction action;
	Size		undo_len;

	XLogRecGetBlockTag(record, 0, &loc, NULL, NULL);
	if (!parse(record, data, len, &pu))
		inplace_bad_record(record, "damaged update");
	if (pu.flags & XLIP_UPD_CONFLICT)
		inplace_redo_cut_conflict(XLogRecGetXid(record) - pu.age, loc);

	action = XLogReadBufferForRedo(record, 0, &buffer);
	if (action != BLK_NEEDS_REDO && action != BLK_RESTORED)
	{
		/* then the next record has the undo */
		inplace_redo_undo_place(record, &pu.undo, NULL, 0);
		if (BufferIsValid(buffer))
			UnlockReleaseBuffer(buffer);
		return;
	}

	page = BufferGetPage(buffer);
	inplace_redo_check_page(record, page);
	tup = inplace_redo_item(record, page, pu.off);
	hdr = *tup;
	HdrForgetSweep(&hdr);
	hdr.t_xid = XLogRecGetXid(record);
	hdr.t_tag = NextTag(tup->t_tag);
	hdr.t_infomask = ((pu.flags & XLIP_UPD_STALE) ? IP_STALE : 0) |
		((pu.flags & XLIP_UPD_KEYS) ? IP_KEYS_UPDATED : 0);
	if (pu.flags & XLIP_UPD_NATTS)
		hdr.t_natts = pu.natts;
	HdrSetUndoPtr(&hdr, UndoPtrMake(pu.undo.block, pu.undo.offset));

	undo_len = rebuild_undo(record, &pu, tup,
							inplace_tuple_len(tup, ItemIdGetLength(PageGetItemId(page, pu.off))),
							&hdr, undo);
	inplace_redo_undo_place(record, &pu.undo, undo, undo_len);

	/*
	 * The undo is in its buffer, which is dirty, before the redo pointer is
	 * asked: so where a restart point moves that now, it writes the undo
	 * itself.  For the write the row's page is unlocked: nobody else changes
	 * it, and readers of a standby, who see the old row, need not wait for
	 * the disk.
	 */
	if (unlikely(action == BLK_NEEDS_REDO && PageGetLSN(page) <= GetRedoRecPtr()))
	{
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		inplace_redo_undo_to_disk(&pu.undo);
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	}

	inplace_redo_apply_update(record, page, pu.off, &hdr, pu.delta, pu.delta_len);
	if (clear_visible)
		PageClearAllVisible(page);
	PageSetLSN(page, record->EndRecPtr);
	MarkBufferDirty(buffer);
	UnlockReleaseBuffer(buffer);
}

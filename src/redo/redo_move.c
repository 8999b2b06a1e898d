/*-------------------------------------------------------------------------
 *
 * redo_move.c
 *	  Replay of an update that moves its row, in its two forms (wal.h).
 *
 * The undo comes first, then the old row's page: readers must not find the row on
 * neither.  That page stays locked until the new row is there.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/xlogutils.h"
#include "page/delta.h"
#include "page/page.h"
#include "page/tuple.h"
#include "redo/redo.h"
#include "undo/record.h"
#include "undo/undo.h"
#include "wal/log.h"
#include "wal/wal.h"

/* a record of either form, taken apart */
typedef struct Move
{
	OffsetNumber old_off;
	InplaceTupleHeaderData old_header;	/* new one of the old row; if compact
										 * what differs from that on the page */
	bool		compact;
	OffsetNumber new_off;
	uint16		new_natts;		/* if compact, */
	const char *rest;			/* ... and the new row's image or the delta;
								 * or the new row */
	Size		rest_len;
} Move;

/* a row, with room for any, aligned */
typedef union MovedRow
{
	char		data[BLCKSZ];
	InplaceTupleHeaderData hdr;
	double		align_it;
} MovedRow;

static const char *
get_bytes(const char *p, const char *end, void *dst, Size len)
{
	if (p == NULL || end - p < len)
		return NULL;
	memcpy(dst, p, len);
	return p + len;
}

/* the old row's block */
static uint8
old_block(XLogReaderState *record)
{
	return XLogRecHasBlockRef(record, 2) ? 2 : 0;
}

/*
 * The undo of a compact record is made again, and put.
 */
static void
redo_undo_of_compact(XLogReaderState *record, const Move *move, const UndoPlace *place,
					 TransactionId old_xid, uint16 flags, CommandId cid)
{
	char		link[sizeof(BlockNumber) + sizeof(OffsetNumber)];
	char		undo[SizeOfUndoRecordHeader + SizeOfInplaceTupleHeader + sizeof(link)];
	RelFileLocator loc;
	BlockNumber new_blk = block_location(record, 0, &loc);
	BlockNumber old_blk = block_location(record, old_block(record), &loc);
	InplaceTupleHeaderData old;
	Size		len;

	memset(&old, 0, sizeof(old));
	old.t_xid = old_xid;
	old.t_infomask = (flags & XLIP_UPD_OLD_FROZEN) ? IP_FROZEN : 0;
	memcpy(link, &new_blk, sizeof(new_blk));
	memcpy(link + sizeof(new_blk), &move->new_off, sizeof(OffsetNumber));
	len = UndoBuild(undo, UNDO_MOVE, XLogRecGetXid(record), cid, LocatorSpc(loc),
					LocatorRel(loc), old_blk, move->old_off, &old, &old, true,
					link, sizeof(link));
	inplace_redo_undo_place(record, place, undo, len);
}

static void
parse_compact(XLogReaderState *record, const char *data, const char *end, Move *move)
{
	const char *p = data + sizeof(uint16);
	UndoPlace	place;
	uint32		age = 0;
	CommandId	cid = FirstCommandId;
	uint16		w;

	memcpy(&w, data, sizeof(w));
	move->old_off = w & INPLACE_OFFSET_MASK;
	p = inplace_wal_get_undo_place(record, p, end, &place);
	if (p)
		p = varint_get(p, end, &age);
	if (p && (w & XLIP_UPD_CID))
		p = varint_get(p, end, &cid);
	p = get_bytes(p, end, &move->new_off, sizeof(move->new_off));
	p = get_bytes(p, end, &move->new_natts, sizeof(move->new_natts));
	if (p == NULL)
		inplace_bad_record(record, "damaged move");
	move->rest = p;
	move->rest_len = end - p;

	memset(&move->old_header, 0, sizeof(move->old_header));
	move->old_header.t_infomask = IP_DELETED | IP_MOVED |
		((w & XLIP_UPD_KEYS) ? IP_KEYS_UPDATED : 0);
	HdrSetUndoPtr(&move->old_header, UndoPtrMake(place.block, place.offset));
	redo_undo_of_compact(record, move, &place, XLogRecGetXid(record) - age, w, cid);
}

/*
 * Block 0 has nothing if there is an image of it instead; then there may still be
 * something to do to block 2, which has its data itself.
 */
static void
parse_plain(XLogReaderState *record, const char *data, const char *end, Move *move)
{
	const char *p = data;
	Size		len;

	if (p)
	{
		p = get_bytes(p, end, &move->old_off, sizeof(OffsetNumber));
		if (p && move->old_off != InvalidOffsetNumber)
			p = get_bytes(p, end, &move->old_header, SizeOfInplaceTupleHeader);
		p = get_bytes(p, end, &move->new_off, sizeof(OffsetNumber));
		if (p == NULL || end - p < SizeOfInplaceTupleHeader || end - p > BLCKSZ)
			inplace_bad_record(record, "damaged move");
		move->rest = p;
		move->rest_len = end - p;
	}
	if (XLogRecHasBlockRef(record, 2) &&
		(data = XLogRecGetBlockData(record, 2, &len)) != NULL)
	{
		p = get_bytes(data, data + len, &move->old_off, sizeof(OffsetNumber));
		if (get_bytes(p, data + len, &move->old_header, SizeOfInplaceTupleHeader) == NULL)
			inplace_bad_record(record, "damaged move");
	}
	inplace_redo_undo(record, 1);
}

static void
put_old_header(XLogReaderState *record, Page page, const Move *move)
{
	InplaceTupleHeader tup = inplace_redo_item(record, page, move->old_off);

	if (!move->compact)
		memcpy(tup, &move->old_header, SizeOfInplaceTupleHeader);
	else
	{
		HdrForgetSweep(tup);
		tup->t_xid = XLogRecGetXid(record);
		tup->t_infomask = (tup->t_infomask & (IP_STALE | IP_PADDED)) |
			move->old_header.t_infomask;
		HdrSetUndoPtr(tup, HdrUndoPtr(&move->old_header));
	}
	PageSetPrunable(page, XLogRecGetXid(record));
}

/*
 * The new row; of a compact record that has one page from the old row, which is as it
 * was.
 */
static Size
make_new_row(XLogReaderState *record, Page page, const Move *move, MovedRow *row)
{
	int			len = move->rest_len;

	if (!move->compact)
	{
		memcpy(row->data, move->rest, len);
		return len;
	}
	memset(&row->hdr, 0, SizeOfInplaceTupleHeader);
	row->hdr.t_xid = XLogRecGetXid(record);
	row->hdr.t_natts = move->new_natts;
	row->hdr.t_infomask = IP_FRESH;
	row->hdr.t_tag = FirstVersionTag;
	HdrSetFreshCid(&row->hdr, FirstCommandId);
	if (XLogRecHasBlockRef(record, 2))
	{
		if (len > BLCKSZ - SizeOfInplaceTupleHeader)
			inplace_bad_record(record, "damaged move");
		memcpy(row->data + SizeOfInplaceTupleHeader, move->rest, len);
	}
	else
	{
		InplaceTupleHeader old = inplace_redo_item(record, page, move->old_off);
		ItemId		lp = PageGetItemId(page, move->old_off);

		len = delta_apply(move->rest, len, (char *) old + SizeOfInplaceTupleHeader,
						  inplace_tuple_len(old, ItemIdGetLength(lp)) - SizeOfInplaceTupleHeader,
						  row->data + SizeOfInplaceTupleHeader,
						  BLCKSZ - SizeOfInplaceTupleHeader);
		if (len < 0)
			inplace_bad_record(record, "delta does not fit its row");
	}
	return SizeOfInplaceTupleHeader + len;
}

void
inplace_redo_move(XLogReaderState *record)
{
	static MovedRow row;
	uint8		vis = visible_flags(record);
	Buffer		newbuf;
	Buffer		oldbuf = InvalidBuffer;
	Size		freespace = BLCKSZ;
	Move		move = {0};
	Size		len;
	char	   *data;
	uint16		w = 0;

	if (vis & XLIP_CLEAR_VISIBLE)
		inplace_redo_clear_visible(record, 0, VISIBILITYMAP_VALID_BITS);
	if (vis & XLIP_CLEAR_VISIBLE_OLD)
		inplace_redo_clear_visible(record, 2, VISIBILITYMAP_VALID_BITS);

	data = XLogRecGetBlockData(record, 0, &len);
	if (data && len >= sizeof(w))
		memcpy(&w, data, sizeof(w));
	move.compact = (w & XLIP_UPD_COMPACT) != 0;
	if (move.compact)
		parse_compact(record, data, data + len, &move);
	else
		parse_plain(record, data, data + len, &move);

	if (XLogRecHasBlockRef(record, 2) && inplace_redo_row_page(record, 2, &oldbuf))
	{
		put_old_header(record, BufferGetPage(oldbuf), &move);
		if (vis & XLIP_CLEAR_VISIBLE_OLD)
			PageClearAllVisible(BufferGetPage(oldbuf));
		finish_page(record, oldbuf);
	}

	if (inplace_redo_data_page(record, 0, &newbuf))
	{
		Page		page = BufferGetPage(newbuf);

		len = make_new_row(record, page, &move, &row);
		inplace_redo_add_item(record, page, move.new_off, &row.hdr, len);
		if (!XLogRecHasBlockRef(record, 2))
			put_old_header(record, page, &move);
		freespace = PageGetHeapFreeSpace(page);
		if (vis & XLIP_CLEAR_VISIBLE)
			PageClearAllVisible(page);
		finish_page(record, newbuf);
	}
	if (BufferIsValid(newbuf))
		UnlockReleaseBuffer(newbuf);
	if (BufferIsValid(oldbuf))
		UnlockReleaseBuffer(oldbuf);
	inplace_redo_after_insert(record, 0, freespace);
}

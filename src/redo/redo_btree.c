/*-------------------------------------------------------------------------
 *
 * redo_btree.c
 *	  Replay of changes to the pages of a btree.
 *
 * The page changes themselves, and the records, are in wal/log_merge.c and
 * wal/log_relocate.c.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/nbtree.h"
#include "btree/standby_scan.h"
#include "redo/redo.h"
#include "wal/log_btree.h"
#include "wal/wal.h"

/* ---------------- merging pages ---------------- */

static void
redo_right(XLogReaderState *record, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	Page		result = PageGetTempPage(page);
	Size		len;
	char	   *entries = XLogRecGetBlockData(record, 0, &len);

	if (!inplace_page_merge(result, page, entries, len))
		inplace_bad_record(record, "entries do not fit their page");
	PageRestoreTempPage(result, page);
	PageSetLSN(page, record->EndRecPtr);
	MarkBufferDirty(buffer);
}

/* (not aligned in the record) */
static IndexTuple
shift_hikey(XLogReaderState *record)
{
	Size		len = XLogRecGetDataLen(record) - SizeOfIpShift;
	IndexTuple	hikey = palloc0(MAXALIGN(Max(len, sizeof(IndexTupleData))));

	memcpy(hikey, XLogRecGetData(record) + SizeOfIpShift, len);
	if (len < sizeof(IndexTupleData) || IndexTupleSize(hikey) != len)
		inplace_bad_record(record, "high key of another length");
	return hikey;
}

static void
redo_left(XLogReaderState *record, const xl_ip_shift *xlrec, IndexTuple hikey,
		  Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	Page		result = PageGetTempPage(page);

	if (xlrec->first > PageGetMaxOffsetNumber(page) ||
		!inplace_page_cut(result, page, hikey, xlrec->first))
		inplace_bad_record(record, "entries not at their place");
	PageRestoreTempPage(result, page);
	PageSetLSN(page, record->EndRecPtr);
	MarkBufferDirty(buffer);
}

/* a merge, or with "hikey" a shift */
static void
redo_parent(XLogReaderState *record, OffsetNumber off, IndexTuple hikey,
			BlockNumber right)
{
	Buffer		buffer;

	if (XLogReadBufferForRedo(record, 2, &buffer) == BLK_NEEDS_REDO)
	{
		Page		page = BufferGetPage(buffer);

		if (off >= PageGetMaxOffsetNumber(page))
			inplace_bad_record(record, "no downlink at its place");
		if (hikey == NULL)
			inplace_page_drop_downlink(page, off, right);
		else if (!inplace_page_rekey_downlink(page, off, hikey, right))
			inplace_bad_record(record, "no room for a downlink");
		PageSetLSN(page, record->EndRecPtr);
		MarkBufferDirty(buffer);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

/* as XLogReadBufferForRedo(), of a page that is locked already */
static XLogRedoAction
action_of_locked(XLogReaderState *record, uint8 block_id, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);

	if (!XLogRecBlockImageApply(record, block_id))
		return record->EndRecPtr <= PageGetLSN(page) ? BLK_DONE : BLK_NEEDS_REDO;
	if (!RestoreBlockImage(record, block_id, page))
		inplace_bad_record(record, record->errormsg_buf);
	PageSetLSN(page, record->EndRecPtr);
	MarkBufferDirty(buffer);
	return BLK_RESTORED;
}

/*
 * The page that the entries leave.  What scans have copied of it they may use while
 * they have it pinned (btree/README.md), so it is locked first, when nobody has.
 */
static XLogRedoAction
lock_left(XLogReaderState *record, RelFileLocator loc, BlockNumber left,
		  ReadBufferMode mode, Buffer *buffer)
{
	*buffer = standby_lock_merged(loc, left);
	if (BufferIsValid(*buffer))
		return action_of_locked(record, 1, *buffer);
	return XLogReadBufferForRedoExtended(record, 1, mode, false, buffer);
}

static void
redo_shift(XLogReaderState *record, RelFileLocator loc, BlockNumber left,
		   BlockNumber right)
{
	const xl_ip_shift *xlrec = (const xl_ip_shift *) XLogRecGetData(record);
	IndexTuple	hikey = shift_hikey(record);
	Buffer		lbuf;
	Buffer		rbuf;

	if (lock_left(record, loc, left, RBM_NORMAL, &lbuf) == BLK_NEEDS_REDO)
		redo_left(record, xlrec, hikey, lbuf);
	if (XLogReadBufferForRedo(record, 0, &rbuf) == BLK_NEEDS_REDO)
		redo_right(record, rbuf);
	standby_note_merge(loc, left, right);
	if (BufferIsValid(rbuf))
		UnlockReleaseBuffer(rbuf);
	if (BufferIsValid(lbuf))
		UnlockReleaseBuffer(lbuf);
	redo_parent(record, xlrec->off, hikey, right);
	pfree(hikey);
}

static void
redo_merge(XLogReaderState *record, RelFileLocator loc, BlockNumber left,
		   BlockNumber right)
{
	const xl_ip_merge *xlrec = (const xl_ip_merge *) XLogRecGetData(record);
	Buffer		lbuf;
	Buffer		rbuf;

	/* (it is made from scratch, whatever is on it) */
	(void) lock_left(record, loc, left, RBM_ZERO_AND_LOCK, &lbuf);
	if (XLogReadBufferForRedo(record, 0, &rbuf) == BLK_NEEDS_REDO)
		redo_right(record, rbuf);
	inplace_page_make_half_dead(BufferGetPage(lbuf), xlrec->prev, right);
	PageSetLSN(BufferGetPage(lbuf), record->EndRecPtr);
	MarkBufferDirty(lbuf);
	standby_note_merge(loc, left, right);
	if (BufferIsValid(rbuf))
		UnlockReleaseBuffer(rbuf);
	UnlockReleaseBuffer(lbuf);
	redo_parent(record, xlrec->off, NULL, right);
}

/* the left page is locked first, as everywhere in nbtree */
void
inplace_redo_merge(XLogReaderState *record)
{
	RelFileLocator loc;
	BlockNumber left;
	BlockNumber right;

	XLogRecGetBlockTag(record, 0, &loc, NULL, &right);
	XLogRecGetBlockTag(record, 1, NULL, NULL, &left);

	if (*(const uint16 *) XLogRecGetData(record) & XLIP_SHIFT)
		redo_shift(record, loc, left, right);
	else
		redo_merge(record, loc, left, right);
}

/* ---------------- a page that has moved ---------------- */

static BlockNumber
block_if_any(XLogReaderState *record, uint8 id)
{
	BlockNumber blk;

	if (!XLogRecHasBlockRef(record, id))
		return P_NONE;
	XLogRecGetBlockTag(record, id, NULL, NULL, &blk);
	return blk;
}

/* the page as it was before inplace_page_make_deleted(), as far as that looks at it */
static void
redo_from(XLogReaderState *record, const xl_ip_relocate *xlrec, BlockNumber to)
{
	Buffer		buffer = XLogInitBufferForRedo(record, WAL_MOVED_FROM);
	Page		page = BufferGetPage(buffer);

	_bt_pageinit(page, BLCKSZ);
	BTPageGetOpaque(page)->btpo_prev = block_if_any(record, WAL_MOVED_LEFT);
	BTPageGetOpaque(page)->btpo_level = xlrec->level;
	inplace_page_make_deleted(page, to, xlrec->safexid);
	PageSetLSN(page, record->EndRecPtr);
	MarkBufferDirty(buffer);
	UnlockReleaseBuffer(buffer);
}

static void
redo_link(XLogReaderState *record, uint8 id, const xl_ip_relocate *xlrec,
		  BlockNumber from, BlockNumber to)
{
	Buffer		buffer;

	if (!XLogRecHasBlockRef(record, id))
		return;
	if (XLogReadBufferForRedo(record, id, &buffer) == BLK_NEEDS_REDO)
	{
		Page		page = BufferGetPage(buffer);

		if (id == WAL_MOVED_LEFT)
			BTPageGetOpaque(page)->btpo_next = to;
		else if (id == WAL_MOVED_RIGHT)
			BTPageGetOpaque(page)->btpo_prev = to;
		else if (id == WAL_MOVED_META)
			inplace_page_set_root(page, from, to);
		else if (xlrec->off < FirstOffsetNumber ||
				 xlrec->off > PageGetMaxOffsetNumber(page))
			inplace_bad_record(record, "no downlink at its place");
		else
			inplace_page_set_downlink(page, xlrec->off, to);
		PageSetLSN(page, record->EndRecPtr);
		MarkBufferDirty(buffer);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

void
inplace_redo_relocate(XLogReaderState *record)
{
	const xl_ip_relocate *xlrec = (const xl_ip_relocate *) XLogRecGetData(record);
	BlockNumber to = block_if_any(record, WAL_MOVED_TO);
	BlockNumber from = block_if_any(record, WAL_MOVED_FROM);
	Buffer		buffer;

	if (XLogReadBufferForRedo(record, WAL_MOVED_TO, &buffer) != BLK_RESTORED)
		inplace_bad_record(record, "no image of the page");
	UnlockReleaseBuffer(buffer);
	redo_from(record, xlrec, to);
	for (uint8 id = WAL_MOVED_LEFT; id <= WAL_MOVED_META; id++)
		redo_link(record, id, xlrec, from, to);
}

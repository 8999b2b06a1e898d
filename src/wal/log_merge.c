/*-------------------------------------------------------------------------
 *
 * log_merge.c
 *	  Merging two leaf pages of an inplace_btree, or moving some entries from
 *	  one to the other (btree/merge.c): the changes to the pages, and their
 *	  records.  Replay is in redo/redo_btree.c.
 *
 * The record is an XLOG_IP_VACUUM with XLIP_MERGE, or XLIP_SHIFT, too (wal.h).  Its
 * pages are nbtree's, and what is left of them is as nbtree's own records would have
 * it.
 *
 * Replay has both leaf pages locked while it changes them, so a scan that comes to
 * one of them sees all of it.  For scans that have been there see btree/README.md
 * and btree/standby_scan.c.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/nbtree.h"
#include "access/xloginsert.h"
#include "page/protect.h"
#include "rmgr.h"
#include "wal/log_btree.h"
#include "wal/wal.h"

/* ---------------- the pages ---------------- */

static bool
copy_items(Page to, Page from, OffsetNumber first, OffsetNumber last)
{
	for (OffsetNumber off = first; off <= last; off++)
	{
		ItemId		lp = PageGetItemId(from, off);
		OffsetNumber at = OffsetNumberNext(PageGetMaxOffsetNumber(to));

		if (PageAddItem(to, (Item) PageGetItem(from, lp), ItemIdGetLength(lp),
						at, false, false) != at)
			return false;
		if (ItemIdIsDead(lp))
			ItemIdMarkDead(PageGetItemId(to, at));
	}
	return true;
}

static bool
add_entries(Page to, const char *entries, Size len)
{
	const char *p = entries;

	while (p < entries + len)
	{
		IndexTupleData header;
		Size		size;
		OffsetNumber at = OffsetNumberNext(PageGetMaxOffsetNumber(to));

		/* (not aligned in a WAL record) */
		memcpy(&header, p, sizeof(header));
		size = MAXALIGN(IndexTupleSize(&header));
		if (size < sizeof(IndexTupleData) || size > entries + len - p ||
			PageAddItem(to, (Item) p, size, at, false, false) != at)
			return false;
		p += size;
	}
	return true;
}

/*
 * Make "result" the page "right", with the entries, one after the other, before
 * its own.  False if they do not fit.
 */
bool
inplace_page_merge(Page result, Page right, const char *entries, Size len)
{
	BTPageOpaque opaque = BTPageGetOpaque(right);
	OffsetNumber first = P_FIRSTDATAKEY(opaque);

	_bt_pageinit(result, BLCKSZ);
	*BTPageGetOpaque(result) = *opaque;
	PageSetLSN(result, PageGetLSN(right));
	return copy_items(result, right, FirstOffsetNumber, first - 1) &&
		add_entries(result, entries, len) &&
		copy_items(result, right, first, PageGetMaxOffsetNumber(right));
}

/* what is left of the left page: what nbtree makes of an empty one */
void
inplace_page_make_half_dead(Page page, BlockNumber prev, BlockNumber next)
{
	XLogRecPtr	lsn = PageGetLSN(page);
	BTPageOpaque opaque;
	IndexTupleData hikey;

	_bt_pageinit(page, BLCKSZ);
	PageSetLSN(page, lsn);
	opaque = BTPageGetOpaque(page);
	opaque->btpo_prev = prev;
	opaque->btpo_next = next;
	opaque->btpo_level = 0;
	opaque->btpo_flags = BTP_HALF_DEAD | BTP_LEAF;
	opaque->btpo_cycleid = 0;

	memset(&hikey, 0, sizeof(hikey));
	hikey.t_info = sizeof(IndexTupleData);
	BTreeTupleSetTopParent(&hikey, InvalidBlockNumber);
	if (PageAddItem(page, (Item) &hikey, sizeof(hikey), P_HIKEY,
					false, false) != P_HIKEY)
		elog(ERROR, "could not add a high key to an empty page");
}

/* the downlink at "off" leads to "right" from now on, and the next one goes */
void
inplace_page_drop_downlink(Page page, OffsetNumber off, BlockNumber right)
{
	IndexTuple	itup = (IndexTuple) PageGetItem(page, PageGetItemId(page, off));

	BTreeTupleSetDownLink(itup, right);
	PageIndexTupleDelete(page, OffsetNumberNext(off));
}

/*
 * Make "result" the page "left" with the entries before "first" only, and another
 * high key.  False if there is no room for that.
 */
bool
inplace_page_cut(Page result, Page left, IndexTuple hikey, OffsetNumber first)
{
	BTPageOpaque opaque = BTPageGetOpaque(left);

	_bt_pageinit(result, BLCKSZ);
	*BTPageGetOpaque(result) = *opaque;
	PageSetLSN(result, PageGetLSN(left));
	return PageAddItem(result, (Item) hikey, IndexTupleSize(hikey), P_HIKEY,
					   false, false) == P_HIKEY &&
		copy_items(result, left, P_FIRSTDATAKEY(opaque), first - 1);
}

/* the downlink after the one at "off", which leads to "right", gets another key */
bool
inplace_page_rekey_downlink(Page page, OffsetNumber off, IndexTuple hikey,
							BlockNumber right)
{
	union
	{
		IndexTupleData itup;
		char		data[BLCKSZ];
	}			pivot;
	Size		size = IndexTupleSize(hikey);

	memcpy(&pivot, hikey, size);
	BTreeTupleSetDownLink(&pivot.itup, right);
	return PageIndexTupleOverwrite(page, OffsetNumberNext(off), (Item) &pivot, size);
}

/* ---------------- the records ---------------- */

/* as those of log_vacuum.c */
void
inplace_log_merge(Buffer right, Buffer left, Buffer parent, OffsetNumber off,
				  BlockNumber prev, const char *entries, Size len)
{
	xl_ip_merge xlrec;
	XLogRecPtr	lsn;

	xlrec.what = XLIP_MERGE;
	xlrec.off = off;
	xlrec.prev = prev;
	XLogBeginInsert();
	XLogRegisterData((char *) &xlrec, SizeOfIpMerge);
	XLogRegisterBuffer(0, right, REGBUF_STANDARD);
	XLogRegisterBufData(0, unconstify(char *, entries), len);
	XLogRegisterBuffer(1, left, REGBUF_WILL_INIT);
	XLogRegisterBuffer(2, parent, REGBUF_STANDARD);
	lsn = inplace_xlog_insert(XLOG_IP_VACUUM);
	PageSetLSN(BufferGetPage(right), lsn);
	PageSetLSN(BufferGetPage(left), lsn);
	PageSetLSN(BufferGetPage(parent), lsn);
}

void
inplace_log_shift(Buffer right, Buffer left, Buffer parent, OffsetNumber off,
				  OffsetNumber first, IndexTuple hikey, const char *entries,
				  Size len)
{
	xl_ip_shift xlrec;
	XLogRecPtr	lsn;

	xlrec.what = XLIP_MERGE | XLIP_SHIFT;
	xlrec.off = off;
	xlrec.first = first;
	XLogBeginInsert();
	XLogRegisterData((char *) &xlrec, SizeOfIpShift);
	XLogRegisterData((char *) hikey, IndexTupleSize(hikey));
	XLogRegisterBuffer(0, right, REGBUF_STANDARD);
	XLogRegisterBufData(0, unconstify(char *, entries), len);
	XLogRegisterBuffer(1, left, REGBUF_STANDARD);
	XLogRegisterBuffer(2, parent, REGBUF_STANDARD);
	lsn = inplace_xlog_insert(XLOG_IP_VACUUM);
	PageSetLSN(BufferGetPage(right), lsn);
	PageSetLSN(BufferGetPage(left), lsn);
	PageSetLSN(BufferGetPage(parent), lsn);
}

/*-------------------------------------------------------------------------
 *
 * log_relocate.c
 *	  A page of a btree that has moved to another block (btree/shorten.c): the changes
 *	  to the pages, and their record.  Replay is in redo/redo_btree.c.
 *
 * The record is an XLOG_IP_VACUUM with XLIP_MERGE and XLIP_RELOCATE (wal.h).  Its
 * pages are nbtree's, and what is left of them is as nbtree's own records would have
 * it.  Replay need not care for scans: the lock that the change is made under is replayed
 * before, so no query on the standby has the index locked any more.
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

void
inplace_page_copy(Page to, Page from)
{
	memcpy(to, from, BLCKSZ);
	/* (this would be of a VACUUM that has ended) */
	BTPageGetOpaque(to)->btpo_cycleid = 0;
}

/* what is left of the page: one that has been deleted, its keys moved to "to" */
void
inplace_page_make_deleted(Page page, BlockNumber to, FullTransactionId safexid)
{
	XLogRecPtr	lsn = PageGetLSN(page);
	BTPageOpaqueData old = *BTPageGetOpaque(page);
	BTPageOpaque opaque;

	_bt_pageinit(page, BLCKSZ);
	PageSetLSN(page, lsn);
	opaque = BTPageGetOpaque(page);
	opaque->btpo_prev = old.btpo_prev;
	opaque->btpo_next = to;
	opaque->btpo_level = old.btpo_level;
	opaque->btpo_flags = old.btpo_level == 0 ? BTP_LEAF : 0;
	opaque->btpo_cycleid = 0;
	BTPageSetDeleted(page, safexid);
}

void
inplace_page_set_downlink(Page page, OffsetNumber off, BlockNumber to)
{
	BTreeTupleSetDownLink((IndexTuple) PageGetItem(page, PageGetItemId(page, off)), to);
}

void
inplace_page_set_root(Page page, BlockNumber from, BlockNumber to)
{
	BTMetaPageData *meta = BTPageGetMeta(page);

	if (meta->btm_root == from)
		meta->btm_root = to;
	if (meta->btm_fastroot == from)
		meta->btm_fastroot = to;
}

/* ---------------- the record ---------------- */

static void
register_if_any(uint8 id, Buffer buffer)
{
	if (BufferIsValid(buffer))
		XLogRegisterBuffer(id, buffer, REGBUF_STANDARD);
}

static void
set_lsn_if_any(Buffer buffer, XLogRecPtr lsn)
{
	if (BufferIsValid(buffer))
		PageSetLSN(BufferGetPage(buffer), lsn);
}

/* block references beyond number 4 have to be asked for, before the critical section */
void
inplace_log_relocate_room(void)
{
	XLogEnsureRecordSpace(WAL_MOVED_META, 0);
}

void
inplace_log_relocate(const PageMove *move)
{
	xl_ip_relocate xlrec;
	XLogRecPtr	lsn;

	xlrec.what = XLIP_MERGE | XLIP_RELOCATE;
	xlrec.off = move->off;
	xlrec.level = BTPageGetOpaque(BufferGetPage(move->from))->btpo_level;
	xlrec.safexid = move->safexid;
	XLogBeginInsert();
	XLogRegisterData((char *) &xlrec, SizeOfIpRelocate);
	XLogRegisterBuffer(WAL_MOVED_TO, move->to, REGBUF_FORCE_IMAGE | REGBUF_STANDARD);
	XLogRegisterBuffer(WAL_MOVED_FROM, move->from, REGBUF_WILL_INIT);
	register_if_any(WAL_MOVED_LEFT, move->left);
	register_if_any(WAL_MOVED_RIGHT, move->right);
	register_if_any(WAL_MOVED_PARENT, move->parent);
	register_if_any(WAL_MOVED_META, move->meta);
	lsn = inplace_xlog_insert(XLOG_IP_VACUUM);
	PageSetLSN(BufferGetPage(move->to), lsn);
	PageSetLSN(BufferGetPage(move->from), lsn);
	set_lsn_if_any(move->left, lsn);
	set_lsn_if_any(move->right, lsn);
	set_lsn_if_any(move->parent, lsn);
	set_lsn_if_any(move->meta, lsn);
}

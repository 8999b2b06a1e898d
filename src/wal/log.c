/*-------------------------------------------------------------------------
 *
 * log.c
 *	  Writing the WAL records of row changes.
 *
 * All are called inside the critical section of the change, after it was
 * made, with the pages locked and marked dirty.  The exception is an update
 * that leaves the old row to the page: its data page is changed afterwards
 * (log_update.c).
 *
 * A permanent table whose storage is new in this transaction may go without
 * WAL (wal_level = minimal), but its undo lives in a relation that never
 * does: that undo is then logged alone.
 *
 * Undo pages without a block reference
 *	  A block reference to the undo page is a third of a small record.  The
 *	  compact records do without it, and name the page in their data, when a
 *	  record since the last redo pointer has referred to the page already.
 *	  So each undo page is still referred to once in every checkpoint cycle
 *	  in which it changes, before anything else is done to it.  That record
 *	  has its full-page image, or initialises it, and tells the programs that look
 *	  at references only: pg_rewind and incremental backup, which both look from
 *	  a redo pointer on, or replay from it with full-page images.
 *
 *	  If the redo pointer moves between the decision and the insertion of the
 *	  record, a record with the reference follows at once, while the undo page
 *	  is still locked and has its LSN of before: so nobody has written it in
 *	  between, and replay of the first record finds it whole.  WAL may end
 *	  between the two; for what becomes of the page then see redo_compact.c.
 *
 * The visibility map
 *	  A record that clears bits of the map refers to the map's page too:
 *	  incremental backup, which looks at references only, must learn that the page
 *	  has changed.  There is no image of it and replay does not use the reference:
 *	  it clears the bits, as it would without one.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/visibilitymapdefs.h"
#include "access/xlog.h"
#include "page/delta.h"
#include "page/page.h"
#include "page/protect.h"
#include "page/tuple.h"
#include "rmgr.h"
#include "undo/append.h"
#include "wal/log.h"
#include "wal/log_move.h"
#include "wal/logical.h"
#include "wal/wal.h"

/* register the undo page with its records; returns nothing to keep */
static void
register_undo(UndoInsert *ui, uint8 block_id, const uint16 *undo_off,
			  const char *undo, Size undo_len)
{
	UndoRegister(ui, block_id);
	if (undo)
	{
		XLogRegisterBufData(block_id, (char *) undo_off, sizeof(uint16));
		XLogRegisterBufData(block_id, (char *) undo, undo_len);
	}
}

/* blocks of a table that one page of its visibility map is about */
#define BLOCKS_PER_MAP_PAGE \
	((BLCKSZ - MAXALIGN(SizeOfPageHeaderData)) * \
	 (BITS_PER_BYTE / BITS_PER_HEAPBLOCK))

/*
 * Refer to the page of the visibility map that has blk's bits.  It may be
 * changing, for it is not locked any more.  So where an image is taken for
 * wal_consistency_checking it is one of an empty page: all that is left of a map
 * page when it is masked (inplace_mask) is its header.
 */
static void
register_map(uint8 block_id, Relation rel, BlockNumber blk)
{
	static PGAlignedBlock empty;

	if (PageIsNew((Page) empty.data))
		PageInit((Page) empty.data, BLCKSZ, 0);
	XLogRegisterBlock(block_id, &RelLocator(rel), VISIBILITYMAP_FORKNUM,
					  blk / BLOCKS_PER_MAP_PAGE, (Page) empty.data,
					  REGBUF_STANDARD | REGBUF_NO_IMAGE);
}

/* for a record with one data page; flags are XLIP_CLEAR_* */
static void
register_cleared(uint8 flags, Relation rel, Buffer buffer)
{
	if (flags & (XLIP_CLEAR_VISIBLE | XLIP_CLEAR_FROZEN))
		register_map(WAL_BLOCK_MAP, rel, BufferGetBlockNumber(buffer));
}

/* main data: the flags, and what logical decoding needs; both must stay */
static void
register_main(uint8 *flags, const LogicalChange *lc)
{
	if (lc)
		*flags |= XLIP_LOGICAL;
	if (*flags)
		XLogRegisterData((char *) flags, 1);
	if (lc)
	{
		XLogRegisterData((char *) &lc->what, 1);
		if (lc->len > 0)
			XLogRegisterData(lc->tuples, lc->len);
	}
}

void
inplace_log_undo_alone(UndoInsert *ui, const char *undo, Size undo_len)
{
	uint16		undo_off;

	if (ui == NULL || !ui->needs_wal)
		return;
	undo_off = UndoPtrOffset(ui->ptr);
	XLogBeginInsert();
	register_undo(ui, 0, &undo_off, undo, undo_len);
	UndoSetLSN(ui, inplace_xlog_insert(XLOG_IP_UNDO));
}

/*
 * Has a record since the redo pointer that this backend knows of referred to
 * the undo page?  wal_consistency_checking looks at referred pages only.
 */
static bool
referred_since_redo(const UndoInsert *ui)
{
	XLogRecPtr	redo;
	bool		full_page_writes;

	GetFullPageWriteInfo(&redo, &full_page_writes);
	return PageGetLSN(BufferGetPage(ui->buffer)) > redo;
}

char *
inplace_wal_put_undo_place(char *p, UndoInsert *ui, RelFileLocator table)
{
	uint16		undo_off = UndoPtrOffset(ui->ptr);

	if (ui->from_page)
		undo_off |= XLIP_FROM_PAGE;
	memcpy(p, &undo_off, sizeof(undo_off));
	p += sizeof(undo_off);

	ui->by_name = ui->needs_wal && !ui->init &&
		UndoPtrBlock(ui->ptr) <= MAX_NAMED_UNDO_BLOCK &&
		!wal_consistency_checking[RM_INPLACE_ID] && referred_since_redo(ui);
	if (ui->by_name)
	{
		RelFileLocator loc;
		ForkNumber	fork;
		BlockNumber blk;
		bool		same_spc;

		BufferGetTag(ui->buffer, &loc, &fork, &blk);
		Assert(LocatorDb(loc) == LocatorDb(table));
		same_spc = LocatorSpc(loc) == LocatorSpc(table);
		p = varint_put(p, blk << 1 | (same_spc ? 0 : 1));
		p = varint_put(p, LocatorRel(table) - LocatorRel(loc));
		if (!same_spc)
			p = varint_put(p, LocatorSpc(loc));
	}
	return p;
}

static void
finish(uint8 info, Buffer buf, UndoInsert *ui)
{
	XLogRecPtr	lsn = inplace_xlog_insert(info);

	PageSetLSN(BufferGetPage(buf), lsn);
	if (ui)
		UndoSetLSN(ui, lsn);
}

void
inplace_log_insert(Relation rel, Buffer buffer, OffsetNumber off,
				   bool init_page, bool clear, const LogicalChange *lc)
{
	Page		page = BufferGetPage(buffer);
	ItemId		lp = PageGetItemId(page, off);
	InplaceTupleHeader tup = (InplaceTupleHeader) PageGetItem(page, lp);
	uint8		flags = clear ? XLIP_CLEAR_VISIBLE : 0;
	char		head[5];

	if (!RelationNeedsWAL(rel))
		return;

	memcpy(head, &off, 2);
	head[2] = (tup->t_infomask & IP_FROZEN) ? XLIP_FROZEN : 0;
	memcpy(head + 3, &tup->t_natts, 2);

	XLogBeginInsert();
	register_main(&flags, lc);
	XLogRegisterBuffer(0, buffer,
					   REGBUF_STANDARD | (init_page ? REGBUF_WILL_INIT : 0));
	XLogRegisterBufData(0, head, sizeof(head));
	XLogRegisterBufData(0, (char *) tup + SizeOfInplaceTupleHeader,
						ItemIdGetLength(lp) - SizeOfInplaceTupleHeader);
	register_cleared(flags, rel, buffer);
	XLogSetRecordFlags(XLOG_INCLUDE_ORIGIN);
	finish(XLOG_IP_INSERT, buffer, NULL);
}

void
inplace_log_multi_insert(Relation rel, Buffer buffer, const OffsetNumber *offs,
						 int n, bool init_page, bool clear, char *scratch,
						 const LogicalChange *lc)
{
	Page		page = BufferGetPage(buffer);
	uint8		flags = clear ? XLIP_CLEAR_VISIBLE : 0;
	char	   *p = scratch;
	uint16		count = n;

	if (!RelationNeedsWAL(rel))
		return;

	*p++ = (PageGetTupleAt(page, offs[0])->t_infomask & IP_FROZEN) ?
		XLIP_FROZEN : 0;
	memcpy(p, &count, 2);
	p += 2;
	for (int i = 0; i < n; i++)
	{
		ItemId		lp = PageGetItemId(page, offs[i]);
		InplaceTupleHeader tup = (InplaceTupleHeader) PageGetItem(page, lp);
		uint16		len = ItemIdGetLength(lp) - SizeOfInplaceTupleHeader;

		memcpy(p, &offs[i], 2);
		memcpy(p + 2, &tup->t_natts, 2);
		memcpy(p + 4, &len, 2);
		memcpy(p + 6, (char *) tup + SizeOfInplaceTupleHeader, len);
		p += 6 + len;
	}

	XLogBeginInsert();
	register_main(&flags, lc);
	XLogRegisterBuffer(0, buffer,
					   REGBUF_STANDARD | (init_page ? REGBUF_WILL_INIT : 0));
	XLogRegisterBufData(0, scratch, p - scratch);
	register_cleared(flags, rel, buffer);
	XLogSetRecordFlags(XLOG_INCLUDE_ORIGIN);
	finish(XLOG_IP_MULTI_INSERT, buffer, NULL);
}

/* a header change, with or without undo */
static void
log_header(Relation rel, Buffer buffer, uint8 info, OffsetNumber off,
		   uint8 flags, UndoInsert *ui, const char *undo, Size undo_len)
{
	Page		page = BufferGetPage(buffer);
	uint16		undo_off;

	if (!RelationNeedsWAL(rel))
	{
		inplace_log_undo_alone(ui, undo, undo_len);
		return;
	}

	XLogBeginInsert();
	if (flags)
		XLogRegisterData((char *) &flags, 1);
	XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
	XLogRegisterBufData(0, (char *) &off, sizeof(off));
	XLogRegisterBufData(0, (char *) PageGetTupleAt(page, off),
						SizeOfInplaceTupleHeader);
	if (ui)
	{
		undo_off = UndoPtrOffset(ui->ptr);
		register_undo(ui, 1, &undo_off, undo, undo_len);
	}
	register_cleared(flags, rel, buffer);
	XLogSetRecordFlags(XLOG_INCLUDE_ORIGIN);
	finish(info, buffer, ui);
}

void
inplace_log_header(Relation rel, Buffer buffer, OffsetNumber off,
				   bool clear_frozen, UndoInsert *ui, const char *undo, Size undo_len)
{
	log_header(rel, buffer, ui ? XLOG_IP_LOCK : XLOG_IP_HEADER, off,
			   clear_frozen ? XLIP_CLEAR_FROZEN : 0, ui, undo, undo_len);
}

/* a whole row, with or without undo */
static void
log_row(Relation rel, Buffer buffer, uint8 info, OffsetNumber off,
		InplaceTupleHeader tup, Size len, UndoInsert *ui,
		const char *undo, Size undo_len)
{
	uint16		undo_off;
	bool		only;			/* the record is all there is on the page */

	if (!RelationNeedsWAL(rel))
	{
		inplace_log_undo_alone(ui, undo, undo_len);
		return;
	}

	/* the first version of a row is added, others take its place and room */
	only = info == XLOG_IP_PUSH && ui == NULL && off == FirstOffsetNumber &&
		PageGetMaxOffsetNumber(BufferGetPage(buffer)) == FirstOffsetNumber;

	XLogBeginInsert();
	XLogRegisterBuffer(0, buffer, REGBUF_STANDARD | (only ? REGBUF_WILL_INIT : 0));
	XLogRegisterBufData(0, (char *) &off, sizeof(off));
	XLogRegisterBufData(0, (char *) tup, len);
	if (ui)
	{
		undo_off = UndoPtrOffset(ui->ptr);
		register_undo(ui, 1, &undo_off, undo, undo_len);
	}
	finish(info, buffer, ui);
}

void
inplace_log_restore(Relation rel, Buffer buffer, OffsetNumber off,
					InplaceTupleHeader tup, Size len, UndoInsert *ui,
					const char *undo, Size undo_len)
{
	log_row(rel, buffer, XLOG_IP_RESTORE, off, tup, len, ui, undo, undo_len);
}

void
inplace_log_push(Relation rel, Buffer buffer, OffsetNumber off,
				 InplaceTupleHeader tup, Size len, UndoInsert *ui,
				 const char *undo, Size undo_len)
{
	log_row(rel, buffer, XLOG_IP_PUSH, off, tup, len, ui, undo, undo_len);
}

/* taking back bare deletes: the headers follow from those on the page */
void
inplace_log_undo_deletes(Relation rel, Buffer buffer,
						 const OffsetNumber *offs, int n)
{
	uint8		what = XLIP_BARE_DELETES;

	XLogBeginInsert();
	XLogRegisterData((char *) &what, sizeof(what));
	XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
	XLogRegisterBufData(0, (char *) offs, n * sizeof(OffsetNumber));
	finish(XLOG_IP_RESTORE, buffer, NULL);
}

/*
 * After the insertion of a compact record: does its undo need a record of its
 * own?  If the page was named, and none since the redo pointer has referred to
 * it; or if the old row was left to a data page that turns out not to be
 * protected (log_update.c).  What this backend knows of the redo pointer and of
 * full_page_writes was brought up to date by the insertion.
 */
static bool
undo_needs_record(const UndoInsert *ui, XLogRecPtr data_page_lsn)
{
	XLogRecPtr	redo;
	bool		full_page_writes;

	if (ui->by_name && !referred_since_redo(ui))
		return true;
	if (!ui->from_page)
		return false;
	GetFullPageWriteInfo(&redo, &full_page_writes);
	return unlikely(!full_page_writes) && data_page_lsn <= redo;
}

/*
 * After the insertion of a record that may be compact: its undo is logged, alone if need
 * be.  "before" is the data page's LSN of before.  Returns the LSN before which the data
 * page must not be written.
 */
static XLogRecPtr
finish_undo(UndoInsert *ui, Size undo_len, XLogRecPtr before, XLogRecPtr lsn)
{
	if (unlikely(undo_needs_record(ui, before)))
	{
		inplace_log_undo_alone(ui, (char *) BufferGetPage(ui->buffer) +
							   UndoPtrOffset(ui->ptr), undo_len);
		return PageGetLSN(BufferGetPage(ui->buffer));
	}
	UndoSetLSN(ui, lsn);
	return lsn;
}

/*
 * UPDATE and DELETE: their data are kept.  Redo makes the undo page from them,
 * and of a bare delete looks at them first of all.
 */
void
inplace_log_change(Relation rel, Buffer buffer, uint8 info, const char *data, Size len,
				   bool clear, UndoInsert *ui, const char *undo, Size undo_len,
				   const LogicalChange *lc)
{
	Page		page = BufferGetPage(buffer);
	uint8		flags = clear ? XLIP_CLEAR_VISIBLE : 0;
	uint16		undo_off = 0;
	XLogRecPtr	before = PageGetLSN(page);
	XLogRecPtr	lsn;

	XLogBeginInsert();
	register_main(&flags, lc);
	XLogRegisterBuffer(0, buffer, REGBUF_STANDARD | REGBUF_KEEP_DATA);
	XLogRegisterBufData(0, (char *) data, len);
	if (ui)
		undo_off = UndoPtrOffset(ui->ptr);
	if (ui && !ui->by_name)
		register_undo(ui, 1, &undo_off, undo, undo_len);
	register_cleared(flags, rel, buffer);
	XLogSetRecordFlags(XLOG_INCLUDE_ORIGIN);
	lsn = inplace_xlog_insert(info);

	if (ui)
		lsn = finish_undo(ui, undo_len, before, lsn);
	PageSetLSN(page, lsn);
}

void
inplace_log_move(const MoveRecord *m)
{
	uint8		flags = (m->clear ? XLIP_CLEAR_VISIBLE : 0) |
		(m->clear_old ? XLIP_CLEAR_VISIBLE_OLD : 0);
	uint16		undo_off = UndoPtrOffset(m->ui->ptr);
	bool		same = m->oldbuf == m->newbuf;
	bool		compact;
	const char *data;
	Size		len;
	XLogRecPtr	lsn;

	if (!RelationNeedsWAL(m->rel))
	{
		inplace_log_undo_alone(m->ui, m->undo, m->undo_len);
		return;
	}

	data = inplace_move_data(m, &len, &compact);
	XLogBeginInsert();
	register_main(&flags, m->lc);
	XLogRegisterBuffer(0, m->newbuf,
					   REGBUF_STANDARD | (m->init_page ? REGBUF_WILL_INIT : 0) |
					   (compact ? REGBUF_KEEP_DATA : 0));
	XLogRegisterBufData(0, (char *) data, len);
	if (!m->ui->by_name)
		register_undo(m->ui, 1, &undo_off, compact ? NULL : m->undo, m->undo_len);
	if (!same)
	{
		XLogRegisterBuffer(2, m->oldbuf, REGBUF_STANDARD);
		if (!compact)
		{
			XLogRegisterBufData(2, (char *) &m->oldoff, sizeof(m->oldoff));
			XLogRegisterBufData(2, (char *) PageGetTupleAt(BufferGetPage(m->oldbuf), m->oldoff),
								SizeOfInplaceTupleHeader);
		}
	}
	register_cleared(flags, m->rel, m->newbuf);
	if (m->clear_old &&
		(!m->clear ||
		 BufferGetBlockNumber(m->oldbuf) / BLOCKS_PER_MAP_PAGE !=
		 BufferGetBlockNumber(m->newbuf) / BLOCKS_PER_MAP_PAGE))
		register_map(WAL_BLOCK_MAP_OLD, m->rel, BufferGetBlockNumber(m->oldbuf));
	XLogSetRecordFlags(XLOG_INCLUDE_ORIGIN);
	lsn = inplace_xlog_insert(XLOG_IP_MOVE);
	lsn = finish_undo(m->ui, m->undo_len, InvalidXLogRecPtr, lsn);
	PageSetLSN(BufferGetPage(m->newbuf), lsn);
	if (!same)
		PageSetLSN(BufferGetPage(m->oldbuf), lsn);
}

/*-------------------------------------------------------------------------
 *
 * redo_evict.c
 *	  Replay of deleted rows' eviction.
 *
 * Why the rows are on the page, and the record: wal/log_evict.c.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/xlogutils.h"
#include "page/tuple.h"
#include "redo/redo.h"
#include "undo/record.h"
#include "undo/undo.h"
#include "wal/log.h"
#include "wal/log_evict.h"
#include "wal/wal.h"

/*
 * The undo records, by the function that made them in the first place.
 */
static Size
rebuild_undo(XLogReaderState *record, Page page, const EvictedRow *rows, int n,
			 char *dst)
{
	RelFileLocator loc;
	BlockNumber blk = block_location(record, 0, &loc);
	Size		len = 0;

	for (int i = 0; i < n; i++)
	{
		InplaceTupleHeader tup = PageGetTupleAt(page, rows[i].off);

		if (len + rows[i].undo_len > UNDO_MAX_RECORD)
			inplace_bad_record(record, "too many evicted rows");
		len += UndoBuildEvicted(dst + len, loc, blk, &rows[i], tup,
								inplace_tuple_len(tup,
												  ItemIdGetLength(PageGetItemId(page, rows[i].off))));
	}
	return len;
}

static int
get_rows(XLogReaderState *record, const char *p, const char *end, Page page,
		 EvictedRow *rows)
{
	int			n;

	inplace_redo_check_page(record, page);
	n = inplace_wal_get_evicted(p, end, page, rows);
	if (n < 0)
		inplace_bad_record(record, "damaged eviction");
	return n;
}

static void
redo_evict_from_page(XLogReaderState *record, const char *data, Size len)
{
	static char undo[UNDO_MAX_RECORD];
	static EvictedRow rows[InplaceMaxTuplesPerPage];
	const char *end = data + len;
	const char *p;
	UndoPlace	place;
	Buffer		buffer;
	Page		page;
	XLogRedoAction action;
	int			n;
	Size		undo_len;

	p = inplace_wal_get_undo_place(record, data + sizeof(uint16), end, &place);
	if (p == NULL)
		inplace_bad_record(record, "damaged eviction");

	action = XLogReadBufferForRedo(record, 0, &buffer);
	if (action != BLK_NEEDS_REDO && action != BLK_RESTORED)
	{
		/* then the next record has the undo */
		inplace_redo_undo_place(record, &place, NULL, 0);
		if (BufferIsValid(buffer))
			UnlockReleaseBuffer(buffer);
		return;
	}

	page = BufferGetPage(buffer);
	n = get_rows(record, p, end, page, rows);
	undo_len = rebuild_undo(record, page, rows, n, undo);
	inplace_redo_undo_place(record, &place, undo, undo_len);

	/* as for an update (redo_update.c) */
	if (unlikely(action == BLK_NEEDS_REDO && PageGetLSN(page) <= GetRedoRecPtr()))
	{
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		inplace_redo_undo_to_disk(&place);
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	}

	inplace_page_apply_evict(page, rows, n, UndoPtrMake(place.block, place.offset));
	finish_page(record, buffer);
	UnlockReleaseBuffer(buffer);
}

void
inplace_redo_evict(XLogReaderState *record, const char *data, Size len)
{
	static EvictedRow rows[InplaceMaxTuplesPerPage];
	RelFileLocator undo_loc;
	BlockNumber undo_blk;
	uint16		undo_off;
	uint16		w;
	Buffer		buffer;

	memcpy(&w, data, sizeof(w));
	if (w & XLIP_UPD_COMPACT)
	{
		redo_evict_from_page(record, data, len);
		return;
	}

	if (len < sizeof(w) + sizeof(undo_off))
		inplace_bad_record(record, "damaged eviction");
	memcpy(&undo_off, data + sizeof(w), sizeof(undo_off));
	undo_blk = block_location(record, 1, &undo_loc);
	inplace_redo_undo(record, 1);
	if (inplace_redo_row_page(record, 0, &buffer))
	{
		Page		page = BufferGetPage(buffer);
		int			n = get_rows(record, data + sizeof(w) + sizeof(undo_off),
								 data + len, page, rows);

		inplace_page_apply_evict(page, rows, n, UndoPtrMake(undo_blk, undo_off));
		finish_page(record, buffer);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

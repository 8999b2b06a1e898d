/*-------------------------------------------------------------------------
 *
 * log_evict.c
 *	  The WAL record of deleted rows that are evicted (row/evict.c), and the page
 *	  change that it stands for.
 *
 * The undo records have the rows, which are on the page when the WAL record is replayed.
 * So, as with an update, the record leaves them to the page, and is made before the
 * page is changed; log_update.c has the proof.  Where that does not go, the undo records
 * are in it whole.
 *
 * It is an XLOG_IP_UPDATE of line pointer 0, which no row has.  A version of inplace that
 * does not know it ends replay there.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/page.h"
#include "page/protect.h"
#include "page/tuple.h"
#include "rmgr.h"
#include "utils/rel.h"
#include "wal/log.h"
#include "wal/log_evict.h"
#include "wal/wal.h"

#define MAX_EVICT_DATA \
	(sizeof(uint16) + MAX_UNDO_PLACE + \
	 (UNDO_MAX_RECORD / (SizeOfUndoRecordHeader + SizeOfInplaceTupleHeader) + 1) * \
	 (sizeof(uint16) + SizeOfInplaceTupleHeader + sizeof(CommandId) + SizeOfUndoMoveLink))

static char record_data[MAX_EVICT_DATA];

static char *
put_bytes(char *p, const void *bytes, Size len)
{
	memcpy(p, bytes, len);
	return p + len;
}

static const char *
get_bytes(const char *p, const char *end, void *bytes, Size len)
{
	if (p == NULL || end - p < len)
		return NULL;
	memcpy(bytes, p, len);
	return p + len;
}

/*
 * Make the record's data, before the critical section: from the rows as they stand on
 * their page, and with the undo page locked.
 */
void
inplace_prepare_evict_record(EvictRecord *er)
{
	Page		page = BufferGetPage(er->buffer);
	char	   *p = record_data;
	uint16		w;

	er->from_page = false;
	er->len = 0;
	if (!RelationNeedsWAL(er->rel))
		return;

	er->from_page = !wal_consistency_checking[RM_INPLACE_ID] &&
		inplace_pages_protected();
	er->ui->from_page = er->from_page;
	w = er->from_page ? XLIP_UPD_COMPACT : 0;
	p = put_bytes(p, &w, sizeof(w));
	if (er->from_page)
		p = inplace_wal_put_undo_place(p, er->ui, RelLocator(er->rel));
	else
	{
		uint16		undo_off = UndoPtrOffset(er->ui->ptr);

		p = put_bytes(p, &undo_off, sizeof(undo_off));
	}

	for (int i = 0; i < er->n; i++)
	{
		const EvictedRow *row = &er->rows[i];

		w = row->off | (row->bare ? 0 : XLIP_EVICT_OLD);
		p = put_bytes(p, &w, sizeof(w));
		if (row->bare)
			continue;
		p = put_bytes(p, &row->old, SizeOfInplaceTupleHeader);
		p = put_bytes(p, &row->cid, sizeof(row->cid));
		if (PageGetTupleAt(page, row->off)->t_infomask & IP_MOVED)
			p = put_bytes(p, row->link, SizeOfUndoMoveLink);
	}
	er->len = p - record_data;
	Assert(er->len <= MAX_EVICT_DATA);
}

void
inplace_log_evict(const EvictRecord *er)
{
	if (!RelationNeedsWAL(er->rel))
		inplace_log_undo_alone(er->ui, er->undo, er->undo_len);
	else
		inplace_log_change(er->rel, er->buffer, XLOG_IP_UPDATE, record_data, er->len,
						   false, er->ui, er->from_page ? NULL : er->undo,
						   er->undo_len, NULL);
}

/*
 * The rows in the record's data, which begin at p.  Of the page, which is as it was before
 * the change, the header of each row is looked at, and its length.
 */
int
inplace_wal_get_evicted(const char *p, const char *end, Page page, EvictedRow *rows)
{
	int			n = 0;

	while (p != NULL && p < end)
	{
		EvictedRow *row = &rows[n];
		InplaceTupleHeader tup;
		ItemId		lp;
		uint16		w = 0;

		if (n++ == InplaceMaxTuplesPerPage)
			return -1;
		p = get_bytes(p, end, &w, sizeof(w));
		row->off = w & INPLACE_OFFSET_MASK;
		row->bare = (w & XLIP_EVICT_OLD) == 0;
		if (row->off < FirstOffsetNumber || row->off > PageGetMaxOffsetNumber(page) ||
			!ItemIdIsNormal(lp = PageGetItemId(page, row->off)))
			return -1;
		tup = (InplaceTupleHeader) PageGetItem(page, lp);
		if (!(tup->t_infomask & IP_DELETED) || HdrIsEvicted(tup) ||
			row->bare != HdrIsBareDelete(tup))
			return -1;
		row->undo_len = UndoEvictedSize(tup, inplace_tuple_len(tup, ItemIdGetLength(lp)));
		if (row->bare)
		{
			UndoBareDelete(tup, &row->cid, &row->old);
			continue;
		}
		p = get_bytes(p, end, &row->old, SizeOfInplaceTupleHeader);
		p = get_bytes(p, end, &row->cid, sizeof(row->cid));
		if (tup->t_infomask & IP_MOVED)
			p = get_bytes(p, end, row->link, SizeOfUndoMoveLink);
	}
	return p == NULL ? -1 : n;
}

void
inplace_page_apply_evict(Page page, const EvictedRow *rows, int n, UndoPtr first)
{
	UndoPtr		ptr = first;

	for (int i = 0; i < n; i++)
	{
		ItemId		lp = PageGetItemId(page, rows[i].off);

		HdrSetEvicted((InplaceTupleHeader) PageGetItem(page, lp), ptr);
		ItemIdSetNormal(lp, ItemIdGetOffset(lp), SizeOfInplaceTupleHeader);
		ptr += rows[i].undo_len;
	}
	inplace_page_compact(page);
	PageClearFull(page);
}

/*-------------------------------------------------------------------------
 *
 * log_move.c
 *	  The WAL record of an update that moves its row, in its two forms (wal.h).
 *
 * From a compact one redo makes the undo record and the old row's header, as from that
 * of a delete; and the new row from the old one, if both are on one page.  Then there is
 * either an image of that page, with both rows, or the old row stands there as it did.
 * If locks are kept, or older versions may be needed, the record has undo and header
 * whole.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/page.h"
#include "undo/undo.h"
#include "utils/rel.h"
#include "wal/log.h"
#include "wal/log_move.h"
#include "wal/wal.h"

static char record_data[BLCKSZ * 2];

static char *
put_bytes(char *p, const void *bytes, Size len)
{
	memcpy(p, bytes, len);
	return p + len;
}

#ifdef USE_ASSERT_CHECKING
static bool
leads_to(const char *delta, Size delta_len, const MoveRecord *m, const char *newimg,
		 Size newlen)
{
	static char made[BLCKSZ];
	Page		page = BufferGetPage(m->oldbuf);
	ItemId		lp = PageGetItemId(page, m->oldoff);
	InplaceTupleHeader old = PageGetTupleAt(page, m->oldoff);

	return delta_apply(delta, delta_len, (const char *) old + SizeOfInplaceTupleHeader,
					   inplace_tuple_len(old, ItemIdGetLength(lp)) - SizeOfInplaceTupleHeader,
					   made, sizeof(made)) == newlen &&
		memcmp(made, newimg, newlen) == 0;
}
#endif

static Size
build_compact(const MoveRecord *m, const UndoRecordHeader *uh)
{
	InplaceTupleHeader oldtup = PageGetTupleAt(BufferGetPage(m->oldbuf), m->oldoff);
	Page		newpage = BufferGetPage(m->newbuf);
	ItemId		newlp = PageGetItemId(newpage, m->newoff);
	InplaceTupleHeader newtup = (InplaceTupleHeader) PageGetItem(newpage, newlp);
	const char *newimg = (const char *) newtup + SizeOfInplaceTupleHeader;
	Size		newlen = ItemIdGetLength(newlp) - SizeOfInplaceTupleHeader;
	uint16		w = m->oldoff | XLIP_UPD_COMPACT;
	char	   *p = record_data;

	if (uh->ur_cid != FirstCommandId)
		w |= XLIP_UPD_CID;
	if (oldtup->t_infomask & IP_KEYS_UPDATED)
		w |= XLIP_UPD_KEYS;
	if (uh->ur_flags & UR_FROZEN)
		w |= XLIP_UPD_OLD_FROZEN;

	p = put_bytes(p, &w, sizeof(w));
	p = inplace_wal_put_undo_place(p, m->ui, RelLocator(m->rel));
	p = varint_put(p, uh->ur_xid - m->base->t_xid);
	if (w & XLIP_UPD_CID)
		p = varint_put(p, uh->ur_cid);
	p = put_bytes(p, &m->newoff, sizeof(m->newoff));
	p = put_bytes(p, &newtup->t_natts, sizeof(uint16));
	if (m->oldbuf == m->newbuf)
	{
		Size		len = delta_encode(m->edits, false,
									   (const char *) oldtup + SizeOfInplaceTupleHeader,
									   newimg, p);

		Assert(leads_to(p, len, m, newimg, newlen));
		p += len;
	}
	else
		p = put_bytes(p, newimg, newlen);
	return p - record_data;
}

static Size
build_plain(const MoveRecord *m)
{
	Page		newpage = BufferGetPage(m->newbuf);
	ItemId		newlp = PageGetItemId(newpage, m->newoff);
	uint16		same = (m->oldbuf == m->newbuf) ? m->oldoff : 0;
	char	   *p = record_data;

	p = put_bytes(p, &same, sizeof(same));
	if (same)
		p = put_bytes(p, PageGetTupleAt(newpage, same), SizeOfInplaceTupleHeader);
	p = put_bytes(p, &m->newoff, sizeof(m->newoff));
	p = put_bytes(p, PageGetItem(newpage, newlp), ItemIdGetLength(newlp));
	return p - record_data;
}

const char *
inplace_move_data(const MoveRecord *m, Size *len, bool *compact)
{
	UndoRecordHeader uh;

	memcpy(&uh, m->undo, SizeOfUndoRecordHeader);
	*compact = m->undo_len == m->change_len && (uh.ur_flags & UR_RELATIVE_HEADER) != 0;
	*len = *compact ? build_compact(m, &uh) : build_plain(m);
	return record_data;
}

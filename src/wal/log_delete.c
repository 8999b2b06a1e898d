/*-------------------------------------------------------------------------
 *
 * log_delete.c
 *	  The WAL record of a delete, in its three forms (wal.h).
 *
 * Redo makes header and undo record from a compact one (redo/redo_compact.c).
 * A bare delete has no undo, and the header only is made from its record.  If
 * the undo record cannot be made from the row, the WAL record has it whole, and
 * the new header.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/delta.h"
#include "page/tuple.h"
#include "rmgr.h"
#include "undo/append.h"
#include "undo/undo.h"
#include "utils/rel.h"
#include "wal/log.h"
#include "wal/log_delete.h"
#include "wal/wal.h"

/* room for the data of each */
#define MAX_DELETE_DATA \
	(sizeof(uint16) + SizeOfInplaceTupleHeader + MAX_UNDO_PLACE + 16)

static Size
build_compact(char *data, UndoInsert *ui, RelFileLocator loc,
			  const UndoRecordHeader *uh, const InplaceTupleHeaderData *hdr,
			  const InplaceTupleHeaderData *base, bool conflict)
{
	uint16		w = uh->ur_off | XLIP_UPD_COMPACT;
	char	   *p = data;

	if (uh->ur_cid != FirstCommandId)
		w |= XLIP_UPD_CID;
	if (uh->ur_flags & UR_FROZEN)
		w |= XLIP_UPD_OLD_FROZEN;
	if (hdr->t_infomask & IP_MOVED_PARTITION)
		w |= XLIP_DEL_PARTITION;
	if (conflict)
		w |= XLIP_UPD_CONFLICT;
	memcpy(p, &w, sizeof(w));
	p = inplace_wal_put_undo_place(p + sizeof(w), ui, loc);
	p = varint_put(p, uh->ur_xid - base->t_xid);
	if (w & XLIP_UPD_CID)
		p = varint_put(p, uh->ur_cid);
	return p - data;
}

static Size
build_bare(char *data, OffsetNumber off, TransactionId xid, CommandId cid,
		   const InplaceTupleHeaderData *base, bool partition, bool conflict)
{
	uint16		w = off | XLIP_UPD_COMPACT | XLIP_DEL_BARE;
	char	   *p = data + sizeof(w);

	if (cid != FirstCommandId)
	{
		w |= XLIP_UPD_CID;
		p = varint_put(p, cid);
	}
	if (partition)
		w |= XLIP_DEL_PARTITION;
	if (conflict)
	{
		w |= XLIP_UPD_CONFLICT;
		p = varint_put(p, xid - base->t_xid);
	}
	memcpy(data, &w, sizeof(w));
	return p - data;
}

static Size
build_plain(char *data, const UndoRecordHeader *uh,
			const InplaceTupleHeaderData *hdr)
{
	memcpy(data, &uh->ur_off, sizeof(uint16));
	memcpy(data + sizeof(uint16), hdr, SizeOfInplaceTupleHeader);
	return sizeof(uint16) + SizeOfInplaceTupleHeader;
}

void
inplace_log_delete(Relation rel, Buffer buffer,
				   const InplaceTupleHeaderData *hdr,
				   const InplaceTupleHeaderData *base, bool conflict,
				   bool clear, UndoInsert *ui, const char *undo,
				   Size change_len, Size undo_len, const LogicalChange *lc)
{
	char		data[MAX_DELETE_DATA];
	UndoRecordHeader uh;
	Size		len;
	bool		compact;

	if (!RelationNeedsWAL(rel))
	{
		inplace_log_undo_alone(ui, undo, undo_len);
		return;
	}

	memcpy(&uh, undo, SizeOfUndoRecordHeader);
	compact = undo_len == change_len && (uh.ur_flags & UR_RELATIVE_HEADER) != 0;
	len = compact ?
		build_compact(data, ui, RelLocator(rel), &uh, hdr, base, conflict) :
		build_plain(data, &uh, hdr);
	inplace_log_change(rel, buffer, XLOG_IP_DELETE, data, len, clear, ui,
					   compact ? NULL : undo, undo_len, lc);
}

void
inplace_log_bare_delete(Relation rel, Buffer buffer, OffsetNumber off,
						TransactionId xid, CommandId cid,
						const InplaceTupleHeaderData *base, bool partition,
						bool conflict, bool clear, const LogicalChange *lc)
{
	char		data[MAX_DELETE_DATA];
	Size		len;

	if (!RelationNeedsWAL(rel))
		return;
	len = build_bare(data, off, xid, cid, base, partition, conflict);
	inplace_log_change(rel, buffer, XLOG_IP_DELETE, data, len, clear, NULL, NULL,
					   0, lc);
}

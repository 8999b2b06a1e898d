/*-------------------------------------------------------------------------
 *
 * desc.c
 *	  WAL records in words, for pg_walinspect and friends.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/delta.h"
#include "page/tuple.h"
#include "redo/redo.h"
#include "rmgr.h"
#include "undo/undo_log.h"
#include "wal/wal.h"


static void
desc_header(StringInfo buf, const char *p)
{
	InplaceTupleHeaderData hdr;
	const char *flags[INPLACE_MAX_FLAGS];
	int			nflags;

	memcpy(&hdr, p, SizeOfInplaceTupleHeader);
	nflags = inplace_flag_names(&hdr, flags);
	appendStringInfo(buf, " xid: %u, flags: [", hdr.t_xid);
	for (int i = 0; i < nflags; i++)
		appendStringInfo(buf, "%s%s", i > 0 ? ", " : "", flags[i]);
	appendStringInfo(buf, "], natts: %u, tag: %u", HdrNattsAsStored(&hdr), TagNumber(hdr.t_tag));
	if (HdrIsLocked(&hdr))
		appendStringInfo(buf, ", lock mode: %s",
						 inplace_lock_mode_name(HdrLockMode(&hdr)));
	if (HdrHasDirectLocker(&hdr))
		appendStringInfo(buf, ", locker: %u", HdrDirectLocker(&hdr));
	else if (HdrIsBareDelete(&hdr))
		appendStringInfo(buf, ", old xid: %u", BarePtrXid(HdrUndoPtr(&hdr)));
	else if (HdrHasUndo(&hdr))
		appendStringInfo(buf, ", undo: %u/%u", UndoPtrBlock(HdrUndoPtr(&hdr)),
						 UndoPtrOffset(HdrUndoPtr(&hdr)));
}

static void
desc_offset_and_header(StringInfo buf, XLogReaderState *record, uint8 block_id)
{
	Size		len;
	char	   *data = XLogRecGetBlockData(record, block_id, &len);
	OffsetNumber off;

	if (data == NULL || len < sizeof(off) + SizeOfInplaceTupleHeader)
		return;
	memcpy(&off, data, sizeof(off));
	appendStringInfo(buf, "off: %u,", off);
	desc_header(buf, data + sizeof(off));
}

static void
desc_update(StringInfo buf, XLogReaderState *record)
{
	Size		len;
	char	   *data = XLogRecGetBlockData(record, 0, &len);
	uint16		w;

	if (data == NULL || len < sizeof(w))
		return;
	memcpy(&w, data, sizeof(w));
	if ((w & INPLACE_OFFSET_MASK) == InvalidOffsetNumber)
	{
		appendStringInfo(buf, "deleted rows evicted, %s",
						 (w & XLIP_UPD_COMPACT) ? "from page" : "full");
		return;
	}
	appendStringInfo(buf, "off: %u, %s", w & INPLACE_OFFSET_MASK,
					 (w & XLIP_UPD_COMPACT) ? "compact" : "full");
	if ((XLogRecGetInfo(record) & ~XLR_INFO_MASK) == XLOG_IP_DELETE &&
		(w & XLIP_DEL_BARE))
	{
		appendStringInfoString(buf, ", without undo");
		return;
	}
	if ((w & XLIP_UPD_COMPACT) && len >= 4)
	{
		const char *end = data + len;
		const char *p;
		uint16		undo_off;
		uint32		age = 0;
		uint32		blk;
		uint32		diff;
		uint32		spc;
		RelFileLocator table;

		memcpy(&undo_off, data + 2, 2);
		p = data + 4;
		appendStringInfoString(buf, ", undo ");
		if (!XLogRecHasBlockRef(record, 1))
		{
			if ((p = varint_get(p, end, &blk)) == NULL ||
				(p = varint_get(p, end, &diff)) == NULL ||
				((blk & 1) && (p = varint_get(p, end, &spc)) == NULL))
				return;
			XLogRecGetBlockTag(record, 0, &table, NULL, NULL);
			appendStringInfo(buf, "rel: %u, blk: %u, ",
							 LocatorRel(table) - diff, blk >> 1);
		}
		appendStringInfo(buf, "offset: %u", undo_off & XLIP_UNDO_OFFSET_MASK);
		if (undo_off & XLIP_FROM_PAGE)
			appendStringInfoString(buf, ", old row from page");
		else
		{
			p = varint_get(p, end, &age);
			appendStringInfo(buf, ", old xid: %u", XLogRecGetXid(record) - age);
		}
		appendStringInfo(buf, "%s, rest: %d bytes",
						 (w & XLIP_UPD_KEYS) ? ", key updated" : "",
						 p ? (int) (end - p) : 0);
	}
	else if (len >= 2 + SizeOfInplaceTupleHeader)
	{
		appendStringInfoChar(buf, ',');
		desc_header(buf, data + 2);
		appendStringInfo(buf, ", delta: %zu bytes",
						 len - 2 - SizeOfInplaceTupleHeader);
	}
}

static void
desc_move(StringInfo buf, XLogReaderState *record)
{
	Size		len;
	char	   *data = XLogRecGetBlockData(record, 0, &len);

	if (data && len >= 4)
	{
		uint16		same;
		OffsetNumber off;

		memcpy(&same, data, 2);
		if (same & XLIP_UPD_COMPACT)
		{
			desc_update(buf, record);
			return;
		}
		memcpy(&off, data + 2 + (same ? SizeOfInplaceTupleHeader : 0), 2);
		appendStringInfo(buf, "new off: %u", off);
		if (same)
		{
			appendStringInfo(buf, "; old off: %u,", same);
			desc_header(buf, data + 2);
		}
	}
	if (XLogRecHasBlockRef(record, 2))
	{
		appendStringInfoString(buf, "; old ");
		desc_offset_and_header(buf, record, 2);
	}
}

/*
 * What VACUUM has done to a page of a table, or what was done to one of an index.
 */
static void
desc_vacuum(StringInfo buf, const char *rec, Size datalen)
{
	if (datalen < sizeof(uint16))
		return;
	if (*(uint16 *) rec & XLIP_SHIFT)
		appendStringInfo(buf, "index entries to the right, downlink: %u, first: %u",
						 ((xl_ip_shift *) rec)->off,
						 ((xl_ip_shift *) rec)->first);
	else if (*(uint16 *) rec & XLIP_RELOCATE)
		appendStringInfo(buf, "index page moved, level: %u, downlink: %u",
						 ((xl_ip_relocate *) rec)->level,
						 ((xl_ip_relocate *) rec)->off);
	else if (*(uint16 *) rec & XLIP_GIN_ADD)
		appendStringInfo(buf, "row into a posting list, off: %u, tid: (%u,%u)",
						 ((xl_ip_gin_add *) rec)->off,
						 ItemPointerGetBlockNumberNoCheck(&((xl_ip_gin_add *) rec)->tid),
						 ItemPointerGetOffsetNumberNoCheck(&((xl_ip_gin_add *) rec)->tid));
	else if (*(uint16 *) rec & XLIP_MERGE)
		appendStringInfo(buf, "merge of index pages, downlink: %u, left sibling: %u",
						 ((xl_ip_merge *) rec)->off,
						 ((xl_ip_merge *) rec)->prev);
	else
		appendStringInfo(buf, "nunused: %u", *(uint16 *) rec);
}

static void
desc_freeze(StringInfo buf, const char *rec, Size datalen)
{
	if (datalen >= SizeOfIpFreeze)
	{
		xl_ip_freeze *x = (xl_ip_freeze *) rec;

		if (x->nfreeze & XLIP_SWEPT)
			appendStringInfo(buf, "horizon: %u, nswept: %u, ncleared: %u",
							 x->horizon, x->nfreeze & ~XLIP_SWEPT,
							 x->nunlock);
		else
			appendStringInfo(buf, "horizon: %u, nfreeze: %u, nunlock: %u",
							 x->horizon, x->nfreeze, x->nunlock);
	}
}

void
inplace_desc(StringInfo buf, XLogReaderState *record)
{
	char	   *rec = XLogRecGetData(record);
	Size		datalen = XLogRecGetDataLen(record);
	Size		len;
	char	   *data;

	switch (XLogRecGetInfo(record) & ~XLR_INFO_MASK)
	{
		case XLOG_IP_INSERT:
			data = XLogRecGetBlockData(record, 0, &len);
			if (data && len >= 5)
			{
				OffsetNumber off;

				memcpy(&off, data, 2);
				appendStringInfo(buf, "off: %u, %zu bytes", off, len - 5);
			}
			break;
		case XLOG_IP_MULTI_INSERT:
			data = XLogRecGetBlockData(record, 0, &len);
			if (data && len >= 3)
			{
				uint16		count;

				memcpy(&count, data + 1, 2);
				appendStringInfo(buf, "ntuples: %u", count);
			}
			break;
		case XLOG_IP_UPDATE:
		case XLOG_IP_DELETE:
			desc_update(buf, record);
			break;
		case XLOG_IP_RESTORE:
			if (datalen > 0 && (*(uint8 *) rec & XLIP_BARE_DELETES))
			{
				data = XLogRecGetBlockData(record, 0, &len);
				if (data)
					appendStringInfo(buf, "ndeletes: %zu",
									 len / sizeof(OffsetNumber));
				break;
			}
			/* FALLTHROUGH */
		case XLOG_IP_LOCK:
		case XLOG_IP_HEADER:
		case XLOG_IP_PUSH:
			desc_offset_and_header(buf, record, 0);
			break;
		case XLOG_IP_MOVE:
			desc_move(buf, record);
			break;
		case XLOG_IP_PRUNE:
			if (datalen >= SizeOfIpPrune)
			{
				xl_ip_prune *x = (xl_ip_prune *) rec;

				appendStringInfo(buf, "horizon: %u, ndead: %u, nunused: %u, ntrim: %u",
								 x->horizon, x->ndead, x->nunused, x->ntrim);
			}
			break;
		case XLOG_IP_VACUUM:
			desc_vacuum(buf, rec, datalen);
			break;
		case XLOG_IP_FREEZE:
			desc_freeze(buf, rec, datalen);
			break;
		case XLOG_IP_VISIBLE:
			if (datalen >= SizeOfIpVisible)
			{
				xl_ip_visible *x = (xl_ip_visible *) rec;

				appendStringInfo(buf, "horizon: %u, flags: 0x%02X",
								 x->horizon, x->flags);
			}
			break;
		case XLOG_IP_UNDO_DISCARD:
			if (datalen >= sizeof(xl_ip_undo_discard))
			{
				xl_ip_undo_discard *x = (xl_ip_undo_discard *) rec;

				appendStringInfo(buf, "database: %u, horizon: %u",
								 x->dboid, x->horizon);
			}
			break;
		default:
			break;
	}
}

const char *
inplace_identify(uint8 info)
{
	switch (info & ~XLR_INFO_MASK)
	{
		case XLOG_IP_INSERT:
			return "INSERT";
		case XLOG_IP_MULTI_INSERT:
			return "MULTI_INSERT";
		case XLOG_IP_UPDATE:
			return "UPDATE";
		case XLOG_IP_DELETE:
			return "DELETE";
		case XLOG_IP_MOVE:
			return "MOVE";
		case XLOG_IP_LOCK:
			return "LOCK";
		case XLOG_IP_HEADER:
			return "HEADER";
		case XLOG_IP_RESTORE:
			return "RESTORE";
		case XLOG_IP_PUSH:
			return "PUSH";
		case XLOG_IP_UNDO:
			return "UNDO";
		case XLOG_IP_LOGICAL:
			return "LOGICAL";
		case XLOG_IP_PRUNE:
			return "PRUNE";
		case XLOG_IP_VACUUM:
			return "VACUUM";
		case XLOG_IP_FREEZE:
			return "FREEZE";
		case XLOG_IP_VISIBLE:
			return "VISIBLE";
		case XLOG_IP_UNDO_DISCARD:
			return "UNDO_DISCARD";
		default:
			return NULL;
	}
}

/*-------------------------------------------------------------------------
 *
 * redo.c
 *	  Replay of row changes, and the resource manager itself.
 *
 * The undo page of a record is rebuilt from the record alone (but for updates
 * that leave the old row to the page: log_update.c), and before the row is
 * changed: queries on a standby follow a row's undo pointer as soon as they see
 * it.  Here each page is let go of before the next is locked; a record that no
 * row leads to yet is in nobody's way.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/bufmask.h"
#include "access/nbtree.h"
#include "access/nbtxlog.h"
#include "access/visibilitymap.h"
#include "access/xlog_internal.h"
#include "access/xlogutils.h"
#include "page/delta.h"
#include "page/page.h"
#include "page/protect.h"
#include "page/tuple.h"
#include "redo/redo.h"
#include "rmgr.h"
#include "storage/freespace.h"
#include "storage/smgr.h"
#include "undo/record.h"
#include "utils/varlena.h"
#include "wal/log_vacuum.h"
#include "wal/wal.h"

void
inplace_bad_record(XLogReaderState *record, const char *what)
{
	elog(PANIC, "inplace WAL record at %X/%X: %s",
		 LSN_FORMAT_ARGS(record->ReadRecPtr), what);
}

static bool
block_will_init(XLogReaderState *record, uint8 block_id)
{
	return (XLogRecGetBlock(record, block_id)->flags & BKPBLOCK_WILL_INIT) != 0;
}

void
inplace_redo_clear_visible(XLogReaderState *record, uint8 block_id, uint8 bits)
{
	RelFileLocator loc;
	BlockNumber blk = block_location(record, block_id, &loc);
	Relation	reln = CreateFakeRelcacheEntry(loc);
	Buffer		vmbuffer = InvalidBuffer;

	visibilitymap_pin(reln, blk, &vmbuffer);
	visibilitymap_clear(reln, blk, vmbuffer, bits);
	ReleaseBuffer(vmbuffer);
	FreeFakeRelcacheEntry(reln);
}

/*
 * The undo file is cut off without a lock that standbys know of (shrink.c), so
 * somebody there may have read a page that was just about to be cut off, and its
 * buffer is left.  The server's way to make a file longer refuses to go on if
 * it meets such a buffer, so this is done without buffers, as on the primary.
 */
static void
extend_undo_file(XLogReaderState *record, uint8 block_id)
{
	RelFileLocator locator;
	BlockNumber block;
	BlockNumber nblocks;
	SMgrRelation smgr;

	XLogRecGetBlockTag(record, block_id, &locator, NULL, &block);
	smgr = smgropen(locator, InvalidBackendId);
	smgrcreate(smgr, MAIN_FORKNUM, true);
	nblocks = smgrnblocks(smgr, MAIN_FORKNUM);
	if (block >= nblocks)
		ZeroExtend(smgr, MAIN_FORKNUM, nblocks, block + 1 - nblocks);
}

/* without rec the page is just begun, or restored from its image */
void
inplace_redo_undo_put(XLogReaderState *record, uint8 block_id, uint16 offset,
					  const char *rec, Size len)
{
	Buffer		buffer;
	Page		page;

	if (block_will_init(record, block_id))
	{
		extend_undo_file(record, block_id);
		buffer = XLogInitBufferForRedo(record, block_id);
		UndoPageInit(BufferGetPage(buffer));
	}
	else if (XLogReadBufferForRedo(record, block_id, &buffer) != BLK_NEEDS_REDO)
	{
		if (BufferIsValid(buffer))
			UnlockReleaseBuffer(buffer);
		return;
	}
	page = BufferGetPage(buffer);
	if (rec)
		UndoPagePut(page, offset, rec, len);
	if (rec || block_will_init(record, block_id))
	{
		PageSetLSN(page, record->EndRecPtr);
		MarkBufferDirty(buffer);
	}
	UnlockReleaseBuffer(buffer);
}

/* the undo records of a record that carries them whole */
void
inplace_redo_undo(XLogReaderState *record, uint8 block_id)
{
	Size		len;
	char	   *data;
	uint16		offset;

	if (!XLogRecHasBlockRef(record, block_id))
		return;
	data = XLogRecGetBlockData(record, block_id, &len);
	if (data == NULL || len < sizeof(uint16))
	{
		/* a full-page image took the data's place */
		inplace_redo_undo_put(record, block_id, 0, NULL, 0);
		return;
	}
	memcpy(&offset, data, sizeof(uint16));
	inplace_redo_undo_put(record, block_id, offset, data + sizeof(uint16),
						  len - sizeof(uint16));
}

/*
 * Get a data page that may have to be made; false if nothing is to be done.
 */
bool
inplace_redo_data_page(XLogReaderState *record, uint8 block_id, Buffer *buffer)
{
	if (block_will_init(record, block_id))
	{
		*buffer = XLogInitBufferForRedo(record, block_id);
		PageInit(BufferGetPage(*buffer), BLCKSZ, 0);
		return true;
	}
	return inplace_redo_row_page(record, block_id, buffer);
}

/* "tup" is a MAXALIGNed copy of a tuple */
void
inplace_redo_add_item(XLogReaderState *record, Page page, OffsetNumber off,
					  InplaceTupleHeader tup, Size len)
{
	if (inplace_page_add(page, tup, len, off) != off)
		inplace_bad_record(record, "row does not fit its page");
}

InplaceTupleHeader
inplace_redo_item(XLogReaderState *record, Page page, OffsetNumber off)
{
	if (off < FirstOffsetNumber || off > PageGetMaxOffsetNumber(page) ||
		!ItemIdIsNormal(PageGetItemId(page, off)))
		inplace_bad_record(record, "no row at its place");
	return PageGetTupleAt(page, off);
}

void
inplace_redo_after_insert(XLogReaderState *record, uint8 block_id, Size freespace)
{
	RelFileLocator loc;
	BlockNumber blk = block_location(record, block_id, &loc);

	/* as heap: pages that got nearly full are worth telling about */
	if (freespace < BLCKSZ / 5)
		XLogRecordPageWithFreeSpace(loc, blk, freespace);
}

static void
redo_insert(XLogReaderState *record, bool multi)
{
	Buffer		buffer;
	Size		freespace = BLCKSZ;

	if (visible_flags(record) & XLIP_CLEAR_VISIBLE)
		inplace_redo_clear_visible(record, 0, VISIBILITYMAP_VALID_BITS);

	if (inplace_redo_data_page(record, 0, &buffer))
	{
		Page		page = BufferGetPage(buffer);
		Size		datalen;
		char	   *data = XLogRecGetBlockData(record, 0, &datalen);
		char	   *end = data + datalen;
		union
		{
			char		data[BLCKSZ];
			InplaceTupleHeaderData hdr;
		}			tup;
		uint16		count = 1;
		uint8		flags = 0;

		if (multi)
		{
			flags = *(uint8 *) data;
			memcpy(&count, data + 1, 2);
			data += 3;
		}
		for (int i = 0; i < count; i++)
		{
			OffsetNumber off;
			uint16		natts;
			uint16		len;

			memcpy(&off, data, 2);
			if (multi)
			{
				memcpy(&natts, data + 2, 2);
				memcpy(&len, data + 4, 2);
				data += 6;
			}
			else
			{
				flags = *(uint8 *) (data + 2);
				memcpy(&natts, data + 3, 2);
				data += 5;
				len = end - data;
			}
			memset(&tup.hdr, 0, SizeOfInplaceTupleHeader);
			tup.hdr.t_xid = XLogRecGetXid(record);
			tup.hdr.t_natts = natts;
			tup.hdr.t_infomask = IP_FRESH;
			if (flags & XLIP_FROZEN)
				tup.hdr.t_infomask |= IP_FROZEN | IP_COMMITTED;
			memcpy(tup.data + SizeOfInplaceTupleHeader, data, len);
			data += len;
			inplace_redo_add_item(record, page, off, &tup.hdr, SizeOfInplaceTupleHeader + len);
		}
		freespace = PageGetHeapFreeSpace(page);
		if (visible_flags(record) & XLIP_CLEAR_VISIBLE)
			PageClearAllVisible(page);
		finish_page(record, buffer);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
	inplace_redo_after_insert(record, 0, freespace);
}

/*
 * Put the new image of a row, made by the forward delta from the old one.
 */
void
inplace_redo_apply_update(XLogReaderState *record, Page page, OffsetNumber off,
						  const InplaceTupleHeaderData *hdr,
						  const char *delta, Size delta_len)
{
	InplaceTupleHeader tup = inplace_redo_item(record, page, off);
	Size		itemlen = ItemIdGetLength(PageGetItemId(page, off));
	union
	{
		char		data[BLCKSZ];
		InplaceTupleHeaderData hdr;
		double		align_it;
	}			new;
	int			len;

	len = delta_apply(delta, delta_len,
					  (char *) tup + SizeOfInplaceTupleHeader,
					  inplace_tuple_len(tup, itemlen) - SizeOfInplaceTupleHeader,
					  new.data + SizeOfInplaceTupleHeader,
					  BLCKSZ - SizeOfInplaceTupleHeader);
	if (len < 0)
		inplace_bad_record(record, "delta does not fit its row");
	new.hdr = *hdr;
	if (!inplace_page_replace(page, off, &new.hdr,
							  len + SizeOfInplaceTupleHeader, true))
		inplace_bad_record(record, "updated row does not fit its page");
}

/*
 * The record cut off versions older than one that all snapshots of the
 * primary saw.  All xids up to that one had ended there, so once a conflict
 * with it is resolved no later snapshot can be in conflict with an older one.
 * A standby runs for long, and may not see such a record for half of all xids:
 * so xids are compared with their epochs.  (Nobody else moves nextXid in recovery.)
 */
void
inplace_redo_cut_conflict(TransactionId old_xid, RelFileLocator loc)
{
	static uint64 last = 0;
	static Oid	last_db = InvalidOid;
	FullTransactionId next;
	uint64		old;

	if (!InHotStandby)
		return;
	next = TransamVariables->nextXid;
	old = U64FromFullTransactionId(next) -
		(uint32) (XidFromFullTransactionId(next) - old_xid);
	if (last_db == LocatorDb(loc) && old <= last)
		return;
	inplace_redo_conflict(old_xid, loc);
	last_db = LocatorDb(loc);
	last = old;
}

static void
redo_update(XLogReaderState *record)
{
	Size		len;
	char	   *data = XLogRecGetBlockData(record, 0, &len);
	uint16		w;
	Buffer		buffer;

	if (visible_flags(record) & XLIP_CLEAR_VISIBLE)
		inplace_redo_clear_visible(record, 0, VISIBILITYMAP_VALID_BITS);

	memcpy(&w, data, 2);
	if ((w & INPLACE_OFFSET_MASK) == InvalidOffsetNumber)
	{
		inplace_redo_evict(record, data, len);
		return;
	}
	if (w & XLIP_UPD_COMPACT)
	{
		uint16		place;

		memcpy(&place, data + 2, 2);
		if (place & XLIP_FROM_PAGE)
			inplace_redo_update_from_page(record, data, len,
										  (visible_flags(record) & XLIP_CLEAR_VISIBLE) != 0);
		else
			inplace_redo_update_compact(record, data, len);
		return;
	}

	inplace_redo_undo(record, 1);
	if (inplace_redo_row_page(record, 0, &buffer))
	{
		InplaceTupleHeaderData hdr;
		Page		page = BufferGetPage(buffer);

		memcpy(&hdr, data + 2, SizeOfInplaceTupleHeader);
		inplace_redo_apply_update(record, page, w & INPLACE_OFFSET_MASK, &hdr,
								  data + 2 + SizeOfInplaceTupleHeader,
								  len - 2 - SizeOfInplaceTupleHeader);
		if (visible_flags(record) & XLIP_CLEAR_VISIBLE)
			PageClearAllVisible(page);
		finish_page(record, buffer);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

/* DELETE in full, LOCK and HEADER set a row's header */
static void
redo_header(XLogReaderState *record)
{
	Buffer		buffer;

	if (visible_flags(record) & XLIP_CLEAR_VISIBLE)
		inplace_redo_clear_visible(record, 0, VISIBILITYMAP_VALID_BITS);
	if (visible_flags(record) & XLIP_CLEAR_FROZEN)
		inplace_redo_clear_visible(record, 0, VISIBILITYMAP_ALL_FROZEN);

	inplace_redo_undo(record, 1);
	if (inplace_redo_row_page(record, 0, &buffer))
	{
		Page		page = BufferGetPage(buffer);
		Size		len;
		char	   *data = XLogRecGetBlockData(record, 0, &len);
		OffsetNumber off;
		InplaceTupleHeader tup;

		memcpy(&off, data, 2);
		tup = inplace_redo_item(record, page, off);
		memcpy(tup, data + 2, SizeOfInplaceTupleHeader);
		if (tup->t_infomask & IP_DELETED)
			PageSetPrunable(page, tup->t_xid);
		if (visible_flags(record) & XLIP_CLEAR_VISIBLE)
			PageClearAllVisible(page);
		finish_page(record, buffer);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

static void
redo_delete(XLogReaderState *record)
{
	Size		len;
	char	   *data = XLogRecGetBlockData(record, 0, &len);
	uint16		w;

	memcpy(&w, data, 2);
	if (!(w & XLIP_UPD_COMPACT))
	{
		redo_header(record);
		return;
	}
	if (visible_flags(record) & XLIP_CLEAR_VISIBLE)
		inplace_redo_clear_visible(record, 0, VISIBILITYMAP_VALID_BITS);
	if (w & XLIP_DEL_BARE)
		inplace_redo_delete_bare(record, data, len);
	else
		inplace_redo_delete_compact(record, data, len);
}

static void
redo_undo_deletes(XLogReaderState *record)
{
	Buffer		buffer;

	if (inplace_redo_row_page(record, 0, &buffer))
	{
		Page		page = BufferGetPage(buffer);
		Size		len;
		char	   *data = XLogRecGetBlockData(record, 0, &len);
		OffsetNumber *offs = (OffsetNumber *) data;
		int			n = len / sizeof(OffsetNumber);

		for (int i = 0; i < n; i++)
		{
			if (!HdrIsBareDelete(inplace_redo_item(record, page, offs[i])))
				inplace_bad_record(record, "no delete to be taken back");
		}
		inplace_page_undo_deletes(page, offs, n);
		finish_page(record, buffer);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

/* RESTORE and PUSH put a whole tuple */
static void
redo_replace(XLogReaderState *record)
{
	Buffer		buffer;

	if (visible_flags(record) & XLIP_BARE_DELETES)
	{
		redo_undo_deletes(record);
		return;
	}
	inplace_redo_undo(record, 1);
	if (inplace_redo_data_page(record, 0, &buffer))
	{
		Page		page = BufferGetPage(buffer);
		Size		len;
		char	   *data = XLogRecGetBlockData(record, 0, &len);
		OffsetNumber off;
		union
		{
			char		data[BLCKSZ];
			InplaceTupleHeaderData hdr;
			double		align_it;
		}			tup;

		memcpy(&off, data, 2);
		memcpy(tup.data, data + 2, len - 2);
		if (off > PageGetMaxOffsetNumber(page) ||
			!ItemIdIsUsed(PageGetItemId(page, off)))
			inplace_redo_add_item(record, page, off, &tup.hdr, len - 2);
		else if (!inplace_page_replace(page, off, &tup.hdr, len - 2, true))
			inplace_bad_record(record, "restored row does not fit its page");
		finish_page(record, buffer);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

void
inplace_redo(XLogReaderState *record)
{
	switch (XLogRecGetInfo(record) & ~XLR_INFO_MASK)
	{
		case XLOG_IP_INSERT:
			redo_insert(record, false);
			break;
		case XLOG_IP_MULTI_INSERT:
			redo_insert(record, true);
			break;
		case XLOG_IP_UPDATE:
			redo_update(record);
			break;
		case XLOG_IP_DELETE:
			redo_delete(record);
			break;
		case XLOG_IP_LOCK:
		case XLOG_IP_HEADER:
			redo_header(record);
			break;
		case XLOG_IP_MOVE:
			inplace_redo_move(record);
			break;
		case XLOG_IP_RESTORE:
		case XLOG_IP_PUSH:
			redo_replace(record);
			break;
		case XLOG_IP_UNDO:
			inplace_redo_undo(record, 0);
			break;
		case XLOG_IP_LOGICAL:
			/* nothing on any page */
			break;
		case XLOG_IP_PRUNE:
			inplace_redo_prune(record);
			break;
		case XLOG_IP_VACUUM:
			inplace_redo_vacuum(record);
			break;
		case XLOG_IP_FREEZE:
			inplace_redo_freeze(record);
			break;
		case XLOG_IP_VISIBLE:
			inplace_redo_visible(record);
			break;
		case XLOG_IP_UNDO_DISCARD:
			inplace_redo_discard(record);
			break;
		default:
			elog(PANIC, "inplace_redo: unknown op code %u",
				 XLogRecGetInfo(record));
	}
	inplace_redo_report_torn();
}

/*
 * What may differ between a page and its replay: LSN and checksum, page hints,
 * the hole, hint bits of rows (IP_UNCHANGED alone is one), and the command id or
 * speculative token of an inserted row (neither is logged).  Pages of a btree are
 * nbtree's; those of GIN's entry tree need no more than undo pages do.
 */
void
inplace_mask(char *pagedata, BlockNumber blkno)
{
	Page		page = (Page) pagedata;

	/* a page of a btree (undo pages, and GIN's, have a smaller special space) */
	if (!PageIsNew(page) &&
		PageGetSpecialSize(page) == MAXALIGN(sizeof(BTPageOpaqueData)))
	{
		btree_mask(pagedata, blkno);
		return;
	}
	mask_page_lsn_and_checksum(page);
	mask_page_hint_bits(page);
	if (PageIsNew(page))
		return;
	mask_unused_space(page);
	if (PageGetSpecialSize(page) != 0)
		return;					/* undo, or GIN's */

	/* what is left of rows that are gone, between the others */
	inplace_page_blank_gaps(page);

	for (OffsetNumber off = FirstOffsetNumber;
		 off <= PageGetMaxOffsetNumber(page); off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		InplaceTupleHeader tup;

		if (!ItemIdIsNormal(lp))
			continue;
		tup = (InplaceTupleHeader) PageGetItem(page, lp);
		tup->t_infomask &= ~IP_HINT_BITS;
		if (HdrIsSwept(tup))
			continue;
		tup->t_natts &= ~IP_UNCHANGED;
		if (HdrIsSpeculative(tup))
			HdrEndSpeculation(tup, 0);
		else if (HdrHasCid(tup))
			HdrSetFreshCid(tup, 0);
	}
}

/* not const: PostgreSQL 15's declaration of RegisterCustomRmgr is not */
static RmgrData inplace_rmgr = {
	.rm_name = RM_INPLACE_NAME,
	.rm_redo = inplace_redo,
	.rm_desc = inplace_desc,
	.rm_identify = inplace_identify,
	.rm_startup = NULL,
	.rm_cleanup = inplace_redo_cleanup,
	.rm_mask = inplace_mask,
	.rm_decode = inplace_decode
};

/*
 * The server takes wal_consistency_checking = all for all resource managers that
 * there are when it reads its configuration, before it loads libraries.
 */
static void
check_consistency_with_all(void)
{
	char	   *names = pstrdup(wal_consistency_checking_string);
	List	   *list;
	ListCell   *lc;

	if (SplitIdentifierString(names, ',', &list))
	{
		foreach(lc, list)
		{
			if (pg_strcasecmp(lfirst(lc), "all") == 0)
				wal_consistency_checking[RM_INPLACE_ID] = true;
		}
	}
	pfree(names);
}

void
InplaceRmgrRegister(void)
{
	RegisterCustomRmgr(RM_INPLACE_ID, &inplace_rmgr);
	check_consistency_with_all();
}

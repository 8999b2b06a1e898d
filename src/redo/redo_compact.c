/*-------------------------------------------------------------------------
 *
 * redo_compact.c
 *	  Replay of the compact records of updates and deletes (wal.h), from which
 *	  the undo record is made again.
 *
 * Those that leave the old row to the page as well are in redo_update.c.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/xlogutils.h"
#include "page/delta.h"
#include "page/tuple.h"
#include "redo/redo.h"
#include "storage/checksum.h"
#include "storage/smgr.h"
#include "undo/record.h"
#include "undo/undo.h"
#include "wal/log.h"
#include "wal/wal.h"

/*
 * The parts of a compact update record.
 */
typedef struct CompactUpdate
{
	OffsetNumber off;
	uint16		flags;
	UndoPlace	undo;
	TransactionId old_xid;
	CommandId	cid;
	char		forward[BLCKSZ * 2];
	Size		forward_len;
	char		backward[BLCKSZ * 2];
	Size		backward_len;
} CompactUpdate;

/* where the undo goes: the reference, or else what the data say */
const char *
inplace_wal_get_undo_place(XLogReaderState *record, const char *p,
						   const char *end, UndoPlace *place)
{
	RelFileLocator table;
	uint32		blk;
	uint32		rel_diff;

	if (end - p < sizeof(uint16))
		return NULL;
	memcpy(&place->offset, p, sizeof(uint16));
	place->offset &= XLIP_UNDO_OFFSET_MASK;
	p += sizeof(uint16);
	if (XLogRecHasBlockRef(record, 1))
	{
		place->block = block_location(record, 1, &place->locator);
		return p;
	}
	if ((p = varint_get(p, end, &blk)) == NULL ||
		(p = varint_get(p, end, &rel_diff)) == NULL)
		return NULL;
	block_location(record, 0, &table);
	place->locator = table;
	LocatorRel(place->locator) = LocatorRel(table) - rel_diff;
	place->block = blk >> 1;
	if (blk & 1)
		p = varint_get(p, end, &LocatorSpc(place->locator));
	return p;
}

static void
parse_compact(XLogReaderState *record, const char *data, Size len,
			  CompactUpdate *cu)
{
	const char *p = data + 2;
	const char *end = data + len;
	uint32		age = 0;
	char	   *f = cu->forward;
	char	   *b = cu->backward;
	uint16		w;

	memcpy(&w, data, 2);
	cu->off = w & INPLACE_OFFSET_MASK;
	cu->flags = w & ~INPLACE_OFFSET_MASK;
	p = inplace_wal_get_undo_place(record, p, end, &cu->undo);
	if (p)
		p = varint_get(p, end, &age);
	cu->old_xid = XLogRecGetXid(record) - age;
	cu->cid = FirstCommandId;
	if (p && (cu->flags & XLIP_UPD_CID))
		p = varint_get(p, end, &cu->cid);
	if (p == NULL)
		inplace_bad_record(record, "damaged change");
	while (p < end)
	{
		uint32		skip;
		uint32		n;

		if ((p = varint_get(p, end, &skip)) == NULL ||
			(p = varint_get(p, end, &n)) == NULL ||
			n > (Size) (end - p) / 2)
			inplace_bad_record(record, "damaged update");
		b = varint_put(b, skip);
		b = varint_put(b, n << 1);
		memcpy(b, p, n);
		b += n;
		f = varint_put(f, skip);
		f = varint_put(f, n << 1);
		memcpy(f, p + n, n);
		f += n;
		p += 2 * n;
	}
	cu->forward_len = f - cu->forward;
	cu->backward_len = b - cu->backward;
}

/* one that has been put together, if that is still to be reported */
static BlockNumber torn_block = InvalidBlockNumber;

/*
 * Put the record on a page of which a crash has left a part as it was before, and a part
 * with the record: that is all the difference there is between the two.  To
 * tell this from other damage there is the checksum, which is that of one of them.
 * (What follows the last record of a page is zero.)
 */
static bool
put_on_torn_page(Page page, const UndoPlace *place, XLogRecPtr lsn,
				 const char *rec, Size len)
{
	PageHeader	ph = (PageHeader) page;
	Size		end = place->offset + len;
	PGAlignedBlock before;

	if (ph->pd_special != BLCKSZ - MAXALIGN(sizeof(UndoPageSpecial)) ||
		UndoPageGetSpecial(page)->magic != UNDO_PAGE_MAGIC ||
		PageGetLSN(page) >= lsn || end > ph->pd_special ||
		(ph->pd_lower != place->offset && ph->pd_lower != end))
		return false;

	UndoPagePut(page, place->offset, rec, len);
	if (pg_checksum_page((char *) page, place->block) == ph->pd_checksum)
		return true;

	memcpy(before.data, page, BLCKSZ);
	memset(before.data + place->offset, 0, len);
	((PageHeader) before.data)->pd_lower = place->offset;
	return pg_checksum_page(before.data, place->block) == ph->pd_checksum;
}

/*
 * A page that no record since the redo pointer has referred to may be torn.  A record
 * names such a one if the redo pointer moved while it was made, and then the next has
 * the page's image (log.c).  But WAL may end in between.  Then a server that has
 * replayed the first record, and crashes again while it writes the page, finds it torn
 * when it replays that record once more, and no image comes.
 *
 * With checksums such a page is not readable; the buffer counts as new, and the file is
 * looked at.  If the page is not what a crash leaves of it the buffer stays as it is, and
 * is not written: either an image follows, or the damage is there to be found.
 */
static void
redo_undo_by_name(XLogReaderState *record, const UndoPlace *place,
				  const char *rec, Size len)
{
	SMgrRelation smgr = smgropen(place->locator, InvalidBackendId);
	bool		exists = smgrexists(smgr, MAIN_FORKNUM) &&
		place->block < smgrnblocks(smgr, MAIN_FORKNUM);
	Buffer		buffer;
	Page		page;

	/* one that the file does not reach to is noted as missing by the server */
	buffer = XLogReadBufferExtended(place->locator, MAIN_FORKNUM, place->block,
									exists ? RBM_ZERO_ON_ERROR : RBM_NORMAL,
									InvalidBuffer);
	if (!BufferIsValid(buffer))
		return;
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	page = BufferGetPage(buffer);
	if (PageIsNew(page))
	{
		PGIOAlignedBlock disk;

		smgrread(smgr, MAIN_FORKNUM, place->block, disk.data);
		if (put_on_torn_page((Page) disk.data, place, record->EndRecPtr, rec, len))
		{
			memcpy(page, disk.data, BLCKSZ);
			MarkBufferDirty(buffer);
			torn_block = place->block;
		}
	}
	else if (PageGetLSN(page) < record->EndRecPtr)
	{
		UndoPagePut(page, place->offset, rec, len);
		MarkBufferDirty(buffer);
	}
	UnlockReleaseBuffer(buffer);
}

/*
 * At the end of a record, when nothing is locked.
 */
void
inplace_redo_report_torn(void)
{
	BlockNumber block = torn_block;

	if (likely(block == InvalidBlockNumber))
		return;
	torn_block = InvalidBlockNumber;
	ereport(LOG,
			(errmsg("block %u of undo was torn by a crash, and has been put together",
					block)));
}

/*
 * Write the page of the record's undo, and all of that file, to disk now.  No page is
 * locked.
 */
void
inplace_redo_undo_to_disk(const UndoPlace *place)
{
	Buffer		buffer;

	AssertNoPageLock();
	buffer = XLogReadBufferExtended(place->locator, MAIN_FORKNUM, place->block,
									RBM_NORMAL_NO_LOG, InvalidBuffer);
	if (!BufferIsValid(buffer))
		return;
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	FlushOneBuffer(buffer);
	UnlockReleaseBuffer(buffer);
	smgrimmedsync(smgropen(place->locator, InvalidBackendId), MAIN_FORKNUM);
}

/*
 * The undo of a compact record.  Without a reference to the page its LSN is
 * left alone: it then always tells the last record that referred to it, which
 * is what a server promoted between two records has to go by (log.c).  Putting
 * a record where it is already does no harm, and a page that is reused has
 * the LSN of the record that began it.  A page that is missing is one that
 * was truncated later on.
 */
void
inplace_redo_undo_place(XLogReaderState *record, const UndoPlace *place,
						const char *rec, Size len)
{
	if (XLogRecHasBlockRef(record, 1))
		inplace_redo_undo_put(record, 1, place->offset, rec, len);
	else if (rec != NULL)
		redo_undo_by_name(record, place, rec, len);
}

void
inplace_redo_update_compact(XLogReaderState *record, const char *data, Size len)
{
	static CompactUpdate cu;
	static char undo[UNDO_MAX_RECORD];
	RelFileLocator loc;
	BlockNumber blk = block_location(record, 0, &loc);
	TransactionId xid = XLogRecGetXid(record);
	InplaceTupleHeaderData hdr;
	InplaceTupleHeaderData old;
	InplaceTupleHeaderData newer;
	Buffer		buffer;
	Size		undo_len;

	parse_compact(record, data, len, &cu);
	if (cu.flags & XLIP_UPD_CONFLICT)
		inplace_redo_cut_conflict(cu.old_xid, loc);

	/*
	 * The undo record, by the function that made it in the first place.  Only
	 * what a relative header needs of the two headers matters.
	 */
	memset(&old, 0, sizeof(old));
	memset(&newer, 0, sizeof(newer));
	old.t_xid = cu.old_xid;
	old.t_infomask = (cu.flags & XLIP_UPD_OLD_FROZEN) ? IP_FROZEN : 0;
	newer.t_tag = NextTag(NextTag(FirstVersionTag));
	old.t_tag = TagBeforeStep(newer.t_tag, TAG_FROM_BEFORE);
	if (cu.flags & (XLIP_UPD_TAG_ZERO | XLIP_UPD_TAG_WRAPPED))
	{
		old.t_tag = TagBeforeStep(newer.t_tag, (cu.flags & XLIP_UPD_TAG_ZERO) ?
								  TAG_FROM_FIRST : TAG_FROM_LAST);
		newer.t_tag = NextTag(old.t_tag);
	}
	undo_len = UndoBuild(undo, UNDO_UPDATE, xid, cu.cid, LocatorSpc(loc),
						 LocatorRel(loc), blk, cu.off, &old, &newer, true,
						 cu.backward, cu.backward_len);
	inplace_redo_undo_place(record, &cu.undo, undo, undo_len);

	if (inplace_redo_row_page(record, 0, &buffer))
	{
		Page		page = BufferGetPage(buffer);
		InplaceTupleHeader tup = inplace_redo_item(record, page, cu.off);

		hdr = *tup;
		HdrForgetSweep(&hdr);
		hdr.t_xid = xid;
		hdr.t_tag = NextTag(tup->t_tag);
		hdr.t_infomask = (tup->t_infomask & IP_STALE) |
			((cu.flags & XLIP_UPD_KEYS) ? IP_KEYS_UPDATED : 0);
		HdrSetUndoPtr(&hdr, UndoPtrMake(cu.undo.block, cu.undo.offset));
		inplace_redo_apply_update(record, page, cu.off, &hdr, cu.forward, cu.forward_len);
		if (visible_flags(record) & XLIP_CLEAR_VISIBLE)
			PageClearAllVisible(page);
		finish_page(record, buffer);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

/*
 * A delete in its compact form: the header is the old one but for what says
 * that the row is deleted, and the undo record is made again.
 */
void
inplace_redo_delete_compact(XLogReaderState *record, const char *data, Size len)
{
	static CompactUpdate cu;
	char		undo[SizeOfUndoRecordHeader + SizeOfInplaceTupleHeader];
	RelFileLocator loc;
	BlockNumber blk = block_location(record, 0, &loc);
	TransactionId xid = XLogRecGetXid(record);
	InplaceTupleHeaderData old;
	Buffer		buffer;
	Size		undo_len;

	parse_compact(record, data, len, &cu);
	if (cu.flags & XLIP_UPD_CONFLICT)
		inplace_redo_cut_conflict(cu.old_xid, loc);
	memset(&old, 0, sizeof(old));
	old.t_xid = cu.old_xid;
	old.t_infomask = (cu.flags & XLIP_UPD_OLD_FROZEN) ? IP_FROZEN : 0;
	undo_len = UndoBuild(undo, UNDO_DELETE, xid, cu.cid, LocatorSpc(loc),
						 LocatorRel(loc), blk, cu.off, &old, &old, true,
						 NULL, 0);
	inplace_redo_undo_place(record, &cu.undo, undo, undo_len);

	if (inplace_redo_row_page(record, 0, &buffer))
	{
		Page		page = BufferGetPage(buffer);
		InplaceTupleHeader tup = inplace_redo_item(record, page, cu.off);

		HdrForgetSweep(tup);
		tup->t_xid = xid;
		tup->t_infomask = (tup->t_infomask & (IP_STALE | IP_PADDED)) |
			IP_DELETED | IP_KEYS_UPDATED |
			((cu.flags & XLIP_DEL_PARTITION) ? IP_MOVED_PARTITION : 0);
		HdrSetUndoPtr(tup, UndoPtrMake(cu.undo.block, cu.undo.offset));
		PageSetPrunable(page, xid);
		if (visible_flags(record) & XLIP_CLEAR_VISIBLE)
			PageClearAllVisible(page);
		finish_page(record, buffer);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

/*
 * A bare delete: the header follows from the one on the page.
 */
void
inplace_redo_delete_bare(XLogReaderState *record, const char *data, Size len)
{
	const char *p = data + 2;
	const char *end = data + len;
	TransactionId xid = XLogRecGetXid(record);
	CommandId	cid = FirstCommandId;
	uint32		age;
	uint16		w;
	Buffer		buffer;

	memcpy(&w, data, 2);
	if (w & XLIP_UPD_CID)
		p = varint_get(p, end, &cid);
	if (p && (w & XLIP_UPD_CONFLICT))
	{
		RelFileLocator loc;

		p = varint_get(p, end, &age);
		block_location(record, 0, &loc);
		if (p)
			inplace_redo_cut_conflict(xid - age, loc);
	}
	if (p == NULL || cid > BARE_MAX_CID)
		inplace_bad_record(record, "damaged delete");

	if (inplace_redo_row_page(record, 0, &buffer))
	{
		Page		page = BufferGetPage(buffer);
		InplaceTupleHeader tup = inplace_redo_item(record, page,
												   w & INPLACE_OFFSET_MASK);

		HdrSetBareDelete(tup, xid, cid, (w & XLIP_DEL_PARTITION) != 0);
		PageSetPrunable(page, xid);
		if (visible_flags(record) & XLIP_CLEAR_VISIBLE)
			PageClearAllVisible(page);
		finish_page(record, buffer);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

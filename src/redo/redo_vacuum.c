/*-------------------------------------------------------------------------
 *
 * redo_vacuum.c
 *	  Replay of the records that pruning and VACUUM write (wal/log_vacuum.c).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/visibilitymap.h"
#include "page/tuple.h"
#include "redo/redo.h"
#include "storage/freespace.h"
#include "storage/standby.h"
#include "undo/undo_log.h"
#include "wal/log_vacuum.h"
#include "wal/wal.h"

void
inplace_redo_conflict(TransactionId horizon, RelFileLocator loc)
{
	if (InHotStandby && TransactionIdIsNormal(horizon))
		ResolveConflictWithSnapshot(horizon, false, loc);
}

/*
 * The free space map is not logged: keep it about right for a standby that
 * will be promoted.
 */
static void
release_and_record_space(Buffer buffer, RelFileLocator loc, BlockNumber blk)
{
	Size		space;

	if (!BufferIsValid(buffer))
		return;
	space = PageGetHeapFreeSpace(BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
	XLogRecordPageWithFreeSpace(loc, blk, space);
}

void
inplace_redo_prune(XLogReaderState *record)
{
	xl_ip_prune *xlrec = (xl_ip_prune *) XLogRecGetData(record);
	RelFileLocator loc;
	BlockNumber blk;
	Buffer		buffer;

	XLogRecGetBlockTag(record, 0, &loc, NULL, &blk);
	inplace_redo_conflict(xlrec->horizon, loc);

	if (inplace_redo_row_page(record, 0, &buffer))
	{
		Page		page = BufferGetPage(buffer);
		OffsetNumber *dead = (OffsetNumber *)
			(XLogRecGetData(record) + SizeOfIpPrune);
		OffsetNumber *unused = dead + xlrec->ndead;
		OffsetNumber *trim = unused + xlrec->nunused;

		inplace_page_apply_prune(page, dead, xlrec->ndead,
								 unused, xlrec->nunused, trim, xlrec->ntrim, NULL);
		PageSetLSN(page, record->EndRecPtr);
		MarkBufferDirty(buffer);
	}
	release_and_record_space(buffer, loc, blk);
}

void
inplace_redo_vacuum(XLogReaderState *record)
{
	RelFileLocator loc;
	BlockNumber blk;
	uint16	   *data = (uint16 *) XLogRecGetData(record);
	Buffer		buffer;

	if (data[0] & XLIP_RELOCATE)
	{
		inplace_redo_relocate(record);
		return;
	}
	if (data[0] & XLIP_GIN_ADD)
	{
		inplace_redo_gin_add(record);
		return;
	}
	if (data[0] & XLIP_MERGE)
	{
		inplace_redo_merge(record);
		return;
	}
	XLogRecGetBlockTag(record, 0, &loc, NULL, &blk);
	if (inplace_redo_row_page(record, 0, &buffer))
	{
		Page		page = BufferGetPage(buffer);

		inplace_page_apply_vacuum(page, data + 1, data[0]);
		PageSetLSN(page, record->EndRecPtr);
		MarkBufferDirty(buffer);
	}
	release_and_record_space(buffer, loc, blk);
}

void
inplace_redo_freeze(XLogReaderState *record)
{
	xl_ip_freeze *xlrec = (xl_ip_freeze *) XLogRecGetData(record);
	RelFileLocator loc;
	Buffer		buffer;

	XLogRecGetBlockTag(record, 0, &loc, NULL, NULL);
	inplace_redo_conflict(xlrec->horizon, loc);

	if (inplace_redo_row_page(record, 0, &buffer))
	{
		Page		page = BufferGetPage(buffer);
		char	   *data = XLogRecGetData(record) + SizeOfIpFreeze;

		if (xlrec->nfreeze & XLIP_SWEPT)
		{
			int			nmark = xlrec->nfreeze & ~XLIP_SWEPT;
			TransactionId swept;
			OffsetNumber *mark;

			memcpy(&swept, data, sizeof(swept));
			mark = (OffsetNumber *) (data + sizeof(swept));
			inplace_page_apply_swept(page, swept, mark, nmark,
									 mark + nmark, xlrec->nunlock);
		}
		else
		{
			OffsetNumber *freeze = (OffsetNumber *) data;
			OffsetNumber *unlock = freeze + xlrec->nfreeze;
			InplaceTupleHeaderData *unlocked =
				(InplaceTupleHeaderData *) (unlock + xlrec->nunlock);

			inplace_page_apply_freeze(page, freeze, xlrec->nfreeze,
									  unlock, unlocked, xlrec->nunlock);
		}
		PageSetLSN(page, record->EndRecPtr);
		MarkBufferDirty(buffer);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

/*
 * The data page may be newer than the record (it had no image, or was written
 * before the crash); the map page has an LSN of its own and is brought up to
 * date in any case.
 */
void
inplace_redo_visible(XLogReaderState *record)
{
	xl_ip_visible *xlrec = (xl_ip_visible *) XLogRecGetData(record);
	RelFileLocator loc;
	BlockNumber blk;
	Buffer		buffer;
	Buffer		vmbuffer;

	XLogRecGetBlockTag(record, 0, &loc, NULL, &blk);
	inplace_redo_conflict(xlrec->horizon, loc);

	if (inplace_redo_row_page(record, 0, &buffer))
	{
		Page		page = BufferGetPage(buffer);

		PageSetAllVisible(page);
		if (XLogHintBitIsNeeded())
			PageSetLSN(page, record->EndRecPtr);
		MarkBufferDirty(buffer);
	}
	release_and_record_space(buffer, loc, blk);

	/* a map page torn or lost by the crash starts afresh, all zero */
	if (XLogReadBufferForRedoExtended(record, 1, RBM_ZERO_ON_ERROR, false,
									  &vmbuffer) == BLK_NEEDS_REDO)
	{
		Page		vmpage = BufferGetPage(vmbuffer);

		if (PageIsNew(vmpage))
			PageInit(vmpage, BLCKSZ, 0);
		inplace_map_page_set(vmpage, blk, xlrec->flags);
		PageSetLSN(vmpage, record->EndRecPtr);
		MarkBufferDirty(vmbuffer);
	}
	if (BufferIsValid(vmbuffer))
		UnlockReleaseBuffer(vmbuffer);
}

void
inplace_redo_discard(XLogReaderState *record)
{
	xl_ip_undo_discard *xlrec =
		(xl_ip_undo_discard *) XLogRecGetData(record);
	RelFileLocator loc;

	memset(&loc, 0, sizeof(loc));
	LocatorDb(loc) = xlrec->dboid;
	inplace_redo_conflict(xlrec->horizon, loc);
}

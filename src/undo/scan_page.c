/*-------------------------------------------------------------------------
 *
 * scan_page.c
 *	  Looking for aborted changes on a page of undo.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/transam.h"
#include "storage/procarray.h"
#include "undo/record.h"
#include "undo/scan_page.h"
#include "undo/undo.h"

typedef enum UndoXidFate
{
	UNDO_XID_RUNNING,
	UNDO_XID_ABORTED,
	UNDO_XID_DONE				/* committed, or too old to matter */
} UndoXidFate;

/*
 * Undo that was read back after a restart may be of any age: an xid whose
 * commit status has been removed is not referred to by any row, and one
 * that is still to come belongs to an earlier age.
 */
static UndoXidFate
UndoGetXidFate(TransactionId xid)
{
	UndoXidFate fate;

	if (!TransactionIdIsNormal(xid) ||
		TransactionIdFollowsOrEquals(xid, ReadNextTransactionId()))
		return UNDO_XID_DONE;
	if (TransactionIdIsInProgress(xid))
		return UNDO_XID_RUNNING;

	LWLockAcquire(XactTruncationLock, LW_SHARED);
	if (TransactionIdPrecedes(xid, TransamVariables->oldestClogXid))
		fate = UNDO_XID_DONE;
	else
		fate = TransactionIdDidCommit(xid) ? UNDO_XID_DONE : UNDO_XID_ABORTED;
	LWLockRelease(XactTruncationLock);
	return fate;
}

/*
 * The transaction whose rollback this record is needed for: for a lock that
 * of the change under it, since the way to that change's record may lead
 * through the lock's.
 */
static TransactionId
UndoRecordXid(const char *raw, Size maxlen)
{
	const UndoRecordHeader *hdr = (const UndoRecordHeader *) raw;
	UndoRecord	rec;

	if (hdr->ur_type != UNDO_LOCK)
		return hdr->ur_xid;
	if (!UndoParse(raw, maxlen, NULL, &rec))
		return InvalidTransactionId;
	return HdrXid(&rec.old);
}

/*
 * Look at all records of a copy of an undo page.
 */
UndoScanResult
UndoScanPage(Page page, BlockNumber blk, UndoRestoreCallback restore, void *arg)
{
	PageHeader	ph = (PageHeader) page;
	UndoScanResult result = UNDO_SCAN_DONE;
	TransactionId last_xid = InvalidTransactionId;
	UndoXidFate last_fate = UNDO_XID_DONE;
	uint16		off = SizeOfPageHeaderData;

	if (PageIsNew(page))
		return UNDO_SCAN_DONE;

	while (off < ph->pd_lower)
	{
		UndoRecordHeader hdr;
		TransactionId xid;
		Size		left = Min(ph->pd_lower, BLCKSZ) - off;
		UndoScanResult r = UNDO_SCAN_DONE;

		if (left >= SizeOfUndoRecordHeader)
			memcpy(&hdr, (char *) page + off, SizeOfUndoRecordHeader);
		if (left < SizeOfUndoRecordHeader ||
			hdr.ur_len < SizeOfUndoRecordHeader || hdr.ur_len > left)
		{
			ereport(WARNING,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("invalid undo record at offset %u of undo block %u, rest of the block is skipped",
							off, blk)));
			break;
		}

		xid = UndoRecordXid((char *) page + off, left);
		if (xid != last_xid)
		{
			last_fate = UndoGetXidFate(xid);
			last_xid = xid;
		}
		if (last_fate == UNDO_XID_RUNNING)
			r = UNDO_SCAN_WAIT;
		else if (last_fate == UNDO_XID_ABORTED)
			r = restore(&hdr, arg);

		/* LATER is stronger than WAIT: it asks for a scan soon */
		if (r == UNDO_SCAN_LATER ||
			(r == UNDO_SCAN_WAIT && result == UNDO_SCAN_DONE))
			result = r;
		off += hdr.ur_len;
	}
	return result;
}

/*-------------------------------------------------------------------------
 *
 * record.c
 *	  Undo pages and records: building, parsing, fetching.
 *
 * A record is written once, as part of the change it undoes, and never
 * changed.  Its readers check that it is the one they were led to (row, the
 * transaction that the newer header names, and whether it is of a lock), so that a
 * pointer gone wrong is an error and not a wrong row.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/transam.h"
#include "access/xact.h"
#include "page/tuple.h"
#include "storage/procarray.h"
#include "undo/record.h"
#include "undo/space.h"
#include "undo/undo.h"

/* no version has more links than there are levels */
#define MAX_LINKS	(UNDO_LINK_MAX_LEVEL + 1)

uint64		UndoRecordsRead = 0;

void
UndoPageInit(Page page)
{
	UndoPageSpecial *special;

	PageInit(page, BLCKSZ, sizeof(UndoPageSpecial));
	special = UndoPageGetSpecial(page);
	special->magic = UNDO_PAGE_MAGIC;
	special->version = INPLACE_FORMAT_VERSION;
}

void
UndoPagePut(Page page, uint16 offset, const char *rec, Size len)
{
	PageHeader	ph = (PageHeader) page;

	Assert(offset >= SizeOfPageHeaderData);
	Assert(offset + len <= ph->pd_special);
	memcpy((char *) page + offset, rec, len);
	if (ph->pd_lower < offset + len)
		ph->pd_lower = offset + len;
	ph->pd_upper = ph->pd_special;
}

/*
 * The part of an old header worth keeping: padding is a matter of the page,
 * and the caller that builds the record takes the locks off.
 */
static InplaceTupleHeaderData
strip_header(const InplaceTupleHeaderData *hdr)
{
	InplaceTupleHeaderData h = *hdr;

	h.t_infomask &= ~(IP_PADDED | IP_LOCK_BITS | IP_ABORTED);
	return h;
}

/*
 * Can "old" be told from "newer" and its xid alone?  Fills the flags that say
 * how.
 */
static bool
relative_flags(const InplaceTupleHeaderData *old,
			   const InplaceTupleHeaderData *newer, uint8 *flags)
{
	if (old->t_natts != newer->t_natts ||
		(old->t_infomask & IP_STALE) != (newer->t_infomask & IP_STALE) ||
		(old->t_infomask & IP_DELETE_BITS) != 0)
		return false;
	*flags = UR_RELATIVE_HEADER;
	if (old->t_infomask & IP_FROZEN)
		*flags |= UR_FROZEN;
	switch (TagStepBetween(old->t_tag, newer->t_tag))
	{
		case TAG_SAME:
			*flags |= UR_TAG_SAME;
			return true;
		case TAG_FROM_FIRST:
			*flags |= UR_TAG_ZERO;
			return true;
		case TAG_FROM_LAST:
			*flags |= UR_TAG_WRAPPED;
			return true;
		case TAG_FROM_BEFORE:
			return true;
		case TAG_NO_STEP:
			break;
	}
	return false;
}

Size
UndoBuild(char *dst, UndoRecordType type, TransactionId xid, CommandId cid,
		  Oid spc, Oid rel, BlockNumber block, OffsetNumber off,
		  const InplaceTupleHeaderData *old,
		  const InplaceTupleHeaderData *newer, bool relative_ok,
		  const char *payload, Size payload_len)
{
	UndoRecordHeader hdr;
	uint8		flags = 0;
	char	   *p = dst + SizeOfUndoRecordHeader;

	if (!relative_ok || !relative_flags(old, newer, &flags))
		flags = 0;

	if (flags & UR_RELATIVE_HEADER)
	{
		memcpy(p, &old->t_xid, sizeof(TransactionId));
		p += sizeof(TransactionId);
	}
	else
	{
		InplaceTupleHeaderData h = strip_header(old);

		memcpy(p, &h, SizeOfInplaceTupleHeader);
		p += SizeOfInplaceTupleHeader;
	}
	if (payload_len > 0)
		memcpy(p, payload, payload_len);
	p += payload_len;

	hdr.ur_len = p - dst;
	hdr.ur_type = type;
	hdr.ur_flags = flags;
	hdr.ur_xid = xid;
	hdr.ur_cid = cid;
	hdr.ur_spc = spc;
	hdr.ur_rel = rel;
	hdr.ur_block = block;
	hdr.ur_off = off;
	memcpy(dst, &hdr, SizeOfUndoRecordHeader);
	return p - dst;
}

void
UndoBareDelete(const InplaceTupleHeaderData *newer, CommandId *cid,
			   InplaceTupleHeader old)
{
	UndoPtr		ptr = HdrUndoPtr(newer);

	Assert(UndoPtrIsBare(ptr));
	*cid = BarePtrCid(ptr);
	memset(old, 0, SizeOfInplaceTupleHeader);
	old->t_xid = BarePtrXid(ptr);
	old->t_infomask = IP_FRESH | IP_COMMITTED |
		(BarePtrFrozen(ptr) ? IP_FROZEN : 0) |
		(newer->t_infomask & IP_STALE);
	old->t_natts = newer->t_natts & ~IP_UNCHANGED;
	old->t_tag = newer->t_tag;
}

Size
UndoEvictedSize(const InplaceTupleHeaderData *tup, Size len)
{
	return SizeOfUndoRecordHeader + len +
		((tup->t_infomask & IP_MOVED) ? SizeOfUndoMoveLink : 0);
}

Size
UndoBuildEvicted(char *dst, RelFileLocator table, BlockNumber block,
				 const EvictedRow *row, const InplaceTupleHeaderData *tup,
				 Size len)
{
	bool		moved = (tup->t_infomask & IP_MOVED) != 0;
	UndoRecordHeader *hdr = (UndoRecordHeader *) dst;
	Size		size;

	size = UndoBuild(dst, moved ? UNDO_MOVE : UNDO_DELETE, tup->t_xid, row->cid,
					 LocatorSpc(table), LocatorRel(table), block, row->off,
					 &row->old, tup, false, row->link,
					 moved ? SizeOfUndoMoveLink : 0);
	memcpy(dst + size, (const char *) tup + SizeOfInplaceTupleHeader,
		   len - SizeOfInplaceTupleHeader);
	size += len - SizeOfInplaceTupleHeader;
	hdr->ur_len = size;
	hdr->ur_flags |= UR_EVICTED;
	Assert(size == UndoEvictedSize(tup, len));
	return size;
}

bool
UndoParse(const char *raw, Size maxlen, const InplaceTupleHeaderData *newer,
		  UndoRecord *rec)
{
	const char *p = raw + SizeOfUndoRecordHeader;
	Size		oldlen;

	if (maxlen < SizeOfUndoRecordHeader + sizeof(TransactionId))
		return false;
	memcpy(&rec->hdr, raw, SizeOfUndoRecordHeader);
	oldlen = (rec->hdr.ur_flags & UR_RELATIVE_HEADER) ?
		sizeof(TransactionId) : SizeOfInplaceTupleHeader;
	if (rec->hdr.ur_len > maxlen ||
		rec->hdr.ur_len < SizeOfUndoRecordHeader + oldlen ||
		rec->hdr.ur_type < UNDO_UPDATE || rec->hdr.ur_type > UNDO_LINK ||
		(rec->hdr.ur_flags & ~UR_VALID_BITS) != 0)
		return false;

	if (rec->hdr.ur_flags & UR_RELATIVE_HEADER)
	{
		uint8		flags = rec->hdr.ur_flags;

		memset(&rec->old, 0, SizeOfInplaceTupleHeader);
		memcpy(&rec->old.t_xid, p, sizeof(TransactionId));
		rec->old.t_infomask = IP_FRESH | IP_COMMITTED;
		if (flags & UR_FROZEN)
			rec->old.t_infomask |= IP_FROZEN;
		if (newer)
		{
			rec->old.t_natts = newer->t_natts & ~IP_UNCHANGED;
			rec->old.t_tag =
				TagBeforeStep(newer->t_tag,
							  (flags & UR_TAG_SAME) ? TAG_SAME :
							  (flags & UR_TAG_ZERO) ? TAG_FROM_FIRST :
							  (flags & UR_TAG_WRAPPED) ? TAG_FROM_LAST :
							  TAG_FROM_BEFORE);
		}
	}
	else
		memcpy(&rec->old, p, SizeOfInplaceTupleHeader);

	/* entries that the change has left behind outlive its rollback */
	if (newer != NULL)
		rec->old.t_infomask |= newer->t_infomask & IP_STALE;

	p += oldlen;
	rec->replaced.xid = rec->hdr.ur_xid;
	rec->replaced.cid = rec->hdr.ur_cid;
	if (rec->hdr.ur_flags & UR_SQUEEZED)
	{
		if (rec->hdr.ur_type != UNDO_UPDATE ||
			rec->hdr.ur_len < SizeOfUndoRecordHeader + oldlen + sizeof(UndoReplaced))
			return false;
		memcpy(&rec->replaced, p, sizeof(UndoReplaced));
		p += sizeof(UndoReplaced);
		oldlen += sizeof(UndoReplaced);
	}
	rec->payload_len = rec->hdr.ur_len - SizeOfUndoRecordHeader - oldlen;
	memcpy(rec->data, p, rec->payload_len);
	rec->payload = rec->data;

	if ((rec->hdr.ur_flags & UR_EVICTED) != 0 &&
		((rec->hdr.ur_type != UNDO_DELETE && rec->hdr.ur_type != UNDO_MOVE) ||
		 (rec->hdr.ur_flags & (UR_RELATIVE_HEADER | UR_SQUEEZED)) != 0 ||
		 HdrIsEvicted(&rec->old)))
		return false;

	switch ((UndoRecordType) rec->hdr.ur_type)
	{
		case UNDO_MOVE:
			return (rec->hdr.ur_flags & UR_EVICTED) ?
				rec->payload_len >= SizeOfUndoMoveLink :
				rec->payload_len == SizeOfUndoMoveLink;
		case UNDO_LOCK:
			return rec->payload_len >= sizeof(uint32) &&
				(rec->payload_len - sizeof(uint32)) % sizeof(OldLocker) == 0;
		case UNDO_LINK:
			return rec->payload_len >= SizeOfUndoLink &&
				HdrHasUndo(&rec->old) &&
				!(rec->old.t_infomask & IP_LOCK_BITS);
		default:
			return true;
	}
}

/*
 * The undo of a temporary table is for the snapshots that its session takes (temp.c).
 * All of them see what has committed before.  One that comes from another session may
 * not, and what it would see instead is gone.
 */
static void
report_if_imported(Relation rel, const InplaceTupleHeaderData *newer)
{
	if (newer == NULL || rel->rd_rel->relpersistence != RELPERSISTENCE_TEMP ||
		TransactionIdIsCurrentTransactionId(newer->t_xid) ||
		!TransactionIdDidCommit(newer->t_xid))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("temporary table \"%s\" has been changed since the snapshot in use was taken",
					RelationGetRelationName(rel)),
			 errdetail("Of temporary tables no older row versions are kept for snapshots that are imported from other sessions.")));
}

static void
report_bad_undo(Relation rel, UndoPtr ptr, BlockNumber block, OffsetNumber off,
				const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("row (%u,%u) of relation \"%s\" leads to undo record %u/%u, which %s",
					block, off, RelationGetRelationName(rel),
					UndoPtrBlock(ptr), UndoPtrOffset(ptr), what)));
}

void
UndoReportCircle(Relation rel, UndoPtr ptr, BlockNumber block, OffsetNumber off)
{
	report_bad_undo(rel, ptr, block, off, "leads back to itself");
}

/* is the record one of the version it was read for, not of the change? */
static bool
is_of_version(const UndoRecord *rec)
{
	return rec->hdr.ur_type == UNDO_LOCK || rec->hdr.ur_type == UNDO_LINK;
}

/*
 * A header with a lock leads to the lock's record, and no other header leads to one.
 * Where the record of a version's change was there may be that of a later lock of the
 * version.  It leads to the version, and so back to itself.
 */
static const char *
lock_problem(const UndoRecord *rec, const InplaceTupleHeaderData *newer)
{
	bool		locked = (newer->t_infomask & IP_LOCK_INDIRECT) != 0;

	if ((rec->hdr.ur_type == UNDO_LOCK) == locked)
		return NULL;
	return locked ? "is not that of the row's lock" :
		"is that of a lock, which the version does not have";
}

/*
 * An evicted row has its values in the record, and no other row leads to such a one.  (One
 * that was moved may have been locked since, and then the lock's record leads there.)
 */
static const char *
eviction_problem(const UndoRecord *rec, const InplaceTupleHeaderData *newer)
{
	bool		evicted = (rec->hdr.ur_flags & UR_EVICTED) != 0;

	if (is_of_version(rec) || evicted == HdrIsEvicted(newer))
		return NULL;
	return evicted ? "is that of an evicted row" : "does not have the values of the evicted row";
}

/*
 * Rows of two tables may have the same place, and versions by one transaction: a
 * pointer that has been left dangling may lead to the other's record.  A table's own
 * records may have another file's number, too, that it had before (SET TABLESPACE);
 * but their space is used again only when everybody sees the version that leads
 * there, and nobody needs them then: a lock on such a version has ended, or its holder has
 * the table to himself.  Of a change that was rolled back undo is kept until the row is
 * restored, whatever its xid.
 */
static bool
may_be_of_table(Relation rel, const UndoRecord *rec,
				const InplaceTupleHeaderData *newer)
{
	if (rec->hdr.ur_rel == LocatorRel(RelLocator(rel)) &&
		rec->hdr.ur_spc == LocatorSpc(RelLocator(rel)))
		return true;
	return newer == NULL ||
		(!(newer->t_infomask & IP_FROZEN) &&
		 (!TransactionIdPrecedes(HdrXid(newer), GetOldestNonRemovableTransactionId(rel)) ||
		  (!(newer->t_infomask & IP_COMMITTED) &&
		   !TransactionIdDidCommit(newer->t_xid))));
}

/*
 * The record that a bare delete does without.
 */
static void
make_bare_record(Relation rel, UndoPtr ptr, BlockNumber block,
				 OffsetNumber off, const InplaceTupleHeaderData *newer,
				 UndoRecord *rec)
{
	CommandId	cid;

	UndoBareDelete(newer, &cid, &rec->old);
	rec->hdr.ur_len = SizeOfUndoRecordHeader + sizeof(TransactionId);
	rec->hdr.ur_type = UNDO_DELETE;
	rec->hdr.ur_flags = UR_RELATIVE_HEADER | UR_TAG_SAME |
		(BarePtrFrozen(ptr) ? UR_FROZEN : 0);
	rec->hdr.ur_xid = newer->t_xid;
	rec->hdr.ur_cid = cid;
	rec->hdr.ur_spc = LocatorSpc(RelLocator(rel));
	rec->hdr.ur_rel = LocatorRel(RelLocator(rel));
	rec->hdr.ur_block = block;
	rec->hdr.ur_off = off;
	rec->replaced.xid = rec->hdr.ur_xid;
	rec->replaced.cid = rec->hdr.ur_cid;
	rec->payload = rec->data;
	rec->payload_len = 0;
}

bool
UndoFetchRecord(Relation rel, UndoPtr ptr, BlockNumber block,
				OffsetNumber off, const InplaceTupleHeaderData *newer,
				bool missing_ok, UndoRecord *rec)
{
	Buffer		buffer;
	Page		page;
	PageHeader	ph;
	uint16		start = UndoPtrOffset(ptr);
	const char *problem = NULL;

	if (newer && HdrIsBareDelete(newer) && ptr == HdrUndoPtr(newer))
	{
		make_bare_record(rel, ptr, block, off, newer, rec);
		return true;
	}
	if (UndoPtrBlock(ptr) == UNDO_META_BLOCK || start < SizeOfPageHeaderData)
	{
		if (missing_ok)
			return false;
		report_bad_undo(rel, ptr, block, off, "is not possible");
	}

	UndoRecordsRead++;
	buffer = UndoReadBuffer(rel, ptr, missing_ok);
	if (!BufferIsValid(buffer))
	{
		if (missing_ok)
			return false;
		report_if_imported(rel, newer);
		report_bad_undo(rel, ptr, block, off, "does not exist");
	}
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	ph = (PageHeader) page;

	if (PageIsNew(page) || PageGetSpecialSize(page) != MAXALIGN(sizeof(UndoPageSpecial)) ||
		UndoPageGetSpecial(page)->magic != UNDO_PAGE_MAGIC)
		problem = "is not on an undo page";
	else if (start >= ph->pd_lower ||
			 !UndoParse((char *) page + start, ph->pd_lower - start, newer, rec))
		problem = "is not an undo record";
	else if (rec->hdr.ur_block != block || rec->hdr.ur_off != off)
		problem = "belongs to another row";
	else if (newer &&
			 (is_of_version(rec) ?
			  rec->old.t_xid != newer->t_xid :
			  rec->hdr.ur_xid != newer->t_xid))
		problem = "belongs to another transaction";
	else if (newer && (problem = lock_problem(rec, newer)) == NULL)
		problem = eviction_problem(rec, newer);

	UnlockReleaseBuffer(buffer);

	if (problem == NULL && missing_ok && !may_be_of_table(rel, rec, newer))
		return false;

	if (problem)
	{
		if (missing_ok)
			return false;
		report_if_imported(rel, newer);
		report_bad_undo(rel, ptr, block, off, problem);
	}
	return true;
}

bool
UndoFetch(Relation rel, UndoPtr ptr, BlockNumber block, OffsetNumber off,
		  const InplaceTupleHeaderData *newer, bool missing_ok,
		  UndoRecord *rec)
{
	InplaceTupleHeaderData hdr;

	for (int i = 0; i <= MAX_LINKS; i++)
	{
		if (!UndoFetchRecord(rel, ptr, block, off, newer, missing_ok, rec))
			return false;
		if (rec->hdr.ur_type != UNDO_LINK)
			return true;
		hdr = rec->old;
		newer = &hdr;
		ptr = HdrUndoPtr(&hdr);
	}
	if (!missing_ok)
		report_bad_undo(rel, ptr, block, off, "is behind too many links");
	return false;
}

/*
 * Among the records written, is there a lock put on a change that may be
 * rolled back without us?  Restoring that row goes through the lock's record.
 * Called in a critical section: no commit log here, so a change that has just
 * committed, with no hint of it, counts too.
 */
bool
UndoLocksOpenChange(const char *rec, Size len)
{
	const char *end = rec + len;

	while (rec < end)
	{
		UndoRecordHeader hdr;
		InplaceTupleHeaderData old;

		memcpy(&hdr, rec, SizeOfUndoRecordHeader);
		if (hdr.ur_type == UNDO_LOCK && !(hdr.ur_flags & UR_RELATIVE_HEADER))
		{
			memcpy(&old, rec + SizeOfUndoRecordHeader, SizeOfInplaceTupleHeader);
			if (!(old.t_infomask & IP_COMMITTED) &&
				!TransactionIdPrecedes(HdrXid(&old), TransactionXmin) &&
				!TransactionIdIsCurrentTransactionId(old.t_xid))
				return true;
		}
		Assert(hdr.ur_len >= SizeOfUndoRecordHeader);
		rec += hdr.ur_len;
	}
	return false;
}

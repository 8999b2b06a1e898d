/*-------------------------------------------------------------------------
 *
 * walk.c
 *	  What all functions that look into tables share: opening a table, checking
 *	  the bytes of a row and of a value in the TOAST table, and the walk over
 *	  the versions of a row.
 *
 * The caller has copied the item under the page's share lock; everything here
 * works on the copy, so that no undo page is ever locked together with the
 * data page.
 *
 * A version's undo is only certain to be there while somebody may need it, so
 * the walk does not follow the pointer of a version that everybody sees, and
 * takes a record for its own only if that is of the same row and was made by
 * the very transaction that the newer header names.  A place used again
 * cannot pass for the old record by that test: the transaction would have to
 * have been over, and seen by everybody, before it wrote the new one.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/toast_internals.h"
#include "insight/insight.h"
#include "page/delta.h"
#include "page/tuple.h"
#include "undo/record.h"
#include "undo/undo.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/rls.h"


/*
 * Open a table of ours.  With read_rows the caller is about to see contents,
 * which takes the right to SELECT and no row-level security in force: what
 * the functions show has not passed any policy.
 */
Relation
InsightOpenTable(Oid relid, bool read_rows)
{
	Relation	rel = InplaceOpenArgument(relid, AccessShareLock);

	if (!RelationIsInplace(rel))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table of access method inplace",
						RelationGetRelationName(rel))));

	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary tables of other sessions")));

	if (RecoveryInProgress() &&
		rel->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot access temporary or unlogged relations during recovery")));

	if (read_rows)
	{
		AclResult	aclresult = pg_class_aclcheck(relid, GetUserId(), ACL_SELECT);

		if (aclresult != ACLCHECK_OK)
			aclcheck_error(aclresult, OBJECT_TABLE,
						   RelationGetRelationName(rel));
		if (check_enable_rls(relid, InvalidOid, true) == RLS_ENABLED)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("row versions of table \"%s\" cannot be shown to users subject to row-level security",
							RelationGetRelationName(rel))));
	}

	return rel;
}

void
InsightLimitsInit(InsightLimits *limits, Relation rel)
{
	limits->relfrozenxid = rel->rd_rel->relfrozenxid;
	limits->relminmxid = rel->rd_rel->relminmxid;
	InsightLimitsRefresh(limits, rel);
}

void
InsightLimitsRefresh(InsightLimits *limits, Relation rel)
{
	limits->next_xid = ReadNextTransactionId();
	limits->next_multi = ReadNextMultiXactId();
	limits->horizon = GetOldestNonRemovableTransactionId(rel);
}

/*
 * Never asks the commit log about an id that it may not know.
 */
InsightXidStatus
InsightGetXidStatus(const InsightLimits *limits, TransactionId xid,
					uint16 infomask)
{
	if (infomask & IP_FROZEN)
		return INSIGHT_XID_COMMITTED;
	if (!TransactionIdIsNormal(xid))
		return TransactionIdIsValid(xid) ? INSIGHT_XID_COMMITTED :
			INSIGHT_XID_UNKNOWN;
	if (TransactionIdIsCurrentTransactionId(xid))
		return INSIGHT_XID_CURRENT;
	if (!TransactionIdPrecedes(xid, limits->next_xid))
		return INSIGHT_XID_UNKNOWN;
	if (TransactionIdIsNormal(limits->relfrozenxid) &&
		TransactionIdPrecedes(xid, limits->relfrozenxid))
	{
		if (infomask & IP_COMMITTED)
			return INSIGHT_XID_COMMITTED;
		if (infomask & IP_ABORTED)
			return INSIGHT_XID_ABORTED;
		return INSIGHT_XID_UNKNOWN;
	}
	if (TransactionIdIsInProgress(xid))
		return INSIGHT_XID_IN_PROGRESS;
	return TransactionIdDidCommit(xid) ? INSIGHT_XID_COMMITTED :
		INSIGHT_XID_ABORTED;
}

/*
 * Which combinations of flags cannot be.
 */
static const char *
check_flags(const InplaceTupleHeaderData *h)
{
	uint16		m = h->t_infomask;

	if ((m & IP_COMMITTED) && (m & IP_ABORTED))
		return "hinted both committed and aborted";
	if ((m & IP_FROZEN) && (m & IP_ABORTED))
		return "both frozen and hinted aborted";
	if ((m & (IP_MOVED | IP_MOVED_PARTITION)) && !(m & IP_DELETED))
		return "moved but not deleted";
	if ((m & IP_MOVED) && (m & IP_MOVED_PARTITION))
		return "moved both in the table and to another partition";
	if ((m & IP_LOCK_DIRECT) && (m & IP_LOCK_INDIRECT))
		return "locked both directly and by an undo record";
	if (!HdrIsLocked(h) && (m & (IP_LOCK_MULTI | IP_LOCK_MODE_MASK)))
		return "has a lock mode but no lock";
	if ((m & IP_FRESH) && (m & IP_DELETED))
		return "fresh, yet deleted";
	if ((m & IP_FRESH) && HdrIsLocked(h))
		return "fresh, yet locked";
	if ((m & IP_SPECULATIVE) && !(m & IP_FRESH))
		return "speculative, but not fresh";
	if (h->t_natts & ~(IP_NATTS_MASK | IP_HASNULL | IP_HASEXTERNAL |
					   IP_ALIGNED | IP_HASTRIMMED | IP_UNCHANGED))
		return "unknown flag in the attribute count";
	return NULL;
}

/*
 * Is what lies in itemlen bytes at tup a row as far as can be told without its
 * columns?  NULL and the length without padding, or what is wrong.
 */
const char *
InsightCheckShape(const InplaceTupleHeaderData *tup, Size itemlen, Size *len)
{
	const char *data = (const char *) tup;
	const char *problem;

	*len = 0;
	if (itemlen < SizeOfInplaceTupleHeader)
		return "item is shorter than a row header";
	if (itemlen > InplaceMaxTupleSize)
		return "item is longer than a row can be";
	if (HdrSize(tup) > itemlen)
		return "null bitmap runs over the item's end";
	if (!TagIsValid(tup->t_tag))
		return psprintf("version tag %d is out of range", TagNumber(tup->t_tag));
	problem = check_flags(tup);
	if (problem)
		return psprintf("row is %s", problem);

	/* the padding, before anybody else reads its length */
	if (tup->t_infomask & IP_PADDED)
	{
		Size		room = itemlen - HdrSize(tup);
		Size		pad;

		if (room < 1)
			return "row is padded but has no room for padding";
		pad = (uint8) data[itemlen - 1];
		if (pad == 255)
		{
			uint16		big;

			if (room < 3)
				return "row is padded but has no room for padding";
			memcpy(&big, data + itemlen - 3, sizeof(big));
			pad = big;
		}
		if (pad == 0 || pad > room)
			return psprintf("padding of %zu bytes does not fit the item", pad);
	}
	*len = inplace_tuple_len(tup, itemlen);
	if (*len < HdrSize(tup) || *len > itemlen)
	{
		*len = 0;
		return "padding does not fit the item";
	}
	return NULL;
}

/*
 * ... and can a row of that shape be deformed?
 */
static const char *
check_attributes(TupleDesc desc, InplaceTupleHeader tup, Size len)
{
	uint16		ends[MaxTupleAttributeNumber + 1];
	const char *data = (const char *) tup;
	int			natts = HdrNatts(tup);
	Size		start;
	int			i;

	if (natts > desc->natts)
		return psprintf("row has %d attributes, the relation has %d",
						natts, desc->natts);
	if (inplace_attr_ends(desc, tup, ends, len) != len)
		return psprintf("attributes do not end at the row's length %zu", len);

	/* our own and the external kinds of varlena have no other guard */
	start = HdrSize(tup);
	for (i = 0; i < natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		Size		size;

		if (ends[i] < start || ends[i] > len)
			return psprintf("attribute %d ends before it starts", i + 1);
		size = ends[i] - start;
		if (att->attlen == -1 && size > 0 && (uint8) data[start] == 0x01)
		{
			uint8		tag;

			if (size < 2)
				return psprintf("attribute %d is cut off", i + 1);
			tag = (uint8) data[start + 1];
			if (tag == VARTAG_ONDISK)
			{
				if (size != TOAST_POINTER_SIZE)
					return psprintf("attribute %d: TOAST pointer of %zu bytes",
									i + 1, size);
				if (!(tup->t_natts & IP_HASEXTERNAL))
					return psprintf("attribute %d is external but the row's flag is not set",
									i + 1);
			}
			else if (tag == VARTAG_INPLACE_TRIMMED)
			{
				uint16		bytes;

				if (size < SizeOfTrimmedHeader)
					return psprintf("attribute %d is cut off", i + 1);
				memcpy(&bytes, data + start + 2, sizeof(bytes));
				if (size != SizeOfTrimmedHeader + (Size) bytes)
					return psprintf("attribute %d: wrong length of a trimmed value",
									i + 1);
				if (!(tup->t_natts & IP_HASTRIMMED))
					return psprintf("attribute %d is trimmed but the row's flag is not set",
									i + 1);
			}
			else
				return psprintf("attribute %d: unknown kind %d of external value",
								i + 1, tag);
		}
		start = ends[i];
	}

	return NULL;
}

const char *
InsightCheckRow(TupleDesc desc, InplaceTupleHeader tup, Size itemlen,
				Size *len)
{
	const char *problem = InsightCheckShape(tup, itemlen, len);

	return problem ? problem : check_attributes(desc, tup, *len);
}

/*
 * How many of the columns of a version are known.  A version of a transaction that has
 * been rolled back may have columns that it had added itself, and that no longer
 * exist, or are others by now.  Those are certain that the newest version of somebody
 * else has; none if the row was inserted by it.
 */
static int
known_natts(InsightWalk *walk, const InplaceTupleHeaderData *tup)
{
	InplaceTupleHeaderData hdr = *tup;

	/* one transaction makes no more versions of a row, and one lock on each */
	for (int i = 0; i < 2 * (INPLACE_MAX_TAG + 1); i++)
	{
		if (InsightGetXidStatus(walk->limits, hdr.t_xid,
								hdr.t_infomask) != INSIGHT_XID_ABORTED)
			return HdrNatts(&hdr);
		if (!HdrHasUndo(&hdr) || !UndoPtrIsValid(HdrUndoPtr(&hdr)) ||
			!UndoFetch(walk->rel, HdrUndoPtr(&hdr), walk->block, walk->off,
					   &hdr, true, &walk->rec))
			break;
		hdr = walk->rec.old;
	}
	return 0;
}

/*
 * Is this version of the row sound?  All functions that look into tables ask here.  Of
 * one with columns that are not known nothing but the shape can be told:
 * walk->unknown_columns.
 */
static const char *
check_version(InsightWalk *walk, InplaceTupleHeader tup, Size itemlen, Size *len)
{
	const char *problem = InsightCheckShape(tup, itemlen, len);

	walk->unknown_columns = false;
	if (problem)
		return problem;
	if (InsightGetXidStatus(walk->limits, tup->t_xid,
							tup->t_infomask) == INSIGHT_XID_ABORTED)
	{
		if (walk->known_natts < 0)
			walk->known_natts = known_natts(walk, tup);
		if (HdrNatts(tup) > walk->known_natts)
		{
			walk->unknown_columns = true;
			return NULL;
		}
	}
	return check_attributes(RelationGetDescr(walk->rel), tup, *len);
}

void
InsightDeform(TupleDesc desc, InplaceTupleHeader tup, Datum *values,
			  bool *isnull)
{
	int			natts = Min(desc->natts, (int) HdrNatts(tup));
	int			i;

	(void) inplace_deform_first(desc, tup, natts, values, isnull,
								CurrentMemoryContext, NULL);
	for (i = natts; i < desc->natts; i++)
		values[i] = getmissingattr(desc, i + 1, &isnull[i]);
}

/*
 * Do two headers of one image say the same of it?  An item that once had to
 * be aligned stays so on its page (see page.c), which records do not follow.
 */
static bool
same_layout(const InplaceTupleHeaderData *a, const InplaceTupleHeaderData *b)
{
	return ((a->t_natts ^ b->t_natts) & ~(IP_ALIGNED | IP_UNCHANGED)) == 0;
}

/*
 * Take an indirect lock off the version.  Returns false if what is below it is not
 * known.
 */
static bool
take_lock_off(InsightWalk *walk, bool seen_by_all)
{
	InplaceTupleHeader tup = walk->tuple;
	UndoRecord *rec = &walk->lockrec;
	uint32		locker;

	walk->lock_undo = HdrUndoPtr(tup);
	if (!UndoPtrIsValid(walk->lock_undo) ||
		!UndoFetch(walk->rel, walk->lock_undo, walk->block, walk->off,
				   tup, true, rec) ||
		rec->hdr.ur_type != UNDO_LOCK ||
		rec->old.t_xid != tup->t_xid)
	{
		walk->undo = walk->lock_undo;
		walk->undo_state = seen_by_all ? INSIGHT_UNDO_UNNEEDED :
			INSIGHT_UNDO_MISSING;
		return false;
	}
	if (rec->payload_len < sizeof(locker) ||
		HdrIsLocked(&rec->old) ||
		!same_layout(&rec->old, tup) ||
		!HdrSameVersion(&rec->old, tup))
	{
		walk->undo_state = INSIGHT_UNDO_BAD;
		walk->problem = psprintf("undo record %s of a row lock does not match the row",
								 InsightUndoText(walk->lock_undo));
		return false;
	}
	memcpy(&locker, rec->payload, sizeof(locker));
	walk->locker = locker;
	walk->lock_known = true;

	/* the header without its lock; hints may have come since */
	HdrCopyUndo(tup, &rec->old);
	tup->t_infomask = (tup->t_infomask & ~(IP_LOCK_BITS | IP_FRESH)) |
		(rec->old.t_infomask & (IP_FRESH | IP_FROZEN));
	return true;
}

/*
 * Find the undo record that leads back from the version, which has no lock now.
 */
static void
find_undo(InsightWalk *walk, bool seen_by_all)
{
	InplaceTupleHeader tup = walk->tuple;

	walk->undo = HdrUndoPtr(tup);
	if (seen_by_all)
		walk->undo_state = INSIGHT_UNDO_UNNEEDED;
	else if (!UndoPtrIsValid(walk->undo))
		walk->undo_state = INSIGHT_UNDO_NONE;
	else if (!UndoFetch(walk->rel, walk->undo, walk->block, walk->off, tup,
						true, &walk->rec) ||
			 walk->rec.hdr.ur_type == UNDO_LOCK ||
			 walk->rec.hdr.ur_xid != tup->t_xid)
		walk->undo_state = INSIGHT_UNDO_MISSING;
	else if (walk->rec.hdr.ur_type != UNDO_UPDATE &&
			 walk->rec.hdr.ur_type != UNDO_DELETE &&
			 walk->rec.hdr.ur_type != UNDO_MOVE)
	{
		walk->undo_state = INSIGHT_UNDO_BAD;
		walk->problem = psprintf("undo record %s is of unknown type %d",
								 InsightUndoText(walk->undo),
								 walk->rec.hdr.ur_type);
	}
	else if ((walk->rec.hdr.ur_type == UNDO_UPDATE) ==
			 ((tup->t_infomask & IP_DELETED) != 0))
	{
		walk->undo_state = INSIGHT_UNDO_BAD;
		walk->problem = psprintf("undo record %s is of another kind of change than the row shows",
								 InsightUndoText(walk->undo));
	}
	else
	{
		walk->undo_state = INSIGHT_UNDO_FOUND;
		walk->cid_known = true;
		walk->cid = walk->rec.hdr.ur_cid;
	}
}

/*
 * Find out what leads back from the version now in walk->tuple, and take an
 * indirect lock off it.
 */
static void
walk_resolve(InsightWalk *walk)
{
	InplaceTupleHeader tup = walk->tuple;
	bool		seen_by_all;

	walk->status = InsightGetXidStatus(walk->limits, tup->t_xid,
									   tup->t_infomask);
	walk->locked = false;
	walk->lock_known = false;
	walk->lock_undo = InvalidUndoPtr;
	walk->undo = InvalidUndoPtr;
	walk->undo_state = INSIGHT_UNDO_NONE;
	walk->cid_known = false;

	seen_by_all = (tup->t_infomask & IP_FROZEN) != 0 ||
		(walk->status == INSIGHT_XID_COMMITTED &&
		 TransactionIdPrecedes(tup->t_xid, walk->limits->horizon));

	if (HdrIsLocked(tup))
	{
		walk->locked = true;
		walk->lock_multi = (tup->t_infomask & IP_LOCK_MULTI) != 0;
		walk->lock_mode = HdrLockMode(tup);
	}

	if (HdrHasDirectLocker(tup))
	{
		walk->lock_known = true;
		walk->locker = HdrDirectLocker(tup);
		return;
	}

	if ((tup->t_infomask & IP_LOCK_INDIRECT) &&
		!take_lock_off(walk, seen_by_all))
		return;

	if (!HdrHasUndo(tup))
	{
		walk->cid = HdrIsSpeculative(tup) ? HdrSpecCid(tup) : HdrInsertCid(tup);
		walk->cid_known = walk->cid != InvalidCommandId;
		return;
	}

	find_undo(walk, seen_by_all);
}

const char *
InsightWalkBegin(InsightWalk *walk, Relation rel, const InsightLimits *limits,
				 BlockNumber block, OffsetNumber off, InplaceTupleHeader tup,
				 Size itemlen)
{
	const char *problem;

	walk->rel = rel;
	walk->limits = limits;
	walk->block = block;
	walk->off = off;
	walk->version = 0;
	walk->problem = NULL;
	walk->steps = 0;
	walk->landmark = InvalidUndoPtr;
	walk->known_natts = -1;

	problem = check_version(walk, tup, itemlen, &walk->len);
	if (problem)
		return problem;
	walk->tuple = (InplaceTupleHeader) walk->space[0].data;
	memcpy(walk->tuple, tup, walk->len);
	walk->tuple->t_infomask &= ~IP_PADDED;
	walk_resolve(walk);
	return NULL;
}

bool
InsightWalkBack(InsightWalk *walk)
{
	UndoRecord *rec = &walk->rec;
	InplaceTupleHeader older;
	const char *problem;
	UndoPtr		from = walk->undo;
	bool		relative;
	Size		len;

	if (walk->undo_state != INSIGHT_UNDO_FOUND)
		return false;

	/* Brent's way to notice that we go in a circle */
	if (from == walk->landmark)
	{
		walk->problem = psprintf("undo chain comes back to record %s",
								 InsightUndoText(from));
		return false;
	}
	walk->steps++;
	if ((walk->steps & (walk->steps - 1)) == 0)
		walk->landmark = from;

	if (rec->hdr.ur_type == UNDO_UPDATE)
	{
		int			n;

		older = (InplaceTupleHeader)
			((char *) walk->tuple == walk->space[0].data ?
			 walk->space[1].data : walk->space[0].data);
		n = delta_apply(rec->payload, rec->payload_len,
						(char *) walk->tuple + SizeOfInplaceTupleHeader,
						walk->len - SizeOfInplaceTupleHeader,
						(char *) older + SizeOfInplaceTupleHeader,
						InplaceMaxTupleSize - SizeOfInplaceTupleHeader);
		if (n < 0)
		{
			walk->problem = psprintf("delta of undo record %s does not fit the row",
									 InsightUndoText(from));
			return false;
		}
		len = SizeOfInplaceTupleHeader + n;
	}
	else
	{
		older = walk->tuple;
		len = walk->len;
		if (!same_layout(&rec->old, older))
		{
			walk->problem = psprintf("undo record %s has another attribute count than the row",
									 InsightUndoText(from));
			return false;
		}
	}

	relative = (rec->hdr.ur_flags & UR_RELATIVE_HEADER) != 0;
	*older = rec->old;
	older->t_infomask &= ~IP_PADDED;
	/* (may read other undo into walk->rec, which we are done with) */
	problem = check_version(walk, older, len, &len);
	if (problem)
	{
		walk->problem = psprintf("version before undo record %s: %s",
								 InsightUndoText(from), problem);
		return false;
	}

	walk->tuple = older;
	walk->len = len;
	walk->version++;
	walk_resolve(walk);
	if (relative)
		walk->cid_known = false;	/* it says fresh, whatever it was */
	return true;
}

bool
InsightVisible(const InsightWalk *walk, Snapshot snapshot)
{
	switch (walk->status)
	{
		case INSIGHT_XID_CURRENT:
			return walk->cid_known ? walk->cid < snapshot->curcid :
				!HdrIsSpeculative(walk->tuple);
		case INSIGHT_XID_COMMITTED:
			return (walk->tuple->t_infomask & IP_FROZEN) != 0 ||
				!TransactionIdIsNormal(walk->tuple->t_xid) ||
				!XidInMVCCSnapshot(walk->tuple->t_xid, snapshot);
		default:
			return false;
	}
}

char *
InsightUndoText(UndoPtr ptr)
{
	return psprintf("%u/%u", UndoPtrBlock(ptr), UndoPtrOffset(ptr));
}

const char *
InsightCheckToast(Relation toastrel, Datum value, Snapshot snapshot)
{
	struct varlena *attr = (struct varlena *) DatumGetPointer(value);
	struct varatt_external ptr;
	const char *problem = NULL;
	Relation   *indexes;
	int			num_indexes;
	int			valid_index;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	chunk;
	int32		extsize;
	int32		nchunks;
	int32		next = 0;

	VARATT_EXTERNAL_GET_POINTER(ptr, attr);
	extsize = VARATT_EXTERNAL_GET_EXTSIZE(ptr);

	if (ptr.va_toastrelid != RelationGetRelid(toastrel))
		return psprintf("TOAST value %u is said to be in relation %u, not in the table's %u",
						ptr.va_valueid, ptr.va_toastrelid,
						RelationGetRelid(toastrel));
	if (extsize <= 0 || ptr.va_rawsize < VARHDRSZ ||
		ptr.va_rawsize > MaxAllocSize || extsize > ptr.va_rawsize)
		return psprintf("TOAST value %u has impossible lengths %d and %d",
						ptr.va_valueid, extsize, ptr.va_rawsize);
	nchunks = (extsize - 1) / TOAST_MAX_CHUNK_SIZE + 1;

	valid_index = toast_open_indexes(toastrel, AccessShareLock, &indexes,
									 &num_indexes);
	ScanKeyInit(&key, (AttrNumber) 1, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(ptr.va_valueid));
	scan = systable_beginscan_ordered(toastrel, indexes[valid_index],
									  snapshot, 1, &key);
	while ((chunk = systable_getnext_ordered(scan, ForwardScanDirection)) != NULL)
	{
		bool		null_seq;
		bool		null_data;
		int32		seq = DatumGetInt32(fastgetattr(chunk, 2, toastrel->rd_att,
													&null_seq));
		Datum		data = fastgetattr(chunk, 3, toastrel->rd_att, &null_data);
		int32		expected;
		int32		size;

		CHECK_FOR_INTERRUPTS();

		if (null_seq || null_data || seq != next || next >= nchunks)
		{
			problem = psprintf("TOAST value %u: chunk %d found where chunk %d of %d was expected",
							   ptr.va_valueid, null_seq ? -1 : seq, next,
							   nchunks);
			break;
		}
		if (VARATT_IS_EXTENDED(DatumGetPointer(data)) &&
			!VARATT_IS_SHORT(DatumGetPointer(data)))
		{
			problem = psprintf("TOAST value %u: chunk %d is compressed or external",
							   ptr.va_valueid, seq);
			break;
		}
		size = VARSIZE_ANY_EXHDR(DatumGetPointer(data));
		expected = next < nchunks - 1 ? TOAST_MAX_CHUNK_SIZE :
			extsize - (nchunks - 1) * TOAST_MAX_CHUNK_SIZE;
		if (size != expected)
		{
			problem = psprintf("TOAST value %u: chunk %d has %d bytes, expected %d",
							   ptr.va_valueid, seq, size, expected);
			break;
		}
		next++;
	}
	systable_endscan_ordered(scan);
	toast_close_indexes(indexes, num_indexes, AccessShareLock);

	if (problem == NULL && next < nchunks)
		problem = psprintf("TOAST value %u: %d of %d chunks missing",
						   ptr.va_valueid, nchunks - next, nchunks);
	return problem;
}

const char *
InsightCheckLocker(const InsightWalk *walk)
{
	const InsightLimits *limits = walk->limits;
	TransactionId id = walk->locker;

	if (!walk->lock_known)
		return NULL;
	if (walk->lock_multi)
	{
		if (!MultiXactIdIsValid(id))
			return "locker is an invalid multixact";
		if (!MultiXactIdPrecedes(id, limits->next_multi))
			return psprintf("locking multixact %u is in the future", id);
		if (MultiXactIdPrecedes(id, limits->relminmxid))
			return psprintf("locking multixact %u is older than relminmxid %u",
							id, limits->relminmxid);
	}
	else
	{
		if (!TransactionIdIsNormal(id))
			return psprintf("locker %u is not a transaction", id);
		if (!TransactionIdPrecedes(id, limits->next_xid))
			return psprintf("locker %u is in the future", id);
		if (TransactionIdIsNormal(limits->relfrozenxid) &&
			TransactionIdPrecedes(id, limits->relfrozenxid))
			return psprintf("locker %u is older than relfrozenxid %u",
							id, limits->relfrozenxid);
	}
	return NULL;
}

/*
 * Asked as if of an update, for what the server lets go of mere locks is a matter of
 * what this session may see, and on a standby that is none.
 */
int
InsightLockMembers(const InsightWalk *walk, MultiXactMember **members)
{
	if (MultiXactIdPrecedes(walk->locker, walk->limits->relminmxid) ||
		!MultiXactIdPrecedes(walk->locker, walk->limits->next_multi))
		return 0;
	return Max(GetMultiXactIdMembers(walk->locker, members, false, false), 0);
}

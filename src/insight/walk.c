/*-------------------------------------------------------------------------
 *
 * walk.c
 *	  The walk over the versions of a row, of the functions that look into
 *	  tables.
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

#include "access/htup_details.h"
#include "insight/limits.h"
#include "insight/row_bytes.h"
#include "insight/walk.h"
#include "page/delta.h"
#include "page/tuple.h"
#include "undo/record.h"
#include "undo/undo.h"

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
			return HdrNattsAsStored(&hdr);
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
	if (problem || HdrIsEvicted(tup))
		return problem;
	if (InsightGetXidStatus(walk->limits, tup->t_xid,
							tup->t_infomask) == INSIGHT_XID_ABORTED)
	{
		if (walk->known_natts < 0)
			walk->known_natts = known_natts(walk, tup);
		if (HdrNattsAsStored(tup) > walk->known_natts)
		{
			walk->unknown_columns = true;
			return NULL;
		}
	}
	return InsightCheckAttributes(RelationGetDescr(walk->rel), tup, *len);
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

	seen_by_all = walk->status == INSIGHT_XID_COMMITTED &&
		TransactionIdPrecedes(HdrXid(tup), walk->limits->horizon);

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
	const char *image;
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
	else if ((image = UndoEvictedImage(rec, &len)) != NULL)
	{
		older = walk->tuple;
		memcpy((char *) older + SizeOfInplaceTupleHeader, image, len);
		len += SizeOfInplaceTupleHeader;
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

/*-------------------------------------------------------------------------
 *
 * target.c
 *	  Which version of a row the caller of update, delete or tuple_lock means.
 *
 * Heap's callers name a version by its TID.  Here that is the row, and the version
 * follows from the snapshot, from the tag in the TID, or from what is remembered
 * of a search (found_row.c).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/tuple.h"
#include "row/target.h"
#include "row/visibility.h"
#include "utils/snapmgr.h"

void
inplace_target_init(RowTarget *target, const ItemPointerData *tid,
					Snapshot snapshot)
{
	memset(target, 0, sizeof(*target));
	TidClean(&target->tid, tid);
	target->kind = TARGET_SEEN;
	target->snapshot = snapshot;
	if (TidHasTag(tid))
	{
		target->kind = TARGET_OURS;
		target->tag = TidTag(tid);
	}
}

/*
 * Is the version with this header the one the caller means?
 */
bool
inplace_is_target(const RowTarget *target, InplaceTupleHeader hdr,
				  XidStatus status, CommandId cid)
{
	switch (target->kind)
	{
		case TARGET_NEWEST:
			return true;
		case TARGET_FOUND:
			return SameVersion(hdr->t_tag, hdr->t_xid,
							   target->tag, target->xmin);
		case TARGET_OURS:
			return SameTagInXact(hdr->t_tag, target->tag);
		case TARGET_SEEN:
			break;
	}
	if (target->snapshot == InvalidSnapshot ||
		target->snapshot->snapshot_type != SNAPSHOT_MVCC)
		return true;
	if (hdr->t_infomask & IP_FROZEN)
		return true;
	if (status == XID_CURRENT)
		return cid < target->snapshot->curcid;
	return !XidInMVCCSnapshot(hdr->t_xid, target->snapshot);
}

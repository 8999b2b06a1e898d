/*-------------------------------------------------------------------------
 *
 * target.c
 *	  Which version of a row the caller of update, delete or tuple_lock means.
 *
 * Heap's callers name a version by its TID.  Here that is the row, and the version
 * follows from the snapshot, from the tag in the TID, or from what is remembered
 * of a search.
 *
 * Found with SnapshotDirty
 *	  ON CONFLICT DO UPDATE, and the apply worker, look for a row with
 *	  SnapshotDirty, and then lock it without flags, by its TID.  On heap that is
 *	  the TID of the version found.  If another version has replaced it when the
 *	  backend gets the lock, the backend is told so and looks again, for the row
 *	  may have another key by then.  Here the versions of a row share the TID, so
 *	  what was found is remembered.
 *
 *	  The apply worker's TID is that in the slot, which has the version, too.  ON
 *	  CONFLICT comes with a TID alone.  It is that of the row found last, for of an
 *	  index's rows it looks no further than the first in the way.  So the last row
 *	  found is kept.  It is of use once: a backend that is told that the version was
 *	  replaced looks for the row again before it comes back.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/slot.h"
#include "page/tuple.h"
#include "row/target.h"
#include "row/visibility.h"
#include "utils/snapmgr.h"

/*
 * The executor names a row of which it has lost the TID.  A page asked for by such would be a
 * new one.
 */
void
inplace_refuse_no_place(const ItemPointerData *tid)
{
	if (likely(ItemPointerIsValid(tid) &&
			   ItemPointerGetBlockNumberNoCheck(tid) != InvalidBlockNumber))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("row has lost its place in its table"),
			 errdetail("Its TID is (%u,%u).", ItemPointerGetBlockNumberNoCheck(tid),
					   ItemPointerGetOffsetNumberNoCheck(tid)),
			 errhint("It may come from an index scan in the order of distances that the index knows by approximation.  Set enable_indexscan to off.")));
}

void
inplace_target_init(RowTarget *target, const ItemPointerData *tid,
					Snapshot snapshot)
{
	inplace_refuse_no_place(tid);
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

/* the row found last */
static struct
{
	Oid			relid;			/* or InvalidOid */
	ItemPointerData tid;
	VersionTag	tag;
	TransactionId xmin;
}			found_last;

void
inplace_note_found_row(Relation rel, TupleTableSlot *slot)
{
	InplaceTupleTableSlot *is = (InplaceTupleTableSlot *) slot;

	Assert(TTS_IS_INPLACE(slot) && is->has_sysattrs);
	found_last.relid = RelationGetRelid(rel);
	found_last.tid = slot->tts_tid;
	found_last.tag = is->tag;
	found_last.xmin = is->xmin;
}

static void
set_version(RowTarget *target, VersionTag tag, TransactionId xmin)
{
	target->kind = TARGET_FOUND;
	target->tag = tag;
	target->xmin = xmin;
}

bool
inplace_target_found_row(Relation rel, const ItemPointerData *tid,
						 TupleTableSlot *slot, RowTarget *target)
{
	InplaceTupleTableSlot *is = (InplaceTupleTableSlot *) slot;

	if (tid == &slot->tts_tid && TTS_IS_INPLACE(slot) && !TTS_EMPTY(slot) &&
		is->has_sysattrs)
	{
		set_version(target, is->tag, is->xmin);
		return true;
	}
	if (found_last.relid != RelationGetRelid(rel) ||
		!ItemPointerEquals(&found_last.tid, &target->tid))
		return false;
	set_version(target, found_last.tag, found_last.xmin);
	found_last.relid = InvalidOid;
	return true;
}

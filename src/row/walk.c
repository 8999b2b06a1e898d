/*-------------------------------------------------------------------------
 *
 * walk.c
 *	  Walking back along the versions of a row.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/delta.h"
#include "page/tuple.h"
#include "row/walk.h"
#include "undo/record.h"
#include "undo/undo.h"


void
inplace_walk_begin(ChainWalk *walk, Relation rel, BlockNumber blk,
				   OffsetNumber off, InplaceTupleHeader tup, Size len)
{
	walk->rel = rel;
	walk->blk = blk;
	walk->off = off;
	memset(&walk->guard, 0, sizeof(walk->guard));
	walk->cur = 0;
	walk->tuple = (InplaceTupleHeader) walk->space[0].data;
	walk->len = len;
	memcpy(walk->tuple, tup, len);
	walk->tuple->t_infomask &= ~IP_PADDED;
}

/*
 * Go to the version before; false if the present one's xid precedes "horizon", or if
 * the xid that replaced the version before precedes "needed_from".
 */
static bool
walk_back(ChainWalk *walk, TransactionId horizon, TransactionId needed_from)
{
	InplaceTupleHeader tup = walk->tuple;
	UndoRecord *rec = &walk->rec;

	for (;;)
	{
		InplaceTupleHeader old;
		UndoPtr		ptr;
		int			len;

		/* a lock may stand between two versions; it has the newer's xid */
		if (!HdrHasUndo(tup) || (tup->t_infomask & IP_FROZEN) ||
			TransactionIdPrecedes(tup->t_xid, horizon))
			return false;

		ptr = HdrUndoPtr(tup);
		if (!UndoPtrIsValid(ptr) ||
			!UndoFetch(walk->rel, ptr, walk->blk, walk->off, tup, true, rec))
			return false;
		UndoWalkCheck(&walk->guard, walk->rel, ptr, walk->blk, walk->off);
		if (rec->hdr.ur_type == UNDO_UPDATE &&
			TransactionIdPrecedes(rec->replaced.xid, needed_from))
			return false;

		walk->change = (UndoRecordType) rec->hdr.ur_type;
		if (walk->change != UNDO_UPDATE)
		{
			/* the row itself was left as it is */
			*tup = rec->old;
			tup->t_infomask &= ~IP_PADDED;
			if (walk->change == UNDO_LOCK)
				continue;
			return true;
		}

		old = (InplaceTupleHeader) walk->space[1 - walk->cur].data;
		*old = rec->old;
		old->t_infomask &= ~IP_PADDED;
		len = delta_apply(rec->payload, rec->payload_len,
						  (char *) tup + SizeOfInplaceTupleHeader,
						  walk->len - SizeOfInplaceTupleHeader,
						  (char *) old + SizeOfInplaceTupleHeader,
						  BLCKSZ - SizeOfInplaceTupleHeader);
		if (len < 0)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("undo record does not fit row (%u,%u) of relation \"%s\"",
							walk->blk, walk->off,
							RelationGetRelationName(walk->rel))));
		walk->cur = 1 - walk->cur;
		walk->tuple = old;
		walk->len = SizeOfInplaceTupleHeader + len;
		return true;
	}
}

bool
inplace_walk_back(ChainWalk *walk, TransactionId horizon)
{
	return walk_back(walk, horizon, InvalidTransactionId);
}

/*
 * Where versions have been squeezed, the one before may be that of a snapshot that is
 * gone, though this one is needed: then its values in the TOAST table may be, too.
 */
bool
inplace_walk_back_needed(ChainWalk *walk, TransactionId horizon)
{
	return walk_back(walk, horizon, horizon);
}

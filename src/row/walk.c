/*-------------------------------------------------------------------------
 *
 * walk.c
 *	  Walking back along the versions of a row.
 *
 * Records of locks and links stand beside the chain: what is below one is the same
 * version.  A lock is passed over.  Whether a link may be taken is for the caller to say,
 * which knows what is looked for (link.c).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/delta.h"
#include "page/tuple.h"
#include "row/walk.h"
#include "undo/record.h"
#include "undo/undo.h"

bool
inplace_walk_read(ChainWalk *walk, bool missing_ok)
{
	UndoPtr		ptr = HdrUndoPtr(&walk->hdr);

	if (!UndoFetchRecord(walk->rel, ptr, walk->blk, walk->off, &walk->hdr,
						 missing_ok, &walk->rec))
		return false;
	UndoWalkCheck(&walk->guard, walk->rel, ptr, walk->blk, walk->off);
	return true;
}

static WalkChoice
default_choice(const ChainWalk *walk)
{
	return walk->rec.hdr.ur_type == UNDO_LOCK ||
		walk->rec.hdr.ur_type == UNDO_LINK ? WALK_PASS : WALK_GO;
}

/*
 * Make the bytes of the version with this header.
 */
static bool
apply(ChainWalk *walk, const char *delta, Size delta_len,
	  const InplaceTupleHeaderData *hdr)
{
	int			next = walk->cur == 0 ? 1 : 0;
	char	   *dst = walk->space[next].data;
	int			len;

	len = delta_apply(delta, delta_len,
					  (char *) walk->tuple + SizeOfInplaceTupleHeader,
					  walk->len - SizeOfInplaceTupleHeader,
					  dst + SizeOfInplaceTupleHeader,
					  InplaceMaxTupleSize - SizeOfInplaceTupleHeader);
	if (len < 0)
	{
		if (walk->may_dangle)
			return false;
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("undo record %u/%u does not fit row (%u,%u) of relation \"%s\"",
						UndoPtrBlock(HdrUndoPtr(&walk->hdr)),
						UndoPtrOffset(HdrUndoPtr(&walk->hdr)),
						walk->blk, walk->off,
						RelationGetRelationName(walk->rel))));
	}
	memcpy(dst, hdr, SizeOfInplaceTupleHeader);
	walk->cur = next;
	walk->tuple = (InplaceTupleHeader) dst;
	walk->len = SizeOfInplaceTupleHeader + len;
	return true;
}

static bool
take_link(ChainWalk *walk)
{
	UndoLink	link;
	Size		len;
	const char *delta = UndoGetLink(&walk->rec, &link, &len);

	/* entries left behind by the versions in between, as UndoParse has it */
	link.ul_hdr.t_infomask |= walk->hdr.t_infomask & IP_STALE;
	if (!apply(walk, delta, len, &link.ul_hdr))
		return false;
	walk->hdr = link.ul_hdr;
	walk->replaced.xid = link.ul_newer_xid;
	walk->replaced.cid = link.ul_newer_cid;
	return true;
}

/*
 * The version that was evicted is in the record as a whole.
 */
static void
take_evicted(ChainWalk *walk, const char *image, Size len)
{
	int			next = walk->cur == 0 ? 1 : 0;
	char	   *dst = walk->space[next].data;

	memcpy(dst, &walk->rec.old, SizeOfInplaceTupleHeader);
	memcpy(dst + SizeOfInplaceTupleHeader, image, len);
	walk->cur = next;
	walk->tuple = (InplaceTupleHeader) dst;
	walk->len = SizeOfInplaceTupleHeader + len;
}

static bool
take_change(ChainWalk *walk, bool aborted)
{
	const UndoRecord *rec = &walk->rec;
	const char *image;
	Size		len;

	if (rec->hdr.ur_type == UNDO_UPDATE)
	{
		if (!apply(walk, rec->payload, rec->payload_len, &rec->old))
			return false;
	}
	else if ((image = UndoEvictedImage(rec, &len)) != NULL)
		take_evicted(walk, image, len);
	walk->hdr = rec->old;
	/* what was rolled back has replaced nothing */
	if (!aborted)
		walk->replaced = rec->replaced;
	return true;
}

bool
inplace_walk_on(ChainWalk *walk, bool missing_ok, WalkCallback choose,
				void *arg)
{
	bool		aborted = (walk->hdr.t_infomask & IP_ABORTED) != 0;

	/* (a damaged row may come here with any combination of flags) */
	if (!HdrHasUndo(&walk->hdr) && !(walk->hdr.t_infomask & IP_LOCK_INDIRECT))
		return false;
	do
	{
		if (!inplace_walk_read(walk, missing_ok))
			return false;
		switch (choose ? choose(walk, arg) : default_choice(walk))
		{
			case WALK_GO:
				return walk->rec.hdr.ur_type == UNDO_LINK ?
					take_link(walk) : take_change(walk, aborted);
			case WALK_PASS:
				walk->hdr = walk->rec.old;
				break;
			case WALK_STOP:
				return false;
		}
	} while (HdrHasUndo(&walk->hdr));
	return false;
}

ChainWalk *
inplace_walk_begin(CopyWalk *copies, Relation rel, BlockNumber blk,
				   OffsetNumber off, InplaceTupleHeader tup, Size len)
{
	ChainWalk  *walk = &copies->walk;
	InplaceTupleHeader copy = &copies->space[0].hdr;

	memcpy(copy, tup, len);
	copy->t_infomask &= ~IP_PADDED;
	inplace_walk_start(walk, rel, blk, off, copy, copy, len, copies->space);
	walk->cur = 0;
	return walk;
}

static WalkChoice
choose_needed(ChainWalk *walk, void *arg)
{
	TransactionId needed_from = *(TransactionId *) arg;

	if (walk->rec.hdr.ur_type == UNDO_UPDATE &&
		TransactionIdPrecedes(walk->rec.replaced.xid, needed_from))
		return WALK_STOP;
	return default_choice(walk);
}

/*
 * Go to the version before; false if the present one's xid precedes "horizon", or if
 * the xid that replaced the version before precedes "needed_from".
 */
static bool
walk_back(ChainWalk *walk, TransactionId horizon, TransactionId needed_from)
{
	bool		found;

	if (!HdrHasUndo(&walk->hdr) || (walk->hdr.t_infomask & IP_FROZEN) ||
		TransactionIdPrecedes(HdrXid(&walk->hdr), horizon))
		return false;
	found = inplace_walk_on(walk, true, choose_needed, &needed_from);

	/* a lock may have been passed over, or the row itself be as it was */
	walk->hdr.t_infomask &= ~IP_PADDED;
	*walk->tuple = walk->hdr;
	return found;
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

bool
inplace_version_before(Relation rel, const ItemPointerData *tid,
					   InplaceTupleHeader hdr, bool missing_ok,
					   UndoWalkGuard *guard, UndoRecord *rec)
{
	BlockNumber blk = ItemPointerGetBlockNumber(tid);
	OffsetNumber off = ItemPointerGetOffsetNumber(tid);

	do
	{
		if (!HdrHasUndo(hdr) ||
			!UndoFetch(rel, HdrUndoPtr(hdr), blk, off, hdr, missing_ok, rec))
			return false;
		UndoWalkCheck(guard, rel, HdrUndoPtr(hdr), blk, off);
		*hdr = rec->old;
	} while (rec->hdr.ur_type == UNDO_LOCK);
	return true;
}

bool
inplace_moved_to(Relation rel, const InplaceTupleHeaderData *tup,
				 const ItemPointerData *from, ItemPointer to)
{
	InplaceTupleHeaderData hdr = *tup;
	UndoWalkGuard guard = {0};
	UndoRecord	rec;
	BlockNumber blk;
	OffsetNumber off;

	if (!inplace_version_before(rel, from, &hdr, true, &guard, &rec) ||
		rec.hdr.ur_type != UNDO_MOVE)
		return false;
	memcpy(&blk, rec.payload, sizeof(blk));
	memcpy(&off, rec.payload + sizeof(blk), sizeof(off));
	ItemPointerSet(to, blk, off);
	return true;
}

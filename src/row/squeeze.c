/*-------------------------------------------------------------------------
 *
 * squeeze.c
 *	  Dropping the versions of a row that no snapshot can see, although some
 *	  older version is needed.
 *
 * Under a snapshot that is held for long the undo of rows that are updated over
 * and over again would grow with each update.  But what is needed is the version
 * that the old snapshot sees, and the last few.  So now and then an update gives
 * such a row a new chain, which leads from the version that the update replaces
 * to those that are needed and, but for a tail, to no others:
 *
 *	  new change -> P -> (a few) -> F -> B			the new chain
 *					 \-> ... -> F -> ... -> ... -> B -> ...
 *
 * P is the version that is replaced, F the newest that all snapshots see but those
 * that have been published (holders.c), B what one of the latter sees.  The new
 * chain is of ordinary records, each with the whole difference to the next version
 * that was kept.  With UR_SQUEEZED a record also has the xid that had replaced
 * that version, for its xmax.  No record is changed, and nothing of what readers
 * do.  A reader that does not see P finds its new chain, by way of the new change
 * or, if that is rolled back, of the row on its page.
 *
 * Which versions are kept, "all_see", "seen", "others_see" and "held" as in holders.h
 *	  1. P, and all down to the first whose xid precedes all_see, or is in
 *		 "others_see" or in "seen": F.
 *	  2. Below F, for each held snapshot: none with an xid that is not
 *		 older than its xmax, then all down to the first whose xid precedes its
 *		 xmin.  None below one (F as well) that is in "seen".
 *	  3. All with KEYS_UPDATED: FOR KEY SHARE looks for them on the way to the
 *		 version it means.
 *	  4. While a held snapshot is that of a SERIALIZABLE transaction, and looks for
 *		 something below: the oldest version that there is; and all, if the
 *		 row is IP_STALE, or the table has a summarizing index.
 *	  5. While a held snapshot that shares keys (between.c) looks for something below:
 *		 the oldest version that there is, if there is room.  It says who put the row
 *		 there, for FOR KEY SHARE on the way from where the snapshot sees the row
 *		 (lock_chain.c).  Where it is not known that fails, as if the row were deleted.
 *	  6. Of the others none, but for a tail ("Bounds" below).
 *
 * Proof that every snapshot finds the version it sees
 *	  All versions below P are committed, for an update that finds an aborted
 *	  change restores the row first, and P is committed too.  The version that a
 *	  snapshot S sees is the newest whose xid it sees.
 *	  - If S is not a held one, its xmin is not older than all_see, and it
 *		 sees what is in "others_see": it sees F, so what it looks for is F or newer,
 *		 and all of that is kept.
 *	  - If S is held and sees F or something newer: the same.
 *	  - The same if it looks for nothing older than a version in "seen", where
 *		 that is below F.
 *	  - Otherwise it looks for a version X below F.  X's xid precedes S's xmax,
 *		or S would not see it; and no version between F and X has an xid before
 *		S's xmin, or S would see that and X would not be the newest.  So X is
 *		among those kept for S.  If S sees no version at all, none is found.
 *	  Walking from P through what was kept, S passes by versions it does not
 *	  see, and the first that it sees is the newest.
 *
 *	  Others that walk
 *	  - The owner of a change in progress, for a rollback or for the version
 *		its trigger saw: that is above P, or P itself, now and later.
 *	  - A backend that has locked a version with a tag in mind (EvalPlanQual).
 *		It has an xid and is not idle, so its snapshot is not a held one.  Its
 *		statement's snapshot has an xmin that is not newer than the xid which
 *		replaced that version since, and does not see that xid: so the version is
 *		kept.  From REPEATABLE READ on, a transaction that has locked a version
 *		sees it.
 *	  - Serializable transactions, to be found in conflict with writers they
 *		do not see ("Serializable transactions" below).
 *	  - A search for keys that an index entry may still be needed for.  For what
 *		was dropped it is not needed: all transactions that made what was dropped
 *		had ended in the view of every snapshot.
 *	  - Standbys: a query that does not see F there gets a recovery conflict, by a
 *		discard record that comes before the new chain.  F's xid says no more than
 *		that if transactions with older ones are still open.
 *
 * Serializable transactions
 *	  A reader is in a rw-conflict with the transaction that replaced the version
 *	  it sees, or that made the row if it sees none.  In a cycle of dependencies
 *	  (Adya, "Weak Consistency", 1999) ww-dependencies lead from that transaction to
 *	  those that came after it.  So it is enough to find this conflict.  Conflicts
 *	  with others that the reader passes by are found as well, but need not be; on
 *	  heap an index scan along a HOT chain finds the first alone.  The chain has
 *	  each version's replacer with the version, whatever has been dropped in
 *	  between.  If no version is seen, the oldest one is still there, and it has
 *	  the xid that made the row.
 *	  The reader has to come to the row for that.  A change of keys and back leaves
 *	  entries by which it would come, and which are not needed any more when the
 *	  version that they are of is dropped.  So no version is dropped if there may be
 *	  such entries.  The mark stays while the snapshot is there (vacuum/stale.c).
 *	  Nor is any version dropped of a table with a summarizing index, whose columns
 *	  are updated in place without a mark.  Such an index that is made later is not
 *	  for the snapshot (index/young_index.c).  A rewrite of the table takes over the
 *	  replacers of versions.
 *	  All this is between transactions that are SERIALIZABLE.  The replacer may not
 *	  be one, and a SERIALIZABLE transaction that came after it be missed for that;
 *	  on heap it depends on how the row is read.
 *
 * Giving extents back in the middle
 *	  The old chain's records are not marked.  The undo worker goes through
 *	  extents in which all is seen by all snapshots but held ones, and for each
 *	  row that has a record there looks whether the chain from its page leads into
 *	  the extent.  If that is so for no row, it gives the extent back (release.c).
 *	  - Snapshots that are not held ones see everything recorded in the
 *		extent, as if it were behind the horizon, and follow nothing into it:
 *		the argument of discard.c.
 *	  - Held ones walk with the row's page locked (visibility.c).  A chain that does not lead
 *		into the extent never does so again: what is put on a page leads to
 *		new records, or to where a record of the chain leads.
 *
 * Bounds
 *	  The walk below F goes along links (link.c) where they pass over nothing
 *	  that is needed.  A chain is squeezed if that drops SQUEEZE_MIN_DROP
 *	  versions, so each update pays for a small part of it.  If too many have to
 *	  be kept, because all_see is far behind, links are put as usual, and a later
 *	  update tries again.  The versions to be kept may be too many only below some
 *	  that can be dropped: a session with a cursor goes on to other statements, and
 *	  all between its two snapshots may be needed.  Then the new chain ends where
 *	  those to be kept begin, and goes on into the old one there.  They are kept
 *	  once, and nothing is added to them.
 *
 * Lock order: the row's page is locked exclusively; undo pages, and
 * ProcArrayLock (holders.c), are locked one at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/compare.h"
#include "page/delta.h"
#include "page/tuple.h"
#include "row/squeeze.h"
#include "row/walk.h"
#include "undo/append.h"
#include "undo/holders.h"
#include "undo/record.h"
#include "undo/seen.h"
#include "undo/space.h"
#include "undo/undo.h"
#include "wal/log.h"

/* a shorter chain needs neither this nor links */
#define SQUEEZE_MIN_CHAIN	40
/* worth the records of what is kept */
#define SQUEEZE_MIN_DROP	40
#define SQUEEZE_MAX_KEEP	60
/* so many kept one after the other, below some that were dropped, stay where they are */
#define SQUEEZE_MAX_RUN		20
/* steps, those along links included */
#define SQUEEZE_MAX_STEPS	600

typedef struct SqueezeWalk
{
	ChainWalk	walk;
	UndoBounds	bounds;
	TransactionId first_seen;	/* F, or invalid if we are not there yet */
	bool		first_old;		/* all before F had ended */
	bool		done[UNDO_MAX_HOLDERS]; /* sees something newer */

	RowImage	space[2];

	/* the last that was kept, and the command that made it */
	InplaceTupleHeaderData kept_hdr;
	RowImage	kept;
	Size		kept_len;
	CommandId	kept_cid;

	RowDiff		diff;
	char		payload[sizeof(UndoReplaced) + BLCKSZ * 2];
	char		undo[UNDO_MAX_RECORD];
	Size		undo_len;
	Size		starts[SQUEEZE_MAX_KEEP];
	int			nkept;
	bool		dropped;		/* since the last that was kept */
	int			ndropped;		/* about */

	/* the same when the last was kept before which some were dropped */
	Size		gap_undo_len;
	int			gap_nkept;
	int			gap_ndropped;
	bool		tail;			/* the chain goes on as before from there */
} SqueezeWalk;

/*
 * Is the chain so short that nothing need be done?
 */
static bool
chain_is_short(ChainWalk *walk)
{
	int			steps = 0;

	while (HdrHasUndo(&walk->hdr) && !(walk->hdr.t_infomask & IP_FROZEN))
	{
		if (!inplace_walk_read(walk, true))
			return true;
		if (walk->rec.hdr.ur_type != UNDO_LINK && ++steps > SQUEEZE_MIN_CHAIN)
			return false;
		walk->hdr = walk->rec.old;
	}
	return true;
}

/* does every snapshot see the version we are at, or a newer one? */
static bool
nothing_older_needed(const SqueezeWalk *w)
{
	if (!TransactionIdIsValid(w->first_seen))
		return false;
	for (int i = 0; i < w->bounds.nheld; i++)
		if (!w->done[i])
			return false;
	return true;
}

/*
 * May a serializable transaction need a version that it does not see, to come
 * to the row?
 */
static bool
leads_to_conflicts(const SqueezeWalk *w)
{
	return (w->walk.hdr.t_infomask & IP_STALE) != 0 ||
		MayHaveSummarizedAttrs(w->walk.rel);
}

/*
 * May a snapshot that sees neither P nor F need this version?  To be called once
 * for each version, from the newest on.
 */
static bool
may_be_needed(SqueezeWalk *w)
{
	const ChainWalk *walk = &w->walk;
	TransactionId xid = HdrXid(&walk->hdr);
	bool		needed = (walk->hdr.t_infomask & IP_KEYS_UPDATED) != 0;
	bool		frozen = (walk->hdr.t_infomask & IP_FROZEN) != 0;
	bool		conflicts = leads_to_conflicts(w) || !HdrHasUndo(&walk->hdr);

	if (!TransactionIdIsValid(w->first_seen))
	{
		w->first_old = TransactionIdPrecedes(xid, w->bounds.all_see);
		if (w->first_old)
			w->first_seen = xid;
		if (frozen || UndoSeenByAll(&w->bounds.seen, xid))
		{
			w->first_seen = xid;
			for (int i = 0; i < w->bounds.nheld; i++)
				w->done[i] = true;
		}
		else if (UndoSeenByAll(&w->bounds.others_see, xid))
			w->first_seen = xid;
		needed = true;
	}
	else if (!nothing_older_needed(w) && UndoSeenByAll(&w->bounds.seen, xid))
	{
		/* so do those that are held */
		for (int i = 0; i < w->bounds.nheld; i++)
			w->done[i] = true;
		needed = true;
	}
	for (int i = 0; i < w->bounds.nheld; i++)
	{
		UndoHeldSnapshot *held = &w->bounds.held[i];

		if (w->done[i] ||
			(!frozen && !TransactionIdPrecedes(xid, held->xmax) &&
			 !(held->serializable && conflicts)))
			continue;
		needed = true;
		if (frozen || TransactionIdPrecedes(xid, held->xmin))
			w->done[i] = true;
	}
	return needed;
}

/*
 * Does the version we are at, which no snapshot sees, say who put the row here, to a
 * transaction that wants to know?
 */
static bool
tells_who_put_it(const SqueezeWalk *w)
{
	if (HdrHasUndo(&w->walk.hdr) || !inplace_prune_between)
		return false;
	for (int i = 0; i < w->bounds.nheld; i++)
		if (!w->done[i] && w->bounds.held[i].shares_keys)
			return true;
	return false;
}

/*
 * May the versions that the link passes over be dropped, from below F on?  A
 * snapshot that does not see the xid which replaced the version that the link
 * leads to sees none of them (link.c).  The oldest version is never among them.
 */
static bool
link_passes_nothing(const SqueezeWalk *w, const UndoLink *link)
{
	if (!TransactionIdIsValid(w->first_seen) ||
		(link->ul_level & UNDO_LINK_KEYS))
		return false;
	for (int i = 0; i < w->bounds.nheld; i++)
	{
		const UndoHeldSnapshot *held = &w->bounds.held[i];

		if (!w->done[i] &&
			(TransactionIdPrecedes(link->ul_newer_xid, held->xmax) ||
			 (held->serializable && leads_to_conflicts(w))))
			return false;
	}
	return true;
}

/*
 * Versions are dropped by way of a link.  The command that made the last one that is
 * kept is in that one's own record; false if this is not there.
 */
static bool
drop_along_link(SqueezeWalk *w)
{
	ChainWalk  *walk = &w->walk;

	if (!w->dropped)
	{
		UndoRecord *rec = palloc(sizeof(UndoRecord));
		bool		found;

		found = UndoFetch(walk->rel, HdrUndoPtr(&walk->hdr), walk->blk,
						  walk->off, &walk->hdr, true, rec);
		w->kept_cid = found ? rec->hdr.ur_cid : FirstCommandId;
		pfree(rec);
		if (!found)
			return false;
	}
	w->dropped = true;
	w->ndropped += SQUEEZE_MIN_DROP;
	return true;
}

/*
 * Go to the next version that has to be looked at, or, if there is a reason to
 * leave the chain alone, nowhere.
 */
static WalkChoice
choose_step(ChainWalk *walk, void *arg)
{
	SqueezeWalk *w = arg;

	if (walk->rec.hdr.ur_type == UNDO_LINK)
	{
		UndoLink	link;
		Size		len;

		(void) UndoGetLink(&walk->rec, &link, &len);
		if (!link_passes_nothing(w, &link))
			return WALK_PASS;
		return drop_along_link(w) ? WALK_GO : WALK_STOP;
	}

	/* only the newest version has a lock, or can be a deletion */
	if (walk->rec.hdr.ur_type != UNDO_UPDATE)
		return WALK_STOP;
	if (!w->dropped)
		w->kept_cid = walk->rec.hdr.ur_cid;
	return WALK_GO;
}

/*
 * Build the record from the version kept last to the one we are at; false if
 * there is no room for it.
 */
static bool
keep(SqueezeWalk *w)
{
	const ChainWalk *walk = &w->walk;
	bool		prefix = walk->replaced.xid != w->kept_hdr.t_xid ||
		walk->replaced.cid != w->kept_cid;
	Size		prefix_len = prefix ? sizeof(UndoReplaced) : 0;
	Size		payload_len;
	bool		gap = w->dropped;
	char	   *dst = w->undo + w->undo_len;

	if (w->nkept == SQUEEZE_MAX_KEEP ||
		!inplace_diff_rows(RelationGetDescr(walk->rel), walk->tuple, walk->len,
						   &w->kept.hdr, w->kept_len, &w->diff))
		return false;
	payload_len = prefix_len + delta_size(&w->diff.edits, true);
	if (w->undo_len + SizeOfUndoRecordHeader + SizeOfInplaceTupleHeader +
		payload_len > UNDO_MAX_RECORD)
		return false;
	memcpy(w->payload, &walk->replaced, prefix_len);
	(void) delta_encode(&w->diff.edits, true,
						(char *) walk->tuple + SizeOfInplaceTupleHeader,
						w->kept.data + SizeOfInplaceTupleHeader,
						w->payload + prefix_len);

	w->starts[w->nkept++] = w->undo_len;
	w->undo_len += UndoBuild(dst, UNDO_UPDATE, w->kept_hdr.t_xid, w->kept_cid,
							 LocatorSpc(RelLocator(walk->rel)),
							 LocatorRel(RelLocator(walk->rel)),
							 walk->blk, walk->off, &walk->hdr, &w->kept_hdr, false,
							 w->payload, payload_len);
	if (prefix)
		((UndoRecordHeader *) dst)->ur_flags |= UR_SQUEEZED;

	w->kept_hdr = walk->hdr;
	memcpy(w->kept.data, walk->tuple, walk->len);
	w->kept.hdr = walk->hdr;
	w->kept_len = walk->len;
	w->dropped = false;
	if (gap)
	{
		w->gap_undo_len = w->undo_len;
		w->gap_nkept = w->nkept;
		w->gap_ndropped = w->ndropped;
	}
	return true;
}

/*
 * Leave the chain as it is from the version on below which all are needed, or too
 * many.  False if not enough was dropped above.
 */
static bool
end_at_gap(SqueezeWalk *w)
{
	if (w->gap_ndropped < SQUEEZE_MIN_DROP)
		return false;
	w->undo_len = w->gap_undo_len;
	w->nkept = w->gap_nkept;
	w->ndropped = w->gap_ndropped;
	w->tail = true;
	return true;
}

/*
 * From P back to the oldest version that is needed; false if there is a
 * reason to leave the chain alone.
 */
static bool
build_chain(SqueezeWalk *w)
{
	(void) may_be_needed(w);
	for (int steps = 0; steps < SQUEEZE_MAX_STEPS; steps++)
	{
		if (nothing_older_needed(w) || !HdrHasUndo(&w->walk.hdr))
			return true;
		if (!inplace_walk_on(&w->walk, true, choose_step, w))
			return false;
		if (!may_be_needed(w))
		{
			if (tells_who_put_it(w) && keep(w))
				return true;
			w->dropped = true;
			w->ndropped++;
		}
		else if ((w->nkept - w->gap_nkept >= SQUEEZE_MAX_RUN && end_at_gap(w)) ||
				 !keep(w))
			break;
	}
	return w->tail || end_at_gap(w);
}

/*
 * The rest of the chain is dropped, too: of more than SQUEEZE_MIN_CHAIN
 * versions what is left.
 */
static bool
is_worth_it(const SqueezeWalk *w)
{
	return w->ndropped >= SQUEEZE_MIN_DROP ||
		(HdrHasUndo(&w->walk.hdr) && w->nkept <= SQUEEZE_MIN_CHAIN / 2);
}

/* nobody needs anything older than the version with this header */
static void
make_last(InplaceTupleHeader hdr)
{
	if (!HdrHasUndo(hdr))
		return;
	hdr->t_infomask |= IP_FRESH;
	hdr->t_natts &= ~IP_UNCHANGED;
	HdrSetFreshCid(hdr, 0);
}

/*
 * The old header in the i-th record that was built.
 */
static void
get_old_header(SqueezeWalk *w, int i, InplaceTupleHeader hdr)
{
	memcpy(hdr, w->undo + w->starts[i] + SizeOfUndoRecordHeader,
		   SizeOfInplaceTupleHeader);
}

static void
set_old_header(SqueezeWalk *w, int i, const InplaceTupleHeaderData *hdr)
{
	memcpy(w->undo + w->starts[i] + SizeOfUndoRecordHeader, hdr,
		   SizeOfInplaceTupleHeader);
}

/*
 * Write the records; base leads to the first of them, each to the next, and
 * the last to nothing, or to where its version has always led.
 */
static void
write_chain(SqueezeWalk *w, InplaceTupleHeader base, UndoRoom *room)
{
	InplaceTupleHeaderData hdr;
	UndoInsert	ui;

	UndoTellStandbys(w->walk.rel, w->first_seen, w->first_old);
	if (w->nkept == 0)
	{
		make_last(base);
		return;
	}

	UndoPrepare(w->walk.rel, room, w->undo_len, base->t_xid, &ui);
	for (int i = 0; i < w->nkept; i++)
	{
		get_old_header(w, i, &hdr);
		if (i + 1 < w->nkept)
			HdrSetUndoPtr(&hdr, ui.ptr + w->starts[i + 1]);
		else if (!w->tail)
			make_last(&hdr);
		set_old_header(w, i, &hdr);
	}
	HdrSetUndoPtr(base, ui.ptr);

	START_CRIT_SECTION();
	UndoAppend(&ui, w->undo, w->undo_len);
	inplace_log_undo_alone(&ui, w->undo, w->undo_len);
	END_CRIT_SECTION();
	UndoRelease(&ui);
}

bool
UndoSqueeze(Relation rel, BlockNumber block, OffsetNumber off,
			InplaceTupleHeader tup, Size len, InplaceTupleHeader base,
			UndoRoom *room)
{
	static SqueezeWalk squeeze_walk;	/* large, and never in use twice */
	SqueezeWalk *w = &squeeze_walk;

	/* a snapshot does not say which chunks are needed: modify/chunk_read.c */
	if (UndoKindOf(rel) == UNDO_TEMP || !HdrHasUndo(base) ||
		rel->rd_rel->relkind == RELKIND_TOASTVALUE)
		return false;
	inplace_walk_start(&w->walk, rel, block, off, base, tup, len, w->space);
	if (chain_is_short(&w->walk))
		return true;

	/* for later updates: snapshots that exist now do not see all of it */
	UndoSeenNote();
	UndoHoldersRead(&w->bounds);
	inplace_walk_start(&w->walk, rel, block, off, base, tup, len, w->space);
	w->walk.may_dangle = true;
	memset(w->done, 0, sizeof(w->done));
	w->first_seen = InvalidTransactionId;
	w->first_old = false;
	w->kept_hdr = *base;
	memcpy(w->kept.data, tup, len);
	w->kept.hdr = *base;
	w->kept_len = len;
	w->kept_cid = FirstCommandId;
	w->undo_len = 0;
	w->nkept = 0;
	w->dropped = false;
	w->ndropped = 0;
	w->gap_undo_len = 0;
	w->gap_nkept = 0;
	w->gap_ndropped = 0;
	w->tail = false;

	if (!build_chain(w) || !is_worth_it(w))
		return false;
	write_chain(w, base, room);
	return true;
}

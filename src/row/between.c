/*-------------------------------------------------------------------------
 *
 * between.c
 *	  Deleted rows that no snapshot can see, although some snapshot is older
 *	  than the delete.
 *
 * A row that was inserted by X and deleted by Y is needed by a snapshot that sees
 * X and does not see Y, and by no other.  Under a snapshot that is held for long
 * the rows of a queue come and go: they came after it was taken, and all others
 * that exist were taken after they had gone.  Such a row is dead as one is whose
 * deleter everybody sees, and VACUUM, pruning and index deletion take it for that.
 *
 * Only with inplace.prune_between_snapshots, which is the same for all sessions: those that
 * follow a moved row have to know what others may have taken away.
 *
 * Which rows ("all_see" and "held" as in holders.h)
 *	  Y has committed, and precedes all_see or is in "others_see".  And for each held
 *	  snapshot, it sees Y (Y precedes its xmin), or none of the row's versions has an
 *	  xid that precedes its xmax.  Rows of catalogs, and of tables that logical
 *	  decoding takes for such, are not looked at: slots hold snapshots of them.
 *
 * Proof that no snapshot sees the row
 *	  - A snapshot that is not a held one has an xmin that is not older than
 *		all_see, and sees what is in "others_see".  So it sees Y.
 *	  - A held one that does not see Y sees nothing from its xmax on.  All versions
 *		that there are have such xids.  The chain may have been squeezed, or end
 *		before the insert: what is not there was needed by no snapshot, which
 *		stays true (squeeze.c).
 *	  - Snapshots that a held session has beside the one it has told of are
 *		found out when they are used (UndoHoldCheckScan).
 *
 *	  Others that look for the row
 *	  - A SERIALIZABLE transaction has to be found in conflict with X, if it would
 *		have seen the row.  So while a held one does not see Y the row stays.
 *	  - A backend that has locked a version, or waits for it, has a snapshot that
 *		sees that version and not Y.
 *	  - A backend that sees a row where it was before it was moved, and locks it,
 *		goes on to the new place.  In READ COMMITTED it has to find the row there, or
 *		its next place: while a held one may do so ("follows") and does not see Y the
 *		row stays.  In REPEATABLE READ only FOR KEY SHARE goes on.  While a held one
 *		may do so ("shares_keys") a place stays from which the row was moved on with
 *		the same keys.  Where it was deleted, or its keys changed, the lock fails
 *		anyway.  Then the place may be another row's by now: that is known by the
 *		row's first version there, which stays (lock_chain.c, squeeze.c).  (A
 *		transaction that imports the snapshot of one that is READ ONLY may find that
 *		such a place has gone, and fail without need.)
 *	  - Standbys are told Y as the conflict horizon of the prune, or of the
 *		deletion of index entries, as for any row.
 *	  - Undo of the row is given back as if the row had been pruned later
 *		(release.c): no chain leads there.
 *
 * Versions of rows that are there
 *	  A version that X made and Y replaced is needed by the same snapshots as a row
 *	  that X inserted and Y deleted.  An index entry that leads to the row for the
 *	  sake of such versions alone may go (inplace_version_between()).
 *	  - Who wants to go on to newer versions comes by the entry of a version that it
 *		sees, and goes on by the row's place.  So it is no matter whether a held one
 *		follows, or shares keys.
 *	  - A SERIALIZABLE transaction comes to the row by an entry of a version that it
 *		does not see, to be found in conflict with X.  So while a held one does not
 *		see Y the entry stays.
 *	  - A rollback brings back the newest version that is not rolled back.  Nothing
 *		has replaced that one.
 *	  - Standbys are told Y as the horizon of the deletion.
 *
 * Lock order: the row's page is locked, share or exclusive; undo pages are
 * locked one at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "catalog/catalog.h"
#include "row/between.h"
#include "undo/record.h"
#include "undo/space.h"
#include "undo/undo.h"

/* more versions are left to the time when the snapshot has gone */
#define BETWEEN_MAX_STEPS	100

/*
 * Do bounds tell who may need rows of the table?  Nobody else's snapshot is asked about
 * a temporary one.
 */
bool
inplace_may_be_between(Relation rel)
{
	return inplace_prune_between && !RelationUsesLocalBuffers(rel) &&
		!RelationIsUsedAsCatalogTable(rel) &&
		rel->rd_rel->relkind != RELKIND_TOASTVALUE &&	/* chunk_read.c */
		!IsCatalogRelation(rel);
}

const UndoBounds *
inplace_between_bounds(Relation rel, TransactionId xid)
{
	if (likely(!UndoHoldersAny()) || !inplace_may_be_between(rel) ||
		!TransactionIdIsNormal(xid))
		return NULL;
	return UndoHoldersLately(xid);
}

/*
 * May the transaction of a held snapshot come to the row, though it does not see it?
 */
static bool
may_come_here(const UndoHeldSnapshot *held, const InplaceTupleHeaderData *hdr)
{
	if (held->serializable || held->follows)
		return true;
	return held->shares_keys && (hdr->t_infomask & IP_MOVED) &&
		!(hdr->t_infomask & (IP_KEYS_UPDATED | IP_MOVED_PARTITION));
}

/*
 * May a held snapshot see a version with this xid, and does it need to?
 */
static bool
held_may_see(const UndoBounds *bounds, const bool *done, TransactionId xid)
{
	for (int i = 0; i < bounds->nheld; i++)
		if (!done[i] && TransactionIdPrecedes(xid, bounds->held[i].xmax))
			return true;
	return false;
}

/*
 * Is the row, which a committed transaction has deleted, between two snapshots?
 * Without bounds, by those that there are.  *reads_left is how many undo records may
 * be read; NULL is for one row alone.
 */
bool
inplace_row_between(Relation rel, BlockNumber block, OffsetNumber off,
					const InplaceTupleHeaderData *tup, const UndoBounds *bounds,
					int *reads_left)
{
	InplaceTupleHeaderData hdr = *tup;
	bool		done[UNDO_MAX_HOLDERS];
	UndoWalkGuard guard = {0};
	UndoRecord *rec;
	bool		between = false;

	Assert(hdr.t_infomask & IP_DELETED);
	if (bounds == NULL)
		bounds = inplace_between_bounds(rel, hdr.t_xid);
	if (bounds == NULL || (hdr.t_infomask & IP_FROZEN) || !HdrHasUndo(&hdr) ||
		!UndoOthersSee(bounds, hdr.t_xid))
		return false;
	for (int i = 0; i < bounds->nheld; i++)
	{
		done[i] = TransactionIdPrecedes(HdrXid(&hdr), bounds->held[i].xmin);
		if (!done[i] && may_come_here(&bounds->held[i], &hdr))
			return false;
	}

	if (HdrIsBareDelete(&hdr))
	{
		UndoPtr		bare = HdrUndoPtr(&hdr);

		return !BarePtrFrozen(bare) &&
			!held_may_see(bounds, done, BarePtrXid(bare));
	}

	rec = palloc(sizeof(UndoRecord));
	for (int steps = 0; steps < BETWEEN_MAX_STEPS; steps++)
	{
		if (!HdrHasUndo(&hdr))
		{
			between = true;
			break;
		}
		if (reads_left != NULL && --*reads_left < 0)
			break;
		if (!UndoFetch(rel, HdrUndoPtr(&hdr), block, off, &hdr, true, rec))
			break;
		UndoWalkCheck(&guard, rel, HdrUndoPtr(&hdr), block, off);
		hdr = rec->old;
		if ((hdr.t_infomask & IP_FROZEN) || !TransactionIdIsNormal(hdr.t_xid) ||
			held_may_see(bounds, done, hdr.t_xid))
			break;
	}
	pfree(rec);
	return between;
}

/*
 * Is a committed version, which a committed transaction has replaced, needed by no
 * snapshot to come to its row?
 */
bool
inplace_version_between(Relation rel, TransactionId xid, TransactionId replacer,
						BetweenQuestion *q)
{
	if (!TransactionIdIsNormal(xid) || !TransactionIdIsNormal(replacer))
		return false;
	if (!q->asked)
	{
		q->asked = true;
		if (UndoHoldersAny() && inplace_may_be_between(rel))
			q->bounds = UndoHoldersRecent();
	}
	if (q->bounds == NULL || !UndoOthersSee(q->bounds, replacer))
		return false;
	for (int i = 0; i < q->bounds->nheld; i++)
	{
		const UndoHeldSnapshot *held = &q->bounds->held[i];

		if (!TransactionIdPrecedes(replacer, held->xmin) &&
			(held->serializable || TransactionIdPrecedes(xid, held->xmax)))
			return false;
	}
	return true;
}

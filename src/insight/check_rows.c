/*-------------------------------------------------------------------------
 *
 * check_rows.c
 *	  inplace.check(): the versions of a row, and its values in TOAST.
 *
 * Works on a copy of the row.  Undo that is missing, or wrong, is a finding only
 * if the snapshot needs it and the row on the page is still the same
 * (check.c).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "insight/check.h"
#include "insight/limits.h"
#include "insight/links.h"
#include "insight/row_bytes.h"
#include "insight/walk.h"
#include "page/tuple.h"
#include "undo/undo.h"


/* would a snapshot of now need this version's undo? */
static bool
undo_needed(InsightWalk *walk, Snapshot snapshot)
{
	switch (walk->status)
	{
		case INSIGHT_XID_CURRENT:
		case INSIGHT_XID_IN_PROGRESS:
		case INSIGHT_XID_ABORTED:
			return true;
		case INSIGHT_XID_COMMITTED:
			return !InsightVisible(walk, snapshot);
		case INSIGHT_XID_UNKNOWN:
			break;
	}
	return false;
}

/*
 * The transaction of a row's newest version, and its hints.
 */
const char *
CheckXid(CheckState *state, InplaceTupleHeader tup)
{
	InsightLimits *limits = &state->limits;
	uint16		infomask = tup->t_infomask;
	TransactionId xid = tup->t_xid;
	InsightXidStatus status;

	if (infomask & IP_FROZEN)
		return NULL;
	if (!TransactionIdIsNormal(xid))
		return TransactionIdIsValid(xid) ? NULL : "row has no transaction";
	if (!TransactionIdPrecedes(xid, limits->next_xid))
		return psprintf("transaction %u is in the future", xid);
	if (TransactionIdIsNormal(limits->relfrozenxid) &&
		TransactionIdPrecedes(xid, limits->relfrozenxid))
		return psprintf("transaction %u is older than relfrozenxid %u and not frozen",
						xid, limits->relfrozenxid);

	/* hints are in the copy since before we ask */
	status = InsightGetXidStatus(limits, xid, 0);
	if ((infomask & IP_COMMITTED) && status != INSIGHT_XID_COMMITTED)
		return psprintf("row is hinted committed but transaction %u is not", xid);
	if ((infomask & IP_ABORTED) && status != INSIGHT_XID_ABORTED)
		return psprintf("row is hinted aborted but transaction %u is not", xid);
	return NULL;
}

/*
 * What a record in hand still has to agree with.  Not the table's storage: that
 * may have been copied since (ALTER TABLE SET TABLESPACE).
 */
static const char *
check_record(CheckState *state, const UndoRecord *rec, UndoPtr ptr)
{
	if ((!(rec->hdr.ur_flags & UR_RELATIVE_HEADER) || UndoPtrIsBare(ptr)) &&
		!(rec->old.t_infomask & IP_COMMITTED) &&
		TransactionIdIsNormal(HdrXid(&rec->old)) &&
		!TransactionIdPrecedes(HdrXid(&rec->old), state->limits.next_xid))
		return psprintf("undo record %s restores a transaction %u in the future",
						InsightUndoText(ptr), rec->old.t_xid);
	return NULL;
}

/*
 * The lock of the version that the walk is at: the page's own, or one that an older
 * version carries.
 */
static void
check_lock(CheckState *state, BlockNumber block, OffsetNumber off,
		   const InplaceTupleHeaderData *page_hdr)
{
	InsightWalk *walk = &state->walk;
	const char *problem;

	if (!walk->locked)
		return;
	problem = InsightCheckLocker(walk);
	if (problem == NULL && UndoPtrIsValid(walk->lock_undo) && walk->lock_known)
		problem = check_record(state, &walk->lockrec, walk->lock_undo);
	if (problem == NULL &&
		(walk->tuple->t_infomask & IP_LOCK_DIRECT) &&
		(walk->status == INSIGHT_XID_CURRENT ||
		 walk->status == INSIGHT_XID_IN_PROGRESS))
		problem = "row of a running transaction has a direct lock, its undo is lost";
	if (problem != NULL &&
		CheckRowUnchanged(state, block, off, page_hdr, VOLATILE_BITS))
		CheckReport(state, block, off, NULL, "error", problem);
}

/*
 * Walk back from the newest version (state->walk has been begun at it) as far
 * as anybody may have to.  Returns false if the version that the snapshot
 * sees could not be worked out; otherwise *seen says whether there is one,
 * and then it is in *version.
 */
bool
CheckChain(CheckState *state, BlockNumber block, OffsetNumber off,
		   const InplaceTupleHeaderData *page_hdr,
		   InplaceTupleHeader *version, Size *version_len, bool *seen)
{
	InsightWalk *walk = &state->walk;
	InsightLink *links = NULL;
	TransactionId newer_xid = InvalidTransactionId;
	bool		decided = false;
	bool		ok = true;

	*seen = false;
	*version = NULL;
	for (;;)
	{
		const char *problem = NULL;

		CHECK_FOR_INTERRUPTS();

		if (!decided && InsightVisible(walk, state->snapshot))
		{
			decided = true;
			if (!(walk->tuple->t_infomask & IP_DELETED))
			{
				*seen = true;
				*version = palloc(walk->len);
				*version_len = walk->len;
				memcpy(*version, walk->tuple, walk->len);
			}
		}

		check_lock(state, block, off, page_hdr);

		/*
		 * Of the newest version check_xid has looked at the transaction.  On
		 * the way to what our snapshot sees every reader has to ask about the
		 * others; further back nobody need.
		 */
		if (walk->status == INSIGHT_XID_UNKNOWN && walk->version > 0 && !decided)
			problem = psprintf("version %d is by transaction %u, whose fate cannot be known any more",
							   walk->version, walk->tuple->t_xid);
		else if ((problem = InsightCheckLinks(&links, walk, newer_xid)) != NULL ||
				 walk->undo_state == INSIGHT_UNDO_UNNEEDED)
		{
			/*
			 * Nobody follows links that lead further back than what all see;
			 * not even those whose newer_xid is not before the horizon: it
			 * had ended before this version was made, whose xid may be older.
			 */
		}
		else if (walk->undo_state == INSIGHT_UNDO_NONE)
		{
			problem = InsightCheckLinksEnd(links);
			if (HdrHasUndo(walk->tuple) && undo_needed(walk, state->snapshot))
				problem = psprintf("version %d by transaction %u has no undo pointer, yet not everybody sees it",
								   walk->version, walk->tuple->t_xid);
		}
		else if (walk->undo_state == INSIGHT_UNDO_MISSING)
		{
			if (undo_needed(walk, state->snapshot))
				problem = psprintf("undo record %s of version %d by transaction %u does not exist or is not this row's",
								   InsightUndoText(walk->undo), walk->version,
								   walk->tuple->t_xid);
		}
		else if (walk->undo_state == INSIGHT_UNDO_BAD)
			problem = walk->problem;
		else
		{
			problem = check_record(state, &walk->rec, walk->undo);
			if (problem == NULL)
			{
				newer_xid = walk->rec.replaced.xid;
				if (InsightWalkBack(walk))
					continue;
				problem = walk->problem;
			}
		}

		if (problem != NULL)
		{
			/* if the row has changed since, we looked for what was over */
			ok = false;
			if (CheckRowUnchanged(state, block, off, page_hdr, VOLATILE_BITS))
				CheckReport(state, block, off, NULL, "error", problem);
		}
		break;
	}

	return ok || decided;
}

void
CheckToast(CheckState *state, BlockNumber block, OffsetNumber off,
		   Datum *values, bool *isnull, bool *ok)
{
	int			i;

	for (i = 0; i < state->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(state->desc, i);
		const char *problem;

		if (isnull[i] || att->attisdropped || att->attlen != -1 ||
			!VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(values[i])))
			continue;

		if (state->toastrel == NULL)
			problem = "row has an external value but the table has no TOAST table";
		else
			problem = InsightCheckToast(state->toastrel, values[i],
										state->snapshot);
		if (problem != NULL)
		{
			*ok = false;
			CheckReport(state, block, off, NULL, "error",
						psprintf("attribute %d: %s", i + 1, problem));
		}
	}
}

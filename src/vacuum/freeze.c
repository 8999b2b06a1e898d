/*-------------------------------------------------------------------------
 *
 * freeze.c
 *	  What VACUUM makes of the rows that pruning left on a page: are they
 *	  visible to everybody, which ids do they hold back, what can be frozen.
 *
 * Freezing a row sets IP_FROZEN: its t_xid is visible to everybody, whatever
 * the clog or the xid comparison would say.  Finished lockers are taken off
 * in the same record.
 *
 * Ids that a page holds back
 *	  - t_xid, unless frozen;
 *	  - the lockers (an xid, or a multixact and all of its members), if any is still running;
 *	  - if t_xid is not known to be committed: the ids in the version that a
 *		rollback would bring back to this page.  It is in undo, where it cannot
 *		be frozen, so relfrozenxid has to wait for the transaction to end.
 *	  Versions that only old snapshots still read do not matter: that they
 *	  committed is noted in their headers, so nobody asks the clog.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "freeze/freeze_model.h"
#include "freeze/freeze_stats.h"
#include "page/page.h"
#include "page/tuple.h"
#include "row/row_lock.h"
#include "row/visibility.h"
#include "undo/record.h"
#include "undo/undo.h"
#include "vacuum/compat_vacuum.h"
#include "vacuum/freeze.h"
#include "vacuum/stale.h"
#include "vacuum/vacuum.h"
#include "wal/log_vacuum.h"


static inline void
hold_xid(TransactionId *oldest, TransactionId xid)
{
	if (TransactionIdIsNormal(xid) && TransactionIdPrecedes(xid, *oldest))
		*oldest = xid;
}

static inline void
hold_mxid(MultiXactId *oldest, MultiXactId multi)
{
	if (MultiXactIdIsValid(multi) && MultiXactIdPrecedes(multi, *oldest))
		*oldest = multi;
}

/*
 * Who looks at a multixact may ask about its members, those that have ended, too.  Where all have
 * ended they are not read, with the page locked: all that is known is that none precedes
 * relfrozenxid.  (A multixact that cannot be right is left to be reported by others.)
 */
static void
hold_members(InplaceVacuum *vac, TransactionId *oldest, MultiXactId multi)
{
	MultiXactMember *members;
	int			nmembers;

	if (MultiXactIdPrecedes(multi, vac->rel->rd_rel->relminmxid) ||
		!MultiXactIdPrecedes(multi, ReadNextMultiXactId()))
		return;
	nmembers = GetMultiXactIdMembers(multi, &members, false, true);
	if (nmembers < 0)
		hold_xid(oldest, vac->rel->rd_rel->relfrozenxid);
	for (int i = 0; i < nmembers; i++)
		hold_xid(oldest, members[i].xid);
	if (nmembers > 0)
		pfree(members);
}

/* something that stays, frozen or not */
static void
hold_always(InplaceVacuum *vac, PageSurvey *survey, TransactionId xid, bool multi)
{
	if (multi)
	{
		hold_mxid(&survey->oldest_mxid, xid);
		hold_mxid(&survey->oldest_mxid_nofreeze, xid);
		hold_members(vac, &survey->oldest_xid, xid);
		hold_xid(&survey->oldest_xid_nofreeze, survey->oldest_xid);
	}
	else
	{
		hold_xid(&survey->oldest_xid, xid);
		hold_xid(&survey->oldest_xid_nofreeze, xid);
	}
}

/*
 * The undo record below a version whose transaction was in progress when it was
 * looked at.  Nobody waits for a VACUUM's snapshot, so the transaction may have
 * committed since, and its undo have been given back.  Then false: a rollback
 * brings back nothing any more.
 */
static bool
fetch_below(InplaceVacuum *vac, OffsetNumber off, InplaceTupleHeader hdr,
			const PageSurvey *survey, UndoRecord *rec)
{
	if (UndoFetch(vac->rel, HdrUndoPtr(hdr), survey->blk, off, hdr, true, rec))
		return true;
	if (inplace_copied_xid_status(vac->rel, hdr, survey->blk, off) == XID_COMMITTED)
		return false;
	/* says what is wrong with it */
	return UndoFetch(vac->rel, HdrUndoPtr(hdr), survey->blk, off, hdr, false, rec);
}

/*
 * The newest change of this row may yet be rolled back: hold what is below
 * it, down to the first version that is committed.
 */
static void
hold_older_versions(InplaceVacuum *vac, OffsetNumber off,
					const InplaceTupleHeaderData *tup, PageSurvey *survey)
{
	InplaceTupleHeaderData hdr = *tup;
	UndoWalkGuard guard = {0};
	UndoRecord *rec;

	if (!HdrHasUndo(&hdr))
		return;

	rec = palloc(sizeof(UndoRecord));
	while (HdrHasUndo(&hdr) && fetch_below(vac, off, &hdr, survey, rec))
	{
		UndoWalkCheck(&guard, vac->rel, HdrUndoPtr(&hdr), survey->blk, off);
		if (rec->hdr.ur_type == UNDO_LOCK)
		{
			uint32		locker;

			memcpy(&locker, rec->payload, sizeof(locker));
			hold_always(vac, survey, locker,
						(hdr.t_infomask & IP_LOCK_MULTI) != 0);
			hdr = rec->old;
			continue;			/* the same version, without the lock */
		}

		hdr = rec->old;
		if ((hdr.t_infomask & IP_FROZEN) == 0)
			hold_always(vac, survey, hdr.t_xid, false);
		if (HdrHasDirectLocker(&hdr))
			hold_always(vac, survey, HdrDirectLocker(&hdr),
						(hdr.t_infomask & IP_LOCK_MULTI) != 0);

		if ((hdr.t_infomask & IP_FROZEN) != 0 ||
			inplace_copied_xid_status(vac->rel, &hdr, survey->blk, off) == XID_COMMITTED)
		{
			/* its lockers come back with it; nothing older does */
			if (hdr.t_infomask & IP_LOCK_INDIRECT &&
				UndoFetch(vac->rel, HdrUndoPtr(&hdr), survey->blk, off, &hdr,
						  true, rec) &&
				rec->hdr.ur_type == UNDO_LOCK)
			{
				uint32		locker;

				memcpy(&locker, rec->payload, sizeof(locker));
				hold_always(vac, survey, locker,
							(hdr.t_infomask & IP_LOCK_MULTI) != 0);
			}
			break;
		}
	}
	pfree(rec);
}

/*
 * Lockers: take them off if they have ended, else they stay and hold their
 * ids.  Returns whether the row can be without lockers.
 */
static bool
survey_lockers(InplaceVacuum *vac, OffsetNumber off, InplaceTupleHeader tup,
			   PageSurvey *survey)
{
	RowLockers	lockers;
	bool		recorded;

	memset(&lockers, 0, sizeof(lockers));
	recorded = inplace_get_lockers(vac->rel, tup, survey->blk, off, &lockers);
	if (!TransactionIdIsValid(lockers.xid) &&
		HdrHasDirectLocker(tup))
	{
		lockers.multi = (tup->t_infomask & IP_LOCK_MULTI) != 0;
		lockers.xid = HdrDirectLocker(tup);
	}

	if (recorded && inplace_lockers_alive(&lockers))
	{
		hold_always(vac, survey, lockers.xid, lockers.multi);
		return false;
	}

	/* without a base there is nothing to put in its place */
	if (!TransactionIdIsValid(lockers.base.t_xid))
	{
		hold_always(vac, survey, lockers.xid, lockers.multi);
		return false;
	}

	/*
	 * The base is about the version; how the row lies on its page, and what
	 * indexes have of it, is as the page says.
	 */
	lockers.base.t_natts = tup->t_natts;
	lockers.base.t_tag = tup->t_tag;
	lockers.base.t_infomask |= tup->t_infomask & (IP_PADDED | IP_STALE);

	survey->unlock[survey->nunlock] = off;
	survey->unlocked[survey->nunlock] = lockers.base;
	survey->nunlock++;

	if (!TransactionIdIsValid(lockers.xid))
		survey->freeze_required = true; /* we cannot tell how old it is */
	else if (lockers.multi)
	{
		hold_mxid(&survey->oldest_mxid_nofreeze, lockers.xid);
		/* an aggressive VACUUM has to get relfrozenxid on, past the members */
		if (vac->aggressive ||
			MultiXactIdPrecedes(lockers.xid, vac->cutoffs.MultiXactCutoff))
			survey->freeze_required = true;
		hold_xid(&survey->oldest_xid_nofreeze, vac->rel->rd_rel->relfrozenxid);
	}
	else
	{
		hold_xid(&survey->oldest_xid_nofreeze, lockers.xid);
		if (TransactionIdPrecedes(lockers.xid, vac->cutoffs.FreezeLimit))
			survey->freeze_required = true;
	}
	return true;
}

static void
survey_row(InplaceVacuum *vac, Buffer buffer, OffsetNumber off,
		   InplaceTupleHeader tup, PageSurvey *survey)
{
	RowState	state;
	bool		visible;

	state = inplace_row_state(vac->rel, tup, buffer, vac->cutoffs.OldestXmin, NULL,
							  &visible);
	switch (state)
	{
		case ROW_LIVE:
			survey->nlive++;
			break;
		case ROW_UPDATE_IN_PROGRESS:
		case ROW_DELETE_IN_PROGRESS:
		case ROW_ABORTED_CHANGE:
			/* (if aborted, then after pruning looked at it) */
			survey->nlive++;
			visible = false;
			hold_older_versions(vac, off, tup, survey);
			break;
		case ROW_DEAD:
		case ROW_RECENTLY_DEAD:
			survey->nrecently_dead++;
			visible = false;
			break;
		case ROW_INSERT_IN_PROGRESS:
		case ROW_ABORTED_INSERT:
			visible = false;
			break;
	}

	if (visible)
	{
		if ((tup->t_infomask & IP_FROZEN) == 0)
		{
			TransactionId xid = tup->t_xid;

			survey->freeze[survey->nfreeze++] = off;
			if (!TransactionIdIsValid(survey->freeze_horizon) ||
				TransactionIdFollows(xid, survey->freeze_horizon))
				survey->freeze_horizon = xid;
			hold_xid(&survey->oldest_xid_nofreeze, xid);
			if (TransactionIdPrecedes(xid, vac->cutoffs.FreezeLimit))
				survey->freeze_required = true;
		}
	}
	else
	{
		survey->all_visible = survey->all_frozen = false;
		hold_always(vac, survey, tup->t_xid, false);
	}

	/*
	 * An index entry that does not belong to the version on the page must be
	 * rechecked, so index-only scans have to come here.
	 */
	if (tup->t_infomask & IP_STALE)
	{
		survey->all_visible = survey->all_frozen = false;
		if (state == ROW_LIVE)
			stale_survey_row(vac, off, tup, survey);
	}

	if (HdrIsLocked(tup) && !survey_lockers(vac, off, tup, survey))
		survey->all_frozen = false;
}

/*
 * Look at all rows of a page, which is exclusively locked and pruned.
 */
void
inplace_survey_page(InplaceVacuum *vac, Buffer buffer, PageSurvey *survey)
{
	Page		page = RowPage(vac->rel, buffer);
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	bool		empty;

	survey->blk = BufferGetBlockNumber(buffer);
	survey->pruned = false;
	survey->page.age = -1;
	survey->page.has_room = FreezePageHasRoom(vac->rel, page, &empty);
	survey->has_rows = false;
	survey->all_visible = survey->all_frozen = true;
	survey->nlive = survey->nrecently_dead = survey->nlpdead = 0;
	survey->freeze_required = false;
	survey->nfreeze = survey->nunlock = 0;
	survey->nstale = survey->nstale_pending = survey->nbetween = 0;
	survey->freeze_horizon = InvalidTransactionId;
	survey->oldest_xid = survey->oldest_xid_nofreeze = vac->new_relfrozenxid;
	survey->oldest_mxid = survey->oldest_mxid_nofreeze = vac->new_relminmxid;

	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		InplaceTupleHeader tup;

		if (!ItemIdIsUsed(lp))
			continue;
		if (ItemIdIsDead(lp))
		{
			survey->lpdead[survey->nlpdead++] = off;
			continue;
		}

		survey->has_rows = true;
		tup = (InplaceTupleHeader) PageGetItem(page, lp);

		/* frozen, and nothing else to it */
		if ((tup->t_infomask & (IP_FROZEN | IP_DELETED | IP_LOCK_DIRECT |
								IP_LOCK_INDIRECT | IP_STALE)) == IP_FROZEN)
		{
			survey->nlive++;
			continue;
		}
		survey_row(vac, buffer, off, tup, survey);
	}

	/* the rows that are not frozen and visible are those we could freeze */
	survey->visible_horizon = survey->freeze_horizon;
}

/*
 * Shall the page's rows be frozen now?  If it is not required yet, this is a
 * bet: worth it if the page stays as it is, wasted if it is changed soon.
 * Without adaptive freezing, as heap: if its image is in WAL already.
 */
bool
should_freeze_page(const InplaceVacuum *vac, const PageSurvey *survey)
{
	if (survey->freeze_required)
		return true;
	if (vac->adaptive && vac->aggressive)
		return true;
	/* rows that are changed just now: not a page that stays as it is */
	if (!survey->all_visible || !survey->all_frozen)
		return false;
	if (!vac->adaptive)
		return HEAP_FREEZES_IMAGED && survey->imaged;
	return FreezePageIsWorthwhile(&vac->freeze_stats, &survey->page);
}

/*
 * Freeze what can be if that is to be done, and account for what stays.
 * After that survey->all_frozen is about the page as it is.
 */
void
inplace_freeze_page(InplaceVacuum *vac, Buffer buffer, PageSurvey *survey)
{
	Page		page = RowPage(vac->rel, buffer);

	if (survey->nfreeze + survey->nunlock > 0)
	{
		if (!should_freeze_page(vac, survey))
		{
			survey->all_frozen = false;
			vac->new_relfrozenxid = survey->oldest_xid_nofreeze;
			vac->new_relminmxid = survey->oldest_mxid_nofreeze;
			return;
		}

		START_CRIT_SECTION();

		inplace_page_apply_freeze(page, survey->freeze, survey->nfreeze,
								  survey->unlock, survey->unlocked,
								  survey->nunlock);
		MarkBufferDirty(buffer);
		if (RelationNeedsWAL(vac->rel))
			inplace_log_freeze(vac->rel, buffer, survey->freeze_horizon,
							   survey->freeze, survey->nfreeze,
							   survey->unlock, survey->unlocked,
							   survey->nunlock);

		END_CRIT_SECTION();

		if (survey->nfreeze > 0)
		{
			vac->frozen_pages++;
			FreezeNotePageFreeze(vac->rel, survey->page.age);
		}
		vac->tuples_frozen += survey->nfreeze;

		/* everybody sees what is on the page, and standbys were told */
		survey->visible_horizon = InvalidTransactionId;
	}

	vac->new_relfrozenxid = survey->oldest_xid;
	vac->new_relminmxid = survey->oldest_mxid;
}

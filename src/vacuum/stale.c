/*-------------------------------------------------------------------------
 *
 * stale.c
 *	  Getting rid of stale index entries (index/index.h), and of the mark
 *	  IP_STALE that rows have because of them.
 *
 * While a row is IP_STALE its page does not become all-visible.  The mark may go
 * when the row's indexes have entries with its present key only, and when
 * no backend can come with an entry that it read before.  That takes two VACUUMs:
 *
 *	 1. The first pass over the table notes the rows whose one needed version
 *		is on the page (candidates), and sets IP_UNCHANGED on them, a hint:
 *		whatever changes or locks the row takes it away.
 *	 2. All inplace_btree indexes are swept: entries of candidates that do not
 *		have their key go, and INCLUDE columns of the others are put right
 *		(index/sweep.c).  An index whose keys have not been updated is gone
 *		through, but no row looked up.  So are those of other methods that may
 *		have taken updates (index/other_method.c).
 *	 3. The next xid is read, the sweep's.  Candidates that still have
 *		IP_UNCHANGED are swept: they are marked with that xid.
 *	 4. A later VACUUM whose horizon has passed the xid clears IP_STALE.  As a rule it
 *		does so in its first pass, before it looks whether the page is all-visible.
 *		But other rows of the page may be candidates, which keep it from being
 *		all-visible.  Then it is done together with their marks, in one record.
 *
 * Why that is right
 *	 - An update makes its entries after it has changed the row and so taken
 *	   IP_UNCHANGED away.  This holds if it is rolled back later, too, for a rollback
 *	   brings back a header without it.  So between 1 and 3 no entry was added.
 *	 - The sweep's xid had not been assigned when the last entry was deleted.  So
 *	   no snapshot of that time has an xmin beyond it, and once the horizon is
 *	   beyond it, all scans that may hold a deleted entry have ended.  (An xid that
 *	   VACUUM has had since its first pass, to restore a row, would not do:
 *	   nobody waits for VACUUM's, so younger snapshots may be past it.)
 *	 - On a standby a snapshot from before the replay of the last deletion knows
 *	   of transactions only that had ended on the primary, so its xmin is not
 *	   beyond the sweep's xid either; the record that clears the mark conflicts
 *	   with all those.
 *	 - Marking a row cuts its older versions off (IP_FRESH; the xid is in
 *	   t_undo): nobody here needs them, and the record conflicts with standby
 *	   snapshots that do.
 *
 * The horizon gets beyond the sweep's xid when somebody has used that.  VACUUM
 * does so itself, or in an idle server the marks would stay; but not if it has
 * an xid already, nor if xids run short.  Then a later VACUUM does that meets the
 * marks, or somebody else.  (After a crash the next xid may be an earlier one
 * again, if those between had left no trace: so much longer the marks stay.)
 *
 * A row is not looked at again while it is marked, and one that is not a
 * candidate costs nothing but the look; so the indexes are swept only if
 * there is something to find, and with index_cleanup = auto only if the
 * candidates are on more than a small part of the pages.
 *
 * Statistics.  A row counts as dead from the update that leaves an entry behind
 * (update.c) until VACUUM has swept it, once, however often it is updated.  It counts
 * again from the first update after that, which takes the sweep's mark away.
 * (An update under an index of another method counts each time, as on heap: what
 * the sweep does not delete from these indexes mostly stays.)
 * That makes autovacuum come.  So VACUUM reports the rows that it leaves
 * behind as dead (stale_pending), like those that are recently dead; but not
 * those with which the next VACUUM could not get any further either, or
 * autovacuum would never rest.  Rows that it has swept itself are not dead.  But
 * where a table has come to rest they count, so that autovacuum comes a second
 * time and clears their marks.  Under a load that goes on they do not count: few
 * pages would be all-visible after that, and the rows that the load changes have
 * autovacuum come as often as on heap.
 *
 * Beside a held snapshot few rows are candidates.  Those with versions that may lie
 * between two snapshots (row/between.c) are noted, too, and take part in 2 alone: entries
 * that lead to such versions only go, and the row stays as it is, mark included.  With
 * IP_UNCHANGED the next VACUUM leaves it alone.
 *
 * Keys of which the values are in the TOAST table are fetched between two locks of the index
 * page.  Rows with such a value in an INCLUDE column are left alone: that is put right
 * with both pages locked.  They do not make their page one that has not come to rest.
 *
 * Not for a VACUUM without index cleanup, or in failsafe mode: step 4 alone.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/transam.h"
#include "catalog/pg_am_d.h"
#include "index/btree_handler.h"
#include "index/key.h"
#include "index/other_mark.h"
#include "index/other_method.h"
#include "index/stale_rows.h"
#include "index/sweep.h"
#include "index/sweep_bulk.h"
#include "index/sweep_gin.h"
#include "miscadmin.h"
#include "page/page.h"
#include "page/protect.h"
#include "page/tuple.h"
#include "row/between.h"
#include "row/row_lock.h"
#include "row/walk.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "vacuum/compat_vacuum.h"
#include "vacuum/dead_items.h"
#include "vacuum/freeze.h"
#include "vacuum/stale.h"
#include "vacuum/vacuum.h"
#include "vacuum/vacuum_index.h"
#include "wal/log_vacuum.h"

/* ---------------- which rows can be swept? ---------------- */

/*
 * What will be asked of the indexes while pages of the table are locked is found
 * out before.
 */
void
stale_learn_indexes(InplaceVacuum *vac)
{
	for (int i = 0; i < vac->nindexes; i++)
		if (inplace_index_is_btree(vac->indrels[i]))
			(void) inplace_index_key(vac->indrels[i]);
}

/*
 * Has an index INCLUDE columns with a value of the row that is in the TOAST table?
 */
static bool
has_external_payload(InplaceVacuum *vac, InplaceTupleHeader tup,
					 const ItemPointerData *tid)
{
	TupleDesc	desc = RelationGetDescr(vac->rel);

	if (!(tup->t_natts & IP_HASEXTERNAL))
		return false;
	for (int i = 0; i < vac->nindexes; i++)
	{
		Form_pg_index form = vac->indrels[i]->rd_index;

		if (!inplace_index_is_btree(vac->indrels[i]))
			continue;
		for (int k = form->indnkeyatts; k < form->indnatts; k++)
			if (inplace_is_external(desc, tup, form->indkey.values[k], tid))
				return true;
	}
	return false;
}

/*
 * Has the page stale rows that VACUUM has yet to sweep, and can?
 */
static bool
has_rows_to_sweep(InplaceVacuum *vac, Buffer buffer)
{
	Page		page = RowPage(vac->rel, buffer);
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);

	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		InplaceTupleHeader tup;
		ItemPointerData tid;

		if (!ItemIdIsNormal(lp))
			continue;
		tup = (InplaceTupleHeader) PageGetItem(page, lp);
		ItemPointerSet(&tid, BufferGetBlockNumber(buffer), off);
		if ((tup->t_infomask & IP_STALE) && !HdrIsSwept(tup) &&
			!has_external_payload(vac, tup, &tid))
			return true;
	}
	return false;
}

/* ---------------- step 4 ---------------- */

/* has nobody an entry any more that the row's sweep took out? */
static inline bool
sweep_is_over(InplaceVacuum *vac, InplaceTupleHeader tup)
{
	return (tup->t_infomask & IP_STALE) && HdrIsSwept(tup) &&
		TransactionIdPrecedes(HdrSweptXid(tup), vac->cutoffs.OldestXmin);
}

static inline void
advance_horizon(TransactionId *horizon, TransactionId xid)
{
	if (!TransactionIdIsValid(*horizon) || TransactionIdFollows(xid, *horizon))
		*horizon = xid;
}

/*
 * The rows of a page that are to be rid of IP_STALE; the horizon is that of the
 * record.
 */
static int
find_swept_rows(InplaceVacuum *vac, Page page, OffsetNumber *clear,
				TransactionId *horizon)
{
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	int			nclear = 0;

	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		InplaceTupleHeader tup;

		if (!ItemIdIsNormal(lp))
			continue;
		tup = (InplaceTupleHeader) PageGetItem(page, lp);
		if (sweep_is_over(vac, tup))
		{
			clear[nclear++] = off;
			advance_horizon(horizon, HdrSweptXid(tup));
		}
	}
	return nclear;
}

static void
change_marks(InplaceVacuum *vac, Buffer buffer, TransactionId horizon,
			 TransactionId swept, const OffsetNumber *mark, int nmark,
			 const OffsetNumber *clear, int nclear)
{
	if (nmark + nclear == 0)
		return;

	START_CRIT_SECTION();
	inplace_page_apply_swept(RowPage(vac->rel, buffer), swept, mark, nmark,
							 clear, nclear);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(vac->rel))
		inplace_log_swept(vac->rel, buffer, horizon, swept, mark, nmark,
						  clear, nclear);
	END_CRIT_SECTION();
}

/*
 * Step 4 for a page that is locked.  If it may be put off, and is, true:
 * stale_note_page() will do it, or have it done by stale_finish().
 */
bool
stale_clear_page(InplaceVacuum *vac, Buffer buffer, bool may_put_off)
{
	OffsetNumber clear[InplaceMaxTuplesPerPage];
	TransactionId horizon = InvalidTransactionId;
	int			nclear = find_swept_rows(vac, RowPage(vac->rel, buffer), clear, &horizon);

	if (nclear > 0 && may_put_off && vac->do_index_vacuuming &&
		has_rows_to_sweep(vac, buffer))
		return true;
	change_marks(vac, buffer, horizon, InvalidTransactionId, NULL, 0,
				 clear, nclear);
	return false;
}

/* ---------------- step 1 ---------------- */

/* is anybody holding a lock on the row? */
static bool
locked_by_somebody(InplaceVacuum *vac, BlockNumber blk, OffsetNumber off,
				   InplaceTupleHeader tup)
{
	RowLockers	lockers;

	return HdrIsLocked(tup) &&
		inplace_get_lockers(vac->rel, tup, blk, off, &lockers) &&
		inplace_lockers_alive(&lockers);
}

/*
 * Has the row a version between snapshots, with an entry that no VACUUM has looked for
 * since?  Those before its last two versions are not asked about: there is none yet in
 * most rows then, and for the others another VACUUM comes.
 */
static bool
has_version_between(InplaceVacuum *vac, BlockNumber blk, OffsetNumber off,
					InplaceTupleHeader tup)
{
	InplaceTupleHeaderData hdr = *tup;
	BetweenQuestion q = {.bounds = vac->bounds,.asked = true};
	UndoWalkGuard guard = {0};
	UndoRecord	rec;
	ItemPointerData tid;

	if (!vac->sweeps_between || (tup->t_natts & IP_UNCHANGED) || !HdrHasUndo(tup))
		return false;
	ItemPointerSet(&tid, blk, off);
	for (int i = 0; i < 2; i++)
	{
		if (!inplace_version_before(vac->rel, &tid, &hdr, true, &guard, &rec) ||
			(hdr.t_infomask & IP_FROZEN))
			return false;
		if (inplace_version_between(vac->rel, hdr.t_xid, rec.replaced.xid, &q))
			return true;
	}
	return false;
}

/*
 * A live IP_STALE row: may it be rid of its stale entries by this VACUUM, or
 * by a later one?
 */
void
stale_survey_row(InplaceVacuum *vac, OffsetNumber off, InplaceTupleHeader tup,
				 PageSurvey *survey)
{
	ItemPointerData tid;

	ItemPointerSet(&tid, survey->blk, off);
	if (sweep_is_over(vac, tup))
		;						/* put off to the end of this VACUUM */
	else if (HdrIsSwept(tup))
	{
		survey->nstale_pending++;
		advance_horizon(&vac->newest_mark, HdrSweptXid(tup));
	}
	else if (!vac->do_index_vacuuming || has_external_payload(vac, tup, &tid))
		;						/* not as things are */
	else if (!TransactionIdPrecedes(HdrXid(tup), vac->cutoffs.OldestXmin))
	{
		survey->nstale_pending++;
		if (has_version_between(vac, survey->blk, off, tup))
			survey->between[survey->nbetween++] = off;
	}
	else if (locked_by_somebody(vac, survey->blk, off, tup))
		survey->nstale_pending++;
	else
		survey->stale[survey->nstale++] = off;
}

/*
 * Note what the survey of a page found; it is still locked.  "clear_later" is
 * what stale_clear_page() said.
 */
void
stale_note_page(InplaceVacuum *vac, Buffer buffer, const PageSurvey *survey,
				bool clear_later)
{
	Page		page = RowPage(vac->rel, buffer);
	StaleOffsets add = {
		.n = survey->nstale,.offs = survey->stale,
		.nbetween = survey->nbetween,.between = survey->between
	};

	vac->stale_pending += survey->nstale_pending;
	/* if memory runs out, the others wait for the next VACUUM */
	if (add.n + add.nbetween == 0 ||
		!stale_rows_add(&vac->stale, survey->blk, &add, clear_later,
						dead_items_work_mem() * (Size) 1024))
	{
		vac->stale_pending += survey->nstale;
		if (clear_later)
			stale_clear_page(vac, buffer, false);
		return;
	}
	for (int i = 0; i < survey->nstale; i++)
	{
		InplaceTupleHeader tup = PageGetTupleAt(page, survey->stale[i]);

		tup->t_natts |= IP_UNCHANGED;
		if (!(tup->t_infomask & IP_FROZEN))
			advance_horizon(&vac->stale.newest, tup->t_xid);
	}
	for (int i = 0; i < survey->nbetween; i++)
		PageGetTupleAt(page, survey->between[i])->t_natts |= IP_UNCHANGED;
	inplace_mark_hint(buffer);
}

/* ---------------- step 2 ---------------- */

/* of the rows; as many are dead when indexes are gone through on heap */
#define BYPASS_MAX_ROWS		0.02

/* of another method, and with updates in place */
static bool
is_marked(InplaceVacuum *vac, Relation index)
{
	return inplace_is_other_method(index->rd_rel->relam) &&
		inplace_other_marked(vac->rel->rd_rel->relpersistence, RelationGetRelid(index));
}

/*
 * A marked index that this library cannot look through, and another one may have: rows keep their
 * marks.  (One of an exclusion constraint has never taken any.)
 */
static void
leave_other(InplaceVacuum *vac, Relation index)
{
	if (!index->rd_index->indisexclusion && !RelationUsesLocalBuffers(index) &&
		inplace_other_has_own_mark(RelationGetRelid(index)))
		stale_rows_drop_all(&vac->stale);
}

/* an index that is not valid takes nothing in place, and will be made anew */
static void
sweep_other(InplaceVacuum *vac, int i)
{
	Relation	index = vac->indrels[i];
	VacuumPhase saved_phase = vac->phase;
	Size		memory = dead_items_work_mem() * (Size) 1024;
	bool		keeps_stats = dead_items_count(vac) == 0 && vac->pvs == NULL;
	IndexBulkDeleteResult *stats = NULL;
	IndexVacuumInfo info;
	bool		emptied = false;
	int64		deleted;

	if (!index->rd_index->indisvalid || vac->stale.nrows == vac->stale.nbetween)
		return;
	if (!inplace_other_took(index))
	{
		leave_other(vac, index);
		return;
	}
	enter_index(vac, VACUUM_PHASE_INDEX, index);
	if (index->rd_rel->relam == GIN_AM_OID)
		deleted = inplace_sweep_gin(vac->rel, index, &vac->stale, memory,
									vac->bstrategy, &emptied);
	else
	{
		vacuum_index_info(vac, index, &info);
		deleted = inplace_sweep_bulk(&info, vac->rel, &vac->stale, memory, &stats);
	}
	/* if there are dead items GIN's own deletion comes anyway */
	if (emptied && dead_items_count(vac) == 0)
		vacuum_empty_index(vac, i);
	if (stats != NULL && keeps_stats && vac->indstats[i] == NULL)
		vac->indstats[i] = stats;
	else if (stats != NULL)
		pfree(stats);
	leave_index(vac, saved_phase);
	ereport(DEBUG2,
			(errmsg("index \"%s\": deleted %lld stale entries",
					RelationGetRelationName(index), (long long) deleted)));
}

static bool
has_marked_index(InplaceVacuum *vac)
{
	for (int i = 0; i < vac->nindexes; i++)
		if (is_marked(vac, vac->indrels[i]))
			return true;
	return false;
}

/*
 * The pages with stale rows may be few, and yet have left as many former keys in an index of
 * another method as others do elsewhere: each update of a row has, and counts as a dead one.
 */
static bool
former_keys_pile_up(InplaceVacuum *vac)
{
	return vacuum_dead_since(vac) >= BYPASS_MAX_ROWS * Max(vac->old_live_tuples, 1) &&
		has_marked_index(vac);
}

void
stale_sweep(InplaceVacuum *vac)
{
	StaleRows  *stale = &vac->stale;
	VacuumPhase saved_phase = vac->phase;

	if (stale->nblocks == 0 || !vac->do_index_vacuuming ||
		(!worth_scanning_indexes(vac, stale->nblocks, 0) &&
		 !former_keys_pile_up(vac)))
		return;
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE,
								 PROGRESS_VACUUM_PHASE_VACUUM_INDEX);
	PROGRESS_INDEXES(vac->nindexes, 0);
	stale_rows_prepare(stale);
	for (int i = 0; i < vac->nindexes; i++)
	{
		BlockNumber empty;

		PROGRESS_INDEXES(vac->nindexes, i);
		if (inplace_vacuum_failsafe(vac))
			return;
		if (is_marked(vac, vac->indrels[i]))
			sweep_other(vac, i);
		if (!inplace_index_is_btree(vac->indrels[i]))
			continue;
		enter_index(vac, VACUUM_PHASE_INDEX, vac->indrels[i]);
		empty = inplace_sweep_index(vac->rel, vac->indrels[i],
									vac->cutoffs.OldestXmin,
									vac->sweeps_between ? vac->bounds : NULL, stale,
									&vac->swept_bytes[i]);
		if (empty > 0 && dead_items_count(vac) == 0 && vac->pvs == NULL)
			vacuum_empty_index(vac, i);
		leave_index(vac, saved_phase);
	}
	PROGRESS_INDEXES(0, 0);
	vac->swept = true;
	vac->swept_pages = stale->nblocks;
	vac->swept_rows = stale->nrows;
	ereport(DEBUG2,
			(errmsg("table \"%s\": swept stale index entries of %lld rows in %zu pages",
					vac->relname, (long long) stale->nrows, stale->nblocks)));
}

/* ---------------- step 3, and what was put off of step 4 ---------------- */

typedef struct SweptCount
{
	BlockNumber pages_only_swept;	/* whose stale rows have all been swept
									 * now */
	int64		rows;			/* ... with so many of them */
	BlockNumber pages_mixed;	/* others */
} SweptCount;

/* has the page rows that are to be marked? */
static bool
stale_block_has_candidates(const StaleBlock *b)
{
	for (int i = 0; i < STALE_BLOCK_WORDS; i++)
		if (b->rows[i] & ~b->between[i])
			return true;
	return false;
}

/*
 * The candidates of a page that nobody has changed since they were noted, and
 * how many others there are.
 */
static int
find_unchanged_rows(InplaceVacuum *vac, const StaleBlock *b, Page page,
					OffsetNumber *mark, TransactionId *horizon, int *changed)
{
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	int			nmark = 0;

	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		InplaceTupleHeader tup;

		if (!stale_block_has(b->rows, off) || stale_block_has(b->between, off) ||
			!ItemIdIsNormal(PageGetItemId(page, off)))
			continue;
		tup = PageGetTupleAt(page, off);
		if (!(tup->t_infomask & IP_STALE))
			continue;
		if (!(tup->t_natts & IP_UNCHANGED) ||
			locked_by_somebody(vac, b->blk, off, tup))
		{
			(*changed)++;
			continue;
		}
		mark[nmark++] = off;
		if (!(tup->t_infomask & IP_FROZEN))
			advance_horizon(horizon, tup->t_xid);
	}
	return nmark;
}

/*
 * Use up the next xid, where marks wait for that: those that are to be set, or
 * those that the first pass has met.
 */
static void
use_up_xid(InplaceVacuum *vac, TransactionId next, bool sweeping)
{
	if (!sweeping &&
		(!TransactionIdIsValid(vac->newest_mark) ||
		 TransactionIdPrecedes(vac->newest_mark, next)))
		return;
	if (!TransactionIdIsValid(GetTopTransactionIdIfAny()) &&
		!InplaceXidsRunShort())
		(void) GetCurrentTransactionId();
}

/*
 * Without an xid of a sweep nothing is marked.
 */
static void
finish_page(InplaceVacuum *vac, const StaleBlock *b, TransactionId swept,
			SweptCount *count)
{
	Buffer		buffer = ReadBufferExtended(vac->rel, MAIN_FORKNUM, b->blk,
											RBM_NORMAL, vac->bstrategy);
	Page		page;
	OffsetNumber mark[InplaceMaxTuplesPerPage];
	OffsetNumber clear[InplaceMaxTuplesPerPage];
	int			nmark = 0;
	int			nclear;
	int			changed = 0;
	TransactionId horizon = InvalidTransactionId;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	page = RowPage(vac->rel, buffer);
	if (TransactionIdIsValid(swept))
		nmark = find_unchanged_rows(vac, b, page, mark, &horizon, &changed);
	nclear = find_swept_rows(vac, page, clear, &horizon);
	vac->stale_pending += changed;
	change_marks(vac, buffer, horizon, swept, mark, nmark, clear, nclear);
	if (has_rows_to_sweep(vac, buffer))
		count->pages_mixed++;
	else if (nmark > 0)
	{
		count->pages_only_swept++;
		count->rows += nmark;
	}
	UnlockReleaseBuffer(buffer);
}

/*
 * Not in parallel mode, where no xid can be assigned.  What was put off of
 * step 4 is done in any case: relfrozenxid may be about to pass those xids.
 * (It does not pass those of the marks set here: the horizon has not either.)
 */
void
stale_finish(InplaceVacuum *vac)
{
	TransactionId next = ReadNextTransactionId();
	bool		sweeping = vac->swept && !vac->failsafe &&
		vac->stale.nrows > vac->stale.nbetween;
	TransactionId swept = sweeping ? next : InvalidTransactionId;
	SweptCount	count = {0};

	use_up_xid(vac, next, sweeping);

	for (Size i = 0; i < vac->stale.nblocks; i++)
	{
		const StaleBlock *b = &vac->stale.blocks[i];

		if (!b->clear_later &&
			(!TransactionIdIsValid(swept) || !stale_block_has_candidates(b)))
			continue;
		VacuumDelayPoint();
		vac->blkno = b->blk;
		finish_page(vac, b, swept, &count);
	}
	if (SweptRowsCount(count.pages_only_swept, count.pages_mixed))
		vac->stale_pending += count.rows;
	vac->blkno = InvalidBlockNumber;
	stale_rows_free(&vac->stale);
}

/*-------------------------------------------------------------------------
 *
 * vacuum.c
 *	  VACUUM of an inplace table.
 *
 * Updates in place leave nothing behind, so what there is to do is about
 * deleted and moved rows, aborted inserts, and the age of xids.  It goes on as
 * heap's VACUUM does, since users, autovacuum and the planner expect that:
 *
 *	 1. A first pass over the pages that the visibility map does not tell us to
 *		skip: prune (dead rows become stubs), freeze, set the map.
 *	 2. If there are stubs, and enough of them: delete the index entries that
 *		point to them, then make them reusable in a second pass over their
 *		pages.  More than once if they do not fit in memory.
 *	 3. Clean up the indexes, truncate the table, update pg_class.
 *
 * The difference is that no page is ever skipped for want of a cleanup lock.
 *
 * Invariants
 *	  1. OldestXmin is fixed before the size of the table is looked at: rows on
 *		 pages that come later have newer xids.
 *	  2. A page is set all-visible by what OldestXmin says, never by the
 *		 (possibly newer) GlobalVisState that pruning goes by, and under the
 *		 same lock under which its rows were looked at.
 *	  3. new_relfrozenxid and new_relminmxid start at the newest values allowed
 *		 and go back for whatever is met; they are used only if no page was
 *		 skipped that may have unfrozen rows.
 *
 * Lock order: see vacuum.h.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/visibilitymap.h"
#include "catalog/pg_class.h"
#include "commands/dbcommands.h"
#include "freeze/freeze_model.h"
#include "freeze/freeze_options.h"
#include "freeze/freeze_stats.h"
#include "index/index_delete.h"
#include "page/page.h"
#include "page/whose_file.h"
#include "row/between.h"
#include "row/evict.h"
#include "row/restore.h"
#include "storage/freespace.h"
#include "undo/append.h"
#include "undo/limit.h"
#include "utils/backend_status.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "vacuum/compat_vacuum.h"
#include "vacuum/dead_items.h"
#include "vacuum/freeze.h"
#include "vacuum/prune.h"
#include "vacuum/report.h"
#include "vacuum/skip.h"
#include "vacuum/stale.h"
#include "vacuum/truncate.h"
#include "vacuum/vacuum.h"
#include "vacuum/vacuum_index.h"
#include "vacuum/vacuum_read.h"
#include "wal/log_vacuum.h"

/* look at the failsafe, and (without indexes) publish free space, this often */
#define FAILSAFE_EVERY_PAGES \
	((BlockNumber) (((uint64) 4 * 1024 * 1024 * 1024) / BLCKSZ))
#define VACUUM_FSM_EVERY_PAGES \
	((BlockNumber) (((uint64) 8 * 1024 * 1024 * 1024) / BLCKSZ))

/*
 * Is wraparound so near that only freezing counts?  Once found so it stays so.
 */
bool
inplace_vacuum_failsafe(InplaceVacuum *vac)
{
	if (vac->failsafe)
		return true;
	if (likely(!VacuumFailsafeCheck(&vac->cutoffs)))
		return false;

	vac->failsafe = true;
	VacuumSetFailsafeActive(true);
	vac->do_index_vacuuming = false;
	vac->do_index_cleanup = false;
	vac->do_truncate = false;

	/* no buffer ring, no cost delay from here on */
	vac->bstrategy = NULL;
	VacuumCostActive = false;
	VacuumCostBalance = 0;

	ereport(WARNING,
			(errmsg("bypassing nonessential maintenance of table \"%s.%s.%s\" as a failsafe after %d index scans",
					vac->dbname, vac->nspname, vac->relname,
					vac->num_index_scans),
			 errdetail("The table's relfrozenxid or relminmxid is too far in the past."),
			 errhint("Consider increasing configuration parameter \"maintenance_work_mem\" or \"autovacuum_work_mem\".\n"
					 "You might also need to consider other ways for VACUUM to keep up with the allocation of transaction IDs.")));
	return true;
}

/* ---------------- the first pass ---------------- */

/*
 * Set what can be set in the visibility map, and clear what should not be
 * there.  The page is locked, its map page pinned.
 */
void
inplace_vacuum_set_visible(InplaceVacuum *vac, Buffer buffer, Buffer vmbuffer,
						   const PageSurvey *survey)
{
	Page		page = RowPage(vac->rel, buffer);
	BlockNumber blk = survey->blk;
	uint8		old;

	old = visibilitymap_get_status(vac->rel, blk, &vmbuffer);

	if (survey->all_visible && survey->nlpdead == 0)
	{
		uint8		flags = VISIBILITYMAP_ALL_VISIBLE;
		TransactionId horizon = survey->visible_horizon;

		if (survey->all_frozen)
		{
			flags |= VISIBILITYMAP_ALL_FROZEN;
			horizon = InvalidTransactionId;
		}
		if (PageIsAllVisible(page) && (old & flags) == flags)
		{
			FreezeNoteVisible(vac->rel, 0, &survey->page);
			return;
		}

		inplace_visibilitymap_set(vac->rel, blk, buffer, vmbuffer, horizon,
								  flags);
		if ((old & VISIBILITYMAP_ALL_VISIBLE) == 0)
			vac->vm_visible_pages++;
		if (survey->all_frozen && (old & VISIBILITYMAP_ALL_FROZEN) == 0)
		{
			vac->vm_frozen_pages++;
			if (old & VISIBILITYMAP_ALL_VISIBLE)
				vac->vm_only_frozen_pages++;
		}
		FreezeNoteVisible(vac->rel, flags & ~old, &survey->page);
		return;
	}

	/* what follows never happens, short of corruption */
	if (survey->nlpdead > 0 && PageIsAllVisible(page))
	{
		ereport(WARNING,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("page containing dead items is marked as all-visible in relation \"%s\" page %u",
						vac->relname, blk)));
		PageClearAllVisible(page);
		MarkBufferDirty(buffer);
		visibilitymap_clear(vac->rel, blk, vmbuffer, VISIBILITYMAP_VALID_BITS);
	}
	else if (old != 0 && !PageIsAllVisible(page))
	{
		ereport(WARNING,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("page is not marked all-visible but visibility map bit is set in relation \"%s\" page %u",
						vac->relname, blk)));
		visibilitymap_clear(vac->rel, blk, vmbuffer, VISIBILITYMAP_VALID_BITS);
	}
}

/*
 * A page without line pointers.  Returns true if it was one and is done with.
 */
static bool
scan_empty_page(InplaceVacuum *vac, BlockNumber blk, Buffer buffer,
				Buffer vmbuffer)
{
	Page		page = RowPage(vac->rel, buffer);

	if (PageIsNew(page))
	{
		/*
		 * Somebody is extending the table, or crashed while at it.  The
		 * backend that gets the page from the free space map initializes it.
		 */
		UnlockReleaseBuffer(buffer);
		if (GetRecordedFreeSpace(vac->rel, blk) == 0)
			RecordPageWithFreeSpace(vac->rel, blk,
									BLCKSZ - SizeOfPageHeaderData);
		return true;
	}

	if (PageIsEmpty(page))
	{
		Size		space = PageGetHeapFreeSpace(page);

		if (!PageIsAllVisible(page))
		{
			FreezePage	empty = {-1, true};

			/*
			 * The page may have been initialized without WAL.  It must not be
			 * all-visible in the map and all zeroes on disk.
			 */
			if (RelationNeedsWAL(vac->rel) &&
				PageGetLSN(page) == InvalidXLogRecPtr)
			{
				START_CRIT_SECTION();
				MarkBufferDirty(buffer);
				log_newpage_buffer(buffer, true);
				END_CRIT_SECTION();
			}
			inplace_visibilitymap_set(vac->rel, blk, buffer, vmbuffer,
									  InvalidTransactionId,
									  VISIBILITYMAP_ALL_VISIBLE |
									  VISIBILITYMAP_ALL_FROZEN);
			vac->vm_visible_pages++;
			vac->vm_frozen_pages++;
			FreezeNoteVisible(vac->rel, VISIBILITYMAP_VALID_BITS, &empty);
		}
		UnlockReleaseBuffer(buffer);
		RecordPageWithFreeSpace(vac->rel, blk, space);
		return true;
	}
	return false;
}

/*
 * Undo for aborted changes of rows with a lock that stays, if it can be had: in parallel
 * mode not, nor for an xid when these run short, nor if undo is full.  The undo worker
 * comes by.
 */
static void
reserve_undo(InplaceVacuum *vac)
{
	UndoRoom	room;

	if (!TransactionIdIsValid(GetCurrentTransactionIdIfAny()) &&
		(IsInParallelMode() || InplaceXidsRunShort()))
		return;
	room = InplaceRestoreRoom();
	(void) UndoReserveRestore(vac->rel, &room, true);
}

/*
 * The map is about to be told of room that rows take which "newest" has deleted: from now on
 * inserts look for such room (modify/room.c).
 */
static void
note_room_told(InplaceVacuum *vac, TransactionId newest)
{
	if (TransactionIdIsValid(vac->room_xid) &&
		!TransactionIdFollows(newest, vac->room_xid))
		return;
	vac->room_xid = newest;
	UndoNoteRoomTold(FullTransactionIdFromU64(U64FromFullTransactionId(vac->start_xid) -
											  (uint32) (XidFromFullTransactionId(vac->start_xid) - newest)));
}

/*
 * Has a transaction that holds the horizon where it is begun some time ago?  What sessions
 * report of themselves is a hint, which is enough here.
 */
static bool
holder_is_old(TransactionId horizon)
{
	TimestampTz since = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), -UNDO_HOLDER_IS_OLD_MS);
	int			n = pgstat_fetch_stat_numbackends();

	for (int i = 1; i <= n; i++)
	{
		LocalPgBackendStatus *other = pgstat_get_local_beentry_by_index(i);
		TimestampTz begun = other->backendStatus.st_xact_start_timestamp;

		/* (a walsender has a standby's snapshots, and no transaction) */
		if (begun == 0)
			begun = other->backendStatus.st_proc_start_timestamp;
		if (begun < since && other->backendStatus.st_procpid != MyProcPid &&
			(TransactionIdEquals(other->backend_xmin, horizon) ||
			 TransactionIdEquals(other->backend_xid, horizon)))
			return true;
	}
	return false;
}

/*
 * Is the map told of such room?  Not beside transactions that are about to end: then the
 * rows go soon, and inserts need not look for it.
 */
static bool
tells_room(InplaceVacuum *vac)
{
	TransactionId horizon = vac->cutoffs.OldestXmin;
	int32		age = (int32) (XidFromFullTransactionId(vac->start_xid) - horizon);

	if (age == 0 || !inplace_may_evict(vac->rel) || !UndoHasSpare(vac->rel))
		return false;
	return UndoHoldersAny() || age > UNDO_HELD_MIN_AGE || holder_is_old(horizon);
}

/*
 * What the free space map is to be told of the page, which is locked: what there is, and what
 * an insert finds that evicts the deleted rows that have to stay (row/evict.c).  VACUUM
 * itself evicts none: that takes an xid, which would stay open until its end.
 */
Size
inplace_vacuum_space(InplaceVacuum *vac, Buffer buffer)
{
	Size		space = PageGetHeapFreeSpace(BufferGetPage(buffer));
	TransactionId newest;
	Size		more;

	if (!vac->tells_room || vac->failsafe)
		return space;

	/* what is deleted while we run may go soon, without old snapshots */
	more = inplace_evictable_now(vac->rel, buffer,
								 XidFromFullTransactionId(vac->start_xid), &newest);
	if (more > 0)
		note_room_told(vac, newest);
	return space + more;
}

/*
 * Lock the page, which is not empty, and prune it.  False if it was empty, and is
 * done with.
 */
static bool
prune_page(InplaceVacuum *vac, BlockNumber blk, Buffer buffer, Buffer vmbuffer,
		   double *age, PruneResult *pruned)
{
	Page		page;
	bool		reserved = false;
	PruneResult before = {0};

	for (;;)
	{
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		page = RowPage(vac->rel, buffer);
		if (!reserved)
			*age = RelationIsPermanent(vac->rel) ?
				FreezePageAge(&vac->freeze_stats.sample, PageGetLSN(page),
							  PageIsAllVisible(page) ? VISIBILITYMAP_ALL_VISIBLE : 0) : -1;
		if (scan_empty_page(vac, blk, buffer, vmbuffer))
			return false;
		inplace_check_items(vac->rel, page, blk, NULL);
		inplace_prune_page(vac->rel, buffer, vac->vistest,
						   vac->cutoffs.OldestXmin, vac->bounds,
						   vac->nindexes == 0, InvalidOffsetNumber, pruned);
		pruned->ndead += before.ndead;
		pruned->nunused += before.nunused;
		pruned->modified |= before.modified;
		if (!pruned->wants_undo || reserved)
			return true;
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		before = *pruned;
		reserved = true;
		reserve_undo(vac);
	}
}

/*
 * Returns whether the page's free space may have grown.
 */
static bool
scan_page(InplaceVacuum *vac, Buffer buffer, Buffer *vmbuffer,
		  PageSurvey *survey)
{
	BlockNumber blk = BufferGetBlockNumber(buffer);
	PruneResult pruned;
	double		age;
	int64		images_before = pgWalUsage.wal_fpi;
	Size		space;
	bool		clear_later;

	visibilitymap_pin(vac->rel, blk, vmbuffer);
	if (!prune_page(vac, blk, buffer, *vmbuffer, &age, &pruned))
		return false;
	clear_later = stale_clear_page(vac, buffer, true);
	inplace_survey_page(vac, buffer, survey);
	survey->pruned = pruned.modified;
	survey->imaged = pruned.modified && pgWalUsage.wal_fpi > images_before;
	survey->page.age = age;
	inplace_freeze_page(vac, buffer, survey);
	stale_note_page(vac, buffer, survey, clear_later);
	inplace_vacuum_set_visible(vac, buffer, *vmbuffer, survey);

	space = inplace_vacuum_space(vac, buffer);
	UnlockReleaseBuffer(buffer);
	RecordPageWithFreeSpace(vac->rel, blk, space);

	vac->tuples_deleted += pruned.ndead;
	vac->live_tuples += survey->nlive;
	vac->recently_dead_tuples += survey->nrecently_dead;
	if (survey->has_rows || (survey->nlpdead > 0 && !vac->do_index_vacuuming))
		vac->nonempty_pages = blk + 1;
	if (survey->nlpdead > 0)
	{
		vac->lpdead_item_pages++;
		vac->lpdead_items += survey->nlpdead;
		dead_items_add(vac, blk, survey->lpdead, survey->nlpdead);
	}
	else if (pruned.nunused > 0)
	{
		/* one pass was enough */
		vac->lpdead_item_pages++;
		vac->lpdead_items += pruned.nunused;
	}
	return pruned.modified;
}

/*
 * All pages have been read: sweep, and remove what is left in dead_items.  "fsm_done":
 * the free space map has been published up to there.
 */
static void
finish_scan(InplaceVacuum *vac, BlockNumber fsm_done)
{
	pgstat_progress_update_param(PROGRESS_VACUUM_HEAP_BLKS_SCANNED,
								 vac->rel_pages);

	vac->new_live_tuples = vac_estimate_reltuples(vac->rel, vac->rel_pages,
												  vac->scanned_pages,
												  vac->live_tuples);
	vac->new_rel_tuples = Max(vac->new_live_tuples, 0) +
		vac->recently_dead_tuples;

	/* first, so that pages it leaves empty can be unlinked */
	stale_sweep(vac);
	if (dead_items_count(vac) > 0)
		inplace_vacuum_round(vac);

	if (vac->rel_pages > fsm_done)
		FreeSpaceMapVacuumRange(vac->rel, fsm_done, vac->rel_pages);

	pgstat_progress_update_param(PROGRESS_VACUUM_HEAP_BLKS_VACUUMED,
								 vac->rel_pages);

	if (vac->nindexes > 0 && vac->do_index_cleanup)
	{
		vacuum_merge_index_pages(vac);
		inplace_vacuum_cleanup_indexes(vac);
	}
}

static void
scan_table(InplaceVacuum *vac)
{
	PageSurvey *survey = palloc(sizeof(PageSurvey));
	Buffer		vmbuffer = InvalidBuffer;
	BlockNumber fsm_done = 0;	/* free space map published up to here */
	bool		freed = false;
	PageReader	reader;
	BlockNumber blk = 0;
	bool		revisit;

	page_reader_begin(vac, &reader);

	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE,
								 PROGRESS_VACUUM_PHASE_SCAN_HEAP);
	pgstat_progress_update_param(PROGRESS_VACUUM_TOTAL_HEAP_BLKS,
								 vac->rel_pages);
	pgstat_progress_update_param(PROGRESS_MAX_DEAD,
								 DeadItemsMaxProgress(&vac->dead));
	vac->phase = VACUUM_PHASE_SCAN;

	for (;;)
	{
		BlockNumber frozen_before = vac->vm_frozen_pages;
		Buffer		buffer;

		VacuumDelayPoint();
		if (vac->scanned_pages > 0 &&
			vac->scanned_pages % FAILSAFE_EVERY_PAGES == 0)
			inplace_vacuum_failsafe(vac);

		if (vac->nindexes > 0 && dead_items_full(vac))
		{
			/* a long operation on other things: keep no pins over it */
			if (BufferIsValid(vmbuffer))
				ReleaseBuffer(vmbuffer);
			vmbuffer = InvalidBuffer;

			vac->consider_bypass = false;
			inplace_vacuum_round(vac);
			FreeSpaceMapVacuumRange(vac->rel, fsm_done, blk + 1);
			fsm_done = blk + 1;

			pgstat_progress_update_param(PROGRESS_VACUUM_PHASE,
										 PROGRESS_VACUUM_PHASE_SCAN_HEAP);
			vac->phase = VACUUM_PHASE_SCAN;
		}

		buffer = page_reader_next(&reader, &revisit);
		if (!BufferIsValid(buffer))
			break;
		blk = BufferGetBlockNumber(buffer);
		vac->blkno = blk;
		vac->scanned_pages++;
		pgstat_progress_update_param(PROGRESS_VACUUM_HEAP_BLKS_SCANNED, blk);

		if (scan_page(vac, buffer, &vmbuffer, survey))
			freed = true;
		if (revisit)
		{
			vac->revisited_pages++;
			page_chooser_revisited(&reader.chooser,
								   vac->vm_frozen_pages > frozen_before);
		}

		if (freed && vac->nindexes == 0 &&
			blk - fsm_done >= VACUUM_FSM_EVERY_PAGES)
		{
			FreeSpaceMapVacuumRange(vac->rel, fsm_done, blk);
			fsm_done = blk;
			freed = false;
		}
	}

	vac->blkno = InvalidBlockNumber;
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);
	page_reader_end(&reader);
	pfree(survey);

	finish_scan(vac, fsm_done);
}

/* ---------------- the frame ---------------- */

static void
set_options(InplaceVacuum *vac, VacuumParams *params)
{
	vac->verbose = (params->options & VACOPT_VERBOSE) != 0;
	vac->skip_with_vm = true;
	vac->consider_bypass = true;
	vac->do_index_vacuuming = true;
	vac->do_index_cleanup = true;
	vac->do_truncate = (params->truncate != VACOPTVALUE_DISABLED);
	vac->revisit_failure_rate = EagerFreezeFailureRate(params);

	switch (params->index_cleanup)
	{
		case VACOPTVALUE_DISABLED:
			vac->do_index_vacuuming = false;
			vac->do_index_cleanup = false;
			break;
		case VACOPTVALUE_ENABLED:
			vac->consider_bypass = false;
			break;
		default:
			break;
	}
	VacuumSetFailsafeActive(false);
}

static void
set_cutoffs(InplaceVacuum *vac, VacuumParams *params)
{
	Relation	rel = vac->rel;

	vac->aggressive = VacuumGetCutoffs(rel, params, &vac->cutoffs);
	CutoffsRespectSnapshots(rel, &vac->cutoffs.OldestXmin,
							&vac->cutoffs.FreezeLimit);
	if (params->options & VACOPT_DISABLE_PAGE_SKIPPING)
	{
		/* for when the visibility map is not to be trusted */
		vac->aggressive = true;
		vac->skip_with_vm = false;
	}

	/* after OldestXmin, see the invariants */
	vac->rel_pages = RelationGetNumberOfBlocks(rel);
	vac->vistest = GlobalVisTestFor(rel);
	/* (whether any are held may not be known yet where there is no undo) */
	if (inplace_squeeze_undo && inplace_may_be_between(rel))
	{
		vac->bounds = palloc(sizeof(UndoBounds));

		/*
		 * beside a transaction that stays open it has to be known what all
		 * see
		 */
		UndoSeenNote();
		UndoHoldersRead(vac->bounds);
		for (int i = 0; i < vac->bounds->nheld; i++)
			vac->sweeps_between |= !vac->bounds->held[i].serializable;
	}
	vac->new_relfrozenxid = vac->cutoffs.OldestXmin;
	vac->new_relminmxid = vac->cutoffs.OldestMxact;
	vac->old_live_tuples = rel->rd_rel->reltuples;
}

static void
update_relation_stats(InplaceVacuum *vac, VacuumReport *report,
					  bool *frozenxid_updated, bool *minmulti_updated)
{
	BlockNumber visible;
	BlockNumber frozen;

	if (vac->skipped_all_visible)
	{
		/* something older may be on the pages that were skipped */
		Assert(!vac->aggressive);
		vac->new_relfrozenxid = InvalidTransactionId;
		vac->new_relminmxid = InvalidMultiXactId;
	}

	visibilitymap_count(vac->rel, &visible, &frozen);
	visible = Min(visible, vac->rel_pages);
	frozen = Min(frozen, visible);

	VacUpdateRelstats(vac->rel, vac->rel_pages, vac->new_live_tuples,
					  visible, frozen, vac->nindexes > 0,
					  vac->new_relfrozenxid, vac->new_relminmxid,
					  frozenxid_updated, minmulti_updated);

	PgstatReportVacuum(vac->rel, Max(vac->new_live_tuples, 0),
					   vac->recently_dead_tuples + vac->stale_pending,
					   report->start);
}

void
inplace_vacuum(Relation rel, VacuumParams *params,
			   BufferAccessStrategy bstrategy)
{
	InplaceVacuum *vac;
	FreezeOptions options;
	VacuumReport report;
	ErrorContextCallback errcallback;
	bool		frozenxid_updated = false;
	bool		minmulti_updated = false;

	InplaceRequirePreload();

	/* (of autovacuum nobody has asked before) */
	if (rel->rd_rel->relkind == RELKIND_TOASTVALUE)
		inplace_check_toast_table(rel);

	pgstat_progress_start_command(PROGRESS_COMMAND_VACUUM,
								  RelationGetRelid(rel));

	vac = palloc0(sizeof(InplaceVacuum));
	vac->rel = rel;
	vac->bstrategy = bstrategy;
	vac->dbname = get_database_name(MyDatabaseId);
	vac->nspname = get_namespace_name(RelationGetNamespace(rel));
	vac->relname = pstrdup(RelationGetRelationName(rel));
	vac->phase = VACUUM_PHASE_UNKNOWN;
	vac->blkno = InvalidBlockNumber;
	set_options(vac, params);

	errcallback.callback = vacuum_error_callback;
	errcallback.arg = vac;
	errcallback.previous = error_context_stack;
	error_context_stack = &errcallback;

	vac_open_indexes(rel, RowExclusiveLock, &vac->nindexes, &vac->indrels);
	stale_learn_indexes(vac);
	vac->indstats = palloc0(Max(vac->nindexes, 1) *
							sizeof(IndexBulkDeleteResult *));
	vac->seen_after_merging = palloc0(Max(vac->nindexes, 1) *
									  sizeof(IndexBulkDeleteResult *));
	vac->merged_pages = palloc0(Max(vac->nindexes, 1) * sizeof(BlockNumber));
	vac->relocated_pages = palloc0(Max(vac->nindexes, 1) * sizeof(BlockNumber));
	vac->cut_pages = palloc0(Max(vac->nindexes, 1) * sizeof(BlockNumber));
	vac->swept_bytes = palloc0(Max(vac->nindexes, 1) * sizeof(Size));
	vac->start_xid = ReadNextFullTransactionId();
	vacuum_report_start(&report, vac, params);

	set_cutoffs(vac, params);
	vac->tells_room = tells_room(vac);
	FreezeOptionsGet(RelationGetRelid(rel), &options);
	FreezeStatsBegin(rel, options.target, &vac->freeze_stats);
	vac->adaptive = options.adaptive && RelationIsPermanent(rel);
	report.orig_rel_pages = vac->rel_pages;

	if (vac->verbose)
		ereport(INFO,
				(vac->aggressive ?
				 errmsg("aggressively vacuuming \"%s.%s.%s\"",
						vac->dbname, vac->nspname, vac->relname) :
				 errmsg("vacuuming \"%s.%s.%s\"",
						vac->dbname, vac->nspname, vac->relname)));

	/* before parallel workers are asked for */
	inplace_vacuum_failsafe(vac);
	dead_items_alloc(vac, params->nworkers);

	scan_table(vac);

	dead_items_free(vac);
	if (vac->nindexes > 0 && vac->do_index_cleanup)
		inplace_vacuum_recycle_pages(vac);
	stale_finish(vac);
	vac->phase = VACUUM_PHASE_UNKNOWN;

	inplace_vacuum_truncate_all(vac);
	if (vac->do_index_cleanup)
		inplace_vacuum_update_index_stats(vac);
	vac_close_indexes(vac->nindexes, vac->indrels, NoLock);

	error_context_stack = errcallback.previous;

	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE,
								 PROGRESS_VACUUM_PHASE_FINAL_CLEANUP);
	update_relation_stats(vac, &report, &frozenxid_updated, &minmulti_updated);
	pgstat_progress_end_command();

	vacuum_report_end(&report, vac, params, frozenxid_updated,
					  minmulti_updated);
}

void
inplace_init_vacuum_methods(TableAmRoutine *am)
{
	am->relation_vacuum = inplace_vacuum;
	am->index_delete_tuples = inplace_index_delete_tuples;
}

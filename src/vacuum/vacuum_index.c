/*-------------------------------------------------------------------------
 *
 * vacuum_index.c
 *	  The indexes in a VACUUM, and its second pass: deleting the index entries
 *	  of dead items, and then taking their stubs off the table's pages.
 *
 * Invariants
 *	  1. No index entry ever points to an LP_UNUSED line pointer: a stub is
 *		 made LP_UNUSED only after all indexes were scanned for its TID.
 *	  2. Only VACUUM makes stubs LP_UNUSED, and there is one VACUUM of a table
 *		 at a time, so an item remembered as LP_DEAD still is in the
 *		 second pass.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include <math.h>

#include "access/transam.h"
#include "access/visibilitymap.h"
#include "catalog/pg_am.h"
#include "btree/recycle.h"
#include "btree/shorten.h"
#include "index/btree_handler.h"
#include "index/merge_leaves.h"
#include "miscadmin.h"
#include "page/page.h"
#include "storage/freespace.h"
#include "storage/latch.h"
#include "storage/procarray.h"
#include "undo/seen.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"
#include "vacuum/compat_vacuum.h"
#include "vacuum/dead_items.h"
#include "vacuum/freeze.h"
#include "vacuum/vacuum.h"
#include "vacuum/vacuum_index.h"
#include "vacuum/vacuum_read.h"
#include "wal/log_vacuum.h"

/*
 * With index_cleanup = auto, indexes are left alone if fewer pages than this
 * part of the table have dead items, and these take little memory.
 */
#define BYPASS_MAX_PAGES	0.02
#define BYPASS_MAX_BYTES	(32 * 1024 * 1024)

/*
 * Waiting for index pages deleted just now: how long, how often, and how often while
 * the horizon stays.
 */
#define REUSE_WAIT_MS	10
#define REUSE_TRIES		20
#define REUSE_PATIENCE	4

/* ---------------- the indexes ---------------- */

static void
init_index_info(InplaceVacuum *vac, Relation indrel, double reltuples,
				bool estimated, IndexVacuumInfo *info)
{
	memset(info, 0, sizeof(*info));
	info->index = indrel;
	IndexVacuumInfoSetHeap(info, vac->rel);
	info->analyze_only = false;
	info->report_progress = false;
	info->estimated_count = estimated;
	info->message_level = DEBUG2;
	info->num_heap_tuples = reltuples;
	info->strategy = vac->bstrategy;
}

/* for going through an index before it is known how many rows there are */
void
vacuum_index_info(InplaceVacuum *vac, Relation indrel, IndexVacuumInfo *info)
{
	init_index_info(vac, indrel, vac->old_live_tuples, true, info);
}

void
enter_index(InplaceVacuum *vac, VacuumPhase phase, Relation indrel)
{
	vac->indname = pstrdup(RelationGetRelationName(indrel));
	vac->phase = phase;
}

void
leave_index(InplaceVacuum *vac, VacuumPhase phase)
{
	vac->phase = phase;
	pfree(vac->indname);
	vac->indname = NULL;
}

/*
 * nbtree unlinks pages without entries when it goes through an index to delete
 * some; there may be none.
 */
static bool
no_dead_item(ItemPointer tid, void *arg)
{
	return false;
}

void
vacuum_empty_index(InplaceVacuum *vac, int i)
{
	IndexVacuumInfo info;

	init_index_info(vac, vac->indrels[i], vac->old_live_tuples, true, &info);
	if (vac->pvs != NULL)
		/* what workers will know of the index is kept elsewhere */
		pfree(index_bulk_delete(&info, NULL, no_dead_item, NULL));
	else
		vac->indstats[i] = index_bulk_delete(&info, vac->indstats[i],
											 no_dead_item, NULL);
}

/*
 * Delete the index entries of all dead items.  False if we had to stop: then
 * the table's stubs must stay.
 */
static bool
vacuum_indexes(InplaceVacuum *vac)
{
	VacuumPhase saved_phase = vac->phase;
	bool		finished = true;

	if (inplace_vacuum_failsafe(vac))
		return false;

	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE,
								 PROGRESS_VACUUM_PHASE_VACUUM_INDEX);
	PROGRESS_INDEXES(vac->nindexes, 0);

	if (vac->pvs)
	{
		parallel_vacuum_bulkdel_all_indexes(vac->pvs, vac->old_live_tuples,
											vac->num_index_scans);
		if (inplace_vacuum_failsafe(vac))
			finished = false;
	}
	else
	{
		for (int i = 0; i < vac->nindexes; i++)
		{
			IndexVacuumInfo info;

			init_index_info(vac, vac->indrels[i], vac->old_live_tuples, true,
							&info);
			enter_index(vac, VACUUM_PHASE_INDEX, vac->indrels[i]);
			vac->indstats[i] = VacBulkdelOneIndex(&info, vac->indstats[i],
												  &vac->dead);
			leave_index(vac, saved_phase);
			PROGRESS_INDEXES(vac->nindexes, i + 1);

			if (inplace_vacuum_failsafe(vac))
			{
				finished = false;
				break;
			}
		}
	}

	/* (the failsafe may have struck after the last index only) */
	vac->num_index_scans++;
	PROGRESS_INDEXES(0, 0);
	pgstat_progress_update_param(PROGRESS_VACUUM_NUM_INDEX_VACUUMS,
								 vac->num_index_scans);
	return finished;
}

/*
 * A page deleted just now can be reused when all transactions of this time have
 * ended.  Where these are short it is worth waiting for that.  Otherwise the page has to
 * wait for the next VACUUM, and until then the index grows by other pages.  The horizon may
 * stay where it is, because nobody takes an xid, or somebody has one for long.  Then the
 * pages cannot be reused, however long we wait.  A session that goes through many small
 * tables spends a fifth of its time here at most.
 */
static void
wait_for_deleted_pages(Relation rel)
{
	Relation	whose = BtRecyclingHorizonOf(rel);
	static TimestampTz rest_until = 0;
	TimestampTz start = GetCurrentTimestamp();
	FullTransactionId last = ReadNextFullTransactionId();
	TransactionId horizon = GetOldestNonRemovableTransactionId(whose);
	int			moved = 0;

	if (start < rest_until)
		return;
	for (int i = 0; i < REUSE_TRIES; i++)
	{
		TransactionId now;

		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 REUSE_WAIT_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		/* this computes the horizons again */
		now = GetOldestNonRemovableTransactionId(whose);
		if (!TransactionIdEquals(now, horizon))
			moved = i;
		if (GlobalVisCheckRemovableFullXid(whose, last) ||
			i - moved >= REUSE_PATIENCE)
			break;
		horizon = now;
	}
	rest_until = GetCurrentTimestamp();
	rest_until += 4 * (rest_until - start);
}

/* rows that have come since the VACUUM before, as far as statistics and this session know */
static double
inserted_since(InplaceVacuum *vac)
{
	Oid			relid = RelationGetRelid(vac->rel);
	PgStat_StatTabEntry *stats = pgstat_fetch_stat_tabentry_ext(false, relid);
	PgStat_TableStatus *pending = find_tabstat_entry(relid);
	double		inserted = 0;

	if (stats != NULL)
		inserted += TabInsertsSinceVacuum(stats);
	if (pending != NULL)
		inserted += pending->TableStatusCounts.PendingCount(tuples_inserted);
	return inserted;
}

/* rows that have become dead since, in the same way */
double
vacuum_dead_since(InplaceVacuum *vac)
{
	Oid			relid = RelationGetRelid(vac->rel);
	PgStat_StatTabEntry *stats = pgstat_fetch_stat_tabentry_ext(false, relid);
	PgStat_TableStatus *pending = find_tabstat_entry(relid);
	double		dead = 0;

	if (stats != NULL)
		dead += stats->TableDeadTuples;
	if (pending != NULL)
		dead += pending->TableStatusCounts.PendingCount(delta_dead_tuples);
	return dead;
}

/*
 * What this VACUUM has removed from the index.  The pages that packing frees can be used
 * by the next changes only if somebody has taken an xid meanwhile, and cut off only if
 * nobody has the index locked and no standby is connected (truncate.c).
 */
static RemovedEntries
removed_from(InplaceVacuum *vac, int i)
{
	RemovedEntries removed;

	removed.bytes = vac->swept_bytes[i];
	removed.share = vac->lpdead_items /
		Max(vac->new_rel_tuples + vac->lpdead_items, 1);
	/* (not known: as if no row had come) */
	removed.grown = vac->old_live_tuples > 0 ?
		vac->new_rel_tuples / vac->old_live_tuples - 1 : -removed.share;
	removed.inserted = inserted_since(vac) / Max(vac->new_rel_tuples, 1);
	removed.xids_are_taken = !FullTransactionIdEquals(ReadNextFullTransactionId(),
													  vac->start_xid);
	removed.is_alone = vac->do_truncate && !UndoStandbyConnected() &&
		!inplace_index_is_locked(vac->indrels[i]);
	return removed;
}

static BlockNumber
merge_pages_of(InplaceVacuum *vac, int i)
{
	VacuumPhase saved_phase = vac->phase;
	IndexVacuumInfo info;
	RemovedEntries removed = removed_from(vac, i);
	BlockNumber merged;

	enter_index(vac, VACUUM_PHASE_INDEX_CLEANUP, vac->indrels[i]);
	init_index_info(vac, vac->indrels[i], vac->old_live_tuples, true, &info);
	merged = inplace_merge_leaves(&info, vac->rel, &removed);
	leave_index(vac, saved_phase);
	return merged;
}

/* what nbtree sees in an index when it goes through it for no dead item */
static IndexBulkDeleteResult *
see_index(InplaceVacuum *vac, int i)
{
	IndexVacuumInfo info;

	init_index_info(vac, vac->indrels[i], vac->new_rel_tuples,
					vac->scanned_pages < vac->rel_pages, &info);
	return index_vacuum_cleanup(&info,
								index_bulk_delete(&info, NULL, no_dead_item, NULL));
}

/*
 * Go through an index that this VACUUM had no reason to go through.  Parallel workers have
 * ended.
 */
void
vacuum_nothing_from_index(InplaceVacuum *vac, int i)
{
	VacuumPhase saved_phase = vac->phase;

	Assert(vac->pvs == NULL && vac->indstats[i] == NULL);
	enter_index(vac, VACUUM_PHASE_INDEX_CLEANUP, vac->indrels[i]);
	vac->indstats[i] = see_index(vac, i);
	leave_index(vac, saved_phase);
}

/* nbtree puts deleted pages into the free space map when it goes through an index */
static void
give_back_pages_of(InplaceVacuum *vac, int i)
{
	VacuumPhase saved_phase = vac->phase;

	enter_index(vac, VACUUM_PHASE_INDEX_CLEANUP, vac->indrels[i]);
	if (vac->pvs == NULL)
		vacuum_empty_index(vac, i);
	else
		vac->seen_after_merging[i] = see_index(vac, i);
	leave_index(vac, saved_phase);
}

/*
 * Merge sparse pages of indexes that this VACUUM has been through (index/merge_leaves.c).
 * Then nbtree goes through them again, to give back the pages: those merged just
 * now, too, if all transactions of that time have ended.
 */
void
vacuum_merge_index_pages(InplaceVacuum *vac)
{
	bool	   *give_back = palloc0(vac->nindexes * sizeof(bool));
	bool		any = false;

	if (!vac->swept && vac->num_index_scans == 0)
		return;
	for (int i = 0; i < vac->nindexes; i++)
	{
		BlockNumber merged;

		if (!inplace_index_is_btree(vac->indrels[i]))
			continue;
		if (inplace_vacuum_failsafe(vac))
			return;
		merged = merge_pages_of(vac, i);
		vac->merged_pages[i] += merged;
		give_back[i] = merged > 0;
		any |= give_back[i];
	}
	if (any)
		wait_for_deleted_pages(vac->rel);
	for (int i = 0; i < vac->nindexes; i++)
	{
		if (inplace_vacuum_failsafe(vac))
			return;
		if (give_back[i])
			give_back_pages_of(vac, i);
	}
	pfree(give_back);
}

/*
 * Pages of the indexes that were deleted since a snapshot is held.  Parallel workers have
 * ended.
 */
void
inplace_vacuum_recycle_pages(InplaceVacuum *vac)
{
	if (vac->bounds == NULL)
		return;
	UndoHoldersRead(vac->bounds);
	if (vac->bounds->nheld == 0)
		return;
	for (int i = 0; i < vac->nindexes; i++)
	{
		Relation	index = vac->indrels[i];
		bool		inplace_btree = inplace_index_is_btree(index);
		IndexVacuumInfo info;

		if (inplace_vacuum_failsafe(vac))
			return;
		if (!inplace_btree && index->rd_rel->relam != BTREE_AM_OID)
			continue;
		init_index_info(vac, index, vac->new_rel_tuples, true, &info);
		(void) inplace_recycle_deleted(&info, vac->rel, vac->bounds, vac->start_xid,
									   inplace_btree, vac->indstats[i]);
	}
}

void
inplace_vacuum_cleanup_indexes(InplaceVacuum *vac)
{
	VacuumPhase saved_phase = vac->phase;
	bool		estimated = vac->scanned_pages < vac->rel_pages;

	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE,
								 PROGRESS_VACUUM_PHASE_INDEX_CLEANUP);
	PROGRESS_INDEXES(vac->nindexes, 0);

	if (vac->pvs)
		parallel_vacuum_cleanup_all_indexes(vac->pvs, vac->new_rel_tuples,
											vac->num_index_scans, estimated);
	else
	{
		for (int i = 0; i < vac->nindexes; i++)
		{
			IndexVacuumInfo info;

			init_index_info(vac, vac->indrels[i], vac->new_rel_tuples,
							estimated, &info);
			enter_index(vac, VACUUM_PHASE_INDEX_CLEANUP, vac->indrels[i]);
			vac->indstats[i] = vac_cleanup_one_index(&info, vac->indstats[i]);
			leave_index(vac, saved_phase);
			PROGRESS_INDEXES(vac->nindexes, i + 1);
		}
	}
	PROGRESS_INDEXES(0, 0);
}

void
inplace_vacuum_update_index_stats(InplaceVacuum *vac)
{
	for (int i = 0; i < vac->nindexes; i++)
	{
		IndexBulkDeleteResult *istat = vac->indstats[i];
		double		tuples;

		/* as on heap, but for a file that has become shorter */
		if (istat == NULL || (istat->estimated_count && vac->cut_pages[i] == 0))
			continue;
		tuples = istat->estimated_count ? vac->indrels[i]->rd_rel->reltuples :
			istat->num_index_tuples;
		VacUpdateRelstats(vac->indrels[i], istat->num_pages,
						  tuples, 0, 0, false,
						  InvalidTransactionId, InvalidMultiXactId,
						  NULL, NULL);
	}
}

/* ---------------- the second pass ---------------- */

static void
vacuum_page(InplaceVacuum *vac, Buffer buffer, OffsetNumber *offsets,
			int noffsets, Buffer *vmbuffer, PageSurvey *survey)
{
	BlockNumber blk = BufferGetBlockNumber(buffer);
	Page		page;
	Size		space;
	OffsetNumber maxoff;

	visibilitymap_pin(vac->rel, blk, vmbuffer);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	page = RowPage(vac->rel, buffer);
	maxoff = PageGetMaxOffsetNumber(page);

	for (int i = 0; i < noffsets; i++)
	{
		if (offsets[i] > maxoff ||
			!ItemIdIsDead(PageGetItemId(page, offsets[i])))
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("line pointer %u in block %u of relation \"%s\" is not dead any more",
							offsets[i], blk, vac->relname)));
	}

	START_CRIT_SECTION();

	inplace_page_apply_vacuum(page, offsets, noffsets);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(vac->rel))
		inplace_log_vacuum(vac->rel, buffer, offsets, noffsets);

	END_CRIT_SECTION();

	/*
	 * With the stubs gone the page may be all-visible. What the survey finds
	 * out about ids to hold is in order too, for rows that came since the
	 * first pass; but nothing is frozen here.
	 */
	inplace_survey_page(vac, buffer, survey);
	if (survey->nfreeze + survey->nunlock > 0)
		survey->all_frozen = false;
	inplace_vacuum_set_visible(vac, buffer, *vmbuffer, survey);

	space = inplace_vacuum_space(vac, buffer);
	UnlockReleaseBuffer(buffer);
	RecordPageWithFreeSpace(vac->rel, blk, space);
}

static void
vacuum_table(InplaceVacuum *vac)
{
	VacuumPhase saved_phase = vac->phase;
	BlockNumber saved_blkno = vac->blkno;
	PageSurvey *survey = palloc(sizeof(PageSurvey));
	Buffer		vmbuffer = InvalidBuffer;
	BlockNumber npages = 0;
	DeadReader *reader = palloc(sizeof(DeadReader));
	DeadPage   *dead;
	Buffer		buffer;

	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE,
								 PROGRESS_VACUUM_PHASE_VACUUM_HEAP);
	vac->phase = VACUUM_PHASE_TABLE;

	dead_reader_begin(vac, reader);
	for (;;)
	{
		VacuumDelayPoint();

		buffer = dead_reader_next(reader, &dead);
		if (!BufferIsValid(buffer))
			break;
		vac->blkno = BufferGetBlockNumber(buffer);
		vacuum_page(vac, buffer, dead->offsets, dead->noffsets, &vmbuffer,
					survey);
		npages++;
		pgstat_progress_update_param(PROGRESS_VACUUM_HEAP_BLKS_VACUUMED,
									 vac->blkno);
	}
	dead_reader_end(reader);
	pfree(reader);

	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);
	pfree(survey);

	ereport(DEBUG2,
			(errmsg("table \"%s\": removed %lld dead item identifiers in %u pages",
					vac->relname, (long long) dead_items_count(vac), npages)));
	vac->phase = saved_phase;
	vac->blkno = saved_blkno;
}

bool
worth_scanning_indexes(InplaceVacuum *vac, BlockNumber pages, Size bytes)
{
	return !vac->consider_bypass || vac->rel_pages == 0 ||
		pages >= vac->rel_pages * BYPASS_MAX_PAGES ||
		bytes >= BYPASS_MAX_BYTES;
}

/*
 * Deal with the dead items found so far: indexes, then table.
 */
void
inplace_vacuum_round(InplaceVacuum *vac)
{
	Assert(vac->nindexes > 0);

	if (vac->do_index_vacuuming)
	{
		if (!worth_scanning_indexes(vac, vac->lpdead_item_pages,
									dead_items_bytes(vac)))
		{
			/* so little that whole index scans are not worth it */
			vac->do_index_vacuuming = false;
		}
		else if (vacuum_indexes(vac))
			vacuum_table(vac);
		else
			Assert(vac->failsafe);
	}
	dead_items_reset(vac);
}

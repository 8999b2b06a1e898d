/*-------------------------------------------------------------------------
 *
 * compat_vacuum.h
 *	  The part of compat.h that only VACUUM needs: what changed in the
 *	  server's vacuum support between PostgreSQL 15 and 18.
 *
 *		- 16 put the cutoffs into a struct and gave index vacuuming the table;
 *		- 17 put dead TIDs into a radix tree (an array before) and counts
 *		  them in bytes in the progress view;
 *		- 17 dropped old_snapshot_threshold;
 *		- 18 counts all-frozen pages in pg_class, wants the start time, and has a
 *		  setting for how many pages VACUUM may read in the hope of freezing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_COMPAT_VACUUM_H
#define INPLACE_COMPAT_VACUUM_H

#include "inplace.h"

#include "commands/progress.h"
#include "commands/vacuum.h"
#include "pgstat.h"
#include "postmaster/autovacuum.h"

#if PG_VERSION_NUM >= 170000
#define DEAD_ITEMS_IN_TIDSTORE
#include "access/tidstore.h"
#define InAutoVacuumWorker()	AmAutoVacuumWorkerProcess()
#else
#define InAutoVacuumWorker()	IsAutoVacuumWorkerProcess()
#endif

/* does heap freeze pages whose image pruning put into WAL? */
#define HEAP_FREEZES_IMAGED		(PG_VERSION_NUM >= 160000)

/* the names that 16 and later have for a VACUUM's cutoffs */
#if PG_VERSION_NUM < 160000
struct VacuumCutoffs
{
	TransactionId relfrozenxid;
	MultiXactId relminmxid;
	TransactionId OldestXmin;
	MultiXactId OldestMxact;
	TransactionId FreezeLimit;
	MultiXactId MultiXactCutoff;
};

static inline bool
VacuumGetCutoffs(Relation rel, VacuumParams *params,
				 struct VacuumCutoffs *cutoffs)
{
	cutoffs->relfrozenxid = rel->rd_rel->relfrozenxid;
	cutoffs->relminmxid = rel->rd_rel->relminmxid;
	return vacuum_set_xid_limits(rel, params->freeze_min_age,
								 params->freeze_table_age,
								 params->multixact_freeze_min_age,
								 params->multixact_freeze_table_age,
								 &cutoffs->OldestXmin, &cutoffs->OldestMxact,
								 &cutoffs->FreezeLimit,
								 &cutoffs->MultiXactCutoff);
}

#define VacuumFailsafeCheck(c) \
	vacuum_xid_failsafe_check((c)->relfrozenxid, (c)->relminmxid)
#define VacuumSetFailsafeActive(on) ((void) 0)
#define IndexVacuumInfoSetHeap(info, rel) ((void) 0)
#else
#define VacuumGetCutoffs(rel, params, cutoffs) \
	vacuum_get_cutoffs(rel, params, cutoffs)
#define VacuumFailsafeCheck(c)	vacuum_xid_failsafe_check(c)
#define VacuumSetFailsafeActive(on) (VacuumFailsafeActive = (on))
#define IndexVacuumInfoSetHeap(info, rel) ((info)->heaprel = (rel))
#endif

/*
 * With old_snapshot_threshold the server's cutoffs pass snapshots that are
 * older than that.  A backend that reads a page must then find out, by the page's
 * LSN, that something it needs was taken off.  Our readers do not do that: a row
 * changed in place is on a page that was written anyhow.  So go back to a cutoff
 * that all snapshots have passed.
 */
#if PG_VERSION_NUM < 170000
#include "storage/procarray.h"
#include "utils/snapmgr.h"

static inline void
CutoffsRespectSnapshots(Relation rel, TransactionId *oldest_xmin,
						TransactionId *freeze_limit)
{
	if (!OldSnapshotThresholdActive())
		return;
	*oldest_xmin = GetOldestNonRemovableTransactionId(rel);
	if (TransactionIdPrecedes(*oldest_xmin, *freeze_limit))
		*freeze_limit = *oldest_xmin;
}
#else
#define CutoffsRespectSnapshots(rel, oldest_xmin, freeze_limit) ((void) 0)
#endif

#if PG_VERSION_NUM >= 180000
#define EagerFreezeFailureRate(params)	((params)->max_eager_freeze_failure_rate)
#define VacUpdateRelstats(rel, pages, tuples, visible, frozen, hasindex, xid, mxid, xid_updated, mxid_updated) \
	vac_update_relstats(rel, pages, tuples, visible, frozen, hasindex, xid, mxid, xid_updated, mxid_updated, false)
#define PgstatReportVacuum(rel, live, dead, start) \
	pgstat_report_vacuum(RelationGetRelid(rel), (rel)->rd_rel->relisshared, live, dead, start)
#else
#define EagerFreezeFailureRate(params)	0.03
#define VacUpdateRelstats(rel, pages, tuples, visible, frozen, hasindex, xid, mxid, xid_updated, mxid_updated) \
	vac_update_relstats(rel, pages, tuples, visible, hasindex, xid, mxid, xid_updated, mxid_updated, false)
#define PgstatReportVacuum(rel, live, dead, start) \
	((void) (start), \
	 pgstat_report_vacuum(RelationGetRelid(rel), (rel)->rd_rel->relisshared, live, dead))
#endif

/*
 * What heap's report has: frozen pages, from 16 on; pages visited eagerly and
 * set in the visibility map, and delays, from 18 on.  It calls reads misses up to 17.
 */
#if PG_VERSION_NUM >= 180000
#include "utils/backend_status.h"
#define REPORT_VISIBILITY		true
#define REPORT_READS_AS_MISSES	false
#define ReportWalBuffersFull(buf, wal) \
	appendStringInfo(buf, _(", %lld buffers full"), \
					 (long long) (wal)->wal_buffers_full)
#define ReportDelayTime(buf) \
	do { \
		if (track_cost_delay_timing) \
			appendStringInfo(buf, _("delay time: %.3f ms\n"), \
							 (double) MyBEEntry->st_progress_param[PROGRESS_VACUUM_DELAY_TIME] / 1000000.0); \
	} while (0)
#else
#define REPORT_VISIBILITY		false
#define REPORT_READS_AS_MISSES	true
#define ReportWalBuffersFull(buf, wal)	((void) 0)
#define ReportDelayTime(buf)	((void) 0)
#endif

#define REPORT_FROZEN			(PG_VERSION_NUM >= 160000)

/*
 * The TIDs whose index entries are to be deleted, local or, in a parallel
 * VACUUM, shared.
 */
typedef struct DeadItems
{
#ifdef DEAD_ITEMS_IN_TIDSTORE
	TidStore   *store;
	VacDeadItemsInfo *info;
#else
	VacDeadItems *items;
#endif
} DeadItems;

#ifdef DEAD_ITEMS_IN_TIDSTORE
#if PG_VERSION_NUM >= 180000
#define TidStoreResultOffsets(result, offsets, max) \
	TidStoreGetBlockOffsets(result, offsets, max)
#else
static inline int
TidStoreResultOffsets(TidStoreIterResult *result, OffsetNumber *offsets,
					  int max)
{
	Assert(result->num_offsets <= max);
	memcpy(offsets, result->offsets,
		   result->num_offsets * sizeof(OffsetNumber));
	return result->num_offsets;
}
#endif

#define VacBulkdelOneIndex(ivinfo, istat, dead) \
	vac_bulkdel_one_index(ivinfo, istat, (dead)->store, (dead)->info)
#define PROGRESS_INDEXES(total, done) \
	do { \
		pgstat_progress_update_param(PROGRESS_VACUUM_INDEXES_TOTAL, total); \
		pgstat_progress_update_param(PROGRESS_VACUUM_INDEXES_PROCESSED, done); \
	} while (0)
#define PROGRESS_MAX_DEAD		PROGRESS_VACUUM_MAX_DEAD_TUPLE_BYTES
#define DeadItemsMaxProgress(dead)	((int64) (dead)->info->max_bytes)
#else
#define VacBulkdelOneIndex(ivinfo, istat, dead) \
	vac_bulkdel_one_index(ivinfo, istat, (dead)->items)
#define PROGRESS_INDEXES(total, done) ((void) 0)
#define PROGRESS_MAX_DEAD		PROGRESS_VACUUM_MAX_DEAD_TUPLES
#define DeadItemsMaxProgress(dead)	((int64) (dead)->items->max_items)
#endif

#endif							/* INPLACE_COMPAT_VACUUM_H */

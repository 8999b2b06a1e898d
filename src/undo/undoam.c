/*-------------------------------------------------------------------------
 *
 * undoam.c
 *	  The access method of the undo relations: it makes their storage, and
 *	  refuses everything else.
 *
 * Nothing that SQL can say reaches the pages.  VACUUM and ANALYZE, which go
 * through all tables of a database, pass over them without a word, and they
 * have no frozen xid, so they never hold back the database's.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/storage.h"
#include "catalog/storage_xlog.h"
#include "commands/extension.h"
#include "commands/vacuum.h"
#include "nodes/execnodes.h"
#include "own.h"
#include "undo/record.h"
#include "undo/undo.h"

PG_FUNCTION_INFO_V1(inplace_undo_handler);

INPLACE_NORETURN static void
undoam_refuse(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("undo of inplace tables is not open to SQL statements"),
			 errhint("View inplace.undo shows how much there is, inplace.versions() what is in it.")));
	pg_unreachable();
}

INPLACE_NORETURN static void
undoam_refuse_command(Relation rel, const char *command)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("%s is not possible for \"%s\"",
					command, RelationGetRelationName(rel)),
			 errdetail("The relation has the undo of inplace tables.")));
	pg_unreachable();
}

/* ---------------- scans ---------------- */

static const TupleTableSlotOps *
undoam_slot_callbacks(Relation rel)
{
	return &TTSOpsVirtual;
}

/*
 * ANALYZE gets a scan, which finds nothing.
 */
static TableScanDesc
undoam_scan_begin(Relation rel, Snapshot snapshot, int nkeys,
				  struct ScanKeyData *key, ParallelTableScanDesc pscan,
				  uint32 flags)
{
	TableScanDesc scan;

	if (!(flags & SO_TYPE_ANALYZE))
		undoam_refuse();
	scan = palloc0(sizeof(TableScanDescData));
	scan->rs_rd = rel;
	scan->rs_flags = flags;
	return scan;
}

static void
undoam_scan_end(TableScanDesc scan)
{
	pfree(scan);
}

static void
undoam_scan_rescan(TableScanDesc scan, struct ScanKeyData *key,
				   bool set_params, bool allow_strat, bool allow_sync,
				   bool allow_pagemode)
{
	undoam_refuse();
}

static bool
undoam_scan_getnextslot(TableScanDesc scan, ScanDirection direction,
						TupleTableSlot *slot)
{
	undoam_refuse();
}

static Size
undoam_parallelscan_estimate(Relation rel)
{
	undoam_refuse();
}

static Size
undoam_parallelscan_initialize(Relation rel, ParallelTableScanDesc pscan)
{
	undoam_refuse();
}

static void
undoam_parallelscan_reinitialize(Relation rel, ParallelTableScanDesc pscan)
{
	undoam_refuse();
}

static struct IndexFetchTableData *
undoam_index_fetch_begin(Relation rel)
{
	undoam_refuse();
}

static void
undoam_index_fetch_reset(struct IndexFetchTableData *data)
{
	undoam_refuse();
}

static void
undoam_index_fetch_end(struct IndexFetchTableData *data)
{
	undoam_refuse();
}

static bool
undoam_index_fetch_tuple(struct IndexFetchTableData *scan, ItemPointer tid,
						 Snapshot snapshot, TupleTableSlot *slot,
						 bool *call_again, bool *all_dead)
{
	undoam_refuse();
}

static bool
undoam_scan_sample_next_block(TableScanDesc scan,
							  struct SampleScanState *scanstate)
{
	undoam_refuse();
}

static bool
undoam_scan_sample_next_tuple(TableScanDesc scan,
							  struct SampleScanState *scanstate,
							  TupleTableSlot *slot)
{
	undoam_refuse();
}

/* ---------------- rows ---------------- */

static bool
undoam_tuple_fetch_row_version(Relation rel, ItemPointer tid,
							   Snapshot snapshot, TupleTableSlot *slot)
{
	undoam_refuse();
}

static bool
undoam_tuple_tid_valid(TableScanDesc scan, ItemPointer tid)
{
	undoam_refuse();
}

static void
undoam_tuple_get_latest_tid(TableScanDesc scan, ItemPointer tid)
{
	undoam_refuse();
}

static bool
undoam_tuple_satisfies_snapshot(Relation rel, TupleTableSlot *slot,
								Snapshot snapshot)
{
	undoam_refuse();
}

static TransactionId
undoam_index_delete_tuples(Relation rel, TM_IndexDeleteOp *delstate)
{
	undoam_refuse();
}

static void
undoam_tuple_insert(Relation rel, TupleTableSlot *slot, CommandId cid,
					int options, struct BulkInsertStateData *bistate)
{
	undoam_refuse();
}

static void
undoam_tuple_insert_speculative(Relation rel, TupleTableSlot *slot,
								CommandId cid, int options,
								struct BulkInsertStateData *bistate,
								uint32 specToken)
{
	undoam_refuse();
}

static void
undoam_tuple_complete_speculative(Relation rel, TupleTableSlot *slot,
								  uint32 specToken, bool succeeded)
{
	undoam_refuse();
}

static void
undoam_multi_insert(Relation rel, TupleTableSlot **slots, int nslots,
					CommandId cid, int options,
					struct BulkInsertStateData *bistate)
{
	undoam_refuse();
}

static TM_Result
undoam_tuple_delete(Relation rel, ItemPointer tid, CommandId cid,
					Snapshot snapshot, Snapshot crosscheck, bool wait,
					TM_FailureData *tmfd, bool changingPart)
{
	undoam_refuse();
}

#if PG_VERSION_NUM >= 160000
static TM_Result
undoam_tuple_update(Relation rel, ItemPointer otid, TupleTableSlot *slot,
					CommandId cid, Snapshot snapshot, Snapshot crosscheck,
					bool wait, TM_FailureData *tmfd, LockTupleMode *lockmode,
					TU_UpdateIndexes *update_indexes)
{
	undoam_refuse();
}
#else
static TM_Result
undoam_tuple_update(Relation rel, ItemPointer otid, TupleTableSlot *slot,
					CommandId cid, Snapshot snapshot, Snapshot crosscheck,
					bool wait, TM_FailureData *tmfd, LockTupleMode *lockmode,
					bool *update_indexes)
{
	undoam_refuse();
}
#endif

static TM_Result
undoam_tuple_lock(Relation rel, ItemPointer tid, Snapshot snapshot,
				  TupleTableSlot *slot, CommandId cid, LockTupleMode mode,
				  LockWaitPolicy wait_policy, uint8 flags,
				  TM_FailureData *tmfd)
{
	undoam_refuse();
}

/* ---------------- storage ---------------- */

/*
 * Write the meta page, past the buffer manager: nobody can know the file
 * yet.  It is synced at once, since a checkpoint may already have passed the
 * WAL record.
 */
static void
undoam_write_meta_page(SMgrRelation srel, const RelFileLocator *locator,
					   ForkNumber fork)
{
	RelFileLocator loc = *locator;
	PGIOAlignedBlock page;

	UndoPageInit((Page) page.data);
	log_newpage(&loc, fork, UNDO_META_BLOCK, page.data, true);
	PageSetChecksumInplace((Page) page.data, UNDO_META_BLOCK);
	smgrextend(srel, fork, UNDO_META_BLOCK, page.data, false);
	smgrimmedsync(srel, fork);
}

static void
undoam_set_new_filelocator(Relation rel, const RelFileLocator *newrlocator,
						   char persistence, TransactionId *freezeXid,
						   MultiXactId *minmulti)
{
	SMgrRelation srel;

	InplaceRequirePreload();

	/*
	 * Only the extension's script makes them, and pg_upgrade in its stead.
	 * The name may be that of the new storage of REFRESH MATERIALIZED VIEW.
	 */
	if (!IsBinaryUpgrade &&
		!(creating_extension && CurrentExtensionObject == InplaceExtension()))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("undo of inplace tables cannot be created or rewritten by SQL statements"),
				 errhint("It belongs to extension inplace.")));

	/* the storage that the relation is born with, or another one? */
	if (!RelFileLocatorEquals(RelLocator(rel), *newrlocator))
		undoam_refuse_command(rel, "TRUNCATE");
	if (persistence == RELPERSISTENCE_TEMP)
		undoam_refuse_command(rel, "CREATE TEMPORARY TABLE");

	*freezeXid = InvalidTransactionId;
	*minmulti = InvalidMultiXactId;

	srel = RelationCreateStorage(*newrlocator, persistence, true);
	if (persistence == RELPERSISTENCE_PERMANENT)
		undoam_write_meta_page(srel, newrlocator, MAIN_FORKNUM);
	else
	{
		PGIOAlignedBlock page;

		UndoPageInit((Page) page.data);
		PageSetChecksumInplace((Page) page.data, UNDO_META_BLOCK);
		smgrextend(srel, MAIN_FORKNUM, UNDO_META_BLOCK, page.data, false);

		/* what the relation will be made of after a crash */
		smgrcreate(srel, INIT_FORKNUM, false);
		log_smgrcreate(newrlocator, INIT_FORKNUM);
		undoam_write_meta_page(srel, newrlocator, INIT_FORKNUM);
	}
	smgrclose(srel);
}

static void
undoam_nontransactional_truncate(Relation rel)
{
	undoam_refuse_command(rel, "TRUNCATE");
}

static void
undoam_copy_data(Relation rel, const RelFileLocator *newrlocator)
{
	undoam_refuse_command(rel, "ALTER TABLE");
}

static void
undoam_copy_for_cluster(Relation OldTable, Relation NewTable,
						Relation OldIndex, bool use_sort,
						TransactionId OldestXmin, TransactionId *xid_cutoff,
						MultiXactId *multi_cutoff, double *num_tuples,
						double *tups_vacuumed, double *tups_recently_dead)
{
	undoam_refuse_command(OldTable, OldIndex ? "CLUSTER" : "VACUUM FULL");
}

static bool
undoam_needs_toast_table(Relation rel)
{
	return false;
}

static void
undoam_estimate_size(Relation rel, int32 *attr_widths, BlockNumber *pages,
					 double *tuples, double *allvisfrac)
{
	*pages = RelationGetNumberOfBlocks(rel);
	*tuples = 0;
	*allvisfrac = 0;
}

/* ---------------- maintenance ---------------- */

static void
undoam_vacuum(Relation rel, struct VacuumParams *params,
			  BufferAccessStrategy bstrategy)
{
	/* the undo worker does all there is to do */
}

#if PG_VERSION_NUM >= 170000
static bool
undoam_scan_analyze_next_block(TableScanDesc scan, ReadStream *stream)
{
	return false;
}
#else
static bool
undoam_scan_analyze_next_block(TableScanDesc scan, BlockNumber blockno,
							   BufferAccessStrategy bstrategy)
{
	return false;
}
#endif

static bool
undoam_scan_analyze_next_tuple(TableScanDesc scan, TransactionId OldestXmin,
							   double *liverows, double *deadrows,
							   TupleTableSlot *slot)
{
	return false;
}

static double
undoam_index_build_range_scan(Relation table_rel, Relation index_rel,
							  struct IndexInfo *index_info, bool allow_sync,
							  bool anyvisible, bool progress,
							  BlockNumber start_blockno,
							  BlockNumber numblocks,
							  IndexBuildCallback callback,
							  void *callback_state, TableScanDesc scan)
{
	undoam_refuse_command(table_rel, "CREATE INDEX");
}

static void
undoam_index_validate_scan(Relation table_rel, Relation index_rel,
						   struct IndexInfo *index_info, Snapshot snapshot,
						   struct ValidateIndexState *state)
{
	undoam_refuse_command(table_rel, "CREATE INDEX");
}

static const TableAmRoutine undoam_methods = {
	.type = T_TableAmRoutine,

	.slot_callbacks = undoam_slot_callbacks,

	.scan_begin = undoam_scan_begin,
	.scan_end = undoam_scan_end,
	.scan_rescan = undoam_scan_rescan,
	.scan_getnextslot = undoam_scan_getnextslot,

	.parallelscan_estimate = undoam_parallelscan_estimate,
	.parallelscan_initialize = undoam_parallelscan_initialize,
	.parallelscan_reinitialize = undoam_parallelscan_reinitialize,

	.index_fetch_begin = undoam_index_fetch_begin,
	.index_fetch_reset = undoam_index_fetch_reset,
	.index_fetch_end = undoam_index_fetch_end,
	.index_fetch_tuple = undoam_index_fetch_tuple,

	.tuple_fetch_row_version = undoam_tuple_fetch_row_version,
	.tuple_tid_valid = undoam_tuple_tid_valid,
	.tuple_get_latest_tid = undoam_tuple_get_latest_tid,
	.tuple_satisfies_snapshot = undoam_tuple_satisfies_snapshot,
	.index_delete_tuples = undoam_index_delete_tuples,

	.tuple_insert = undoam_tuple_insert,
	.tuple_insert_speculative = undoam_tuple_insert_speculative,
	.tuple_complete_speculative = undoam_tuple_complete_speculative,
	.multi_insert = undoam_multi_insert,
	.tuple_delete = undoam_tuple_delete,
	.tuple_update = undoam_tuple_update,
	.tuple_lock = undoam_tuple_lock,

	.relation_set_new_filelocator = undoam_set_new_filelocator,
	.relation_nontransactional_truncate = undoam_nontransactional_truncate,
	.relation_copy_data = undoam_copy_data,
	.relation_copy_for_cluster = undoam_copy_for_cluster,
	.relation_vacuum = undoam_vacuum,
	.scan_analyze_next_block = undoam_scan_analyze_next_block,
	.scan_analyze_next_tuple = undoam_scan_analyze_next_tuple,
	.index_build_range_scan = undoam_index_build_range_scan,
	.index_validate_scan = undoam_index_validate_scan,

	.relation_size = table_block_relation_size,
	.relation_needs_toast_table = undoam_needs_toast_table,

	.relation_estimate_size = undoam_estimate_size,

	.scan_sample_next_block = undoam_scan_sample_next_block,
	.scan_sample_next_tuple = undoam_scan_sample_next_tuple
};

/*
 * No check of the preload here: relations have to be opened for DROP
 * EXTENSION, too.
 */
Datum
inplace_undo_handler(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(&undoam_methods);
}

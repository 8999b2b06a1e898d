/*-------------------------------------------------------------------------
 *
 * build.c
 *	  Index builds: CREATE INDEX, REINDEX, the second phase of CREATE INDEX
 *	  CONCURRENTLY, and BRIN's summarizing of a range of blocks.
 *
 * An index entry leads to a row, and stands for every version of the row that
 * anybody may see there.  The build has one version of it: normally the
 * newest.
 *
 * Older versions.  Versions in undo that some snapshot still needs may have
 * other keys than the newest.  An ordinary index must not be used by such
 * snapshots: ii_BrokenHotChain.  A summarizing index takes the older versions
 * as well (it does not mind several values for a TID), which it also needs
 * because the transaction that made the newest one may yet roll back, and an
 * update of its columns is done in place.  What was rolled back already it leaves
 * on its page: VACUUM summarizes in parallel mode, where no undo can be written.
 *
 * REINDEX.  The server takes ii_BrokenHotChain to be known from CREATE INDEX, for a
 * key does not change within a chain once there is an index on it; and so it is
 * here, but for inplace_btree.  When one is built again, also by a rewrite of the
 * table, it gets the keys of the older versions of rows that are IP_STALE, as it
 * had them (invariant 1 in index.h).  Where a row is not, the versions with
 * other keys are older than the index.
 *
 * States.  With SnapshotAny all rows of a page are classified under the page
 * lock before the first is handed out; whatever needs the lock to be let go
 * of (aborted changes to be restored, a transaction to be waited for) makes
 * the page start over, so that no row is reported twice.  Then rows are
 * evaluated from the page copy.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/amapi.h"
#include "access/nbtree.h"
#include "access/sysattr.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "ddl/ddl.h"
#include "ddl/older_keys.h"
#include "executor/executor.h"
#include "index/btree_handler.h"
#include "index/late_open.h"
#include "modify/toast.h"
#include "nodes/execnodes.h"
#include "optimizer/optimizer.h"
#include "page/page.h"
#include "page/slot.h"
#include "page/tuple.h"
#include "pgstat.h"
#include "row/restore.h"
#include "row/visibility.h"
#include "row/walk.h"
#include "scan/scan.h"
#include "storage/lmgr.h"
#include "undo/undo.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"


/* an older version to be indexed too */
typedef struct OlderVersion
{
	struct OlderVersion *next;
	OffsetNumber off;
	Size		len;
	InplaceTupleHeader tuple;
	bool		evicted;		/* the page has nothing of the row but this */
} OlderVersion;

typedef struct BuildState
{
	Relation	table;
	Relation	index;
	IndexInfo  *info;
	IndexBuildCallback callback;
	void	   *callback_state;

	EState	   *estate;
	ExprContext *econtext;
	ExprState  *predicate;
	Bitmapset  *attrs;			/* that the index looks at */
	TupleTableSlot *slot;

	TransactionId oldest_xmin;	/* valid if SnapshotAny */
	bool		anyvisible;
	bool		unique;			/* uniqueness or exclusion is checked */
	bool		all_versions;	/* older versions go into the index, too */
	bool		former_keys;	/* their keys do, if the row is IP_STALE */
	bool		is_catalog;

	CopyWalk   *copies;			/* made when first needed */
	MemoryContext page_cxt;		/* older versions of the current page */
	OlderVersion *older;
} BuildState;

/* the columns that the index looks at, as RelationGetIndexAttrBitmap() has them */
static Bitmapset *
index_attrs(const IndexInfo *info)
{
	Bitmapset  *attrs = NULL;

	for (int i = 0; i < info->ii_NumIndexAttrs; i++)
		if (info->ii_IndexAttrNumbers[i] != 0)
			attrs = bms_add_member(attrs, info->ii_IndexAttrNumbers[i] -
								   FirstLowInvalidHeapAttributeNumber);
	pull_varattnos((Node *) info->ii_Expressions, 1, &attrs);
	pull_varattnos((Node *) info->ii_Predicate, 1, &attrs);
	return attrs;
}

static void
eval_begin(BuildState *bs)
{
	bs->estate = CreateExecutorState();
	bs->econtext = GetPerTupleExprContext(bs->estate);
	bs->slot = table_slot_create(bs->table, NULL);
	bs->econtext->ecxt_scantuple = bs->slot;
	bs->predicate = ExecPrepareQual(bs->info->ii_Predicate, bs->estate);
	bs->attrs = index_attrs(bs->info);
}

static void
eval_end(BuildState *bs)
{
	ExecDropSingleTupleTableSlot(bs->slot);
	FreeExecutorState(bs->estate);

	/* they were made in estate's memory */
	bs->info->ii_ExpressionsState = NIL;
	bs->info->ii_PredicateState = NULL;
}

/*
 * The index's columns of the row in the slot; false if the row is not one of a
 * partial index's.
 */
static bool
eval_row(BuildState *bs, Datum *values, bool *isnull)
{
	if (bs->predicate != NULL && !ExecQual(bs->predicate, bs->econtext))
		return false;
	FormIndexDatum(bs->info, bs->slot, bs->estate, values, isnull);
	return true;
}

/*
 * Have the large values of the slot's row in memory, which is a version that may be
 * nobody's by now, or may become so.  False if they are gone: it needs no entry.
 */
static bool
hold_values(BuildState *bs)
{
	MemoryContext old;
	bool		held;

	if (!OidIsValid(bs->table->rd_rel->reltoastrelid))
		return true;
	old = MemoryContextSwitchTo(bs->econtext->ecxt_per_tuple_memory);
	held = inplace_toast_hold_values(bs->slot, bs->attrs);
	MemoryContextSwitchTo(old);
	return held;
}

static void
report_row(BuildState *bs, bool alive)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	if (eval_row(bs, values, isnull))
	{
		ItemPointerData tid;

		TidClean(&tid, &bs->slot->tts_tid);
		bs->callback(bs->index, &tid, values, isnull, alive,
					 bs->callback_state);
	}
}

/* where the walk has come to is to go into the index, too */
static OlderVersion *
keep_version(BuildState *bs, const ChainWalk *walk)
{
	OlderVersion *v;

	if (bs->page_cxt == NULL)
		bs->page_cxt = AllocSetContextCreate(bs->estate->es_query_cxt,
											 "inplace index build",
											 ALLOCSET_DEFAULT_SIZES);
	v = MemoryContextAlloc(bs->page_cxt, sizeof(OlderVersion));
	v->tuple = MemoryContextAlloc(bs->page_cxt, walk->len);
	memcpy(v->tuple, walk->tuple, walk->len);
	v->len = walk->len;
	v->off = walk->off;
	v->evicted = false;
	v->next = bs->older;
	bs->older = v;
	return v;
}

static ChainWalk *
begin_walk(BuildState *bs, BlockNumber blk, OffsetNumber off,
		   InplaceTupleHeader tup, Size len)
{
	if (bs->copies == NULL)
		bs->copies = MemoryContextAlloc(bs->estate->es_query_cxt,
										sizeof(CopyWalk));
	return inplace_walk_begin(bs->copies, bs->table, blk, off, tup, len);
}

/*
 * The row's newest version is not one that everybody sees.  Look for older
 * ones that differ from it: keep them for the index, or have the index marked
 * as not to be used by snapshots that need them.
 */
static void
note_older_versions(BuildState *bs, BlockNumber blk, OffsetNumber off,
					InplaceTupleHeader tup, Size len)
{
	ChainWalk  *walk;
	bool		keep = bs->all_versions ||
		(bs->former_keys && (tup->t_infomask & IP_STALE) != 0);

	if (!keep && bs->info->ii_BrokenHotChain && !HdrIsEvicted(tup))
		return;

	walk = begin_walk(bs, blk, off, tup, len);
	while (inplace_walk_back_needed(walk, bs->oldest_xmin))
	{
		if (walk->rec.hdr.ur_type != UNDO_UPDATE)
		{
			/* the version that was deleted is not on the page */
			if (walk->rec.hdr.ur_flags & UR_EVICTED)
				keep_version(bs, walk)->evicted = true;
			continue;
		}
		if (!bs->all_versions && !bs->info->ii_BrokenHotChain)
		{
			bs->info->ii_BrokenHotChain = true;
			inplace_build_met_older_keys(RelationGetRelid(bs->index));
		}
		if (!keep)
			return;
		(void) keep_version(bs, walk);
	}
}

/*
 * The row's newest versions were rolled back.  All versions go into the index, so the
 * row need not be restored for it: the ones below do.  (Those rolled back are not to be
 * looked into; they may have columns that nobody knows any more.)  False if there are
 * none below.
 */
static bool
note_versions_below(BuildState *bs, BlockNumber blk, OffsetNumber off,
					InplaceTupleHeader tup, Size len)
{
	ChainWalk  *walk = begin_walk(bs, blk, off, tup, len);

	while (inplace_copied_xid_status(bs->table, walk->tuple, blk, off) == XID_ABORTED)
		if (!inplace_walk_back(walk, InvalidTransactionId))
			return false;
	do
		(void) keep_version(bs, walk);
	while (inplace_walk_back_needed(walk, bs->oldest_xmin));
	return true;
}

/*
 * What users are warned of, once for each row, when the page is unlocked.
 */
typedef struct Warnings
{
	int			n;
	const char *what[InplaceMaxTuplesPerPage];
} Warnings;

static inline void
note_concurrent(BuildState *bs, Warnings *warnings, const char *what)
{
	/* system catalogs let go of their locks early */
	if (!bs->is_catalog && warnings->n < InplaceMaxTuplesPerPage)
		warnings->what[warnings->n++] = what;
}

/*
 * Unlock the page, and say what is to be said.
 */
static void
leave_page(BuildState *bs, Buffer buffer, Warnings *warnings)
{
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	for (int i = 0; i < warnings->n; i++)
		elog(WARNING, "concurrent %s in progress within table \"%s\"",
			 warnings->what[i], RelationGetRelationName(bs->table));
	warnings->n = 0;
}

static void
wait_for(BuildState *bs, Buffer buffer, OffsetNumber off, TransactionId xid)
{
	ItemPointerData tid;

	TidSet(&tid, BufferGetBlockNumber(buffer), off);
	XactLockTableWait(xid, bs->table, &tid, XLTW_InsertIndexUnique);
	CHECK_FOR_INTERRUPTS();
}

/*
 * The row's newest version is of a transaction in progress.  May it be *alive, for
 * uniqueness, and is it counted in *live?  Returns true if what to do is known only
 * when that transaction has ended.
 */
static bool
must_wait_for_change(BuildState *bs, RowState state, TransactionId xid,
					 Warnings *warnings, bool *alive, double *live)
{
	bool		ours = TransactionIdIsCurrentTransactionId(xid);
	bool		others = !ours && !bs->anyvisible;

	switch (state)
	{
		case ROW_INSERT_IN_PROGRESS:
			if (others)
			{
				note_concurrent(bs, warnings, "insert");

				/* it might yet roll back, and be no duplicate */
				if (bs->unique)
					return true;
			}
			else
				*live += 1;
			break;

		case ROW_UPDATE_IN_PROGRESS:
			if (others)
			{
				note_concurrent(bs, warnings, "update");

				/*
				 * Which version's keys belong into the index is not known
				 * before it ends, unless all of them go there.
				 */
				if (!bs->all_versions)
					return true;
			}
			*live += 1;
			break;

		case ROW_DELETE_IN_PROGRESS:
			if (others)
			{
				note_concurrent(bs, warnings, "delete");

				/* if it rolls back the row has to be checked after all */
				if (bs->unique)
					return true;
			}
			if (!ours)
				*live += 1;
			*alive = false;
			break;

		default:
			break;
	}
	return false;
}

/*
 * Classify the rows of the scan's page under SnapshotAny and copy it.
 * Returns the number of rows to be counted as live.
 */
static double
classify_page(BuildState *bs, InplaceScanDesc scan)
{
	Buffer		buffer = scan->pin.buffer;
	BlockNumber blk = scan->cblock;
	OffsetNumber off;
	OffsetNumber maxoff;
	double		live;
	Page		page;
	int			n;
	Warnings	warnings = {0};

restart:
	live = 0;
	n = 0;
	scan->nvis = 0;
	if (bs->older != NULL)
	{
		bs->older = NULL;
		MemoryContextReset(bs->page_cxt);
	}

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = RowPage(bs->table, buffer);
	if (PageIsNew(page))
		maxoff = 0;
	else
	{
		inplace_check_page(bs->table, page, blk);
		maxoff = PageGetMaxOffsetNumber(page);
	}

	for (off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		InplaceTupleHeader tup;
		TransactionId xid;
		bool		all_visible;
		bool		alive = true;
		RowState	state;

		if (!ItemIdIsNormal(lp))
			continue;
		tup = (InplaceTupleHeader) PageGetItem(page, lp);
		xid = tup->t_xid;

		state = inplace_row_state(bs->table, tup, buffer, bs->oldest_xmin, NULL,
								  &all_visible);
		switch (state)
		{
			case ROW_DEAD:
			case ROW_ABORTED_INSERT:
				continue;

			case ROW_ABORTED_CHANGE:
				if (bs->all_versions)
				{
					if (note_versions_below(bs, blk, off, tup, RowLength(tup, lp)))
						live++;
					continue;
				}
				leave_page(bs, buffer, &warnings);
				inplace_restore_page(bs->table, buffer, true);
				goto restart;

			case ROW_LIVE:
				live++;
				break;

			case ROW_RECENTLY_DEAD:
				/* old snapshots may look for it, uniqueness is past it */
				alive = false;
				break;

			case ROW_INSERT_IN_PROGRESS:
			case ROW_UPDATE_IN_PROGRESS:
			case ROW_DELETE_IN_PROGRESS:
				if (must_wait_for_change(bs, state, xid, &warnings, &alive, &live))
				{
					leave_page(bs, buffer, &warnings);
					wait_for(bs, buffer, off, xid);
					goto restart;
				}
				break;
		}

		if (!all_visible && HdrHasUndo(tup))
			note_older_versions(bs, blk, off, tup, RowLength(tup, lp));

		if (!HdrIsEvicted(tup))
			scan->vis[n++] = alive ? off : off | SCAN_NOT_ALIVE;
	}

	inplace_scan_copy_page(scan, page);
	leave_page(bs, buffer, &warnings);
	scan->nvis = n;
	return live;
}

/* a key that has been reported for the row at hand */
typedef struct ReportedKey
{
	struct ReportedKey *next;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
} ReportedKey;

/*
 * Is one of the keys equal to this one?  As a rule equal ones are identical.  If
 * not, the version is older than the index, or its key would have moved it.
 */
static bool
is_reported(BuildState *bs, const ReportedKey *keys, const Datum *values,
			const bool *isnull)
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(bs->index);

	for (; keys != NULL; keys = keys->next)
	{
		int			i = 0;

		while (i < nkeys && keys->isnull[i] == isnull[i] &&
			   (isnull[i] ||
				DatumGetInt32(FunctionCall2Coll(index_getprocinfo(bs->index, i + 1,
																  BTORDER_PROC),
												bs->index->rd_indcollation[i],
												keys->values[i],
												values[i])) == 0))
			i++;
		if (i == nkeys)
			return true;
	}
	return false;
}

static ReportedKey *
add_reported(BuildState *bs, ReportedKey *keys, const Datum *values,
			 const bool *isnull)
{
	MemoryContext old = MemoryContextSwitchTo(bs->page_cxt);
	ReportedKey *key = palloc(sizeof(ReportedKey));
	TupleDesc	desc = RelationGetDescr(bs->index);

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(bs->index); i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		key->isnull[i] = isnull[i];
		key->values[i] = isnull[i] ? (Datum) 0 :
			datumCopy(values[i], att->attbyval, att->attlen);
	}
	key->next = keys;
	MemoryContextSwitchTo(old);
	return key;
}

/*
 * Put an older version into the slot.
 */
static void
store_older(BuildState *bs, InplaceScanDesc scan, const OlderVersion *v)
{
	ItemPointerData tid;

	TidSet(&tid, scan->cblock, v->off);
	MemoryContextReset(bs->econtext->ecxt_per_tuple_memory);
	inplace_store_tuple(bs->slot, RelationGetRelid(bs->table), &tid,
						v->tuple, v->len, NULL, false);
}

/* is the row, whose older versions these are, evicted? */
static bool
is_of_evicted(const OlderVersion *v)
{
	for (OffsetNumber off = v->off; v != NULL && v->off == off; v = v->next)
		if (v->evicted)
			return true;
	return false;
}

/*
 * The keys of a row's older versions, each once, and not if it is that of the
 * newest version, which has been reported (an evicted row has none).  Returns the
 * version that follows, of another row.
 */
static OlderVersion *
report_former_keys(BuildState *bs, InplaceScanDesc scan, OlderVersion *v)
{
	OffsetNumber off = v->off;
	ReportedKey *keys = NULL;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	MemoryContextReset(bs->econtext->ecxt_per_tuple_memory);
	if (!is_of_evicted(v) && inplace_scan_store(scan, off, bs->slot) &&
		hold_values(bs) && eval_row(bs, values, isnull))
		keys = add_reported(bs, keys, values, isnull);

	for (; v != NULL && v->off == off; v = v->next)
	{
		ItemPointerData tid;

		CHECK_FOR_INTERRUPTS();
		store_older(bs, scan, v);
		if (!hold_values(bs) || !eval_row(bs, values, isnull) ||
			is_reported(bs, keys, values, isnull))
			continue;
		keys = add_reported(bs, keys, values, isnull);
		TidSet(&tid, scan->cblock, off);
		bs->callback(bs->index, &tid, values, isnull, false, bs->callback_state);
	}
	return v;
}

/* is it all that there is of the row: the version that was deleted, and evicted? */
static bool
is_all_of_evicted(const OlderVersion *v)
{
	return v->evicted && (v->next == NULL || v->next->off != v->off);
}

static void
report_older_versions(BuildState *bs, InplaceScanDesc scan)
{
	OlderVersion *v = bs->older;

	while (v != NULL)
	{
		/* keys are compared in btrees only, where there are several */
		if (!bs->all_versions && !is_all_of_evicted(v))
		{
			v = report_former_keys(bs, scan, v);
			continue;
		}
		store_older(bs, scan, v);
		if (hold_values(bs))
			report_row(bs, false);
		v = v->next;
	}
}

static void
begin_build(BuildState *bs, Relation table, Relation index, IndexInfo *info,
			bool anyvisible, IndexBuildCallback callback, void *callback_state)
{
	bs->table = table;
	bs->index = index;
	bs->info = info;
	bs->callback = callback;
	bs->callback_state = callback_state;
	bs->anyvisible = anyvisible;
	bs->unique = info->ii_Unique || info->ii_ExclusionOps != NULL;
	bs->is_catalog = IsSystemRelation(table);
	bs->all_versions = anyvisible;
#if PG_VERSION_NUM >= 160000
	if (index->rd_indam->amsummarizing)
		bs->all_versions = true;
#endif
	bs->former_keys = ReindexIsProcessingIndex(RelationGetRelid(index)) &&
		inplace_index_class_takes(index);
	Assert(!(anyvisible && bs->unique));

	eval_begin(bs);

	/*
	 * A concurrent build (and bootstrap) indexes what an MVCC snapshot sees,
	 * others all that may be seen by anybody.
	 */
	if (!IsBootstrapProcessingMode() && !info->ii_Concurrent)
		bs->oldest_xmin = GetOldestNonRemovableTransactionId(table);
}

/*
 * Report the rows of the scan's page.  Returns how many of them are live.
 */
static double
report_page(BuildState *bs, InplaceScanDesc scan, Snapshot snapshot)
{
	double		live = 0;

	if (snapshot == SnapshotAny)
		live = classify_page(bs, scan);
	else
		inplace_scan_load_page(scan, NULL, -1);

	for (int i = 0; i < scan->nvis; i++)
	{
		uint16		entry = scan->vis[i];

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(bs->econtext->ecxt_per_tuple_memory);

		if (!inplace_scan_store(scan, entry & ~SCAN_NOT_ALIVE, bs->slot))
			continue;
		if (snapshot != SnapshotAny)
			live++;

		/*
		 * While a page range is summarized nothing holds back the undo of
		 * live rows' values: VACUUM's snapshot does not.  A row whose value
		 * is gone has a newer one, which its updater has put into the
		 * summary.
		 */
		if (((entry & SCAN_NOT_ALIVE) == 0 && !bs->anyvisible) || hold_values(bs))
			report_row(bs, (entry & SCAN_NOT_ALIVE) == 0);
	}

	if (bs->older != NULL)
		report_older_versions(bs, scan);
	return live;
}

static double
inplace_index_build_range_scan(Relation table, Relation index,
							   IndexInfo *info, bool allow_sync,
							   bool anyvisible, bool progress,
							   BlockNumber start_blockno,
							   BlockNumber numblocks,
							   IndexBuildCallback callback,
							   void *callback_state, TableScanDesc sscan)
{
	InplaceScanDesc scan;
	BuildState	bs = {0};
	Snapshot	snapshot;
	bool		unregister = false;
	BlockNumber reported = InvalidBlockNumber;
	double		reltuples = 0;

	InplaceRequirePreload();
	/* (nothing to refuse: BRIN, to summarize a range; amcheck) */
	if (ReindexIsProcessingIndex(RelationGetRelid(index)))
		inplace_check_index_not_in_use(RelationGetRelid(table),
									   RelationGetRelationName(index),
									   "REINDEX INDEX");

	begin_build(&bs, table, index, info, anyvisible, callback, callback_state);

	if (sscan == NULL)
	{
		if (TransactionIdIsValid(bs.oldest_xmin))
			snapshot = SnapshotAny;
		else
		{
			snapshot = RegisterSnapshot(GetTransactionSnapshot());
			unregister = true;
		}
		sscan = table_beginscan_strat(table, snapshot, 0, NULL, true,
									  allow_sync);
	}
	else
		snapshot = sscan->rs_snapshot;
	scan = (InplaceScanDesc) sscan;

	Assert(snapshot == SnapshotAny ? TransactionIdIsValid(bs.oldest_xmin) :
		   (IsMVCCSnapshot(snapshot) && !TransactionIdIsValid(bs.oldest_xmin) &&
			!anyvisible));

	if (progress)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL,
									 scan->nblocks);

	if (!allow_sync)
		inplace_scan_set_limits(scan, start_blockno, numblocks);
	else
		Assert(start_blockno == 0 && numblocks == InvalidBlockNumber);

	while (inplace_scan_next_page(scan, ForwardScanDirection))
	{
		if (progress)
		{
			BlockNumber done = inplace_scan_blocks_done(scan);

			if (done != reported)
				pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, done);
			reported = done;
		}

		reltuples += report_page(&bs, scan, snapshot);
	}

	if (progress)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, scan->nblocks);

	ExecClearTuple(bs.slot);
	table_endscan(sscan);
	if (unregister)
		UnregisterSnapshot(snapshot);
	eval_end(&bs);

	return reltuples;
}

/*
 * Insert what a concurrently built index lacks of the rows that the snapshot
 * sees: merge the table in TID order with the index's TIDs.
 */
static void
inplace_index_validate_scan(Relation table, Relation index, IndexInfo *info,
							Snapshot snapshot, ValidateIndexState *state)
{
	TableScanDesc sscan;
	InplaceScanDesc scan;
	BuildState	bs = {0};
	ItemPointerData indexed;
	bool		have_indexed = false;
	bool		exhausted = false;
	BlockNumber reported = InvalidBlockNumber;

	InplaceRequirePreload();

	bs.table = table;
	bs.index = index;
	bs.info = info;
	eval_begin(&bs);

	/* block order matters: no synchronized scan */
	sscan = table_beginscan_strat(table, snapshot, 0, NULL, true, false);
	scan = (InplaceScanDesc) sscan;

	pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL, scan->nblocks);

	while (table_scan_getnextslot(sscan, ForwardScanDirection, bs.slot))
	{
		Datum		values[INDEX_MAX_KEYS];
		bool		isnull[INDEX_MAX_KEYS];
		ItemPointerData tid;

		CHECK_FOR_INTERRUPTS();

		state->htups += 1;
		TidClean(&tid, &bs.slot->tts_tid);

		if (scan->cblock != reported)
		{
			pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE,
										 scan->cblock);
			reported = scan->cblock;
		}

		/* go on to the first indexed TID that is not before this one */
		while (!exhausted &&
			   (!have_indexed || ItemPointerCompare(&indexed, &tid) < 0))
		{
			Datum		val;
			bool		null;

			if (TuplesortGetDatum(state->tuplesort, &val, &null))
			{
				itemptr_decode(&indexed, DatumGetInt64(val));
				have_indexed = true;
			}
			else
				exhausted = true;
		}
		if (!exhausted && ItemPointerEquals(&indexed, &tid))
			continue;

		MemoryContextReset(bs.econtext->ecxt_per_tuple_memory);
		if (!eval_row(&bs, values, isnull))
			continue;

		/*
		 * The row may have been deleted since.  Its entry is wanted all the
		 * same, and the unique check finds out by itself.
		 */
		index_insert(index, values, isnull, &tid, table,
					 info->ii_Unique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO,
					 false, info);
		state->tups_inserted += 1;
	}

	ExecClearTuple(bs.slot);
	table_endscan(sscan);
	eval_end(&bs);
}

void
inplace_init_build_methods(TableAmRoutine *am)
{
	am->index_build_range_scan = inplace_index_build_range_scan;
	am->index_validate_scan = inplace_index_validate_scan;

	inplace_init_cluster_methods(am);
}

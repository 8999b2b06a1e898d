/*-------------------------------------------------------------------------
 *
 * btree_handler.c
 *	  The index access method inplace_btree: nbtree, with a recheck.
 *
 * The routine is nbtree's but for what has to know about stale entries
 * (index.h):
 *	 amrescan, amgettuple	get the entry along with each TID and leave it in the
 *				table's fetch state, where the row is compared with it
 *	 amgetbitmap	up to 16 has every row rechecked, from 17 on the table sees
 *				to that (the loop is the one thing that is written again here)
 *	 ambeginscan, amendscan, aminitparallelscan, ammarkpos, amrestrpos	note the
 *				scan for merges of pages (in_flight.c)
 *	 aminsert	leaves the key for the table's side of a unique
 *				check, which is asked about a TID alone
 *	 ambuild	nbtree's build takes only relations that say btree
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/amapi.h"
#include "access/nbtree.h"
#include "access/parallel.h"
#include "access/relscan.h"
#include "btree/in_flight.h"
#include "btree/standby_scan.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "index/as_btree.h"
#include "index/btree_handler.h"
#include "index/entry.h"
#include "index/index_fetch.h"
#include "index/insertion.h"
#include "nodes/execnodes.h"
#include "nodes/tidbitmap.h"
#include "optimizer/optimizer.h"
#include "own.h"
#include "page/recent.h"
#include "undo/hold.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(inplace_btree_handler);

/* nbtree's own routine, for the life of the process */
const IndexAmRoutine *
inplace_nbtree_routine(void)
{
	static const IndexAmRoutine *routine = NULL;

	if (routine == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

		routine = (const IndexAmRoutine *)
			DatumGetPointer(OidFunctionCall1(F_BTHANDLER, PointerGetDatum(NULL)));
		MemoryContextSwitchTo(old);
	}
	return routine;
}

/* ---------------- scans ---------------- */

static IndexScanDesc
inplace_btree_beginscan(Relation index, int nkeys, int norderbys)
{
	in_flight_begin(index);
	return inplace_nbtree_routine()->ambeginscan(index, nkeys, norderbys);
}

static void
inplace_btree_endscan(IndexScanDesc scan)
{
	inplace_nbtree_routine()->amendscan(scan);
	in_flight_end(scan->indexRelation);
	if (scan->parallel_scan && !IsParallelWorker())
		in_flight_end_parallel(scan->indexRelation);
}

/* called by the leader, which begins its scan after that */
static void
inplace_btree_initparallelscan(void *target)
{
	inplace_nbtree_routine()->aminitparallelscan(target);
	in_flight_begin_parallel();
}

/* what a scan that began on a standby keeps because of merges, or NULL */
static inline StandbyScan *
standby_scan(IndexScanDesc scan)
{
	/* (a parallel worker may have begun after its leader was promoted) */
	if (likely(!scan->xactStartedInRecovery && scan->parallel_scan == NULL))
		return NULL;
	if (inplace_entry_fetch(scan) == NULL)
		return NULL;
	return inplace_fetch_standby(inplace_entry_fetch(scan));
}

static void
inplace_btree_markpos(IndexScanDesc scan)
{
	StandbyScan *standby = standby_scan(scan);

	inplace_nbtree_routine()->ammarkpos(scan);
	if (standby)
		standby_scan_marked(standby);
}

static void
inplace_btree_restrpos(IndexScanDesc scan)
{
	StandbyScan *standby = standby_scan(scan);

	inplace_nbtree_routine()->amrestrpos(scan);
	if (standby)
		standby_scan_restored(standby, scan);
}

/*
 * nbtree keeps copies of the entries of a page if the caller wants entries, and
 * then also its pin, which makes VACUUM wait.  That is for index-only scans,
 * which may not look at the table; ours does, so it has the copies alone.
 */
static void
inplace_btree_rescan(IndexScanDesc scan, ScanKey keys, int nkeys,
					 ScanKey orderbys, int norderbys)
{
	bool		want_itup = scan->xs_want_itup;
	InplaceEntryFetch *fetch = inplace_entry_fetch(scan);

	if (fetch != NULL)
	{
		inplace_entry_fetch_rescan(fetch, scan);
		scan->xs_want_itup = true;
	}
	UndoHoldCheckScan(scan->xs_snapshot);
	inplace_nbtree_routine()->amrescan(scan, keys, nkeys, orderbys, norderbys);
	scan->xs_want_itup = want_itup;
	BtSetDropPin(scan);
	if (standby_scan(scan))
		standby_scan_start(standby_scan(scan));
}

#ifdef USE_ASSERT_CHECKING
static int
compare_tids(const void *a, const void *b)
{
	return ItemPointerCompare((ItemPointer) a, (ItemPointer) b);
}

/*
 * Where nbtree has let go of a page and then marks entries on it as dead, it
 * goes by their TIDs, and asserts that no two entries have the same.  A dead row
 * may have several here, and every one of them is dead, so that is well
 * without assertions.  With them, have it leave such pages alone.
 */
static void
avoid_assertion(IndexScanDesc scan)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;
	ItemPointerData tids[MaxTIDsPerBTreePage];
	int			n = 0;
	Buffer		buffer;
	Page		page;

	if (!BTScanPosIsValid(so->currPos) || BTScanPosIsPinned(so->currPos) ||
		so->numKilled > 0)
		return;
	buffer = _bt_getbuf(scan->indexRelation, so->currPos.currPage, BT_READ);
	page = BufferGetPage(buffer);
	for (OffsetNumber off = P_FIRSTDATAKEY(BTPageGetOpaque(page));
		 off <= PageGetMaxOffsetNumber(page); off++)
	{
		IndexTuple	itup = (IndexTuple) PageGetItem(page, PageGetItemId(page, off));
		int			count = BTreeTupleIsPosting(itup) ? BTreeTupleGetNPosting(itup) : 1;

		memcpy(&tids[n], BTreeTupleGetHeapTID(itup), count * sizeof(ItemPointerData));
		n += count;
	}
	_bt_relbuf(scan->indexRelation, buffer);

	qsort(tids, n, sizeof(ItemPointerData), compare_tids);
	for (int i = 1; i < n; i++)
		if (ItemPointerEquals(&tids[i - 1], &tids[i]))
			so->currPos.lsn = InvalidXLogRecPtr;
}
#endif

/*
 * The rows of the entries that come next are on pages anywhere in memory.  nbtree
 * has their TIDs already, so these pages can be on their way.
 */
#define ROWS_EXPECTED	2

static inline void
expect_next_row(IndexScanDesc scan, ScanDirection dir)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;
	int			next = so->currPos.itemIndex + ROWS_EXPECTED * (int) dir;

	if (next >= so->currPos.firstItem && next <= so->currPos.lastItem)
		inplace_expect_row(scan->heapRelation,
						   &so->currPos.items[next].heapTid);
}

static pg_noinline bool
next_entry(IndexScanDesc scan, ScanDirection dir)
{
	StandbyScan *standby = standby_scan(scan);
	InplaceEntryFetch *fetch;
	bool		found;

	found = likely(standby == NULL) ? btgettuple(scan, dir) :
		standby_scan_next(standby, scan, dir);

	fetch = inplace_entry_fetch(scan);
	if (fetch != NULL)
	{
		BTScanOpaque so = (BTScanOpaque) scan->opaque;

		inplace_note_entry(fetch, scan->indexRelation, !found ? NULL : (IndexTuple)
						   (so->currTuples + so->currPos.items[so->currPos.itemIndex].tupleOffset));
		if (found && inplace_fetches_each_row(fetch))
			expect_next_row(scan, dir);
	}
	return found;
}

static bool
inplace_btree_gettuple(IndexScanDesc scan, ScanDirection dir)
{
#ifdef USE_ASSERT_CHECKING
	if (scan->kill_prior_tuple)
		avoid_assertion(scan);
#endif
	/* an index-only scan goes to the table for some rows only */
	if (scan->xs_want_itup && likely(standby_scan(scan) == NULL))
		return btgettuple(scan, dir);
	return next_entry(scan, dir);
}

static int64
inplace_btree_getbitmap(IndexScanDesc scan, TIDBitmap *tbm)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;
	int64		n = 0;

	if (!BtStartArrayKeys(scan))
		return 0;
	do
	{
		if (!_bt_first(scan, ForwardScanDirection))
			continue;
		tbm_add_tuples(tbm, &scan->xs_heaptid, 1, BITMAP_RECHECKS_ALL);
		n++;
		for (;;)
		{
			if (++so->currPos.itemIndex > so->currPos.lastItem &&
				!_bt_next(scan, ForwardScanDirection))
				break;
			tbm_add_tuples(tbm, &so->currPos.items[so->currPos.itemIndex].heapTid,
						   1, BITMAP_RECHECKS_ALL);
			n++;
		}
	} while (so->numArrayKeys && BtNextArrayKeys(scan));
	return n;
}

/* ---------------- build ---------------- */

/*
 * The workers of a parallel build are nbtree's own; each opens the index by its
 * OID, and sees what the catalog says.  So that says btree for the time of the
 * build, to this transaction, of which they are part, and to nobody else.  The
 * operator classes stay those of inplace_btree.
 */
static IndexBuildResult *
build_in_parallel(Relation table, Relation index, IndexInfo *info)
{
	Oid			relam = index->rd_rel->relam;
	IndexBuildResult *result;

	inplace_index_set_relam(RelationGetRelid(index), BTREE_AM_OID);
	CommandCounterIncrement();
	result = inplace_nbtree_routine()->ambuild(table, index, info);
	inplace_index_set_relam(RelationGetRelid(index), relam);
	CommandCounterIncrement();
	return result;
}

/*
 * The table may be of another access method: partitions of both kinds have
 * indexes of one.  Then the index is a btree in all but name.
 */
static IndexBuildResult *
inplace_btree_build(Relation table, Relation index, IndexInfo *info)
{
	ActsAsBtree as;
	IndexBuildResult *volatile result = NULL;

	InplaceRequirePreload();
	info->ii_ParallelWorkers = RelationGetNumberOfBlocks(table) == 0 ? 0 :
		ParallelBuildWorkers(table, index, info);
	if (info->ii_ParallelWorkers > 0)
		return build_in_parallel(table, index, info);
	inplace_act_as_btree(&as, index);
	PG_TRY();
	{
		result = inplace_nbtree_routine()->ambuild(table, index, info);
	}
	PG_FINALLY();
	{
		inplace_act_as_itself(&as);
	}
	PG_END_TRY();
	return result;
}

bool
inplace_index_is_btree(Relation index)
{
	return index->rd_indam->aminsert == inplace_btree_insert;
}

/*
 * The same by its operator classes: while it is built in parallel its pg_class row
 * says btree.
 */
bool
inplace_index_class_takes(Relation index)
{
	bool		isnull;
	oidvector  *classes = (oidvector *)
		DatumGetPointer(SysCacheGetAttr(INDEXRELID, index->rd_indextuple,
										Anum_pg_index_indclass, &isnull));
	HeapTuple	tuple;
	bool		result;

	Assert(!isnull);
	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(classes->values[0]));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator class %u",
			 classes->values[0]);
	result = ((Form_pg_opclass) GETSTRUCT(tuple))->opcmethod == InplaceBtreeAm();
	ReleaseSysCache(tuple);
	return result;
}

/* ---------------- not preloaded ---------------- */

/*
 * The planner asks each index method about the operators of a query, whatever
 * tables it is on (from 18 on), so the handler must answer although the library
 * was not preloaded.  It is the use of an index that is refused.
 */
static void
refuse_build_empty(Relation index)
{
	InplaceRequirePreload();
}

static IndexScanDesc
refuse_begin_scan(Relation index, int nkeys, int norderbys)
{
	InplaceRequirePreload();
	return NULL;
}

static IndexBulkDeleteResult *
refuse_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
				   IndexBulkDeleteCallback callback, void *state)
{
	InplaceRequirePreload();
	return NULL;
}

static IndexBulkDeleteResult *
refuse_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	InplaceRequirePreload();
	return NULL;
}

Datum
inplace_btree_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *am = makeNode(IndexAmRoutine);

	memcpy(am, inplace_nbtree_routine(), sizeof(IndexAmRoutine));
	am->ambuild = inplace_btree_build;
	am->aminsert = inplace_btree_insert;
	am->ambeginscan = inplace_btree_beginscan;
	am->amrescan = inplace_btree_rescan;
	am->amendscan = inplace_btree_endscan;
	am->ammarkpos = inplace_btree_markpos;
	am->amrestrpos = inplace_btree_restrpos;
	am->aminitparallelscan = inplace_btree_initparallelscan;
	am->amgettuple = inplace_btree_gettuple;
	am->amgetbitmap = inplace_btree_getbitmap;
	if (unlikely(!inplace_preloaded))
	{
		am->ambuildempty = refuse_build_empty;
		am->ambeginscan = refuse_begin_scan;
		am->ambulkdelete = refuse_bulk_delete;
		am->amvacuumcleanup = refuse_vacuum_cleanup;
	}
	PG_RETURN_POINTER(am);
}

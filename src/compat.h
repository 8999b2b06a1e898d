/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  Every difference between PostgreSQL 15, 16, 17 and 18 that the sources
 *	  meet.  No PG_VERSION_NUM elsewhere unless a callback's signature
 *	  forces it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_COMPAT_H
#define INPLACE_COMPAT_H

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 190000
#error "inplace needs PostgreSQL 15, 16, 17 or 18"
#endif

/*
 * As 16 and later have it: only what is marked can be seen outside of the library
 * (Makefile), and functions for SQL are marked.
 */
#if PG_VERSION_NUM < 160000
#include "fmgr.h"
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#undef PG_FUNCTION_INFO_V1
#define PG_FUNCTION_INFO_V1(name) \
	extern PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
	extern PGDLLEXPORT const Pg_finfo_record *CppConcat(pg_finfo_, name) (void); \
	const Pg_finfo_record * \
	CppConcat(pg_finfo_, name) (void) \
	{ \
		static const Pg_finfo_record info = {1}; \
		return &info; \
	} \
	extern int	no_such_variable
#endif

#if PG_VERSION_NUM >= 160000
#include "storage/relfilelocator.h"
#include "varatt.h"
#define LocatorDb(loc)		((loc).dbOid)
#define LocatorSpc(loc)		((loc).spcOid)
#define LocatorRel(loc)		((loc).relNumber)
#define RelLocator(rel)		((rel)->rd_locator)
#define BufferGetLocator(buf, loc, fork, blk) BufferGetTag(buf, loc, fork, blk)
#define BufferTagLocator(tag) BufTagGetRelFileLocator(tag)
#else
#include "storage/relfilenode.h"
typedef RelFileNode RelFileLocator;
typedef Oid RelFileNumber;
#define InvalidRelFileNumber InvalidOid
#define RelFileNumberIsValid(n) OidIsValid(n)
#define LocatorDb(loc)		((loc).dbNode)
#define LocatorSpc(loc)		((loc).spcNode)
#define LocatorRel(loc)		((loc).relNode)
#define RelLocator(rel)		((rel)->rd_node)
#define BufferTagLocator(tag) ((tag)->rnode)
#define RelFileLocatorEquals(a, b) RelFileNodeEquals(a, b)
#define RelidByRelfilenumber(spc, num) RelidByRelfilenode(spc, num)
#endif

/* what a failed ReadBuffer has begun, that its resource owner does not end */
#if PG_VERSION_NUM >= 160000
#define AbortFailedRead()	((void) 0)
#else
#define AbortFailedRead()	AbortBufferIO()
#endif

/* GiST's record of entries that are deleted as dead ones */
#if PG_VERSION_NUM >= 160000
#define GistLogDelete(buffer, offs, n, newest, table) \
	gistXLogDelete(buffer, offs, n, newest, table)
#else
#define GistLogDelete(buffer, offs, n, newest, table) \
	gistXLogDelete(buffer, offs, n, newest)
#endif

/*
 * Replay of that record sets a flag of the page, which nobody looks at, in servers whose header
 * files have a macro for it.
 */
#include "access/gist.h"

#ifdef GistMarkTuplesDeleted
#define GistMarkAsReplayDoes(page)	GistMarkTuplesDeleted(page)
#else
#define GistMarkAsReplayDoes(page)	((void) 0)
#endif

/* the local xid of a process's transaction */
#if PG_VERSION_NUM >= 170000
#define ProcLxid(proc)		((proc)->vxid.lxid)
#else
#define ProcLxid(proc)		((proc)->lxid)
#endif

/* is this a transaction of the n-th process of the proc array? */
#if PG_VERSION_NUM >= 170000
#define VxidIsOfProcess(vxid, n)	((vxid)->procNumber == (n))
#else
#define VxidIsOfProcess(vxid, n)	((vxid)->backendId == ProcGlobal->allProcs[n].backendId)
#endif

/*
 * May columns of summarizing indexes be updated in place?  This goes by what the
 * relcache has.  It is there since the update began, unless the entry has been read
 * again meanwhile; then the answer is yes.  It is never there if there are no indexes.
 */
#if PG_VERSION_NUM >= 160000
#define MayHaveSummarizedAttrs(rel) \
	((rel)->rd_rel->relhasindex && \
	 !((rel)->rd_indexvalid && (rel)->rd_indexlist == NIL) && \
	 (!(rel)->rd_attrsvalid || (rel)->rd_summarizedattr != NULL))
#else
#define MayHaveSummarizedAttrs(rel) false
#endif

/* parallel builds of GIN indexes came in 18 */
#if PG_VERSION_NUM >= 180000
#define GIN_BUILDS_IN_PARALLEL	true
#else
#define GIN_BUILDS_IN_PARALLEL	false
#endif

/*
 * 15.0 has this under its first name only, which all minor releases of 15 keep.
 * (Modules are loaded with all their symbols, so one that is missing is enough
 * for a server not to start.)
 */
#if PG_VERSION_NUM < 160000
#define InitMaterializedSRF(fcinfo, flags)	SetSingleFuncCall(fcinfo, flags)
#endif

/* reading ahead came in 17 */
#if PG_VERSION_NUM >= 170000
#define HAVE_READ_STREAM
#endif

/* for a function that looks at a page without a pin, and trusts nothing there */
#if defined(__GNUC__) || defined(__clang__)
#define NO_SANITIZE_ADDRESS __attribute__((no_sanitize_address))
#else
#define NO_SANITIZE_ADDRESS
#endif

/* have memory in the processor's cache when it is looked at; never faults */
#if defined(__GNUC__) || defined(__clang__)
#define PrefetchMemory(addr)	__builtin_prefetch(addr)
#else
#define PrefetchMemory(addr)	((void) (addr))
#endif

/* vacuum_delay_point grew an argument in 18 */
#if PG_VERSION_NUM >= 180000
#define VacuumDelayPoint()	vacuum_delay_point(false)
#else
#define VacuumDelayPoint()	vacuum_delay_point()
#endif

#if PG_VERSION_NUM >= 160000
#define CountUpdate(rel, inplace, newpage) \
	pgstat_count_heap_update(rel, inplace, newpage)
#else
#define CountUpdate(rel, inplace, newpage) \
	pgstat_count_heap_update(rel, inplace)
#endif

/* rows that have come to a table since its last VACUUM */
#if PG_VERSION_NUM >= 160000
#define TabInsertsSinceVacuum(entry)	((double) (entry)->ins_since_vacuum)
#else
#define TabInsertsSinceVacuum(entry)	((double) (entry)->inserts_since_vacuum)
#endif

/* pages of a relation read by this transaction, as its statistics will have it */
#if PG_VERSION_NUM >= 160000
#define RelationBlocksFetched(rel) \
	((rel)->pgstat_info ? (rel)->pgstat_info->counts.blocks_fetched : 0)
#else
#define RelationBlocksFetched(rel) \
	((rel)->pgstat_info ? (rel)->pgstat_info->t_counts.t_blocks_fetched : 0)
#endif

/* what is read of an attribute again and again, from 18 on kept together */
#if PG_VERSION_NUM < 180000
typedef FormData_pg_attribute CompactAttribute;
#define TupleDescCompactAttr(desc, i)	TupleDescAttr(desc, i)
#endif

/*
 * A page was found in memory by other means than ReadBuffer.  Buffer accesses as
 * EXPLAIN counts them are counted where the buffer is pinned.
 */
#if PG_VERSION_NUM >= 180000
#define CountIOHit() \
	pgstat_count_io_op(IOOBJECT_RELATION, IOCONTEXT_NORMAL, IOOP_HIT, 1, 0)
#elif PG_VERSION_NUM >= 160000
#define CountIOHit() \
	pgstat_count_io_op(IOOBJECT_RELATION, IOCONTEXT_NORMAL, IOOP_HIT)
#else
#define CountIOHit()		((void) 0)
#endif
#define CountBufferHit(rel) \
	do { \
		pgstat_count_buffer_read(rel); \
		pgstat_count_buffer_hit(rel); \
		CountIOHit(); \
	} while (0)

/* RelationGetBufferForTuple grew num_pages in 16 */
#if PG_VERSION_NUM >= 160000
#define GetBufferForTuple(rel, len, other, options, bistate, vm, vmother) \
	RelationGetBufferForTuple(rel, len, other, options, bistate, vm, vmother, 0)
#else
#define GetBufferForTuple(rel, len, other, options, bistate, vm, vmother) \
	RelationGetBufferForTuple(rel, len, other, options, bistate, vm, vmother)
#endif

/* pages that a COPY has extended the table by, and that it has yet to fill */
#if PG_VERSION_NUM >= 160000
#define BulkInsertHasPages(bistate) \
	((bistate) != NULL && BlockNumberIsValid((bistate)->next_free))
#else
#define BulkInsertHasPages(bistate) false
#endif

/* the backend's number was an id up to 16 */
#if PG_VERSION_NUM >= 170000
#include "storage/procnumber.h"
#define MyTempBackend	ProcNumberForTempRelations()
#else
#include "storage/backendid.h"
#define MyTempBackend	BackendIdForTempRelations()
#endif

#if PG_VERSION_NUM < 170000
#define ResolveConflictWithSnapshot(horizon, iscat, loc) \
	CompatResolveConflict(horizon, iscat, loc)
#if PG_VERSION_NUM >= 160000
#define CompatResolveConflict(horizon, iscat, loc) \
	ResolveRecoveryConflictWithSnapshot(horizon, iscat, loc)
#else
#define CompatResolveConflict(horizon, iscat, loc) \
	ResolveRecoveryConflictWithSnapshot(horizon, loc)
#endif
#else
#define ResolveConflictWithSnapshot(horizon, iscat, loc) \
	ResolveRecoveryConflictWithSnapshot(horizon, iscat, loc)
#endif

/* the name that 16 gave it */
#if PG_VERSION_NUM < 160000
#define pgstat_get_local_beentry_by_index(i) pgstat_fetch_stat_local_beentry(i)
#endif

/* blocks given to smgrextend have to be aligned for direct I/O from 16 on */
#if PG_VERSION_NUM < 160000
typedef PGAlignedBlock PGIOAlignedBlock;
#endif

/* conditional row lock waits can log their failure from 18 on */
#if PG_VERSION_NUM >= 180000
#define TryLockTuple(rel, tid, mode, log) ConditionalLockTuple(rel, tid, mode, log)
#define TryXactLockTableWait(xid, log) ConditionalXactLockTableWait(xid, log)
#else
#define log_lock_failures	false
#define TryLockTuple(rel, tid, mode, log) ConditionalLockTuple(rel, tid, mode)
#define TryXactLockTableWait(xid, log) ConditionalXactLockTableWait(xid)
#endif

/* names that changed in 16 and 17, and what undo's files need of them */
#include "storage/smgr.h"
#if PG_VERSION_NUM >= 160000
#include "utils/relfilenumbermap.h"
#define ZeroExtend(reln, fork, blk, n) smgrzeroextend(reln, fork, blk, n, false)
#else
#include "utils/relfilenodemap.h"
#define GetNewRelFileNumber(spc, pg_class, persistence) \
	GetNewRelFileNode(spc, pg_class, persistence)
#define relation_set_new_filelocator relation_set_new_filenode
static inline void
ZeroExtend(SMgrRelation reln, ForkNumber fork, BlockNumber blk, int n)
{
	PGAlignedBlock zeroes = {0};

	for (int i = 0; i < n; i++)
		smgrextend(reln, fork, blk + i, zeroes.data, false);
}
#endif

#if PG_VERSION_NUM >= 170000
#define InvalidBackendId	INVALID_PROC_NUMBER
#else
#define TransamVariables	ShmemVariableCache
#endif

/* walsenders do not say before 16 whether they serve logical decoding */
#if PG_VERSION_NUM >= 160000
#define WalSndMayFeedStandby(sender) ((sender)->kind == REPLICATION_KIND_PHYSICAL)
#else
#define WalSndMayFeedStandby(sender) true
#endif

/* ExecutorRun lost its last argument in 18 */
#if PG_VERSION_NUM >= 180000
#define EXECUTOR_RUN_PARAMS QueryDesc *queryDesc, ScanDirection direction, uint64 count
#define EXECUTOR_RUN_ARGS	queryDesc, direction, count
#else
#define EXECUTOR_RUN_PARAMS QueryDesc *queryDesc, ScanDirection direction, uint64 count, bool execute_once
#define EXECUTOR_RUN_ARGS	queryDesc, direction, count, execute_once
#endif

/* tuplesort_getdatum grew a copy argument in 16; for by-value types */
#if PG_VERSION_NUM >= 160000
#define TuplesortGetDatum(sort, val, isnull) \
	tuplesort_getdatum(sort, true, false, val, isnull, NULL)
#else
#define TuplesortGetDatum(sort, val, isnull) \
	tuplesort_getdatum(sort, true, val, isnull, NULL)
#endif

/* index_beginscan and its like grew an argument for instrumentation in 18 */
#if PG_VERSION_NUM >= 180000
#define IndexBeginScanBitmap(index, snapshot, nkeys) \
	index_beginscan_bitmap(index, snapshot, NULL, nkeys)
#else
#define IndexBeginScanBitmap(index, snapshot, nkeys) \
	index_beginscan_bitmap(index, snapshot, nkeys)
#endif
#if PG_VERSION_NUM >= 180000
#define IndexBeginScan(table, index, snapshot, nkeys, norderbys) \
	index_beginscan(table, index, snapshot, NULL, nkeys, norderbys)
#else
#define IndexBeginScan(table, index, snapshot, nkeys, norderbys) \
	index_beginscan(table, index, snapshot, nkeys, norderbys)
#endif

/* what an update says of indexes: nothing to do is 0 */
#if PG_VERSION_NUM >= 160000
typedef TU_UpdateIndexes UpdateIndexesResult;
#else
typedef bool UpdateIndexesResult;
#endif

/* RelationIsLogicallyLogged needs it up to 15 */
#include "catalog/catalog.h"

/* decoded changes: names, and what a tuple is held in, changed in 16 to 18 */
#if PG_VERSION_NUM >= 160000
#define ChangeLocator(change)	((change)->data.tp.rlocator)
#else
#define ChangeLocator(change)	((change)->data.tp.relnode)
#endif
#if PG_VERSION_NUM >= 170000
#define DecodedTuple		HeapTuple
#define DecodedHeapTuple(t) (t)
#else
#define DecodedTuple		ReorderBufferTupleBuf *
#define DecodedHeapTuple(t) (&(t)->tuple)
#endif
#if PG_VERSION_NUM >= 180000
#define AllocDecodedTuple(rb, len)	ReorderBufferAllocTupleBuf(rb, len)
#define AllocDecodedChange(rb)	ReorderBufferAllocChange(rb)
#else
#define AllocDecodedTuple(rb, len)	ReorderBufferGetTupleBuf(rb, len)
#define AllocDecodedChange(rb)	ReorderBufferGetChange(rb)
#endif

/*
 * The horizon behind which nbtree uses a deleted page again: that of all databases up
 * to 15, that of the table from 16 on.
 */
#if PG_VERSION_NUM >= 160000
#define BtRecyclingHorizonOf(table)	(table)
#else
#define BtRecyclingHorizonOf(table)	((Relation) NULL)
#endif

/* nbtree's way down to a leaf: the table came in 16, the snapshot went in 17 */
#if PG_VERSION_NUM >= 170000
#define BtSearchLeaf(index, table, key, buffer) \
	_bt_search(index, table, key, buffer, BT_READ)
#elif PG_VERSION_NUM >= 160000
#define BtSearchLeaf(index, table, key, buffer) \
	_bt_search(index, table, key, buffer, BT_READ, NULL)
#else
#define BtSearchLeaf(index, table, key, buffer) \
	_bt_search(index, key, buffer, BT_READ, NULL)
#endif

/* how it looks for a page by the page's high key: differently from 17 on */
#if PG_VERSION_NUM >= 170000
#define BtSetPivotSearch(key) \
	((key)->nextkey = false, (key)->backward = true)
#else
#define BtSetPivotSearch(key)	((key)->pivotsearch = true)
#endif

#if PG_VERSION_NUM >= 160000
#define BtGetStackBuf(index, table, stack, child) \
	_bt_getstackbuf(index, table, stack, child)
#define BtDedupPass(index, buffer, table) \
	_bt_dedup_pass(index, buffer, NULL, 0, true)
#else
#define BtGetStackBuf(index, table, stack, child) \
	_bt_getstackbuf(index, stack, child)
#define BtDedupPass(index, buffer, table) \
	_bt_dedup_pass(index, buffer, table, NULL, 0, true)
#endif

/* the longest entry: the same for all pages from 18 on */
#if PG_VERSION_NUM >= 180000
#define BTMaxItemSizeOf(page)	BTMaxItemSize
#else
#define BTMaxItemSizeOf(page)	BTMaxItemSize(page)
#endif

/* the leftmost page of a level: the snapshot went in 17 */
#if PG_VERSION_NUM >= 170000
#define BtLeftmostOfLevel(index, level)	_bt_get_endpoint(index, level, false)
#else
#define BtLeftmostOfLevel(index, level)	_bt_get_endpoint(index, level, false, NULL)
#endif
#define BtLeftmostLeaf(index)	BtLeftmostOfLevel(index, 0)

/* nbtree's array keys (IN lists) look after themselves from 17 on */
#if PG_VERSION_NUM >= 170000
#define BtStartArrayKeys(scan)	true
#define BtNextArrayKeys(scan)	_bt_start_prim_scan(scan, ForwardScanDirection)
#else
#define BtStartArrayKeys(scan) \
	(((BTScanOpaque) (scan)->opaque)->numArrayKeys == 0 || \
	 (((BTScanOpaque) (scan)->opaque)->numArrayKeys > 0 && \
	  (_bt_start_array_keys(scan, ForwardScanDirection), true)))
#define BtNextArrayKeys(scan)	_bt_advance_array_keys(scan, ForwardScanDirection)
#endif

/* whether a scan lets go of index pages is found out at its start from 18 on */
#if PG_VERSION_NUM >= 180000
#define BtSetDropPin(scan) \
	(((BTScanOpaque) (scan)->opaque)->dropPin = \
	 !(scan)->xs_want_itup && IsMVCCSnapshot((scan)->xs_snapshot) && \
	 RelationNeedsWAL((scan)->indexRelation) && (scan)->heapRelation != NULL)
#else
#define BtSetDropPin(scan)	((void) 0)
#endif

/*
 * Up to 16 a scan with IN lists is one search after another, by the elements; from
 * 17 on it goes through the index once, in order.
 */
#if PG_VERSION_NUM >= 170000
#define BtPrimitiveScan(so)	((uint64) 0)
#define BtScanIsOrdered(so)	true
#else
#include "access/nbtree.h"

static inline uint64
BtPrimitiveScan(BTScanOpaque so)
{
	uint64		n = 0;

	for (int i = 0; i < so->numArrayKeys; i++)
		n = n * so->arrayKeys[i].num_elems + so->arrayKeys[i].cur_elem;
	return n;
}

#define BtScanIsOrdered(so)	((so)->numArrayKeys <= 0)
#endif

/* summarizing indexes are known from 16 on */
#if PG_VERSION_NUM >= 160000
#define IndexIsSummarizing(index)	((index)->rd_indam->amsummarizing)
#else
#define IndexIsSummarizing(index)	false
#endif

/* up to 16 the server asks only for indexes that say btree to be built in parallel */
#if PG_VERSION_NUM >= 170000
#define ParallelBuildWorkers(table, index, info)	((info)->ii_ParallelWorkers)
#else
#define ParallelBuildWorkers(table, index, info) \
	plan_create_index_workers(RelationGetRelid(table), RelationGetRelid(index))
#endif

/* up to 17 ON CONFLICT wants every unique index of the table to be btree */
#define UNIQUE_INDEX_OF_ANY_METHOD	(PG_VERSION_NUM >= 180000)

/*
 * A worker of logical replication looks for conflicts, from 18 on, when it has
 * inserted into unique indexes itself.
 */
#define WORKER_FINDS_CONFLICTS	(PG_VERSION_NUM >= 180000)

/* up to 17 the executor wants an index for row comparisons to say btree */
#define ROW_COMPARISON_ON_ANY_METHOD	(PG_VERSION_NUM >= 180000)

/* a plain REINDEX of one index; it was told the statement from 17 on */
#if PG_VERSION_NUM >= 170000
#define ReindexIndex(indexid, persistence) \
	reindex_index(NULL, indexid, false, persistence, &(ReindexParams) {0})
#else
#define ReindexIndex(indexid, persistence) \
	reindex_index(indexid, false, persistence, &(ReindexParams) {0})
#endif

/* may the user VACUUM the table?  With a warning if not.  17 brought MAINTAIN. */
#if PG_VERSION_NUM >= 170000
#define MayVacuum(relid, form, options) \
	vacuum_is_permitted_for_relation(relid, form, options)
#else
#define MayVacuum(relid, form, options) \
	vacuum_is_relation_owner(relid, form, options)
#endif

/* RETURNING has the old row as well from 18 on, and may lack one of the two */
#if PG_VERSION_NUM >= 180000
#define ECXT_OLDTUPLE(econtext)		((econtext)->ecxt_oldtuple)
#define EEO_FLAGS_OF_RETURNING		(EEO_FLAG_OLD_IS_NULL | EEO_FLAG_NEW_IS_NULL)
#else
#define ECXT_OLDTUPLE(econtext)		((TupleTableSlot *) NULL)
#define EEO_FLAGS_OF_RETURNING		0
#endif

/* ownership of a relation is asked in another way from 16 on */
#if PG_VERSION_NUM >= 160000
#define CheckRelationOwner(relid) \
	object_ownercheck(RelationRelationId, relid, GetUserId())
#else
#define CheckRelationOwner(relid)	pg_class_ownercheck(relid, GetUserId())
#endif

/* ... or the right to maintain it (17) */
#if PG_VERSION_NUM >= 170000
#define CheckRelationMaintainer(relid) \
	(CheckRelationOwner(relid) || \
	 pg_class_aclcheck(relid, GetUserId(), ACL_MAINTAIN) == ACLCHECK_OK)
#else
#define CheckRelationMaintainer(relid)	CheckRelationOwner(relid)
#endif

/* ... and of a database */
#if PG_VERSION_NUM >= 160000
#define DatabaseOwnedBy(dboid, roleid) \
	object_ownercheck(DatabaseRelationId, dboid, roleid)
#else
#define DatabaseOwnedBy(dboid, roleid)	pg_database_ownercheck(dboid, roleid)
#endif

/* 16 has one function for the owners of all kinds of objects */
#if PG_VERSION_NUM >= 160000
#define RelationOwnedBy(relid, roleid) \
	object_ownercheck(RelationRelationId, relid, roleid)
#define ExtensionOwnedBy(extension, roleid) \
	object_ownercheck(ExtensionRelationId, extension, roleid)
#else
#define RelationOwnedBy(relid, roleid)	pg_class_ownercheck(relid, roleid)
#define ExtensionOwnedBy(extension, roleid) \
	pg_extension_ownercheck(extension, roleid)
#endif

/*
 * Must a bitmap say of each entry that its row is to be rechecked?  From 17 on
 * it is left to the table what is read of a bitmap (scan/bitmap.c).
 */
#if PG_VERSION_NUM >= 170000
#define BITMAP_RECHECKS_ALL	false
#else
#define BITMAP_RECHECKS_ALL	true
#endif

/* up to 16 the search for a leaf of GIN takes a snapshot, too */
#if PG_VERSION_NUM >= 170000
#define GinFindLeafToChange(btree)	ginFindLeafPage(btree, false, false)
#define GinFindLeafToRead(btree)	ginFindLeafPage(btree, true, false)
#else
#define GinFindLeafToChange(btree)	ginFindLeafPage(btree, false, false, NULL)
#define GinFindLeafToRead(btree)	ginFindLeafPage(btree, true, false, NULL)
#endif

/* names of the statistics of tables */
#if PG_VERSION_NUM >= 160000
#define TableStatusCounts	counts
#define PendingCount(name)	name
#define TableDeadTuples		dead_tuples
#else
#define TableStatusCounts	t_counts
#define PendingCount(name)	t_##name
#define TableDeadTuples		n_dead_tuples
#endif

/* a scan that begins again does not count twice (18: in EXPLAIN, too) */
#if PG_VERSION_NUM >= 180000
#define ForgetIndexSearch(scan) \
	do { \
		if ((scan)->instrument) \
			(scan)->instrument->nsearches--; \
	} while (0)
#else
#define ForgetIndexSearch(scan) ((void) 0)
#endif

/* goes before the whole declaration */
#if PG_VERSION_NUM >= 180000
#define INPLACE_NORETURN	pg_noreturn
#else
#define INPLACE_NORETURN	pg_attribute_noreturn()
#endif

#endif							/* INPLACE_COMPAT_H */

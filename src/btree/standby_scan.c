/*-------------------------------------------------------------------------
 *
 * standby_scan.c
 *	  Scans of inplace_btree indexes on a standby, where replay merges pages.
 *
 * A merge moves the entries of a page, or the last ones, to its right sibling (merge.c).  On a
 * primary it waits until nobody scans the index (in_flight.c); replay does not.  So
 * the scans themselves find out what replay has merged.
 *
 * To the right
 *	  A scan may meet entries a second time.  All entries of an index differ in key or
 *	  TID, and come in that order.  So a scan that has left a page passes over entries
 *	  that are not behind the last one that it was on.  A bitmap scan may return a TID
 *	  twice, which does no harm.
 *
 * To the left
 *	  A scan may miss entries.  Merges have sequence numbers.  Replay records, for both
 *	  pages, the number of the merge while it has them locked.  A scan notes the number of
 *	  merges before it reads a page, and checks when it has read the next one:
 *	  - If that is the left neighbour of the page before, entries that have moved away
 *		from between the two are on the page before, or have passed it.  So the scan
 *		checks whether the page before has been merged since.
 *	  - If it is another page, as when a page has been deleted, any merge in the index
 *		since then counts.
 *	  If there was a merge, the scan begins again at the right end.  It passes over
 *	  entries that do not come, to the left, after the one that it was on.
 *
 * Index-only scans
 *	  They return what they have copied of a page if the visibility map says so.  VACUUM
 *	  must not remove those entries, wherever they are, as long as the scan has the page
 *	  pinned.  So replay locks the page from which entries go as replay of nbtree's
 *	  deletions does: when nobody has it pinned.  After max_standby_streaming_delay the
 *	  backends that have it pinned are in conflict.
 *
 * Parallel scans
 *	  Processes take pages in turns, and do not know what the others have read.  Before
 *	  replay merges pages of the index it waits for the parallel scans that have begun, as
 *	  long as max_standby_streaming_delay or max_standby_archive_delay lets it.  Scans that
 *	  are about to begin wait for replay.  When that time is over replay goes on.  A scan
 *	  that finds a merge in the index since it began is then cancelled, as queries
 *	  are in other conflicts.
 *
 * A scan to the left that would have to begin again is cancelled, too, if it
 * - has a marked place, as the inner side of a merge join;
 * - has found something by one of several searches (an IN list, up to 16);
 * - has begun again many times.
 *
 * The numbers are kept by hash, and a later one replaces an earlier one.  So two pages or
 * indexes may share one.  Then a scan may do these things needlessly, but it never
 * fails to do them.
 *
 * Locks: only replay's of the page from which entries go, which it takes first.
 * Replay records the numbers with both pages locked.  A scan reads the number of
 * merges, then a page, then the numbers, with barriers between; a page's lock is one.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/nbtree.h"
#include "access/xlogrecovery.h"
#include "access/xlogutils.h"
#include "btree/in_flight.h"
#include "btree/standby_scan.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/bufmgr.h"
#include "storage/procsignal.h"
#include "storage/shmem.h"
#include "storage/standby.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define MERGED_PAGES	4096
#define MERGED_INDEXES	1024

/* how often a scan to the left begins again */
#define TRIES			20

/* how long replay sleeps while it waits for a scan, at first and at most */
#define FIRST_WAIT_USEC	1000
#define MAX_WAIT_USEC	50000

/* how long it holds up parallel scans at a time, and then lets them begin */
#define HOLD_UP_USEC	1000000
#define LET_BEGIN_USEC	10000

typedef struct StandbyScanShared
{
	pg_atomic_uint64 merges;	/* replayed so far */
	pg_atomic_uint64 pages[MERGED_PAGES];	/* the last one of the page */
	pg_atomic_uint64 indexes[MERGED_INDEXES];	/* ... of the index */
} StandbyScanShared;

static StandbyScanShared *shared = NULL;

Size
StandbyScanShmemSize(void)
{
	return sizeof(StandbyScanShared);
}

void
StandbyScanShmemInit(void)
{
	bool		found;

	shared = ShmemInitStruct("inplace merged index pages", StandbyScanShmemSize(),
							 &found);
	if (found)
		return;
	pg_atomic_init_u64(&shared->merges, 0);
	for (int i = 0; i < MERGED_PAGES; i++)
		pg_atomic_init_u64(&shared->pages[i], 0);
	for (int i = 0; i < MERGED_INDEXES; i++)
		pg_atomic_init_u64(&shared->indexes[i], 0);
}

/* ---------------- notes ---------------- */

static inline pg_atomic_uint64 *
merge_of_page(RelFileLocator index, BlockNumber block)
{
	return &shared->pages[murmurhash32(in_flight_hash(index) ^ block) % MERGED_PAGES];
}

static inline pg_atomic_uint64 *
merge_of_index(RelFileLocator index)
{
	return &shared->indexes[in_flight_hash(index) % MERGED_INDEXES];
}

static inline bool
page_merged_since(RelFileLocator index, BlockNumber block, uint64 count)
{
	return pg_atomic_read_u64(merge_of_page(index, block)) > count;
}

static inline bool
index_merged_since(RelFileLocator index, uint64 count)
{
	return pg_atomic_read_u64(merge_of_index(index)) > count;
}

uint64
standby_merges(void)
{
	return pg_atomic_read_u64(&shared->merges);
}

/* ---------------- replay ---------------- */

/* has replay waited for as long as it may?  (-1 is no limit) */
static bool
waited_enough(void)
{
	TimestampTz received;
	bool		streamed;
	int			delay;

	GetXLogReceiptTime(&received, &streamed);
	delay = streamed ? max_standby_streaming_delay : max_standby_archive_delay;
	return delay >= 0 &&
		GetCurrentTimestamp() >= TimestampTzPlusMilliseconds(received, delay);
}

static void
sleep_for_scans(long usec)
{
	pgstat_report_wait_start(WAIT_EVENT_RECOVERY_CONFLICT_SNAPSHOT);
	pg_usleep(usec);
	pgstat_report_wait_end();
}

/*
 * Parallel scans of the index are held up.  Have those ended that had begun before?  If
 * not, waits for that while it may, but not for too long.
 */
static bool
parallel_scans_end(RelFileLocator index)
{
	long		usec = FIRST_WAIT_USEC;

	for (long waited = 0; in_flight_parallel(index); waited += usec)
	{
		CHECK_FOR_INTERRUPTS();
		if (waited_enough())
			return true;
		if (waited >= HOLD_UP_USEC)
			return false;
		sleep_for_scans(usec);
		usec = Min(usec * 2, MAX_WAIT_USEC);
	}
	return true;
}

/*
 * Replay is about to move entries away from the page.  Locks it when nobody has it pinned, and
 * when nobody leads a parallel scan of the index; until standby_note_merge() none
 * begins.  InvalidBuffer if there can be no scan: then nothing has been done.
 *
 * A backend that is held up may have the page pinned by another scan, or have something
 * that the leader of a parallel scan waits for.  So none is held up while replay waits for
 * the pin, and for a second at a time only while it waits for leaders.
 */
Buffer
standby_lock_merged(RelFileLocator index, BlockNumber block)
{
	Buffer		buffer;

	if (!InHotStandby || !HotStandbyActive())
		return InvalidBuffer;
	buffer = XLogReadBufferExtended(index, MAIN_FORKNUM, block, RBM_NORMAL_NO_LOG,
									InvalidBuffer);
	if (!BufferIsValid(buffer))
		return InvalidBuffer;
	for (;;)
	{
		in_flight_hold_parallel(index);
		if (parallel_scans_end(index) && ConditionalLockBufferForCleanup(buffer))
			return buffer;
		in_flight_let_parallel(index);
		sleep_for_scans(LET_BEGIN_USEC);

		LockBufferForCleanup(buffer);
		in_flight_hold_parallel(index);
		if (!in_flight_parallel(index) || waited_enough())
			return buffer;
		in_flight_let_parallel(index);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}
}

/* with both pages locked */
void
standby_note_merge(RelFileLocator index, BlockNumber from, BlockNumber to)
{
	uint64		merge = pg_atomic_add_fetch_u64(&shared->merges, 1);

	pg_atomic_write_u64(merge_of_page(index, from), merge);
	pg_atomic_write_u64(merge_of_page(index, to), merge);
	pg_atomic_write_u64(merge_of_index(index), merge);
	in_flight_let_parallel(index);
}

/* ---------------- the place of a scan ---------------- */

static inline bool
leaves_page(BTScanOpaque so, ScanDirection dir)
{
	return !BTScanPosIsValid(so->currPos) ||
		(ScanDirectionIsForward(dir) ? so->currPos.itemIndex >= so->currPos.lastItem :
		 so->currPos.itemIndex <= so->currPos.firstItem);
}

static inline BTScanPosItem *
current_item(BTScanOpaque so)
{
	return &so->currPos.items[so->currPos.itemIndex];
}

/* (a page's posting list is one item for each TID, of the same entry) */
static inline IndexTuple
current_entry(BTScanOpaque so)
{
	return (IndexTuple) (so->currTuples + current_item(so)->tupleOffset);
}

/* a page that is read to the left has the TIDs of a posting list to the right */
static ItemPointerData
outermost_tid(BTScanOpaque so, ScanDirection dir)
{
	BTScanPosItem *item = current_item(so);
	ItemPointerData tid = item->heapTid;

	for (int step = -1; step <= 1; step += 2)
		for (BTScanPosItem *other = item + step;
			 other >= &so->currPos.items[so->currPos.firstItem] &&
			 other <= &so->currPos.items[so->currPos.lastItem] &&
			 other->tupleOffset == item->tupleOffset; other += step)
			if (ItemPointerCompare(&other->heapTid, &tid) * (int) dir > 0)
				tid = other->heapTid;
	return tid;
}

static void
note_place(StandbyScan *ss, IndexScanDesc scan, ScanDirection dir)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;
	IndexTuple	itup = current_entry(so);

	if (ss->last == NULL)
		ss->last = MemoryContextAlloc(GetMemoryChunkContext(so), BLCKSZ);
	memcpy(ss->last, itup, IndexTupleSize(itup));
	ss->last_tid = outermost_tid(so, dir);
	ss->last_count = ss->count;
	ss->last_primitive = BtPrimitiveScan(so);
}

static int
compare_attribute(Relation index, int i, IndexTuple a, IndexTuple b)
{
	TupleDesc	desc = RelationGetDescr(index);
	int16		option = index->rd_indoption[i];
	bool		a_null;
	bool		b_null;
	Datum		a_value = index_getattr(a, i + 1, desc, &a_null);
	Datum		b_value = index_getattr(b, i + 1, desc, &b_null);
	int			result;

	if (a_null || b_null)
	{
		if (a_null && b_null)
			return 0;
		return a_null == ((option & INDOPTION_NULLS_FIRST) != 0) ? -1 : 1;
	}
	result = DatumGetInt32(FunctionCall2Coll(index_getprocinfo(index, i + 1, BTORDER_PROC),
											 index->rd_indcollation[i],
											 a_value, b_value));
	if (option & INDOPTION_DESC)
		INVERT_COMPARE_RESULT(result);
	return result;
}

/* the entry that the scan is on, with the one that it was on, by key and TID */
static int
compare_with_last(StandbyScan *ss, IndexScanDesc scan)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;
	Relation	index = scan->indexRelation;
	IndexTuple	itup = current_entry(so);

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		int			result = compare_attribute(index, i, itup, ss->last);

		if (result != 0)
			return result;
	}
	return ItemPointerCompare(&current_item(so)->heapTid, &ss->last_tid);
}

/* ---------------- scans ---------------- */

void
standby_scan_start(StandbyScan *ss)
{
	ss->block = InvalidBlockNumber;
	ss->anew = false;
}

static void
cancel_scan(Relation index)
{
	pgstat_report_recovery_conflict(PROCSIG_RECOVERY_CONFLICT_SNAPSHOT);
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("canceling statement due to conflict with recovery"),
			 errdetail("User query was reading pages of index \"%s\" that have been merged.",
					   RelationGetRelationName(index))));
}

/*
 * The next entry.  "missed": there may have been others, had the step been to the left.
 */
static bool
take_step(StandbyScan *ss, IndexScanDesc scan, ScanDirection dir, bool *missed)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;
	RelFileLocator index = RelLocator(scan->indexRelation);
	BlockNumber left = ss->block;
	uint64		left_count = ss->count;
	bool		leaves = leaves_page(so, dir);
	uint64		count;
	bool		found;
	bool		adjacent;

	*missed = false;
	if (!leaves)
		return btgettuple(scan, dir);
	count = standby_merges();
	pg_memory_barrier();
	found = btgettuple(scan, dir);
	pg_memory_barrier();
	ss->block = BTScanPosIsValid(so->currPos) ? so->currPos.currPage : InvalidBlockNumber;
	ss->count = count;

	/*
	 * Where the new page is the one before, what has moved away from between
	 * them is on the old one, or has passed it.  A search by several keys may
	 * have been elsewhere meanwhile.
	 */
	adjacent = ss->block != InvalidBlockNumber && left != InvalidBlockNumber &&
		so->currPos.nextPage == left;
	if (left != InvalidBlockNumber)
		*missed = adjacent ? page_merged_since(index, left, left_count) :
			index_merged_since(index, left_count);
	if (!adjacent || so->numArrayKeys != 0)
		*missed |= index_merged_since(index, count);
	return found;
}

/* is the entry one that the scan has been on before? */
static bool
is_repeated(StandbyScan *ss, IndexScanDesc scan)
{
	return index_merged_since(RelLocator(scan->indexRelation), ss->last_count) &&
		BtPrimitiveScan((BTScanOpaque) scan->opaque) == ss->last_primitive &&
		compare_with_last(ss, scan) <= 0;
}

static bool
can_begin_anew(BTScanOpaque so, bool placed)
{
	return so->markItemIndex < 0 && !BTScanPosIsValid(so->markPos) &&
		(!placed || BtScanIsOrdered(so));
}

/*
 * To the left, from the very right, to where it was if it was anywhere.
 */
static bool
begin_anew(StandbyScan *ss, IndexScanDesc scan, ScanDirection dir, bool placed)
{
	for (int i = 0; i < TRIES && can_begin_anew((BTScanOpaque) scan->opaque, placed); i++)
	{
		bool		found;
		bool		missed;

		btrescan(scan, NULL, 0, NULL, 0);
		standby_scan_start(ss);
		do
		{
			CHECK_FOR_INTERRUPTS();
			found = take_step(ss, scan, dir, &missed);
		} while (found && !missed && placed && compare_with_last(ss, scan) >= 0);
		if (!missed)
		{
			ss->anew = placed;
			return found;
		}
	}
	cancel_scan(scan->indexRelation);
	return false;				/* keep compiler quiet */
}

static bool
next_entry(StandbyScan *ss, IndexScanDesc scan, ScanDirection dir)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;
	bool		leaves = leaves_page(so, dir);
	bool		placed = leaves && BTScanPosIsValid(so->currPos);
	bool		found;
	bool		missed;

	if (leaves)
		ss->anew = false;
	if (placed && scan->parallel_scan == NULL)
		note_place(ss, scan, dir);
	found = take_step(ss, scan, dir, &missed);

	if (scan->parallel_scan)
	{
		RelFileLocator index = RelLocator(scan->indexRelation);

		if (leaves && index_merged_since(index, in_flight_parallel_since(index)))
			cancel_scan(scan->indexRelation);
	}
	else if (ScanDirectionIsForward(dir))
	{
		while (found && placed && is_repeated(ss, scan))
			found = take_step(ss, scan, dir, &missed);
	}
	else if (missed)
		found = begin_anew(ss, scan, dir, placed);
	return found;
}

/* instead of btgettuple() */
bool
standby_scan_next(StandbyScan *ss, IndexScanDesc scan, ScanDirection dir)
{
	bool		found;

	/* (a posting list may have TIDs on either side of the place) */
	do
		found = next_entry(ss, scan, dir);
	while (found && ss->anew && ScanDirectionIsBackward(dir) &&
		   compare_with_last(ss, scan) >= 0);

	/* a cursor that goes back beyond the place will read those again */
	if (found && ss->anew && ScanDirectionIsForward(dir) &&
		compare_with_last(ss, scan) >= 0)
		ss->anew = false;
	return found;
}

/* the scan will come back to the page that it is on */
void
standby_scan_marked(StandbyScan *ss)
{
	ss->mark_count = ss->count;
}

void
standby_scan_restored(StandbyScan *ss, IndexScanDesc scan)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;

	ss->block = BTScanPosIsValid(so->currPos) ? so->currPos.currPage :
		InvalidBlockNumber;
	ss->count = ss->mark_count;
	ss->anew = false;
}

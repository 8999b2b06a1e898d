/*-------------------------------------------------------------------------
 *
 * in_flight.c
 *	  Scans of inplace_btree indexes, for those who merge pages (merge.c).
 *
 * A scan reads a page, lets go of it, and goes on to the sibling.  If the
 * entries of a page move to its right sibling between the two, a scan to the right
 * meets them twice, and one to the left not at all.  nbtree never moves
 * entries to another page but in a split, of which scans know.  So nothing may be
 * merged between two steps of a scan.
 *
 * On a primary
 *	  Each process says which indexes it scans, from the beginning of a scan to its
 *	  end, in a slot of its own: a bit for each, of 64, which indexes with the same
 *	  bit share.  Who merges locks both pages exclusively and then looks at the
 *	  slots.  A scan that was there before is seen.  One that comes later
 *	  reads neither page before they are unlocked.  Finding a bit that is another
 *	  index's, or left by a scan that an error has ended, puts the merge
 *	  off, nothing else; all bits go with the transaction.
 *
 *	  A parallel scan passes its position from process to process, but the leader
 *	  begins it before and ends it after all workers.
 *
 * On a standby
 *	  Replay does not wait for scans.  It notes for both pages, while it has
 *	  them locked, the how manieth merge it was; a scan notes the number of merges
 *	  before it reads a page, and looks after the next step whether there was a later
 *	  merge of that page, of the page that it went to by the link it had read (to
 *	  which entries may have come from pages split off since), or of any in
 *	  the index while it took the step, which may go over several pages.  If so the
 *	  query is cancelled, as others that are in conflict with recovery.
 *	  - Processes of a parallel scan take pages in turns, and do not know what the
 *		others noted.  For them a merge anywhere in the index since the leader began a
 *		parallel scan is one too many; that number is in the leader's slot.
 *	  - A bitmap scan goes to the right alone, and may meet entries twice.
 *	  Notes are kept by hash, the later one stays, so two pages that share one may
 *	  cancel a query for nothing, but never fail to.
 *
 * Memory order: a scan sets its bit, then reads a page; a barrier is between the
 * two.  Who merges takes the locks, which are barriers, then reads the slots.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/nbtree.h"
#include "access/xact.h"
#include "common/hashfn.h"
#include "index/in_flight.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/proc.h"
#include "storage/procsignal.h"
#include "storage/shmem.h"

#define INDEX_BITS		64
#define MERGED_PAGES	4096
#define MERGED_INDEXES	1024

typedef union ScanSlot
{
	struct
	{
		pg_atomic_uint64 indexes;	/* a bit each */
		pg_atomic_uint64 parallel_since;	/* merges before the first of the
											 * parallel scans that it leads */
	}			slot;
	char		pad[PG_CACHE_LINE_SIZE];
} ScanSlot;

typedef struct InFlightShared
{
	pg_atomic_uint64 merges;	/* replayed so far */
	pg_atomic_uint64 pages[MERGED_PAGES];	/* the last one of the page */
	pg_atomic_uint64 indexes[MERGED_INDEXES];	/* ... of the index */
	ScanSlot	slots[FLEXIBLE_ARRAY_MEMBER];
} InFlightShared;

static InFlightShared *in_flight = NULL;

/* scans of this process, by bit */
static uint32 nscans[INDEX_BITS];
static bool any_scan = false;

/* parallel scans that it leads, those that are about to begin included */
static int	nparallel = 0;

Size
InFlightShmemSize(void)
{
	return add_size(offsetof(InFlightShared, slots) + PG_CACHE_LINE_SIZE,
					mul_size(MaxBackends, sizeof(ScanSlot)));
}

void
InFlightShmemInit(void)
{
	bool		found;

	in_flight = ShmemInitStruct("inplace index scans", InFlightShmemSize(), &found);
	if (found)
		return;
	pg_atomic_init_u64(&in_flight->merges, 0);
	for (int i = 0; i < MERGED_PAGES; i++)
		pg_atomic_init_u64(&in_flight->pages[i], 0);
	for (int i = 0; i < MERGED_INDEXES; i++)
		pg_atomic_init_u64(&in_flight->indexes[i], 0);
	for (int i = 0; i < MaxBackends; i++)
	{
		pg_atomic_init_u64(&in_flight->slots[i].slot.indexes, 0);
		pg_atomic_init_u64(&in_flight->slots[i].slot.parallel_since, 0);
	}
}

/* ---------------- scans ---------------- */

static inline uint32
index_hash(RelFileLocator index)
{
	return murmurhash32(LocatorRel(index) ^ murmurhash32(LocatorDb(index)));
}

static inline int
index_bit(RelFileLocator index)
{
	return index_hash(index) % INDEX_BITS;
}

static inline ScanSlot *
my_slot(void)
{
	return &in_flight->slots[MyProc - ProcGlobal->allProcs];
}

/* the end of a transaction is the end of its scans, however they ended */
static void
forget_scans(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
		case XACT_EVENT_PREPARE:
			break;
		default:
			return;
	}
	if (!any_scan)
		return;
	memset(nscans, 0, sizeof(nscans));
	pg_atomic_write_u64(&my_slot()->slot.indexes, 0);
	any_scan = false;
	nparallel = 0;
}

static void
first_scan(void)
{
	static bool registered = false;

	if (!registered)
		RegisterXactCallback(forget_scans, NULL);
	registered = true;
	any_scan = true;
}

static inline void
set_bit(ScanSlot *s, int bit)
{
	pg_atomic_write_u64(&s->slot.indexes,
						pg_atomic_read_u64(&s->slot.indexes) | UINT64CONST(1) << bit);
	pg_memory_barrier();
}

static inline void
clear_bit(ScanSlot *s, int bit)
{
	pg_atomic_write_u64(&s->slot.indexes,
						pg_atomic_read_u64(&s->slot.indexes) & ~(UINT64CONST(1) << bit));
}

void
in_flight_begin(Relation index)
{
	int			bit = index_bit(RelLocator(index));

	if (!any_scan)
		first_scan();
	if (nscans[bit]++ == 0)
		set_bit(my_slot(), bit);
}

void
in_flight_end(Relation index)
{
	int			bit = index_bit(RelLocator(index));

	/* (the transaction it belonged to may have ended before) */
	if (nscans[bit] == 0 || --nscans[bit] > 0)
		return;
	clear_bit(my_slot(), bit);
}

/* this process leads a parallel scan, which nobody has begun to read yet */
void
in_flight_begin_parallel(void)
{
	if (!any_scan)
		first_scan();
	if (nparallel++ > 0)
		return;
	pg_atomic_write_u64(&my_slot()->slot.parallel_since,
						pg_atomic_read_u64(&in_flight->merges));
	pg_memory_barrier();
}

void
in_flight_end_parallel(void)
{
	if (nparallel > 0)
		nparallel--;
}

/* is the index, or one that shares its bit, being scanned by anybody? */
bool
in_flight_any(RelFileLocator index)
{
	uint64		bit = UINT64CONST(1) << index_bit(index);

	pg_memory_barrier();
	for (int i = 0; i < MaxBackends; i++)
		if ((pg_atomic_read_u64(&in_flight->slots[i].slot.indexes) & bit) != 0)
			return true;
	return false;
}

/* ---------------- standbys ---------------- */

static inline pg_atomic_uint64 *
merge_of_page(RelFileLocator index, BlockNumber block)
{
	return &in_flight->pages[murmurhash32(index_hash(index) ^ block) % MERGED_PAGES];
}

static inline pg_atomic_uint64 *
merge_of_index(RelFileLocator index)
{
	return &in_flight->indexes[index_hash(index) % MERGED_INDEXES];
}

/* by replay alone, with both pages locked */
void
in_flight_note_merge(RelFileLocator index, BlockNumber from, BlockNumber to)
{
	uint64		merge = pg_atomic_add_fetch_u64(&in_flight->merges, 1);

	pg_atomic_write_u64(merge_of_page(index, from), merge);
	pg_atomic_write_u64(merge_of_page(index, to), merge);
	pg_atomic_write_u64(merge_of_index(index), merge);
}

void
standby_scan_start(StandbyScan *ss)
{
	ss->block = InvalidBlockNumber;
}

/* before a call of nbtree that may read pages */
void
standby_scan_step(StandbyScan *ss, IndexScanDesc scan)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;

	ss->next = BTScanPosIsValid(so->currPos) ? so->currPos.nextPage :
		InvalidBlockNumber;
	ss->next_count = pg_atomic_read_u64(&in_flight->merges);
	pg_memory_barrier();
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

static bool
merged_since(RelFileLocator index, BlockNumber block, uint64 count)
{
	return block != InvalidBlockNumber &&
		pg_atomic_read_u64(merge_of_page(index, block)) > count;
}

/* the number of merges before the parallel scans of this process's leader */
static uint64
parallel_since(void)
{
	PGPROC	   *leader = MyProc->lockGroupLeader ? MyProc->lockGroupLeader : MyProc;

	return pg_atomic_read_u64(&in_flight->slots[leader - ProcGlobal->allProcs].slot.parallel_since);
}

/* ... and after it */
void
standby_scan_stepped(StandbyScan *ss, IndexScanDesc scan)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;
	RelFileLocator index = RelLocator(scan->indexRelation);
	BlockNumber block = BTScanPosIsValid(so->currPos) ? so->currPos.currPage :
		InvalidBlockNumber;
	uint64		index_since = ss->next_count;

	if (block != InvalidBlockNumber && block == ss->block)
		return;
	pg_memory_barrier();
	if (scan->parallel_scan)
		index_since = Min(index_since, parallel_since());
	if (pg_atomic_read_u64(merge_of_index(index)) > index_since ||
		(ss->block != InvalidBlockNumber &&
		 (merged_since(index, ss->block, ss->count) ||
		  merged_since(index, ss->next, ss->count))))
		cancel_scan(scan->indexRelation);
	ss->block = block;
	ss->count = ss->next_count;
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
}

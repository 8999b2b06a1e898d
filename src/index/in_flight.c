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
 *	  before it reads a page, and looks after the next step whether the page was
 *	  part of a later merge, or the index was while it took the step (which may go
 *	  over several pages).  If so the query is cancelled, as others that are in
 *	  conflict with recovery.  Notes are kept by hash, the later one stays, so
 *	  two pages that share one may cancel a query for nothing, but never fail to.
 *	  Processes of a parallel scan cannot tell each other what they noted.  So
 *	  while there is one of the index replay waits for it, and cancels it, like
 *	  any query in its way, after max_standby_*_delay (wal/log_merge.c).  A process
 *	  that has the index's bit and leads a parallel scan counts as one.  No other
 *	  begins while a merge is being replayed.
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
#include "port/atomics.h"
#include "storage/proc.h"
#include "storage/shmem.h"

#define INDEX_BITS		64
#define MERGED_PAGES	4096
#define MERGED_INDEXES	256

typedef union ScanSlot
{
	struct
	{
		pg_atomic_uint64 indexes;	/* a bit each */
		pg_atomic_uint32 parallel;	/* leads a parallel scan of some index */
	}			slot;
	char		pad[PG_CACHE_LINE_SIZE];
} ScanSlot;

typedef struct InFlightShared
{
	pg_atomic_uint32 replaying;	/* a merge, now */
	pg_atomic_uint64 merges;	/* replayed so far */
	pg_atomic_uint64 pages[MERGED_PAGES];	/* the last one of the page */
	pg_atomic_uint64 indexes[MERGED_INDEXES];	/* ... of the index */
	ScanSlot	slots[FLEXIBLE_ARRAY_MEMBER];
} InFlightShared;

static InFlightShared *in_flight = NULL;

/* scans of this process, by bit */
static uint32 nscans[INDEX_BITS];
static bool any_scan = false;
static bool parallel_comes = false; /* the next one is parallel */

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
	pg_atomic_init_u32(&in_flight->replaying, 0);
	pg_atomic_init_u64(&in_flight->merges, 0);
	for (int i = 0; i < MERGED_PAGES; i++)
		pg_atomic_init_u64(&in_flight->pages[i], 0);
	for (int i = 0; i < MERGED_INDEXES; i++)
		pg_atomic_init_u64(&in_flight->indexes[i], 0);
	for (int i = 0; i < MaxBackends; i++)
	{
		pg_atomic_init_u64(&in_flight->slots[i].slot.indexes, 0);
		pg_atomic_init_u32(&in_flight->slots[i].slot.parallel, 0);
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
	pg_atomic_write_u32(&my_slot()->slot.parallel, 0);
	any_scan = false;
	parallel_comes = false;
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

/*
 * As leader of a parallel scan, to the end of the transaction.  Replay, if it has
 * seen us, waits for us; if it has not, we wait for it.
 */
static void
begin_parallel(ScanSlot *s, int bit)
{
	bool		leads = pg_atomic_read_u32(&s->slot.parallel) != 0;
	bool		seen = leads && nscans[bit] > 0;

	for (;;)
	{
		pg_atomic_write_u32(&s->slot.parallel, 1);
		set_bit(s, bit);
		if (seen || pg_atomic_read_u32(&in_flight->replaying) == 0)
			break;
		pg_atomic_write_u32(&s->slot.parallel, leads);
		if (nscans[bit] == 0)
			clear_bit(s, bit);
		CHECK_FOR_INTERRUPTS();
		pg_usleep(1000);
	}
}

void
in_flight_begin(Relation index)
{
	int			bit = index_bit(RelLocator(index));

	if (!any_scan)
		first_scan();
	if (unlikely(parallel_comes))
	{
		parallel_comes = false;
		begin_parallel(my_slot(), bit);
	}
	else if (nscans[bit] == 0)
		set_bit(my_slot(), bit);
	nscans[bit]++;
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

/* the scan that this process begins next is a parallel one, which it leads */
void
in_flight_parallel(void)
{
	if (!any_scan)
		first_scan();
	parallel_comes = true;
}

static bool
any_slot(RelFileLocator index, bool parallel)
{
	uint64		bit = UINT64CONST(1) << index_bit(index);

	pg_memory_barrier();
	for (int i = 0; i < MaxBackends; i++)
	{
		ScanSlot   *s = &in_flight->slots[i];

		if ((pg_atomic_read_u64(&s->slot.indexes) & bit) != 0 &&
			(!parallel || pg_atomic_read_u32(&s->slot.parallel) != 0))
			return true;
	}
	return false;
}

bool
in_flight_any(RelFileLocator index)
{
	return any_slot(index, false);
}

bool
in_flight_any_parallel(RelFileLocator index)
{
	return any_slot(index, true);
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

/* replay begins a merge, or is done with it */
void
in_flight_replaying(bool replaying)
{
	pg_atomic_write_u32(&in_flight->replaying, replaying);
	pg_memory_barrier();
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
	ss->start_count = pg_atomic_read_u64(&in_flight->merges);
	pg_memory_barrier();
}

/* the scan is back on a page that it has read at some time before */
void
standby_scan_restored(StandbyScan *ss, IndexScanDesc scan)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;

	ss->block = BTScanPosIsValid(so->currPos) ? so->currPos.currPage :
		InvalidBlockNumber;
	ss->count = ss->start_count;
}

/* before a call of nbtree that may read pages */
void
standby_scan_step(StandbyScan *ss)
{
	ss->next_count = pg_atomic_read_u64(&in_flight->merges);
	pg_memory_barrier();
}

/* ... and after it */
void
standby_scan_stepped(StandbyScan *ss, IndexScanDesc scan)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;
	RelFileLocator index = RelLocator(scan->indexRelation);

	if (BTScanPosIsValid(so->currPos) && so->currPos.currPage == ss->block)
		return;
	pg_memory_barrier();
	if ((ss->block != InvalidBlockNumber &&
		 pg_atomic_read_u64(merge_of_page(index, ss->block)) > ss->count) ||
		pg_atomic_read_u64(merge_of_index(index)) > ss->next_count)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("canceling statement due to conflict with recovery"),
				 errdetail("User query was reading pages of index \"%s\" that have been merged.",
						   RelationGetRelationName(scan->indexRelation))));
	ss->block = BTScanPosIsValid(so->currPos) ? so->currPos.currPage :
		InvalidBlockNumber;
	ss->count = ss->next_count;
}

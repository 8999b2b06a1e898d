/*-------------------------------------------------------------------------
 *
 * in_flight.c
 *	  Which inplace_btree indexes are being scanned, for merges of pages (merge.c)
 *	  and deleted pages (recycle.c).
 *
 * A scan reads a page, lets go of it, and goes on to the sibling.  If the
 * entries of a page move to its right sibling between the two, a scan to the right
 * meets them twice, and one to the left not at all.  nbtree moves entries to
 * another page in splits only, and its scans allow for splits.  So nothing may be
 * merged between two steps of a scan.
 *
 * On a primary
 *	  Each backend says which indexes it scans, from the beginning of a scan to its
 *	  end, in a slot of its own.  The slot has 64 bits, and an index has one of them
 *	  by hash, so indexes may share a bit.  A merge locks both pages exclusively and
 *	  then looks at the slots.  It sees a scan that was there before.  A scan that
 *	  begins later reads neither page before they are unlocked.  A bit may be set for
 *	  another index, or be left by a scan that an error has ended.  That only puts
 *	  the merge off.  All bits are cleared at the end of the transaction.
 *
 *	  A parallel scan passes its position from process to process, but the leader
 *	  begins it before and ends it after all workers.
 *
 * On a standby
 *	  Replay waits for parallel scans, and for scans that have the page pinned from
 *	  which entries go.  It notes what it has merged: standby_scan.c.
 *
 * Memory order: a scan sets its bit, then reads a page; a barrier is between the
 * two.  A merge takes the locks, which are barriers, then reads the slots.
 * The leader of a parallel scan says that it leads one, then looks whether it is held
 * up.  Replay holds such scans up, then looks whether any backend leads one.
 *
 * No backend has a page locked while it waits.  A leader that waits may have pages
 * pinned, and locks that others wait for.  So replay holds it up for a second at most,
 * and not while replay waits for a pin.  A backend that leads a scan of the index
 * already does not wait.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/xact.h"
#include "btree/in_flight.h"
#include "btree/standby_scan.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "process_exit.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "xact_end.h"

#define INDEX_BITS		64

typedef union ScanSlot
{
	struct
	{
		pg_atomic_uint64 indexes;	/* a bit each */
		/* by bit: */
		pg_atomic_uint64 parallel_since[INDEX_BITS];	/* merges that a standby
														 * had replayed before
														 * the first of the
														 * parallel scans that
														 * it leads */
		pg_atomic_uint32 parallel[INDEX_BITS];	/* odd while it leads any */
	}			slot;
	char		pad[TYPEALIGN(PG_CACHE_LINE_SIZE, (INDEX_BITS + 1) * sizeof(uint64) +
							  INDEX_BITS * sizeof(uint32))];
} ScanSlot;

static ScanSlot *slots = NULL;

/* bits of indexes of which no parallel scan is to begin just now */
static pg_atomic_uint64 *held_up = NULL;

/* how long a held-up backend sleeps before it looks again */
#define HELD_UP_USEC	1000

/* how often, and after how long each time, in_flight_drain looks again */
#define DRAIN_TRIES		400
#define DRAIN_USEC		500

/* scans of this process, by bit */
static uint32 nscans[INDEX_BITS];
static bool any_scan = false;

/* parallel scans that this process leads */
static uint32 nparallel[INDEX_BITS];
static int	nparallel_any = 0;

/* the next scan to begin is a parallel one that this process leads */
static bool parallel_begins = false;

/* the level of the subtransaction that began the first of the parallel scans */
static int	parallel_level;

Size
InFlightShmemSize(void)
{
	return add_size(2 * PG_CACHE_LINE_SIZE, mul_size(MaxBackends, sizeof(ScanSlot)));
}

void
InFlightShmemInit(void)
{
	bool		found;
	char	   *mem = (char *) CACHELINEALIGN(ShmemInitStruct("inplace index scans",
															  InFlightShmemSize(), &found));

	held_up = (pg_atomic_uint64 *) mem;
	slots = (ScanSlot *) (mem + PG_CACHE_LINE_SIZE);
	if (found)
		return;
	pg_atomic_init_u64(held_up, 0);
	for (int i = 0; i < MaxBackends; i++)
	{
		pg_atomic_init_u64(&slots[i].slot.indexes, 0);
		for (int bit = 0; bit < INDEX_BITS; bit++)
		{
			pg_atomic_init_u64(&slots[i].slot.parallel_since[bit], 0);
			pg_atomic_init_u32(&slots[i].slot.parallel[bit], 0);
		}
	}
}

/* ---------------- scans ---------------- */

static inline int
index_bit(RelFileLocator index)
{
	return in_flight_hash(index) % INDEX_BITS;
}

static inline ScanSlot *
my_slot(void)
{
	return &slots[MyProc - ProcGlobal->allProcs];
}

static void
lead_parallel(int bit, bool begins)
{
	pg_atomic_uint32 *parallel = &my_slot()->slot.parallel[bit];

	Assert((pg_atomic_read_u32(parallel) % 2 == 0) == begins);
	pg_atomic_write_u32(parallel, pg_atomic_read_u32(parallel) + 1);
	pg_memory_barrier();
}

static void
forget_parallel(void)
{
	parallel_begins = false;
	for (int bit = 0; nparallel_any > 0 && bit < INDEX_BITS; bit++)
		if (nparallel[bit] > 0)
		{
			lead_parallel(bit, false);
			nparallel_any -= nparallel[bit];
			nparallel[bit] = 0;
		}
}

/* replay is not to wait for what has failed in a subtransaction */
static void
forget_scans_of_sub(SubXactEvent event, SubTransactionId sub,
					SubTransactionId parent, void *arg)
{
	if (event != SUBXACT_EVENT_ABORT_SUB)
		return;
	parallel_begins = false;
	if (nparallel_any > 0 && GetCurrentTransactionNestLevel() <= parallel_level)
		forget_parallel();
}

static void
forget_all_scans(void)
{
	if (!any_scan)
		return;
	memset(nscans, 0, sizeof(nscans));
	pg_atomic_write_u64(&my_slot()->slot.indexes, 0);
	any_scan = false;
	forget_parallel();
}

/* the end of a transaction is the end of its scans, however they ended */
static void
forget_scans(XactEvent event, void *arg)
{
	if (XactIsLeft(event))
		forget_all_scans();
}

static void
first_scan(void)
{
	static bool registered = false;

	if (!registered)
	{
		InplaceForgetAtExit(forget_all_scans);
		RegisterXactCallback(forget_scans, NULL);
		RegisterSubXactCallback(forget_scans_of_sub, NULL);
	}
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

static void
begin_parallel(int bit)
{
	parallel_begins = false;
	if (nparallel[bit] == 0)
	{
		/* either replay sees that we lead one, or we that it is held up */
		lead_parallel(bit, true);
		while (pg_atomic_read_u64(held_up) & (UINT64CONST(1) << bit))
		{
			lead_parallel(bit, false);
			CHECK_FOR_INTERRUPTS();
			pgstat_report_wait_start(PG_WAIT_EXTENSION);
			pg_usleep(HELD_UP_USEC);
			pgstat_report_wait_end();
			lead_parallel(bit, true);
		}
		pg_atomic_write_u64(&my_slot()->slot.parallel_since[bit], standby_merges());
		pg_memory_barrier();
	}
	nparallel[bit]++;
	if (nparallel_any++ == 0)
		parallel_level = GetCurrentTransactionNestLevel();
}

void
in_flight_begin(Relation index)
{
	int			bit = index_bit(RelLocator(index));

	if (!any_scan)
		first_scan();
	if (parallel_begins)
		begin_parallel(bit);
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

/* the scan that this process is about to begin is a parallel one, which it leads */
void
in_flight_begin_parallel(void)
{
	if (!any_scan)
		first_scan();
	parallel_begins = true;
}

void
in_flight_end_parallel(Relation index)
{
	int			bit = index_bit(RelLocator(index));

	if (nparallel[bit] == 0)
		return;
	nparallel_any--;
	if (--nparallel[bit] == 0)
		lead_parallel(bit, false);
}

/* is the index, or one that shares its bit, being scanned by anybody? */
bool
in_flight_any(RelFileLocator index)
{
	uint64		bit = UINT64CONST(1) << index_bit(index);

	pg_memory_barrier();
	for (int i = 0; i < MaxBackends; i++)
		if ((pg_atomic_read_u64(&slots[i].slot.indexes) & bit) != 0)
			return true;
	return false;
}

/*
 * Wait for a moment until each backend has been seen without a scan of the index; false
 * if one is not.  Then no scan is in progress that was so when we were called.
 */
bool
in_flight_drain(RelFileLocator index)
{
	uint64		bit = UINT64CONST(1) << index_bit(index);
	int		   *scanning = palloc(MaxBackends * sizeof(int));
	int			n = 0;

	pg_memory_barrier();
	for (int i = 0; i < MaxBackends; i++)
		if ((pg_atomic_read_u64(&slots[i].slot.indexes) & bit) != 0)
			scanning[n++] = i;
	for (int tries = 0; n > 0 && tries < DRAIN_TRIES; tries++)
	{
		int			still = 0;

		CHECK_FOR_INTERRUPTS();
		pg_usleep(DRAIN_USEC);
		for (int i = 0; i < n; i++)
			if ((pg_atomic_read_u64(&slots[scanning[i]].slot.indexes) & bit) != 0)
				scanning[still++] = scanning[i];
		n = still;
	}
	pg_memory_barrier();
	pfree(scanning);
	return n == 0;
}

/* the number of merges before the parallel scans of this process's leader */
uint64
in_flight_parallel_since(RelFileLocator index)
{
	PGPROC	   *leader = MyProc->lockGroupLeader ? MyProc->lockGroupLeader : MyProc;

	return pg_atomic_read_u64(&slots[leader - ProcGlobal->allProcs].slot.parallel_since[index_bit(index)]);
}

/*
 * By replay: a backend that is about to begin a parallel scan of the index waits, unless
 * it leads one already.
 */
void
in_flight_hold_parallel(RelFileLocator index)
{
	pg_atomic_fetch_or_u64(held_up, UINT64CONST(1) << index_bit(index));
}

void
in_flight_let_parallel(RelFileLocator index)
{
	pg_atomic_fetch_and_u64(held_up, ~(UINT64CONST(1) << index_bit(index)));
}

/* does anybody lead a parallel scan of the index or of one that shares its bit? */
bool
in_flight_parallel(RelFileLocator index)
{
	int			bit = index_bit(index);

	pg_memory_barrier();
	for (int i = 0; i < MaxBackends; i++)
		if (pg_atomic_read_u32(&slots[i].slot.parallel[bit]) % 2 == 1)
			return true;
	return false;
}

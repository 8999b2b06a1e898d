/*-------------------------------------------------------------------------
 *
 * unmarked_scan.c
 *	  Scans of GiST indexes that do not note what they return.
 *
 * Such a scan relies on it that no row gets another entry in the index while it runs.  So the
 * index must not begin to take updates in place as long as there is one (other_mark.c).
 * There are two kinds:
 *	 - A scan that has asked for the mark, when it returned its first row, and found none
 *	   (other_fetch.c).  It is registered until it is ended.
 *	 - A query with an index-only scan of an index that cannot return its key (gist_only.c).
 *	   It is registered from its start until its memory goes.
 *
 * Each backend has a slot in shared memory that tells of which indexes there are any.  An
 * index has one of 512 bits, by its OID.  So two indexes may share a bit, which only makes
 * rows move for longer.  The slot is the backend's alone to write.
 *
 * Invariants
 *	 - Whoever scans so sets its bit first, and looks at the mark then, under the lock of the meta
 *	   page.  If the mark says that it has to note rows, it takes the bit back.
 *	 - The index begins to take updates under the exclusive lock of that page, and only if no
 *	   backend of the database is seen with the bit then.  A scan whose bit is not seen looks at
 *	   the mark later, and finds it.
 *	 - The bits of a backend go with its transaction, however that ends: a scan lasts no longer.
 *	   What an error in a subtransaction has ended may stay registered until then.  (A cursor
 *	   may go on that was first read in the subtransaction.)  They go with its process, too, if
 *	   that fails to end its transaction.
 *
 * Nobody waits here, and no lock is taken.  Setting a bit has a full barrier behind it, as
 * reading the bits has before it.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/xact.h"
#include "index/unmarked_scan.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "process_exit.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "xact_end.h"

#define INDEX_BITS		512
#define WORD_BITS		64
#define NWORDS			(INDEX_BITS / WORD_BITS)

typedef union UnmarkedSlot
{
	pg_atomic_uint64 indexes[NWORDS];	/* a bit each */
	char		pad[PG_CACHE_LINE_SIZE];
} UnmarkedSlot;

static UnmarkedSlot *slots = NULL;

/* scans of this process, by bit, and all of them */
static uint32 nscans[INDEX_BITS];
static uint32 nall = 0;

/* counts transactions with such scans */
static uint64 this_xact = 1;

Size
UnmarkedScanShmemSize(void)
{
	return add_size(PG_CACHE_LINE_SIZE, mul_size(MaxBackends, sizeof(UnmarkedSlot)));
}

void
UnmarkedScanShmemInit(void)
{
	bool		found;

	slots = (UnmarkedSlot *) CACHELINEALIGN(ShmemInitStruct("inplace unmarked scans",
															UnmarkedScanShmemSize(), &found));
	if (found)
		return;
	for (int i = 0; i < MaxBackends; i++)
		for (int w = 0; w < NWORDS; w++)
			pg_atomic_init_u64(&slots[i].indexes[w], 0);
}

static inline uint64
mask_of(int bit)
{
	return UINT64CONST(1) << bit % WORD_BITS;
}

/* where this backend says it; nobody else writes there */
static inline pg_atomic_uint64 *
own_word(int bit)
{
	return &slots[MyProc - ProcGlobal->allProcs].indexes[bit / WORD_BITS];
}

static void
forget_all_scans(void)
{
	if (nall == 0)
		return;
	memset(nscans, 0, sizeof(nscans));
	nall = 0;
	this_xact++;
	for (int bit = 0; bit < INDEX_BITS; bit += WORD_BITS)
		pg_atomic_write_u64(own_word(bit), 0);
}

static void
forget_scans(XactEvent event, void *arg)
{
	if (XactIsLeft(event))
		forget_all_scans();
}

/* the caller looks at the mark afterwards */
void
inplace_unmarked_begin(UnmarkedScan *scan, Oid indexid)
{
	static bool registered = false;

	Assert(scan->xact == 0);
	Assert(MyProc - ProcGlobal->allProcs < MaxBackends);
	if (!registered)
	{
		InplaceForgetAtExit(forget_all_scans);
		RegisterXactCallback(forget_scans, NULL);
	}
	registered = true;
	scan->bit = indexid % INDEX_BITS;
	scan->xact = this_xact;
	nall++;
	if (nscans[scan->bit]++ == 0)
		pg_atomic_write_u64(own_word(scan->bit),
							pg_atomic_read_u64(own_word(scan->bit)) | mask_of(scan->bit));
	pg_memory_barrier();
}

/* if it is registered */
void
inplace_unmarked_end(UnmarkedScan *scan)
{
	/* (the transaction it belonged to may have ended before) */
	if (scan->xact == this_xact)
	{
		nall--;
		if (--nscans[scan->bit] == 0)
		{
			/* it has read what it reads of the index */
			pg_memory_barrier();
			pg_atomic_write_u64(own_word(scan->bit),
								pg_atomic_read_u64(own_word(scan->bit)) & ~mask_of(scan->bit));
		}
	}
	scan->xact = 0;
}

/*
 * Is there such a scan of the index in this database, or of one that shares its bit?  InvalidOid: of
 * any index.
 */
bool
inplace_unmarked_any(Oid indexid)
{
	int			bit = indexid % INDEX_BITS;

	pg_memory_barrier();
	for (int i = 0; i < MaxBackends; i++)
		for (int w = 0; w < NWORDS; w++)
		{
			uint64		bits = pg_atomic_read_u64(&slots[i].indexes[w]);

			if (OidIsValid(indexid))
				bits &= w == bit / WORD_BITS ? mask_of(bit) : 0;
			if (bits != 0 && ProcGlobal->allProcs[i].databaseId == MyDatabaseId)
				return true;
		}
	return false;
}

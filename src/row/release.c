/*-------------------------------------------------------------------------
 *
 * release.c
 *	  Which extents in the middle of undo no chain leads to any more.
 *
 * Some snapshot still needs what is older, but the chains of the rows pass by
 * these extents (squeeze.c, which also has the argument why they may be given
 * back).  Run by a database's undo worker.
 *
 * An extent can be given back if
 *	  1. no transaction writes to it (FULL) and there is nothing to restore in it,
 *	  2. its newest_xid precedes all_see (holders.h); or, according to "others_see",
 *		 all snapshots but held ones see its newest_xid, and each transaction that
 *		 made a change, or put a lock or link, recorded in it.  (newest_xid may be
 *		 one that had not been used when the extent was scanned for aborted
 *		 changes.)  And
 *	  3. for each row that has a record in it: the chain that starts on the
 *		 row's page, as far as anybody follows it, has no record in it.
 * For 3 the row's table is needed; where it cannot be had, or is not there any
 * more (its pages may have been copied, with their pointers), the extent is kept.
 * Links need not be looked at apart from the chain: what they lead to is
 * further down the chain that they stand in.  Nor need the rest of a chain from
 * where it comes to what was written before the extent was begun: extents have
 * the time, by a clock of their own, when they were begun and when their last
 * owner let go of them.  An extent that is owned again says so before its owner
 * writes to it, and a chain that leads there is seen, with its page locked, after
 * that.
 *
 * For 2 newest_xid alone does not do: an older xid in the extent may be of a
 * transaction that has ended later.  All have ended, for nobody's is an extent
 * only then.  A newest_xid that was raised because rows had been restored from
 * the extent is one that nobody used before: that all see it means that every
 * snapshot, and so every copy of a page that is looked at with one, is younger.
 *
 * A round takes all extents for which 1 and 2 hold together: the chain of a row
 * is walked once, however many of them have records of it, and each that it
 * leads into is kept.  It does not matter when in the round a chain is walked: one
 * that does not lead into an extent never does so again, and an extent that is
 * FULL stays so.  One walk for each record would not do: where large statements
 * update the same rows again and again, undo comes faster than that gives back.
 *
 * Of an extent that has to be kept one row is remembered that leads there, and
 * looked at first the next time.  A round ends after RELEASE_MAX_READS records if
 * nothing was found with them, and else after some more; the next one goes on
 * there, at once if extents have been found.
 *
 * Lock order: one data page at a time, share-locked, and under it undo pages.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/page.h"
#include "page/tuple.h"
#include "row/release.h"
#include "row/visibility.h"
#include "storage/bufmgr.h"
#include "undo/holders.h"
#include "undo/record.h"
#include "undo/seen.h"
#include "undo/space.h"
#include "undo/undo.h"
#include "undo/undo_rows.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

/* undo records and pages read in a round that finds nothing, about */
#define RELEASE_MAX_READS	20000
/* and in one that does: about a second */
#define RELEASE_MAX_READS_FOUND 1000000
#define RELEASE_MAX_ROWS	200000
/* a longer chain counts as leading to all that is older than where it was left */
#define RELEASE_MAX_STEPS	400
/* rows after which the table is closed, as others may be waiting for its lock */
#define RELEASE_CLOSE_ROWS	256
/* extents that a row is remembered of */
#define MAX_WITNESSES		1024

typedef struct UndoRow
{
	Oid			spc;
	Oid			rel;
	BlockNumber block;
	OffsetNumber off;
	uint16		unused;			/* zero: rows are compared as bytes */
} UndoRow;

/*
 * A row that was looked at in this round.  It may lead into all extents begun
 * before "doubt", by the space's clock; into others it does not, but for those
 * that have been kept since.
 */
typedef struct SeenRow
{
	UndoRow		row;
	uint64		doubt;
} SeenRow;

#define DOUBT_NONE		0
#define DOUBT_ALL		PG_UINT64_MAX

typedef struct Witness
{
	TransactionId newest_xid;	/* of the extent */
	uint32		number;
	UndoRow		row;
} Witness;

typedef struct ReleaseState
{
	const UndoReleaseJob *job;
	uint8	   *open;			/* extents that may turn out to be free, a bit
								 * each */
	uint64		oldest;			/* none of them was begun before */
	HTAB	   *rows;
	uint32		nwalks;
	UndoBounds	bounds;
	TransactionId last_seen;	/* found to be seen */
	UndoRecord	rec;
} ReleaseState;

static Witness *witnesses[UNDO_SHARED_KINDS];
static uint32 next_number[UNDO_SHARED_KINDS];

/* ---------------- extents that may be free ---------------- */

static Witness *
witness_of(UndoKind kind, uint32 n)
{
	if (witnesses[kind] == NULL)
		witnesses[kind] = MemoryContextAllocZero(TopMemoryContext,
												 MAX_WITNESSES * sizeof(Witness));
	return &witnesses[kind][n % MAX_WITNESSES];
}

static bool
is_open(const ReleaseState *rs, uint32 n)
{
	return (rs->open[n / 8] & (1 << (n % 8))) != 0;
}

/*
 * Extent n has to be kept, because of a row if there is one.
 */
static void
keep(ReleaseState *rs, uint32 n, const UndoRow *row)
{
	rs->open[n / 8] &= ~(1 << (n % 8));
	if (row != NULL)
	{
		Witness    *witness = witness_of(rs->job->kind, n);

		witness->number = n;
		witness->newest_xid =
			pg_atomic_read_u32(&UndoExtentAt(rs->job->space, n)->newest_xid);
		witness->row = *row;
	}
}

/* ---------------- the chain of a row ---------------- */

/*
 * Keep the extents that the chain leads into, down to where all was written
 * before the oldest of them was begun: a record leads to what had been written before it,
 * or together with it.  Returns what is in doubt (SeenRow).
 */
static uint64
walk_chain(ReleaseState *rs, Relation rel, const UndoRow *row,
		   InplaceTupleHeader tup)
{
	InplaceTupleHeaderData hdr = *tup;
	uint64		ended = EXT_STILL_OWNED;

	if (inplace_copied_xid_status(rel, &hdr, row->block, row->off) == XID_ABORTED)
		return DOUBT_ALL;
	for (int steps = 0; steps < RELEASE_MAX_STEPS; steps++)
	{
		bool		locked = (hdr.t_infomask & IP_LOCK_INDIRECT) != 0;
		uint32		n;

		if (!locked &&
			(!HdrHasUndo(&hdr) || TransactionIdPrecedes(HdrXid(&hdr), rs->job->horizon)))
			return DOUBT_NONE;
		n = (UndoPtrBlock(HdrUndoPtr(&hdr)) - 1) / UNDO_EXTENT_BLOCKS;
		if (n < rs->job->nextents && !HdrIsBareDelete(&hdr))
		{
			if (is_open(rs, n))
				keep(rs, n, row);
			ended = pg_atomic_read_u64(&UndoExtentAt(rs->job->space, n)->ended);
			if (ended < rs->oldest)
				return DOUBT_NONE;
		}
		else
			ended = EXT_STILL_OWNED;
		if (!UndoFetchRecord(rel, HdrUndoPtr(&hdr), row->block, row->off, &hdr,
							 true, &rs->rec))
			return DOUBT_ALL;
		hdr = rs->rec.old;
	}
	return ended == EXT_STILL_OWNED ? DOUBT_ALL : ended + 1;
}

static uint64
walk_row(ReleaseState *rs, const UndoRow *row)
{
	Relation	rel;
	Buffer		buffer;
	Page		page;
	uint64		doubt = DOUBT_NONE;

	if (++rs->nwalks % RELEASE_CLOSE_ROWS == 0)
		rs->job->close(rs->job->arg);
	rel = rs->job->open(row->spc, row->rel, rs->job->arg);
	if (rel == NULL)
		return DOUBT_ALL;
	if (row->block >= RelationGetNumberOfBlocks(rel))
		return DOUBT_NONE;
	buffer = ReadBuffer(rel, row->block);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = RowPage(rel, buffer);
	if (!PageIsNew(page) && row->off <= PageGetMaxOffsetNumber(page))
	{
		inplace_check_items(rel, page, row->block, NULL);
		if (ItemIdIsNormal(PageGetItemId(page, row->off)))
			doubt = walk_chain(rs, rel, row, PageGetTupleAt(page, row->off));
	}
	UnlockReleaseBuffer(buffer);
	return doubt;
}

/*
 * Keep extent n if the row, which may have been looked at already, leads there.
 */
static void
look_at_row(ReleaseState *rs, uint32 n, const UndoRow *row)
{
	SeenRow    *seen;
	bool		known;

	seen = hash_search(rs->rows, row, HASH_ENTER, &known);
	if (!known)
	{
		seen->doubt = DOUBT_ALL;	/* if there is an error */
		seen->doubt = walk_row(rs, row);
	}
	if (is_open(rs, n) &&
		pg_atomic_read_u64(&UndoExtentAt(rs->job->space, n)->begun) < seen->doubt)
		keep(rs, n, row);
}

/* ---------------- the rows of an extent ---------------- */

static bool
all_see(ReleaseState *rs, TransactionId xid)
{
	if (xid == rs->last_seen)
		return true;
	if (!TransactionIdPrecedes(xid, rs->bounds.all_see) &&
		!UndoSeenByAll(&rs->bounds.others_see, xid))
		return false;
	rs->last_seen = xid;
	return true;
}

/*
 * Is all that leads to a record seen?  That is the change that it undoes, or
 * the version that the lock or the link is of.
 */
static bool
record_is_seen(ReleaseState *rs, const char *raw, Size len)
{
	if (!UndoParse(raw, len, NULL, &rs->rec) ||
		!all_see(rs, rs->rec.hdr.ur_xid))
		return false;
	if (rs->rec.hdr.ur_type != UNDO_LOCK && rs->rec.hdr.ur_type != UNDO_LINK)
		return true;
	return (rs->rec.old.t_infomask & IP_FROZEN) != 0 ||
		all_see(rs, rs->rec.old.t_xid);
}

/*
 * Go through the records of a copy of a page of extent n, until it is found
 * that the extent has to be kept.
 */
static void
look_at_page(ReleaseState *rs, uint32 n, Page page, bool check_xids)
{
	PageHeader	ph = (PageHeader) page;
	uint16		off = SizeOfPageHeaderData;
	uint16		end = Min(ph->pd_lower, BLCKSZ);
	UndoRow		last = {0};
	UndoRow		row = {0};

	while (off < end && is_open(rs, n))
	{
		UndoRecordHeader hdr;

		memset(&hdr, 0, sizeof(hdr));
		if (end - off >= SizeOfUndoRecordHeader)
			memcpy(&hdr, (char *) page + off, SizeOfUndoRecordHeader);
		if (hdr.ur_len < SizeOfUndoRecordHeader || hdr.ur_len > end - off ||
			(check_xids && !record_is_seen(rs, (char *) page + off, end - off)))
		{
			keep(rs, n, NULL);
			return;
		}
		off += hdr.ur_len;

		row.spc = hdr.ur_spc;
		row.rel = hdr.ur_rel;
		row.block = hdr.ur_block;
		row.off = hdr.ur_off;
		if (memcmp(&row, &last, sizeof(UndoRow)) == 0)
			continue;
		last = row;
		look_at_row(rs, n, &row);
	}
}

/*
 * Does nothing lead into extent n?
 */
static bool
extent_is_free(ReleaseState *rs, uint32 n)
{
	UndoExtent *ext = UndoExtentAt(rs->job->space, n);
	TransactionId newest = pg_atomic_read_u32(&ext->newest_xid);
	bool		check_xids = !TransactionIdPrecedes(newest, rs->bounds.all_see);

	rs->last_seen = InvalidTransactionId;
	for (uint16 i = 0; i < ext->fill && is_open(rs, n); i++)
	{
		PGAlignedBlock copy;
		Buffer		buffer = ReadBuffer(rs->job->undorel,
										UndoExtentStart(n) + i);

		CHECK_FOR_INTERRUPTS();
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		memcpy(copy.data, BufferGetPage(buffer), BLCKSZ);
		UnlockReleaseBuffer(buffer);
		UndoRecordsRead++;
		if (!PageIsNew((Page) copy.data))
			look_at_page(rs, n, (Page) copy.data, check_xids);
	}
	return is_open(rs, n);
}

/* ---------------- a round ---------------- */

static bool
is_candidate(const ReleaseState *rs, UndoExtent *ext)
{
	TransactionId newest = pg_atomic_read_u32(&ext->newest_xid);

	return pg_atomic_read_u32(&ext->state) == EXT_FULL &&
		TransactionIdIsNormal(newest) &&
		!TransactionIdPrecedes(newest, rs->job->horizon) &&
		(TransactionIdPrecedes(newest, rs->bounds.all_see) ||
		 UndoSeenByAll(&rs->bounds.others_see, newest));
}

static void
find_candidates(ReleaseState *rs)
{
	for (uint32 n = 0; n < rs->job->nextents; n++)
		if (is_candidate(rs, UndoExtentAt(rs->job->space, n)))
			rs->open[n / 8] |= 1 << (n % 8);
}

/*
 * Keep extent n if the row that is remembered of it still leads there.
 */
static void
ask_witness(ReleaseState *rs, uint32 n)
{
	UndoExtent *ext = UndoExtentAt(rs->job->space, n);
	Witness    *witness = witness_of(rs->job->kind, n);
	UndoRow		row = witness->row;

	if (witness->number != n ||
		witness->newest_xid != pg_atomic_read_u32(&ext->newest_xid))
		return;
	rs->oldest = pg_atomic_read_u64(&ext->begun);
	if (rs->oldest < walk_row(rs, &row))
		keep(rs, n, &row);
}

static uint64
oldest_open(const ReleaseState *rs, uint32 first, uint32 limit)
{
	uint64		oldest = PG_UINT64_MAX;

	for (uint32 i = 0; i < limit; i++)
	{
		uint32		n = (first + i) % rs->job->nextents;

		if (is_open(rs, n))
			oldest = Min(oldest,
						 pg_atomic_read_u64(&UndoExtentAt(rs->job->space, n)->begun));
	}
	return oldest;
}

static bool
round_is_over(const ReleaseState *rs, uint64 reads, bool found)
{
	return reads > (found ? RELEASE_MAX_READS_FOUND : RELEASE_MAX_READS) ||
		hash_get_num_entries(rs->rows) > RELEASE_MAX_ROWS;
}

static HTAB *
rows_create(void)
{
	HASHCTL		ctl;

	memset(&ctl, 0, sizeof(ctl));
	ctl.keysize = sizeof(UndoRow);
	ctl.entrysize = sizeof(SeenRow);
	ctl.hcxt = CurrentMemoryContext;
	return hash_create("rows of undo extents", 1024, &ctl,
					   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

bool
UndoFindReleasable(const UndoReleaseJob *job, uint8 *releasable,
				   TransactionId *all_ended)
{
	uint64		reads = UndoRecordsRead;
	ReleaseState *rs = palloc0(sizeof(ReleaseState));
	uint32		first;
	uint32		limit;
	bool		found = false;
	bool		over = false;
	bool		more;

	UndoHoldersRead(&rs->bounds);
	*all_ended = rs->bounds.all_see;
	if (job->nextents == 0)
		return false;
	rs->job = job;
	rs->open = palloc0(job->nextents / 8 + 1);
	rs->rows = rows_create();
	find_candidates(rs);

	first = next_number[job->kind] % job->nextents;

	/* these may be many; those that are not reached have their turn later */
	for (limit = 0; limit < job->nextents; limit++)
	{
		uint32		n = (first + limit) % job->nextents;

		if (UndoRecordsRead - reads > RELEASE_MAX_READS)
			break;
		next_number[job->kind] = n + 1; /* if there is an error */
		if (is_open(rs, n))
			ask_witness(rs, n);
	}

	/* or those in front of many that had to be asked would never be looked at */
	reads = UndoRecordsRead;
	rs->oldest = oldest_open(rs, first, limit);
	for (uint32 i = 0; i < limit; i++)
	{
		uint32		n = (first + i) % job->nextents;

		if (!is_open(rs, n))
			continue;
		if (round_is_over(rs, UndoRecordsRead - reads, found))
		{
			next_number[job->kind] = n;
			over = true;
			break;
		}
		next_number[job->kind] = n + 1; /* if there is an error */
		if (extent_is_free(rs, n))
		{
			releasable[n / 8] |= 1 << (n % 8);
			found = true;
		}
	}

	if (!over)
		next_number[job->kind] = first + limit;

	/* no walk may have met one since; if one did it stays */
	for (uint32 i = 0; i < job->nextents / 8 + 1; i++)
		releasable[i] &= rs->open[i];

	more = found && (over || limit < job->nextents);
	hash_destroy(rs->rows);
	pfree(rs->open);
	pfree(rs);
	return more;
}

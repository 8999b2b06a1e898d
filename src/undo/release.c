/*-------------------------------------------------------------------------
 *
 * release.c
 *	  Which extents in the middle of undo nobody is led to any more.
 *
 * Some snapshot still needs what is older, but the chains of the rows pass by
 * these extents (squeeze.c, which also has the argument why they may be given
 * back).  Run by a database's undo worker.
 *
 * An extent can be given back if
 *	  1. nobody writes to it (FULL) and there is nothing to restore in it,
 *	  2. its newest_xid precedes all_see (holders.h), or: all snapshots see
 *		 according to "seen" whoever made a change, or put a lock or link, that is
 *		 recorded in it, and its newest_xid (which may be one that had not been
 *		 used when the extent was scanned for aborted changes), and
 *	  3. for each row that has a record in it: the chain that starts on the
 *		 row's page, as far as anybody follows it, has no record in it.
 * For 3 the row's table is needed; where it cannot be had, or is not there any
 * more (its pages may have been copied, with their pointers), the extent is kept.
 * Links need not be looked at apart from the chain: what they lead to is
 * further down the chain that they stand in.  Nor need the rest of a chain from
 * where it comes to what was written before the extent was begun: extents have
 * the time, by a clock of their own, when they were begun and when their last
 * owner let go of them.  (An extent that is owned again says so before its owner writes
 * to it, and the chain that leads there is seen with its page locked after that.)
 *
 * For 2 newest_xid alone does not do: an older xid in the extent may be of a
 * transaction that has ended later.  All have ended, for nobody's is an extent
 * only then.  A newest_xid that was raised because rows had been restored from
 * the extent is one that nobody used before: that all see it means that every
 * snapshot, and so every copy of a page that is looked at with one, is younger.
 *
 * Of an extent that has to be kept one row is remembered that leads there, and
 * looked at first the next time.  A round ends after RELEASE_MAX_READS
 * records, and the next one goes on where it ended: at once if extents have been found,
 * for where large statements update the same rows again and again undo comes faster
 * than a round each tick gives back (1000 rows, 2700 times under a snapshot: 107 MB,
 * and 13 MB so).
 *
 * Lock order: one data page at a time, share-locked, and under it undo pages.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "storage/bufmgr.h"
#include "table/table.h"
#include "undo/holders.h"
#include "undo/release.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

/* undo records and pages read in a round, about */
#define RELEASE_MAX_READS	20000
/* a longer chain counts as leading everywhere */
#define RELEASE_MAX_STEPS	400
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

typedef struct Witness
{
	TransactionId newest_xid;	/* of the extent */
	uint32		number;
	UndoRow		row;
} Witness;

typedef struct ReleaseState
{
	const UndoReleaseJob *job;
	uint32		number;			/* of the extent */
	UndoBounds	bounds;
	bool		check_xids;		/* each in the extent */
	TransactionId last_seen;	/* found to be seen */
	UndoRecord	rec;
} ReleaseState;

static Witness *witnesses[UNDO_SHARED_KINDS];
static uint32 next_number[UNDO_SHARED_KINDS];

/* ---------------- the chain of a row ---------------- */

static bool
in_extent(const ReleaseState *rs, UndoPtr ptr)
{
	BlockNumber start = UndoExtentStart(rs->number);

	return UndoPtrBlock(ptr) >= start &&
		UndoPtrBlock(ptr) < start + UNDO_EXTENT_BLOCKS;
}

/*
 * Was all that is recorded where ptr leads, and so what the chain leads to from
 * there, written before the extent was begun?  A record leads to what had been
 * written before it, or together with it.
 */
static bool
written_before(const ReleaseState *rs, UndoPtr ptr)
{
	uint32		n = (UndoPtrBlock(ptr) - 1) / UNDO_EXTENT_BLOCKS;

	return n < rs->job->nextents &&
		pg_atomic_read_u64(&UndoExtentAt(rs->job->space, n)->ended) <
		pg_atomic_read_u64(&UndoExtentAt(rs->job->space, rs->number)->begun);
}

/*
 * Does the chain lead into the extent?  When in doubt it does.
 */
static bool
chain_leads_there(ReleaseState *rs, Relation rel, BlockNumber block,
				  OffsetNumber off, InplaceTupleHeader tup)
{
	InplaceTupleHeaderData hdr = *tup;

	if (inplace_copied_xid_status(rel, &hdr, block, off) == XID_ABORTED)
		return true;
	for (int steps = 0; steps < RELEASE_MAX_STEPS; steps++)
	{
		bool		locked = (hdr.t_infomask & IP_LOCK_INDIRECT) != 0;

		if (!locked &&
			(!HdrHasUndo(&hdr) || (hdr.t_infomask & IP_FROZEN) ||
			 TransactionIdPrecedes(hdr.t_xid, rs->job->horizon)))
			return false;
		if (in_extent(rs, HdrGetUndo(&hdr)))
			return true;
		if (written_before(rs, HdrGetUndo(&hdr)))
			return false;
		if (!UndoFetchRecord(rel, HdrGetUndo(&hdr), block, off, &hdr, true,
							 &rs->rec))
			return true;
		hdr = rs->rec.old;
	}
	return true;
}

static bool
row_leads_there(ReleaseState *rs, const UndoRow *row)
{
	Relation	rel = rs->job->open(row->spc, row->rel, rs->job->arg);
	Buffer		buffer;
	Page		page;
	bool		result = false;

	if (rel == NULL)
		return true;
	if (row->block >= RelationGetNumberOfBlocks(rel))
		return false;
	buffer = ReadBuffer(rel, row->block);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	if (!PageIsNew(page) && row->off <= PageGetMaxOffsetNumber(page))
	{
		inplace_check_items(rel, page, row->block);
		if (ItemIdIsNormal(PageGetItemId(page, row->off)))
			result = chain_leads_there(rs, rel, row->block, row->off,
									   PageGetTupleAt(page, row->off));
	}
	UnlockReleaseBuffer(buffer);
	return result;
}

/* ---------------- the rows of an extent ---------------- */

static HTAB *
rows_create(void)
{
	HASHCTL		ctl;

	memset(&ctl, 0, sizeof(ctl));
	ctl.keysize = sizeof(UndoRow);
	ctl.entrysize = sizeof(UndoRow);
	ctl.hcxt = CurrentMemoryContext;
	return hash_create("rows of an undo extent", 64, &ctl,
					   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static bool
all_see(ReleaseState *rs, TransactionId xid)
{
	if (xid == rs->last_seen)
		return true;
	if (!TransactionIdPrecedes(xid, rs->bounds.all_see) &&
		!UndoSeenByAll(&rs->bounds.seen, xid))
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
 * Go through the records of a copy of an undo page.  True if one is of a row
 * that leads into the extent (*row), or is not seen by all (*row is of no
 * relation then), or the page is damaged.
 */
static bool
page_has_needed(ReleaseState *rs, Page page, HTAB *rows, UndoRow *row)
{
	PageHeader	ph = (PageHeader) page;
	uint16		off = SizeOfPageHeaderData;
	uint16		end = Min(ph->pd_lower, BLCKSZ);
	UndoRow		last = {0};

	while (off < end)
	{
		UndoRecordHeader hdr;
		bool		known;

		memset(&hdr, 0, sizeof(hdr));
		if (end - off >= SizeOfUndoRecordHeader)
			memcpy(&hdr, (char *) page + off, SizeOfUndoRecordHeader);
		if (hdr.ur_len < SizeOfUndoRecordHeader || hdr.ur_len > end - off)
			return true;
		memset(row, 0, sizeof(UndoRow));
		if (rs->check_xids &&
			!record_is_seen(rs, (char *) page + off, end - off))
			return true;
		off += hdr.ur_len;

		row->spc = hdr.ur_spc;
		row->rel = hdr.ur_rel;
		row->block = hdr.ur_block;
		row->off = hdr.ur_off;
		if (memcmp(row, &last, sizeof(UndoRow)) == 0)
			continue;
		last = *row;
		(void) hash_search(rows, row, HASH_ENTER, &known);
		if (!known && row_leads_there(rs, row))
			return true;
	}
	return false;
}

static bool
extent_has_needed(ReleaseState *rs, const UndoExtent *ext, UndoRow *row)
{
	HTAB	   *rows = rows_create();
	bool		result = false;

	memset(row, 0, sizeof(UndoRow));
	for (uint16 i = 0; i < ext->fill && !result; i++)
	{
		PGAlignedBlock copy;
		Buffer		buffer = ReadBuffer(rs->job->undorel,
										UndoExtentStart(rs->number) + i);

		CHECK_FOR_INTERRUPTS();
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		memcpy(copy.data, BufferGetPage(buffer), BLCKSZ);
		UnlockReleaseBuffer(buffer);
		UndoRecordsRead++;
		if (!PageIsNew((Page) copy.data))
			result = page_has_needed(rs, (Page) copy.data, rows, row);
	}
	hash_destroy(rows);
	return result;
}

/* ---------------- a round ---------------- */

static Witness *
witness_of(UndoKind kind, uint32 n)
{
	if (witnesses[kind] == NULL)
		witnesses[kind] = MemoryContextAllocZero(TopMemoryContext,
												 MAX_WITNESSES * sizeof(Witness));
	return &witnesses[kind][n % MAX_WITNESSES];
}

static bool
extent_is_needed(ReleaseState *rs, const UndoExtent *ext,
				 TransactionId newest_xid)
{
	Witness    *witness = witness_of(rs->job->kind, rs->number);
	UndoRow		row;

	if (witness->number == rs->number && witness->newest_xid == newest_xid &&
		row_leads_there(rs, &witness->row))
		return true;
	if (!extent_has_needed(rs, ext, &row))
	{
		witness->newest_xid = InvalidTransactionId;
		return false;
	}
	if (OidIsValid(row.rel))
	{
		witness->number = rs->number;
		witness->newest_xid = newest_xid;
		witness->row = row;
	}
	return true;
}

bool
UndoFindReleasable(const UndoReleaseJob *job, uint8 *releasable,
				   TransactionId *all_ended)
{
	UndoSpace  *sp = job->space;
	uint64		reads = UndoRecordsRead;
	ReleaseState *rs = palloc(sizeof(ReleaseState));
	bool		found = false;
	bool		more = false;

	UndoHoldersRead(&rs->bounds);
	*all_ended = rs->bounds.all_see;
	rs->job = job;
	for (uint32 i = 0; i < job->nextents; i++)
	{
		uint32		n = next_number[job->kind];
		UndoExtent *ext;
		TransactionId newest;

		if (n >= job->nextents)
			n = 0;
		if (UndoRecordsRead - reads > RELEASE_MAX_READS)
		{
			more = found;
			break;
		}
		next_number[job->kind] = n + 1;
		ext = UndoExtentAt(sp, n);
		newest = pg_atomic_read_u32(&ext->newest_xid);
		if (pg_atomic_read_u32(&ext->state) != EXT_FULL ||
			!TransactionIdIsNormal(newest) ||
			TransactionIdPrecedes(newest, job->horizon))
			continue;
		rs->check_xids = !TransactionIdPrecedes(newest, rs->bounds.all_see);
		if (rs->check_xids && !UndoSeenByAll(&rs->bounds.seen, newest))
			continue;
		rs->number = n;
		rs->last_seen = InvalidTransactionId;
		if (!extent_is_needed(rs, ext, newest))
		{
			releasable[n / 8] |= 1 << (n % 8);
			found = true;
		}
	}
	pfree(rs);
	return more;
}

/*-------------------------------------------------------------------------
 *
 * gist_prune.c
 *	  Takes entries of former keys off a leaf page of a GiST index before it would
 *	  have to be split.
 *
 * Many rows that are changed between two VACUUMs fill pages with entries that nobody needs,
 * and what has been split stays so.  So an update that finds no room for its entry looks at
 * the rows that a page's entries lead to.  An entry may go if of its row
 *	 - the version on the table's page is committed, and all snapshots see it.  So they see
 *	   no version before it, and its own entry was there when they were taken,
 *	 - that version's entry is another one,
 *	 - that is still so when the index page is locked: the header is the same.
 *
 * An update that is about to need the entry has changed the header before it looks for it
 * for good (gist_entry.c).  Either that was before the header is looked at here, and the
 * entry stays.  Or its search waits for the page's lock, and finds the entry gone.
 * If the change is rolled back, the version before it needs no other entry than it did.
 *
 * For VACUUM's sweep it is as if it had not met the entry: it has gone before the sweep's xid is
 * read, on which the proof in vacuum/stale.c rests, for a row that has been swept has no such
 * entries.  Standby snapshots that may need it are in conflict with the record, which is GiST's
 * own for entries that scans have found dead.
 *
 * The entry of a version has to come out as it did when it was made.  That is so of points
 * and boxes, which are stored as they are.  Indexes of other classes, with expressions, a
 * predicate or INCLUDE columns are left to VACUUM.
 *
 * Lock order: a page of the index, exclusively; under it pages of the table, shared, one at a
 * time.  Keys are computed with nothing locked.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "index/entry.h"
#include "index/gist_prune.h"
#include "index/key.h"
#include "index/other_entry.h"
#include "miscadmin.h"
#include "page/page.h"
#include "row/change.h"
#include "row/rowcheck.h"
#include "row/visibility.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

/* to have less room afterwards is not worth the look at all rows */
#define MIN_PRUNED	8

/* the page is locked while rows are looked at again */
#define MAX_PRUNED	64

/* if none of so many entries may go, the others are not looked at */
#define MAX_IN_VAIN	24

/* an entry that may go */
typedef struct FormerEntry
{
	OffsetNumber off;
	ItemPointerData tid;
	InplaceTupleHeaderData hdr; /* of its row */
} FormerEntry;

bool
inplace_gist_can_prune(Relation index, const GISTSTATE *state)
{
	Form_pg_index form = index->rd_index;

	if (form->indnatts != form->indnkeyatts || inplace_key_is_computed(index))
		return false;
	for (int i = 0; i < form->indnkeyatts; i++)
		if (state->unionFn[i].fn_oid != F_GIST_BOX_UNION ||
			(OidIsValid(state->compressFn[i].fn_oid) &&
			 state->compressFn[i].fn_oid != F_GIST_POINT_COMPRESS))
			return false;
	return true;
}

/* the row on a locked page if it may have former keys, and nobody needs but its newest version */
static InplaceTupleHeader
settled_row(Relation table, Buffer buffer, OffsetNumber off)
{
	Page		page = RowPage(table, buffer);
	InplaceTupleHeader tup;

	if (off < FirstOffsetNumber || off > PageGetMaxOffsetNumber(page) ||
		!ItemIdIsNormal(PageGetItemId(page, off)))
		return NULL;
	tup = PageGetTupleAt(page, off);
	if (!(tup->t_infomask & IP_STALE) || HdrIsSwept(tup) || HdrIsEvicted(tup) ||
		(tup->t_infomask & (IP_DELETED | IP_FROZEN)) || HdrIsSpeculative(tup) ||
		!inplace_removable_here(table, tup, inplace_xid_status(table, tup, buffer)))
		return NULL;
	return tup;
}

static InplaceTupleHeader
copy_settled_row(Relation table, ItemPointer tid)
{
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(tid);
	Buffer		buffer = ReadBuffer(table, ItemPointerGetBlockNumberNoCheck(tid));
	InplaceTupleHeader tup;
	InplaceTupleHeader copy = NULL;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	tup = settled_row(table, buffer, off);
	if (tup != NULL)
	{
		Size		len = ItemIdGetLength(PageGetItemId(BufferGetPage(buffer), off));

		copy = palloc(len);
		memcpy(copy, tup, len);
	}
	UnlockReleaseBuffer(buffer);
	return copy;
}

/* is the row as it was? */
static bool
row_is_unchanged(Relation table, FormerEntry *former)
{
	Buffer		buffer = ReadBuffer(table, ItemPointerGetBlockNumberNoCheck(&former->tid));
	InplaceTupleHeader tup;
	bool		result;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	tup = settled_row(table, buffer, ItemPointerGetOffsetNumberNoCheck(&former->tid));
	result = tup != NULL && same_header(&former->hdr, tup);
	UnlockReleaseBuffer(buffer);
	return result;
}

/* is the entry of a former key?  Then what has been seen of its row is noted. */
static bool
is_former(Relation table, Relation index, GISTSTATE *state, IndexTuple itup,
		  FormerEntry *former)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	InplaceTupleHeader tup;

	former->tid = itup->t_tid;
	tup = copy_settled_row(table, &former->tid);
	if (tup == NULL)
		return false;
	former->hdr = *tup;
	return inplace_key_of_tuple(table, index, tup, &former->tid, values,
								isnull) == KEY_FOUND &&
		!inplace_gist_same_key(state->leafTupdesc, itup,
							   gistFormTuple(state, index, values, isnull, true));
}

static int
find_former(Relation table, Relation index, GISTSTATE *state, Page copy,
			FormerEntry *former)
{
	MemoryContext work = AllocSetContextCreate(CurrentMemoryContext, "inplace gist prune",
											   ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(work);
	int			n = 0;

	for (OffsetNumber off = FirstOffsetNumber; off <= PageGetMaxOffsetNumber(copy); off++)
	{
		ItemId		lp = PageGetItemId(copy, off);

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(work);
		if (n == MAX_PRUNED || (n == 0 && off > MAX_IN_VAIN))
			break;
		if (!ItemIdIsDead(lp) &&
			is_former(table, index, state, (IndexTuple) PageGetItem(copy, lp), &former[n]))
			former[n++].off = off;
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(work);
	return n;
}

/* the page is locked */
static void
delete_entries(Relation table, Relation index, Buffer buffer, OffsetNumber *offs, int n,
			   TransactionId newest)
{
	Page		page = BufferGetPage(buffer);
	XLogRecPtr	lsn;

	START_CRIT_SECTION();
	PageIndexMultiDelete(page, offs, n);
	GistMarkAsReplayDoes(page);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(index))
		lsn = GistLogDelete(buffer, offs, n, newest, table);
	else
		lsn = gistGetFakeLSN(index);
	PageSetLSN(page, lsn);
	END_CRIT_SECTION();
}

/*
 * Pages that this backend has found nothing on lately.  As long as such a page is what it was,
 * it is not asked about again: GiST may have other pages with room, and leave this one full.
 */
#define PAGES_REMEMBERED	16

typedef struct FullPage
{
	RelFileLocator locator;
	BlockNumber blk;
	XLogRecPtr	lsn;
} FullPage;

static FullPage full_pages[PAGES_REMEMBERED];
static int	next_full_page = 0;

static bool
is_known_in_vain(Relation index, BlockNumber blk, Page copy)
{
	for (int i = 0; i < PAGES_REMEMBERED; i++)
		if (full_pages[i].blk == blk && full_pages[i].lsn == PageGetLSN(copy) &&
			RelFileLocatorEquals(full_pages[i].locator, RelLocator(index)))
			return true;
	return false;
}

static void
remember_in_vain(Relation index, BlockNumber blk, Page copy)
{
	FullPage   *full = &full_pages[next_full_page++ % PAGES_REMEMBERED];

	full->locator = RelLocator(index);
	full->blk = blk;
	full->lsn = PageGetLSN(copy);
}

/*
 * Take what nobody needs off the leaf page, of which "copy" is what it was.  Returns its LSN
 * then, or an invalid one if it has been left as it is.  No page is locked.
 */
XLogRecPtr
inplace_gist_prune(Relation table, Relation index, GISTSTATE *state, BlockNumber blk,
				   Page copy)
{
	FormerEntry former[MAX_PRUNED];
	int			n;
	OffsetNumber offs[MAX_PRUNED];
	int			ndelete = 0;
	TransactionId newest = InvalidTransactionId;
	XLogRecPtr	result = InvalidXLogRecPtr;
	Buffer		buffer;

	if (is_known_in_vain(index, blk, copy))
		return InvalidXLogRecPtr;
	n = find_former(table, index, state, copy, former);
	if (n < MIN_PRUNED)
	{
		remember_in_vain(index, blk, copy);
		return InvalidXLogRecPtr;
	}
	buffer = ReadBuffer(index, blk);
	LockBuffer(buffer, GIST_EXCLUSIVE);
	if (PageGetLSN(BufferGetPage(buffer)) == PageGetLSN(copy))
		for (int i = 0; i < n; i++)
		{
			if (!row_is_unchanged(table, &former[i]))
				continue;
			offs[ndelete++] = former[i].off;
			if (!TransactionIdIsValid(newest) ||
				TransactionIdFollows(HdrXid(&former[i].hdr), newest))
				newest = HdrXid(&former[i].hdr);
		}
	if (ndelete >= MIN_PRUNED)
	{
		delete_entries(table, index, buffer, offs, ndelete, newest);
		result = PageGetLSN(BufferGetPage(buffer));
	}
	UnlockReleaseBuffer(buffer);
	return result;
}

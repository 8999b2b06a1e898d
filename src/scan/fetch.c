/*-------------------------------------------------------------------------
 *
 * fetch.c
 *	  Single rows: through an index, by TID, and the question whether a row
 *	  version is the one that a snapshot sees.
 *
 * Each fetch locks the page (share), finds the version and copies it into
 * the slot before it lets go of the lock.
 *
 * TIDs.  Indexes give clean ones.  The executor's may carry a version tag (see
 * tuple.h), which counts only for a fetch with SnapshotAny: that one asks for
 * a version, all others for what their snapshot sees of the row.
 * Slots get clean TIDs, for expressions of the query may read them (the row
 * marks of a recheck), but for the slot of an old row from which trigger.c
 * takes the TID of an event.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "index/dirty.h"
#include "index/entry.h"
#include "index/index_fetch.h"
#include "index/other_fetch.h"
#include "index/other_method.h"
#include "nodes/execnodes.h"
#include "page/page.h"
#include "page/page_lock.h"
#include "page/recent.h"
#include "page/slot.h"
#include "page/tuple.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "row/between.h"
#include "row/target.h"
#include "row/visibility.h"
#include "row/walk.h"
#include "scan/fetch.h"
#include "scan/scan.h"
#include "storage/predicate.h"
#include "undo/hold.h"
#include "undo/record.h"
#include "undo/undo.h"
#include "utils/memutils.h"
#include "vacuum/prune.h"

/*
 * The line pointer of a row on a page, or NULL if there is no row there (any
 * more, or yet: the page may be new).
 */
static inline ItemId
normal_item(Relation rel, Page page, BlockNumber blk, OffsetNumber off)
{
	PageHeader	phdr = (PageHeader) page;
	ItemId		lp;

	if (PageIsNew(page) || off < FirstOffsetNumber ||
		off > PageGetMaxOffsetNumber(page))
		return NULL;
	lp = PageGetItemId(page, off);

	/* for a single row do not look at the others, unless this is bad */
	if (unlikely(phdr->pd_lower > phdr->pd_upper ||
				 phdr->pd_special != BLCKSZ ||
				 (ItemIdIsNormal(lp) &&
				  (ItemIdGetOffset(lp) < phdr->pd_upper ||
				   ItemIdGetOffset(lp) + ItemIdGetLength(lp) > BLCKSZ ||
				   ItemIdGetLength(lp) < SizeOfInplaceTupleHeader))))
		inplace_check_page(rel, page, blk);

	return ItemIdIsNormal(lp) ? lp : NULL;
}

static inline void
lock_predicate(Relation rel, BlockNumber blk, OffsetNumber off, VersionTag tag,
			   Snapshot snapshot, TransactionId xmin)
{
	ItemPointerData tid;

	TidSetVersion(&tid, blk, off, tag);
	PredicateLockTID(rel, &tid, snapshot, xmin);
}

/*
 * Fetch what the snapshot sees of a row on a share-locked page and store a copy
 * in the slot, with a clean TID.
 */
static inline bool
fetch_visible(Relation rel, Buffer buffer, Page page, BlockNumber blk,
			  OffsetNumber off, ItemId lp, Snapshot snapshot,
			  TupleTableSlot *slot)
{
	InplaceTupleHeader tup = (InplaceTupleHeader) PageGetItem(page, lp);
	ItemPointerData tid;
	RowVersion *version;

	TidSet(&tid, blk, off);

	if (SnapshotIsPlainMVCC(snapshot))
	{
		int			r = RowVisible(rel, tup, buffer, snapshot);

		if (likely(r == 1))
		{
			RowVersionInfo vi;

			lock_predicate(rel, blk, off, tup->t_tag, snapshot, HdrXid(tup));
			RowFillInfo(tup, &vi);
			InplaceSlotStore(slot, RelationGetRelid(rel), &tid, tup,
							 RowLength(tup, lp), &vi, true);
			return true;
		}
		if (r == 0 && !CheckForSerializableConflictOutNeeded(rel, snapshot))
			return false;
	}

	version = inplace_scratch_version();
	if (!inplace_fetch_version(rel, buffer, true, page, blk, off, snapshot,
							   version))
		return false;

	lock_predicate(rel, blk, off, version->info.tag, snapshot,
				   version->info.xmin);
	inplace_store_tuple(slot, RelationGetRelid(rel), &tid, version->tuple,
						version->len, &version->info, true);
	return true;
}

bool
inplace_fetch_visible(Relation rel, Buffer buffer, BlockNumber blk,
					  OffsetNumber off, Snapshot snapshot,
					  TupleTableSlot *slot)
{
	Page		page = RowPage(rel, buffer);
	ItemId		lp = normal_item(rel, page, blk, off);

	return lp != NULL &&
		fetch_visible(rel, buffer, page, blk, off, lp, snapshot, slot);
}

/* ------------------------------------------------------------------------
 * Index fetch
 * ------------------------------------------------------------------------
 */

typedef struct InplaceIndexFetchData
{
	InplaceEntryFetch entry_fetch;	/* must be first: what the index has to do
									 * with */
	ScanPin		pin;			/* the page of the last TID, or none */

	/* rows of this page that the snapshot sees nothing of, see row_is_gone */
	Snapshot	gone_snapshot;	/* NULL: none known */
	CommandId	gone_curcid;
	uint64		gone_rows_put;
	OffsetNumber gone_first;
	OffsetNumber gone_last;

	Snapshot	checked;		/* the last that UndoHoldCheckScan has seen */
	OtherFetch	other;			/* of an index of another method */
	bool		on_standby;		/* the scan began there */
} InplaceIndexFetchData;

static inline Relation
fetch_rel(const InplaceIndexFetchData *fetch)
{
	return fetch->entry_fetch.base.rel;
}

static IndexFetchTableData *
inplace_index_fetch_begin(Relation rel)
{
	InplaceIndexFetchData *fetch = palloc0(sizeof(InplaceIndexFetchData));

	InplaceRequirePreload();
	inplace_entry_fetch_init(&fetch->entry_fetch, rel);
	ScanPinInit(&fetch->pin);
	fetch->other.cxt = CurrentMemoryContext;
	fetch->on_standby = RecoveryInProgress();

	/* if no entry is found we hear no more of it */
	UndoHoldCheckActive();
	return &fetch->entry_fetch.base;
}

static void
inplace_index_fetch_reset(IndexFetchTableData *data)
{
	InplaceIndexFetchData *fetch = (InplaceIndexFetchData *) data;

	fetch->gone_snapshot = NULL;
	ScanPinDrop(&fetch->pin);
	inplace_other_fetch_reset(&fetch->other);
}

static void
inplace_index_fetch_end(IndexFetchTableData *data)
{
	InplaceIndexFetchData *fetch = (InplaceIndexFetchData *) data;

	inplace_index_fetch_reset(data);
	inplace_other_fetch_end(&fetch->other);
	ScanPinEnd(&fetch->pin);
	pfree(data);
}

/* rows that this process has put on pages */
uint64		inplace_rows_put = 0;

/*
 * Runs of rows that the snapshot sees nothing of
 *
 * What is deleted at the head of a queue stays there while some snapshot may need
 * it, and everybody who looks for the head passes over it.  A scan that meets
 * such a row looks at its neighbours while it has the page locked, and then
 * need not lock the page for each.
 *
 * This stays true for the snapshot although others may change the page: a
 * deletion that it sees is committed, and what they change, or put in the place
 * of another row, they do later than the snapshot was taken.  We ourselves may
 * do so in a command that is older than the snapshot and still runs, if this
 * is the scan of a cursor in a function that it calls: so nothing is known any
 * more when we have put a row on any page.  In SERIALIZABLE each row has to be
 * asked about all the same.
 *
 * Rows that are dead to everybody do not belong to a run.  The index has to be told that
 * they are dead.  That is true of the row that the entry is of only as long as the page is
 * locked, for the entry may be newer than what we remember.
 */
static inline bool
row_is_gone(Relation rel, Buffer buffer, Page page, int off,
			Snapshot snapshot, GlobalVisState *vistest)
{
	ItemId		lp = PageGetItemId(page, off);
	InplaceTupleHeader tup;

	if (!ItemIdIsNormal(lp) ||
		ItemIdGetLength(lp) < SizeOfInplaceTupleHeader ||
		ItemIdGetOffset(lp) + ItemIdGetLength(lp) > BLCKSZ)
		return false;
	tup = (InplaceTupleHeader) PageGetItem(page, lp);
	if (RowVisible(rel, tup, buffer, snapshot) != 0)
		return false;
	if (tup->t_infomask & (IP_ABORTED | IP_FROZEN))
		return false;			/* an insert, a deletion: dead */
	if (!TransactionIdIsNormal(tup->t_xid))
		return false;			/* damaged */
	return (tup->t_infomask & IP_DELETED) == 0 ||
		!HdrIsSeenByAll(vistest, tup);
}

/*
 * The row at off, on the share-locked pinned page, was found to be invisible, and
 * not dead.
 */
static void
note_gone_rows(InplaceIndexFetchData *fetch, Page page, OffsetNumber off,
			   Snapshot snapshot)
{
	Relation	rel = fetch_rel(fetch);
	GlobalVisState *vistest = GlobalVisTestFor(rel);
	int			first = off;
	int			last = off;
	int			maxoff = PageGetMaxOffsetNumber(page);

	if (!SnapshotIsPlainMVCC(snapshot) ||
		CheckForSerializableConflictOutNeeded(rel, snapshot) ||
		!row_is_gone(rel, fetch->pin.buffer, page, off, snapshot, vistest))
		return;
	while (first > FirstOffsetNumber &&
		   row_is_gone(rel, fetch->pin.buffer, page, first - 1, snapshot, vistest))
		first--;
	while (last < maxoff &&
		   row_is_gone(rel, fetch->pin.buffer, page, last + 1, snapshot, vistest))
		last++;
	fetch->gone_snapshot = snapshot;
	fetch->gone_curcid = snapshot->curcid;
	fetch->gone_rows_put = inplace_rows_put;
	fetch->gone_first = first;
	fetch->gone_last = last;
}

/* is the row on the pinned page known to be one of them? */
static inline bool
known_to_be_gone(const InplaceIndexFetchData *fetch, OffsetNumber off,
				 Snapshot snapshot)
{
	return fetch->gone_snapshot != NULL &&
		fetch->gone_snapshot == snapshot &&
		fetch->gone_curcid == snapshot->curcid &&
		fetch->gone_rows_put == inplace_rows_put &&
		off >= fetch->gone_first && off <= fetch->gone_last;
}

/*
 * A row was found by a dirty snapshot, as if to be changed.
 *
 * pglogical's apply worker finds the row to be changed by the table's method, and
 * then takes the slot for one of heap's, and deletes by heap_delete().  It is known by
 * where it comes from, and that it looks for a row with no query running.  (With
 * pglogical.use_spi it executes statements, which is fine.)
 */
static void
refuse_heap_writer(Relation rel)
{
	if (likely(MyBgworkerEntry == NULL) || inplace_executor_depth > 0 ||
		strcmp(MyBgworkerEntry->bgw_library_name, "pglogical") != 0)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("pglogical cannot change rows of relation \"%s\" of access method \"inplace\" by functions of heap",
					RelationGetRelationName(rel)),
			 errhint("Set pglogical.use_spi to on, and pglogical.conflict_resolution to error, on the subscriber.")));
}

/*
 * The row on the share-locked page is invisible: is it dead?  If not, that is noted
 * for its neighbours, too.
 */
static bool
invisible_is_dead(InplaceIndexFetchData *fetch, Page page, ItemId lp,
				  OffsetNumber off, Snapshot snapshot)
{
	Relation	rel = fetch_rel(fetch);
	InplaceTupleHeader tup = (InplaceTupleHeader) PageGetItem(page, lp);
	bool		all_visible;
	RowState	state;

	state = inplace_row_state(rel, tup, fetch->pin.buffer, InvalidTransactionId,
							  GlobalVisTestFor(rel), &all_visible);
	if (state == ROW_ABORTED_INSERT)
		return true;

	/*
	 * That the entry is dead is not logged.  So the commit of the delete has
	 * to be on disk, or the row could come back after a crash, without its
	 * entry.
	 */
	if ((state == ROW_DEAD ||
		 (state == ROW_RECENTLY_DEAD &&
		  inplace_row_between(rel, BufferGetBlockNumber(fetch->pin.buffer), off, tup, NULL,
							  NULL))) &&
		inplace_commit_on_disk(tup->t_xid, fetch->pin.buffer))
		return true;
	note_gone_rows(fetch, page, off, snapshot);
	return false;
}

/* once for each snapshot that the scan comes with */
static inline void
check_snapshot(InplaceIndexFetchData *fetch, Snapshot snapshot)
{
	if (likely(fetch->checked == snapshot))
		return;
	UndoHoldCheckScan(snapshot);
	fetch->checked = snapshot;
}

/*
 * May a row that has been returned get an entry that the scan comes to, too?  Where nothing has
 * the setting on, it may not.  The first one matters all the same: see other_fetch.c.
 */
static inline bool
notes_rows(const InplaceIndexFetchData *fetch)
{
	return !fetch->other.plain &&
		(inplace_update_under_others || fetch->on_standby || !fetch->other.begun ||
		 fetch->other.as_floats);
}

/* false: not now */
static pg_noinline bool
note_returned(InplaceIndexFetchData *fetch, ItemPointer tid, bool *call_again)
{
	IndexScanDesc scan = inplace_scan_of_fetch(&fetch->entry_fetch.base, tid, call_again);

	if (scan != NULL)
		return inplace_other_returns(&fetch->other, scan, tid);
	fetch->other.begun = true;
	return true;
}

/*
 * Is a stale row, of which the slot has the version seen, to be returned for the entry?
 *
 * The planner's snapshot, which wants the ends of an index, gets versions that nobody may
 * ask for: their changes may have been rolled back, and their large values be gone.
 */
static pg_noinline bool
entry_counts(InplaceIndexFetchData *fetch, const FetchedEntry *entry,
			 ItemPointer tid, Snapshot snapshot, bool *call_again,
			 TupleTableSlot *slot)
{
	IndexScanDesc scan;

	if (entry->itup != NULL &&
		snapshot->snapshot_type == SNAPSHOT_NON_VACUUMABLE)
	{
		InplaceTupleHeader row = ((InplaceTupleTableSlot *) slot)->tuple;

		return !TTS_IS_INPLACE(slot) || row == NULL ||
			inplace_entry_may_match(fetch->entry_fetch.base.rel, entry->index,
									entry->itup, row, tid);
	}
	if (entry->itup != NULL)
		return inplace_fetched_entry_matches(&fetch->entry_fetch, entry, slot);
	scan = inplace_scan_of_fetch(&fetch->entry_fetch.base, tid, call_again);
	return scan == NULL ||
		inplace_other_entry_counts(&fetch->other, scan, tid, slot);
}

static bool
inplace_index_fetch_tuple(IndexFetchTableData *data, ItemPointer tid,
						  Snapshot snapshot, TupleTableSlot *slot,
						  bool *call_again, bool *all_dead)
{
	InplaceIndexFetchData *fetch = (InplaceIndexFetchData *) data;
	Relation	rel = data->rel;
	BlockNumber blk = ItemPointerGetBlockNumber(tid);
	OffsetNumber off = TidOffset(tid);
	Buffer		buffer = fetch->pin.buffer;
	bool		found = false;
	bool		dead = false;
	bool		recheck = false;
	struct DirtyVersion *versions = NULL;
	FetchedEntry entry;
	Page		page;
	ItemId		lp;

	/* one TID is one row, of which a snapshot sees one version at most */
	*call_again = false;

	check_snapshot(fetch, snapshot);

	/*
	 * A deferred unique check comes with the TID of its trigger event, and
	 * goes on to use it with the index, which knows clean ones only.
	 */
	TidClean(tid, tid);

	/* (no other relation's page is ever pinned there) */
	if (!BufferIsValid(buffer) || BufferGetBlockNumber(buffer) != blk)
	{
		fetch->gone_snapshot = NULL;
		ScanPinDrop(&fetch->pin);
		buffer = inplace_pin_row_page(rel, blk, off);
		ScanPinTake(&fetch->pin, rel, blk, buffer);
		inplace_page_prune_opt(rel, buffer);
	}
	else if (known_to_be_gone(fetch, off, snapshot))
	{
		if (all_dead)
			*all_dead = false;
		return false;
	}

	inplace_lock_page(buffer, LW_SHARED);
	page = RowPage(rel, buffer);
	lp = normal_item(rel, page, blk, off);
	if (lp == NULL)
		/* of a page that is lost the entries are kept: inplace.check tells */
		dead = !PageIsNew(page);
	else
	{
		InplaceTupleHeader tup = (InplaceTupleHeader) PageGetItem(page, lp);
		bool		stale = (tup->t_infomask & IP_STALE) != 0;

		found = fetch_visible(rel, buffer, page, blk, off, lp, snapshot,
							  slot);
		if (found && stale)
		{
			entry = inplace_fetched_entry(&fetch->entry_fetch);
			if (snapshot->snapshot_type == SNAPSHOT_DIRTY)
				found = inplace_dirty_compare(rel, &entry, blk, off, tup,
											  RowLength(tup, lp), snapshot,
											  &versions) != KEY_IS_OTHER;
			else
				recheck = snapshot->snapshot_type != SNAPSHOT_ANY;
		}
		else if (!found && all_dead)
			dead = invisible_is_dead(fetch, page, lp, off, snapshot);
	}

	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);

	if (unlikely(versions != NULL))
	{
		ScanPinEnd(&fetch->pin);
		found = inplace_dirty_settle(rel, &entry, blk, off, snapshot, versions);
	}

	/* is the entry that led here the one of this version? */
	if (recheck ? !entry_counts(fetch, &entry, tid, snapshot, call_again, slot) :
		(unlikely(notes_rows(fetch)) && found &&
		 !note_returned(fetch, tid, call_again)))
	{
		ExecClearTuple(slot);
		found = false;
	}
	if (found && snapshot->snapshot_type == SNAPSHOT_DIRTY)
	{
		refuse_heap_writer(rel);
		inplace_note_found_row(rel, slot);
	}
	if (all_dead)
		*all_dead = dead;
	return found;
}

/* ------------------------------------------------------------------------
 * By TID
 * ------------------------------------------------------------------------
 */

/*
 * The version that SnapshotAny is meant to fetch.  SnapshotAny by TID means different
 * things inside and after a query.
 *
 * A tagged TID names its version, one of our own transaction's.  A clean one may come from
 * a scan under the active snapshot: a row mark, the old row of MERGE or UPDATE, WHERE
 * CURRENT OF.  Then it means what that snapshot sees.  Or it is that of a row just
 * inserted, in a trigger event, and means the row's first version.  Outside of the
 * executor only trigger events ask.  Whatever is asked for, the row must not be said to
 * be gone while it is there.
 */
static bool
fetch_meant(Relation rel, Buffer buffer, Page page, BlockNumber blk,
			OffsetNumber off, const ItemPointerData *tid,
			RowVersion *version, TupleTableSlot *slot)
{
	bool		clean = !TidHasTag(tid);
	VersionTag	tag = clean ? FirstVersionTag : TidTag(tid);
	bool		exact_first = !clean || inplace_executor_depth == 0;
	int			i;

	/*
	 * INSERT ... ON CONFLICT DO NOTHING under REPEATABLE READ wants to know
	 * whether its snapshot sees the row in the way, which is the newest.  The
	 * slot tells that the question is from that command: other commands, and
	 * triggers, may be in the same statement.
	 */
	if (clean && IsolationUsesXactSnapshot() &&
		inplace_result_slot(slot) == RESULT_SLOT_RETURNING &&
		inplace_fetch_version(rel, buffer, true, page, blk, off, SnapshotSelf,
							  version))
		return true;

	for (i = 0; i < 2; i++)
	{
		if ((i == 0) == exact_first)
		{
			if (inplace_fetch_ours(rel, buffer, page, blk, off, tag, version))
				return true;
		}
		else if (ActiveSnapshotSet() &&
				 inplace_fetch_version(rel, buffer, true, page, blk, off,
									   GetActiveSnapshot(), version))
			return true;
	}
	return inplace_fetch_version(rel, buffer, true, page, blk, off,
								 SnapshotAny, version);
}

/*
 * Is this the slot of a result relation's old row, whose TID goes into the
 * trigger event that is about to be queued?  Without a query (the apply worker
 * has none) it may be.
 */
static bool
is_trigger_slot(Relation rel, TupleTableSlot *slot)
{
	if (rel->trigdesc == NULL ||
		!(rel->trigdesc->trig_update_after_row ||
		  rel->trigdesc->trig_delete_after_row))
		return false;
	return inplace_executor_estate == NULL ||
		inplace_result_slot(slot) == RESULT_SLOT_TRIGGER_OLD;
}

/* does the TID mean this version, which our own transaction has made? */
static bool
is_ours(const ItemPointerData *tid, VersionTag tag, TransactionId xmin)
{
	return TransactionIdIsCurrentTransactionId(xmin) &&
		SameTagInXact(tag, TidHasTag(tid) ? TidTag(tid) : FirstVersionTag);
}

/*
 * The row in the way of ON CONFLICT DO NOTHING may have gone since it was found, though
 * the transaction has an older snapshot (row/between.c).  Heap has it still, and
 * fails as it is not visible.
 */
static void
fail_if_gone(TupleTableSlot *slot)
{
	if (inplace_prune_between && IsolationUsesXactSnapshot() &&
		inplace_result_slot(slot) == RESULT_SLOT_RETURNING)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent update")));
}

static bool
inplace_fetch_row_version(Relation rel, ItemPointer tid, Snapshot snapshot,
						  TupleTableSlot *slot)
{
	BlockNumber blk = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber off = TidOffset(tid);
	bool		found = false;
	bool		borrowed;
	Buffer		buffer;
	Page		page;
	ItemId		lp;

	InplaceRequirePreload();
	inplace_refuse_no_place(tid);
	UndoHoldCheckScan(snapshot);

	buffer = inplace_borrow_row_page(rel, blk, &borrowed);
	inplace_lock_page(buffer, LW_SHARED);
	page = RowPage(rel, buffer);

	lp = normal_item(rel, page, blk, off);
	if (lp == NULL)
		;
	else if (snapshot->snapshot_type != SNAPSHOT_ANY)
	{
		found = fetch_visible(rel, buffer, page, blk, off, lp, snapshot, slot);

		/* a tagged TID is that of no version but one of our own */
		if (found && TidHasTag(tid) && !is_ours(tid, ((InplaceTupleTableSlot *) slot)->tag,
												((InplaceTupleTableSlot *) slot)->xmin))
		{
			ExecClearTuple(slot);
			found = false;
		}
	}
	else
	{
		RowVersion *version = inplace_scratch_version();

		found = fetch_meant(rel, buffer, page, blk, off, tid, version, slot);
		if (found)
		{
			ItemPointerData vtid;

			/*
			 * A first version's TID stays clean: a deferred unique check goes
			 * on to the index with it.
			 */
			TidSet(&vtid, blk, off);
			if (!TagIsFirst(version->info.tag) && is_trigger_slot(rel, slot))
				TidSetTagged(&vtid, blk, off, version->info.tag);
			inplace_store_tuple(slot, RelationGetRelid(rel), &vtid,
								version->tuple, version->len, &version->info,
								true);
		}
	}

	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	inplace_return_row_page(buffer, borrowed);
	if (unlikely(!found))
		fail_if_gone(slot);
	return found;
}

static bool
inplace_tuple_tid_valid(TableScanDesc scan, ItemPointer tid)
{
	return ItemPointerIsValid(tid) &&
		ItemPointerGetBlockNumber(tid) < ((InplaceScanDesc) scan)->nblocks;
}

/*
 * Is the version in the slot the one that the snapshot sees of its row?
 */
static bool
inplace_tuple_satisfies_snapshot(Relation rel, TupleTableSlot *slot,
								 Snapshot snapshot)
{
	InplaceTupleTableSlot *islot = (InplaceTupleTableSlot *) slot;
	BlockNumber blk = ItemPointerGetBlockNumber(&slot->tts_tid);
	OffsetNumber off = TidOffset(&slot->tts_tid);
	bool		result = false;
	Buffer		buffer;
	Page		page;

	Assert(TTS_IS_INPLACE(slot));

	buffer = inplace_read_row_page(rel, blk);
	inplace_lock_page(buffer, LW_SHARED);
	page = RowPage(rel, buffer);

	if (normal_item(rel, page, blk, off) != NULL)
	{
		RowVersion *version = inplace_scratch_version();

		if (inplace_fetch_version(rel, buffer, true, page, blk, off, snapshot,
								  version))
		{
			/* without it, the slot has what our transaction has just stored */
			result = islot->has_sysattrs ?
				SameVersion(version->info.tag, version->info.xmin,
							islot->tag, islot->xmin) :
				is_ours(&slot->tts_tid, version->info.tag, version->info.xmin);
		}
	}

	UnlockReleaseBuffer(buffer);
	return result;
}

/*
 * Was the row put there by another transaction than "mover"?  False if that is not
 * known, because the undo of its first version has been given back.
 */
static bool
put_by_another(Relation rel, const ItemPointerData *tid, InplaceTupleHeader tup,
			   TransactionId mover)
{
	InplaceTupleHeaderData hdr = *tup;
	UndoWalkGuard guard = {0};
	UndoRecord	rec;

	while (inplace_version_before(rel, tid, &hdr, true, &guard, &rec))
		;
	return TagIsFirst(hdr.t_tag) && !TransactionIdEquals(hdr.t_xid, mover);
}

/*
 * Follow a row through its moves; *tid becomes the last place at which the
 * scan's snapshot sees a version of it.
 */
static void
inplace_get_latest_tid(TableScanDesc sscan, ItemPointer tid)
{
	InplaceScanDesc scan = (InplaceScanDesc) sscan;
	Relation	rel = sscan->rs_rd;
	TransactionId mover = InvalidTransactionId;
	ItemPointerData cur;

	TidClean(&cur, tid);

	for (;;)
	{
		/* (a user may name what is no row's TID without its tag) */
		BlockNumber blk = ItemPointerGetBlockNumberNoCheck(&cur);
		OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(&cur);
		RowVersion *version = inplace_scratch_version();
		InplaceTupleHeader tup;
		bool		more = false;
		Buffer		buffer;
		Page		page;
		ItemId		lp;

		CHECK_FOR_INTERRUPTS();

		/* the relation may have grown since the scan began */
		if (blk >= scan->nblocks && blk >= RelationGetNumberOfBlocks(rel))
			break;

		buffer = inplace_read_row_page(rel, blk);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		page = RowPage(rel, buffer);

		lp = normal_item(rel, page, blk, off);
		if (lp == NULL)
		{
			UnlockReleaseBuffer(buffer);
			break;
		}

		/* another row may have taken the place of the one moved there */
		if (TransactionIdIsValid(mover) &&
			put_by_another(rel, &cur, (InplaceTupleHeader) PageGetItem(page, lp),
						   mover))
		{
			UnlockReleaseBuffer(buffer);
			break;
		}

		if (inplace_fetch_version(rel, buffer, true, page, blk, off,
								  sscan->rs_snapshot, version))
			*tid = cur;

		tup = (InplaceTupleHeader) PageGetItem(page, lp);
		mover = tup->t_xid;
		if ((tup->t_infomask & IP_MOVED) &&
			!(tup->t_infomask & IP_MOVED_PARTITION) &&
			inplace_xid_status(rel, tup, buffer) != XID_ABORTED)
		{
			ItemPointerData from = cur;

			more = inplace_moved_to(rel, tup, &from, &cur);
		}

		UnlockReleaseBuffer(buffer);
		if (!more)
			break;
	}
}

void
inplace_init_fetch_methods(TableAmRoutine *am)
{
	am->index_fetch_begin = inplace_index_fetch_begin;
	am->index_fetch_reset = inplace_index_fetch_reset;
	am->index_fetch_end = inplace_index_fetch_end;
	am->index_fetch_tuple = inplace_index_fetch_tuple;

	am->tuple_fetch_row_version = inplace_fetch_row_version;
	am->tuple_tid_valid = inplace_tuple_tid_valid;
	am->tuple_get_latest_tid = inplace_get_latest_tid;
	am->tuple_satisfies_snapshot = inplace_tuple_satisfies_snapshot;
}

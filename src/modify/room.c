/*-------------------------------------------------------------------------
 *
 * room.c
 *	  Room for new rows, of deleted ones that old snapshots still want.
 *
 * Rows are put where the server's RelationGetBufferForTuple says, which goes by the free
 * space map, and never changes a page to make room.  So while a snapshot is held
 *	- a transaction that deletes rows, or moves them, tells the free space map when it
 *	  commits how much there will be when the page's deleted rows have been evicted
 *	  (row/evict.c), if that is another HINT_STEP bytes more, and
 *	- before the server's function is asked, the pages that it would look at are looked at
 *	  here: deleted rows are evicted where there is not enough room, and it is led to the first
 *	  page that has enough.
 * Where there is less than the map says, because the deleter has not committed or
 * somebody else was there first, the map is put right, as the server does.  Then VACUUM, or the
 * next deletes of rows of that page, tell it again.
 *
 * Lock order: one data page, then undo pages; the free space map with nothing locked.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/hio.h"
#include "modify/room.h"
#include "page/page.h"
#include "page/tuple.h"
#include "row/evict.h"
#include "storage/freespace.h"
#include "storage/lmgr.h"
#include "vacuum/prune.h"

/* pages that are looked at for one row */
#define ROOM_MAX_TRIES		16
/* the free space map is told of so many bytes, or more of them */
#define HINT_STEP			(BLCKSZ / 8)

/*
 * Is there room on the page?  If not, make it, if it can be had.  *space: what there is in the
 * end.
 */
static bool
page_has_room(Relation rel, Buffer buffer, Size needed, Size *space)
{
	static EvictPlan plan;		/* large, and never in use twice */
	Page		page = BufferGetPage(buffer);
	bool		reserved = false;

	/* without the lock this is a hint */
	*space = PageGetHeapFreeSpace(page);
	if (PageIsNew(page))
		*space = BLCKSZ - SizeOfPageHeaderData;
	if (*space >= needed)
		return true;
	if (PageIsNew(page))
		return false;
	if (!TransactionIdIsValid(((PageHeader) page)->pd_prune_xid))
		return false;

	for (;;)
	{
		bool		planned;

		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		page = RowPage(rel, buffer);
		*space = PageGetHeapFreeSpace(page);
		if (*space < needed)
		{
			(void) inplace_page_prune(rel, buffer, GlobalVisTestFor(rel),
									  InvalidOffsetNumber);
			*space = PageGetHeapFreeSpace(page);
		}
		planned = *space < needed &&
			PageGetMaxOffsetNumber(page) < InplaceMaxTuplesPerPage &&
			inplace_plan_eviction(rel, buffer, InvalidOffsetNumber,
								  needed - *space, &plan);
		if (planned && inplace_eviction_has_room(rel, &plan))
		{
			inplace_evict(rel, buffer, &plan);
			*space = PageGetHeapFreeSpace(page);
			planned = false;
		}
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		if (!planned || reserved)
			return *space >= needed;
		reserved = true;
		if (!inplace_reserve_eviction(rel, &plan.room))
			return false;
	}
}

/*
 * What the server's function takes for enough: a page keeps what fillfactor says, unless it
 * is as good as empty.
 */
static Size
space_for(Relation rel, Size len)
{
	Size		nearly_empty = MaxHeapTupleSize -
		(MaxHeapTuplesPerPage / 8 * sizeof(ItemIdData));
	Size		needed = MAXALIGN(len) +
		RelationGetTargetPageFreeSpace(rel, HEAP_DEFAULT_FILLFACTOR);

	return needed > nearly_empty ? Max(MAXALIGN(len), nearly_empty) : needed;
}

void
inplace_find_room(Relation rel, Size len, int options, BulkInsertState bistate)
{
	BlockNumber current = RelationGetTargetBlock(rel);
	BlockNumber blk;
	Size		needed = space_for(rel, len);

	if ((options & HEAP_INSERT_SKIP_FSM) || !inplace_can_evict(rel) ||
		BulkInsertHasPages(bistate))
		return;
	if (bistate != NULL && BufferIsValid(bistate->current_buf))
		current = BufferGetBlockNumber(bistate->current_buf);

	blk = BlockNumberIsValid(current) ? current : GetPageWithFreeSpace(rel, needed);
	for (int i = 0; BlockNumberIsValid(blk) && i < ROOM_MAX_TRIES; i++)
	{
		Buffer		buffer = ReadBuffer(rel, blk);
		Size		space;
		bool		has_room = page_has_room(rel, buffer, needed, &space);

		ReleaseBuffer(buffer);
		if (has_room)
		{
			if (blk == current)
				return;
			RecordPageWithFreeSpace(rel, blk, space);
			if (bistate != NULL)
				ReleaseBulkInsertStatePin(bistate);
			RelationSetTargetBlock(rel, blk);
			return;
		}
		blk = RecordAndGetPageWithFreeSpace(rel, blk, space, needed);
	}
}

Size
inplace_room_to_come(Buffer buffer, OffsetNumber off)
{
	Page		page = BufferGetPage(buffer);
	Size		sum;
	Size		row = ItemIdGetLength(PageGetItemId(page, off));

	if (PageGetMaxOffsetNumber(page) >= InplaceMaxTuplesPerPage)
		return 0;
	sum = inplace_evictable_bytes(page);
	if (sum < HINT_STEP || sum / HINT_STEP == (sum - Min(row, sum)) / HINT_STEP)
		return 0;
	return PageGetHeapFreeSpace(page) + sum;
}

/*
 * What this transaction's commit is to tell the map.  Before that nobody could use it, and
 * the first who looks would put the map right.
 */
typedef struct RoomNote
{
	Oid			relid;
	RelFileNumber file;			/* for another it is of no use */
	BlockNumber blk;
	uint16		space;
} RoomNote;

#define ROOM_NOTES	4096

static RoomNote notes[ROOM_NOTES];
static int	nnotes = 0;

void
inplace_note_room(Relation rel, BlockNumber blk, Size space)
{
	RoomNote   *note = &notes[blk % ROOM_NOTES];

	if (note->space == 0)
		nnotes++;
	else if (note->relid == RelationGetRelid(rel) && note->blk != blk &&
			 note->file == LocatorRel(RelLocator(rel)))
		RecordPageWithFreeSpace(rel, note->blk, note->space);
	note->relid = RelationGetRelid(rel);
	note->file = LocatorRel(RelLocator(rel));
	note->blk = blk;
	note->space = space;
}

static void
forget_notes(void)
{
	if (nnotes == 0)
		return;
	memset(notes, 0, sizeof(notes));
	nnotes = 0;
}

/* may its files be touched: is it locked as it was when the rows were deleted? */
static bool
may_tell(Relation rel)
{
	return RelationIsValid(rel) && RelationIsInplace(rel) &&
		CheckRelationLockedByMe(rel, RowExclusiveLock, true);
}

/*
 * Tell the map of the table whose first note is there; its upper levels, too, for who has no
 * page to begin with looks at it from the top.
 */
static void
tell_table(int first)
{
	Oid			relid = notes[first].relid;
	Relation	rel = RelationIdGetRelation(relid);
	bool		tell = may_tell(rel);
	BlockNumber low = InvalidBlockNumber;
	BlockNumber high = 0;

	for (int i = first; i < ROOM_NOTES; i++)
	{
		RoomNote   *note = &notes[i];

		if (note->space == 0 || note->relid != relid)
			continue;
		if (tell && note->file == LocatorRel(RelLocator(rel)))
		{
			RecordPageWithFreeSpace(rel, note->blk, note->space);
			low = Min(low, note->blk);
			high = Max(high, note->blk);
		}
		note->space = 0;
		nnotes--;
	}
	if (BlockNumberIsValid(low))
		FreeSpaceMapVacuumRange(rel, low, high + 1);
	if (RelationIsValid(rel))
		RelationClose(rel);
}

static void
room_xact_callback(XactEvent event, void *arg)
{
	if (likely(nnotes == 0))
		return;
	if (event == XACT_EVENT_PRE_COMMIT)
	{
		for (int i = 0; i < ROOM_NOTES && nnotes > 0; i++)
			if (notes[i].space != 0)
				tell_table(i);
	}
	else if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
		forget_notes();
}

/*
 * The locks of what it has done go with a subtransaction that is rolled back.
 */
static void
room_subxact_callback(SubXactEvent event, SubTransactionId mySubid,
					  SubTransactionId parentSubid, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		forget_notes();
}

/* once, by the postmaster: its children inherit them */
void
RoomRegisterCallbacks(void)
{
	RegisterXactCallback(room_xact_callback, NULL);
	RegisterSubXactCallback(room_subxact_callback, NULL);
}

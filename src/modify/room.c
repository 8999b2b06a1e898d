/*-------------------------------------------------------------------------
 *
 * room.c
 *	  Room for new rows, of deleted ones that old snapshots still want.
 *
 * Rows are put where the server's RelationGetBufferForTuple says, which goes by the free
 * space map, and never changes a page to make room.  So while a snapshot is held
 *	- a transaction that deletes rows, or moves them, tells the free space map when it
 *	  commits how much there will be when the page's deleted rows have been evicted
 *	  (row/evict.c), if that is another EVICT_WORTH bytes more,
 *	- it does so, too, beside snapshots that UndoHoldersAny() does not know of, as a
 *	  standby's, a long query's or a cursor's, if it deletes many rows or they are old,
 *	- VACUUM tells it the same (vacuum.c), and
 *	- before the server's function is asked, the pages that it would look at are looked at
 *	  here: deleted rows are evicted where there is not enough room, and it is led to the first
 *	  page that has enough.
 *
 * The map is told at most once for each EVICT_WORTH bytes that a transaction deletes, and by
 * VACUUM.  Where there is less than it says, because somebody else was there first, the
 * deleter was rolled back, or undo is near its limit, it is put right, as the server does.
 * That the map may say too much is in room_told, until all see the deletes and ROOM_AFTER
 * has passed since: inserts go on looking here for so long, and prune what they are led to,
 * whether rows are still evicted or not.  After a start of the server it is taken for granted
 * if somebody from before may hold rows (UndoHoldersAtStart).
 * So nobody comes to a page twice for nothing.  And one row looks at ROOM_MAX_TRIES pages at
 * most: after that the table grows.  The server's function would look at them all.
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
#include "storage/fsm_internals.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "storage/smgr.h"
#include "undo/holders.h"
#include "undo/limit.h"
#include "utils/hsearch.h"
#include "vacuum/prune.h"

/* pages that are looked at for one row */
#define ROOM_MAX_TRIES		16
/* seconds after which VACUUM has come by, or may be waited for */
#define ROOM_AFTER			600

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
		planned = *space < needed && inplace_can_evict(rel) &&
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

/*
 * Does the map say what there is, as far as that is known?
 */
static bool
map_is_right(Relation rel)
{
	uint64		told = pg_atomic_read_u64(&undo_holders->room_told);
	uint64		until;
	TimestampTz now;

	if (inplace_evict_deleted_rows && UndoHoldersAny())
		return false;
	if (told == 0)
		return true;
	until = pg_atomic_read_u64(&undo_holders->room_until);
	if (!GlobalVisTestIsRemovableFullXid(GlobalVisTestFor(rel),
										 FullTransactionIdFromU64(told)))
	{
		if (until != 0)
			pg_atomic_write_u64(&undo_holders->room_until, 0);
		return false;
	}

	now = GetCurrentStatementStartTimestamp();
	if (until == 0)
		pg_atomic_write_u64(&undo_holders->room_until,
							(uint64) now + ROOM_AFTER * USECS_PER_SEC);
	if (until == 0 || now < (TimestampTz) until)
		return false;
	(void) pg_atomic_compare_exchange_u64(&undo_holders->room_told, &told, 0);
	return true;
}

int
inplace_find_room(Relation rel, Size len, int options, BulkInsertState bistate)
{
	BlockNumber current = RelationGetTargetBlock(rel);
	BlockNumber blk;
	Size		needed = space_for(rel, len);

	/* with the setting off there is what the map has been told before */
	if ((options & HEAP_INSERT_SKIP_FSM) || RelationUsesLocalBuffers(rel) ||
		(inplace_evict_deleted_rows && !inplace_can_evict(rel)) ||
		BulkInsertHasPages(bistate) || map_is_right(rel))
		return options;
	if (bistate != NULL && BufferIsValid(bistate->current_buf))
		current = BufferGetBlockNumber(bistate->current_buf);

	blk = BlockNumberIsValid(current) ? current : GetPageWithFreeSpace(rel, needed);
	for (int i = 0; BlockNumberIsValid(blk); i++)
	{
		Buffer		buffer;
		Size		space;
		bool		has_room;

		if (i == ROOM_MAX_TRIES)
			return options | HEAP_INSERT_SKIP_FSM;
		buffer = ReadBuffer(rel, blk);
		has_room = page_has_room(rel, buffer, needed, &space);
		ReleaseBuffer(buffer);
		if (has_room)
		{
			if (blk == current)
				return options;
			RecordPageWithFreeSpace(rel, blk, space);
			if (bistate != NULL)
				ReleaseBulkInsertStatePin(bistate);
			RelationSetTargetBlock(rel, blk);
			return options;
		}
		blk = RecordAndGetPageWithFreeSpace(rel, blk, space, needed);
	}
	return options;
}

RoomDeletes room_deletes = {0, false, 0};

/* the transaction that looked last */
static LocalTransactionId counted_lxid = InvalidLocalTransactionId;

/*
 * Does somebody hold what we delete?  A transaction that deletes many rows asks for those
 * who have just begun, too; what is deleted by many small ones goes soon beside them.
 */
void
inplace_look_who_holds(void)
{
	bool		many = counted_lxid == ProcLxid(MyProc);

	counted_lxid = ProcLxid(MyProc);
	room_deletes.since_look = 0;
	room_deletes.looked_at = GetCurrentStatementStartTimestamp();
	room_deletes.held = inplace_evict_deleted_rows && UndoOthersHold(many);
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
	if (sum < EVICT_WORTH || sum / EVICT_WORTH == (sum - Min(row, sum)) / EVICT_WORTH)
		return 0;
	return PageGetHeapFreeSpace(page) + sum;
}

/*
 * What this transaction's commit is to tell the map.  Before that nobody could use it, and
 * the first who looks would put the map right.  A table's pages are noted in pieces, with
 * their space as in the map, in units of SPACE_UNIT; zero: nothing to tell.
 */
#define ROOM_PIECE		256		/* pages */
#define SPACE_UNIT		(BLCKSZ / 256)
#define ROOM_MAX_PIECES	16384	/* what comes after these VACUUM has to tell */

typedef struct RoomKey
{
	Oid			relid;
	RelFileNumber file;			/* for another it is of no use */
	BlockNumber piece;
} RoomKey;

typedef struct RoomPiece
{
	RoomKey		key;
	uint8		space[ROOM_PIECE];
} RoomPiece;

/* of the transaction, and gone with it; NULL if there is nothing to tell */
static HTAB *pieces = NULL;
static RoomPiece *recent = NULL;	/* the one that was noted in last */

static RoomPiece *
find_piece(const RoomKey *key)
{
	RoomPiece  *piece;
	bool		found;

	if (recent != NULL && memcmp(&recent->key, key, sizeof(*key)) == 0)
		return recent;
	if (pieces == NULL)
	{
		HASHCTL		ctl;

		ctl.keysize = sizeof(RoomKey);
		ctl.entrysize = sizeof(RoomPiece);
		ctl.hcxt = TopTransactionContext;
		pieces = hash_create("room to come of inplace tables", 16, &ctl,
							 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	piece = hash_search(pieces, key,
						hash_get_num_entries(pieces) < ROOM_MAX_PIECES ?
						HASH_ENTER : HASH_FIND, &found);
	if (piece != NULL && !found)
		memset(piece->space, 0, sizeof(piece->space));
	recent = piece;
	return piece;
}

void
inplace_note_room(Relation rel, BlockNumber blk, Size space)
{
	RoomKey		key;
	RoomPiece  *piece;

	key.relid = RelationGetRelid(rel);
	key.file = LocatorRel(RelLocator(rel));
	key.piece = blk / ROOM_PIECE;
	piece = find_piece(&key);
	if (piece != NULL)
		piece->space[blk % ROOM_PIECE] = Min(space / SPACE_UNIT, PG_UINT8_MAX);
}

static void
forget_notes(void)
{
	if (pieces != NULL)
		hash_destroy(pieces);
	pieces = NULL;
	recent = NULL;
}

/*
 * May its files be touched: is it locked as it was when the rows were deleted?  And is there
 * undo to evict rows to?
 */
static bool
may_tell(Relation rel, const RoomKey *key)
{
	return RelationIsValid(rel) && RelationIsInplace(rel) &&
		CheckRelationLockedByMe(rel, RowExclusiveLock, true) &&
		key->file == LocatorRel(RelLocator(rel)) && UndoHasSpare(rel);
}

/*
 * The block of the map that has the page's space.  The blocks of the upper levels come
 * before those of the lower ones that they lead to; of the highest there is one.
 */
static BlockNumber
map_block(BlockNumber blk)
{
	BlockNumber lowest = blk / SlotsPerFSMPage;

	StaticAssertStmt(SlotsPerFSMPage >= 1626, "the map has more than three levels");
	return lowest + lowest / SlotsPerFSMPage + 2;
}

static BlockNumber
map_blocks(Relation rel)
{
	SMgrRelation reln = RelationGetSmgr(rel);

	return smgrexists(reln, FSM_FORKNUM) ? smgrnblocks(reln, FSM_FORKNUM) : 0;
}

/*
 * Tell the map, its upper levels, too, for who has no page to begin with looks at it from
 * the top.  As far as there is a map: to make it grow might fail, and the transaction has
 * done all that it was to do.  The rest VACUUM has to tell.
 */
static void
tell_piece(const RoomPiece *piece)
{
	Relation	rel;
	BlockNumber first = piece->key.piece * ROOM_PIECE;

	CHECK_FOR_INTERRUPTS();
	rel = RelationIdGetRelation(piece->key.relid);
	if (may_tell(rel, &piece->key))
	{
		BlockNumber nblocks = map_blocks(rel);

		UndoNoteRoomTold(GetTopFullTransactionId());
		for (int i = 0; i < ROOM_PIECE; i++)
			if (piece->space[i] != 0 && map_block(first + i) < nblocks)
				RecordPageWithFreeSpace(rel, first + i,
										(Size) piece->space[i] * SPACE_UNIT);
		FreeSpaceMapVacuumRange(rel, first, first + ROOM_PIECE);
	}
	if (RelationIsValid(rel))
		RelationClose(rel);
}

static void
room_xact_callback(XactEvent event, void *arg)
{
	if (likely(pieces == NULL))
		return;
	if (event == XACT_EVENT_PRE_COMMIT)
	{
		HASH_SEQ_STATUS seq;
		RoomPiece  *piece;

		hash_seq_init(&seq, pieces);
		while ((piece = hash_seq_search(&seq)) != NULL)
			tell_piece(piece);
	}
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_ABORT ||
		event == XACT_EVENT_PREPARE)
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

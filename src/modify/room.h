/*-------------------------------------------------------------------------
 *
 * room.h
 *	  Room for new rows, of deleted ones that old snapshots still want; see room.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_ROOM_H
#define INPLACE_ROOM_H

#include "inplace.h"

#include "access/hio.h"
#include "access/xact.h"
#include "row/evict.h"
#include "undo/holders.h"

/*
 * Is there a snapshot that is known to keep deleted rows?  Or may the free space map still
 * say more than there is, as it has been told what eviction brings?  Without all this costs
 * a look at two counters.
 */
static inline bool
RoomIsScarce(void)
{
	return unlikely((inplace_evict_deleted_rows && UndoHoldersAny()) ||
					pg_atomic_read_u64(&undo_holders->room_told) != 0);
}

extern int	inplace_find_room(Relation rel, Size len, int options,
							  BulkInsertState bistate);

/*
 * The page that the server's function gives is then one of which rows have been evicted,
 * if there is one.  No page is locked.  Returns the options for that function.
 */
static inline int
MakeRoom(Relation rel, Size len, int options, BulkInsertState bistate)
{
	return RoomIsScarce() ? inplace_find_room(rel, len, options, bistate) : options;
}

extern Size inplace_room_to_come(Buffer buffer, OffsetNumber off);
extern void inplace_note_room(Relation rel, BlockNumber blk, Size space);
extern void RoomRegisterCallbacks(void);

/*
 * After so many deletes a backend looks whether others hold them.  The answer is taken for
 * that of the next ones.
 */
#define ROOM_LOOK_AFTER		50

typedef struct RoomDeletes
{
	int			since_look;		/* deletes */
	bool		held;			/* what the look has told, */
	TimestampTz looked_at;		/* ... by a statement that began then */
} RoomDeletes;

/* that is true for so long, in case the next deletes come much later */
#define ROOM_LOOK_LASTS		(10 * USECS_PER_SEC)

extern RoomDeletes room_deletes;
extern void inplace_look_who_holds(void);

static inline bool
RoomDeletesAreHeld(void)
{
	return unlikely(room_deletes.held) &&
		GetCurrentStatementStartTimestamp() - room_deletes.looked_at < ROOM_LOOK_LASTS;
}

/*
 * The row at off of the locked page has been deleted, or moved: unlock it, and note what
 * the free space map is to be told.
 */
static inline void
UnlockAfterDelete(Relation rel, Buffer buffer, OffsetNumber off)
{
	Size		room = unlikely(UndoHoldersAny() || RoomDeletesAreHeld()) &&
		inplace_may_evict(rel) ? inplace_room_to_come(buffer, off) : 0;

	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	if (unlikely(++room_deletes.since_look >= ROOM_LOOK_AFTER))
		inplace_look_who_holds();
	if (room > 0)
		inplace_note_room(rel, BufferGetBlockNumber(buffer), room);
}

#endif							/* INPLACE_ROOM_H */

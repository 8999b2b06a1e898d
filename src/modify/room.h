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
#include "row/evict.h"
#include "undo/holders.h"

/*
 * Is there, besides the setting, a snapshot that keeps deleted rows?  Without one all
 * this costs a look at a counter.
 */
static inline bool
RoomIsScarce(void)
{
	return unlikely(inplace_evict_deleted_rows) && UndoHoldersAny();
}

extern void inplace_find_room(Relation rel, Size len, int options,
							  BulkInsertState bistate);

/*
 * The page that the server's function gives is then one of which rows have been evicted,
 * if there is one.  No page is locked.
 */
static inline void
MakeRoom(Relation rel, Size len, int options, BulkInsertState bistate)
{
	if (RoomIsScarce())
		inplace_find_room(rel, len, options, bistate);
}

extern Size inplace_room_to_come(Buffer buffer, OffsetNumber off);
extern void inplace_note_room(Relation rel, BlockNumber blk, Size space);
extern void RoomRegisterCallbacks(void);

/*
 * The row at off of the locked page has been deleted, or moved: unlock it, and note what
 * the free space map is to be told.
 */
static inline void
UnlockAfterDelete(Relation rel, Buffer buffer, OffsetNumber off)
{
	Size		room = RoomIsScarce() && inplace_may_evict(rel) ?
		inplace_room_to_come(buffer, off) : 0;

	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	if (room > 0)
		inplace_note_room(rel, BufferGetBlockNumber(buffer), room);
}

#endif							/* INPLACE_ROOM_H */

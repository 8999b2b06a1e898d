/*-------------------------------------------------------------------------
 *
 * append.h
 *	  Writing undo; see append.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_APPEND_H
#define INPLACE_APPEND_H

#include "inplace.h"

#include "page/tuple.h"

/*
 * What a change may write, and what is reserved for it.  It is so many records, of len
 * bytes in all.  Each may need a page of its own, unless what is left of the current
 * page is enough for len bytes.  The function that computes this from the change makes
 * an UndoRoom of it.  UndoHasRoom, with the data page locked, says that the room is
 * there.  Each UndoPrepare takes its part of it, and refuses what it does not answer
 * for, wherever the extent stands.
 */
typedef struct UndoRoom
{
	int			pages;			/* that the records take at most */
	int			records;		/* that are still to be written, */
	Size		len;			/* ... and their bytes */
	bool		images;			/* of evicted rows, in extents of their own */
	bool		there;			/* UndoHasRoom has said so */
	bool		beside;			/* besides what others may have reserved */
	uint64		written;		/* records written by then */
} UndoRoom;

/* the most pages that the room of a change takes, but for that of a rollback */
#define UNDO_SPARE_PAGES		2

static inline UndoRoom
UndoRoomFor(int records, Size len)
{
	UndoRoom	room = {records, records, len, false, false, false, 0};

	Assert(records <= UNDO_SPARE_PAGES);
	return room;
}

/*
 * For the eviction of a page's rows: the rest of the current page of images, and up to two
 * more.
 */
#define UNDO_EVICT_PAGES		2

static inline UndoRoom
UndoRoomForEviction(Size len)
{
	UndoRoom	room = {UNDO_EVICT_PAGES, UNDO_EVICT_PAGES + 1, len, true, false, false, 0};

	return room;
}

/*
 * For the rollback of a row: short records, which share pages.
 */
#define UNDO_RESTORE_PAGES		4

static inline UndoRoom
UndoRoomForRestore(int records, Size len)
{
	UndoRoom	room = {UNDO_RESTORE_PAGES, records, len, false, false, false, 0};

	return room;
}

/* what is left of the room is for these records; others turned out not to be needed */
static inline void
UndoRoomCut(UndoRoom *room, int records, Size len)
{
	room->records = Min(room->records, records);
	room->len = Min(room->len, len);
}

/*
 * Reserving, with nothing locked, what is to be written with a data page locked.
 * UndoHasRoom is for a caller that has locked the page: is that reserved?
 * UndoHasRoomBeside is for optional work.  It leaves a change's room to a caller
 * that may have it already.  UndoReserveToSpare is for the images of evicted rows, which
 * have extents of their own.  It reserves if undo is not near its limits
 * (UndoHasSpare, limit.c); UndoHasRoomToSpare asks for that, too.
 * UndoBegin is for a caller that will most likely write
 * undo: it reserves a little, if that can be had.  UndoReserveRestore is for
 * InplaceRestoreRow.  See append.c.
 */
extern bool UndoHasRoom(Relation rel, UndoRoom *room);
extern bool UndoHasRoomBeside(Relation rel, UndoRoom *room);
extern bool UndoHasRoomToSpare(Relation rel, UndoRoom *room);
extern void UndoReserve(Relation rel, const UndoRoom *room);
extern bool UndoReserveToSpare(Relation rel, const UndoRoom *room);
extern bool UndoReserveRestore(Relation rel, const UndoRoom *room,
							   bool missing_ok);
extern void UndoBegin(Relation rel);

/*
 * Writing.  UndoPrepare finds a place for len bytes in the space that belongs to
 * rel, which it takes from the caller's room, pins and exclusively locks the
 * page, and notes in shared memory that newest_xid and GetCurrentTransactionId
 * have a record there.  In the critical section UndoAppend puts the record on
 * the page and marks the buffer dirty, UndoRegister registers the buffer for
 * the WAL record, UndoSetLSN sets the page's LSN.  UndoRelease unlocks it.
 */
typedef struct UndoInsert
{
	Buffer		buffer;
	UndoPtr		ptr;			/* where the record goes */
	bool		init;			/* first record of its page */
	bool		needs_wal;		/* false for unlogged and temporary */
	bool		by_name;		/* the WAL record names the page in its data,
								 * without a block reference (log.c) */
	bool		from_page;		/* it leaves the old row to the data page
								 * (log_update.c) */
	bool		on_aborted;		/* a lock on a change that was rolled back */
} UndoInsert;

extern void UndoPrepare(Relation rel, UndoRoom *room, Size len,
						TransactionId newest_xid, UndoInsert *ui);
extern void UndoPrepareRestore(Relation rel, UndoRoom *room, Size len,
							   TransactionId newest_xid, bool on_aborted,
							   UndoInsert *ui);
extern void UndoAppend(UndoInsert *ui, const char *rec, Size len);
extern void UndoRegister(UndoInsert *ui, uint8 block_id);
extern void UndoSetLSN(UndoInsert *ui, XLogRecPtr lsn);
extern void UndoRelease(UndoInsert *ui);
extern Size UndoSpaceOnImagePage(Relation rel);
extern bool UndoOwnChangeCid(Relation rel, UndoPtr ptr, TransactionId xid,
							 CommandId *cid);

extern void UndoRegisterCallbacks(void);	/* xact and subxact, per backend */

#endif							/* INPLACE_APPEND_H */

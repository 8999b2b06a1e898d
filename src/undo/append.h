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
 * Reserving, with nothing locked, what is to be written with a data page locked.
 * It is so many records, of len bytes in all.  Each may need a page of its own,
 * unless what is left of the current page is enough for len bytes.
 * UndoHasRoom is for a caller that has locked the page: is that reserved?
 * UndoBegin is for a caller that will most likely write undo: it reserves a
 * little, if that can be had.  UndoReserveRestore is for InplaceRestoreRow.  See
 * append.c.
 */
extern bool UndoHasRoom(Relation rel, int records, Size len);
extern void UndoReserve(Relation rel, int records, Size len);
extern bool UndoReserveRestore(Relation rel, bool missing_ok);
extern void UndoBegin(Relation rel);

/*
 * A transaction makes at most INPLACE_MAX_TAG versions of a row, and restoring each may
 * take the record of a lock.
 */
#define UNDO_RESTORE_RECORDS	4

/* records that optional work leaves room for, as its caller may need them */
#define UNDO_SPARE_RECORDS		3

/*
 * Writing.  UndoPrepare finds room for a record of len bytes in the space
 * that belongs to rel, which the caller has reserved, pins and exclusively locks the
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

extern void UndoPrepare(Relation rel, Size len, TransactionId newest_xid,
						UndoInsert *ui);
extern void UndoPrepareRestore(Relation rel, Size len,
							   TransactionId newest_xid, bool on_aborted,
							   UndoInsert *ui);
extern void UndoAppend(UndoInsert *ui, const char *rec, Size len);
extern void UndoRegister(UndoInsert *ui, uint8 block_id);
extern void UndoSetLSN(UndoInsert *ui, XLogRecPtr lsn);
extern void UndoRelease(UndoInsert *ui);
extern bool UndoOwnChangeCid(Relation rel, UndoPtr ptr, TransactionId xid,
							 CommandId *cid);

extern void UndoRegisterCallbacks(void);	/* xact and subxact, per backend */

#endif							/* INPLACE_APPEND_H */

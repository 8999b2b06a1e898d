/*-------------------------------------------------------------------------
 *
 * row_lock.h
 *	  Row locks: reading them off a row, and recording them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_ROW_LOCK_H
#define INPLACE_ROW_LOCK_H

#include "inplace.h"

#include "access/multixact.h"
#include "page/tuple.h"
#include "storage/lockdefs.h"
#include "undo/append.h"
#include "undo/record.h"
#include "undo/undo.h"

struct RowCheck;

/* the heavyweight lock that a mode is, for conflicts */
extern const LOCKMODE inplace_row_lockmode[];

/* strengths: of a multixact's member, of the change that made a version */
extern bool inplace_lock_modes_conflict(LockTupleMode a, LockTupleMode b);
extern LockTupleMode inplace_member_mode(MultiXactStatus status);
extern LockTupleMode inplace_change_mode(InplaceTupleHeader tup);

/*
 * What is known of a row's lockers besides (lock_trace.c).
 */
typedef struct LockTrace
{
	bool		before;			/* those not in old[] have locked the version
								 * before the newest, too */
	uint8		undone;			/* 1 + LockTupleMode of a change that was
								 * rolled back beside the lock, or 0 */
	int			nold;
	OldLocker	old[MAX_OLD_LOCKERS];
} LockTrace;

/*
 * The lockers of a row.  Fills xid (or multi) and returns true if the row
 * has lockers recorded that may still be alive.  base is the header
 * without its lock (for a new undo record on top).
 */
typedef struct RowLockers
{
	bool		multi;
	TransactionId xid;			/* or MultiXactId */
	LockTupleMode mode;			/* the strongest */
	LockTrace	trace;
	InplaceTupleHeaderData base;
} RowLockers;

extern bool inplace_get_lockers(Relation rel, InplaceTupleHeader tup,
								BlockNumber blk, OffsetNumber off,
								RowLockers *lockers);

/* is any locker of the row other than this transaction still running? */
extern bool inplace_lockers_alive(const RowLockers *lockers);

/*
 * The lockers of the row that are alive, with ourselves in "mode" added if
 * xid is valid: *locker, *multi, *strongest.  False if there are none.
 */
extern bool inplace_compute_lockers(const struct RowCheck *rc, TransactionId xid,
									LockTupleMode mode, TransactionId *locker,
									bool *multi, LockTupleMode *strongest);

/* put lock bits for an UNDO_LOCK record at ptr on a header */
extern void inplace_header_lock_indirect(InplaceTupleHeader hdr, UndoPtr ptr,
										 bool multi, LockTupleMode mode);
extern void inplace_header_lock_direct(InplaceTupleHeader hdr,
									   TransactionId locker, bool multi,
									   LockTupleMode mode, uint8 undone);

/* an UNDO_LOCK record in dst; returns its length */
extern Size inplace_build_lock_undo(char *dst, Relation rel, BlockNumber blk,
									OffsetNumber off,
									const InplaceTupleHeaderData *base,
									TransactionId locker,
									const LockTrace *trace);

#define UNDO_LOCK_RECORD_SIZE \
	(SizeOfUndoRecordHeader + SizeOfInplaceTupleHeader + sizeof(uint32) + \
	 MAX_OLD_LOCKERS * sizeof(OldLocker))

/*
 * Would a lock of the row go to undo, and is the room for it, which is made here, not
 * reserved?  Then the page has to be unlocked first, for UndoReserve.  If the answer is
 * that it would not go there this is noted in rc, for inplace_set_row_lock.
 */
extern UndoRoom inplace_lock_room(void);
extern bool inplace_lock_lacks_undo(Relation rel, struct RowCheck *rc,
									UndoRoom *room);

/*
 * Record the lockers on the row's header, with WAL; the page is exclusively
 * locked, its visibility map page pinned if it is all-visible.  xid is the
 * locker that is new, which rc->replacer belongs to.
 */
extern void inplace_set_row_lock(Relation rel, Buffer buffer, Buffer vmbuffer,
								 OffsetNumber off, const struct RowCheck *rc,
								 UndoRoom *room, TransactionId xid,
								 TransactionId locker, bool multi,
								 LockTupleMode mode);

#endif							/* INPLACE_ROW_LOCK_H */

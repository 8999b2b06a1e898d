/*-------------------------------------------------------------------------
 *
 * walk.h
 *	  Walking back through the versions of a row; see walk.c.
 *
 * Everything here works on private copies of rows and trusts nothing: a
 * length is checked before it is used, a transaction id is compared with the
 * known limits before the commit log is asked about it, and undo is read with
 * missing_ok.  Finding corruption sets a message; it is not an error.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_INSIGHT_WALK_H
#define INPLACE_INSIGHT_WALK_H

#include "inplace.h"

#include "insight/limits.h"
#include "page/tuple.h"
#include "undo/undo.h"

typedef enum InsightUndo
{
	INSIGHT_UNDO_NONE,			/* nothing older: fresh, or a direct lock */
	INSIGHT_UNDO_UNNEEDED,		/* everybody sees this version: not followed */
	INSIGHT_UNDO_FOUND,			/* record is in walk->rec */
	INSIGHT_UNDO_MISSING,		/* not there, or another row's by now */
	INSIGHT_UNDO_BAD			/* there, but wrong: see walk->problem */
} InsightUndo;

/*
 * A walk over a row's versions, newest first.  Begin and Back stop at a
 * version and fill in everything below; "tuple" is private, MAXALIGNed, has
 * neither padding nor an indirect lock, and has been validated, its attributes
 * too if they are known.
 */
typedef struct InsightWalk
{
	Relation	rel;
	const InsightLimits *limits;
	BlockNumber block;
	OffsetNumber off;

	InplaceTupleHeader tuple;
	Size		len;
	int			version;		/* 0 is the newest */
	InsightXidStatus status;	/* of t_xid */
	bool		unknown_columns;	/* rolled back, with columns that nobody
									 * knows any more: not to be deformed */

	/* the lock on this version, if it has one */
	bool		locked;
	bool		lock_known;		/* false if its record is gone */
	bool		lock_multi;
	TransactionId locker;		/* or multixact */
	LockTupleMode lock_mode;
	UndoPtr		lock_undo;		/* its record, or invalid if direct */

	/* the way back */
	InsightUndo undo_state;
	UndoPtr		undo;			/* pointer to the record, if any */
	bool		cid_known;
	CommandId	cid;			/* of the change that made this version */
	const char *problem;		/* set if undo_state is BAD, or Back failed */

	/* private */
	int			known_natts;	/* of versions rolled back; -1: not looked for */
	uint64		steps;
	UndoPtr		landmark;		/* to notice a cycle */
	UndoRecord	rec;
	UndoRecord	lockrec;
	union
	{
		char		data[BLCKSZ];
		double		align_double;
		int64		align_int64;
	}			space[2];
} InsightWalk;

/* is this version's change visible to the MVCC snapshot? */
extern bool InsightVisible(const InsightWalk *walk, Snapshot snapshot);

/*
 * tup: a private copy of the item at (block, off), of itemlen bytes.  Begin returns
 * NULL, or what is wrong with it, and then the walk has not begun.  Back returns false if there is no older
 * version to be had: undo_state then says why, or problem what is wrong.
 */
extern const char *InsightWalkBegin(InsightWalk *walk, Relation rel,
									const InsightLimits *limits,
									BlockNumber block, OffsetNumber off,
									InplaceTupleHeader tup, Size itemlen);
extern bool InsightWalkBack(InsightWalk *walk);

/*
 * Can the lock of the version that the walk is at be somebody's?  NULL if so, else
 * what is wrong.  And the members of its multixact, none if they are of long ago.
 */
extern const char *InsightCheckLocker(const InsightWalk *walk);
extern int	InsightLockMembers(const InsightWalk *walk, MultiXactMember **members);

/* an undo pointer as 'block/offset' */
extern char *InsightUndoText(UndoPtr ptr);

#endif							/* INPLACE_INSIGHT_WALK_H */

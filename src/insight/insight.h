/*-------------------------------------------------------------------------
 *
 * insight.h
 *	  Shared by the functions that look into tables: opening, validating a
 *	  row's bytes, and walking back through its versions.
 *
 * Everything here works on private copies of rows and trusts nothing: a
 * length is checked before it is used, a transaction id is compared with the
 * known limits before the commit log is asked about it, and undo is read with
 * missing_ok.  Finding corruption sets a message; it is not an error.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_INSIGHT_H
#define INPLACE_INSIGHT_H

#include "inplace.h"

#include "page/tuple.h"
#include "undo/undo.h"

/*
 * Between which ids the commit log and the multixact log may be asked, and
 * what everybody sees.  The lower limits are read before any page is, the
 * upper ones after it (InsightLimitsRefresh), so that a concurrent VACUUM or
 * a new transaction cannot put a good id out of range.
 */
typedef struct InsightLimits
{
	TransactionId relfrozenxid;
	MultiXactId relminmxid;
	TransactionId next_xid;
	MultiXactId next_multi;
	TransactionId horizon;		/* older committed xids are seen by all */
} InsightLimits;

typedef enum InsightXidStatus
{
	INSIGHT_XID_CURRENT,		/* ours */
	INSIGHT_XID_IN_PROGRESS,
	INSIGHT_XID_COMMITTED,
	INSIGHT_XID_ABORTED,
	INSIGHT_XID_UNKNOWN			/* out of range: nobody can be asked */
} InsightXidStatus;

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

/* walk.c */
extern Relation InsightOpenTable(Oid relid, bool read_rows);
extern void InsightLimitsInit(InsightLimits *limits, Relation rel);
extern void InsightLimitsRefresh(InsightLimits *limits, Relation rel);
extern InsightXidStatus InsightGetXidStatus(const InsightLimits *limits,
											TransactionId xid,
											uint16 infomask);

/*
 * Is what lies in itemlen bytes at tup a row that can be deformed?  Returns
 * NULL and the length without padding, or what is wrong.  tup must be
 * MAXALIGNed if IP_ALIGNED.  This is enough for a version that is known to have
 * been committed.  A caller that has the row itself asks InsightWalkBegin.
 */
extern const char *InsightCheckShape(const InplaceTupleHeaderData *tup,
									 Size itemlen, Size *len);
extern const char *InsightCheckRow(TupleDesc desc, InplaceTupleHeader tup,
								   Size itemlen, Size *len);

/* all attributes of a validated row, with those that it is too short for */
extern void InsightDeform(TupleDesc desc, InplaceTupleHeader tup,
						  Datum *values, bool *isnull);

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

/*
 * links.c: call with each version of a walk and the xid that replaced it,
 * then at the end of the chain.  *links is NULL at first.  NULL, or what is
 * wrong.
 */
typedef struct InsightLink InsightLink;

extern const char *InsightCheckLinks(InsightLink **links,
									 const InsightWalk *walk,
									 TransactionId newer_xid);
extern const char *InsightCheckLinksEnd(const InsightLink *links);

/* names of lock modes, and an undo pointer as 'block/offset' */
extern char *InsightUndoText(UndoPtr ptr);

/*
 * Are all chunks of an external value there, by this snapshot?  NULL if so,
 * else what is wrong.  toastrel is open.
 */
extern const char *InsightCheckToast(Relation toastrel, Datum value,
									 Snapshot snapshot);

/*
 * check_btree.c: tell what is wrong with an index, which is a B-tree.  False if
 * that is such that it cannot even be scanned.
 */
typedef void (*InsightReport) (void *arg, const char *problem);

extern bool InsightCheckBtree(Relation table, Relation index,
							  InsightReport report, void *arg);

#endif							/* INPLACE_INSIGHT_H */

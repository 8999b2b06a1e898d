/*-------------------------------------------------------------------------
 *
 * visibility.h
 *	  Which version of a row a snapshot sees, and what state the newest is in;
 *	  see visibility.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_VISIBILITY_H
#define INPLACE_VISIBILITY_H

#include "inplace.h"

#include "access/clog.h"
#include "page/slot.h"
#include "page/tuple.h"
#include "row/target.h"
#include "row/walk.h"

/*
 * A row's version as somebody sees it, in memory of the caller.  Under the
 * page lock "tuple" may point into the page if no undo had to be applied;
 * "owned" says whether it is in "space" instead.
 */
typedef struct RowVersion
{
	InplaceTupleHeader tuple;
	Size		len;			/* without padding */
	bool		owned;
	RowVersionInfo info;
	RowImage	space[2];		/* for undo steps go back and forth */
} RowVersion;

extern RowVersion *RowVersionAlloc(void);	/* palloc'd, big: reuse it */

/*
 * The version of the row at (buffer, off) that the snapshot sees; false if
 * none.  buffer at least share-locked.  page is the buffer's page, or a copy
 * of it that the caller made under the lock (then buffer may be unlocked; it
 * is used for hint bits only if buffer_locked).
 * Works for MVCC, Self, Any (the newest version, whatever its state), Dirty
 * (sets the snapshot's xmin, xmax and speculativeToken), Toast is for heap
 * only, NonVacuumable.
 *
 * need_info: also fill xmin.. of version->info exactly (cmin, cmax may need
 * undo reads); without it only what was looked at anyway.
 * With serializable snapshots this function checks for conflicts out.  It does so
 * with the transactions that made the versions which it meets and does not see, and
 * with the one that replaced the version that is seen.
 */
extern bool inplace_fetch_version(Relation rel, Buffer buffer,
								  bool buffer_locked, Page page,
								  BlockNumber blk, OffsetNumber off,
								  Snapshot snapshot, RowVersion *version);

/*
 * The cheap common case of the above, to be tried first: returns 1 if the
 * newest version (the one on the page) is visible to this MVCC snapshot, 0
 * if the row is not visible to it in any version, -1 if it has to be
 * worked out by inplace_fetch_version.
 */
extern int	inplace_quick_visible(InplaceTupleHeader tup, Snapshot snapshot);

/*
 * Does the MVCC snapshot see the version on the page (and not an older one)?
 */
extern bool inplace_newest_visible(Relation rel, Buffer buffer, OffsetNumber off,
								   Snapshot snapshot);

/*
 * The version with this tag, walking back from the newest, rolled back ones
 * included, as far as our own transaction has to do with the row: it has made
 * the versions, or has locked or replaced the first that somebody else made.
 * false if there is none.
 */
extern bool inplace_fetch_ours(Relation rel, Buffer buffer, Page page,
							   BlockNumber blk, OffsetNumber off,
							   VersionTag tag, RowVersion *version);

/* state of a row's newest version, for pruning, vacuum and index builds */
typedef enum RowState
{
	ROW_DEAD,					/* deleted for everybody: space can go */
	ROW_LIVE,					/* committed, not deleted */
	ROW_RECENTLY_DEAD,			/* deleted, but some snapshot may see it */
	ROW_INSERT_IN_PROGRESS,		/* t_xid in progress, was an insert */
	ROW_UPDATE_IN_PROGRESS,		/* t_xid in progress, was an in-place update */
	ROW_DELETE_IN_PROGRESS,
	ROW_ABORTED_INSERT,			/* dead: aborted, nothing before it */
	ROW_ABORTED_CHANGE			/* needs InplaceRestoreRow first */
} RowState;

/*
 * Sets hint bits (buffer locked, share will do).  Cutoff: xids that precede
 * it (or pass vistest, if that is given) are gone for everybody.
 * all_visible is set if everybody sees the newest version (then undo pointer
 * and t_xid do not matter any more).
 */
extern RowState inplace_row_state(Relation rel, InplaceTupleHeader tup,
								  Buffer buffer, TransactionId oldest_xmin,
								  GlobalVisState *vistest, bool *all_visible);

extern bool inplace_commit_on_disk(TransactionId xid, Buffer buffer);
extern void inplace_set_hint(InplaceTupleHeader tup, Buffer buffer,
							 uint16 hint, TransactionId xid);

/* (XidStatus is the server's type, an int: see access/clog.h) */
enum
{
	XID_CURRENT,				/* ours (or a subtransaction of ours) */
	XID_IN_PROGRESS,
	XID_COMMITTED,
	XID_ABORTED
};

/* status of t_xid, from the hint bits if set; sets them (buffer may be
 * InvalidBuffer: no hint is set).  rel is for errors. */
extern XidStatus inplace_xid_status(Relation rel, InplaceTupleHeader tup,
									Buffer buffer);

/* the same of a copy of the header, or of an older one, of that row */
extern XidStatus inplace_copied_xid_status(Relation rel, InplaceTupleHeader hdr,
										   BlockNumber blk, OffsetNumber off);

/* the command in which our own transaction made the newest version */
extern CommandId inplace_change_cid(Relation rel, InplaceTupleHeader tup,
									BlockNumber blk, OffsetNumber off);

/* an MVCC snapshot, but not the kind of logical decoding */
#define SnapshotIsPlainMVCC(snapshot) \
	((snapshot) && (snapshot)->snapshot_type == SNAPSHOT_MVCC)

/* length of the row in an item, without its padding */
static inline Size
RowLength(InplaceTupleHeader tup, ItemId lp)
{
	Size		len = ItemIdGetLength(lp);

	return unlikely(tup->t_infomask & IP_PADDED) ?
		inplace_tuple_len(tup, len) : len;
}

/* what a row that is visible as it stands says about its version */
static inline void
RowFillInfo(InplaceTupleHeader tup, RowVersionInfo *vi)
{
	vi->xmin = tup->t_xid;
	/* as on heap, where one field holds either */
	vi->cmin = vi->cmax = HdrInsertCid(tup);
	vi->xmax = HdrHasDirectLocker(tup) ? HdrDirectLocker(tup) :
		InvalidTransactionId;
	vi->replaced = false;
	vi->tag = tup->t_tag;
}

/*
 * inplace_quick_visible, and where that gives up only because the state of
 * t_xid is not known yet, finds it out and leaves a hint.  The page must be
 * at least share-locked.  Same results.
 */
extern int	inplace_visible_slow(Relation rel, InplaceTupleHeader tup,
								 Buffer buffer, Snapshot snapshot);

static inline int
RowVisible(Relation rel, InplaceTupleHeader tup, Buffer buffer,
		   Snapshot snapshot)
{
	int			r = inplace_quick_visible(tup, snapshot);

	if (likely(r >= 0) || (tup->t_infomask & (IP_HINT_BITS | IP_FROZEN)))
		return r;
	return inplace_visible_slow(rel, tup, buffer, snapshot);
}

/*
 * Room for one version, the backend's own.  Only for use within a function
 * that runs nothing but the code of this extension in between.
 */
extern RowVersion *inplace_scratch_version(void);

/* the version meant by TARGET_FOUND or TARGET_OURS; the page is locked */
extern bool inplace_fetch_target(Relation rel, Buffer buffer,
								 const RowTarget *target, RowVersion *version);

#endif							/* INPLACE_VISIBILITY_H */

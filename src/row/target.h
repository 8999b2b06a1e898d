/*-------------------------------------------------------------------------
 *
 * target.h
 *	  Which version of a row the caller of update, delete or tuple_lock means.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_TARGET_H
#define INPLACE_TARGET_H

#include "inplace.h"

#include "access/clog.h"
#include "page/tuple.h"

/*
 * Which version the caller means.  What the executor has from tuple_lock, or from
 * a change of its own, is told by the tag in its TID; see tuple.h.
 */
typedef enum RowTargetKind
{
	TARGET_SEEN,				/* what the snapshot sees, if it is MVCC */
	TARGET_NEWEST,				/* whatever is the newest */
	TARGET_FOUND,				/* that with this tag and xmin */
	TARGET_OURS					/* that with this tag, which our transaction
								 * has locked or made */
} RowTargetKind;

typedef struct RowTarget
{
	ItemPointerData tid;		/* without tag */
	RowTargetKind kind;
	VersionTag	tag;
	TransactionId xmin;
	bool		queued;			/* has been in the queue for the newest one */
	bool		queued_old;		/* ... for this version, since replaced */
	bool		gone;			/* and what follows it, see lock_chain.c */
	Snapshot	snapshot;
} RowTarget;

/* the version that a TID of the executor, tagged or not, means */
extern void inplace_refuse_no_place(const ItemPointerData *tid);
extern void inplace_target_init(RowTarget *target, const ItemPointerData *tid,
								Snapshot snapshot);

/* is the version with this header the one the caller means? */
extern bool inplace_is_target(const RowTarget *target, InplaceTupleHeader hdr,
							  XidStatus status, CommandId cid);

/* the slot holds a version found through an index with SnapshotDirty */
extern void inplace_note_found_row(Relation rel, TupleTableSlot *slot);

/*
 * Is the row at target->tid the one that the caller of tuple_lock has just found
 * with SnapshotDirty?  Then the target is that version.
 */
extern bool inplace_target_found_row(Relation rel, const ItemPointerData *tid,
									 TupleTableSlot *slot, RowTarget *target);

#endif							/* INPLACE_TARGET_H */

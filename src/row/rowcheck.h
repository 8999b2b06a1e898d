/*-------------------------------------------------------------------------
 *
 * rowcheck.h
 *	  May this transaction change or lock this row now?  Shared by update,
 *	  delete and row locking.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_ROWCHECK_H
#define INPLACE_ROWCHECK_H

#include "inplace.h"

#include "access/clog.h"
#include "page/tuple.h"
#include "row/memory_lock.h"
#include "row/row_lock.h"
#include "row/target.h"
#include "undo/record.h"
#include "undo/undo.h"

typedef struct RowCheck
{
	XidStatus	status;			/* of the newest version */
	CommandId	cid;			/* of it, if ours */
	bool		locked;			/* lockers holds something */
	RowLockers	lockers;
	MemoryLocks memory;			/* and those that are not on the page */
	InplaceTupleHeaderData base;	/* the header without locks */
	bool		below_busy;		/* KEY SHARE under changes of others that do
								 * not matter to it: the version meant is an
								 * older one, */
	TransactionId replacer;		/* ... which this one replaced */
	/* for TM_BeingModified: begin again at once, or whom to wait for */
	bool		retry;
	TransactionId wait_xid;
	TransactionId wait_locker;	/* ... and this one */
	MultiXactId wait_multi;
	bool		own_lock;		/* we hold some lock on the row already */
	LockTupleMode own_mode;		/* the strongest of ours */
	bool		must_queue;		/* ... though nothing is in the way */
	VersionTag	queue_tag;		/* of the version whose queue to stand in */
	TransactionId queue_xid;	/* ... the transaction that made it */
	bool		old_version;	/* ... which has been replaced, as is the one
								 * that wait_xid, if valid, has locked */
	bool		nothing_older;	/* found by inplace_lock_lacks_undo */
} RowCheck;

/* the queue to stand in is that of this version */
static inline void
inplace_queue_for(RowCheck *rc, const InplaceTupleHeaderData *version)
{
	rc->queue_tag = version->t_tag;
	/* a frozen one may come back from undo without its xid */
	rc->queue_xid = (version->t_infomask & IP_FROZEN) ?
		FrozenTransactionId : version->t_xid;
}

/*
 * The page is locked, the item normal and its newest version not aborted.
 * TM_Ok: go ahead; TM_BeingModified: wait with inplace_row_wait and
 * check again.  Others: tmfd is filled.
 */
extern TM_Result inplace_row_check(Relation rel, Buffer buffer,
								   const RowTarget *target, CommandId curcid,
								   LockTupleMode mode, RowCheck *rc,
								   TM_FailureData *tmfd);

/*
 * Another transaction's change of the row is in progress, and the last such change
 * conflicts with this mode.  Returns the xid, of the transaction or of one of its
 * subtransactions, that a backend which wants the row in this mode has to wait for.
 */
extern TransactionId inplace_first_in_the_way(Relation rel,
											  const ItemPointerData *tid,
											  InplaceTupleHeader tup,
											  LockTupleMode mode);

/*
 * From the newest version's header to that of the version meant.  Returns the xid
 * that replaced it, or InvalidTransactionId if it is not found.
 */
extern TransactionId inplace_replacer_of(Relation rel, InplaceTupleHeader hdr,
										 const RowTarget *target);

/* who put the row there, as far as is known */
extern bool inplace_put_by(Relation rel, InplaceTupleHeader tup,
						   const ItemPointerData *tid, TransactionId mover);

/*
 * Nobody can need a version older than the one with this header (which has
 * no lock bits), so that the way to it may be cut off: it is the first and its
 * transaction has ended, or everybody sees it.
 *
 * "Everybody" includes the queries on standbys.  inplace_removable_here is
 * about this server only: a caller that goes by it has to put the version's xid into
 * its WAL record, for standbys to cancel the queries that do not see it, as
 * they do for heap's pruning.  inplace_cut_older does the latter if need be
 * and if the record can tell them (can_tell): then *conflict is set.
 */
extern bool inplace_nothing_older(Relation rel, InplaceTupleHeader base,
								  XidStatus status);
extern bool inplace_cut_older(Relation rel, InplaceTupleHeader base,
							  XidStatus status, bool can_tell, bool *conflict);
extern bool inplace_is_first_version(InplaceTupleHeader base, XidStatus status);
extern bool inplace_removable_here(Relation rel, InplaceTupleHeader base,
								   XidStatus status);

#endif							/* INPLACE_ROWCHECK_H */

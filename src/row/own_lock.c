/*-------------------------------------------------------------------------
 *
 * own_lock.c
 *	  The row lock that this backend took last.
 *
 * ON CONFLICT DO UPDATE, SELECT ... FOR UPDATE, BEFORE ROW triggers and
 * EvalPlanQual lock a row and update it next.  Where the lock stands in an
 * UNDO_LOCK record the update would read that back from undo, with the row's page
 * exclusively locked and others waiting for it.
 *
 * The record's place names it as long as its transaction runs, for it is not
 * discarded before.  The exception is a place that is given to another record,
 * after a subtransaction has been rolled back.  So what is here is forgotten before
 * another UNDO_LOCK record is built; no other backend writes to our undo.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/tuple.h"
#include "row/own_lock.h"
#include "row/row_lock.h"
#include "storage/proc.h"

static struct
{
	LocalTransactionId lxid;	/* of the lock's transaction, or invalid */
	RelFileLocator locator;
	BlockNumber blk;
	OffsetNumber off;
	UndoPtr		ptr;
	InplaceTupleHeaderData base;	/* the row's header without it */
	TransactionId locker;		/* or multixact */
	LockTrace	trace;
}			own_lock;

void
inplace_note_own_lock(Relation rel, BlockNumber blk, OffsetNumber off,
					  UndoPtr ptr, const InplaceTupleHeaderData *base,
					  TransactionId locker, const LockTrace *trace)
{
	own_lock.lxid = ProcLxid(MyProc);
	own_lock.locator = RelLocator(rel);
	own_lock.blk = blk;
	own_lock.off = off;
	own_lock.ptr = ptr;
	own_lock.base = *base;
	own_lock.locker = locker;
	own_lock.trace = *trace;
}

void
inplace_forget_own_lock(void)
{
	own_lock.lxid = InvalidLocalTransactionId;
}

bool
inplace_is_own_lock(Relation rel, BlockNumber blk, OffsetNumber off,
					UndoPtr ptr, TransactionId *locker, LockTrace *trace,
					InplaceTupleHeader base)
{
	if (own_lock.ptr != ptr || own_lock.blk != blk || own_lock.off != off ||
		!LocalTransactionIdIsValid(own_lock.lxid) ||
		own_lock.lxid != ProcLxid(MyProc) ||
		!RelFileLocatorEquals(own_lock.locator, RelLocator(rel)))
		return false;
	*locker = own_lock.locker;
	*trace = own_lock.trace;
	*base = own_lock.base;
	return true;
}

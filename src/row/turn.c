/*-------------------------------------------------------------------------
 *
 * turn.c
 *	  Taking turns at a row that others are changing.
 *
 * Whoever has to wait for a change of a row waits for the transaction that makes
 * it.  Where many want one row each of them waits for the same transaction: those
 * who go along the versions to the newest one (lock.c), and the first in the
 * queue of each version (rowcheck.c); and as everybody comes with another
 * version, that is nearly all.  If it were left at that all would wake up when
 * the change has been committed, to find that one was faster.
 *
 * So they take turns: a heavyweight lock that is named by the row's TID, whatever
 * the version.  Only who has that waits for the transaction.
 *
 *	- It is for those who wait for changes in progress, in a mode with which each
 *	  change conflicts (all but FOR KEY SHARE): whoever has the turn waits for
 *	  what all the others would have to wait for as well.  Who then finds
 *	  something else to wait for, which may not concern the others (a mere lock on
 *	  the row, or the place in another queue), gives the turn up before.
 *
 *	- Who has got the row keeps the turn until his (sub)transaction ends, or
 *	  until he comes to another row: the others have to wait for him anyway, and
 *	  the next one wakes up when he can have the row, not before.  An update or a
 *	  delete that finds the row changed (TM_Updated) keeps it, too, for under
 *	  READ COMMITTED the executor goes on to lock the newest version at once.
 *
 *	- Those who do not wait (NOWAIT, SKIP LOCKED) need no turn, nor do those with a
 *	  snapshot for the whole transaction, who fail when the change has been
 *	  committed; and who finds the row free does not ask for one.
 *
 * A backend has one turn at a time.  It comes after a place in the queue of a
 * version: nobody waits for such a place with a turn.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/xact.h"
#include "row/rowcheck.h"
#include "row/turn.h"
#include "utils/resowner.h"

RowTurn		inplace_turn = {false};

bool
inplace_turn_wait(Relation rel, const ItemPointerData *tid, LockTupleMode mode)
{
	ResourceOwner save = CurrentResourceOwner;
	LOCKTAG		tag;

	AssertNoPageLock();
	inplace_turn_come_to(rel, tid);
	if (inplace_turn.held)
		return false;

	SET_LOCKTAG_TUPLE(tag, rel->rd_lockInfo.lockRelId.dbId,
					  rel->rd_lockInfo.lockRelId.relId,
					  ItemPointerGetBlockNumber(tid),
					  ItemPointerGetOffsetNumber(tid));
	/* it may outlive the statement */
	CurrentResourceOwner = CurTransactionResourceOwner;
	(void) LockAcquire(&tag, inplace_row_lockmode[mode], false, false);
	CurrentResourceOwner = save;

	inplace_turn.tag = tag;
	inplace_turn.mode = inplace_row_lockmode[mode];
	inplace_turn.owner = CurTransactionResourceOwner;
	inplace_turn.held = true;
	inplace_turn.found_replaced = false;
	return true;
}

void
inplace_turn_leave(void)
{
	ResourceOwner save = CurrentResourceOwner;

	if (!inplace_turn.held)
		return;
	inplace_turn.held = false;
	CurrentResourceOwner = inplace_turn.owner;
	LockRelease(&inplace_turn.tag, inplace_turn.mode, false);
	CurrentResourceOwner = save;
}

/*
 * When a transaction has committed nobody sees it as running any more.  (Its locks
 * would go with it, but with assertions the server warns of a tuple's.)
 */
static void
turn_xact_callback(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_PRE_PREPARE)
		inplace_turn_leave();
	else if (event == XACT_EVENT_ABORT)
		inplace_turn.held = false;
}

/* ... of a subtransaction, if it is rolled back, or else to its parent */
static void
turn_subxact_callback(SubXactEvent event, SubTransactionId mySubid,
					  SubTransactionId parentSubid, void *arg)
{
	inplace_turn.found_replaced = false;
	if (!inplace_turn.held || inplace_turn.owner != CurTransactionResourceOwner)
		return;
	if (event == SUBXACT_EVENT_COMMIT_SUB)
		inplace_turn.owner = ResourceOwnerGetParent(CurTransactionResourceOwner);
	else if (event == SUBXACT_EVENT_ABORT_SUB)
		inplace_turn.held = false;
}

void
inplace_register_turn_callbacks(void)
{
	RegisterXactCallback(turn_xact_callback, NULL);
	RegisterSubXactCallback(turn_subxact_callback, NULL);
}

/*-------------------------------------------------------------------------
 *
 * turn.h
 *	  Taking turns at a row that others are changing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_TURN_H
#define INPLACE_TURN_H

#include "inplace.h"

#include "access/tableam.h"
#include "access/xact.h"
#include "nodes/lockoptions.h"
#include "storage/lock.h"

/* false if nobody else can have come before us since we were asked to wait */
extern bool inplace_turn_wait(Relation rel, const ItemPointerData *tid,
							  LockTupleMode mode);
extern void inplace_turn_leave(void);

/* for the inline functions below alone */
typedef struct RowTurn
{
	bool		held;
	LOCKTAG		tag;
	LOCKMODE	mode;
	ResourceOwner owner;
	bool		found_replaced; /* by the command that keeps it */
} RowTurn;

extern RowTurn inplace_turn;

/* a command comes to this row: the turn at another one is over */
static inline void
inplace_turn_come_to(Relation rel, const ItemPointerData *tid)
{
	if (unlikely(inplace_turn.held) &&
		(inplace_turn.tag.locktag_field2 != rel->rd_lockInfo.lockRelId.relId ||
		 inplace_turn.tag.locktag_field3 != ItemPointerGetBlockNumber(tid) ||
		 inplace_turn.tag.locktag_field4 != ItemPointerGetOffsetNumber(tid)))
		inplace_turn_leave();
}

/*
 * How an update or a delete has gone out.  Who has to look at the newest version next
 * keeps the turn for that.
 */
static inline void
inplace_turn_result(TM_Result result, ItemPointer tid, TM_FailureData *tmfd)
{
	if (likely(!inplace_turn.held))
		return;
	if (result != TM_Ok && result != TM_Updated)
		inplace_turn_leave();
	else
		inplace_turn.found_replaced = result == TM_Updated &&
			ItemPointerEquals(tid, &tmfd->ctid);
}

/*
 * Has the command that came to the row before found that the version which it
 * means has been replaced, at the row's TID?
 */
static inline bool
inplace_turn_found_replaced(void)
{
	bool		found = inplace_turn.held && inplace_turn.found_replaced;

	inplace_turn.found_replaced = false;
	return found;
}

/* once, by the postmaster: its children inherit them */
extern void inplace_register_turn_callbacks(void);

#endif							/* INPLACE_TURN_H */

/*-------------------------------------------------------------------------
 *
 * lock_queue.h
 *	  Waiting for a row.  See lock_queue.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_LOCK_QUEUE_H
#define INPLACE_LOCK_QUEUE_H

#include "inplace.h"

#include "row/rowcheck.h"
#include "row/target.h"
#include "storage/lmgr.h"

/*
 * The heavyweight lock on a version of a row, held by a backend that waits for
 * the row.
 */
typedef struct RowQueue
{
	bool		held;
	LockTupleMode mode;
	ItemPointerData place;		/* not a TID to be read, see lock_queue.c */
} RowQueue;

/*
 * Pages unlocked; returns false for LockWaitSkip if it would have to wait.  With
 * no queue (NULL) it waits without standing in one.
 */
extern bool inplace_row_wait(Relation rel, RowTarget *target,
							 const RowCheck *rc, LockTupleMode mode,
							 LockWaitPolicy policy, XLTW_Oper oper,
							 RowQueue *queue);

/*
 * Wait for the gate to the row's newest version, with no place in a queue and no
 * other gate.  To be looked at again: whether there still is something to wait for.
 */
extern void inplace_row_gate_take(Relation rel, const ItemPointerData *tid, RowQueue *gate);

/* of a queue or of a gate, if held */
extern void inplace_row_wait_done(Relation rel, RowQueue *queue);

#endif							/* INPLACE_LOCK_QUEUE_H */

/*-------------------------------------------------------------------------
 *
 * own_lock.h
 *	  The row lock that this backend took last.  See own_lock.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_OWN_LOCK_H
#define INPLACE_OWN_LOCK_H

#include "inplace.h"

#include "page/tuple.h"
#include "row/row_lock.h"

extern void inplace_note_own_lock(Relation rel, BlockNumber blk,
								  OffsetNumber off, UndoPtr ptr,
								  const InplaceTupleHeaderData *base,
								  TransactionId locker,
								  const LockTrace *trace);
extern void inplace_forget_own_lock(void);
extern bool inplace_is_own_lock(Relation rel, BlockNumber blk,
								OffsetNumber off, UndoPtr ptr,
								TransactionId *locker, LockTrace *trace,
								InplaceTupleHeader base);

#endif							/* INPLACE_OWN_LOCK_H */

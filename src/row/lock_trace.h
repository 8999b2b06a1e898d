/*-------------------------------------------------------------------------
 *
 * lock_trace.h
 *	  What a row's lock says besides its holders.  See lock_trace.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_LOCK_TRACE_H
#define INPLACE_LOCK_TRACE_H

#include "inplace.h"

#include "page/tuple.h"
#include "row/row_lock.h"
#include "row/rowcheck.h"
#include "row/target.h"
#include "undo/undo.h"

/* an UNDO_LOCK record's ur_cid */
#define TRACE_BEFORE		0x01	/* LockTrace's before */
#define TRACE_UNDONE_SHIFT	1	/* LockTrace's undone */
#define TRACE_VALID_BITS	0x0F

static inline CommandId
inplace_trace_flags(const LockTrace *trace)
{
	return (trace->before ? TRACE_BEFORE : 0) |
		(trace->undone << TRACE_UNDONE_SHIFT);
}

extern void inplace_trace_parse(const UndoRecord *rec, LockTrace *trace);
extern TransactionId inplace_trace_replacer(const RowLockers *lockers,
											TransactionId xid);
extern void inplace_trace_add(const RowCheck *rc, TransactionId locker,
							  TransactionId replacer, LockTrace *trace);
extern void inplace_trace_keep(const RowCheck *rc, LockTrace *trace);
extern void inplace_trace_restore(const RowCheck *rc,
								  const InplaceTupleHeaderData *undone,
								  LockTrace *trace);
extern bool inplace_old_version_locked(Relation rel, InplaceTupleHeader tup,
									   const RowTarget *target,
									   LockTupleMode mode, RowCheck *rc);

#endif							/* INPLACE_LOCK_TRACE_H */

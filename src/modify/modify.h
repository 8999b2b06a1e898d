/*-------------------------------------------------------------------------
 *
 * modify.h
 *	  INSERT, UPDATE, DELETE and row locks: what is in the routine.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_MODIFY_H
#define INPLACE_MODIFY_H

#include "inplace.h"

#include "page/tuple.h"

extern void inplace_tuple_insert(Relation rel, TupleTableSlot *slot,
								 CommandId cid, int options,
								 struct BulkInsertStateData *bistate);
extern void inplace_tuple_insert_speculative(Relation rel, TupleTableSlot *slot,
											 CommandId cid, int options,
											 struct BulkInsertStateData *bistate,
											 uint32 specToken);
extern void inplace_tuple_complete_speculative(Relation rel, TupleTableSlot *slot,
											   uint32 specToken, bool succeeded);
extern void inplace_multi_insert(Relation rel, TupleTableSlot **slots,
								 int nslots, CommandId cid, int options,
								 struct BulkInsertStateData *bistate);

/*
 * For rewrites: put a row with a given header (xid, flags) and no undo; used
 * by build.c.  Returns its TID.  The header's xid and infomask are kept.
 */
extern void inplace_insert_raw(Relation rel, InplaceTupleHeader tup, Size len,
							   int options,
							   struct BulkInsertStateData *bistate,
							   ItemPointer tid);

extern TM_Result inplace_tuple_delete(Relation rel, ItemPointer tid,
									  CommandId cid, Snapshot snapshot,
									  Snapshot crosscheck, bool wait,
									  TM_FailureData *tmfd, bool changingPart);
#if PG_VERSION_NUM >= 160000
extern TM_Result inplace_tuple_update(Relation rel, ItemPointer otid,
									  TupleTableSlot *slot, CommandId cid,
									  Snapshot snapshot, Snapshot crosscheck,
									  bool wait, TM_FailureData *tmfd,
									  LockTupleMode *lockmode,
									  TU_UpdateIndexes *update_indexes);
#else
extern TM_Result inplace_tuple_update(Relation rel, ItemPointer otid,
									  TupleTableSlot *slot, CommandId cid,
									  Snapshot snapshot, Snapshot crosscheck,
									  bool wait, TM_FailureData *tmfd,
									  LockTupleMode *lockmode,
									  bool *update_indexes);
#endif

/*
 * For chunks of large values: of the row that inplace_tuple_update() is called for next
 * the last "len" bytes may have moved, most by "shift".  (It has no argument for that.)
 */
typedef struct ShiftedBytes
{
	int			len;			/* or 0 */
	int			shift;
} ShiftedBytes;

extern void inplace_update_is_of_shifted(int len, int shift);

extern TM_Result inplace_tuple_lock(Relation relation, ItemPointer tid,
									Snapshot snapshot, TupleTableSlot *slot,
									CommandId cid, LockTupleMode mode,
									LockWaitPolicy wait_policy, uint8 flags,
									TM_FailureData *tmfd);

/* lock_prepare.c */
extern void InplaceRegisterLockPrepare(void);

#endif							/* INPLACE_MODIFY_H */

/*-------------------------------------------------------------------------
 *
 * change.h
 *	  What all changes of a row have in common; see change.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_CHANGE_H
#define INPLACE_CHANGE_H

#include "inplace.h"

#include "page/tuple.h"
#include "row/rowcheck.h"
#include "row/target.h"

extern bool inplace_lock_row_page(Relation rel, Buffer buffer, OffsetNumber off,
								  Buffer *vmbuffer);
extern TM_Result inplace_target_gone(const RowTarget *target,
									 TM_FailureData *tmfd);
extern TM_Result inplace_crosscheck(Relation rel, Buffer buffer,
									const RowTarget *target,
									Snapshot crosscheck, TM_FailureData *tmfd);
extern Size inplace_keep_lockers(Relation rel, BlockNumber blk,
								 OffsetNumber off, const RowCheck *rc,
								 InplaceTupleHeader hdr, UndoPtr ptr, char *dst);
extern TransactionId inplace_undo_newest(const RowCheck *rc);

/*
 * Headers equal but for hint bits and the padding flag?  That nobody was at the row
 * while its page was unlocked follows only if there is no lock in memory, either.
 */
static inline bool
same_header(const InplaceTupleHeaderData *a, const InplaceTupleHeaderData *b)
{
	InplaceTupleHeaderData x = *a;
	InplaceTupleHeaderData y = *b;

	x.t_infomask &= ~(IP_HINT_BITS | IP_PADDED);
	y.t_infomask &= ~(IP_HINT_BITS | IP_PADDED);
	return memcmp(&x, &y, SizeOfInplaceTupleHeader) == 0;
}

#endif							/* INPLACE_CHANGE_H */

/*-------------------------------------------------------------------------
 *
 * prune.h
 *	  Taking dead rows off a page; see prune.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_PRUNE_H
#define INPLACE_PRUNE_H

#include "inplace.h"

#include "undo/holders.h"

/*
 * Opportunistic: called by readers with the page pinned but not locked, as
 * heap_page_prune_opt is.
 */
extern void inplace_page_prune_opt(Relation rel, Buffer buffer);

/*
 * Prune with the page exclusively locked: rows dead to everybody become
 * LP_DEAD, aborted changes are restored, reserved space that is not needed
 * any more (IP_PADDED of committed rows) is given back, the page compacted.
 * WAL-logged.  Returns the number of rows made LP_DEAD.  off_to_keep, if
 * valid, is an item whose pointer the caller holds: it is not pruned
 * (but may be moved in the page by compaction).
 */
extern int	inplace_page_prune(Relation rel, Buffer buffer,
							   GlobalVisState *vistest,
							   OffsetNumber off_to_keep);

typedef struct PruneResult
{
	int			ndead;			/* rows made LP_DEAD or LP_UNUSED */
	int			nunused;		/* line pointers made LP_UNUSED */
	bool		modified;		/* the page was changed, with WAL if need be */
	bool		wants_undo;		/* a row was not restored for want of undo */
	int			nbetween;		/* rows found to be between two snapshots */
	TransactionId waits_for;	/* oldest deleter of a row left that all_see
								 * of the bounds has not passed */
} PruneResult;

/*
 * inplace_page_prune with more choice: rows deleted before oldest_xmin are
 * dead even if vistest does not know yet (InvalidTransactionId: ask vistest
 * alone); with bounds, so are those between two snapshots; with no_index, dead rows
 * and LP_DEAD stubs become LP_UNUSED at once.
 */
extern void inplace_prune_page(Relation rel, Buffer buffer,
							   GlobalVisState *vistest,
							   TransactionId oldest_xmin,
							   const UndoBounds *bounds, bool no_index,
							   OffsetNumber off_to_keep, PruneResult *res);

#endif							/* INPLACE_PRUNE_H */

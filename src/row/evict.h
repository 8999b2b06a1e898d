/*-------------------------------------------------------------------------
 *
 * evict.h
 *	  Deleted rows that give up their space to others; see evict.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_EVICT_H
#define INPLACE_EVICT_H

#include "inplace.h"

#include "page/tuple.h"
#include "undo/append.h"
#include "undo/record.h"

extern bool inplace_evict_deleted_rows; /* setting */

/*
 * What has to be won on a page at once.  It takes two locks of the page, up to three undo
 * pages and a WAL record, whatever it brings; and who has come for the room is to find
 * enough for several rows.
 */
#define EVICT_WORTH		(BLCKSZ / 8)

/* the rows of a page that can be evicted */
typedef struct EvictPlan
{
	int			n;
	Size		gain;			/* bytes of the page */
	UndoRoom	room;			/* what it takes */
	TransactionId newest_xid;	/* of the deletes */
	EvictedRow	rows[InplaceMaxTuplesPerPage];
} EvictPlan;

/*
 * Is it done for the table at all?  Can this process write the undo for it?  Both may
 * be asked with a page locked.
 */
extern bool inplace_may_evict(Relation rel);
extern bool inplace_can_evict(Relation rel);

/*
 * The page is locked, and has been pruned.  Which rows are there, but for off_to_keep?
 * False if they have not "needed" bytes, or less than EVICT_WORTH.  The plan holds until
 * the page is unlocked.
 */
extern bool inplace_plan_eviction(Relation rel, Buffer buffer,
								  OffsetNumber off_to_keep, Size needed,
								  EvictPlan *plan);

/* with nothing locked: have undo for that; false if it cannot be had */
extern bool inplace_reserve_eviction(Relation rel, const UndoRoom *room);

/*
 * With the page locked: is it there?  For one who writes nothing else, or beside the
 * caller's own change.
 */
extern bool inplace_eviction_has_room(Relation rel, EvictPlan *plan);

extern void inplace_evict(Relation rel, Buffer buffer, EvictPlan *plan);

/*
 * With assertions, and the setting inplace_test.evict_always: whoever reads a page, which
 * is pinned, evicts what can be, so that other tests meet evicted rows.
 */
extern void inplace_evict_in_test(Relation rel, Buffer buffer);

/* bytes that evicting all deleted rows of the page might bring, whoever deleted them */
extern Size inplace_evictable_bytes(Page page);

/*
 * What it would bring now, of rows that a transaction before deleted_before has deleted;
 * zero if it would not be done.  *newest: the newest of these transactions.
 */
extern Size inplace_evictable_now(Relation rel, Buffer buffer,
								  TransactionId deleted_before, TransactionId *newest);

#endif							/* INPLACE_EVICT_H */

/*-------------------------------------------------------------------------
 *
 * tick.h
 *	  A tick of the undo worker: what it works with, its transactions, and the
 *	  table that it restores rows of; see tick.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_TICK_H
#define INPLACE_TICK_H

#include "inplace.h"

#include "access/transam.h"
#include "undo/scan_page.h"
#include "undo/space.h"
#include "undo/undo.h"

/* how long a tick may restore aborted changes, about */
#define RESTORE_MS				500

/* after an extent could not be scanned because of an error */
#define ERROR_RETRY_MS			60000

/* what one tick of a space works with */
typedef struct UndoTick
{
	UndoKind	kind;
	Oid			undo_relid;
	Relation	undorel;		/* opened, AccessShareLock */
	UndoSpace  *space;
	TransactionId horizon;
	bool		burn;			/* something waits for an unused xid to pass */
	bool		more;			/* there is something left to restore now */
	bool		more_release;	/* extents were found, and not all looked at */
	bool		progress;		/* not all that was scanned is to wait */
	uint8	   *releasable;		/* extents that nobody is led to, as bits, */
	uint32		nreleasable;	/* ... and how many bits */
	TransactionId all_ended;	/* transactions before have ended */

	/* the relation being restored */
	RelFileLocator target_locator;
	Relation	target;
	BlockNumber target_nblocks;
	UndoScanResult target_missing;	/* what to answer if target is NULL */
	bool		target_valid;
	bool		past_horizon;	/* of the extent being scanned */
	bool		releasing;		/* not restoring: a wrong table is worse than
								 * none */
	uint64		restored;		/* since the last commit */
} UndoTick;

/* transactions; false if the tick has to end */
extern bool UndoTickBegin(UndoTick *tick);
extern bool UndoTickRenew(UndoTick *tick);
extern bool UndoTickTry(UndoTick *tick, bool (*part) (UndoTick *tick, uint32 n),
						uint32 n, bool *failed);
extern void UndoTickEnd(UndoTick *tick);

/* the table; arg is the tick */
extern Relation UndoTargetGet(Oid spc, Oid relnumber, void *arg);
extern void UndoTargetLetGo(void *arg);
extern void UndoTargetClose(UndoTick *tick);
extern void UndoTargetForgetMissing(UndoTick *tick);

/* is the extent behind the horizon of the database? */
static inline bool
UndoExtentPastHorizon(UndoTick *tick, UndoExtent *ext)
{
	TransactionId newest = pg_atomic_read_u32(&ext->newest_xid);

	return !TransactionIdIsValid(newest) ||
		TransactionIdPrecedes(newest, tick->horizon);
}

/*
 * Something can be done only when the horizon has passed xid.  If nobody has used that yet
 * the worker does, at the end of the tick (discard.c).
 */
static inline void
UndoTickWaitsFor(UndoTick *tick, TransactionId xid)
{
	if (!TransactionIdPrecedes(xid, ReadNextTransactionId()))
		tick->burn = true;
}

/* does nobody have it, who could append to it? */
static inline bool
UndoExtentIsIdle(uint32 state)
{
	return (state & EXT_STATE_MASK) == EXT_PARTIAL ||
		(state & EXT_STATE_MASK) == EXT_FULL;
}

#endif							/* INPLACE_TICK_H */

/*-------------------------------------------------------------------------
 *
 * lock_chain.h
 *	  Row locks and the versions that follow the one to be locked.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_LOCK_CHAIN_H
#define INPLACE_LOCK_CHAIN_H

#include "inplace.h"

#include "page/tuple.h"
#include "row/target.h"

typedef enum ChainVerdict
{
	CHAIN_FREE,					/* nothing in the way */
	CHAIN_BUSY,					/* somebody has to end first */
	CHAIN_GONE					/* a change in the way has committed */
} ChainVerdict;

/* where to begin */
typedef struct ChainStart
{
	ItemPointerData tid;
	const RowTarget *target;	/* the version meant there; else from the
								 * first one on, */
	TransactionId mover;		/* and this transaction has put the row there */
	bool		may_be_gone;	/* the row, from a place along the chain */
} ChainStart;

/* the lock for the places where nothing is in the way */
typedef struct ChainLock
{
	TransactionId xid;
	TransactionId replacer;		/* of the version meant */
} ChainLock;

/* no page locked */
extern ChainVerdict inplace_chain_conflict(Relation rel, const ChainStart *start,
										   LockTupleMode mode,
										   const ChainLock *lock,
										   TransactionId *xwait);

/* the row's page locked */
extern bool inplace_keys_outlive(Relation rel, InplaceTupleHeader tup,
								 const RowTarget *target);

#endif							/* INPLACE_LOCK_CHAIN_H */

/*-------------------------------------------------------------------------
 *
 * seen.h
 *	  What all snapshots see; see seen.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_SEEN_H
#define INPLACE_SEEN_H

#include "inplace.h"

#include "nodes/nodes.h"

/*
 * What all snapshots see: what precedes the limit, if there is one,
 * and had ended for a snapshot with this xmin and xmax, and xids[] in between.
 * Nothing if xmax is invalid.
 */
#define UNDO_SEEN_XIDS		512

typedef struct UndoSeen
{
	TransactionId xmin;
	TransactionId xmax;
	TransactionId limit;
	int			nxids;
	TransactionId xids[UNDO_SEEN_XIDS]; /* sorted, as numbers */
} UndoSeen;

/* while that is found out */
typedef struct UndoSeenRead
{
	uint64		count;			/* all snapshots belong to this or more ... */
	TransactionId limit;		/* ... or have no older xmin */
} UndoSeenRead;

extern Size UndoSeenShmemSize(void);
extern void UndoSeenShmemInit(void);
extern void UndoSeenEndTransaction(void);
extern void UndoSeenBeforeUtility(Node *stmt);
extern void UndoSeenOwnWorker(void);
extern void UndoSeenNote(void);
extern void UndoSeenReadBegin(UndoSeenRead *r);
extern void UndoSeenReadProcess(UndoSeenRead *r, int n, TransactionId xmin);
extern void UndoSeenReadSlots(UndoSeenRead *r, TransactionId xmin);
extern void UndoSeenReadEnd(const UndoSeenRead *r, UndoSeen *seen);

/* is a standby connected, or another physical walsender? */
extern bool UndoStandbyConnected(void);
extern bool UndoSeenByAll(const UndoSeen *seen, TransactionId xid);

#endif							/* INPLACE_SEEN_H */

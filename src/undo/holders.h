/*-------------------------------------------------------------------------
 *
 * holders.h
 *	  Which snapshots may still need an older version; see holders.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_HOLDERS_H
#define INPLACE_HOLDERS_H

#include "inplace.h"

/* more are taken for sessions that have published nothing */
#define UNDO_MAX_HOLDERS	32

/* a transaction's only snapshot, as it has published it */
typedef struct UndoHeldSnapshot
{
	TransactionId xmin;			/* sees what has committed before */
	TransactionId xmax;			/* sees nothing from here on */
} UndoHeldSnapshot;

/*
 * Every snapshot that exists or will exist sees all committed transactions
 * before all_see, or is one of held[].
 */
typedef struct UndoBounds
{
	TransactionId all_see;
	int			nheld;
	UndoHeldSnapshot held[UNDO_MAX_HOLDERS];
} UndoBounds;

/* setting inplace.squeeze_undo */
extern bool inplace_squeeze_undo;

extern Size UndoHoldersShmemSize(void);
extern void UndoHoldersShmemInit(void);
extern void UndoHoldersRegister(void);

/* by a session, about itself */
extern void UndoHoldPublish(void);
extern bool UndoHoldBeforeUtility(Node *stmt);
extern void UndoHoldSuspend(void);
extern void UndoHoldResume(void);
extern void UndoHoldCheckSnapshot(Snapshot snapshot);

/* by those who drop versions and give extents back */
extern bool UndoHoldersAny(void);
extern void UndoHoldersRead(UndoBounds *bounds);

#endif							/* INPLACE_HOLDERS_H */

/*-------------------------------------------------------------------------
 *
 * hold.h
 *	  What a session says of its snapshots; see hold.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_HOLD_H
#define INPLACE_HOLD_H

#include "inplace.h"

#include "executor/execdesc.h"

extern void UndoHoldInit(void);
extern bool UndoHoldBeforeRun(QueryDesc *queryDesc, bool some_rows);
extern void UndoHoldAfterRun(bool closed);
extern void UndoHoldNoteExport(void);
extern bool UndoHoldBeforeUtility(Node *stmt);
extern void UndoHoldSuspend(void);
extern void UndoHoldResume(void);
extern void UndoHoldCheckSnapshot(Snapshot snapshot);
extern void UndoHoldCheckScan(Snapshot snapshot);
extern void UndoHoldCheckActive(void);

#endif							/* INPLACE_HOLD_H */

/*-------------------------------------------------------------------------
 *
 * worker.h
 *	  The undo workers; see worker.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_WORKER_H
#define INPLACE_WORKER_H

#include "inplace.h"

#include "undo/space.h"

/* settings */
extern int	inplace_undo_worker_delay;
extern int	inplace_max_undo_workers;

extern void UndoWorkerRegister(void);	/* at preload: the launcher */
extern void UndoWorkerWakeup(void);
extern void UndoWorkerDetachDatabase(Oid dboid);

extern bool UndoWorkerShouldStop(void);
extern bool UndoWorkerClaim(UndoSpace *sp);
extern void UndoWorkerCheckClaim(UndoSpace *sp);

/* somebody has it, or is about to leave */
static inline bool
UndoSpaceHasWorker(UndoSpace *sp)
{
	return pg_atomic_read_u32(&sp->worker_pid) != 0;
}

/* is there anybody who starts workers? */
static inline bool
UndoWorkerMayCome(void)
{
	return undo_shared != NULL && undo_shared->launcher_latch != NULL;
}

extern PGDLLEXPORT void InplaceUndoLauncherMain(Datum arg);
extern PGDLLEXPORT void InplaceUndoWorkerMain(Datum arg);
extern void UndoWorkerReattachDatabase(Oid dboid);

#endif							/* INPLACE_WORKER_H */

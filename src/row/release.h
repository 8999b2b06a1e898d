/*-------------------------------------------------------------------------
 *
 * release.h
 *	  Which extents in the middle of undo nobody is led to any more; see
 *	  release.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_RELEASE_H
#define INPLACE_RELEASE_H

#include "inplace.h"

#include "undo/undo_rows.h"

/*
 * Set the bits of those extents in releasable, which is zeroed and has a bit
 * for each of job->nextents.  All transactions with an xid before *all_ended
 * have ended.
 */
extern bool UndoFindReleasable(const UndoReleaseJob *job, uint8 *releasable,
							   TransactionId *all_ended);

#endif							/* INPLACE_RELEASE_H */

/*-------------------------------------------------------------------------
 *
 * restore_extents.h
 *	  Restoring the aborted changes recorded in extents; see restore_extents.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_RESTORE_EXTENTS_H
#define INPLACE_RESTORE_EXTENTS_H

#include "inplace.h"

#include "undo/scan_page.h"
#include "undo/tick.h"

/* false if the tick has to end */
extern bool UndoRestoreExtents(UndoTick *tick);
extern bool UndoRestoreBlock(UndoTick *tick, BlockNumber blk,
							 UndoScanResult *result);

#endif							/* INPLACE_RESTORE_EXTENTS_H */

/*-------------------------------------------------------------------------
 *
 * discard.h
 *	  Giving undo back; see discard.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_DISCARD_H
#define INPLACE_DISCARD_H

#include "inplace.h"

#include "undo/undo.h"

typedef enum UndoXidFate
{
	UNDO_XID_RUNNING,
	UNDO_XID_ABORTED,
	UNDO_XID_DONE				/* committed, or too old to matter */
} UndoXidFate;

typedef enum UndoScanResult
{
	UNDO_SCAN_DONE,				/* nothing left to restore */
	UNDO_SCAN_LATER,			/* something was locked: try again soon */
	UNDO_SCAN_WAIT				/* a transaction has to end first */
} UndoScanResult;

/* called for each aborted change found on a page */
typedef UndoScanResult (*UndoRestoreCallback) (const UndoRecordHeader *hdr,
											   void *arg);

extern UndoScanResult UndoScanPage(Page page, BlockNumber blk,
								   UndoRestoreCallback restore, void *arg);
extern bool UndoDiscardTick(bool *in_use, bool *more);

#endif							/* INPLACE_DISCARD_H */

/*-------------------------------------------------------------------------
 *
 * scan_page.h
 *	  Looking for aborted changes on a page of undo; see scan_page.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_SCAN_PAGE_H
#define INPLACE_SCAN_PAGE_H

#include "inplace.h"

#include "undo/undo.h"

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

#endif							/* INPLACE_SCAN_PAGE_H */

/*-------------------------------------------------------------------------
 *
 * restore.h
 *	  Bringing back the version before an aborted change, on the page; see
 *	  restore.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_RESTORE_H
#define INPLACE_RESTORE_H

#include "inplace.h"

#include "undo/append.h"

/*
 * InplaceRestoreRow: buffer is exclusively locked, its visibility map page
 * pinned if the page is all-visible (an aborted change is never there on an
 * all-visible page, so this does not arise).  Restores the row at off until
 * its newest version is not aborted; an aborted insert becomes LP_DEAD.
 * With an aborted bare delete (page/tuple.h) those of other rows of the page
 * are taken back, too.  Returns true if it changed anything.  A row with a lock that
 * stays may take undo.  A caller that must restore it asks InplaceRestoreNeedsUndo,
 * which makes the room for that, and if so unlocks the page, calls UndoReserveRestore and
 * looks again.  Without a room such a row is left alone if there is no undo reserved.
 *
 * InplaceRestoreTid: for the worker and for tests: locks the page itself and
 * restores the row if its newest version is an aborted change (by anybody).
 */
extern bool InplaceRestoreRow(Relation rel, Buffer buffer, OffsetNumber off,
							  UndoRoom *room);
extern bool InplaceRestoreNeedsUndo(Relation rel, Buffer buffer,
									OffsetNumber off, UndoRoom *room);
extern UndoRoom InplaceRestoreRoom(void);
extern bool InplaceRestoreTid(Relation rel, BlockNumber block, OffsetNumber off);

/*
 * Bring the rows of a pinned, unlocked page whose newest version is
 * an aborted change back to what they were.  Some may have to be left as they
 * are in a parallel query (restore.c): an error with "must".
 */
extern void inplace_restore_page(Relation rel, Buffer buffer, bool must);

#endif							/* INPLACE_RESTORE_H */

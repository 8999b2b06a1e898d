/*-------------------------------------------------------------------------
 *
 * undo_rows.h
 *	  What undo wants of the rows that it keeps versions of.
 *
 * Undo stands below rows and knows nothing of them.  To discard, it needs
 * two things done with them, as the server needs redo of a resource
 * manager.  A third is for pg_upgrade.  They are set when the extension is loaded.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_UNDO_ROWS_H
#define INPLACE_UNDO_ROWS_H

#include "inplace.h"

#include "undo/space.h"

typedef struct UndoReleaseJob
{
	UndoKind	kind;
	UndoSpace  *space;
	uint32		nextents;		/* those beyond are not looked at */
	Relation	undorel;
	TransactionId horizon;

	/*
	 * The inplace table with that storage, or NULL.  It stays open until
	 * another one is opened or close is called.
	 */
	Relation	(*open) (Oid spc, Oid relnumber, void *arg);
	void		(*close) (void *arg);
	void	   *arg;
} UndoReleaseJob;

typedef struct UndoRows
{
	/*
	 * Bring back the version before an aborted change.  True if the row was
	 * changed.
	 */
	bool		(*restore) (Relation rel, BlockNumber block, OffsetNumber off);

	/* Find the extents in the middle of undo that nobody is led to. */
	bool		(*find_releasable) (const UndoReleaseJob *job, uint8 *releasable,
									TransactionId *all_ended);

	/*
	 * Settle, outside of a transaction, what pg_upgrade has left open.  False
	 * if some of it has to be tried again at once.  If *failed there were
	 * errors, which are reported: it is tried again later.
	 */
	bool		(*after_upgrade) (bool *failed);
} UndoRows;

extern const UndoRows *undo_rows;

#endif							/* INPLACE_UNDO_ROWS_H */

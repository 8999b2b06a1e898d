/*-------------------------------------------------------------------------
 *
 * log_move.h
 *	  The record of an update that moves its row; see log_move.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_LOG_MOVE_H
#define INPLACE_LOG_MOVE_H

#include "inplace.h"

#include "page/delta.h"
#include "page/tuple.h"
#include "undo/append.h"
#include "wal/logical.h"

typedef struct MoveRecord
{
	Relation	rel;
	Buffer		oldbuf;
	OffsetNumber oldoff;
	Buffer		newbuf;			/* may be the same */
	OffsetNumber newoff;
	bool		init_page;		/* the new row is all there is on its page */
	bool		clear;			/* bits of the visibility map of the new page, */
	bool		clear_old;		/* ... of the old one, if it is another */
	UndoInsert *ui;
	const char *undo;			/* the move's record, of change_len bytes, and */
	Size		change_len;		/* ... then those of locks that are kept */
	Size		undo_len;
	const InplaceTupleHeaderData *base; /* the old version's, without locks */
	const DeltaEdits *edits;	/* between the old row and the new one */
	const LogicalChange *lc;	/* or NULL */
} MoveRecord;

/*
 * The data of block 0, valid until the next call.  Sets *compact if they stand for the
 * undo and for the old row's header, too.  The pages have been changed, and that of
 * undo is locked.
 */
extern const char *inplace_move_data(const MoveRecord *m, Size *len, bool *compact);

#endif							/* INPLACE_LOG_MOVE_H */

/*-------------------------------------------------------------------------
 *
 * found_row.h
 *	  The version of a row that was found with SnapshotDirty.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_FOUND_ROW_H
#define INPLACE_FOUND_ROW_H

#include "inplace.h"

#include "row/target.h"

/* the slot holds a version found through an index with SnapshotDirty */
extern void inplace_note_found_row(Relation rel, TupleTableSlot *slot);

/*
 * Is the row at target->tid the one that the caller of tuple_lock has just found
 * with SnapshotDirty?  Then the target is that version.
 */
extern bool inplace_target_found_row(Relation rel, const ItemPointerData *tid,
									 TupleTableSlot *slot, RowTarget *target);

#endif							/* INPLACE_FOUND_ROW_H */

/*-------------------------------------------------------------------------
 *
 * toast.h
 *	  Large values; see toast.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_TOAST_H
#define INPLACE_TOAST_H

#include "inplace.h"

#include "nodes/bitmapset.h"
#include "page/tuple.h"

/*
 * Which values a rewrite has put where (chunk_copies.c), for versions of one row or of
 * all that are moved: begin, say of each version whether it is its row's newest, end.
 * At the end are deleted those that no newest version has.
 */
typedef struct ValueCopies ValueCopies;

extern ValueCopies *inplace_copies_begin(MemoryContext cxt);
extern void inplace_copies_set_newest(ValueCopies *copies, bool newest);
extern bool inplace_copies_of_newest(const ValueCopies *copies);
extern void inplace_copies_end(ValueCopies *copies, Relation rel);

/*
 * Compress and move out the large values of a row that is inserted so that it fits;
 * returns the formed tuple (palloc'd).  copies is for a rewrite, or NULL.  Then the result
 * is NULL if the version is not a row's newest and its values in a TOAST table of ours
 * are gone.
 */
extern InplaceTupleHeader inplace_toast_insert(Relation rel, TupleTableSlot *slot,
											   Size *len, int options,
											   ValueCopies *copies);

/*
 * The same for an update, in steps.  old is the version that it replaces (its unchanged
 * external values are kept); oldtid names it in errors.  Both and the slot have to stay.
 *
 * in_line() compresses, and stores nothing; true if the row fits then.  So the row that is
 * replaced need not be locked for it, if the new one has no external value but those of the
 * old one.  finish() does what is left to do, if anything, and lets go of all, as forget().
 */
typedef struct Toasting Toasting;

extern Toasting *inplace_toast_begin(Relation rel, TupleTableSlot *slot,
									 InplaceTupleHeader old,
									 const ItemPointerData *oldtid);
extern bool inplace_toast_in_line(Toasting *toasting);
extern InplaceTupleHeader inplace_toast_finish(Toasting *toasting, Size *len);
extern void inplace_toast_forget(Toasting *toasting);

/*
 * Delete the external values of "gone" that "kept" does not have too; "unused"
 * if this command has written them itself, for nothing (a command cannot
 * delete what it has inserted).  tid names the row in errors.
 */
extern void inplace_toast_delete_replaced(Relation rel, InplaceTupleHeader gone,
										  InplaceTupleHeader kept,
										  const ItemPointerData *tid,
										  bool unused);

/*
 * Have the large values of a version that may be nobody's by now in memory, of these columns
 * (from FirstLowInvalidHeapAttributeNumber on): then they cannot go meanwhile.  False if one
 * is gone.  Only those in TOAST tables of ours are looked at.
 */
extern bool inplace_toast_hold_values(TupleTableSlot *slot, const Bitmapset *attrs);

/*
 * Delete the external values of a row that is gone; tid names it in errors.
 */
extern void inplace_toast_delete(Relation rel, InplaceTupleHeader old,
								 const ItemPointerData *tid,
								 bool is_speculative);

#endif							/* INPLACE_TOAST_H */

/*-------------------------------------------------------------------------
 *
 * compare.h
 *	  What an update changes: which columns, and which bytes.  Are two values the
 *	  same?
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_COMPARE_H
#define INPLACE_COMPARE_H

#include "inplace.h"

#include "nodes/bitmapset.h"
#include "page/delta.h"
#include "page/tuple.h"

typedef struct RowDiff
{
	DeltaEdits	edits;			/* offsets from the end of the fixed header */
	bool		same_size;		/* every edit keeps its length */
	int			natts;
	bool		changed[MaxTupleAttributeNumber];
} RowDiff;

/* oldlen and newlen without padding; false if the old row is damaged */
extern bool inplace_diff_rows(TupleDesc desc, InplaceTupleHeader oldtup,
							  Size oldlen, InplaceTupleHeader newtup,
							  Size newlen, RowDiff *diff);

/*
 * The rows end with "len" bytes of a large value, which may have moved, most of them by
 * "shift": a shorter diff of them, if there is one.
 */
extern void inplace_diff_moved(InplaceTupleHeader oldtup, Size oldlen,
							   InplaceTupleHeader newtup, Size newlen, int len,
							   int shift, RowDiff *diff);

/* does the update change one of these columns (RelationGetIndexAttrBitmap)? */
extern bool inplace_diff_overlaps(const RowDiff *diff, const Bitmapset *attrs);

/*
 * All comparisons of values byte by byte: by length.  What is above a by-value
 * type's own bytes in a Datum is as a function has left it, so the server's
 * datumIsEqual() and datum_image_eq() are not for values of different origin.
 */
extern bool inplace_same_stored(Datum a, Datum b, bool byval, int16 len);
extern bool inplace_same_value(Datum a, Datum b, bool byval, int16 len);

#endif							/* INPLACE_COMPARE_H */

/*-------------------------------------------------------------------------
 *
 * compare.h
 *	  What an update changes: which columns, and which bytes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_COMPARE_H
#define INPLACE_COMPARE_H

#include "nodes/bitmapset.h"
#include "table/tuple.h"
#include "undo/delta.h"

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

/* does the update change one of these columns (RelationGetIndexAttrBitmap)? */
extern bool inplace_diff_overlaps(const RowDiff *diff, const Bitmapset *attrs);

#endif							/* INPLACE_COMPARE_H */

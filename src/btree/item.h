/*-------------------------------------------------------------------------
 *
 * item.h
 *	  Entries of a btree.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_ITEM_H
#define INPLACE_ITEM_H

#include "inplace.h"

#include "access/nbtree.h"

/* an entry without its TIDs, or with its only one */
static inline Size
entry_key_size(IndexTuple itup)
{
	return BTreeTupleIsPosting(itup) ? BTreeTupleGetPostingOffset(itup) :
		IndexTupleSize(itup);
}

static inline bool
entries_identical(IndexTuple a, IndexTuple b)
{
	Size		size = entry_key_size(a);

	return entry_key_size(b) == size &&
		IndexTupleHasNulls(a) == IndexTupleHasNulls(b) &&
		memcmp((char *) a + sizeof(IndexTupleData),
			   (char *) b + sizeof(IndexTupleData),
			   size - sizeof(IndexTupleData)) == 0;
}

#endif							/* INPLACE_ITEM_H */

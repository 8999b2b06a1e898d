/*-------------------------------------------------------------------------
 *
 * dedup.h
 *	  What nbtree's deduplication would make of a leaf page; see dedup.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_DEDUP_H
#define INPLACE_DEDUP_H

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

extern bool inplace_index_deduplicates(Relation index);
extern bool dedup_makes_room(Page page, Size bottomup_target);

#endif							/* INPLACE_DEDUP_H */

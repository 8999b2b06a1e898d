/*-------------------------------------------------------------------------
 *
 * dedup.h
 *	  What nbtree's deduplication would make of a leaf page; see dedup.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_DEDUP_H
#define INPLACE_DEDUP_H

#include "inplace.h"

#include "access/nbtree.h"

extern bool inplace_index_deduplicates(Relation index);
extern bool dedup_makes_room(Page page, Size bottomup_target);

#endif							/* INPLACE_DEDUP_H */

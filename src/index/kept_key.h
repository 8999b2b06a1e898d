/*-------------------------------------------------------------------------
 *
 * kept_key.h
 *	  Does an update keep the key of an index?  See kept_key.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_KEPT_KEY_H
#define INPLACE_KEPT_KEY_H

#include "inplace.h"

#include "page/tuple.h"

extern bool inplace_index_keeps(Relation index);
extern Bitmapset *inplace_kept_key_columns(Relation index);
extern bool inplace_key_is_kept(Relation table, Relation index,
								InplaceTupleHeader old, Size len,
								TupleTableSlot *slot, ItemPointer tid);

#endif							/* INPLACE_KEPT_KEY_H */

/*-------------------------------------------------------------------------
 *
 * squeeze.h
 *	  Dropping versions that no snapshot can see; see squeeze.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_SQUEEZE_H
#define INPLACE_SQUEEZE_H

#include "inplace.h"

#include "page/tuple.h"
#include "undo/append.h"

/*
 * In the place of UndoLinkPut: makes base lead to the versions that are
 * needed and to no others, if that is worth it.  False if there is reason to put
 * links instead.
 */
extern bool UndoSqueeze(Relation rel, BlockNumber block, OffsetNumber off,
						InplaceTupleHeader tup, Size len,
						InplaceTupleHeader base, UndoRoom *room);

#endif							/* INPLACE_SQUEEZE_H */

/*-------------------------------------------------------------------------
 *
 * log_gin.h
 *	  Changes of the leaf pages of a GIN index's entry tree; see log_gin.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_LOG_GIN_H
#define INPLACE_LOG_GIN_H

#include "inplace.h"

#include "access/itup.h"
#include "storage/buf.h"

extern IndexTuple inplace_gin_entry_with(IndexTuple itup, const ItemPointerData *tid,
										 bool *there);
extern void inplace_log_gin_add(Relation index, Buffer buffer, OffsetNumber off,
								const ItemPointerData *tid);
extern void inplace_log_gin_entries(Relation index, Buffer buffer);

#endif							/* INPLACE_LOG_GIN_H */

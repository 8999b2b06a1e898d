/*-------------------------------------------------------------------------
 *
 * btree_handler.h
 *	  Is an index one of ours?
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_BTREE_HANDLER_H
#define INPLACE_BTREE_HANDLER_H

#include "inplace.h"

#include "access/amapi.h"

extern bool inplace_index_is_btree(Relation index);
extern bool inplace_index_class_takes(Relation index);
extern const IndexAmRoutine *inplace_nbtree_routine(void);

#endif							/* INPLACE_BTREE_HANDLER_H */

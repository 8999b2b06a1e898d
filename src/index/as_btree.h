/*-------------------------------------------------------------------------
 *
 * as_btree.h
 *	  An inplace_btree index that nbtree is to take for one of its own; see
 *	  as_btree.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_AS_BTREE_H
#define INPLACE_AS_BTREE_H

#include "inplace.h"

/* a call during which an index says that it is a btree */
typedef struct ActsAsBtree
{
	Relation	index;
	Oid			relam;			/* what it is */
	struct ActsAsBtree *outer;
} ActsAsBtree;

extern void inplace_act_as_btree(ActsAsBtree *as, Relation index);
extern void inplace_act_as_itself(ActsAsBtree *as);

/* what pg_class says, and nothing else */
extern void inplace_index_set_relam(Oid indexid, Oid am);

#endif							/* INPLACE_AS_BTREE_H */

/*-------------------------------------------------------------------------
 *
 * heap_readers.h
 *	  Functions of others that take every page for heap's; see heap_readers.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_HEAP_READERS_H
#define INPLACE_HEAP_READERS_H

#include "inplace.h"

extern void inplace_heap_readers_init(void);
extern uint64 inplace_relation_size(Relation rel, ForkNumber fork);

#endif							/* INPLACE_HEAP_READERS_H */

/*-------------------------------------------------------------------------
 *
 * insert_info.h
 *	  What inserting into an index of another method needs to know; see
 *	  insert_info.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_INSERT_INFO_H
#define INPLACE_INSERT_INFO_H

#include "inplace.h"

#include "nodes/execnodes.h"

struct GinState;
struct GISTSTATE;

extern IndexInfo *inplace_insert_info(Relation index);
extern struct GinState *inplace_gin_state(Relation index);
extern struct GISTSTATE *inplace_gist_state(Relation index);

#endif							/* INPLACE_INSERT_INFO_H */

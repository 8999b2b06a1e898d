/*-------------------------------------------------------------------------
 *
 * gist_prune.h
 *	  Entries of former keys on a leaf page of a GiST index that is full; see
 *	  gist_prune.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_GIST_PRUNE_H
#define INPLACE_GIST_PRUNE_H

#include "inplace.h"

#include "access/gist_private.h"

extern bool inplace_gist_can_prune(Relation index, const GISTSTATE *state);
extern XLogRecPtr inplace_gist_prune(Relation table, Relation index, GISTSTATE *state,
									 BlockNumber blk, Page copy);

#endif							/* INPLACE_GIST_PRUNE_H */

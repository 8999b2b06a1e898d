/*-------------------------------------------------------------------------
 *
 * shorten.h
 *	  Making the file of a btree shorter; see shorten.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_SHORTEN_H
#define INPLACE_SHORTEN_H

#include "inplace.h"

#include "access/genam.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

typedef struct Shortening Shortening;

extern bool inplace_can_shorten(Relation index);
extern bool inplace_index_is_locked(Relation index);
extern void inplace_correct_free_pages(Relation index, BufferAccessStrategy bstrategy);
extern Shortening *inplace_shorten_prepare(Relation index, BlockNumber target,
										   BufferAccessStrategy bstrategy);
extern BlockNumber inplace_shorten_index(Shortening *s, IndexBulkDeleteResult *istat,
										 BlockNumber *moved);

#endif							/* INPLACE_SHORTEN_H */

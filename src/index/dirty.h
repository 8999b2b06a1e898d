/*-------------------------------------------------------------------------
 *
 * dirty.h
 *	  The key of a row that SnapshotDirty has found; see dirty.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_DIRTY_H
#define INPLACE_DIRTY_H

#include "inplace.h"

#include "index/entry.h"
#include "index/index_fetch.h"
#include "page/tuple.h"

struct DirtyVersion;

extern KeyMatch inplace_dirty_compare(Relation rel, const FetchedEntry *entry,
									  BlockNumber blk, OffsetNumber off,
									  InplaceTupleHeader tup, Size len,
									  Snapshot snapshot,
									  struct DirtyVersion **versions);
extern bool inplace_dirty_settle(Relation rel, const FetchedEntry *entry,
								 BlockNumber blk, OffsetNumber off,
								 Snapshot snapshot, struct DirtyVersion *versions);

#endif							/* INPLACE_DIRTY_H */

/*-------------------------------------------------------------------------
 *
 * cluster.h
 *	  What rewrites (cluster.c) know of moved rows (cluster_moves.c), and how
 *	  they end (finish_insert.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_CLUSTER_H
#define INPLACE_CLUSTER_H

#include "inplace.h"

#include "page/tuple.h"
#include "storage/bufpage.h"

typedef struct MoveLinks MoveLinks;

/* a copy of the block without aborted changes; the buffer is pinned */
typedef Page (*ClusterLoadBlock) (void *state, Buffer buffer,
								  BlockNumber blk);

/*
 * Find the rows that others have moved to, in a table under
 * AccessExclusiveLock.  NULL, which the other functions take for "there are
 * none", if nobody can need the links.
 */
extern MoveLinks *inplace_cluster_find_moves(Relation old,
											 TransactionId oldest_xmin,
											 ClusterLoadBlock load,
											 void *load_state);

/* does a moved row lead to this one, in the old table? */
extern bool inplace_cluster_is_moved_to(MoveLinks *links, ItemPointer old_tid);

/* A row has been written: note its TID if one has moved to it. */
extern void inplace_cluster_note_row(MoveLinks *links, ItemPointer old_tid,
									 ItemPointer new_tid);

/*
 * Delete the row written at new_tid as the row old_tup of the old table was,
 * with hdr's xid, flags and tag, now or in inplace_cluster_finish_moves.  False
 * if it was not moved, or nobody needs to know where to.
 */
extern bool inplace_cluster_delete_moved(MoveLinks *links, Relation new,
										 InplaceTupleHeader old_tup,
										 ItemPointer old_tid,
										 const InplaceTupleHeaderData *hdr,
										 ItemPointer new_tid);

/* All rows have been written: do what is left, and free links. */
extern void inplace_cluster_finish_moves(MoveLinks *links, Relation new);
extern void inplace_cluster_free_moves(MoveLinks *links);

/* ---------------- finish_insert.c ---------------- */

extern void inplace_drop_empty_tail(Relation rel);
extern void inplace_finish_bulk_insert(Relation rel, int options);

#endif							/* INPLACE_CLUSTER_H */

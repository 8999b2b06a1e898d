/*-------------------------------------------------------------------------
 *
 * cluster_push.h
 *	  Putting the versions of a row on each other, for rewrites; see
 *	  cluster_push.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_CLUSTER_PUSH_H
#define INPLACE_CLUSTER_PUSH_H

#include "inplace.h"

#include "page/tuple.h"
#include "undo/undo.h"

/*
 * Push the version "newer" on top of the row at tid, as a
 * committed transaction's in-place change (an UNDO_UPDATE record by
 * newer->t_xid), or, with IP_DELETED in it, an UNDO_DELETE one, or, with
 * IP_MOVED as well, an UNDO_MOVE one that leads to moved_to (else NULL).
 */
extern void inplace_push_version_raw(Relation rel, ItemPointer tid,
									 InplaceTupleHeader newer, Size len,
									 const ItemPointerData *moved_to,
									 const UndoReplaced *replaced);

#endif							/* INPLACE_CLUSTER_PUSH_H */

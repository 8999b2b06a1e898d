/*-------------------------------------------------------------------------
 *
 * link.h
 *	  Links past older versions; see link.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_LINK_H
#define INPLACE_LINK_H

#include "inplace.h"

#include "page/tuple.h"
#include "undo/append.h"

/*
 * UndoLinkPut: the row tup (len bytes without padding), on an exclusively locked
 * page, is about to be replaced by one with header newer (xid and tag).  base
 * is its own header without lock, by a committed transaction, with older
 * versions that somebody may need.  If it is time for it, puts links under it, to
 * which base leads afterwards.  The caller has reserved a record of any length for that,
 * besides its own.
 *
 * UndoLinkIsDue: may it be time, for a new version by that xid and with that tag?
 */
extern bool UndoLinkIsDue(TransactionId xid, VersionTag tag);
extern void UndoLinkPut(Relation rel, BlockNumber block, OffsetNumber off,
						InplaceTupleHeader tup, Size len,
						const InplaceTupleHeaderData *newer,
						InplaceTupleHeader base, UndoRoom *room);

#endif							/* INPLACE_LINK_H */

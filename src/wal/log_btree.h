/*-------------------------------------------------------------------------
 *
 * log_btree.h
 *	  The records of changes to the pages of a btree, and the changes
 *	  themselves; see log_merge.c and log_relocate.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_LOG_BTREE_H
#define INPLACE_LOG_BTREE_H

#include "inplace.h"

#include "access/itup.h"

/* log_merge.c */
extern bool inplace_page_merge(Page result, Page right, const char *entries,
							   Size len);
extern void inplace_page_make_half_dead(Page page, BlockNumber prev,
										BlockNumber next);
extern void inplace_page_drop_downlink(Page page, OffsetNumber off,
									   BlockNumber right);
extern bool inplace_page_cut(Page result, Page left, IndexTuple hikey,
							 OffsetNumber first);
extern bool inplace_page_rekey_downlink(Page page, OffsetNumber off,
										IndexTuple hikey, BlockNumber right);
extern void inplace_log_merge(Buffer right, Buffer left, Buffer parent,
							  OffsetNumber off, BlockNumber prev,
							  const char *entries, Size len);
extern void inplace_log_shift(Buffer right, Buffer left, Buffer parent,
							  OffsetNumber off, OffsetNumber first,
							  IndexTuple hikey, const char *entries, Size len);

/* log_relocate.c */

/* a page's way to another block: buffers that are locked, or InvalidBuffer */
typedef struct PageMove
{
	Buffer		to;
	Buffer		from;
	Buffer		left;			/* its siblings */
	Buffer		right;
	Buffer		parent;
	Buffer		meta;			/* if that leads to it */
	OffsetNumber off;			/* of the downlink in the parent */
	FullTransactionId safexid;	/* of the deleted page that it leaves */
} PageMove;

extern void inplace_page_copy(Page to, Page from);
extern void inplace_page_make_deleted(Page page, BlockNumber to,
									  FullTransactionId safexid);
extern void inplace_page_set_downlink(Page page, OffsetNumber off, BlockNumber to);
extern void inplace_page_set_root(Page page, BlockNumber from, BlockNumber to);
extern void inplace_log_relocate_room(void);
extern void inplace_log_relocate(const PageMove *move);

#endif							/* INPLACE_LOG_BTREE_H */

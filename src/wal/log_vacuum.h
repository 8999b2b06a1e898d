/*-------------------------------------------------------------------------
 *
 * log_vacuum.h
 *	  The records of pruning and VACUUM, and the page changes that they stand
 *	  for; see log_vacuum.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_LOG_VACUUM_H
#define INPLACE_LOG_VACUUM_H

#include "inplace.h"

#include "page/page.h"
#include "page/tuple.h"

/*
 * One function a record; all are called inside the critical
 * section with the buffers locked and the changes made, and set the pages'
 * LSNs.
 */
extern void inplace_log_prune(Relation rel, Buffer buffer,
							  TransactionId horizon,
							  const OffsetNumber *dead, int ndead,
							  const OffsetNumber *unused, int nunused,
							  const OffsetNumber *trim /* pairs */ , int ntrim);
extern void inplace_log_vacuum(Relation rel, Buffer buffer,
							   const OffsetNumber *unused, int nunused);
extern void inplace_log_freeze(Relation rel, Buffer buffer,
							   TransactionId horizon,
							   const OffsetNumber *freeze, int nfreeze,
							   const OffsetNumber *unlock,
							   const InplaceTupleHeaderData *unlocked, int nunlock);
extern void inplace_log_swept(Relation rel, Buffer buffer,
							  TransactionId horizon, TransactionId swept,
							  const OffsetNumber *mark, int nmark,
							  const OffsetNumber *clear, int nclear);
extern void inplace_log_others_begin(Relation undorel, Buffer meta,
									 TransactionId xid);
extern XLogRecPtr inplace_log_visible(Relation rel, Buffer buffer,
									  Buffer vmbuffer, TransactionId horizon,
									  uint8 flags);

/*
 * The page changes themselves, shared by do and redo.  "items": what inplace_check_items() has
 * found, with nothing changed since; NULL: not looked for yet.
 */
extern void inplace_page_apply_prune(Page page,
									 const OffsetNumber *dead, int ndead,
									 const OffsetNumber *unused, int nunused,
									 const OffsetNumber *trim, int ntrim,
									 PageItems *items);
extern void inplace_page_apply_vacuum(Page page, const OffsetNumber *unused,
									  int nunused);
extern void inplace_page_apply_freeze(Page page,
									  const OffsetNumber *freeze, int nfreeze,
									  const OffsetNumber *unlock,
									  const InplaceTupleHeaderData *unlocked,
									  int nunlock);

extern void inplace_page_apply_swept(Page page, TransactionId swept,
									 const OffsetNumber *mark, int nmark,
									 const OffsetNumber *clear, int nclear);

extern void inplace_map_page_set(Page vmpage, BlockNumber blk, uint8 flags);

/* take back the bare deletes of these rows */
extern void inplace_page_undo_deletes(Page page, const OffsetNumber *offs,
									  int n);

/*
 * Set visibility map bits of a block with our own record (log_heap_visible
 * would have heap's mask applied to our pages).  Both buffers pinned, the
 * data page exclusively locked.  Does the critical section itself.
 */
extern void inplace_visibilitymap_set(Relation rel, BlockNumber blk,
									  Buffer buffer, Buffer vmbuffer,
									  TransactionId horizon, uint8 flags);

#endif							/* INPLACE_LOG_VACUUM_H */

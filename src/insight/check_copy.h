/*-------------------------------------------------------------------------
 *
 * check_copy.h
 *	  Copies of the pages of indexes; see check_copy.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_CHECK_COPY_H
#define INPLACE_CHECK_COPY_H

#include "inplace.h"

#include "access/itup.h"
#include "storage/buf.h"
#include "storage/bufpage.h"

INPLACE_NORETURN extern void InsightDamaged(BlockNumber blk, const char *what);
extern void InsightCheckCopy(BlockNumber blk, Page page, Size special);
extern IndexTuple InsightEntryAt(BlockNumber blk, Page page, OffsetNumber off);
extern Buffer InsightReadBlock(Relation index, BlockNumber blk);
extern Page InsightCopyBuffer(Buffer buffer);
extern Page InsightCopyBlock(Relation index, BlockNumber blk);
extern bool InsightTooManyPages(Relation index, int64 npages);

#endif							/* INPLACE_CHECK_COPY_H */

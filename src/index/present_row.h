/*-------------------------------------------------------------------------
 *
 * present_row.h
 *	  The rows whose stale entries VACUUM takes out, as they are at present; see
 *	  present_row.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_PRESENT_ROW_H
#define INPLACE_PRESENT_ROW_H

#include "inplace.h"

#include "index/stale_rows.h"
#include "page/tuple.h"

extern InplaceTupleHeader inplace_copy_noted_row_of(Page page, OffsetNumber off);
extern InplaceTupleHeader inplace_copy_noted_row(Relation table, ItemPointer tid);
extern void inplace_copy_noted_page(Relation table, BlockNumber blk,
									PGAlignedBlock *copy);
extern bool inplace_noted_row_unchanged(Relation table, ItemPointer tid);
extern void inplace_tell_standbys(Relation table, StaleRows *rows);

#endif							/* INPLACE_PRESENT_ROW_H */

/*-------------------------------------------------------------------------
 *
 * log_update.h
 *	  The record of an update that leaves the old row to the page; see
 *	  log_update.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_LOG_UPDATE_H
#define INPLACE_LOG_UPDATE_H

#include "inplace.h"

#include "page/delta.h"
#include "page/tuple.h"
#include "undo/append.h"

/*
 * inplace_wal_old_row_on_page: may the record of an update
 * leave the old row to the page?  tup is the row, base its header without
 * locks.  Then inplace_wal_build_update makes the record's data (room as for
 * the row, twice), and the page must be changed after inplace_log_update.
 */
extern InplaceTupleHeaderData inplace_wal_old_header(const InplaceTupleHeaderData *tup,
													 uint16 infomask,
													 CommandId cid);
extern bool inplace_wal_old_row_on_page(const InplaceTupleHeaderData *tup,
										const InplaceTupleHeaderData *base);
extern Size inplace_wal_build_update(char *dst, UndoInsert *ui, Relation rel,
									 const char *undo,
									 const InplaceTupleHeaderData *base,
									 const InplaceTupleHeaderData *newhdr,
									 bool conflict, const DeltaEdits *edits,
									 const char *oldimg, const char *newimg);

#endif							/* INPLACE_LOG_UPDATE_H */

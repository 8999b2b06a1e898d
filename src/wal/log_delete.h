/*-------------------------------------------------------------------------
 *
 * log_delete.h
 *	  The record of a delete; see log_delete.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_LOG_DELETE_H
#define INPLACE_LOG_DELETE_H

#include "inplace.h"

#include "page/tuple.h"
#include "undo/append.h"
#include "wal/logical.h"

/*
 * hdr is the row's new header, base the old one without locks.  conflict:
 * standby queries that do not see the old version are in conflict.  undo has the
 * delete's record, of change_len bytes, and then those of locks that are kept.
 */
extern void inplace_log_delete(Relation rel, Buffer buffer,
							   const InplaceTupleHeaderData *hdr,
							   const InplaceTupleHeaderData *base,
							   bool conflict, bool clear, UndoInsert *ui,
							   const char *undo, Size change_len,
							   Size undo_len, const LogicalChange *lc);
extern void inplace_log_bare_delete(Relation rel, Buffer buffer,
									OffsetNumber off, TransactionId xid,
									CommandId cid,
									const InplaceTupleHeaderData *base,
									bool partition, bool conflict, bool clear,
									const LogicalChange *lc);

#endif							/* INPLACE_LOG_DELETE_H */

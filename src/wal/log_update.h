/*-------------------------------------------------------------------------
 *
 * log_update.h
 *	  The record of an update in place; see log_update.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_LOG_UPDATE_H
#define INPLACE_LOG_UPDATE_H

#include "inplace.h"

#include "page/compare.h"
#include "page/tuple.h"
#include "undo/append.h"
#include "wal/logical.h"

/*
 * What the record is made of.  The caller fills in the first part.
 * inplace_prepare_update_record makes the record's data before the critical
 * section, while the old row stands on its page, and chooses the form.
 * inplace_log_update inserts the record; if from_page, the page is changed
 * after that.
 */
typedef struct UpdateRecord
{
	Relation	rel;
	InplaceTupleHeader oldtup;	/* as it stands on the page */
	InplaceTupleHeader newtup;
	const RowDiff *diff;		/* of the two */
	const InplaceTupleHeaderData *base; /* the old header without locks, as
										 * the undo record is to have it */
	bool		conflict;		/* standby queries that do not see the old
								 * version are in conflict */
	UndoInsert *ui;
	const char *undo;			/* the change's undo record, then those of
								 * locks that are kept */
	Size		change_len;		/* of the first */
	Size		undo_len;		/* of all */

	bool		from_page;		/* the old row is left to the page */
	bool		compact;		/* redo makes the undo record */
	Size		len;
} UpdateRecord;

extern InplaceTupleHeaderData inplace_wal_old_header(const InplaceTupleHeaderData *tup,
													 uint16 infomask,
													 CommandId cid);
extern void inplace_prepare_update_record(UpdateRecord *ur);
extern void inplace_log_update(const UpdateRecord *ur, Buffer buffer, bool clear,
							   const LogicalChange *lc);

#endif							/* INPLACE_LOG_UPDATE_H */

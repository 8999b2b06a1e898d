/*-------------------------------------------------------------------------
 *
 * log_evict.h
 *	  The record of rows that are evicted; see log_evict.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_LOG_EVICT_H
#define INPLACE_LOG_EVICT_H

#include "inplace.h"

#include "page/tuple.h"
#include "undo/append.h"
#include "undo/record.h"

/* what is to be logged; len and from_page are for the record's functions */
typedef struct EvictRecord
{
	Relation	rel;
	Buffer		buffer;
	const EvictedRow *rows;
	int			n;
	UndoInsert *ui;
	const char *undo;			/* of all of them */
	Size		undo_len;
	bool		from_page;		/* the page is changed after the record */
	Size		len;
} EvictRecord;

extern void inplace_prepare_evict_record(EvictRecord *er);
extern void inplace_log_evict(const EvictRecord *er);

/* the page change itself, shared by do and redo; "first" is the first row's record */
extern void inplace_page_apply_evict(Page page, const EvictedRow *rows, int n,
									 UndoPtr first);

/* take a record's rows apart; -1 if it is damaged */
extern int	inplace_wal_get_evicted(const char *p, const char *end, Page page,
									EvictedRow *rows);

#endif							/* INPLACE_LOG_EVICT_H */

/*-------------------------------------------------------------------------
 *
 * whose_file.h
 *	  Looking at pages of files that may be another access method's; see
 *	  whose_file.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_WHOSE_FILE_H
#define INPLACE_WHOSE_FILE_H

#include "inplace.h"

#include "storage/bufpage.h"

typedef enum RowsOwner
{
	ROWS_NOBODYS,				/* there are none */
	ROWS_OURS,
	ROWS_HEAPS,
	ROWS_UNSURE					/* pages are damaged */
} RowsOwner;

extern RowsOwner inplace_whose_rows(Relation rel);

/* of a TOAST table that pg_upgrade has made */
extern void inplace_mark_of_upgrade(Oid toastrelid, bool set);
extern bool inplace_has_mark_of_upgrade(Oid toastrelid);

extern bool inplace_check_whose_file(Relation rel);
extern void inplace_check_toast_table(Relation toastrel);

#endif							/* INPLACE_WHOSE_FILE_H */

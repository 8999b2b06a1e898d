/*-------------------------------------------------------------------------
 *
 * logical.h
 *	  What logical decoding wants in the records of changes; see logical.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_LOGICAL_H
#define INPLACE_LOGICAL_H

#include "inplace.h"

#include "lib/stringinfo.h"
#include "page/tuple.h"

/*
 * Do decoders want the table's rows?  What they are to know of a TOAST table of ours is
 * in records of its own (inplace_log_value).
 */
#define RowsAreDecoded(rel) \
	(RelationIsLogicallyLogged(rel) && \
	 (rel)->rd_rel->relkind != RELKIND_TOASTVALUE)

/* that part of a record, before it is written */
typedef struct LogicalChange
{
	uint8		what;			/* XLIP_LOGICAL_* */
	char	   *tuples;
	Size		len;
} LogicalChange;

/*
 * inplace_logical_prepare: false if the table is not logically
 * logged.  Either row may be NULL; both MAXALIGNed; oldtid names the old one in
 * errors.  key: replica identity columns, as RelationGetIndexAttrBitmap gives
 * them.
 */
extern bool inplace_logical_prepare(LogicalChange *lc, Relation rel,
									InplaceTupleHeader newtup,
									InplaceTupleHeader oldtup,
									const ItemPointerData *oldtid,
									const Bitmapset *key, bool key_required);

/*
 * Several rows, put one after the other by inplace_logical_append_new.  more: the
 * command's record is not the last.
 */
extern void inplace_logical_append_new(StringInfo buf, Relation rel,
									   InplaceTupleHeader tup);
extern void inplace_logical_set_rows(LogicalChange *lc, char *tuples, Size len,
									 bool more);

/* a speculative insertion, and the record of its end */
extern void inplace_logical_set_speculative(LogicalChange *lc);
extern void inplace_log_speculative_end(Relation rel, bool succeeded);

/* a value that has been stored in a TOAST table of ours, in chunks of that length */
extern void inplace_log_value(Relation toastrel, Oid valueid, const char *data,
							  int32 size, int32 chunk_len);

#endif							/* INPLACE_LOGICAL_H */

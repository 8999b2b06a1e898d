/*-------------------------------------------------------------------------
 *
 * row_bytes.h
 *	  Validating the bytes of a row; see row_bytes.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_ROW_BYTES_H
#define INPLACE_ROW_BYTES_H

#include "inplace.h"

#include "page/tuple.h"

/*
 * Is what lies in itemlen bytes at tup a row that can be deformed?  Returns
 * NULL and the length without padding, or what is wrong.  tup must be
 * MAXALIGNed if IP_ALIGNED.  This is enough for a version that is known to have
 * been committed.  A caller that has the row itself asks InsightWalkBegin.
 */
extern const char *InsightCheckShape(const InplaceTupleHeaderData *tup,
									 Size itemlen, Size *len);
extern const char *InsightCheckRow(TupleDesc desc, InplaceTupleHeader tup,
								   Size itemlen, Size *len);
extern const char *InsightCheckAttributes(TupleDesc desc, InplaceTupleHeader tup, Size len);

/* all attributes of a validated row, with those that it is too short for */
extern void InsightDeform(TupleDesc desc, InplaceTupleHeader tup,
						  Datum *values, bool *isnull);

/*
 * Are all chunks of an external value there, by this snapshot?  NULL if so,
 * else what is wrong.  toastrel is open.
 */
extern const char *InsightCheckToast(Relation toastrel, Datum value,
									 Snapshot snapshot);

#endif							/* INPLACE_ROW_BYTES_H */

/*-------------------------------------------------------------------------
 *
 * other_fetch.h
 *	  Rows that a scan of a hash or GiST index comes to by stale entries; see
 *	  other_fetch.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_OTHER_FETCH_H
#define INPLACE_OTHER_FETCH_H

#include "inplace.h"

#include "access/relscan.h"
#include "executor/tuptable.h"
#include "index/unmarked_scan.h"

/* what a scan keeps for it; begins as zeros */
typedef struct OtherFetch
{
	MemoryContext cxt;
	struct returned_hash *returned; /* rows, a bit each */
	MemoryContext work;
	bool		plain;			/* it is of no index that has to be asked
								 * about rows that are not IP_STALE */
	bool		begun;			/* since the scan began, or began again, a row
								 * has been come to that may be returned */
	bool		as_floats;		/* it was told to tell distances */
	bool		asked;
	bool		marked;			/* ... whether there may be updates in place
								 * (other_mark.c): so it is */
	UnmarkedScan unmarked;		/* if not, there are to be none */
} OtherFetch;

extern IndexScanDesc inplace_scan_of_fetch(IndexFetchTableData *fetch,
										   ItemPointer tid, bool *call_again);
extern bool inplace_other_returns(OtherFetch *of, IndexScanDesc scan,
								  const ItemPointerData *tid);
extern bool inplace_other_entry_counts(OtherFetch *of, IndexScanDesc scan,
									   const ItemPointerData *tid,
									   TupleTableSlot *slot);
extern void inplace_other_fetch_reset(OtherFetch *of);
extern void inplace_other_fetch_end(OtherFetch *of);

#endif							/* INPLACE_OTHER_FETCH_H */

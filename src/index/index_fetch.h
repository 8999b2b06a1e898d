/*-------------------------------------------------------------------------
 *
 * index_fetch.h
 *	  The state of fetching rows through an index.  The scan of an inplace_btree
 *	  (btree_handler.c) leaves there which entry led to a row, and the table's
 *	  side (scan/fetch.c) what it knows of the page.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_INDEX_FETCH_H
#define INPLACE_INDEX_FETCH_H

#include "inplace.h"

#include "access/itup.h"
#include "btree/standby_scan.h"
#include "page/recent.h"

typedef struct InplaceIndexFetchData
{
	IndexFetchTableData base;	/* must be first */
	ScanPin		pin;			/* the page of the last TID, or none */

	/* rows of this page that the snapshot sees nothing of, see fetch.c */
	Snapshot	gone_snapshot;	/* NULL: none known */
	CommandId	gone_curcid;
	uint64		gone_rows_put;
	OffsetNumber gone_first;
	OffsetNumber gone_last;

	/* left by an inplace_btree scan: the entry that the next TID is from */
	Relation	index;
	IndexTuple	itup;
	IndexScanDesc only_scan;	/* of an index-only scan it is its xs_itup */
	StandbyScan standby;		/* if the scan began on one */

	/* for an index-only scan of one with INCLUDE columns */
	IndexScanDesc scan;
	bool		itup_wanted_by_us;	/* and by nobody else */
	MemoryContext cxt;			/* that of the scan */
	IndexTuple	formed;			/* the entry with the visible payload */
} InplaceIndexFetchData;

#endif							/* INPLACE_INDEX_FETCH_H */

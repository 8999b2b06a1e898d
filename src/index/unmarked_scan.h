/*-------------------------------------------------------------------------
 *
 * unmarked_scan.h
 *	  Scans of GiST indexes that do not note what they return; see unmarked_scan.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_UNMARKED_SCAN_H
#define INPLACE_UNMARKED_SCAN_H

#include "inplace.h"

/* what such a scan keeps of its registration; begins as zeros */
typedef struct UnmarkedScan
{
	uint64		xact;			/* of this process; 0: it is not registered */
	int			bit;
} UnmarkedScan;

extern Size UnmarkedScanShmemSize(void);
extern void UnmarkedScanShmemInit(void);

extern void inplace_unmarked_begin(UnmarkedScan *scan, Oid indexid);
extern void inplace_unmarked_end(UnmarkedScan *scan);
extern bool inplace_unmarked_any(Oid indexid);

#endif							/* INPLACE_UNMARKED_SCAN_H */

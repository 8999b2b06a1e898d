/*-------------------------------------------------------------------------
 *
 * sweep_bulk.h
 *	  Taking stale entries out of a hash or GiST index; see sweep_bulk.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_SWEEP_BULK_H
#define INPLACE_SWEEP_BULK_H

#include "inplace.h"

#include "access/genam.h"
#include "index/stale_rows.h"

extern int64 inplace_sweep_bulk(IndexVacuumInfo *info, Relation table,
								StaleRows *rows, Size memory,
								IndexBulkDeleteResult **stats);

#endif							/* INPLACE_SWEEP_BULK_H */

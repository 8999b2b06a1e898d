/*-------------------------------------------------------------------------
 *
 * recycle.h
 *	  Deleted pages of a btree that are free while a snapshot is held; see recycle.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_RECYCLE_H
#define INPLACE_RECYCLE_H

#include "inplace.h"

#include "access/genam.h"
#include "undo/holders.h"

extern BlockNumber inplace_recycle_deleted(const IndexVacuumInfo *info, Relation table,
										   const UndoBounds *bounds,
										   FullTransactionId before,
										   bool tells_of_scans,
										   IndexBulkDeleteResult *istat);

#endif							/* INPLACE_RECYCLE_H */

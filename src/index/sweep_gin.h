/*-------------------------------------------------------------------------
 *
 * sweep_gin.h
 *	  Taking stale entries out of a GIN index; see sweep_gin.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_SWEEP_GIN_H
#define INPLACE_SWEEP_GIN_H

#include "inplace.h"

#include "index/stale_rows.h"
#include "storage/bufmgr.h"

extern int64 inplace_sweep_gin(Relation table, Relation index, StaleRows *rows,
							   Size memory, BufferAccessStrategy strategy,
							   bool *emptied);

#endif							/* INPLACE_SWEEP_GIN_H */

/*-------------------------------------------------------------------------
 *
 * vacuum_index.h
 *	  Indexes in a VACUUM, and the second pass; see vacuum_index.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_VACUUM_INDEX_H
#define INPLACE_VACUUM_INDEX_H

#include "inplace.h"

#include "vacuum/vacuum.h"

extern void inplace_vacuum_round(InplaceVacuum *vac);
extern void vacuum_merge_index_pages(InplaceVacuum *vac);
extern void inplace_vacuum_cleanup_indexes(InplaceVacuum *vac);
extern void inplace_vacuum_recycle_pages(InplaceVacuum *vac);
extern void inplace_vacuum_update_index_stats(InplaceVacuum *vac);

extern double vacuum_dead_since(InplaceVacuum *vac);
extern bool worth_scanning_indexes(InplaceVacuum *vac, BlockNumber pages,
								   Size bytes);
extern void vacuum_index_info(InplaceVacuum *vac, Relation indrel,
							  IndexVacuumInfo *info);
extern void enter_index(InplaceVacuum *vac, VacuumPhase phase, Relation indrel);
extern void leave_index(InplaceVacuum *vac, VacuumPhase phase);
extern void vacuum_empty_index(InplaceVacuum *vac, int i);
extern void vacuum_nothing_from_index(InplaceVacuum *vac, int i);

#endif							/* INPLACE_VACUUM_INDEX_H */

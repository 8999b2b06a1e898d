/*-------------------------------------------------------------------------
 *
 * dead_items.c
 *	  The dead items of a VACUUM, which it remembers until it has deleted
 *	  their index entries.
 *
 * They are TIDs in the order of the table, without version tags.  Where workers of a
 * parallel VACUUM delete the entries the store is the workers', too, and so they are
 * started and ended here.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "commands/vacuum.h"
#include "miscadmin.h"
#include "vacuum/compat_vacuum.h"
#include "vacuum/dead_items.h"
#include "vacuum/vacuum.h"

int
dead_items_work_mem(void)
{
	if (InAutoVacuumWorker() && autovacuum_work_mem != -1)
		return autovacuum_work_mem;
	return maintenance_work_mem;
}

#ifndef DEAD_ITEMS_IN_TIDSTORE
static int
dead_items_max(InplaceVacuum *vac)
{
	int64		max_items;

	/* without indexes nothing is ever remembered */
	if (vac->nindexes == 0)
		return MaxHeapTuplesPerPage;

	max_items = MAXDEADITEMS(dead_items_work_mem() * 1024L);
	max_items = Min(max_items, (int64) MAXDEADITEMS(MaxAllocSize));
	max_items = Min(max_items, INT_MAX);
	max_items = Min(max_items, (int64) vac->rel_pages * MaxHeapTuplesPerPage);
	return (int) Max(max_items, MaxHeapTuplesPerPage);
}
#endif

/*
 * Parallel workers take an index each, so they need two indexes at least.
 */
static void
start_parallel(InplaceVacuum *vac, int nworkers, int size)
{
	vac->pvs = NULL;
	if (nworkers < 0 || vac->nindexes < 2 || !vac->do_index_vacuuming)
		return;
	if (RelationUsesLocalBuffers(vac->rel))
	{
		if (nworkers > 0)
			ereport(WARNING,
					(errmsg("disabling parallel option of vacuum on \"%s\" --- cannot vacuum temporary tables in parallel",
							vac->relname)));
		return;
	}
	vac->pvs = parallel_vacuum_init(vac->rel, vac->indrels, vac->nindexes,
									nworkers, size,
									vac->verbose ? INFO : DEBUG2,
									vac->bstrategy);
}

void
dead_items_alloc(InplaceVacuum *vac, int nworkers)
{
#ifdef DEAD_ITEMS_IN_TIDSTORE
	int			work_mem_kb = dead_items_work_mem();

	start_parallel(vac, nworkers, work_mem_kb);
	if (vac->pvs)
	{
		vac->dead.store = parallel_vacuum_get_dead_items(vac->pvs,
														 &vac->dead.info);
		return;
	}
	vac->dead.info = palloc0(sizeof(VacDeadItemsInfo));
	vac->dead.info->max_bytes = work_mem_kb * (Size) 1024;
	vac->dead.store = TidStoreCreateLocal(vac->dead.info->max_bytes, true);
#else
	int			max_items = dead_items_max(vac);

	start_parallel(vac, nworkers, max_items);
	if (vac->pvs)
	{
		vac->dead.items = parallel_vacuum_get_dead_items(vac->pvs);
		return;
	}
	vac->dead.items = palloc(vac_max_items_to_alloc_size(max_items));
	vac->dead.items->max_items = max_items;
	vac->dead.items->num_items = 0;
#endif
}

/*
 * The statistics of the indexes as parallel workers have had them, and what we have seen
 * after them.
 */
static void
end_parallel(InplaceVacuum *vac)
{
	parallel_vacuum_end(vac->pvs, vac->indstats);
	for (int i = 0; i < vac->nindexes; i++)
	{
		IndexBulkDeleteResult *seen = vac->seen_after_merging[i];

		if (seen == NULL)
			continue;
		if (vac->indstats[i] != NULL)
		{
			seen->tuples_removed += vac->indstats[i]->tuples_removed;
			seen->pages_newly_deleted += vac->indstats[i]->pages_newly_deleted;
			pfree(vac->indstats[i]);
		}
		vac->indstats[i] = seen;
	}
}

/* also brings the index statistics of a parallel VACUUM home */
void
dead_items_free(InplaceVacuum *vac)
{
	if (vac->pvs)
		end_parallel(vac);
	else
	{
#ifdef DEAD_ITEMS_IN_TIDSTORE
		TidStoreDestroy(vac->dead.store);
		pfree(vac->dead.info);
#else
		pfree(vac->dead.items);
#endif
	}
	vac->pvs = NULL;
	memset(&vac->dead, 0, sizeof(vac->dead));
}

int64
dead_items_count(InplaceVacuum *vac)
{
#ifdef DEAD_ITEMS_IN_TIDSTORE
	return vac->dead.info->num_items;
#else
	return vac->dead.items->num_items;
#endif
}

/* is there room left for the dead items of one more page? */
bool
dead_items_full(InplaceVacuum *vac)
{
#ifdef DEAD_ITEMS_IN_TIDSTORE
	return vac->dead.info->num_items > 0 &&
		TidStoreMemoryUsage(vac->dead.store) > vac->dead.info->max_bytes;
#else
	return vac->dead.items->max_items - vac->dead.items->num_items <
		MaxHeapTuplesPerPage;
#endif
}

Size
dead_items_bytes(InplaceVacuum *vac)
{
#ifdef DEAD_ITEMS_IN_TIDSTORE
	return TidStoreMemoryUsage(vac->dead.store);
#else
	return vac->dead.items->num_items * sizeof(ItemPointerData);
#endif
}

void
dead_items_add(InplaceVacuum *vac, BlockNumber blk, OffsetNumber *offsets,
			   int noffsets)
{
#ifdef DEAD_ITEMS_IN_TIDSTORE
	TidStoreSetBlockOffsets(vac->dead.store, blk, offsets, noffsets);
	vac->dead.info->num_items += noffsets;
	pgstat_progress_update_param(PROGRESS_VACUUM_NUM_DEAD_ITEM_IDS,
								 vac->dead.info->num_items);
	pgstat_progress_update_param(PROGRESS_VACUUM_DEAD_TUPLE_BYTES,
								 dead_items_bytes(vac));
#else
	VacDeadItems *items = vac->dead.items;

	Assert(items->num_items + noffsets <= items->max_items);
	for (int i = 0; i < noffsets; i++)
	{
		/* a macro in 15, which looks at its argument twice */
		ItemPointerSet(&items->items[items->num_items], blk, offsets[i]);
		items->num_items++;
	}
	pgstat_progress_update_param(PROGRESS_VACUUM_NUM_DEAD_TUPLES,
								 items->num_items);
#endif
}

void
dead_items_reset(InplaceVacuum *vac)
{
#ifdef DEAD_ITEMS_IN_TIDSTORE
	if (vac->pvs)
	{
		parallel_vacuum_reset_dead_items(vac->pvs);
		vac->dead.store = parallel_vacuum_get_dead_items(vac->pvs,
														 &vac->dead.info);
	}
	else
	{
		TidStoreDestroy(vac->dead.store);
		vac->dead.store = TidStoreCreateLocal(vac->dead.info->max_bytes, true);
	}
	vac->dead.info->num_items = 0;
	pgstat_progress_update_param(PROGRESS_VACUUM_NUM_DEAD_ITEM_IDS, 0);
	pgstat_progress_update_param(PROGRESS_VACUUM_DEAD_TUPLE_BYTES,
								 dead_items_bytes(vac));
#else
	vac->dead.items->num_items = 0;
	pgstat_progress_update_param(PROGRESS_VACUUM_NUM_DEAD_TUPLES, 0);
#endif
}

/*
 * Going through them, a page at a time.
 */
void
dead_items_begin(InplaceVacuum *vac, DeadItemsIter *it)
{
#ifdef DEAD_ITEMS_IN_TIDSTORE
	it->iter = TidStoreBeginIterate(vac->dead.store);
#else
	it->next = 0;
#endif
}

bool
dead_items_next(InplaceVacuum *vac, DeadItemsIter *it, BlockNumber *blk,
				OffsetNumber *offsets, int *noffsets)
{
#ifdef DEAD_ITEMS_IN_TIDSTORE
	TidStoreIterResult *result = TidStoreIterateNext(it->iter);

	if (result == NULL)
		return false;
	*blk = result->blkno;
	*noffsets = TidStoreResultOffsets(result, offsets, MaxHeapTuplesPerPage);
	return true;
#else
	VacDeadItems *items = vac->dead.items;

	if (it->next >= items->num_items)
		return false;
	*blk = ItemPointerGetBlockNumber(&items->items[it->next]);
	*noffsets = 0;
	while (it->next < items->num_items &&
		   ItemPointerGetBlockNumber(&items->items[it->next]) == *blk)
	{
		offsets[(*noffsets)++] =
			ItemPointerGetOffsetNumber(&items->items[it->next]);
		it->next++;
	}
	return true;
#endif
}

void
dead_items_end(DeadItemsIter *it)
{
#ifdef DEAD_ITEMS_IN_TIDSTORE
	TidStoreEndIterate(it->iter);
#endif
}

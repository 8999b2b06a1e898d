/*-------------------------------------------------------------------------
 *
 * vacuum.h
 *	  The state of a VACUUM, and its frame; see vacuum.c.
 *
 * Lock order
 *	  VACUUM holds the lock of one data page at a time, exclusively, with its
 *	  visibility map page pinned beforehand (and locked only to set a bit).
 *	  Undo pages are read with the data page locked.  No cleanup lock is ever
 *	  waited for: nobody keeps pointers into a page without its lock.
 *
 * Horizons
 *	  relfrozenxid and relminmxid may advance to the oldest id that something
 *	  in the table can still lead to: unfrozen t_xids, lockers, and, for a row
 *	  whose last change is in progress, what a rollback of it would bring
 *	  back to the page (freeze.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_VACUUM_H
#define INPLACE_VACUUM_H

#include "inplace.h"

#include "commands/vacuum.h"
#include "freeze/freeze_model.h"
#include "index/stale_rows.h"
#include "undo/holders.h"
#include "vacuum/compat_vacuum.h"

/* filled into the routine by handler.c */
extern void inplace_init_vacuum_methods(TableAmRoutine *am);

typedef enum VacuumPhase
{
	VACUUM_PHASE_UNKNOWN,
	VACUUM_PHASE_SCAN,
	VACUUM_PHASE_INDEX,
	VACUUM_PHASE_TABLE,
	VACUUM_PHASE_INDEX_CLEANUP,
	VACUUM_PHASE_TRUNCATE
} VacuumPhase;

typedef struct InplaceVacuum
{
	Relation	rel;
	Relation   *indrels;
	int			nindexes;
	BufferAccessStrategy bstrategy;
	ParallelVacuumState *pvs;	/* or NULL */

	bool		verbose;
	bool		aggressive;		/* must leave nothing older than FreezeLimit */
	bool		skip_with_vm;
	bool		consider_bypass;
	bool		do_index_vacuuming;
	bool		do_index_cleanup;
	bool		do_truncate;
	bool		failsafe;		/* wraparound is near: only the needful */

	struct VacuumCutoffs cutoffs;
	GlobalVisState *vistest;
	UndoBounds *bounds;			/* if snapshots are held */
	bool		sweeps_between; /* entries that lead to versions between those */
	bool		tells_room;		/* the map, of what eviction would bring */
	TransactionId room_xid;		/* newest deleter of such rows, or invalid */
	double		old_live_tuples;
	bool		adaptive;		/* freeze by freeze_stats */
	double		revisit_failure_rate;
	FreezeStats freeze_stats;

	/* the oldest ids that stay in the table */
	TransactionId new_relfrozenxid;
	MultiXactId new_relminmxid;
	bool		skipped_all_visible;	/* ... are not known, then */

	DeadItems	dead;

	StaleRows	stale;
	bool		swept;			/* their stale entries are gone */
	BlockNumber swept_pages;	/* ... of so many, for the report */
	int64		swept_rows;
	int64		stale_pending;	/* rows that stay marked, for the next one */
	TransactionId newest_mark;	/* ... by sweeps before, the newest of them */

	/* for error messages */
	char	   *dbname;
	char	   *nspname;
	char	   *relname;
	char	   *indname;
	VacuumPhase phase;
	BlockNumber blkno;

	/* counters */
	BlockNumber rel_pages;
	BlockNumber scanned_pages;
	BlockNumber removed_pages;
	BlockNumber frozen_pages;
	BlockNumber lpdead_item_pages;
	BlockNumber nonempty_pages; /* last one + 1 */
	BlockNumber vm_visible_pages;	/* newly set all-visible */
	BlockNumber vm_frozen_pages;	/* newly set all-frozen */
	BlockNumber vm_only_frozen_pages;	/* ... that were all-visible */
	BlockNumber revisited_pages;
	int64		tuples_deleted;
	int64		tuples_frozen;
	int64		lpdead_items;
	int64		live_tuples;
	int64		recently_dead_tuples;
	double		new_rel_tuples;
	double		new_live_tuples;
	int			num_index_scans;
	IndexBulkDeleteResult **indstats;
	IndexBulkDeleteResult **seen_after_merging; /* beside parallel workers,
												 * which keep indstats to
												 * themselves */
	BlockNumber *merged_pages;	/* of each index, for the report */
	BlockNumber *relocated_pages;	/* ... moved to where others were free */
	BlockNumber *cut_pages;		/* ... at the end of the file, given back */
	Size	   *swept_bytes;	/* of each index, that former keys took */
	FullTransactionId start_xid;	/* the next one when we began */
} InplaceVacuum;

extern void inplace_vacuum(Relation rel, VacuumParams *params,
						   BufferAccessStrategy bstrategy);
extern bool inplace_vacuum_failsafe(InplaceVacuum *vac);
extern Size inplace_vacuum_space(InplaceVacuum *vac, Buffer buffer);

/* survey: what is on the page (vacuum/freeze.h) */
struct PageSurvey;
extern void inplace_vacuum_set_visible(InplaceVacuum *vac, Buffer buffer,
									   Buffer vmbuffer,
									   const struct PageSurvey *survey);

#endif							/* INPLACE_VACUUM_H */

/*-------------------------------------------------------------------------
 *
 * vacuum.h
 *	  The inside of VACUUM: its state, and what its files call in each other.
 *
 *		prune.c			takes dead rows off a page (not for VACUUM only)
 *		freeze.c		looks at what pruning left on a page, freezes it
 *		skip.c			which pages the first pass reads
 *		stale.c			takes stale entries out of indexes, and IP_STALE off
 *						the rows a VACUUM later
 *		stale_rows.c	the rows that it does so for
 *		vacuum.c		the first pass over the table, and the frame around
 *		vacuum_index.c	dead items, the indexes, the second pass
 *		truncate.c		gives back the empty tail
 *		report.c		messages, error context, the final report
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
#include "executor/instrument.h"
#include "freeze/freeze_stats.h"
#include "index/stale_rows.h"
#include "page/tuple.h"
#include "utils/pg_rusage.h"
#include "utils/timestamp.h"
#include "vacuum/compat_vacuum.h"

/* filled into the routine by handler.c */
extern void inplace_init_vacuum_methods(TableAmRoutine *am);

/* ---------------- the state of a VACUUM ---------------- */

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

/* ---------------- freeze.c ---------------- */

/*
 * What a page holds after pruning.
 */
typedef struct PageSurvey
{
	BlockNumber blk;
	bool		pruned;			/* pruning changed the page */
	bool		imaged;			/* ... and put an image of it into WAL */
	FreezePage	page;			/* its age before this VACUUM, its room now */
	bool		has_rows;		/* something that prevents truncation */

	/* rows only, stubs do not count: */
	bool		all_visible;
	bool		all_frozen;		/* ... once the lists below are done */
	TransactionId visible_horizon;	/* newest t_xid that is not frozen */

	int			nlive;
	int			nrecently_dead;
	int			nlpdead;

	/* freezing: what has to be done, and what can */
	bool		freeze_required;
	int			nfreeze;
	int			nunlock;
	TransactionId freeze_horizon;

	/* oldest ids that stay if the lists are done, and if not */
	TransactionId oldest_xid;
	MultiXactId oldest_mxid;
	TransactionId oldest_xid_nofreeze;
	MultiXactId oldest_mxid_nofreeze;

	int			nstale;			/* rows that stale.c wants to know of */
	int			nstale_pending; /* ... and those of a later VACUUM */

	OffsetNumber lpdead[MaxHeapTuplesPerPage];
	OffsetNumber stale[MaxHeapTuplesPerPage];
	OffsetNumber freeze[MaxHeapTuplesPerPage];
	OffsetNumber unlock[MaxHeapTuplesPerPage];
	InplaceTupleHeaderData unlocked[MaxHeapTuplesPerPage];
} PageSurvey;

extern void inplace_survey_page(InplaceVacuum *vac, Buffer buffer,
								PageSurvey *survey);
extern bool should_freeze_page(const InplaceVacuum *vac,
							   const PageSurvey *survey);
extern void inplace_freeze_page(InplaceVacuum *vac, Buffer buffer,
								PageSurvey *survey);

/* ---------------- skip.c ---------------- */

typedef struct PageChooser
{
	BlockNumber next;			/* next block to decide about */
	BlockNumber stop;			/* first one from there that must be read */
	bool		stop_is_revisit;
	Buffer		vmbuffer;

	/* revisits of all-visible pages; none if successes_left is zero */
	BlockNumber successes_left;
	BlockNumber failures_left;	/* in the region that ends at region_end */
	BlockNumber region_failures;
	BlockNumber region_end;
} PageChooser;

extern void page_chooser_begin(InplaceVacuum *vac, PageChooser *chooser);
extern bool page_chooser_next(InplaceVacuum *vac, PageChooser *chooser,
							  BlockNumber *blk, bool *revisit);
extern void page_chooser_revisited(PageChooser *chooser, bool frozen);
extern void page_chooser_end(PageChooser *chooser);

/* ---------------- vacuum.c ---------------- */

extern void inplace_vacuum(Relation rel, VacuumParams *params,
						   BufferAccessStrategy bstrategy);
extern bool inplace_vacuum_failsafe(InplaceVacuum *vac);
extern void inplace_vacuum_set_visible(InplaceVacuum *vac, Buffer buffer,
									   Buffer vmbuffer, const PageSurvey *survey);

/* ---------------- vacuum_index.c ---------------- */

extern void dead_items_alloc(InplaceVacuum *vac, int nworkers);
extern void dead_items_free(InplaceVacuum *vac);
extern bool dead_items_full(InplaceVacuum *vac);
extern int64 dead_items_count(InplaceVacuum *vac);
extern void dead_items_add(InplaceVacuum *vac, BlockNumber blk,
						   OffsetNumber *offsets, int noffsets);

/* going through them, a page at a time */
typedef struct DeadItemsIter
{
#ifdef DEAD_ITEMS_IN_TIDSTORE
	TidStoreIter *iter;
#else
	int			next;
#endif
} DeadItemsIter;

extern void dead_items_begin(InplaceVacuum *vac, DeadItemsIter *it);
extern bool dead_items_next(InplaceVacuum *vac, DeadItemsIter *it,
							BlockNumber *blk, OffsetNumber *offsets,
							int *noffsets);
extern void dead_items_end(DeadItemsIter *it);

extern void inplace_vacuum_round(InplaceVacuum *vac);
extern void vacuum_merge_index_pages(InplaceVacuum *vac);
extern void inplace_vacuum_cleanup_indexes(InplaceVacuum *vac);
extern void inplace_vacuum_update_index_stats(InplaceVacuum *vac);

extern int	dead_items_work_mem(void);
extern bool worth_scanning_indexes(InplaceVacuum *vac, BlockNumber pages,
								   Size bytes);
extern void enter_index(InplaceVacuum *vac, VacuumPhase phase, Relation indrel);
extern void leave_index(InplaceVacuum *vac, VacuumPhase phase);
extern void vacuum_empty_index(InplaceVacuum *vac, int i);
extern void vacuum_nothing_from_index(InplaceVacuum *vac, int i);

/* ---------------- vacuum_read.c ---------------- */

typedef struct PageReader
{
	InplaceVacuum *vac;
	PageChooser chooser;
	void	   *stream;			/* from 17 on */
} PageReader;

extern void page_reader_begin(InplaceVacuum *vac, PageReader *reader);
extern Buffer page_reader_next(PageReader *reader, bool *revisit);
extern void page_reader_end(PageReader *reader);

typedef struct DeadPage
{
	int			noffsets;
	OffsetNumber offsets[MaxHeapTuplesPerPage];
} DeadPage;

typedef struct DeadReader
{
	InplaceVacuum *vac;
	DeadItemsIter it;
	void	   *stream;			/* from 17 on */
	DeadPage	dead;			/* up to 16 */
} DeadReader;

extern void dead_reader_begin(InplaceVacuum *vac, DeadReader *reader);
extern Buffer dead_reader_next(DeadReader *reader, DeadPage **dead);
extern void dead_reader_end(DeadReader *reader);

/* ---------------- stale.c ---------------- */

extern void stale_learn_indexes(InplaceVacuum *vac);
extern bool stale_clear_page(InplaceVacuum *vac, Buffer buffer,
							 bool may_put_off);
extern void stale_survey_row(InplaceVacuum *vac, OffsetNumber off,
							 InplaceTupleHeader tup, PageSurvey *survey);
extern void stale_note_page(InplaceVacuum *vac, Buffer buffer,
							const PageSurvey *survey, bool clear_later);
extern void stale_sweep(InplaceVacuum *vac);
extern void stale_finish(InplaceVacuum *vac);

/* ---------------- truncate.c ---------------- */

extern void inplace_vacuum_truncate_all(InplaceVacuum *vac);

/* ---------------- report.c ---------------- */

typedef struct VacuumReport
{
	bool		enabled;
	PGRUsage	rusage;
	TimestampTz start;
	int64		read_time;
	int64		write_time;
	WalUsage	wal;
	BufferUsage buffers;
	BlockNumber orig_rel_pages;
	char	  **indnames;
} VacuumReport;

extern void vacuum_report_start(VacuumReport *report, InplaceVacuum *vac,
								VacuumParams *params);
extern void vacuum_report_end(VacuumReport *report, InplaceVacuum *vac,
							  VacuumParams *params, bool frozenxid_updated,
							  bool minmulti_updated);
extern void vacuum_error_callback(void *arg);

#endif							/* INPLACE_VACUUM_H */

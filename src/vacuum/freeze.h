/*-------------------------------------------------------------------------
 *
 * freeze.h
 *	  Looking at what pruning left on a page, and freezing it; see freeze.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_VACUUM_FREEZE_H
#define INPLACE_VACUUM_FREEZE_H

#include "inplace.h"

#include "freeze/freeze_model.h"
#include "page/tuple.h"
#include "vacuum/vacuum.h"

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
	int			nbetween;		/* ... of which with versions between
								 * snapshots */

	OffsetNumber lpdead[MaxHeapTuplesPerPage];
	OffsetNumber stale[MaxHeapTuplesPerPage];
	OffsetNumber between[MaxHeapTuplesPerPage];
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

#endif							/* INPLACE_VACUUM_FREEZE_H */

/*-------------------------------------------------------------------------
 *
 * freeze_model.h
 *	  What is known of how long the pages of a table stay as they are, and what
 *	  that says about a page that VACUUM might freeze; see freeze_model.c.
 *
 * Two kinds of changes
 *	  A page's rows are updated, deleted or locked; or rows are inserted into it,
 *	  which only happens to a page with room.  The first goes by how long its
 *	  rows have stayed as they are.  The second does not: VACUUM tells the free
 *	  space map of the room on every page that it reads, and from then on the
 *	  page is as likely to get rows as any other.  So there are two samples, and
 *	  what happens to a page of one kind says nothing about the other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_FREEZE_MODEL_H
#define INPLACE_FREEZE_MODEL_H

#include "inplace.h"

/* logarithmic histogram of durations: four parts to each doubling */
#define FREEZE_BUCKETS			112
#define FREEZE_MIN_SECONDS		0.25

/*
 * The figures that the model goes by, for one kind of change.  When there are too many
 * observations all are halved together, so that ratios, mean and deviation stay.
 */
typedef struct FreezeSample
{
	double		sets;			/* pages set all-visible */
	double		set_times;		/* sum of when that was, in seconds */
	double		unsets;			/* pages unset, of known duration */
	double		sum;			/* of the durations, in seconds */
	double		sum_squares;

	/*
	 * Ages of pages when VACUUM froze them, and when it set them all-visible
	 * without freezing.  From then on their LSNs tell of VACUUM's visit only.
	 */
	double		freezes;
	double		freeze_ages;
	double		plain_sets;
	double		plain_ages;
	float		histogram[FREEZE_BUCKETS];
} FreezeSample;

typedef struct FreezeStats
{
	int64		visible_sets;
	int64		frozen_sets;
	int64		visible_unsets;
	int64		frozen_unsets;
	int64		early_unsets;
	int64		early_frozen_unsets;
	int64		page_freezes;
	int			target;			/* seconds, as of the last VACUUM */
	FreezeSample sample;		/* changes of rows */
	FreezeSample fills;			/* inserts into pages that have room */
} FreezeStats;

/* what the model is to know of a page */
typedef struct FreezePage
{
	double		age;			/* of its rows; negative: not known */
	bool		has_room;		/* for another row of the table */
} FreezePage;

extern double FreezeSampleNow(void);
extern void FreezeSampleAddSet(FreezeSample *sample, double now);
extern void FreezeSampleWithdrawSet(FreezeSample *sample);
extern void FreezeSampleAdd(FreezeSample *sample, double seconds);
extern void FreezeSampleAge(FreezeSample *sample);
extern double FreezeSampleAgeAtSet(const FreezeSample *sample, bool frozen);
extern double FreezeSampleMean(const FreezeSample *sample);
extern double FreezeSampleDeviation(const FreezeSample *sample);
extern double FreezeChangeProbability(const FreezeSample *sample, double age,
									  double target);
extern bool FreezeIsWorthwhile(const FreezeSample *sample, double age,
							   double target);
extern bool FreezePageIsWorthwhile(const FreezeStats *stats,
								   const FreezePage *page);
extern double FreezeFillProbability(const FreezeStats *stats);
extern double FreezeThreshold(const FreezeSample *sample, double target);

#endif							/* INPLACE_FREEZE_MODEL_H */

/*-------------------------------------------------------------------------
 *
 * freeze_stats.h
 *	  What is known about how long the pages of a table stay as they are, and
 *	  what that says about a page that VACUUM might freeze.
 *
 *		freeze_stats.c	shared memory: the timeline, and a table's figures
 *		freeze_file.c	keeps them over a restart (see freeze_shmem.h)
 *		freeze_forget.c	drops those of dropped tables
 *		freeze_options.c what a table has instead of the settings
 *		freeze_model.c	the chance that a page of some age is changed soon
 *
 * Two kinds of changes
 *	  A page's rows are updated, deleted or locked; or rows are inserted into it,
 *	  which only happens to a page with room.  The first goes by how long its
 *	  rows have stayed as they are.  The second does not: VACUUM tells the free
 *	  space map of the room on every page that it reads, and from then on the
 *	  page is as likely to get rows as any other.  So there are two samples, and
 *	  what happens to a page of one kind says nothing about the other.
 *
 * Lock order
 *	  The lock of the shared memory is taken last, with a data page locked or
 *	  not; nothing is locked under it but an entry's spinlock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_FREEZE_STATS_H
#define INPLACE_FREEZE_STATS_H

#include "inplace.h"

#include "access/visibilitymapdefs.h"
#include "utils/timestamp.h"

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

/* what VACUUM of a table is to go by */
typedef struct FreezeOptions
{
	bool		adaptive;
	int			target;			/* seconds */
} FreezeOptions;

/* what a change of a page took off the visibility map, and when it had last
 * been changed before */
typedef struct FreezeUnset
{
	uint8		bits;
	bool		empty;			/* it had no rows */
	bool		has_room;
	XLogRecPtr	lsn;
} FreezeUnset;

/* freeze_stats.c */
extern int	inplace_target_freeze_duration;
extern bool inplace_adaptive_freezing;
extern int	inplace_max_freeze_stats_tables;

extern Size FreezeShmemSize(void);
extern void FreezeShmemInit(void);
extern void FreezeTimelineTick(void);
extern TimestampTz FreezeTimelineTime(XLogRecPtr lsn);
extern bool FreezeStatsGet(Oid relid, FreezeStats *stats);
extern void FreezeStatsBegin(Relation rel, int target, FreezeStats *stats);
extern bool FreezePageHasRoom(Relation rel, Page page, bool *empty);
extern double FreezePageAge(const FreezeSample *sample, XLogRecPtr lsn,
							uint8 bits);
extern void FreezeNoteVisible(Relation rel, uint8 bits, const FreezePage *page);
extern void FreezeNotePageFreeze(Relation rel, double age);
extern void FreezeNoteUnset(Relation rel, const FreezeUnset *unset,
							bool by_insert);

/* for the critical section of a change, before the page is changed;
 * FreezeNoteUnset is for after it */
extern bool FreezeClearVisible(Relation rel, Buffer buffer, Buffer vmbuffer,
							   uint8 bits, FreezeUnset *unset);

/* freeze_options.c */
extern void FreezeOptionsInit(void);
extern void FreezeOptionsGet(Oid relid, FreezeOptions *options);

/* freeze_forget.c */
extern void FreezeStatsForgetDatabase(Oid dboid);
extern void FreezeForgetInit(void);

/* freeze_model.c */
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

#endif							/* INPLACE_FREEZE_STATS_H */

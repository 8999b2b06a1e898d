/*-------------------------------------------------------------------------
 *
 * freeze_model.c
 *	  How likely is a page to be changed soon, given how long it has not been?
 *
 * The idea is of Melanie Plageman's proposal for adaptive freezing
 * (pgsql-hackers, 2023): the durations for which pages stay unchanged until
 * something unsets them are taken as normally distributed, and a page is frozen
 * only if the chance of a change within the target duration is below 5 %.
 * Below MIN_UNSETS observations everything is frozen, with the exception below.
 *
 * Some things are added.
 *
 * Inserts.  They are changes, too: a row put into space that VACUUM found takes
 * all-frozen off just the same.  But how old a page's rows are says nothing about
 * that, so they have a sample of their own (see freeze_model.h), in which S counts
 * how often VACUUM left a page with room all-visible, and a is zero.  A page with
 * room is frozen if it is likely to stay as it is in either respect.
 *
 * What VACUUM hides.  The duration counts from the last change of the page that
 * was not VACUUM's.  When VACUUM freezes a page, the page's LSN says
 * when that was and nothing else; the page's age before is added as the mean
 * of such ages.  Without that the model would never learn that pages of the
 * age at which it has them frozen are changed soon after.
 *
 * Survivors.  Most pages of most tables are never changed again, and have no
 * duration.  With S pages set and U unset, F the distribution of durations,
 * a page of age a is changed within t with a chance of
 *
 *				U (F(a + t) - F(a))
 *			----------------------------
 *			U (1 - F(a)) + (S - U) + 1
 *
 * where the 1 is the page itself: beyond all durations ever seen, it counts.
 * But a page that was set a moment ago has not survived anything yet.  With e for
 * how long ago pages were set, on average, S - U counts F(e) times: the part of all
 * changes that would have come by now.  That matters when all pages of a large
 * table are changed, and set, again and again.  Then few unsets are remembered, as
 * older ones make way for what is new, and many sets come at once.
 *
 * A bad beginning.  In a work queue nearly every page that is set all-visible is
 * changed soon.  To freeze all pages until MIN_UNSETS of them have been unset would
 * be wrong each time.  So the model is asked as soon as FEW_UNSETS pages have been
 * unset, if these are more than a part of FEW_PART of the pages set.  So few
 * durations say little of their deviation, and nothing of what comes after the
 * longest: they are taken as exponentially distributed, with the mean they have.
 * FEW_PART is much more than MAX_PROBABILITY because at the beginning the pages that
 * are being filled, one for each writer, are a large part of a table which is
 * appended to.
 *
 * The shape.  Changes often come in two kinds, to data just written and to data
 * of a certain age, of which mean and deviation say little.  With
 * MIN_EMPIRICAL observations F is what the histogram says, else normal.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include <math.h>

#include "freeze/freeze_model.h"

#define MIN_UNSETS			30
#define FEW_UNSETS			5
#define FEW_PART			0.25
#define MIN_EMPIRICAL		100
#define MAX_UNSETS			500
#define MAX_SETS			(40 * MAX_UNSETS)
#define MAX_PROBABILITY		0.05

/* where a bucket begins; the first takes all that is shorter */
static double
bucket_start(int bucket)
{
	return bucket == 0 ? 0.0 : FREEZE_MIN_SECONDS * pow(2.0, bucket / 4.0);
}

static int
bucket_of(double seconds)
{
	double		n;

	if (seconds <= FREEZE_MIN_SECONDS)
		return 0;
	n = floor(4.0 * log2(seconds / FREEZE_MIN_SECONDS));
	return (int) Min(n, FREEZE_BUCKETS - 1);
}

/*
 * Too many observations hide what is new: halve their weight.
 */
void
FreezeSampleAge(FreezeSample *sample)
{
	if (sample->unsets <= MAX_UNSETS && sample->sets <= MAX_SETS)
		return;
	sample->sets /= 2;
	sample->set_times /= 2;
	sample->unsets /= 2;
	sample->sum /= 2;
	sample->sum_squares /= 2;
	sample->freezes /= 2;
	sample->freeze_ages /= 2;
	sample->plain_sets /= 2;
	sample->plain_ages /= 2;
	for (int i = 0; i < FREEZE_BUCKETS; i++)
		sample->histogram[i] /= 2;
}

/* the time as samples have it, to be read with no spinlock held */
double
FreezeSampleNow(void)
{
	return (double) GetCurrentTimestamp() / USECS_PER_SEC;
}

void
FreezeSampleAddSet(FreezeSample *sample, double now)
{
	sample->sets++;
	sample->set_times += now;
	FreezeSampleAge(sample);
}

/* take back a set that ended in another way: it tells nothing */
void
FreezeSampleWithdrawSet(FreezeSample *sample)
{
	double		left = Max(sample->sets - 1, 0);

	if (sample->sets > 0)
		sample->set_times *= left / sample->sets;
	sample->sets = left;
}

void
FreezeSampleAdd(FreezeSample *sample, double seconds)
{
	sample->unsets++;
	sample->sum += seconds;
	sample->sum_squares += seconds * seconds;
	sample->histogram[bucket_of(seconds)]++;
	FreezeSampleAge(sample);
}

double
FreezeSampleMean(const FreezeSample *sample)
{
	return sample->unsets > 0 ? sample->sum / sample->unsets : 0;
}

double
FreezeSampleDeviation(const FreezeSample *sample)
{
	double		mean = FreezeSampleMean(sample);
	double		variance;

	if (sample->unsets <= 0)
		return 0;
	variance = sample->sum_squares / sample->unsets - mean * mean;
	return variance > 0 ? sqrt(variance) : 0;
}

/* how old pages were when VACUUM froze them, or only set them all-visible */
double
FreezeSampleAgeAtSet(const FreezeSample *sample, bool frozen)
{
	if (frozen)
		return sample->freezes > 0 ? sample->freeze_ages / sample->freezes : 0;
	return sample->plain_sets > 0 ? sample->plain_ages / sample->plain_sets : 0;
}

/* part of the durations that are not longer than this */
static double
distribution(const FreezeSample *sample, double seconds)
{
	if (sample->unsets >= MIN_EMPIRICAL)
	{
		int			bucket = bucket_of(seconds);
		double		start = bucket_start(bucket);
		double		width = bucket_start(bucket + 1) - start;
		double		below = 0;

		for (int i = 0; i < bucket; i++)
			below += sample->histogram[i];
		below += sample->histogram[bucket] *
			Min(1.0, (seconds - start) / width);
		return Min(1.0, below / sample->unsets);
	}
	else if (sample->unsets < MIN_UNSETS)
	{
		double		mean = Max(FreezeSampleMean(sample), FREEZE_MIN_SECONDS);

		return 1.0 - exp(-seconds / mean);
	}
	else
	{
		double		mean = FreezeSampleMean(sample);
		double		deviation = FreezeSampleDeviation(sample);

		if (deviation <= 0)
			return seconds >= mean ? 1.0 : 0.0;
		return 0.5 * erfc((mean - seconds) / (deviation * M_SQRT2));
	}
}

/*
 * Pages that were set and have not been changed since, as far as that says that
 * they never will be.
 */
static double
survivors_of(const FreezeSample *sample)
{
	double		left = sample->sets - sample->unsets;
	double		since;

	if (left <= 0)
		return 0;
	since = FreezeSampleNow() - sample->set_times / sample->sets +
		FreezeSampleAgeAtSet(sample, false);
	return left * distribution(sample, Max(since, 0));
}

double
FreezeChangeProbability(const FreezeSample *sample, double age, double target)
{
	double		reached;
	double		survivors;

	age = Max(age, 0);
	reached = distribution(sample, age);
	survivors = survivors_of(sample) + 1;
	return sample->unsets * (distribution(sample, age + target) - reached) /
		(sample->unsets * (1 - reached) + survivors);
}

/* is anything known? */
static bool
sample_suffices(const FreezeSample *sample)
{
	return sample->unsets >= MIN_UNSETS ||
		(sample->unsets >= FEW_UNSETS &&
		 sample->unsets >= FEW_PART * sample->sets);
}

bool
FreezeIsWorthwhile(const FreezeSample *sample, double age, double target)
{
	return !sample_suffices(sample) ||
		FreezeChangeProbability(sample, age, target) < MAX_PROBABILITY;
}

/*
 * The chance that a page with room gets a row within the target duration;
 * negative if too little is known.
 */
double
FreezeFillProbability(const FreezeStats *stats)
{
	return sample_suffices(&stats->fills) ?
		FreezeChangeProbability(&stats->fills, 0, stats->target) : -1;
}

/*
 * Is it worthwhile to freeze the page?  Its rows may be changed, and if it has room,
 * rows may be inserted into it.
 */
bool
FreezePageIsWorthwhile(const FreezeStats *stats, const FreezePage *page)
{
	double		stays = 1;

	if (sample_suffices(&stats->sample))
		stays -= FreezeChangeProbability(&stats->sample, page->age,
										 stats->target);
	if (page->has_room)
		stays *= 1 - Max(FreezeFillProbability(stats), 0);
	return 1 - stays < MAX_PROBABILITY;
}

/*
 * The youngest age at which pages without room are frozen, to a bucket's width;
 * negative if there is none.
 */
double
FreezeThreshold(const FreezeSample *sample, double target)
{
	for (int i = 0; i < FREEZE_BUCKETS; i++)
		if (FreezeIsWorthwhile(sample, bucket_start(i), target))
			return bucket_start(i);
	return -1;
}

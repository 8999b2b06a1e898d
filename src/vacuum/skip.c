/*-------------------------------------------------------------------------
 *
 * skip.c
 *	  Which pages the first pass of VACUUM reads.
 *
 * All but those that the visibility map says are done with: all-frozen ones,
 * and in a VACUUM that is not aggressive all-visible ones.
 *
 * Revisits
 *	  A page that was too young to be frozen when it was set all-visible would
 *	  be looked at again by an aggressive VACUUM only, when all such pages have
 *	  to be frozen at once.  So with adaptive freezing, VACUUM reads some of
 *	  them: they are older now, and most are worth freezing.  What that can cost
 *	  is bounded in two ways:
 *		- in a region of 4096 blocks, no more once a few pages (3 %; in 18
 *		  vacuum_max_eager_freeze_failure_rate) were read for nothing.  Where
 *		  regions begin is random, so that it is not always the same few;
 *		- a VACUUM freezes no more than a fifth of them, or 1024 pages.
 *	  There are none if the model finds no age at which pages should be frozen.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include <math.h>

#include "access/visibilitymap.h"
#include "common/pg_prng.h"
#include "freeze/freeze_model.h"
#include "vacuum/skip.h"
#include "vacuum/vacuum.h"

/* runs of skippable pages shorter than this are read, for readahead's sake */
#define SKIP_PAGES_THRESHOLD	((BlockNumber) 32)

#define REVISIT_REGION			4096
#define REVISIT_MIN_PAGES		1024
#define REVISIT_PART			5

static void
plan_revisits(InplaceVacuum *vac, PageChooser *chooser)
{
	BlockNumber visible;
	BlockNumber frozen;
	BlockNumber candidates;

	if (!vac->adaptive || vac->aggressive || !vac->skip_with_vm ||
		FreezeThreshold(&vac->freeze_stats.sample,
						vac->freeze_stats.target) < 0)
		return;
	visibilitymap_count(vac->rel, &visible, &frozen);
	candidates = visible > frozen ? visible - frozen : 0;
	chooser->region_failures = (BlockNumber)
		ceil(vac->revisit_failure_rate * REVISIT_REGION);
	if (candidates == 0 || chooser->region_failures == 0)
		return;

	chooser->successes_left = Max(candidates / REVISIT_PART,
								  REVISIT_MIN_PAGES);
	chooser->failures_left = chooser->region_failures;
	chooser->region_end = 1 +
		pg_prng_uint64_range(&pg_global_prng_state, 0, REVISIT_REGION - 1);
}

void
page_chooser_begin(InplaceVacuum *vac, PageChooser *chooser)
{
	memset(chooser, 0, sizeof(*chooser));
	chooser->stop = InvalidBlockNumber;
	chooser->vmbuffer = InvalidBuffer;
	plan_revisits(vac, chooser);
}

void
page_chooser_end(PageChooser *chooser)
{
	if (BufferIsValid(chooser->vmbuffer))
		ReleaseBuffer(chooser->vmbuffer);
}

/* is this all-visible page to be read for the chance of freezing it? */
static bool
may_revisit(PageChooser *chooser, BlockNumber blk)
{
	if (chooser->successes_left == 0)
		return false;
	if (blk >= chooser->region_end)
	{
		chooser->region_end += REVISIT_REGION *
			((blk - chooser->region_end) / REVISIT_REGION + 1);
		chooser->failures_left = chooser->region_failures;
	}
	return chooser->failures_left > 0;
}

/*
 * What came of it.  With read streams pages are chosen some time before, so a few more
 * may come than are left.
 */
void
page_chooser_revisited(PageChooser *chooser, bool frozen)
{
	BlockNumber *left = frozen ? &chooser->successes_left : &chooser->failures_left;

	if (*left > 0)
		(*left)--;
}

/*
 * The first block from "blk" on that must be read, or is to be revisited;
 * *lost is set if blocks before it may have unfrozen rows.
 */
static BlockNumber
find_unskippable(InplaceVacuum *vac, PageChooser *chooser, BlockNumber blk,
				 bool *lost)
{
	*lost = false;
	chooser->stop_is_revisit = false;

	/* the last page is always read, to know whether truncation is worth it */
	while (blk < vac->rel_pages - 1)
	{
		uint8		status;

		if (!vac->skip_with_vm)
			break;
		status = visibilitymap_get_status(vac->rel, blk, &chooser->vmbuffer);
		if ((status & VISIBILITYMAP_ALL_VISIBLE) == 0)
			break;
		if ((status & VISIBILITYMAP_ALL_FROZEN) == 0)
		{
			if (vac->aggressive)
				break;
			if (may_revisit(chooser, blk))
			{
				chooser->stop_is_revisit = true;
				break;
			}
			*lost = true;
		}
		blk++;
	}
	return blk;
}

/*
 * The next block to read; false if there is none.  *revisit: tell
 * page_chooser_revisited about it.
 */
bool
page_chooser_next(InplaceVacuum *vac, PageChooser *chooser, BlockNumber *blk,
				  bool *revisit)
{
	if (chooser->next >= vac->rel_pages)
		return false;

	if (chooser->next > chooser->stop || chooser->stop == InvalidBlockNumber)
	{
		bool		lost;

		chooser->stop = find_unskippable(vac, chooser, chooser->next, &lost);
		if (chooser->stop - chooser->next >= SKIP_PAGES_THRESHOLD)
		{
			chooser->next = chooser->stop;
			if (lost)
				vac->skipped_all_visible = true;
		}
	}
	*revisit = chooser->stop_is_revisit && chooser->next == chooser->stop;
	*blk = chooser->next++;
	return true;
}

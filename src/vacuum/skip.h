/*-------------------------------------------------------------------------
 *
 * skip.h
 *	  Which pages the first pass of a VACUUM reads; see skip.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_SKIP_H
#define INPLACE_SKIP_H

#include "inplace.h"

#include "vacuum/vacuum.h"

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

#endif							/* INPLACE_SKIP_H */

/*-------------------------------------------------------------------------
 *
 * merge.h
 *	  Moving entries between neighbouring leaf pages of an inplace_btree: what
 *	  merge.c (one change) and merge_leaves.c (the whole index) share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_MERGE_H
#define INPLACE_MERGE_H

#include "inplace.h"

#include "access/nbtree.h"

/* the room for entries of a page that has a high key of no size */
#define PAGE_ROOM \
	(BLCKSZ - SizeOfPageHeaderData - MAXALIGN(sizeof(BTPageOpaqueData)))

/*
 * Two pages are merged if their entries take no more than this of a page.  (With
 * less, pages of which each takes half of one stay as they are for ever: the
 * index of a balance was 1.8 times as large as rebuilt with 7/10, and 1.45 times with
 * this, for as much WAL, since a page about to split gets rid of former keys and
 * duplicates first.)
 */
#define MERGED_FILL		(PAGE_ROOM * 24 / 25)

typedef struct MergeState
{
	Relation	table;
	Relation	index;
	bool		dedup;			/* equal entries may be put together */
	bool		pack;			/* more than two pages at a time, too */
	Size		merged_fill;	/* a page's, of which two become one */
	Size		packed_fill;	/* of these */
	BlockNumber merged;
	int			given_up;		/* in a row */
	BTScanInsert inskey;		/* to compare entries with each other */
	BTVacState	vstate;			/* for nbtree's page deletion */
	MemoryContext cxt;			/* reset after each change */
} MergeState;

typedef enum MergeResult
{
	MERGE_DONE,
	MERGE_NOT,
	MERGE_BUSY					/* a scan is in the way */
} MergeResult;

/* two neighbours, the left one by its high key too */
typedef struct MergePair
{
	BlockNumber left;
	BlockNumber right;
	IndexTuple	hikey;
} MergePair;

extern bool merge_is_candidate(Page page);
extern Size merge_needed_size(MergeState *ms, Page page);
extern int	merge_siblings(MergeState *ms, const BlockNumber *blocks, int n,
						   IndexTuple hikey);
extern MergeResult merge_pages(MergeState *ms, const MergePair *pair);
extern MergeResult merge_shift_entries(MergeState *ms, const MergePair *pair);

#endif							/* INPLACE_MERGE_H */

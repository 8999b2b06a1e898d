/*-------------------------------------------------------------------------
 *
 * delete_groups.c
 *	  Which table blocks does an index deletion visit, and in which order?
 *
 * The TIDs of an index page are sorted and divided into blocks.  Simple deletion
 * visits all of them, in their order.  Bottom-up deletion goes by rank: what a
 * visit is likely to bring.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "index/delete_groups.h"
#include "port/pg_bitutils.h"

/* bottom-up: up to so many promising TIDs blocks count the same */
#define MIN_PROMISING				4

/* ... and blocks with so many TIDs or more count the same */
#define MOST_RANKED_TIDS			2047

/* bottom-up: blocks this close to each other count as neighbours */
#define BOTTOMUP_NEIGHBOUR_DISTANCE 3

/* a TM_IndexDelete as a number, in the order of TIDs */
static inline uint64
pack_deltid(const TM_IndexDelete *deltid)
{
	return (uint64) ItemPointerGetBlockNumberNoCheck(&deltid->tid) << 32 |
		(uint64) ItemPointerGetOffsetNumberNoCheck(&deltid->tid) << 16 |
		(uint16) deltid->id;
}

#define ST_SORT sort_packed
#define ST_ELEMENT_TYPE uint64
#define ST_COMPARE(a, b) (*(a) < *(b) ? -1 : *(a) > *(b))
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* from so many on it pays to go by digits */
#define MIN_DIGITS_SORT		64

#define DIGIT_BITS			8
#define DIGITS				(1 << DIGIT_BITS)
#define DIGIT(x, shift)		(((x) >> (shift)) & (DIGITS - 1))

/*
 * Sort by the upper half, a block or a rank, digit by digit from the last one on:
 * mostly there are two that are not the same in all.  Those of the same upper half
 * stay in their order.  Needs as much room again; returns where they are then.
 */
static uint64 *
sort_by_digits(uint64 *packed, uint64 *other, int n)
{
	uint64		differ = 0;

	for (int i = 1; i < n; i++)
		differ |= packed[i] ^ packed[0];
	for (int shift = 32; shift < 64; shift += DIGIT_BITS)
	{
		int			place[DIGITS];
		int			sum = 0;
		uint64	   *sorted = other;

		if (DIGIT(differ, shift) == 0)
			continue;
		memset(place, 0, sizeof(place));
		for (int i = 0; i < n; i++)
			place[DIGIT(packed[i], shift)]++;
		for (int i = 0; i < DIGITS; i++)
		{
			int			count = place[i];

			place[i] = sum;
			sum += count;
		}
		for (int i = 0; i < n; i++)
			sorted[place[DIGIT(packed[i], shift)]++] = packed[i];
		other = packed;
		packed = sorted;
	}
	return packed;
}

/* what is sorted by block, within each block */
static void
sort_within_blocks(uint64 *packed, int n)
{
	int			first = 0;

	for (int i = 1; i <= n; i++)
	{
		if (i < n && packed[i] >> 32 == packed[first] >> 32)
			continue;
		if (i - first > 1)
			sort_packed(packed + first, i - first);
		first = i;
	}
}

static void
sort_deltids(TM_IndexDelete *deltids, int n)
{
	uint64	   *chunk = palloc(sizeof(uint64) * 2 * Max(n, 1));
	uint64	   *packed = chunk;

	for (int i = 0; i < n; i++)
		packed[i] = pack_deltid(&deltids[i]);
	if (n >= MIN_DIGITS_SORT)
	{
		packed = sort_by_digits(packed, packed + n, n);
		sort_within_blocks(packed, n);
	}
	else
		sort_packed(packed, n);
	for (int i = 0; i < n; i++)
	{
		ItemPointerSet(&deltids[i].tid, packed[i] >> 32,
					   (OffsetNumber) (packed[i] >> 16));
		deltids[i].id = (int16) packed[i];
	}
	pfree(chunk);
}

/*
 * Sort deltids and divide them into blocks.  Are doubled TIDs of interest?
 */
BlockGroup *
delete_groups_make(TM_IndexDeleteOp *delstate, bool find_doubled, int *ngroups)
{
	BlockGroup *groups;
	int			n = 0;

	sort_deltids(delstate->deltids, delstate->ndeltids);

	groups = palloc(sizeof(BlockGroup) * Max(delstate->ndeltids, 1));
	for (int i = 0; i < delstate->ndeltids; i++)
	{
		TM_IndexDelete *deltid = &delstate->deltids[i];
		BlockNumber blk = ItemPointerGetBlockNumberNoCheck(&deltid->tid);

		if (n == 0 || groups[n - 1].blk != blk)
		{
			groups[n].blk = blk;
			groups[n].first = i;
			groups[n].ntids = 0;
			groups[n].promising = 0;
			groups[n].doubled = false;
			groups[n].recent = InvalidBuffer;
			groups[n].left_alone = false;
			n++;
		}
		else if (find_doubled &&
				 ItemPointerEquals(&deltid->tid, &delstate->deltids[i - 1].tid))
			groups[n - 1].doubled = true;
		groups[n - 1].ntids++;
		if (delstate->status[deltid->id].promising)
			groups[n - 1].promising++;
	}
	*ngroups = n;
	return groups;
}

/* the most rewarding block has the lowest */
static uint64
group_rank(const BlockGroup *group)
{
	uint64		few_promising = 15 - Min(pg_leftmost_one_pos32(group->promising), 15);
	uint64		few_tids = MOST_RANKED_TIDS - Min(group->ntids, MOST_RANKED_TIDS);

	return (uint64) !group->doubled << 15 | few_promising << 11 | few_tids;
}

/*
 * By rank; blocks of the same rank stay in their order.  On most pages of an index
 * that takes in-place updates many are of the last rank; they begin anywhere, as
 * "begin_anywhere" says.
 */
static void
sort_groups(BlockGroup *groups, int ngroups, const uint32 *begin_anywhere)
{
	uint64	   *chunk = palloc(sizeof(uint64) * 2 * Max(ngroups, 1));
	BlockGroup *unsorted = palloc(sizeof(BlockGroup) * Max(ngroups, 1));
	uint64	   *ranked;
	int			nbefore = 0;

	for (int i = 0; i < ngroups; i++)
		chunk[i] = group_rank(&groups[i]) << 32 | i;
	ranked = sort_by_digits(chunk, chunk + ngroups, ngroups);
	memcpy(unsorted, groups, sizeof(BlockGroup) * ngroups);
	if (begin_anywhere != NULL)
	{
		BlockGroup	last = {.promising = MIN_PROMISING,.ntids = 1};
		uint64		last_rank = group_rank(&last);

		while (nbefore < ngroups && ranked[nbefore] >> 32 != last_rank)
			nbefore++;
	}
	for (int i = 0; i < ngroups; i++)
	{
		int			from = i;

		if (begin_anywhere != NULL && i >= nbefore)
			from = nbefore + ((uint64) *begin_anywhere + i) % (ngroups - nbefore);
		groups[i] = unsorted[(uint32) ranked[from]];
	}
	pfree(unsorted);
	pfree(chunk);
}

/*
 * Choose the blocks to visit for a bottom-up deletion, and put the TIDs of
 * those, in that order, to the start of deltids; the others are dropped.
 * Returns how many blocks at the front are neighbours.
 */
int
delete_groups_rank(TM_IndexDeleteOp *delstate, BlockGroup *groups, int *ngroups,
				   int max_groups, const uint32 *begin_anywhere)
{
	TM_IndexDelete *sorted;
	int			ntids = 0;
	int			neighbours = 1;

	/*
	 * Small differences in the number of promising entries mean little:
	 * blocks within a factor of two go by what else there is, and then by
	 * block number, which brings neighbours together.
	 */
	for (int i = 0; i < *ngroups; i++)
	{
		/* a few promising entries are as good as any */
		if (groups[i].promising <= MIN_PROMISING)
			groups[i].promising = MIN_PROMISING;
		else
			groups[i].promising = pg_nextpower2_32(groups[i].promising);
	}
	sort_groups(groups, *ngroups, begin_anywhere);
	*ngroups = Min(*ngroups, max_groups);

	/*
	 * When the best blocks are next to each other, the rows were probably
	 * inserted together and are likely to have died together.
	 */
	while (neighbours < *ngroups)
	{
		int64		distance = (int64) groups[neighbours].blk -
			(int64) groups[neighbours - 1].blk;

		if (distance < -BOTTOMUP_NEIGHBOUR_DISTANCE ||
			distance > BOTTOMUP_NEIGHBOUR_DISTANCE)
			break;
		neighbours++;
	}

	for (int i = 0; i < *ngroups; i++)
		ntids += groups[i].ntids;
	sorted = palloc(sizeof(TM_IndexDelete) * Max(ntids, 1));
	ntids = 0;
	for (int i = 0; i < *ngroups; i++)
	{
		const TM_IndexDelete *tids = delstate->deltids + groups[i].first;

		groups[i].first = ntids;
		for (int j = 0; j < groups[i].ntids; j++)
			sorted[ntids++] = tids[j];
	}
	memcpy(delstate->deltids, sorted, sizeof(TM_IndexDelete) * ntids);
	delstate->ndeltids = ntids;
	pfree(sorted);
	return neighbours;
}

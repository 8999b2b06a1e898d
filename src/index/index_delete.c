/*-------------------------------------------------------------------------
 *
 * index_delete.c
 *	  The table's side of index deletion: which entries of an index page point
 *	  to rows that nobody can see any more?
 *
 * Simple deletion: the index has entries marked dead and asks for the conflict
 * horizon; other entries of the page that point to the same table blocks are
 * checked along the way.
 *
 * Bottom-up deletion: an index page is about to split, perhaps only because of
 * versions of the same rows.  The index does not know anything for sure; it
 * marks duplicates as promising.  We look at a few table blocks, those where
 * most is to be had first, and give up as soon as that does not pay.
 *
 * A sweep (sweep.c) is VACUUM's, of all entries of some rows: it must not leave
 * out any, however little there is to be had.
 *
 * What is on a TID
 *	  An entry is deletable when the row as a whole is: deleted or moved, and
 *	  that visible to everybody; its insert aborted; or pruned to a stub.  An
 *	  entry of an index that takes in-place updates is so, too, when no version
 *	  of the row that somebody may see has its key (index.h).  Stubs stay until
 *	  VACUUM, which knows that no index points to them.  So an entry to an
 *	  unused or missing line pointer is corruption.
 *
 * Conflict horizon
 *	  The newest deleter of a row whose entry goes.  Removing a row from the
 *	  page was logged with its own horizon, so stubs add nothing.
 *
 * Locks: the caller has the index page locked; table pages are share-locked
 * one at a time, and undo pages under them.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "catalog/catalog.h"
#include "index/index.h"
#include "port/pg_bitutils.h"
#include "table/scan.h"
#include "table/table.h"
#include "utils/spccache.h"

/* bottom-up: blocks visited at most */
#define BOTTOMUP_MAX_BLOCKS			6

/* bottom-up: blocks visited at most in an index that takes in-place updates,
 * whose pages fill with entries of former keys of rows all over the table */
#define BOTTOMUP_MAX_BLOCKS_TAKING	400

/*
 * ... as long as it pays: when, after the first blocks, fewer than one in so
 * many visits has found something, most of the page's entries are needed, and
 * the page rightly splits.
 */
#define BOTTOMUP_TAKING_SAMPLE		32
#define BOTTOMUP_TAKING_YIELD		16

/*
 * ... and for more than the server asks for, which is a sixteenth of a page: what
 * is left would have to be gone for soon, with the entries of the page
 * collected and sorted again, and another WAL record.
 */
#define BOTTOMUP_TAKING_TARGET		(BLCKSZ / 4)

/* bottom-up: up to so many promising TIDs blocks count the same */
#define MIN_PROMISING				4

/* bottom-up: blocks this close to each other count as neighbours */
#define BOTTOMUP_NEIGHBOUR_DISTANCE 3

/* so much before a block is prefetched, what tells where it is in memory */
#define EXPECT_DISTANCE				4

/*
 * The TIDs of one block, in deltids from "first" on.
 */
typedef struct BlockGroup
{
	BlockNumber blk;
	int			first;
	int			ntids;
	int			promising;		/* rounded up to a power of two */
	Buffer		recent;			/* a guess where it is, if it was prefetched */
} BlockGroup;

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
 * Sort by block, digit by digit from the last one on: mostly there are two that
 * are not the same in all.  Within a block the order does not matter.  Needs as
 * much room again; returns where they are then.
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

static void
sort_deltids(TM_IndexDelete *deltids, int n)
{
	uint64	   *chunk = palloc(sizeof(uint64) * 2 * Max(n, 1));
	uint64	   *packed = chunk;

	for (int i = 0; i < n; i++)
		packed[i] = pack_deltid(&deltids[i]);
	if (n >= MIN_DIGITS_SORT)
		packed = sort_by_digits(packed, packed + n, n);
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

/* the most rewarding block first */
static inline int
compare_groups(const BlockGroup *a, const BlockGroup *b)
{
	if (a->promising != b->promising)
		return a->promising > b->promising ? -1 : 1;
	if (a->ntids != b->ntids)
		return a->ntids > b->ntids ? -1 : 1;
	return a->blk < b->blk ? -1 : 1;
}

#define ST_SORT sort_groups
#define ST_ELEMENT_TYPE BlockGroup
#define ST_COMPARE(a, b) compare_groups(a, b)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * Sort deltids and divide them into blocks.
 */
static BlockGroup *
make_groups(TM_IndexDeleteOp *delstate, int *ngroups)
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
			groups[n].recent = InvalidBuffer;
			n++;
		}
		groups[n - 1].ntids++;
		if (delstate->status[deltid->id].promising)
			groups[n - 1].promising++;
	}
	*ngroups = n;
	return groups;
}

/*
 * The same as sort_groups of all of them, which come in the order of their
 * blocks.  On most pages of an index that takes in-place updates nearly every
 * group is of the last rank, and stays in that order.
 */
static void
sort_groups_by_rank(BlockGroup *groups, int ngroups)
{
	BlockGroup *last = palloc(sizeof(BlockGroup) * Max(ngroups, 1));
	int			nlast = 0;
	int			nother = 0;

	for (int i = 0; i < ngroups; i++)
	{
		if (groups[i].promising == MIN_PROMISING && groups[i].ntids == 1)
			last[nlast++] = groups[i];
		else
			groups[nother++] = groups[i];
	}
	sort_groups(groups, nother);
	memcpy(groups + nother, last, sizeof(BlockGroup) * nlast);
	pfree(last);
}

/*
 * Choose the blocks to visit for a bottom-up deletion, and put the TIDs of
 * those, in that order, to the start of deltids; the others are dropped.
 * Returns how many blocks at the front are neighbours.
 */
static int
rank_groups(TM_IndexDeleteOp *delstate, BlockGroup *groups, int *ngroups,
			int max_groups)
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
	sort_groups_by_rank(groups, *ngroups);
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

static void
report_bad_tid(Relation rel, TM_IndexDeleteOp *delstate,
			   TM_IndexDelete *deltid, const char *what)
{
	TM_IndexStatus *status = &delstate->status[deltid->id];

	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" has an entry for TID (%u,%u) of table \"%s\", which is %s",
					RelationGetRelationName(delstate->irel),
					ItemPointerGetBlockNumberNoCheck(&deltid->tid),
					ItemPointerGetOffsetNumberNoCheck(&deltid->tid),
					RelationGetRelationName(rel), what),
			 errdetail("The entry is in block %u of the index at offset %u.",
					   delstate->iblknum, status->idxoffnum)));
}

/*
 * Is the entry deletable?  The row's page is share-locked.
 */
static bool
check_tid(Relation rel, TM_IndexDeleteOp *delstate, TM_IndexDelete *deltid,
		  Buffer buffer, OffsetNumber maxoff, GlobalVisState *vistest,
		  Page index_page, TransactionId *oldest_xmin, TransactionId *horizon)
{
	Page		page = BufferGetPage(buffer);
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(&deltid->tid);
	bool		known = delstate->status[deltid->id].knowndeletable;
	ItemId		lp;
	InplaceTupleHeader tup;
	bool		all_visible;

	if (off < FirstOffsetNumber || off > maxoff)
		report_bad_tid(rel, delstate, deltid, "beyond the end of its page");
	lp = PageGetItemId(page, off);
	if (ItemIdIsDead(lp))
		return true;
	if (!ItemIdIsNormal(lp))
		report_bad_tid(rel, delstate, deltid, "not in use");

	tup = (InplaceTupleHeader) PageGetItem(page, lp);
	if (index_page != NULL && (tup->t_infomask & IP_STALE) && !known)
	{
		OffsetNumber idxoff = delstate->status[deltid->id].idxoffnum;
		IndexTuple	itup = (IndexTuple) PageGetItem(index_page,
													PageGetItemId(index_page, idxoff));

		if (!TransactionIdIsValid(*oldest_xmin))
			*oldest_xmin = GetOldestNonRemovableTransactionId(rel);
		if (!inplace_entry_needed(rel, delstate->irel, itup,
								  BufferGetBlockNumber(buffer), off, tup,
								  RowLength(tup, lp), *oldest_xmin, horizon))
			return true;
	}

	/*
	 * Neither deleted nor the first version: it is a row, whatever became of
	 * its last change.  Nobody is asked about that here, where a hint on each
	 * page that is looked at would have it written, and to WAL, too.
	 */
	if (!(tup->t_infomask & (IP_DELETED | IP_FRESH | IP_SPECULATIVE)))
		return known;

	switch (inplace_row_state(rel, tup, buffer, InvalidTransactionId, vistest,
							  &all_visible))
	{
		case ROW_DEAD:
			break;
		case ROW_ABORTED_INSERT:
			return true;		/* nobody ever saw it */
		case ROW_RECENTLY_DEAD:

			/*
			 * A scan found it dead to everybody by a newer horizon than ours.
			 */
			if (!known)
				return false;
			break;
		default:
			return known;
	}

	if (!TransactionIdIsValid(*horizon) ||
		TransactionIdFollows(tup->t_xid, *horizon))
		*horizon = tup->t_xid;
	return true;
}

TransactionId
inplace_index_delete_tuples(Relation rel, TM_IndexDeleteOp *delstate)
{
	TransactionId horizon = InvalidTransactionId;
	GlobalVisState *vistest = GlobalVisTestFor(rel);
	BlockGroup *groups;
	int			ngroups;
	int			neighbours = 0;
	int			nvisited = 0;
	int			nfruitful = 0;	/* of those, had something deletable */
	int			nkept = 0;		/* deltids up to the last deletable one */
	int			prefetched = 0;
	int			expected = 0;
	int			prefetch_distance;
	int			freed = 0;
	int			target = delstate->bottomupfreespace;
	bool		sweep = delstate->bottomup && target == SWEEP_EVERYTHING;
	bool		taking = sweep || inplace_index_takes(delstate->irel);
	TransactionId oldest_xmin = InvalidTransactionId;
	Buffer		index_buffer = InvalidBuffer;
	Page		index_page = NULL;

	if (sweep)
		oldest_xmin = inplace_sweep_horizon;
	else if (delstate->bottomup && taking)
		target = Max(target, BOTTOMUP_TAKING_TARGET);

	/* the caller has it locked */
	if (taking)
	{
		index_buffer = ReadBuffer(delstate->irel, delstate->iblknum);
		index_page = BufferGetPage(index_buffer);
	}

	groups = make_groups(delstate, &ngroups);
	if (delstate->bottomup)
	{
		neighbours = rank_groups(delstate, groups, &ngroups,
								 sweep ? ngroups :
								 taking ? BOTTOMUP_MAX_BLOCKS_TAKING :
								 BOTTOMUP_MAX_BLOCKS);
		/* read ahead those only that we are likely to visit */
		prefetch_distance = neighbours;
	}
	else if (IsCatalogRelation(rel))
		prefetch_distance = maintenance_io_concurrency;
	else
		prefetch_distance =
			get_tablespace_maintenance_io_concurrency(rel->rd_rel->reltablespace);

	for (int g = 0; g < ngroups; g++)
	{
		BlockGroup *group = &groups[g];
		Buffer		buffer;
		OffsetNumber maxoff;
		bool		found = false;

		if (delstate->bottomup && nvisited > 0)
		{
			/*
			 * Every block outside the run of neighbours has to be worth more:
			 * be content with half as much from here on.
			 */
			if (nvisited >= neighbours && !taking)
				target /= 2;
			if (freed >= target)
				break;
		}

		while (expected < ngroups &&
			   expected <= g + prefetch_distance + EXPECT_DISTANCE)
			inplace_expect_page(rel, groups[expected++].blk);
		while (prefetched < ngroups && prefetched <= g + prefetch_distance)
		{
			BlockGroup *next = &groups[prefetched++];

			if (next > group)
				next->recent = inplace_prefetch_row_page(rel, next->blk,
														 ItemPointerGetOffsetNumberNoCheck(&delstate->deltids[next->first].tid));
		}

		CHECK_FOR_INTERRUPTS();
		buffer = inplace_pin_prefetched(rel, group->blk, group->recent);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		maxoff = PageGetMaxOffsetNumber(BufferGetPage(buffer));

		for (int i = group->first; i < group->first + group->ntids; i++)
		{
			TM_IndexDelete *deltid = &delstate->deltids[i];
			TM_IndexStatus *status = &delstate->status[deltid->id];

			if (!check_tid(rel, delstate, deltid, buffer, maxoff, vistest,
						   index_page, &oldest_xmin, &horizon))
				continue;
			status->knowndeletable = true;
			freed += status->freespace;
			found = true;
			nkept = i + 1;
		}

		UnlockReleaseBuffer(buffer);
		nvisited++;

		nfruitful += found;

		/* where the best block has nothing, the next will not have more */
		if (delstate->bottomup && !found && !taking)
			break;
		if (delstate->bottomup && taking && !sweep &&
			nvisited >= BOTTOMUP_TAKING_SAMPLE &&
			nfruitful < nvisited / BOTTOMUP_TAKING_YIELD)
			break;
	}

	/* what comes after the last deletable entry is of no use to the caller */
	Assert(delstate->bottomup || nkept > 0 || delstate->ndeltids == 0);
	delstate->ndeltids = nkept;
	pfree(groups);
	if (BufferIsValid(index_buffer))
		ReleaseBuffer(index_buffer);
	return horizon;
}

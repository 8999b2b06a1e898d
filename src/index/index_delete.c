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
 * In an index that takes in-place updates pages fill with entries of former keys
 * of rows all over the table.  So all entries of a page may be looked up, until
 * enough has been found.  Blocks of one entry begin with any of them: if we
 * always began with the lowest, and had enough before the end, we would never come
 * to the highest.  What is found is a share of what is looked up, so it pays to
 * come late: nbtree deduplicates the page next if nothing has been deleted, and
 * where that will make room it is left to it (dedup.c).  And former keys are
 * those of rows changed of late, which are in memory: few blocks are read for
 * it that are not.
 *
 * A TID that is on the page twice tells more: a row has one present key, so at most
 * one of the two entries is of it.  Such blocks come first.  If they make room
 * enough, the others are left alone: of those, which are nearly all of the page,
 * few would have something.  They are tried if doubled ones bring little, as beside
 * an old snapshot, which may need both entries.
 *
 * A sweep (sweep.c) is VACUUM's, of all former keys of some rows: it must not leave
 * out any, however little there is to be had, but of rows that have gone meanwhile.
 *
 * What is on a TID
 *	  An entry is deletable when the row as a whole is: deleted or moved, and
 *	  that visible to everybody, or before any snapshot saw the row
 *	  (row/between.c); its insert aborted; or pruned to a stub.  An
 *	  entry of an index that takes in-place updates is so, too, when no version
 *	  of the row that somebody may see has its key (index.h); versions between two
 *	  snapshots nobody does (row/between.c).  Stubs stay until
 *	  VACUUM, which knows that no index points to them.  So an entry to an
 *	  unused or missing line pointer is corruption.
 *
 *	  Keys that are computed are looked up (version_keys.c).  An insertion that wants
 *	  room and finds too little lets go of the page once, to have computed those
 *	  that are not there (insertion.c).  What is not known counts as needed.
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

#include "access/nbtree.h"
#include "catalog/catalog.h"
#include "common/pg_prng.h"
#include "index/dedup.h"
#include "index/delete_groups.h"
#include "index/entry.h"
#include "index/index_delete.h"
#include "index/insertion.h"
#include "index/key.h"
#include "index/stale_rows.h"
#include "index/sweep.h"
#include "index/taking.h"
#include "index/version_keys.h"
#include "page/page.h"
#include "page/recent.h"
#include "page/tuple.h"
#include "row/between.h"
#include "row/visibility.h"
#include "utils/spccache.h"

/*
 * bottom-up: blocks visited at most; in an index that takes in-place updates, of
 * those that are not in memory, after which others are left alone if it is not
 * known where in memory they are (recent.c)
 */
#define BOTTOMUP_MAX_BLOCKS			6

/* ... of a temporary table, of which it is never known where blocks are in memory */
#define BOTTOMUP_TAKING_MAX_LOCAL	400

/*
 * ... and of all as long as it pays: when, after the first blocks, fewer than one in so
 * many visits has found something, most of the page's entries are needed, and
 * the page rightly splits.  Blocks with a doubled TID and others count by themselves.
 */
#define BOTTOMUP_TAKING_SAMPLE		32
#define BOTTOMUP_TAKING_YIELD		32

/*
 * ... and, where it does not come from doubled TIDs, for more than the server asks
 * for, which is a sixteenth of a page: what is left would have to be gone for soon,
 * with the entries of the page collected and sorted again, and another WAL record.
 */
#define BOTTOMUP_TAKING_TARGET		(BLCKSZ / 4)

/* ... what it costs to collect them, and to log what is deleted, in visits */
#define BOTTOMUP_TAKING_COLLECTION	128

/* ... and room for so many more entries is enough, if others would cost more */
#define BOTTOMUP_TAKING_ENTRIES		4

/*
 * Versions looked at, of a row for one entry, and in all, but by a sweep: an index
 * page is locked, which others want, and a row that is updated all the time under
 * an old snapshot may have any number.  Its entries are needed then, or nearly all.
 */
#define MOST_VERSIONS_OF_ROW		1000
#define MOST_VERSIONS				20000

/*
 * so much before a block is prefetched, what tells where it is in memory; and so
 * much before that, the place to look that up
 */
#define EXPECT_DISTANCE				6

/* bottom-up in an index that takes in-place updates: blocks read ahead */
#define BOTTOMUP_TAKING_DISTANCE	8

/*
 * Reading ahead of the visits.
 */
typedef struct ReadAhead
{
	int			distance;
	bool		rows;			/* the row itself, too */
	int			foreseen;		/* groups so far */
	int			expected;
	int			prefetched;
	int			rows_read;
	int			most_reads;		/* of blocks that are not in memory */
	int			nread;
} ReadAhead;

static void
read_ahead_of(Relation rel, ReadAhead *ra, BlockGroup *group, OffsetNumber off)
{
	if (ra->nread >= ra->most_reads)
	{
		group->recent = inplace_expected_row_page(rel, group->blk, off);
		group->left_alone = !BufferIsValid(group->recent);
		return;
	}
	group->recent = inplace_prefetch_row_page(rel, group->blk, off);
	if (!BufferIsValid(group->recent))
		ra->nread++;
}

/* before group g is visited */
static void
read_ahead(Relation rel, TM_IndexDeleteOp *delstate, BlockGroup *groups, int ngroups,
		   ReadAhead *ra, int g)
{
	int			end = Min(ngroups, g + ra->distance + 1);
	int			end_expected = Min(ngroups, end + EXPECT_DISTANCE);
	int			end_foreseen = Min(ngroups, end_expected + EXPECT_DISTANCE);
	int			end_rows = Min(ngroups, g + ra->distance / 2 + 1);

	/* those before g that have not been visited are passed over */
	ra->foreseen = Max(ra->foreseen, g);
	ra->expected = Max(ra->expected, g);
	ra->prefetched = Max(ra->prefetched, g);
	ra->rows_read = Max(ra->rows_read, g);
	while (ra->foreseen < end_foreseen)
		inplace_foresee_page(rel, groups[ra->foreseen++].blk);
	while (ra->expected < end_expected)
		inplace_expect_page(rel, groups[ra->expected++].blk);
	while (ra->prefetched < end)
	{
		BlockGroup *next = &groups[ra->prefetched++];

		/* (the first one is visited now; it is counted) */
		if (next > &groups[g] || ra->rows)
			read_ahead_of(rel, ra, next,
						  ItemPointerGetOffsetNumberNoCheck(&delstate->deltids[next->first].tid));
	}
	while (ra->rows && ra->rows_read < end_rows)
	{
		BlockGroup *next = &groups[ra->rows_read++];

		if (BufferIsValid(next->recent))
			inplace_prefetch_row(next->recent,
								 ItemPointerGetOffsetNumberNoCheck(&delstate->deltids[next->first].tid));
	}
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

typedef struct Deletion
{
	Relation	rel;
	TM_IndexDeleteOp *delstate;
	bool		taking;			/* the index may have entries of former keys */
	bool		bottomup_taking;	/* ... and it is a bottom-up deletion */
	const SweepOp *sweep;		/* if it is one */
	Page		index_page;		/* if the index may have stale entries */
	GlobalVisState *vistest;
	const IndexKey *key;		/* ... and its keys are computed */
	EntryQuestion question;
	Insertion  *ins;			/* by which it is wanted, if it may let go */
	TransactionId horizon;
	int			versions_left;	/* to be looked at, unless it is a sweep */
	int			between_left;	/* undo records, of deleted rows */
	ItemPointerData long_row;	/* has too many of them */
	int			freed;			/* bytes */
	int			largest;		/* entry of the page, in bytes */
	int			nkept;			/* deltids up to the last deletable one */
} Deletion;

/*
 * The same for VACUUM's sweep.  A row that has been changed since VACUUM noted it
 * keeps all its entries, and its mark; so does one with an entry that is
 * not known to be right, nor to be wrong.  (That is so as well of an index that takes no
 * in-place updates because its keys may come out otherwise in another session.  It may
 * have taken some before it was known, key.c.)
 */
static bool
sweep_needs(Deletion *d, TM_IndexDelete *deltid, IndexTuple itup,
			BlockNumber blk, InplaceTupleHeader tup, Size len)
{
	if ((tup->t_natts & IP_UNCHANGED) == 0)
		return true;
	d->question.versions = INT_MAX;
	d->question.between = false;
	d->question.keys = d->sweep->keys;
	switch (inplace_entry_needed(&d->question, itup, blk,
								 ItemPointerGetOffsetNumberNoCheck(&deltid->tid),
								 tup, len))
	{
		case KEY_MATCHES:
			return true;
		case KEY_IS_OTHER:
			if (d->key == NULL || d->key->known)
				return false;
			break;
		case KEY_UNSURE:
			break;
	}
	stale_rows_drop(d->sweep->rows, &deltid->tid);
	return true;
}

/*
 * May somebody still see a version of the row with the entry's key?
 */
static bool
entry_needed(Deletion *d, TM_IndexDelete *deltid, IndexTuple itup,
			 Buffer buffer, InplaceTupleHeader tup, Size len)
{
	BlockNumber blk = BufferGetBlockNumber(buffer);
	int			most = Min(MOST_VERSIONS_OF_ROW, d->versions_left);
	bool		needed;

	/* an entry is of all versions of its row */
	if (d->key != NULL && !d->key->known && !(d->sweep && d->key->readable))
		return true;
	if (d->sweep && !stale_rows_is_between(d->sweep->rows, &deltid->tid))
		return sweep_needs(d, deltid, itup, blk, tup, len);
	if (ItemPointerIsValid(&d->long_row) &&
		ItemPointerEquals(&d->long_row, &deltid->tid))
		return true;
	d->question.versions = most;
	d->question.between = true;
	/* VACUUM's are those of present versions */
	if (d->sweep)
		d->question.keys = NULL;
	needed = inplace_entry_needed(&d->question, itup, blk,
								  ItemPointerGetOffsetNumberNoCheck(&deltid->tid),
								  tup, len) != KEY_IS_OTHER;
	d->versions_left -= most - Max(d->question.versions, 0);
	if (d->question.versions < 0)
		d->long_row = deltid->tid;
	return needed;
}

/*
 * Is the entry deletable?  The row's page is share-locked.
 */
static bool
check_tid(Deletion *d, TM_IndexDelete *deltid, Buffer buffer, OffsetNumber maxoff)
{
	Relation	rel = d->rel;
	TM_IndexDeleteOp *delstate = d->delstate;
	Page		page = RowPage(rel, buffer);
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(&deltid->tid);
	bool		known = delstate->status[deltid->id].knowndeletable;
	ItemId		lp;
	InplaceTupleHeader tup;
	bool		all_visible;

	if (off < FirstOffsetNumber || off > maxoff)
		report_bad_tid(rel, delstate, deltid, "beyond the end of its page");
	lp = PageGetItemId(page, off);
	if (ItemIdIsDead(lp))
		return !d->sweep;
	if (!ItemIdIsNormal(lp))
		report_bad_tid(rel, delstate, deltid, "not in use");

	tup = (InplaceTupleHeader) PageGetItem(page, lp);

	/*
	 * The entries of rows that go are for bulk deletion: standbys wait for
	 * scans that have copied them before they replay that, and not before
	 * they replay this.
	 */
	if (d->sweep && (tup->t_infomask & IP_DELETED))
		return false;
	if (d->index_page != NULL && (tup->t_infomask & IP_STALE) && !known)
	{
		OffsetNumber idxoff = delstate->status[deltid->id].idxoffnum;
		IndexTuple	itup = (IndexTuple) PageGetItem(d->index_page,
													PageGetItemId(d->index_page, idxoff));

		if (!TransactionIdIsValid(d->question.oldest_xmin))
			d->question.oldest_xmin = GetOldestNonRemovableTransactionId(rel);
		if (!entry_needed(d, deltid, itup, buffer, tup, RowLength(tup, lp)))
			return true;
	}

	/*
	 * Neither deleted nor the first version: it is a row, whatever became of
	 * its last change.  Nobody is asked about that here, where a hint on each
	 * page that is looked at would have it written, and to WAL, too.
	 */
	if (!(tup->t_infomask & (IP_DELETED | IP_FRESH | IP_SPECULATIVE)))
		return known;

	switch (inplace_row_state(rel, tup, buffer, InvalidTransactionId, d->vistest,
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
			if (!known && !inplace_row_between(rel, BufferGetBlockNumber(buffer), off,
											   tup, NULL, &d->between_left))
				return false;
			break;
		default:
			return known;
	}

	if (!TransactionIdIsValid(d->horizon) ||
		TransactionIdFollows(HdrXid(tup), d->horizon))
		d->horizon = HdrXid(tup);
	return true;
}

/*
 * A block's entries; is one of them deletable?
 */
static bool
visit_block(Deletion *d, const BlockGroup *group)
{
	TM_IndexDeleteOp *delstate = d->delstate;
	Buffer		buffer = inplace_pin_prefetched(d->rel, group->blk, group->recent);
	OffsetNumber maxoff;
	bool		found = false;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	maxoff = PageGetMaxOffsetNumber(RowPage(d->rel, buffer));
	for (int i = group->first; i < group->first + group->ntids; i++)
	{
		TM_IndexDelete *deltid = &delstate->deltids[i];
		TM_IndexStatus *status = &delstate->status[deltid->id];

		if (!check_tid(d, deltid, buffer, maxoff))
			continue;
		status->knowndeletable = true;
		d->freed += status->freespace;
		d->nkept = i + 1;
		found = true;
	}
	UnlockReleaseBuffer(buffer);
	return found;
}

/*
 * What is asked about entries of an index that may have stale ones.
 */
static void
prepare_question(Deletion *d)
{
	EntryQuestion *q = &d->question;
	Relation	index = d->delstate->irel;
	Insertion  *ins = inplace_insertion;

	q->table = d->rel;
	q->index = index;
	if (inplace_key_is_computed(index))
		d->key = inplace_index_key(index);
	if (d->sweep)
	{
		q->oldest_xmin = d->sweep->horizon;
		/* no others are read, and only rows that are noted as such looked at */
		q->bounds.bounds = d->sweep->bounds;
		q->bounds.asked = true;
		q->keys = d->sweep->keys;
	}
	else if (d->key != NULL && ins != NULL && ins->index == index &&
			 inplace_can_let_go(ins))
	{
		d->ins = ins;
		q->keys = &ins->keys;
		q->may_want = d->delstate->bottomup && !ins->deletion_let_go;
	}
}

static uint32
begin_of_groups(const Deletion *d)
{
	uint32		begin = pg_prng_uint32(&pg_global_prng_state);

	if (d->ins == NULL)
		return begin;
	if (!d->ins->deletion_let_go)
		d->ins->deletion_begins = begin;
	return d->ins->deletion_begins;
}

/*
 * Would others be found to be deletable, if more keys were known?  Then let go of
 * the page, to come back with these.
 */
static void
let_go_for_more(Deletion *d, int nvisited)
{
	if (d->question.nwanted == 0 || d->freed >= d->delstate->bottomupfreespace)
		return;
	d->ins->deletion_let_go = true;
	d->ins->deletion_visits = nvisited;
	inplace_let_go(d->ins);
}

/* come back with these, and through with them? */
static bool
knows_no_more(const Deletion *d, int nvisited)
{
	return d->ins != NULL && d->ins->deletion_let_go &&
		nvisited >= d->ins->deletion_visits;
}

/*
 * "neighbours": the length of the run of blocks that bottom-up deletion begins with.
 */
static void
begin_reading_ahead(const Deletion *d, int neighbours, ReadAhead *ra)
{
	Relation	rel = d->rel;

	if (d->delstate->bottomup)
		/* those only that we are likely to visit */
		ra->distance = neighbours;
	else if (IsCatalogRelation(rel))
		ra->distance = maintenance_io_concurrency;
	else
		ra->distance =
			get_tablespace_maintenance_io_concurrency(rel->rd_rel->reltablespace);
	if (d->bottomup_taking)
	{
		ra->rows = true;
		ra->distance = BOTTOMUP_TAKING_DISTANCE;
		if (!RelationUsesLocalBuffers(rel))
			ra->most_reads = BOTTOMUP_MAX_BLOCKS;
	}
}

/* how many bytes bottom-up deletion is to free, in an index that takes updates */
static int
taking_target(const Deletion *d)
{
	/* keys that have been computed for it are not left for another time */
	if (d->ins != NULL && d->ins->deletion_let_go)
		return BLCKSZ;
	return Max(d->delstate->bottomupfreespace, BOTTOMUP_TAKING_TARGET);
}

/*
 * What the visits to blocks of one kind have brought.
 */
typedef struct Yield
{
	int			nvisited;
	int			nfruitful;		/* of those, had something deletable */
	int			freed;			/* bytes */
} Yield;

static void
note_visit(Yield *yield, bool found, int freed)
{
	yield->nvisited++;
	yield->nfruitful += found;
	yield->freed += freed;
}

/* of a leaf page, with its line pointer; of a posting list, with one TID */
static int
largest_entry(Page page)
{
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	int			largest = 0;

	for (OffsetNumber off = P_FIRSTDATAKEY(BTPageGetOpaque(page)); off <= maxoff; off++)
	{
		IndexTuple	itup = (IndexTuple) PageGetItem(page, PageGetItemId(page, off));
		Size		size = BTreeTupleIsPosting(itup) ?
			BTreeTupleGetPostingOffset(itup) : IndexTupleSize(itup);

		largest = Max(largest, (int) (size + sizeof(ItemIdData)));
	}
	return largest;
}

/*
 * Is there room enough for now, if what has been found is all of doubled TIDs?
 * nbtree asks for more than the entry that it is about to insert.  It may be as
 * large as the largest on the page.
 */
static bool
room_for_some(const Deletion *d)
{
	return d->freed >= BOTTOMUP_TAKING_ENTRIES * d->largest;
}

/*
 * Does the next visit pay, to a block where a TID is there twice or to another?
 * The others are visited as long as a visit frees as much as one to a doubled one
 * has, with the costs of coming back counted: a later deletion begins with new
 * doubled ones.
 */
static bool
next_pays(const Deletion *d, bool is_doubled, const Yield *doubled,
		  const Yield *others)
{
	const Yield *of = is_doubled ? doubled : others;

	if (of->nvisited >= BOTTOMUP_TAKING_SAMPLE &&
		of->nfruitful < of->nvisited / BOTTOMUP_TAKING_YIELD)
		return false;
	/* where keys are computed it is not known yet what a visit has brought */
	if (is_doubled || d->ins != NULL || !room_for_some(d))
		return true;
	if (others->nvisited < BOTTOMUP_TAKING_SAMPLE)
		return doubled->freed < d->delstate->bottomupfreespace ||
			doubled->nfruitful < doubled->nvisited / 2;
	return others->freed * (BOTTOMUP_TAKING_COLLECTION + doubled->nvisited) >=
		doubled->freed * others->nvisited;
}

/* what standbys have to be told: of the rows, and of versions that were asked about */
static TransactionId
newest_horizon(const Deletion *d)
{
	if (TransactionIdIsValid(d->question.horizon) &&
		(!TransactionIdIsValid(d->horizon) ||
		 TransactionIdFollows(d->question.horizon, d->horizon)))
		return d->question.horizon;
	return d->horizon;
}

/*
 * The visits, to the most rewarding blocks first if it is a bottom-up deletion.
 * Returns how many there were.  "neighbours": the length of the run of blocks that
 * it begins with.
 */
static int
visit_groups(Deletion *d, BlockGroup *groups, int ngroups, int neighbours)
{
	bool		bottomup = d->delstate->bottomup;
	int			target = d->bottomup_taking ? taking_target(d) :
		d->delstate->bottomupfreespace;
	ReadAhead	ra = {.most_reads = INT_MAX};
	Yield		doubled = {0};
	Yield		others = {0};
	int			nvisited = 0;

	begin_reading_ahead(d, neighbours, &ra);
	for (int g = 0; g < ngroups; g++)
	{
		BlockGroup *group = &groups[g];
		int			nwanted = d->question.nwanted;
		int			freed = d->freed;
		bool		found;

		if (bottomup && nvisited > 0)
		{
			/*
			 * Every block outside the run of neighbours has to be worth more:
			 * be content with half as much from here on.
			 */
			if (nvisited >= neighbours && !d->taking)
				target /= 2;
			if (d->freed >= target || knows_no_more(d, nvisited))
				break;
		}
		if (d->bottomup_taking && !next_pays(d, group->doubled, &doubled, &others))
		{
			if (group->doubled)
				continue;
			break;
		}
		/* of versions, doubled ones do not use up all */
		if (!group->doubled && others.nvisited == 0)
			d->versions_left = Max(d->versions_left, MOST_VERSIONS / 2);

		/* the index page is locked */
		if (unlikely(InterruptPending))
			InplaceEndIfAsked();
		read_ahead(d->rel, d->delstate, groups, ngroups, &ra, g);
		if (group->left_alone)
			continue;
		/* what is not known yet may be as fruitful as anything */
		found = visit_block(d, group) || d->question.nwanted > nwanted;
		nvisited++;
		if (d->question.nwanted > 0 && version_keys_are_many(d->question.keys))
			break;
		note_visit(group->doubled ? &doubled : &others, found, d->freed - freed);

		/* where the best block has nothing, the next will not have more */
		if (bottomup && !found && !d->taking)
			break;
	}
	return nvisited;
}

/* how many blocks bottom-up deletion may visit */
static int
most_blocks(const Deletion *d)
{
	if (!d->taking)
		return BOTTOMUP_MAX_BLOCKS;
	return d->bottomup_taking && RelationUsesLocalBuffers(d->rel) ?
		BOTTOMUP_TAKING_MAX_LOCAL : INT_MAX;
}

TransactionId
inplace_index_delete_tuples(Relation rel, TM_IndexDeleteOp *delstate)
{
	bool		sweep = delstate->bottomup &&
		delstate->bottomupfreespace == SWEEP_EVERYTHING;
	bool		taking = sweep || inplace_index_takes(delstate->irel);
	Deletion	d = {.rel = rel,.delstate = delstate,.taking = taking,
		.bottomup_taking = delstate->bottomup && taking && !sweep,
	.versions_left = MOST_VERSIONS,.between_left = BETWEEN_MAX_READS};
	uint32		begin;
	BlockGroup *groups;
	int			ngroups;
	int			neighbours = 0;
	Buffer		index_buffer = InvalidBuffer;

	d.vistest = GlobalVisTestFor(rel);
	d.sweep = sweep ? (const SweepOp *) delstate : NULL;
	ItemPointerSetInvalid(&d.long_row);

	/* the caller has it locked */
	if (taking)
	{
		prepare_question(&d);
		index_buffer = ReadBuffer(delstate->irel, delstate->iblknum);
		d.index_page = BufferGetPage(index_buffer);
	}
	if (d.bottomup_taking && inplace_index_deduplicates(delstate->irel) &&
		dedup_makes_room(d.index_page, delstate->bottomupfreespace))
	{
		/* that comes next */
		ReleaseBuffer(index_buffer);
		delstate->ndeltids = 0;
		return InvalidTransactionId;
	}

	if (d.bottomup_taking)
		d.largest = largest_entry(d.index_page);
	groups = delete_groups_make(delstate, d.bottomup_taking, &ngroups);
	begin = begin_of_groups(&d);
	if (delstate->bottomup)
		neighbours = delete_groups_rank(delstate, groups, &ngroups, most_blocks(&d),
										d.bottomup_taking ? &begin : NULL);
	let_go_for_more(&d, visit_groups(&d, groups, ngroups, neighbours));

	/* what comes after the last deletable entry is of no use to the caller */
	Assert(delstate->bottomup || d.nkept > 0 || delstate->ndeltids == 0);
	delstate->ndeltids = d.nkept;
	pfree(groups);
	if (BufferIsValid(index_buffer))
		ReleaseBuffer(index_buffer);
	return newest_horizon(&d);
}

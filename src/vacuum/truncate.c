/*-------------------------------------------------------------------------
 *
 * truncate.c
 *	  VACUUM gives the empty pages at the end of a table back to the system, and the free ones of
 *	  its btrees.
 *
 * That needs an AccessExclusiveLock, which is only ever tried for, and given up
 * as soon as somebody waits for it.  Undo records may still name rows on the
 * pages that go.  What they describe is aborted and taken off already, so a
 * process that follows them to a block past the end has nothing to do.
 *
 * In an index free pages are anywhere, and those at the end are moved there
 * (btree/shorten.c).  That is done if nobody has the index locked, and not if the table
 * grows, for then the pages will be needed.  A VACUUM that could not, beside a load, leaves
 * it to the next one.  That may find nothing dead and so has not been through the index.
 * Then a sample of the index's free space map shows whether it has free pages.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/nbtree.h"
#include "btree/shorten.h"
#include "catalog/storage.h"
#include "index/btree_handler.h"
#include "index/merge_leaves.h"
#include "page/page.h"
#include "portability/instr_time.h"
#include "storage/freespace.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/smgr.h"
#include "undo/seen.h"
#include "utils/wait_event.h"
#include "vacuum/truncate.h"
#include "vacuum/vacuum.h"
#include "vacuum/vacuum_index.h"

/* worth it from this many pages on, or this part of the table */
#define TRUNCATE_MIN_PAGES			1000
#define TRUNCATE_MIN_FRACTION		16

/* ... and for an index from this many, and the same part of it */
#define SHORTEN_MIN_PAGES			8

/* a sample of the free space map has to show twice that part, to be sure */
#define FREE_SAMPLE_PAGES			100
#define FREE_MIN_FRACTION			(TRUNCATE_MIN_FRACTION / 2)

/* milliseconds */
#define TRUNCATE_WAITER_INTERVAL	20
#define TRUNCATE_LOCK_INTERVAL		50
#define TRUNCATE_LOCK_TIMEOUT		5000
#define TRUNCATE_HELD_TIMEOUT		500

#define TRUNCATE_PREFETCH			((BlockNumber) 32)

/*
 * An AccessExclusiveLock is logged for standbys under an xid, which the server may
 * not give out any more: then what is left to do is to freeze.  (Heap's VACUUM
 * fails there.)
 */
static bool
may_lock_exclusively(void)
{
	return !XLogStandbyInfoActive() ||
		TransactionIdIsValid(GetTopTransactionIdIfAny()) ||
		!InplaceXidsRunShort();
}

static bool
can_truncate(InplaceVacuum *vac)
{
	BlockNumber empty;

	if (!vac->do_truncate || vac->failsafe || !may_lock_exclusively())
		return false;

	empty = vac->rel_pages - vac->nonempty_pages;
	return empty > 0 &&
		(empty >= TRUNCATE_MIN_PAGES ||
		 empty >= vac->rel_pages / TRUNCATE_MIN_FRACTION);
}

/*
 * Has the transaction of a held snapshot the table locked, still?  Then it is not worth
 * waiting for: what is free meanwhile is not known to others before VACUUM is done.
 */
static bool
locked_by_held(InplaceVacuum *vac)
{
	LockRelId	id = vac->rel->rd_lockInfo.lockRelId;
	LOCKTAG		tag;
	VirtualTransactionId *others;
	int			n;

	if (vac->bounds == NULL || vac->bounds->nheld == 0)
		return false;
	SET_LOCKTAG_RELATION(tag, id.dbId, id.relId);
	others = GetLockConflicts(&tag, AccessExclusiveLock, &n);
	for (int i = 0; i < n; i++)
		if (UndoIsHolder(vac->bounds, &others[i]))
			return true;
	return false;
}

static bool
try_lock(InplaceVacuum *vac)
{
	int			waited = 0;

	while (!ConditionalLockRelation(vac->rel, AccessExclusiveLock))
	{
		CHECK_FOR_INTERRUPTS();

		waited += TRUNCATE_LOCK_INTERVAL;
		if (waited > TRUNCATE_LOCK_TIMEOUT ||
			(waited > TRUNCATE_HELD_TIMEOUT && locked_by_held(vac)))
		{
			ereport(vac->verbose ? INFO : DEBUG2,
					(errmsg("\"%s\": stopping truncate due to conflicting lock request",
							vac->relname)));
			return false;
		}
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 TRUNCATE_LOCK_INTERVAL, WAIT_EVENT_VACUUM_TRUNCATE);
		ResetLatch(MyLatch);
	}
	return true;
}

/* nothing on the page, not even a stub that an index still points to? */
static bool
page_is_unused(InplaceVacuum *vac, BlockNumber blk)
{
	Buffer		buffer;
	Page		page;
	bool		unused = true;

	buffer = ReadBufferExtended(vac->rel, MAIN_FORKNUM, blk, RBM_NORMAL,
								vac->bstrategy);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = RowPage(vac->rel, buffer);
	if (!PageIsNew(page))
	{
		OffsetNumber maxoff = PageGetMaxOffsetNumber(page);

		for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
		{
			if (ItemIdIsUsed(PageGetItemId(page, off)))
			{
				unused = false;
				break;
			}
		}
	}
	UnlockReleaseBuffer(buffer);
	return unused;
}

/*
 * With the lock held: rows may have been added since the first pass, so look
 * at the pages again, from the end.  Returns what the table's size can be;
 * stops early, with *waiter set, when somebody wants the lock.
 */
static BlockNumber
find_new_end(InplaceVacuum *vac, bool *waiter)
{
	BlockNumber end = vac->rel_pages;
	BlockNumber prefetched = InvalidBlockNumber;
	instr_time	last_look;

	INSTR_TIME_SET_CURRENT(last_look);

	while (end > vac->nonempty_pages)
	{
		BlockNumber blk = end - 1;

		/* ask the lock manager rarely: the time every 32 blocks, at most */
		if (end % 32 == 0)
		{
			instr_time	now;
			instr_time	elapsed;

			INSTR_TIME_SET_CURRENT(now);
			elapsed = now;
			INSTR_TIME_SUBTRACT(elapsed, last_look);
			if (INSTR_TIME_GET_MILLISEC(elapsed) >= TRUNCATE_WAITER_INTERVAL)
			{
				if (LockHasWaitersRelation(vac->rel, AccessExclusiveLock))
				{
					ereport(vac->verbose ? INFO : DEBUG2,
							(errmsg("table \"%s\": suspending truncate due to conflicting lock request",
									vac->relname)));
					*waiter = true;
					return end;
				}
				last_look = now;
			}
		}

		/* no cost delay here: others are waiting */
		CHECK_FOR_INTERRUPTS();

		if (blk < prefetched)
		{
			BlockNumber first = blk - blk % TRUNCATE_PREFETCH;

			for (BlockNumber b = first; b <= blk; b++)
				PrefetchBuffer(vac->rel, MAIN_FORKNUM, b);
			prefetched = first;
		}

		if (!page_is_unused(vac, blk))
			break;
		end = blk;
	}
	return end;
}

static void
truncate_table(InplaceVacuum *vac)
{
	bool		waiter;

	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE,
								 PROGRESS_VACUUM_PHASE_TRUNCATE);
	vac->phase = VACUUM_PHASE_TRUNCATE;
	vac->blkno = vac->nonempty_pages;

	do
	{
		BlockNumber old_end = vac->rel_pages;
		BlockNumber new_end;

		waiter = false;
		if (!try_lock(vac))
			return;

		/* if it has grown there is something in the new pages */
		if (RelationGetNumberOfBlocks(vac->rel) != old_end)
		{
			UnlockRelation(vac->rel, AccessExclusiveLock);
			return;
		}

		new_end = find_new_end(vac, &waiter);
		vac->blkno = new_end;
		if (new_end >= old_end)
		{
			UnlockRelation(vac->rel, AccessExclusiveLock);
			return;
		}

		RelationTruncate(vac->rel, new_end);

		/* others learn of it by the invalidation that comes with the lock */
		UnlockRelation(vac->rel, AccessExclusiveLock);

		vac->removed_pages += old_end - new_end;
		vac->rel_pages = new_end;
		ereport(vac->verbose ? INFO : DEBUG2,
				(errmsg("table \"%s\": truncated %u to %u pages",
						vac->relname, old_end, new_end)));
	} while (waiter && vac->rel_pages > vac->nonempty_pages);
}

/* ---------------- indexes ---------------- */

/*
 * Pages that have been deleted, whether or not they can be reused already.  They have
 * been counted even where the number of entries is an estimate.
 */
static bool
worth_shortening(const IndexBulkDeleteResult *istat)
{
	return istat != NULL && istat->pages_deleted >= SHORTEN_MIN_PAGES &&
		istat->pages_deleted >= istat->num_pages / TRUNCATE_MIN_FRACTION;
}

/*
 * Has the index so many that nbtree has noted as free?  The map is not logged, so this is
 * a reason to go through the index, no more.
 */
static bool
has_free_pages(Relation index)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(index);
	BlockNumber step = Max(1, nblocks / FREE_SAMPLE_PAGES);
	BlockNumber looked_at = 0;
	BlockNumber free = 0;

	if (!smgrexists(RelationGetSmgr(index), FSM_FORKNUM))
		return false;
	for (BlockNumber blk = BTREE_METAPAGE + 1; blk < nblocks; blk += step)
	{
		looked_at++;
		if (GetRecordedFreeSpace(index, blk) > 0)
			free++;
	}
	return free * step >= SHORTEN_MIN_PAGES && free >= looked_at / FREE_MIN_FRACTION;
}

/*
 * An index that this VACUUM has not been through: if it seems to have free pages, see.
 * If it has not, the map is wrong, as after a crash, and corrected.
 */
static void
look_for_free_pages(InplaceVacuum *vac, int i)
{
	if (!has_free_pages(vac->indrels[i]) || inplace_vacuum_failsafe(vac))
		return;
	vacuum_nothing_from_index(vac, i);
	if (!worth_shortening(vac->indstats[i]))
		inplace_correct_free_pages(vac->indrels[i], vac->bstrategy);
}

/* then free pages will be needed */
static bool
table_grows(InplaceVacuum *vac)
{
	return vac->old_live_tuples > 0 &&
		vac->new_rel_tuples > vac->old_live_tuples * (1 + TABLE_GROWS);
}

static Shortening *
prepare(InplaceVacuum *vac, int i)
{
	Relation	index = vac->indrels[i];
	VacuumPhase saved_phase = vac->phase;
	Shortening *result;
	const IndexBulkDeleteResult *istat;

	if (index->rd_rel->relam != BTREE_AM_OID && !inplace_index_is_btree(index))
		return NULL;
	if (!inplace_can_shorten(index) || inplace_index_is_locked(index))
		return NULL;
	if (vac->indstats[i] == NULL)
		look_for_free_pages(vac, i);
	istat = vac->indstats[i];
	if (!worth_shortening(istat))
		return NULL;
	enter_index(vac, VACUUM_PHASE_INDEX_CLEANUP, index);
	result = inplace_shorten_prepare(index,
									 istat->num_pages - istat->pages_deleted,
									 vac->bstrategy);
	leave_index(vac, saved_phase);
	return result;
}

static void
shorten(InplaceVacuum *vac, int i, Shortening *s)
{
	VacuumPhase saved_phase = vac->phase;

	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE,
								 PROGRESS_VACUUM_PHASE_TRUNCATE);
	enter_index(vac, VACUUM_PHASE_INDEX_CLEANUP, vac->indrels[i]);
	vac->cut_pages[i] = inplace_shorten_index(s, vac->indstats[i],
											  &vac->relocated_pages[i]);
	leave_index(vac, saved_phase);
}

/*
 * Replay of the lock would cancel queries of a standby; from heap, which leaves the files
 * of indexes as they are, nobody expects that.
 */
static bool
may_shorten_indexes(InplaceVacuum *vac)
{
	return vac->do_truncate && vac->do_index_cleanup && !vac->failsafe &&
		inplace_merge_index_pages && !table_grows(vac) &&
		!UndoStandbyConnected() && may_lock_exclusively();
}

/*
 * The table, and then its indexes; what needs no lock comes first, as on standbys that
 * replay the WAL later the first lock lasts until the end.
 */
void
inplace_vacuum_truncate_all(InplaceVacuum *vac)
{
	bool		indexes = may_shorten_indexes(vac);
	Shortening **shortenings = palloc0(Max(vac->nindexes, 1) * sizeof(Shortening *));

	for (int i = 0; indexes && !vac->failsafe && i < vac->nindexes; i++)
		shortenings[i] = prepare(vac, i);
	if (can_truncate(vac))
		truncate_table(vac);
	for (int i = 0; i < vac->nindexes; i++)
		if (shortenings[i] != NULL)
			shorten(vac, i, shortenings[i]);
	pfree(shortenings);
}

/*-------------------------------------------------------------------------
 *
 * prune.c
 *	  Taking dead rows off a page.
 *
 * A row that nobody can see any more leaves a stub without storage (LP_DEAD)
 * for the index entries that still point to it; VACUUM takes the stub away
 * when they are gone.  Along the way aborted changes are undone, and space
 * that a shrinking update had to keep for its rollback is given back.
 *
 * Invariants
 *	  1. The exclusive lock is enough: readers copy rows out under the share
 *		 lock.  The lock is held from the first look at a row to the change.
 *	  2. A row is dead if its deleter is committed and gone from every
 *		 snapshot, or if no snapshot sees it although an older one is held
 *		 (row/between.c), or if its insert was aborted.  Its TOAST values need no
 *		 work: the deleter deleted them, or their insert was aborted too.
 *	  3. Reserved space is given back only when t_xid has committed.  Before,
 *		 the rollback has to find room.
 *	  4. After a prune the items are packed, so that the hole of the page, which
 *		 is what the free space map and RelationGetBufferForTuple go by, is
 *		 all of its free space.
 *	  5. Undoing an aborted change is a record of its own (restore.c), written
 *		 before the prune's critical section.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/page.h"
#include "page/protect.h"
#include "page/tuple.h"
#include "row/between.h"
#include "row/evict.h"
#include "row/restore.h"
#include "row/visibility.h"
#include "vacuum/prune.h"
#include "wal/log_vacuum.h"


/*
 * Space lost between the items that is worth a record of its own, if a prune
 * finds nothing else to do.
 */
#define PRUNE_MIN_SCATTERED		(BLCKSZ / 20)

typedef struct PruneState
{
	int			ndead;
	int			nunused;
	int			ntrim;
	int			ngone;			/* rows among the first two */
	TransactionId horizon;		/* newest deleter of a removed row */
	TransactionId prune_xid;	/* oldest xid that may make more prunable */
	const UndoBounds *bounds;	/* or NULL */
	TransactionId waits_for;	/* oldest deleter that all_see has not passed */
	int			nbetween;
	int			reads_left;		/* of undo, for the sake of bounds */
	OffsetNumber dead[InplaceMaxTuplesPerPage];
	OffsetNumber unused[InplaceMaxTuplesPerPage];
	OffsetNumber trim[2 * InplaceMaxTuplesPerPage];
} PruneState;

static inline void
note_waits_for(PruneState *ps, TransactionId xid)
{
	if (!TransactionIdIsValid(ps->waits_for) ||
		TransactionIdPrecedes(xid, ps->waits_for))
		ps->waits_for = xid;
}

static inline void
note_prunable(PruneState *ps, TransactionId xid)
{
	if (!TransactionIdIsValid(ps->prune_xid) ||
		TransactionIdPrecedes(xid, ps->prune_xid))
		ps->prune_xid = xid;
}

/*
 * A deleted row that stays, unless it lies between two snapshots.
 */
static bool
recently_dead_is_gone(Relation rel, Buffer buffer, OffsetNumber off,
					  InplaceTupleHeader tup, PruneState *ps)
{
	if (ps->bounds != NULL)
	{
		if (inplace_row_between(rel, BufferGetBlockNumber(buffer), off, tup, ps->bounds,
								&ps->reads_left))
		{
			ps->nbetween++;
			return true;
		}
		if (!UndoOthersSee(ps->bounds, tup->t_xid))
			note_waits_for(ps, tup->t_xid);
	}
	note_prunable(ps, tup->t_xid);
	return false;
}

static inline void
note_gone(PruneState *ps, OffsetNumber off, bool no_index)
{
	ps->ngone++;
	if (no_index)
		ps->unused[ps->nunused++] = off;
	else
		ps->dead[ps->ndead++] = off;
}

/*
 * One row.  May change the page, by undoing an aborted change.
 */
static void
prune_row(Relation rel, Buffer buffer, OffsetNumber off,
		  GlobalVisState *vistest, TransactionId oldest_xmin, bool no_index,
		  PruneState *ps, PruneResult *res)
{
	Page		page = RowPage(rel, buffer);
	ItemId		lp = PageGetItemId(page, off);
	InplaceTupleHeader tup = (InplaceTupleHeader) PageGetItem(page, lp);
	RowState	state;
	bool		all_visible;

	state = inplace_row_state(rel, tup, buffer, InvalidTransactionId, vistest,
							  &all_visible);

	while (state == ROW_ABORTED_CHANGE)
	{
		if (!InplaceRestoreRow(rel, buffer, off, NULL))
		{
			res->wants_undo = true;
			return;
		}
		res->modified = true;

		/* all below it may have been aborted as well, and it may have moved */
		if (!ItemIdIsNormal(lp))
		{
			res->ndead++;
			if (no_index && ItemIdIsDead(lp))
				ps->unused[ps->nunused++] = off;
			return;
		}
		tup = (InplaceTupleHeader) PageGetItem(page, lp);
		state = inplace_row_state(rel, tup, buffer, InvalidTransactionId, vistest,
								  &all_visible);
	}

	switch (state)
	{
		case ROW_RECENTLY_DEAD:
			if ((!TransactionIdIsValid(oldest_xmin) ||
				 !TransactionIdPrecedes(HdrXid(tup), oldest_xmin)) &&
				!recently_dead_is_gone(rel, buffer, off, tup, ps))
				break;
			/* FALLTHROUGH */
		case ROW_DEAD:
			note_gone(ps, off, no_index);
			if (!TransactionIdIsValid(ps->horizon) ||
				TransactionIdFollows(HdrXid(tup), ps->horizon))
				ps->horizon = HdrXid(tup);
			return;

		case ROW_ABORTED_INSERT:
			note_gone(ps, off, no_index);
			return;

		case ROW_DELETE_IN_PROGRESS:
			note_prunable(ps, tup->t_xid);
			note_waits_for(ps, tup->t_xid);
			break;

		case ROW_UPDATE_IN_PROGRESS:
			if (tup->t_infomask & IP_PADDED)
				note_prunable(ps, tup->t_xid);
			break;

		case ROW_LIVE:
			if (tup->t_infomask & IP_PADDED)
			{
				ps->trim[2 * ps->ntrim] = off;
				ps->trim[2 * ps->ntrim + 1] =
					inplace_tuple_len(tup, ItemIdGetLength(lp));
				ps->ntrim++;
			}
			break;

		case ROW_INSERT_IN_PROGRESS:
		case ROW_ABORTED_CHANGE:
			break;
	}
}

void
inplace_prune_page(Relation rel, Buffer buffer, GlobalVisState *vistest,
				   TransactionId oldest_xmin, const UndoBounds *bounds,
				   bool no_index, OffsetNumber off_to_keep, PruneResult *res)
{
	Page		page = RowPage(rel, buffer);
	PageHeader	phdr = (PageHeader) page;
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	PruneState	ps;
	bool		change;

	ps.ndead = ps.nunused = ps.ntrim = ps.ngone = 0;
	ps.horizon = InvalidTransactionId;
	ps.prune_xid = InvalidTransactionId;
	ps.bounds = bounds;
	ps.waits_for = InvalidTransactionId;
	ps.nbetween = 0;
	ps.reads_left = BETWEEN_MAX_READS;

	res->ndead = res->nunused = 0;
	res->modified = false;
	res->wants_undo = false;
	res->waits_for = InvalidTransactionId;

	if (unlikely(maxoff > InplaceMaxTuplesPerPage))
		inplace_check_items(rel, page, BufferGetBlockNumber(buffer), NULL);

	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		uint16		infomask;

		if (!ItemIdIsNormal(lp))
		{
			if (unlikely(ItemIdHasStorage(lp)))
				inplace_check_items(rel, page, BufferGetBlockNumber(buffer), NULL);
			if (no_index && ItemIdIsDead(lp))
				ps.unused[ps.nunused++] = off;
			continue;
		}

		if (unlikely(ItemIdGetLength(lp) < SizeOfInplaceTupleHeader ||
					 ItemIdGetOffset(lp) + ItemIdGetLength(lp) > BLCKSZ))
			inplace_check_items(rel, page, BufferGetBlockNumber(buffer), NULL);

		/* most rows are committed, and that is it */
		infomask = ((InplaceTupleHeader) PageGetItem(page, lp))->t_infomask;
		if ((infomask & (IP_COMMITTED | IP_DELETED | IP_PADDED)) == IP_COMMITTED ||
			off == off_to_keep)
			continue;

		prune_row(rel, buffer, off, vistest, oldest_xmin, no_index, &ps, res);
	}
	res->waits_for = ps.waits_for;
	res->nbetween = ps.nbetween;

	change = (ps.ndead + ps.nunused + ps.ntrim > 0);
	if (!change)
	{
		/* holes that moved rows left behind */
		Size		hole = PageGetHeapFreeSpace(page);

		change = phdr->pd_special - phdr->pd_upper > PRUNE_MIN_SCATTERED &&
			hole < BLCKSZ / 2 &&
			inplace_page_has_space(page, hole + PRUNE_MIN_SCATTERED);
	}

	if (change)
	{
		PageItems	items;

		/* compacting finds a corrupted page, but that is too late then */
		inplace_check_items(rel, page, BufferGetBlockNumber(buffer), &items);

		START_CRIT_SECTION();

		inplace_page_apply_prune(page, ps.dead, ps.ndead,
								 ps.unused, ps.nunused, ps.trim, ps.ntrim, &items);
		phdr->pd_prune_xid = ps.prune_xid;
		MarkBufferDirty(buffer);
		if (RelationNeedsWAL(rel))
			inplace_log_prune(rel, buffer, ps.horizon, ps.dead, ps.ndead,
							  ps.unused, ps.nunused, ps.trim, ps.ntrim);

		END_CRIT_SECTION();

		res->ndead += ps.ngone;
		res->nunused = ps.nunused;
		res->modified = true;
	}
	else if (phdr->pd_prune_xid != ps.prune_xid || PageIsFull(page))
	{
		phdr->pd_prune_xid = ps.prune_xid;
		PageClearFull(page);
		inplace_mark_hint(buffer);
	}
}

int
inplace_page_prune(Relation rel, Buffer buffer, GlobalVisState *vistest,
				   OffsetNumber off_to_keep)
{
	PageHeader	phdr = (PageHeader) BufferGetPage(buffer);
	PruneResult res;

	inplace_prune_page(rel, buffer, vistest, InvalidTransactionId,
					   inplace_between_bounds(rel, phdr->pd_prune_xid), false,
					   off_to_keep, &res);
	return res.ndead;
}

/*
 * What the last look at a page has left for the sake of held snapshots.  Nothing
 * more is to be had there while it has not changed, unless all_see has passed
 * waits_for.
 */
#define LOOKS_KEPT	1024

/* after so many looks in vain one after the other pages are passed by, more and more */
#define LOOKS_IN_VAIN	8
#define LOOKS_PASSED_MAX	32

typedef struct PruneLook
{
	RelFileNumber relnumber;
	BlockNumber block;
	XLogRecPtr	lsn;
	TransactionId waits_for;
} PruneLook;

static PruneLook looks[LOOKS_KEPT];
static int	looks_in_vain = 0;
static int	looks_to_pass = 0;

static bool
looked_in_vain(Relation rel, Buffer buffer, const UndoBounds *bounds)
{
	BlockNumber block = BufferGetBlockNumber(buffer);
	const PruneLook *look = &looks[block % LOOKS_KEPT];

	return look->block == block && RelationNeedsWAL(rel) &&
		look->relnumber == LocatorRel(RelLocator(rel)) &&
		look->lsn == BufferGetLSNAtomic(buffer) &&
		!(TransactionIdIsValid(look->waits_for) &&
		  UndoOthersSee(bounds, look->waits_for));
}

static void
note_in_vain(void)
{
	if (++looks_in_vain > LOOKS_IN_VAIN)
		looks_to_pass = Min(looks_in_vain, LOOKS_PASSED_MAX);
}

static void
note_look(Relation rel, Buffer buffer, const PruneResult *res)
{
	BlockNumber block = BufferGetBlockNumber(buffer);
	PruneLook  *look = &looks[block % LOOKS_KEPT];

	look->relnumber = LocatorRel(RelLocator(rel));
	look->block = block;
	look->lsn = PageGetLSN(BufferGetPage(buffer));
	look->waits_for = res->waits_for;

	if (res->nbetween > 0)
		looks_in_vain = 0;
	else
		note_in_vain();
}

/*
 * Called by readers that happen to be here, so get out as cheaply as possible
 * if there is little to gain.  Without the lock everything looked at is a
 * hint.
 */
void
inplace_page_prune_opt(Relation rel, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	TransactionId prune_xid = ((PageHeader) page)->pd_prune_xid;
	GlobalVisState *vistest;
	const UndoBounds *bounds = NULL;
	Size		minfree;

	if (!TransactionIdIsValid(prune_xid) || RecoveryInProgress())
		return;
#ifdef USE_ASSERT_CHECKING
	inplace_evict_in_test(rel, buffer);
#endif

	minfree = RelationGetTargetPageFreeSpace(rel, HEAP_DEFAULT_FILLFACTOR);
	minfree = Max(minfree, BLCKSZ / 10);
	if (!PageIsFull(page) && PageGetHeapFreeSpace(page) >= minfree)
		return;

	vistest = GlobalVisTestFor(rel);
	if (!XidIsRemovable(vistest, prune_xid))
	{
		if (looks_to_pass > 0)
		{
			looks_to_pass--;
			return;
		}
		bounds = inplace_between_bounds(rel, prune_xid);
		if (bounds == NULL || looked_in_vain(rel, buffer, bounds))
		{
			note_in_vain();
			return;
		}
	}

	if (!ConditionalLockBuffer(buffer))
		return;

	/* somebody may have pruned it in between */
	if (TransactionIdIsValid(((PageHeader) page)->pd_prune_xid) &&
		(PageIsFull(page) || PageGetHeapFreeSpace(page) < minfree))
	{
		PruneResult res;

		inplace_prune_page(rel, buffer, vistest, InvalidTransactionId, bounds, false,
						   InvalidOffsetNumber, &res);
		if (bounds != NULL)
			note_look(rel, buffer, &res);
	}

	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
}

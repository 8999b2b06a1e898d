/*-------------------------------------------------------------------------
 *
 * shorten.c
 *	  Making the file of a btree, or an inplace_btree, shorter: pages at its end are
 *	  moved to free ones before, and the end is given back to the system.
 *
 * nbtree reuses a page that it has given back, but the file stays as long as it once
 * was.  truncate.c (vacuum/) says when this is worth it, at the end of a VACUUM.
 *
 * The lock
 *	  Pages are moved, and the file is cut, under an AccessExclusiveLock of the index.  It is
 *	  tried for a moment only, and given up as soon as somebody waits for it, as VACUUM's
 *	  lock is when it cuts off the end of a table.  A backend that scans an index, or inserts
 *	  into it, has it locked meanwhile.  So
 *	  1. there is no scan that has been on a page that is moved, or is on its way to one,
 *		 here or on a standby, where replay of the lock waits for such scans, or cancels
 *		 them;
 *	  2. a deleted page can be reused, or cut off, at once: it is only for the sake of
 *		 such scans that nbtree waits until all snapshots of the time have ended;
 *	  3. what is remembered of the index outside of a scan is a way to begin one.  That is
 *		 the root in the relcache entry, and the page for the next insertion.  All backends,
 *		 here and on standbys, are told of the root before the file is cut (forget_roots).
 *		 The page for the next insertion goes with the file's end.
 *	  A standby lets go of the lock only when VACUUM's transaction ends.  So this comes last
 *	  in a VACUUM, and all that can be found out is found out before
 *	  (inplace_shorten_prepare).  A standby locks the table first, if its end has been cut
 *	  off, and then the indexes in the order in which the planner locks them.
 *
 * A move
 *	  In one critical section and one WAL record (wal/log_relocate.c): the free page gets what
 *	  is on the page, both siblings and the parent's downlink, or the meta page, lead to it,
 *	  and the page becomes a deleted one, as nbtree would leave it.  If it is not cut off then, it
 *	  is reused as any deleted page is.  Predicate locks of the page go with it.
 *
 *	  The root comes first, then level by level, the pages found by way of the downlinks on
 *	  the one before; the leaves at last, from the end of the file, so that it can be cut
 *	  wherever that ends.  A half-dead page, and the right one of an incomplete split, have no
 *	  downlink: they stay, and the file with them.
 *
 * Lock order, as everywhere in nbtree: left sibling, page, right sibling, parent, meta page;
 * then the free page, which nobody else comes to.  It was free before we had the index to
 * ourselves, and may meanwhile have become one of the others: those are left out.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/nbtree.h"
#include "access/transam.h"
#include "access/xloginsert.h"
#include "btree/shorten.h"
#include "catalog/pg_am_d.h"
#include "catalog/storage.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "storage/freespace.h"
#include "storage/indexfsm.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "utils/inval.h"
#include "utils/wait_event.h"
#include "wal/log_btree.h"
#include "wal/relcache_now.h"

/* how often to try for the lock, and after how many milliseconds again */
#define LOCK_TRIES			20
#define LOCK_INTERVAL_MS	5

/*
 * So many pages are moved at most.  On the primary a backend that wants the index has it at
 * once, but on a standby it waits for all of them, which may take 5 s.
 */
#define MAX_MOVES			(64 * 1024)

struct Shortening
{
	Relation	index;
	BlockNumber target;			/* where the file is to end */
	BlockNumber *free;			/* pages before that were free when looked at */
	int			nfree;
	int			next_free;
	BlockNumber moved;
};

/* are its pages, which are nbtree's, of a version that has TIDs for keys, too? */
bool
inplace_can_shorten(Relation index)
{
	bool		heapkeyspace;
	bool		allequalimage;

	_bt_metaversion(index, &heapkeyspace, &allequalimage);
	return heapkeyspace;
}

/* ---------------- free pages ---------------- */

static bool
is_free(Page page)
{
	return PageIsNew(page) || P_ISDELETED(BTPageGetOpaque(page));
}

static void
note_free_pages(Shortening *s, BlockNumber most, BufferAccessStrategy bstrategy)
{
	for (BlockNumber blk = BTREE_METAPAGE + 1;
		 blk < s->target && s->nfree < most; blk++)
	{
		Buffer		buffer;

		VacuumDelayPoint();
		buffer = ReadBufferExtended(s->index, MAIN_FORKNUM, blk, RBM_NORMAL, bstrategy);
		_bt_lockbuf(s->index, buffer, BT_READ);
		if (!PageIsNew(BufferGetPage(buffer)))
			_bt_checkpage(s->index, buffer);
		if (is_free(BufferGetPage(buffer)))
			s->free[s->nfree++] = blk;
		_bt_relbuf(s->index, buffer);
	}
}

/*
 * Pages that are noted as free but in use: take the note away.  (nbtree does so for a
 * page when it wants to use it.)
 */
void
inplace_correct_free_pages(Relation index, BufferAccessStrategy bstrategy)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(index);

	for (BlockNumber blk = BTREE_METAPAGE + 1; blk < nblocks; blk++)
	{
		Buffer		buffer;
		bool		used;

		if (GetRecordedFreeSpace(index, blk) == 0)
			continue;
		VacuumDelayPoint();
		buffer = ReadBufferExtended(index, MAIN_FORKNUM, blk, RBM_NORMAL, bstrategy);
		_bt_lockbuf(index, buffer, BT_READ);
		used = !is_free(BufferGetPage(buffer));
		_bt_relbuf(index, buffer);
		if (used)
			RecordUsedIndexPage(index, blk);
	}
	IndexFreeSpaceMapVacuum(index);
}

/* is the page locked for the move already? */
static bool
has_part_in(const PageMove *move, Buffer buffer)
{
	return buffer == move->left || buffer == move->from ||
		buffer == move->right || buffer == move->parent;
}

/*
 * The next free page that is still free, locked; InvalidBuffer if there is none.  One that
 * has been used since may be anything, also a page that we have locked.
 */
static Buffer
take_free_page(Shortening *s, const PageMove *move)
{
	while (s->next_free < s->nfree)
	{
		Buffer		buffer = ReadBuffer(s->index, s->free[s->next_free++]);

		if (has_part_in(move, buffer))
		{
			ReleaseBuffer(buffer);
			continue;
		}
		_bt_lockbuf(s->index, buffer, BT_WRITE);
		if (is_free(BufferGetPage(buffer)))
			return buffer;
		_bt_relbuf(s->index, buffer);
	}
	return InvalidBuffer;
}

/* ---------------- one move ---------------- */

static Buffer
lock_if_any(Relation index, BlockNumber blk)
{
	return blk == P_NONE ? InvalidBuffer : _bt_getbuf(index, blk, BT_WRITE);
}

static void
release_if_any(Relation index, Buffer buffer)
{
	if (BufferIsValid(buffer))
		_bt_relbuf(index, buffer);
}

/* the meta page, locked, if it leads to the page; else InvalidBuffer */
static Buffer
lock_meta_of(Relation index, BlockNumber blk)
{
	Buffer		buffer = _bt_getbuf(index, BTREE_METAPAGE, BT_WRITE);
	BTMetaPageData *meta = BTPageGetMeta(BufferGetPage(buffer));

	if (meta->btm_root == blk || meta->btm_fastroot == blk)
		return buffer;
	_bt_relbuf(index, buffer);
	return InvalidBuffer;
}

/*
 * Which of the pages around it does not lead to the page?  If one does not the
 * index is damaged.
 */
static BlockNumber
disagreeing_sibling(const PageMove *move)
{
	BlockNumber blk = BufferGetBlockNumber(move->from);

	if (BufferIsValid(move->left) &&
		BTPageGetOpaque(BufferGetPage(move->left))->btpo_next != blk)
		return BufferGetBlockNumber(move->left);
	if (BufferIsValid(move->right) &&
		BTPageGetOpaque(BufferGetPage(move->right))->btpo_prev != blk)
		return BufferGetBlockNumber(move->right);
	return InvalidBlockNumber;
}

static void
move_change(Shortening *s, PageMove *move)
{
	BlockNumber from = BufferGetBlockNumber(move->from);
	BlockNumber to = BufferGetBlockNumber(move->to);

	PredicateLockPageSplit(s->index, from, to);
	inplace_log_relocate_room();

	START_CRIT_SECTION();
	inplace_page_copy(BufferGetPage(move->to), BufferGetPage(move->from));
	MarkBufferDirty(move->to);
	inplace_page_make_deleted(BufferGetPage(move->from), to, move->safexid);
	MarkBufferDirty(move->from);
	if (BufferIsValid(move->left))
	{
		BTPageGetOpaque(BufferGetPage(move->left))->btpo_next = to;
		MarkBufferDirty(move->left);
	}
	if (BufferIsValid(move->right))
	{
		BTPageGetOpaque(BufferGetPage(move->right))->btpo_prev = to;
		MarkBufferDirty(move->right);
	}
	if (BufferIsValid(move->parent))
	{
		inplace_page_set_downlink(BufferGetPage(move->parent), move->off, to);
		MarkBufferDirty(move->parent);
	}
	if (BufferIsValid(move->meta))
	{
		inplace_page_set_root(BufferGetPage(move->meta), from, to);
		MarkBufferDirty(move->meta);
	}
	if (RelationNeedsWAL(s->index))
		inplace_log_relocate(move);
	END_CRIT_SECTION();
	RecordUsedIndexPage(s->index, to);
	s->moved++;
}

/*
 * Move the page that is the "off"th child of a parent, or has none.  False if there is no
 * sense in going on.
 */
static bool
move_page(Shortening *s, BlockNumber blk, BlockNumber parent, OffsetNumber off)
{
	Relation	index = s->index;
	PageMove	move = {0};
	BTPageOpaqueData opaque;
	BlockNumber bad;
	bool		go_on = true;

	/* its siblings remain the same, for nobody else is here */
	move.from = _bt_getbuf(index, blk, BT_READ);
	opaque = *BTPageGetOpaque(BufferGetPage(move.from));
	_bt_relbuf(index, move.from);
	if (P_IGNORE(&opaque))
		return true;

	move.left = lock_if_any(index, opaque.btpo_prev);
	move.from = _bt_getbuf(index, blk, BT_WRITE);
	move.right = lock_if_any(index, opaque.btpo_next);
	move.parent = lock_if_any(index, parent);
	move.off = off;
	move.meta = lock_meta_of(index, blk);
	bad = disagreeing_sibling(&move);
	if (bad != InvalidBlockNumber)
		go_on = false;
	else
	{
		move.to = take_free_page(s, &move);
		move.safexid = ReadNextFullTransactionId();
		if (BufferIsValid(move.to))
			move_change(s, &move);
		else
			go_on = false;
		release_if_any(index, move.to);
	}
	release_if_any(index, move.meta);
	release_if_any(index, move.parent);
	release_if_any(index, move.right);
	_bt_relbuf(index, move.from);
	release_if_any(index, move.left);
	if (bad != InvalidBlockNumber)
		ereport(LOG,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("block %u of index \"%s\" does not lead to its sibling, block %u",
						bad, RelationGetRelationName(index), blk)));
	return go_on;
}

/* ---------------- all of them ---------------- */

typedef struct Child
{
	BlockNumber blk;
	BlockNumber parent;
	OffsetNumber off;			/* of its downlink there */
} Child;

typedef struct Children
{
	Child	   *child;
	int			n;
	int			most;
} Children;

static void
note_child(Children *children, BlockNumber blk, BlockNumber parent, OffsetNumber off)
{
	if (children->n == children->most)
	{
		children->most *= 2;
		children->child = repalloc(children->child, children->most * sizeof(Child));
	}
	children->child[children->n++] = (Child)
	{
		blk, parent, off
	};
}

/* a page's children beyond the target; returns its right sibling */
static BlockNumber
note_children(Shortening *s, Buffer buffer, Children *children)
{
	Page		page = BufferGetPage(buffer);
	BTPageOpaque opaque = BTPageGetOpaque(page);

	for (OffsetNumber off = P_FIRSTDATAKEY(opaque);
		 !P_IGNORE(opaque) && off <= PageGetMaxOffsetNumber(page); off++)
	{
		IndexTuple	itup = (IndexTuple) PageGetItem(page, PageGetItemId(page, off));
		BlockNumber blk = BTreeTupleGetDownLink(itup);

		if (blk >= s->target)
			note_child(children, blk, BufferGetBlockNumber(buffer), off);
	}
	return opaque->btpo_next;
}

static bool
somebody_waits(Shortening *s)
{
	CHECK_FOR_INTERRUPTS();
	return LockHasWaitersRelation(s->index, AccessExclusiveLock);
}

/* those of all pages of a level; false if somebody waits */
static bool
note_children_of_level(Shortening *s, uint32 level, Children *children)
{
	Buffer		buffer = BtLeftmostOfLevel(s->index, level);

	while (BufferIsValid(buffer))
	{
		BlockNumber next = note_children(s, buffer, children);

		_bt_relbuf(s->index, buffer);
		if (somebody_waits(s))
			return false;
		buffer = next == P_NONE ? InvalidBuffer : _bt_getbuf(s->index, next, BT_READ);
	}
	return true;
}

static int
from_the_end(const void *a, const void *b)
{
	BlockNumber x = ((const Child *) a)->blk;
	BlockNumber y = ((const Child *) b)->blk;

	return x < y ? 1 : x > y ? -1 : 0;
}

static bool
move_children_of_level(Shortening *s, uint32 level)
{
	Children	children = {palloc(64 * sizeof(Child)), 0, 64};
	bool		go_on = note_children_of_level(s, level, &children);

	qsort(children.child, children.n, sizeof(Child), from_the_end);
	for (int i = 0; go_on && i < children.n; i++)
	{
		const Child *c = &children.child[i];

		go_on = !somebody_waits(s) && move_page(s, c->blk, c->parent, c->off);
	}
	pfree(children.child);
	return go_on;
}

static void
move_pages(Shortening *s)
{
	Buffer		buffer = _bt_getbuf(s->index, BTREE_METAPAGE, BT_READ);
	BTMetaPageData meta = *BTPageGetMeta(BufferGetPage(buffer));
	bool		go_on = true;

	_bt_relbuf(s->index, buffer);
	if (meta.btm_root == P_NONE)
		return;
	if (meta.btm_root >= s->target)
		go_on = move_page(s, meta.btm_root, P_NONE, InvalidOffsetNumber);
	for (uint32 level = meta.btm_level; go_on && level > 0; level--)
		go_on = move_children_of_level(s, level);
}

/* ---------------- the end of the file ---------------- */

static BlockNumber
end_of_pages_in_use(Shortening *s, BlockNumber end)
{
	while (end > BTREE_METAPAGE + 1)
	{
		Buffer		buffer = ReadBuffer(s->index, end - 1);
		bool		used;

		_bt_lockbuf(s->index, buffer, BT_READ);
		used = !is_free(BufferGetPage(buffer));
		_bt_relbuf(s->index, buffer);
		if (used || somebody_waits(s))
			break;
		end--;
	}
	return end;
}

/*
 * All, here and on standbys, are told that the root may be somewhere else.  At once: this
 * holds even if our transaction is rolled back.
 */
static void
forget_roots(Relation index)
{
	inplace_forget_relcache_now(RelationGetRelid(index), RelationNeedsWAL(index));
	/* (what we have is for ourselves at the end) */
	CacheInvalidateRelcache(index);
}

/* ---------------- the lock ---------------- */

/* transactions that have the index locked, prepared ones too */
bool
inplace_index_is_locked(Relation index)
{
	LOCKTAG		tag;
	int			n;

	SET_LOCKTAG_RELATION(tag, index->rd_lockInfo.lockRelId.dbId,
						 index->rd_lockInfo.lockRelId.relId);
	pfree(GetLockConflicts(&tag, AccessExclusiveLock, &n));
	return n > 0;
}

static bool
try_lock(Relation index)
{
	for (int i = 0; i < LOCK_TRIES; i++)
	{
		if (!inplace_index_is_locked(index) &&
			ConditionalLockRelation(index, AccessExclusiveLock))
			return true;
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 LOCK_INTERVAL_MS, WAIT_EVENT_VACUUM_TRUNCATE);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	return false;
}

/* what VACUUM, and nbtree for its next one, note of free pages */
static void
correct_stats(Shortening *s, BlockNumber cut, BlockNumber end,
			  IndexBulkDeleteResult *istat)
{
	istat->num_pages = end;
	istat->pages_deleted -= Min(cut, istat->pages_deleted);
	istat->pages_free = Min(istat->pages_free, istat->pages_deleted);
	_bt_set_cleanup_info(s->index, istat->pages_deleted - istat->pages_free);
}

static BlockNumber
shorten_locked(Shortening *s, IndexBulkDeleteResult *istat)
{
	BlockNumber old_end;
	BlockNumber new_end;

	/* nobody has been on a page that is moved, nor is on the way to one */
	Assert(CheckRelationLockedByMe(s->index, AccessExclusiveLock, false));
	Assert(_bt_vacuum_cycleid(s->index) == 0);

	move_pages(s);
	old_end = RelationGetNumberOfBlocks(s->index);
	new_end = end_of_pages_in_use(s, old_end);
	if (s->moved > 0 || new_end < old_end)
		forget_roots(s->index);
	if (new_end == old_end)
		return 0;
	RelationTruncate(s->index, new_end);
	correct_stats(s, old_end - new_end, new_end, istat);
	return old_end - new_end;
}

/*
 * What can be done before the lock is needed: to bring the end of the file to "target", or
 * nearer to it, is there room?  NULL if it is not to be tried.
 */
Shortening *
inplace_shorten_prepare(Relation index, BlockNumber target,
						BufferAccessStrategy bstrategy)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(index);
	Shortening *s;

	if (nblocks <= target || inplace_index_is_locked(index))
		return NULL;
	s = palloc0(sizeof(Shortening));
	s->index = index;
	s->target = nblocks - Min(nblocks - target, MAX_MOVES);
	s->free = palloc((nblocks - s->target) * sizeof(BlockNumber));
	note_free_pages(s, nblocks - s->target, bstrategy);
	return s;
}

/*
 * Do it, if the lock can be had.  Returns how many pages have been cut off, and in *moved
 * how many moved; the index's statistics are corrected.
 */
BlockNumber
inplace_shorten_index(Shortening *s, IndexBulkDeleteResult *istat, BlockNumber *moved)
{
	BlockNumber cut = 0;

	if (try_lock(s->index))
	{
		cut = shorten_locked(s, istat);
		UnlockRelation(s->index, AccessExclusiveLock);
	}
	*moved = s->moved;
	pfree(s->free);
	pfree(s);
	return cut;
}

/*-------------------------------------------------------------------------
 *
 * sweep.c
 *	  Going through an inplace_btree for VACUUM, to take out stale entries.
 *
 * The leaf pages are visited from left to right.  On each the entries of rows
 * that VACUUM is interested in are given to nbtree's own deletion, which asks
 * index_delete.c which of them nobody needs, deletes those and logs that with
 * the horizon for standbys.
 *
 * An entry that is there when the sweep begins is met: a page split moves
 * entries to the right only, and pages are unlinked by VACUUM alone, of which
 * there is one.
 *
 * Lock order: one leaf page at a time, exclusively if there is something to look
 * at, and under it what index_delete.c takes.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/nbtree.h"
#include "index/index.h"
#include "vacuum/vacuum.h"

TransactionId inplace_sweep_horizon = InvalidTransactionId;

typedef struct SweepState
{
	Relation	table;
	Relation	index;
	SweepWanted wanted;
	void	   *arg;
	TM_IndexDeleteOp op;
	BlockNumber empty_pages;
} SweepState;

static void
add_tid(SweepState *ss, ItemPointer tid, OffsetNumber off)
{
	TM_IndexDelete *deltid = &ss->op.deltids[ss->op.ndeltids];
	TM_IndexStatus *status = &ss->op.status[ss->op.ndeltids];

	if (!ss->wanted(tid, ss->arg))
		return;
	deltid->tid = *tid;
	deltid->id = ss->op.ndeltids++;
	status->idxoffnum = off;
	status->knowndeletable = false;
	status->promising = false;
	status->freespace = 1;
}

/*
 * Note the entries of a locked page that are worth a look.
 */
static void
collect_tids(SweepState *ss, Page page)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);

	ss->op.ndeltids = 0;
	if (P_IGNORE(opaque))
		return;
	for (OffsetNumber off = P_FIRSTDATAKEY(opaque); off <= maxoff; off++)
	{
		IndexTuple	itup = (IndexTuple) PageGetItem(page, PageGetItemId(page, off));

		if (!BTreeTupleIsPosting(itup))
			add_tid(ss, &itup->t_tid, off);
		else
			for (int i = 0; i < BTreeTupleGetNPosting(itup); i++)
				add_tid(ss, BTreeTupleGetPostingN(itup, i), off);
	}
}

/*
 * One leaf page, share-locked; it stays locked.  Between the two locks it may
 * be split: what has gone to the right is met there.
 */
static void
sweep_page(SweepState *ss, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);

	collect_tids(ss, page);
	if (ss->op.ndeltids == 0)
		return;

	_bt_unlockbuf(ss->index, buffer);
	_bt_lockbuf(ss->index, buffer, BT_WRITE);
	collect_tids(ss, page);
	if (ss->op.ndeltids == 0)
		return;

	ss->op.iblknum = BufferGetBlockNumber(buffer);
	_bt_delitems_delete_check(ss->index, buffer, ss->table, &ss->op);
	if (PageGetMaxOffsetNumber(page) < P_FIRSTDATAKEY(BTPageGetOpaque(page)))
		ss->empty_pages++;
}

/*
 * Delete the entries that no version of their row which is visible by the
 * horizon has.  Returns the number of pages left empty.
 */
BlockNumber
inplace_sweep_index(Relation table, Relation index, TransactionId horizon,
					SweepWanted wanted, void *arg)
{
	SweepState	ss = {0};
	Buffer		buffer = BtLeftmostLeaf(index);

	ss.table = table;
	ss.index = index;
	ss.wanted = wanted;
	ss.arg = arg;
	ss.op.irel = index;
	ss.op.bottomup = true;		/* there may be nothing to delete */
	ss.op.bottomupfreespace = SWEEP_EVERYTHING;
	ss.op.deltids = palloc(MaxTIDsPerBTreePage * sizeof(TM_IndexDelete));
	ss.op.status = palloc(MaxTIDsPerBTreePage * sizeof(TM_IndexStatus));
	inplace_sweep_horizon = horizon;

	while (BufferIsValid(buffer))
	{
		BlockNumber next;

		sweep_page(&ss, buffer);
		next = BTPageGetOpaque(BufferGetPage(buffer))->btpo_next;
		_bt_relbuf(index, buffer);
		buffer = InvalidBuffer;
		if (next != P_NONE)
		{
			VacuumDelayPoint();
			buffer = _bt_getbuf(index, next, BT_READ);
		}
	}

	pfree(ss.op.deltids);
	pfree(ss.op.status);
	return ss.empty_pages;
}

/*-------------------------------------------------------------------------
 *
 * update_move.c
 *	  Updates that cannot be in place: a page for the new row, and the change.
 *
 * Lock order: data pages (by block number, through RelationGetBufferForTuple)
 * -> undo page -> visibility map pages (pinned before).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/hio.h"
#include "access/visibilitymap.h"
#include "freeze/freeze_stats.h"
#include "modify/room.h"
#include "modify/update.h"
#include "page/page.h"
#include "page/tuple.h"
#include "row/change.h"
#include "row/row_lock.h"
#include "row/rowcheck.h"
#include "undo/append.h"
#include "undo/record.h"
#include "undo/undo.h"
#include "wal/log.h"
#include "wal/log_move.h"

#define UNDO_MOVE_RECORD_SIZE \
	(SizeOfUndoRecordHeader + SizeOfInplaceTupleHeader + MOVE_LINK_SIZE)

/*
 * The page has been unlocked.  Is the row as it was, and nobody else's?  A lock in
 * memory does not show in the header.
 */
static bool
row_is_as_before(UpdateState *us, const InplaceTupleHeaderData *before)
{
	Page		page = RowPage(us->rel, us->buffer);
	MemoryLocks memory;

	if (us->off > PageGetMaxOffsetNumber(page) ||
		!ItemIdIsNormal(PageGetItemId(page, us->off)) ||
		!same_header(before, current_tuple(us)))
		return false;
	inplace_get_memory_locks(us->rel, us->blk, us->off, &memory);
	return !TransactionIdIsValid(memory.xid);
}

/*
 * Find a page for the moved row; afterwards both pages are locked (they may
 * be one).  The old page is let go of unless it has room itself: false if the
 * row was changed or locked meanwhile, or there is no undo for it any more, with only the
 * old page pinned and unlocked.
 */
bool
inplace_update_find_page(UpdateState *us)
{
	Page		page = RowPage(us->rel, us->buffer);
	InplaceTupleHeaderData before = *current_tuple(us);
	int			options;

	us->searched = false;
	if (inplace_page_has_space(page, us->newlen + MAXIMUM_ALIGNOF + sizeof(ItemIdData)) &&
		inplace_page_next_offset(page) <= InplaceMaxTuplesPerPage)
	{
		us->newbuf = us->buffer;
		us->newvm = us->vmbuffer;
		return true;
	}

	LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
	us->searched = true;
	us->newvm = InvalidBuffer;
	options = MakeRoom(us->rel, PageSpaceFor(us->newtup, us->newlen), 0, NULL);
	us->newbuf = GetBufferForTuple(us->rel, PageSpaceFor(us->newtup, us->newlen),
								   us->buffer, options, NULL,
								   &us->newvm, &us->vmbuffer);
	inplace_check_page_header(us->rel, RowPage(us->rel, us->newbuf),
							  BufferGetBlockNumber(us->newbuf));

	/* (what was evicted has taken nothing of what was reserved) */
	if (row_is_as_before(us, &before) && UndoHasRoom(us->rel, &us->room))
		return true;

	LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
	if (us->newbuf != us->buffer)
		UnlockReleaseBuffer(us->newbuf);
	if (BufferIsValid(us->newvm))
		ReleaseBuffer(us->newvm);
	us->newbuf = us->newvm = InvalidBuffer;
	/* nothing is held: the row may fit its own page the next time */
	us->searched = false;
	return false;
}

void
inplace_update_by_move(UpdateState *us)
{
	Relation	rel = us->rel;
	Page		oldpage = RowPage(us->rel, us->buffer);
	Page		newpage = RowPage(us->rel, us->newbuf);
	BlockNumber newblk = BufferGetBlockNumber(us->newbuf);
	InplaceTupleHeader tup;
	InplaceTupleHeaderData oldhdr = us->rc.base;
	InplaceTupleHeader newhdr = us->newtup;
	char		link[MOVE_LINK_SIZE];
	char		undo[UNDO_MOVE_RECORD_SIZE + 2 * UNDO_LOCK_RECORD_SIZE];
	char	   *p = undo;
	Size		change_len;
	MoveRecord	record;
	UndoInsert	ui;
	bool		init_page;
	bool		clear;
	bool		clear_old;
	FreezeUnset unset;
	FreezeUnset unset_old = {0};
	OffsetNumber newoff;

	newhdr->t_xid = us->xid;
	newhdr->t_tag = FirstVersionTag;
	newhdr->t_infomask = IP_FRESH;
	HdrSetFreshCid(newhdr, us->cid);

	oldhdr.t_xid = us->xid;
	oldhdr.t_infomask = (us->rc.base.t_infomask & IP_STALE) |
		(current_tuple(us)->t_infomask & IP_PADDED) |
		IP_DELETED | IP_MOVED | (us->key_changed ? IP_KEYS_UPDATED : 0);

	newoff = inplace_page_next_offset(newpage);

	memcpy(link, &newblk, sizeof(newblk));
	memcpy(link + sizeof(newblk), &newoff, sizeof(newoff));
	p += UndoBuild(p, UNDO_MOVE, us->xid, us->cid,
				   LocatorSpc(RelLocator(rel)), LocatorRel(RelLocator(rel)),
				   us->blk, us->off, &us->rc.base, &oldhdr,
				   inplace_nothing_older(rel, &us->rc.base, us->rc.status),
				   link, sizeof(link));
	change_len = p - undo;
	UndoRoomCut(&us->room, 1, inplace_update_undo_size(us));
	UndoPrepare(rel, &us->room, (p - undo) +
				(us->rc.locked ? 2 * UNDO_LOCK_RECORD_SIZE : 0),
				inplace_undo_newest(&us->rc), &ui);
	HdrSetUndoPtr(&oldhdr, ui.ptr);
	if (us->rc.locked)
	{
		p += inplace_keep_lockers(rel, us->blk, us->off, &us->rc, &oldhdr,
								  ui.ptr + (p - undo), p);
		p += inplace_keep_lockers(rel, newblk, newoff, &us->rc, newhdr,
								  ui.ptr + (p - undo), p);
	}

	START_CRIT_SECTION();
	clear = FreezeClearVisible(rel, us->newbuf, us->newvm,
							   VISIBILITYMAP_VALID_BITS, &unset);
	clear_old = us->newbuf != us->buffer &&
		FreezeClearVisible(rel, us->buffer, us->vmbuffer,
						   VISIBILITYMAP_VALID_BITS, &unset_old);

	us->newoff = inplace_page_add(newpage, us->newtup, us->newlen,
								  InvalidOffsetNumber);
	if (us->newoff != newoff)
		elog(PANIC, "failed to move row");
	init_page = us->newbuf != us->buffer && newoff == FirstOffsetNumber &&
		PageGetMaxOffsetNumber(newpage) == FirstOffsetNumber;

	/* adding may have moved the old row within its page */
	tup = PageGetTupleAt(oldpage, us->off);
	memcpy(tup, &oldhdr, SizeOfInplaceTupleHeader);
	PageSetPrunable(oldpage, us->xid);
	MarkBufferDirty(us->buffer);
	if (us->newbuf != us->buffer)
		MarkBufferDirty(us->newbuf);
	UndoAppend(&ui, undo, p - undo);
	record.rel = rel;
	record.oldbuf = us->buffer;
	record.oldoff = us->off;
	record.newbuf = us->newbuf;
	record.newoff = us->newoff;
	record.init_page = init_page;
	record.clear = clear;
	record.clear_old = clear_old;
	record.ui = &ui;
	record.undo = undo;
	record.change_len = change_len;
	record.undo_len = p - undo;
	record.base = &us->rc.base;
	record.edits = &us->diff.edits;
	record.lc = us->logical ? &us->lc : NULL;
	inplace_log_move(&record);
	END_CRIT_SECTION();

	UndoRelease(&ui);
	FreezeNoteUnset(rel, &unset, us->newbuf != us->buffer);
	FreezeNoteUnset(rel, &unset_old, false);
}

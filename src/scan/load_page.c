/*-------------------------------------------------------------------------
 *
 * load_page.c
 *	  A page of a scan: its copy, and which rows of it the snapshot sees.
 *
 * Both are made under one share lock on the page.  What the copy is for stands in scan.h.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/page.h"
#include "page/page_lock.h"
#include "page/protect.h"
#include "page/recent.h"
#include "page/tuple.h"
#include "row/restore.h"
#include "row/visibility.h"
#include "scan/scan.h"
#include "storage/predicate.h"
#include "vacuum/prune.h"

void
inplace_scan_copy_page(InplaceScanDesc scan, Page page)
{
	PageHeader	ph = (PageHeader) page;
	char	   *dst = scan->page.data;

	if (unlikely(PageIsNew(page)))
	{
		memset(dst, 0, SizeOfPageHeaderData);
		return;
	}

	/* what is between the line pointers and the items is of no interest */
	memcpy(dst, page, ph->pd_lower);
	memcpy(dst + ph->pd_upper, (char *) page + ph->pd_upper,
		   BLCKSZ - ph->pd_upper);
}

/*
 * A bitmap may want a few rows of a page with many: less than one in so many.
 */
#define ROWS_FOR_ONE	4

static inline bool
wants_few_rows(Page page, int noffs)
{
	return noffs >= 0 && noffs * ROWS_FOR_ONE < PageGetMaxOffsetNumber(page);
}

/*
 * The copy has nothing then but the rows in the list, at their places.
 */
static void
copy_listed_rows(InplaceScanDesc scan, Page page, int n)
{
	char	   *dst = scan->page.data;

	memcpy(dst, page, ((PageHeader) page)->pd_lower);
#ifdef USE_ASSERT_CHECKING
	memset(dst + ((PageHeader) page)->pd_lower, 0x7F, BLCKSZ - ((PageHeader) page)->pd_lower);
#endif
	for (int i = 0; i < n; i++)
	{
		ItemId		lp = PageGetItemId(page, scan->vis[i] & SCAN_OFFSET_MASK);

		memcpy(dst + ItemIdGetOffset(lp), PageGetItem(page, lp), ItemIdGetLength(lp));
	}
}

/*
 * All that is normal on the page copy is visible.
 */
static int
list_all_visible(InplaceScanDesc scan)
{
	Page		page = scan->page.data;
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	OffsetNumber off;
	int			n = 0;

	for (off = FirstOffsetNumber; off <= maxoff; off++)
	{
		scan->vis[n] = off;
		n += ItemIdIsNormal(PageGetItemId(page, off)) ? 1 : 0;
	}
	return n;
}

/*
 * RowVisible for the rows of a page one after another.  *settled_xid is the
 * transaction of the row before, if there is a hint on the page that it
 * committed and the snapshot sees it: then both go for this row too, and
 * the hint is set without asking.  With *hints the page has to be marked for
 * that.
 */
static pg_attribute_always_inline int
row_visible(Relation rel, InplaceTupleHeader tup, Buffer buffer,
			Snapshot snapshot, TransactionId *settled_xid, bool *hints)
{
	uint16		mask = tup->t_infomask;
	int			r;

	if (likely(tup->t_xid == *settled_xid) && TransactionIdIsValid(tup->t_xid))
	{
		if (unlikely((mask & (IP_HINT_BITS | IP_FROZEN | IP_SPECULATIVE)) == 0))
		{
			mask |= IP_COMMITTED;
			tup->t_infomask = mask;
			*hints = true;
		}
		if (likely((mask & IP_COMMITTED) != 0))
			return (mask & IP_DELETED) ? 0 : 1;
	}

	r = RowVisible(rel, tup, buffer, snapshot);
	if ((tup->t_infomask & (IP_COMMITTED | IP_FROZEN)) == IP_COMMITTED &&
		(r == 1 ||
		 (r == 0 && (tup->t_infomask & IP_DELETED) && HdrHasUndo(tup))))
		*settled_xid = tup->t_xid;
	return r;
}

/*
 * A look at a page that is share-locked.
 */
typedef struct PageLook
{
	bool		all_visible;
	bool		check_conflicts;	/* serializable, with rows not visible,
									 * too */
	bool		lock_tids;		/* ... each row by itself */
	/* and what was found: */
	TransactionId settled_xid;
	bool		hints;			/* set some */
	bool		undo_deletes;	/* bare ones that were aborted */
	uint16		flags;			/* of all rows, together */
} PageLook;

/*
 * List the rows at these offsets, or all, that the snapshot may see.  Returns their
 * number.
 */
static pg_attribute_always_inline int
list_visible(InplaceScanDesc scan, Page page, const OffsetNumber *offs,
			 int noffs, PageLook *look)
{
	Relation	rel = scan->base.rs_rd;
	Snapshot	snapshot = scan->base.rs_snapshot;
	Buffer		buffer = scan->pin.buffer;
	bool		all_visible = look->all_visible;
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	int			count = noffs < 0 ? maxoff : noffs;
	uint16		flags = 0;
	int			n = 0;

	for (int i = 0; i < count; i++)
	{
		OffsetNumber off = noffs < 0 ? i + FirstOffsetNumber : offs[i];
		ItemId		lp;
		InplaceTupleHeader tup;
		uint16		entry = off;

		if (unlikely(off < FirstOffsetNumber || off > maxoff))
			continue;
		lp = PageGetItemId(page, off);
		if (!ItemIdIsNormal(lp))
			continue;
		tup = (InplaceTupleHeader) PageGetItem(page, lp);
		flags |= tup->t_infomask;

		if (!all_visible)
		{
			int			r = row_visible(rel, tup, buffer, snapshot, &look->settled_xid,
										&look->hints);

			if (r == 0 && likely(!look->check_conflicts))
				continue;
			if (r != 1)
			{
				entry |= SCAN_UNDO;
				if ((tup->t_infomask & IP_ABORTED) && HdrIsBareDelete(tup))
					look->undo_deletes = true;
			}
		}
		if (unlikely(look->lock_tids))
		{
			ItemPointerData tid;

			/* of a version in undo the tag is not known yet: lock the page */
			TidSetVersion(&tid, scan->cblock, off, tup->t_tag);
			if (entry == off)
				PredicateLockTID(rel, &tid, snapshot, HdrXid(tup));
			else
				PredicateLockPage(rel, scan->cblock, snapshot);
		}
		scan->vis[n++] = entry;
	}
	look->flags = flags;
	return n;
}

void
inplace_scan_load_page(InplaceScanDesc scan, const OffsetNumber *offs,
					   int noffs)
{
	Relation	rel = scan->base.rs_rd;
	Snapshot	snapshot = scan->base.rs_snapshot;
	Buffer		buffer = scan->pin.buffer;
	Page		page;
	PageLook	look = {.settled_xid = InvalidTransactionId};
	bool		few;
	int			n;

	scan->nvis = 0;
	scan->stale_rows = false;

	inplace_page_prune_opt(rel, buffer);

	inplace_lock_page(buffer, LW_SHARED);
	page = RowPage(rel, buffer);

	if (unlikely(PageIsNew(page)))
	{
		inplace_scan_copy_page(scan, page);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		return;
	}
	few = wants_few_rows(page, noffs);
	if (few)
		inplace_check_rows(rel, page, scan->cblock, offs, noffs);
	else
		inplace_check_page(rel, page, scan->cblock);

	/*
	 * In recovery the page's flag may be ahead of what this snapshot may rely
	 * on: it can come with a page image.
	 */
	look.all_visible = PageIsAllVisible(page) && !snapshot->takenDuringRecovery;

	/* bitmap scans lock the rows that they return, others the relation */
	look.lock_tids = (scan->base.rs_flags & SCAN_LOCKS_RELATION) == 0 &&
		IsolationIsSerializable();

	if (likely(look.all_visible && noffs < 0 && !look.lock_tids))
	{
		inplace_scan_copy_page(scan, page);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		scan->nvis = list_all_visible(scan);
		return;
	}

	look.check_conflicts = !look.all_visible &&
		CheckForSerializableConflictOutNeeded(rel, snapshot);

	n = list_visible(scan, page, offs, noffs, &look);

	if (look.hints)
		inplace_mark_hint(buffer);

	/* last, for the copy to have the hints */
	if (few)
		copy_listed_rows(scan, page, n);
	else
		inplace_scan_copy_page(scan, page);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	scan->nvis = n;
	scan->stale_rows = (look.flags & IP_STALE) != 0;

	/* of these the undo worker does not know */
	if (unlikely(look.undo_deletes) && !RecoveryInProgress())
		inplace_restore_page(rel, buffer, false);
}

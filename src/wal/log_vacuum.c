/*-------------------------------------------------------------------------
 *
 * log_vacuum.c
 *	  The records of pruning and VACUUM: the page changes that they stand for,
 *	  and writing them.  Replay is in redo/redo_vacuum.c.
 *
 * Invariants
 *	  1. A page is changed by inplace_page_apply_* only.  The backend that writes
 *		 the record and redo both call it, so both come to the same page.
 *	  2. The horizon of a record is the newest xid that the record makes final for
 *		 all, while a snapshot on a standby may still not see it as committed: the
 *		 deleter of a row that is removed, the xid that is frozen, the newest one
 *		 on a page that becomes all-visible.  Redo waits for, or ends, the
 *		 snapshots in question before it locks the page.
 *	  3. Readers copy rows out under the share lock, so redo takes the
 *		 ordinary exclusive lock, never a cleanup lock.
 *
 * Lock order: data page, then visibility map page.  Redo of XLOG_IP_VISIBLE
 * holds one at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/visibilitymap.h"
#include "access/xloginsert.h"
#include "page/page.h"
#include "page/protect.h"
#include "page/tuple.h"
#include "rmgr.h"
#include "wal/log_vacuum.h"
#include "wal/wal.h"

/*
 * Where the bits of a data block are in the visibility map.  This is the
 * format of the file, the same in all versions, see visibilitymap.c.
 */
#define VM_MAPSIZE		(BLCKSZ - MAXALIGN(SizeOfPageHeaderData))
#define VM_PER_BYTE		(BITS_PER_BYTE / BITS_PER_HEAPBLOCK)
#define VM_PER_PAGE		(VM_MAPSIZE * VM_PER_BYTE)
#define VM_BYTE(blk)	(((blk) % VM_PER_PAGE) / VM_PER_BYTE)
#define VM_SHIFT(blk)	(((blk) % VM_PER_BYTE) * BITS_PER_HEAPBLOCK)

static inline uint8 *
vm_byte(Page vmpage, BlockNumber blk)
{
	return (uint8 *) PageGetContents(vmpage) + VM_BYTE(blk);
}

/* ---------------- page changes ---------------- */

/*
 * Cut off unused line pointers at the end of the array (all but one: a page
 * with an empty array passes for a new one) and set the hint that there are
 * others to reuse.
 */
static void
tidy_line_pointers(Page page)
{
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	bool		has_unused = false;

	while (maxoff > FirstOffsetNumber &&
		   !ItemIdIsUsed(PageGetItemId(page, maxoff)))
		maxoff--;
	((PageHeader) page)->pd_lower = RowPageLower(maxoff);

	/* with nothing left it takes the largest row, as it did when it was new */
	if (maxoff == FirstOffsetNumber &&
		!ItemIdIsUsed(PageGetItemId(page, FirstOffsetNumber)))
		((PageHeader) page)->pd_lower = RowPageLower(maxoff) - ROW_PAGE_MARK;

	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		if (!ItemIdIsUsed(PageGetItemId(page, off)))
		{
			has_unused = true;
			break;
		}
	}
	if (has_unused)
		PageSetHasFreeLinePointers(page);
	else
		PageClearHasFreeLinePointers(page);
}

void
inplace_page_apply_prune(Page page, const OffsetNumber *dead, int ndead,
						 const OffsetNumber *unused, int nunused,
						 const OffsetNumber *trim, int ntrim, PageItems *items)
{
	for (int i = 0; i < ndead; i++)
		ItemIdSetDead(PageGetItemId(page, dead[i]));

	for (int i = 0; i < nunused; i++)
		ItemIdSetUnused(PageGetItemId(page, unused[i]));

	for (int i = 0; i < ntrim; i++)
	{
		ItemId		lp = PageGetItemId(page, trim[2 * i]);

		Assert(ItemIdIsNormal(lp) && trim[2 * i + 1] <= ItemIdGetLength(lp));
		((InplaceTupleHeader) PageGetItem(page, lp))->t_infomask &= ~IP_PADDED;
		ItemIdSetNormal(lp, ItemIdGetOffset(lp), trim[2 * i + 1]);
	}

	if (items != NULL)
		inplace_page_compact_gathered(page, items);
	else
		inplace_page_compact(page);
	if (nunused > 0)
		tidy_line_pointers(page);
	PageClearFull(page);
}

void
inplace_page_apply_vacuum(Page page, const OffsetNumber *unused, int nunused)
{
	for (int i = 0; i < nunused; i++)
	{
		ItemId		lp = PageGetItemId(page, unused[i]);

		Assert(ItemIdIsDead(lp) && !ItemIdHasStorage(lp));
		ItemIdSetUnused(lp);
	}
	tidy_line_pointers(page);
}

/*
 * Taking locks off comes first: a row may be in both lists.
 */
void
inplace_page_apply_freeze(Page page, const OffsetNumber *freeze, int nfreeze,
						  const OffsetNumber *unlock,
						  const InplaceTupleHeaderData *unlocked, int nunlock)
{
	for (int i = 0; i < nunlock; i++)
		memcpy(PageGetTupleAt(page, unlock[i]), &unlocked[i],
			   SizeOfInplaceTupleHeader);

	for (int i = 0; i < nfreeze; i++)
	{
		InplaceTupleHeader tup = PageGetTupleAt(page, freeze[i]);

		tup->t_infomask &= ~IP_ABORTED;
		tup->t_infomask |= IP_FROZEN | IP_COMMITTED;
	}
}

void
inplace_page_apply_swept(Page page, TransactionId swept,
						 const OffsetNumber *mark, int nmark,
						 const OffsetNumber *clear, int nclear)
{
	for (int i = 0; i < nmark; i++)
		HdrSetSwept(PageGetTupleAt(page, mark[i]), swept);

	for (int i = 0; i < nclear; i++)
	{
		InplaceTupleHeader tup = PageGetTupleAt(page, clear[i]);

		HdrForgetSweep(tup);
		tup->t_infomask &= ~IP_STALE;
	}
}

void
inplace_page_undo_deletes(Page page, const OffsetNumber *offs, int n)
{
	for (int i = 0; i < n; i++)
		HdrUndoBareDelete(PageGetTupleAt(page, offs[i]));
}

/* the visibility map's page: more bits of a data block */
void
inplace_map_page_set(Page vmpage, BlockNumber blk, uint8 flags)
{
	*vm_byte(vmpage, blk) |= flags << VM_SHIFT(blk);
}

/* ---------------- writing ---------------- */

static XLogRecPtr
finish_record(Buffer buffer, uint8 info)
{
	XLogRecPtr	lsn;

	XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
	lsn = inplace_xlog_insert(info);
	PageSetLSN(BufferGetPage(buffer), lsn);
	return lsn;
}

void
inplace_log_prune(Relation rel, Buffer buffer, TransactionId horizon,
				  const OffsetNumber *dead, int ndead,
				  const OffsetNumber *unused, int nunused,
				  const OffsetNumber *trim, int ntrim)
{
	xl_ip_prune xlrec;

	Assert(RelationNeedsWAL(rel));

	xlrec.horizon = horizon;
	xlrec.ndead = ndead;
	xlrec.nunused = nunused;
	xlrec.ntrim = ntrim;

	XLogBeginInsert();
	XLogRegisterData((char *) &xlrec, SizeOfIpPrune);
	if (ndead > 0)
		XLogRegisterData((char *) dead, ndead * sizeof(OffsetNumber));
	if (nunused > 0)
		XLogRegisterData((char *) unused, nunused * sizeof(OffsetNumber));
	if (ntrim > 0)
		XLogRegisterData((char *) trim, ntrim * 2 * sizeof(OffsetNumber));
	finish_record(buffer, XLOG_IP_PRUNE);
}

void
inplace_log_vacuum(Relation rel, Buffer buffer, const OffsetNumber *unused,
				   int nunused)
{
	uint16		count = nunused;

	Assert(RelationNeedsWAL(rel));

	XLogBeginInsert();
	XLogRegisterData((char *) &count, sizeof(count));
	if (nunused > 0)
		XLogRegisterData((char *) unused, nunused * sizeof(OffsetNumber));
	finish_record(buffer, XLOG_IP_VACUUM);
}

void
inplace_log_freeze(Relation rel, Buffer buffer, TransactionId horizon,
				   const OffsetNumber *freeze, int nfreeze,
				   const OffsetNumber *unlock,
				   const InplaceTupleHeaderData *unlocked, int nunlock)
{
	xl_ip_freeze xlrec;

	Assert(RelationNeedsWAL(rel));

	xlrec.horizon = horizon;
	xlrec.nfreeze = nfreeze;
	xlrec.nunlock = nunlock;

	XLogBeginInsert();
	XLogRegisterData((char *) &xlrec, SizeOfIpFreeze);
	if (nfreeze > 0)
		XLogRegisterData((char *) freeze, nfreeze * sizeof(OffsetNumber));
	if (nunlock > 0)
	{
		XLogRegisterData((char *) unlock, nunlock * sizeof(OffsetNumber));
		XLogRegisterData((char *) unlocked, nunlock * SizeOfInplaceTupleHeader);
	}
	finish_record(buffer, XLOG_IP_FREEZE);
}

void
inplace_log_swept(Relation rel, Buffer buffer, TransactionId horizon,
				  TransactionId swept, const OffsetNumber *mark, int nmark,
				  const OffsetNumber *clear, int nclear)
{
	xl_ip_freeze xlrec;

	Assert(RelationNeedsWAL(rel));

	xlrec.horizon = horizon;
	xlrec.nfreeze = nmark | XLIP_SWEPT;
	xlrec.nunlock = nclear;

	XLogBeginInsert();
	XLogRegisterData((char *) &xlrec, SizeOfIpFreeze);
	XLogRegisterData((char *) &swept, sizeof(TransactionId));
	if (nmark > 0)
		XLogRegisterData((char *) mark, nmark * sizeof(OffsetNumber));
	if (nclear > 0)
		XLogRegisterData((char *) clear, nclear * sizeof(OffsetNumber));
	finish_record(buffer, XLOG_IP_FREEZE);
}

/*
 * An index marked on the meta page of undo begins to take updates (index/other_mark.c).  The record
 * is that of a sweep of no rows, which conflicts with snapshots that do not see "xid".  It has
 * the page's image, so there is nothing else to replay.
 */
void
inplace_log_others_begin(Relation undorel, Buffer meta, TransactionId xid)
{
	xl_ip_freeze xlrec;
	TransactionId swept = InvalidTransactionId;
	XLogRecPtr	lsn;

	Assert(RelationNeedsWAL(undorel));
	xlrec.horizon = xid;
	xlrec.nfreeze = XLIP_SWEPT;
	xlrec.nunlock = 0;
	XLogBeginInsert();
	XLogRegisterData((char *) &xlrec, SizeOfIpFreeze);
	XLogRegisterData((char *) &swept, sizeof(TransactionId));
	XLogRegisterBuffer(0, meta, REGBUF_FORCE_IMAGE | REGBUF_STANDARD);
	lsn = inplace_xlog_insert(XLOG_IP_FREEZE);
	PageSetLSN(BufferGetPage(meta), lsn);
}

/*
 * Sets the LSN of the map page, and that of the data page where a hint bit
 * would need an image of it.
 */
XLogRecPtr
inplace_log_visible(Relation rel, Buffer buffer, Buffer vmbuffer,
					TransactionId horizon, uint8 flags)
{
	xl_ip_visible xlrec;
	XLogRecPtr	lsn;

	Assert(RelationNeedsWAL(rel));

	xlrec.horizon = horizon;
	xlrec.flags = flags;

	XLogBeginInsert();
	XLogRegisterData((char *) &xlrec, SizeOfIpVisible);
	XLogRegisterBuffer(0, buffer, REGBUF_STANDARD |
					   (XLogHintBitIsNeeded() ? 0 : REGBUF_NO_IMAGE));
	XLogRegisterBuffer(1, vmbuffer, 0);
	lsn = inplace_xlog_insert(XLOG_IP_VISIBLE);

	if (XLogHintBitIsNeeded())
		PageSetLSN(BufferGetPage(buffer), lsn);
	PageSetLSN(BufferGetPage(vmbuffer), lsn);
	return lsn;
}

/*
 * The caller pinned the right map page before it locked the data page.
 * Bits are only ever added here.
 */
void
inplace_visibilitymap_set(Relation rel, BlockNumber blk, Buffer buffer,
						  Buffer vmbuffer, TransactionId horizon, uint8 flags)
{
	Page		page = BufferGetPage(buffer);
	Page		vmpage;
	uint8		bits;

	Assert((flags & VISIBILITYMAP_ALL_VISIBLE) != 0);
	Assert(BufferGetBlockNumber(buffer) == blk);

	if (!visibilitymap_pin_ok(blk, vmbuffer))
		elog(ERROR, "wrong visibility map page pinned for block %u of relation \"%s\"",
			 blk, RelationGetRelationName(rel));

	LockBuffer(vmbuffer, BUFFER_LOCK_EXCLUSIVE);
	vmpage = BufferGetPage(vmbuffer);
	bits = flags << VM_SHIFT(blk);

	if (!PageIsAllVisible(page) || (*vm_byte(vmpage, blk) & bits) != bits)
	{
		START_CRIT_SECTION();

		PageSetAllVisible(page);
		MarkBufferDirty(buffer);
		inplace_map_page_set(vmpage, blk, flags);
		MarkBufferDirty(vmbuffer);
		if (RelationNeedsWAL(rel))
			inplace_log_visible(rel, buffer, vmbuffer, horizon, flags);

		END_CRIT_SECTION();
	}
	LockBuffer(vmbuffer, BUFFER_LOCK_UNLOCK);
}

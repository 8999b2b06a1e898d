/*-------------------------------------------------------------------------
 *
 * recycle.c
 *	  Deleted pages of a btree, or an inplace_btree, that can be used again
 *	  although a snapshot is older than they.
 *
 * A page that nbtree has deleted leads to its siblings until all snapshots of that
 * time have ended, for a backend may have read a link to it before.  While a snapshot
 * is held for long no deleted page would be free, and an index whose keys go up, as
 * those of a queue do, would grow with all that goes through it.  But a backend that
 * has a snapshot, and does nothing with the index, has read no link.
 *
 * Which pages, "all_see" and "held" as in undo/holders.h
 *	  Those with a safexid before all_see, if after bounds were read
 *	  - of an inplace_btree: each backend has been seen once without a scan of the
 *		index (in_flight_drain());
 *	  - of a btree, whose scans we do not hear of: the session of each held snapshot
 *		has been seen once waiting for its client, without an open query
 *		(UndoHoldersDrain()).  So COPY of a large table, as by pg_dump, puts it off.
 *
 * Proof that nobody comes to such a page
 *	  Nothing leads to a deleted page but what was read before it was deleted.
 *	  - A backend with a snapshot that is not a held one took it after that: its xmin
 *		is not older than all_see, and the safexid is.  So it has read nothing then.
 *		That is nbtree's own rule.
 *	  - A backend with a held snapshot has no xid, or is idle.  So it is not inserting
 *		when bounds are read, and goes down from the root when it does so later.  A
 *		scan of its that was there before the page was deleted would have been seen
 *		by in_flight_drain() all the time.  Or, for a btree, it would belong to a query
 *		that is open, or to what the session does while it is not idle.
 *	  - What is in the relation's cache (the root, the last page) is checked by nbtree
 *		when it is used.
 *	  - Other walks through the pages of an inplace_btree are our own: VACUUM's, of
 *		which there is one, and inplace.check's, which takes back what its session
 *		has said of its snapshot.  Those through a btree (amcheck's) are in queries,
 *		or in a session that is not idle.
 *	  - On standbys queries that do not see safexid as ended are in conflict with a
 *		discard record that comes before.
 *
 *	  While a standby is connected, pages that this VACUUM has deleted, or merged with
 *	  others, are for the next one.  Else each VACUUM beside a held snapshot would be in
 *	  conflict with all queries on standbys that are older than it; so it is with those
 *	  that last from one VACUUM to the next.
 *
 * The page keeps its links and gets the oldest safexid there is, so that nbtree takes
 * it when it wants a page.  Of nbtree's own pages no other bit is changed.
 *
 * Lock order: one page at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/nbtree.h"
#include "access/xloginsert.h"
#include "btree/in_flight.h"
#include "btree/recycle.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "storage/indexfsm.h"
#include "undo/space.h"
#include "undo/undo_log.h"

/* so many at a time */
#define RECYCLE_MAX_PAGES	10000

typedef struct Recycling
{
	Relation	index;
	Relation	table;
	TransactionId all_see;
	FullTransactionId before;	/* deleted then: for the sake of standbys */
	TransactionId newest;		/* safexid among those found */
	int			npages;
	int			max;
	BlockNumber *pages;
} Recycling;

/*
 * Is the page one that has been deleted before all_see, but not before all snapshots?
 * The safexid is returned.
 */
static bool
waits_for_held(const Recycling *r, Page page, TransactionId *xid)
{
	FullTransactionId safexid;

	if (PageIsNew(page) || !P_ISDELETED(BTPageGetOpaque(page)))
		return false;
	safexid = BTPageGetDeleteXid(page);
	if (!FullTransactionIdPrecedes(safexid, r->before) ||
		GlobalVisCheckRemovableFullXid(BtRecyclingHorizonOf(r->table), safexid))
		return false;
	*xid = XidFromFullTransactionId(safexid);
	return TransactionIdPrecedes(*xid, r->all_see);
}

static void
look_for_pages(Recycling *r, BufferAccessStrategy strategy)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(r->index);

	for (BlockNumber blk = BTREE_METAPAGE + 1;
		 blk < nblocks && r->npages < r->max; blk++)
	{
		Buffer		buffer;
		TransactionId xid;

		VacuumDelayPoint();
		buffer = ReadBufferExtended(r->index, MAIN_FORKNUM, blk, RBM_NORMAL, strategy);
		_bt_lockbuf(r->index, buffer, BT_READ);
		if (!PageIsNew(BufferGetPage(buffer)))
			_bt_checkpage(r->index, buffer);
		if (waits_for_held(r, BufferGetPage(buffer), &xid))
		{
			r->pages[r->npages++] = blk;
			if (!TransactionIdIsValid(r->newest) || TransactionIdFollows(xid, r->newest))
				r->newest = xid;
		}
		_bt_relbuf(r->index, buffer);
	}
}

static bool
make_free(Recycling *r, BlockNumber blk, BufferAccessStrategy strategy)
{
	Buffer		buffer = ReadBufferExtended(r->index, MAIN_FORKNUM, blk, RBM_NORMAL, strategy);
	Page		page = BufferGetPage(buffer);
	TransactionId xid;
	bool		made = false;

	_bt_lockbuf(r->index, buffer, BT_WRITE);
	if (waits_for_held(r, page, &xid) && TransactionIdPrecedesOrEquals(xid, r->newest))
	{
		START_CRIT_SECTION();
		((BTDeletedPageData *) PageGetContents(page))->safexid =
			FirstNormalFullTransactionId;
		MarkBufferDirty(buffer);
		if (RelationNeedsWAL(r->index))
			log_newpage_buffer(buffer, true);
		END_CRIT_SECTION();
		made = true;
	}
	_bt_relbuf(r->index, buffer);
	return made;
}

/*
 * By VACUUM, which began at "start_xid", when nbtree has gone through the index;
 * tells_of_scans: it is an inplace_btree.  Returns how many pages have become free; the
 * index's statistics are corrected.
 */
BlockNumber
inplace_recycle_deleted(const IndexVacuumInfo *info, Relation table,
						const UndoBounds *bounds, FullTransactionId start_xid,
						bool tells_of_scans, IndexBulkDeleteResult *istat)
{
	Recycling	r = {info->index, table, bounds->all_see};

	/*
	 * (a page that was deleted since, and before the next xid, cannot be free
	 * yet)
	 */
	bool		next_time = UndoStandbyConnected() ||
		FullTransactionIdEquals(ReadNextFullTransactionId(), start_xid);
	BlockNumber nfree = 0;

	if (istat == NULL ||
		istat->pages_deleted <=
		istat->pages_free + (next_time ? istat->pages_newly_deleted : 0))
		return 0;
	r.before = next_time ? start_xid : ReadNextFullTransactionId();
	r.max = Min(istat->pages_deleted, RECYCLE_MAX_PAGES);
	r.pages = palloc(r.max * sizeof(BlockNumber));
	look_for_pages(&r, info->strategy);
	if (r.npages > 0 && (tells_of_scans ? in_flight_drain(RelLocator(r.index)) :
						 UndoHoldersDrain(bounds)))
	{
		if (RelationNeedsWAL(r.index))
			inplace_log_discard(MyDatabaseId, r.newest);
		for (int i = 0; i < r.npages; i++)
		{
			VacuumDelayPoint();
			if (!make_free(&r, r.pages[i], info->strategy))
				continue;
			RecordFreeIndexPage(r.index, r.pages[i]);
			nfree++;
		}
		IndexFreeSpaceMapVacuum(r.index);
	}
	pfree(r.pages);
	if (nfree > 0)
	{
		istat->pages_free = Min(istat->pages_free + nfree, istat->pages_deleted);
		_bt_set_cleanup_info(r.index, istat->pages_deleted - istat->pages_free);
	}
	return nfree;
}

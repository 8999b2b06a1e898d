/*-------------------------------------------------------------------------
 *
 * visibility.c
 *	  Which version of a row a snapshot sees.
 *
 * The page has the newest version; older ones are made from it by applying
 * undo records backward.  A reader goes back only past a version that its
 * snapshot does not see, and the undo of such a version is never given back
 * while the snapshot lives (undo/worker.c), nor is that of an aborted change
 * before it has been restored on the page.
 *
 * The second half of that rule holds only for a reader that looks at the page
 * itself, under its lock.  A copy of the page can show an aborted change that has
 * been restored, and its undo given back, since the copy was made.  Where the
 * aborted transaction is older than every transaction the snapshot waits for,
 * fetch_mvcc therefore goes to the page again.
 *
 * It does so for any version that is not visible.  The undo worker may give back
 * undo of versions that a transaction does not see, once the page does not lead
 * there any more (row/squeeze.c).  So a copy must not lead the reader there.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/subtrans.h"
#include "page/page.h"
#include "page/protect.h"
#include "page/slot.h"
#include "page/tuple.h"
#include "row/row_lock.h"
#include "row/rowcheck.h"
#include "row/target.h"
#include "row/visibility.h"
#include "row/walk.h"
#include "storage/predicate.h"
#include "undo/append.h"
#include "undo/hold.h"
#include "undo/record.h"
#include "undo/undo.h"

RowVersion *
RowVersionAlloc(void)
{
	return (RowVersion *) palloc(sizeof(RowVersion));
}

RowVersion *
inplace_scratch_version(void)
{
	static RowVersion version;

	return &version;
}

/*
 * Is the commit record of this transaction, which has committed, on disk?  Or does it
 * not matter, as the page does not survive a crash?
 */
bool
inplace_commit_on_disk(TransactionId xid, Buffer buffer)
{
	return !BufferIsPermanent(buffer) ||
		!XLogNeedsFlush(TransactionIdGetCommitLSN(xid));
}

/*
 * Set a hint bit.  As for heap, a committed bit must not reach disk before
 * the commit record, so it is not set while that is neither flushed nor
 * covered by the page's LSN.
 */
void
inplace_set_hint(InplaceTupleHeader tup, Buffer buffer, uint16 hint,
				 TransactionId xid)
{
	if (hint == IP_COMMITTED && BufferIsPermanent(buffer))
	{
		XLogRecPtr	commit_lsn = TransactionIdGetCommitLSN(xid);

		if (XLogNeedsFlush(commit_lsn) &&
			BufferGetLSNAtomic(buffer) < commit_lsn)
			return;
	}
	tup->t_infomask |= hint;
	inplace_mark_hint(buffer);
}

/*
 * An xid of a damaged row may be one that the commit log does not know any
 * more.  The server's error names no row, so it gets a context.  We do not check
 * first and raise an error of our own: the log goes back further than the oldest xid
 * in use.
 */
typedef struct XidPlace
{
	TransactionId xid;
	const char *relname;
	BlockNumber blk;			/* or Invalid: of a copy */
	OffsetNumber off;
} XidPlace;

/* none before that has anything in the commit log, as of when it was read */
static TransactionId clog_begin = InvalidTransactionId;

static void
xid_error_callback(void *arg)
{
	XidPlace   *place = (XidPlace *) arg;

	if (BlockNumberIsValid(place->blk))
		errcontext("while looking up transaction %u of row (%u,%u) of relation \"%s\"",
				   place->xid, place->blk, place->off, place->relname);
	else
		errcontext("while looking up transaction %u of a row of relation \"%s\"",
				   place->xid, place->relname);
}

static pg_noinline bool
old_xid_committed(Relation rel, BlockNumber blk, OffsetNumber off,
				  TransactionId xid)
{
	ErrorContextCallback context;
	XidPlace	place = {xid, RelationGetRelationName(rel), blk, off};
	bool		committed;

	/* (without a lock: an earlier value is as good) */
	clog_begin = TransamVariables->oldestClogXid;

	context.callback = xid_error_callback;
	context.arg = &place;
	context.previous = error_context_stack;
	error_context_stack = &context;
	committed = TransactionIdDidCommit(xid);
	error_context_stack = context.previous;
	return committed;
}

static inline bool
is_old_xid(TransactionId xid)
{
	return (int32) (xid - clog_begin) < 0 || !TransactionIdIsValid(clog_begin);
}

/* the line pointer of a row of the page; Invalid if it is a copy */
static OffsetNumber
offset_on_page(Page page, InplaceTupleHeader tup)
{
	for (OffsetNumber off = FirstOffsetNumber;
		 off <= PageGetMaxOffsetNumber(page) && off <= InplaceMaxTuplesPerPage;
		 off++)
	{
		ItemId		lp = PageGetItemId(page, off);

		if (ItemIdIsNormal(lp) &&
			(char *) tup == (char *) page + ItemIdGetOffset(lp))
			return off;
	}
	return InvalidOffsetNumber;
}

static pg_noinline bool
old_row_committed(Relation rel, InplaceTupleHeader tup, Buffer buffer)
{
	BlockNumber blk = InvalidBlockNumber;
	OffsetNumber off = InvalidOffsetNumber;

	if (BufferIsValid(buffer))
		off = offset_on_page(BufferGetPage(buffer), tup);
	if (OffsetNumberIsValid(off))
		blk = BufferGetBlockNumber(buffer);
	return old_xid_committed(rel, blk, off, tup->t_xid);
}

/* without a look into the commit log; false if that has to be asked */
static inline bool
status_is_known(InplaceTupleHeader tup, XidStatus *status)
{
	TransactionId xid = tup->t_xid;

	if (tup->t_infomask & (IP_COMMITTED | IP_FROZEN))
		*status = XID_COMMITTED;
	else if (tup->t_infomask & IP_ABORTED)
		*status = XID_ABORTED;
	else if (TransactionIdIsCurrentTransactionId(xid))
		*status = XID_CURRENT;
	else if (TransactionIdIsInProgress(xid))
		*status = XID_IN_PROGRESS;
	else
		return false;
	return true;
}

XidStatus
inplace_xid_status(Relation rel, InplaceTupleHeader tup, Buffer buffer)
{
	TransactionId xid = tup->t_xid;
	XidStatus	status;

	if (status_is_known(tup, &status))
		return status;
	if (unlikely(is_old_xid(xid)) ? old_row_committed(rel, tup, buffer) :
		TransactionIdDidCommit(xid))
	{
		if (BufferIsValid(buffer))
			inplace_set_hint(tup, buffer, IP_COMMITTED, xid);
		return XID_COMMITTED;
	}
	if (BufferIsValid(buffer))
		inplace_set_hint(tup, buffer, IP_ABORTED, xid);
	return XID_ABORTED;
}

XidStatus
inplace_copied_xid_status(Relation rel, InplaceTupleHeader hdr, BlockNumber blk,
						  OffsetNumber off)
{
	TransactionId xid = hdr->t_xid;
	XidStatus	status;

	if (status_is_known(hdr, &status))
		return status;
	if (unlikely(is_old_xid(xid)) ? old_xid_committed(rel, blk, off, xid) :
		TransactionIdDidCommit(xid))
		return XID_COMMITTED;
	return XID_ABORTED;
}

CommandId
inplace_change_cid(Relation rel, InplaceTupleHeader tup, BlockNumber blk,
				   OffsetNumber off)
{
	InplaceTupleHeaderData hdr = *tup;
	UndoWalkGuard guard = {0};
	UndoRecord	rec;
	ItemPointerData tid;

	ItemPointerSet(&tid, blk, off);
	if (inplace_version_before(rel, &tid, &hdr, false, &guard, &rec))
		return rec.hdr.ur_cid;
	return HdrHasDirectLocker(&hdr) ? FirstCommandId : HdrInsertCid(&hdr);
}

int
inplace_quick_visible(InplaceTupleHeader tup, Snapshot snapshot)
{
	uint16		infomask = tup->t_infomask;

	if (infomask & IP_FROZEN)
		return (infomask & IP_DELETED) ? 0 : 1;
	if (infomask & IP_COMMITTED)
	{
		if (!XidInMVCCSnapshot(tup->t_xid, snapshot))
			return (infomask & IP_DELETED) ? 0 : 1;
		return HdrHasUndo(tup) ? -1 : 0;
	}
	if ((infomask & IP_ABORTED) && !HdrHasUndo(tup))
		return 0;
	return -1;
}

/*
 * t_xid has no hint yet.  A row that we inserted tells its command itself.
 * If the xid is in the snapshot, then no need to look for its state: the
 * version is not visible, an older one may be.
 */
int
inplace_visible_slow(Relation rel, InplaceTupleHeader tup, Buffer buffer,
					 Snapshot snapshot)
{
	if (HdrHasCid(tup) && TransactionIdIsCurrentTransactionId(tup->t_xid))
		return HdrFreshCid(tup) < snapshot->curcid ? 1 : 0;

	if (HdrIsSpeculative(tup) ||
		XidInMVCCSnapshot(tup->t_xid, snapshot))
		return -1;

	switch (inplace_xid_status(rel, tup, buffer))
	{
		case XID_COMMITTED:
			return (tup->t_infomask & IP_DELETED) ? 0 : 1;
		case XID_ABORTED:
			return (tup->t_infomask & IP_FRESH) ? 0 : -1;
		case XID_CURRENT:
		case XID_IN_PROGRESS:
			break;
	}
	return -1;
}

/*
 * Walk back from the row's newest version; what is found is made in the version's
 * areas.
 */
static inline void
walk_start(ChainWalk *w, Relation rel, BlockNumber blk, OffsetNumber off,
		   InplaceTupleHeader tup, Size itemlen, RowVersion *version)
{
	inplace_walk_start(w, rel, blk, off, tup, tup,
					   inplace_tuple_len(tup, itemlen), version->space);
}

/*
 * The snapshot does not see the version that the link belongs to: does it see none of
 * those that the link passes over?  The argument is in row/link.c.
 */
static WalkChoice
choose_unseen(ChainWalk *w, void *arg)
{
	Snapshot	snapshot = (Snapshot) arg;
	UndoLink	link;
	Size		len;

	if (w->rec.hdr.ur_type == UNDO_LOCK)
		return WALK_PASS;
	if (w->rec.hdr.ur_type != UNDO_LINK)
		return WALK_GO;
	(void) UndoGetLink(&w->rec, &link, &len);
	return XidInMVCCSnapshot(link.ul_newer_xid, snapshot) ? WALK_GO : WALK_PASS;
}

/* the walk has come to the version that is asked for */
static void
walk_info(ChainWalk *w, RowVersion *version, CommandId cid)
{
	RowVersionInfo *vi = &version->info;

	version->tuple = w->tuple;
	version->len = w->len;
	version->owned = w->cur >= 0;

	vi->xmin = w->hdr.t_xid;
	vi->tag = w->hdr.t_tag;
	vi->cmin = (cid == InvalidCommandId) ? HdrInsertCid(&w->hdr) : cid;
	vi->xmax = w->replaced.xid;
	vi->replaced = TransactionIdIsValid(vi->xmax);
	/* as on heap, where one field holds either */
	vi->cmax = TransactionIdIsValid(vi->xmax) ? w->replaced.cid : vi->cmin;
	/* (one in memory: slot.c) */
	if (!vi->replaced && HdrIsLocked(&w->hdr))
	{
		if (HdrHasDirectLocker(&w->hdr))
			vi->xmax = HdrDirectLocker(&w->hdr);
		else
		{
			RowLockers	lockers;

			if (inplace_get_lockers(w->rel, &w->hdr, w->blk, w->off, &lockers))
				vi->xmax = lockers.xid;
		}
	}
}

static inline XidStatus
header_status(ChainWalk *w)
{
	return inplace_copied_xid_status(w->rel, &w->hdr, w->blk, w->off);
}

/*
 * Own change: is it of an earlier command than the snapshot's?
 */
static bool
own_visible(ChainWalk *w, Snapshot snapshot, CommandId *cid)
{
	if (unlikely(HdrIsSpeculative(&w->hdr)))
		*cid = HdrSpecCid(&w->hdr);
	else if (!HdrHasUndo(&w->hdr) ||
			 !UndoOwnChangeCid(w->rel, HdrUndoPtr(&w->hdr), w->hdr.t_xid, cid))
		*cid = inplace_change_cid(w->rel, &w->hdr, w->blk, w->off);
	return *cid != InvalidCommandId && *cid < snapshot->curcid;
}

/*
 * Status of the version we are at with regard to an MVCC snapshot.
 */
static bool
mvcc_visible(ChainWalk *w, Snapshot snapshot, Buffer hint_buffer,
			 InplaceTupleHeader hint_tup, CommandId *cid)
{
	TransactionId xid = w->hdr.t_xid;
	XidStatus	status;

	*cid = InvalidCommandId;
	if (w->hdr.t_infomask & IP_FROZEN)
		return true;
	if (w->hdr.t_infomask & IP_ABORTED)
		return false;
	if (!(w->hdr.t_infomask & IP_COMMITTED) &&
		TransactionIdIsCurrentTransactionId(xid))
		return own_visible(w, snapshot, cid);
	if (XidInMVCCSnapshot(xid, snapshot))
		return false;
	if (w->hdr.t_infomask & IP_COMMITTED)
		return true;

	/* not running when the snapshot was taken, so it has ended */
	if (unlikely(is_old_xid(xid)) ?
		old_xid_committed(w->rel, w->blk, w->off, xid) :
		TransactionIdDidCommit(xid))
		status = XID_COMMITTED;
	else
		status = XID_ABORTED;
	w->hdr.t_infomask |= (status == XID_COMMITTED) ? IP_COMMITTED : IP_ABORTED;
	if (hint_tup && BufferIsValid(hint_buffer))
		inplace_set_hint(hint_tup, hint_buffer,
						 status == XID_COMMITTED ? IP_COMMITTED : IP_ABORTED,
						 xid);
	return status == XID_COMMITTED;
}

/*
 * Does this page copy lead into undo that may be gone?  See the file header.
 */
static bool
copy_is_unsafe(InplaceTupleHeader tup, Snapshot snapshot)
{
	return (HdrHasUndo(tup) || (tup->t_infomask & IP_LOCK_INDIRECT)) &&
		inplace_quick_visible(tup, snapshot) != 1;
}

/*
 * The reader did not see a version of this transaction.  Serializable
 * transactions are known by their top xids.  What a subtransaction did that has
 * been rolled back is in conflict with nobody, although the snapshot, and the
 * transaction above it, have it as running.
 */
static void
conflict_out(Relation rel, TransactionId xid, Snapshot snapshot)
{
	if (TransactionIdPrecedes(xid, TransactionXmin) ||
		TransactionIdDidAbort(xid))
		return;
	xid = SubTransGetTopmostTransaction(xid);
	if (TransactionIdPrecedes(xid, TransactionXmin))
		return;
	CheckForSerializableConflictOut(rel, xid, snapshot);
}

static bool
fetch_mvcc(Relation rel, Buffer buffer, bool buffer_locked, Page page,
		   BlockNumber blk, OffsetNumber off, Snapshot snapshot,
		   RowVersion *version)
{
	ItemId		lp = PageGetItemId(page, off);
	InplaceTupleHeader tup = (InplaceTupleHeader) PageGetItem(page, lp);
	bool		serializable = CheckForSerializableConflictOutNeeded(rel, snapshot);
	bool		first = true;
	ChainWalk	w;

	walk_start(&w, rel, blk, off, tup, ItemIdGetLength(lp), version);
	for (;;)
	{
		CommandId	cid;
		TransactionId xid;

		if (mvcc_visible(&w, snapshot,
						 buffer_locked ? buffer : InvalidBuffer,
						 first ? tup : NULL, &cid))
		{
			if (w.hdr.t_infomask & IP_DELETED)
				return false;
			walk_info(&w, version, cid);
			return true;
		}
		if (first)
			UndoHoldCheckSnapshot(snapshot);
		xid = w.hdr.t_xid;
		if (serializable && !(w.hdr.t_infomask & IP_ABORTED))
			conflict_out(rel, xid, snapshot);
		if (!inplace_walk_on(&w, false, choose_unseen, snapshot))
			return false;

		/* it has another replacer where versions have been passed over */
		if (serializable && w.replaced.xid != xid &&
			TransactionIdIsValid(w.replaced.xid))
			conflict_out(rel, w.replaced.xid, snapshot);
		first = false;
	}
}

static bool
fetch_self(ChainWalk *w, RowVersion *version)
{
	for (;;)
	{
		switch (header_status(w))
		{
			case XID_CURRENT:
			case XID_COMMITTED:
				if (w->hdr.t_infomask & IP_DELETED)
					return false;
				walk_info(w, version, InvalidCommandId);
				return true;
			case XID_IN_PROGRESS:
				break;
			case XID_ABORTED:
				w->hdr.t_infomask |= IP_ABORTED;
				break;
		}
		if (!inplace_walk_on(w, false, NULL, NULL))
			return false;
	}
}

/*
 * Is the speculative insertion under way?  Its success is not logged (insert.c), so
 * after a crash a row may be speculative whose transaction is a prepared one.  Then
 * that transaction has to be waited for.  The inserter holds the lock until the row,
 * whose page is locked, is not speculative any more.
 */
static bool
speculation_goes_on(TransactionId xid, uint32 token)
{
	LOCKTAG		tag;
	int			n;

	SET_LOCKTAG_SPECULATIVE_INSERTION(tag, xid, token);
	pfree(GetLockConflicts(&tag, ShareLock, &n));
	return n > 0;
}

/*
 * Dirty: an uncommitted change of another transaction is shown, and the caller is
 * told which transaction to wait for.  Where it is an in-place update or a delete,
 * the row that is returned is the last committed version: nobody can tell yet which
 * of the two it will be.
 */
static bool
fetch_dirty(ChainWalk *w, Snapshot snapshot, RowVersion *version)
{
	bool		found_busy = false;

	snapshot->xmin = snapshot->xmax = InvalidTransactionId;
	snapshot->speculativeToken = 0;

	for (;;)
	{
		TransactionId xid = w->hdr.t_xid;

		switch (header_status(w))
		{
			case XID_CURRENT:
			case XID_COMMITTED:
				if ((w->hdr.t_infomask & IP_DELETED) && !found_busy)
					return false;
				walk_info(w, version, InvalidCommandId);
				return true;
			case XID_IN_PROGRESS:
				if (w->hdr.t_infomask & IP_DELETED)
				{
					ItemPointerData tid;

					ItemPointerSet(&tid, w->blk, w->off);
					snapshot->xmax =
						inplace_first_in_the_way(w->rel, &tid, &w->hdr,
												 LockTupleExclusive);
					walk_info(w, version, InvalidCommandId);
					return true;
				}
				if (!HdrHasUndo(&w->hdr) ||
					((w->hdr.t_infomask & IP_FRESH) != 0))
				{
					/* an insert; or all versions are of this transaction */
					if (found_busy)
						snapshot->xmax = InvalidTransactionId;
					snapshot->xmin = xid;
					if (HdrIsSpeculative(&w->hdr) &&
						speculation_goes_on(xid, HdrSpecToken(&w->hdr)))
						snapshot->speculativeToken = HdrSpecToken(&w->hdr);
					walk_info(w, version, InvalidCommandId);
					return true;
				}
				snapshot->xmax = xid;
				found_busy = true;
				break;
			case XID_ABORTED:
				w->hdr.t_infomask |= IP_ABORTED;
				break;
		}
		if (!inplace_walk_on(w, false, NULL, NULL))
		{
			/* an insert of the same transaction under a lock record */
			if (found_busy)
			{
				snapshot->xmin = snapshot->xmax;
				snapshot->xmax = InvalidTransactionId;
				walk_info(w, version, InvalidCommandId);
			}
			return found_busy;
		}
	}
}

/*
 * For those that take the newest version as it is: of an evicted row it is the one that
 * was deleted.  False if nobody needs that any more.
 */
static bool
has_values(ChainWalk *w)
{
	return likely(!HdrIsEvicted(&w->hdr)) || inplace_walk_on(w, true, NULL, NULL);
}

bool
inplace_fetch_version(Relation rel, Buffer buffer, bool buffer_locked,
					  Page page, BlockNumber blk, OffsetNumber off,
					  Snapshot snapshot, RowVersion *version)
{
	ItemId		lp = PageGetItemId(page, off);
	InplaceTupleHeader tup;
	ChainWalk	w;

	if (!ItemIdIsNormal(lp))
		return false;
	tup = (InplaceTupleHeader) PageGetItem(page, lp);

	switch (snapshot->snapshot_type)
	{
		case SNAPSHOT_MVCC:
			if (!buffer_locked && copy_is_unsafe(tup, snapshot))
			{
				bool		found;

				LockBuffer(buffer, BUFFER_LOCK_SHARE);
				page = RowPage(rel, buffer);
				found = off <= PageGetMaxOffsetNumber(page) &&
					ItemIdIsNormal(PageGetItemId(page, off)) &&
					fetch_mvcc(rel, buffer, true, page, blk, off, snapshot,
							   version);
				if (found && !version->owned)
				{
					memcpy(version->space[0].data, version->tuple, version->len);
					version->tuple = (InplaceTupleHeader) version->space[0].data;
					version->owned = true;
				}
				LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
				return found;
			}
			return fetch_mvcc(rel, buffer, buffer_locked, page, blk, off,
							  snapshot, version);

		case SNAPSHOT_SELF:
			walk_start(&w, rel, blk, off, tup, ItemIdGetLength(lp), version);
			return fetch_self(&w, version);

		case SNAPSHOT_ANY:
			walk_start(&w, rel, blk, off, tup, ItemIdGetLength(lp), version);
			if (!has_values(&w))
				return false;
			walk_info(&w, version, InvalidCommandId);
			return true;

		case SNAPSHOT_DIRTY:
			walk_start(&w, rel, blk, off, tup, ItemIdGetLength(lp), version);
			return fetch_dirty(&w, snapshot, version);

		case SNAPSHOT_NON_VACUUMABLE:
			{
				RowState	state;
				bool		all_visible;

				walk_start(&w, rel, blk, off, tup, ItemIdGetLength(lp), version);
				state = inplace_row_state(rel, tup,
										  buffer_locked ? buffer : InvalidBuffer,
										  InvalidTransactionId,
										  snapshot->vistest, &all_visible);
				if (state == ROW_DEAD || state == ROW_ABORTED_INSERT ||
					!has_values(&w))
					return false;
				walk_info(&w, version, InvalidCommandId);
				return true;
			}

		case SNAPSHOT_HISTORIC_MVCC:
		case SNAPSHOT_TOAST:
		default:
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("inplace table \"%s\" cannot be read with this kind of snapshot",
							RelationGetRelationName(rel)),
					 errhint("A table that logical decoding reads as a catalog has to use the heap access method.")));
	}
	return false;
}

bool
inplace_newest_visible(Relation rel, Buffer buffer, OffsetNumber off,
					   Snapshot snapshot)
{
	Page		page = RowPage(rel, buffer);
	ItemId		lp = PageGetItemId(page, off);
	InplaceTupleHeader tup = (InplaceTupleHeader) PageGetItem(page, lp);
	CommandId	cid;
	ChainWalk	w;

	if (snapshot->snapshot_type != SNAPSHOT_MVCC)
		elog(ERROR, "a row version can be checked against MVCC snapshots only");
	walk_start(&w, rel, BufferGetBlockNumber(buffer), off, tup,
			   ItemIdGetLength(lp), inplace_scratch_version());
	return mvcc_visible(&w, snapshot, buffer, tup, &cid) &&
		!(tup->t_infomask & IP_DELETED);
}

/*
 * Walk back to the version that is asked for: with an xmin by both, else by the
 * tag, and then not further than our own transaction may go by that.
 */
static bool
fetch_tagged(Relation rel, Page page, BlockNumber blk, OffsetNumber off,
			 VersionTag tag, TransactionId xmin, RowVersion *version)
{
	ItemId		lp = PageGetItemId(page, off);
	ChainWalk	w;

	if (!ItemIdIsNormal(lp))
		return false;

	walk_start(&w, rel, blk, off,
			   (InplaceTupleHeader) PageGetItem(page, lp),
			   ItemIdGetLength(lp), version);
	for (;;)
	{
		XidStatus	status = header_status(&w);

		/*
		 * A delete does not make a version of its own: the tag is that of the
		 * version deleted, and the walk's next step is to that one.
		 */
		if (!(w.hdr.t_infomask & IP_DELETED))
		{
			if (TransactionIdIsValid(xmin) ?
				SameVersion(w.hdr.t_tag, w.hdr.t_xid, tag, xmin) :
				SameTagInXact(w.hdr.t_tag, tag))
			{
				walk_info(&w, version, InvalidCommandId);
				return true;
			}
			if (!TransactionIdIsValid(xmin) && status != XID_CURRENT &&
				status != XID_ABORTED)
				return false;
		}
		if (status == XID_ABORTED)
			w.hdr.t_infomask |= IP_ABORTED;

		/* undo of what others committed may be gone: missing_ok */
		if (!inplace_walk_on(&w, status == XID_COMMITTED, NULL, NULL))
			return false;
	}
}

bool
inplace_fetch_ours(Relation rel, Buffer buffer, Page page, BlockNumber blk,
				   OffsetNumber off, VersionTag tag, RowVersion *version)
{
	return fetch_tagged(rel, page, blk, off, tag, InvalidTransactionId, version);
}

bool
inplace_fetch_target(Relation rel, Buffer buffer, const RowTarget *target,
					 RowVersion *version)
{
	Assert(target->kind == TARGET_FOUND || target->kind == TARGET_OURS);
	return fetch_tagged(rel, RowPage(rel, buffer),
						ItemPointerGetBlockNumber(&target->tid),
						ItemPointerGetOffsetNumber(&target->tid), target->tag,
						target->kind == TARGET_FOUND ? target->xmin :
						InvalidTransactionId, version);
}

RowState
inplace_row_state(Relation rel, InplaceTupleHeader tup, Buffer buffer,
				  TransactionId oldest_xmin, GlobalVisState *vistest,
				  bool *all_visible)
{
	bool		gone;

	*all_visible = false;
	switch (inplace_xid_status(rel, tup, buffer))
	{
		case XID_ABORTED:
			if ((tup->t_infomask & (IP_FRESH | IP_SPECULATIVE)) &&
				!(tup->t_infomask & IP_LOCK_INDIRECT))
				return ROW_ABORTED_INSERT;
			return ROW_ABORTED_CHANGE;

		case XID_CURRENT:
		case XID_IN_PROGRESS:
			if (tup->t_infomask & IP_DELETED)
				return ROW_DELETE_IN_PROGRESS;
			if (tup->t_infomask & (IP_FRESH | IP_SPECULATIVE))
				return ROW_INSERT_IN_PROGRESS;
			return ROW_UPDATE_IN_PROGRESS;

		case XID_COMMITTED:
			break;
	}

	gone = (tup->t_infomask & IP_FROZEN) != 0 ||
		(TransactionIdIsValid(oldest_xmin) &&
		 TransactionIdPrecedes(HdrXid(tup), oldest_xmin)) ||
		(vistest != NULL && HdrIsSeenByAll(vistest, tup));

	if (tup->t_infomask & IP_DELETED)
		return gone ? ROW_DEAD : ROW_RECENTLY_DEAD;
	*all_visible = gone;
	return ROW_LIVE;
}

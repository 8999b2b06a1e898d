/*-------------------------------------------------------------------------
 *
 * lock_prepare.c
 *	  PREPARE TRANSACTION: row locks in memory go to their pages.
 *
 * A prepared transaction has no backend, and it is there again after a restart and on
 * a standby that has been promoted.  Its row locks have to be as well.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/relation.h"
#include "access/xact.h"
#include "modify/modify.h"
#include "page/recent.h"
#include "row/change.h"
#include "row/memory_lock.h"
#include "row/row_lock.h"
#include "row/rowcheck.h"
#include "row/target.h"
#include "row/visibility.h"
#include "undo/append.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

static void
put_on_page(Relation rel, ItemPointer tid, TransactionId xid, LockTupleMode mode)
{
	Buffer		buffer = inplace_read_row_page(rel, ItemPointerGetBlockNumber(tid));
	OffsetNumber off = ItemPointerGetOffsetNumber(tid);
	Buffer		vmbuffer = InvalidBuffer;
	RowTarget	target;
	RowCheck	rc;
	UndoRoom	room;
	TM_FailureData tmfd;
	TransactionId locker;
	bool		multi;
	LockTupleMode strongest;

	inplace_target_init(&target, tid, SnapshotAny);
	while (inplace_lock_row_page(rel, buffer, off, &vmbuffer))
	{
		TM_Result	result = inplace_row_check(rel, buffer, &target,
											   GetCurrentCommandId(false), mode,
											   &rc, &tmfd);

		if (rc.status == XID_CURRENT)
			break;				/* changed since: that is a lock, too */
		if (result == TM_BeingModified && rc.retry)
		{
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
			continue;
		}
		if (result != TM_Ok)
			elog(ERROR, "row (%u,%u) of relation \"%s\" was changed though locked",
				 ItemPointerGetBlockNumber(tid), off, RelationGetRelationName(rel));
		if (inplace_lock_lacks_undo(rel, &rc, &room))
		{
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
			UndoReserve(rel, &room);
			continue;
		}
		inplace_compute_lockers(&rc, xid, mode, &locker, &multi, &strongest);
		inplace_set_row_lock(rel, buffer, vmbuffer, off, &rc, &room, xid, locker,
							 multi, strongest);
		break;
	}
	UnlockReleaseBuffer(buffer);
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);
}

static void
before_prepare(XactEvent event, void *arg)
{
	int			n = 0;
	Oid			relid;
	RelFileLocator locator;
	ItemPointerData tid;
	LockTupleMode mode;

	if (event != XACT_EVENT_PRE_PREPARE)
		return;
	while (inplace_next_memory_lock(&n, &relid, &locator, &tid, &mode))
	{
		Relation	rel = try_relation_open(relid, NoLock);

		/*
		 * A table that was dropped since, or given other storage, is nobody
		 * else's before the end.  At the TID there may be another row by now,
		 * or a page of another access method.  One that was made in this
		 * transaction keeps its storage when it is truncated.
		 */
		if (rel == NULL)
			continue;
		if (RelFileLocatorEquals(locator, RelLocator(rel)) &&
			ItemPointerGetBlockNumber(&tid) < RelationGetNumberOfBlocks(rel))
			put_on_page(rel, &tid, GetTopTransactionId(), mode);
		relation_close(rel, NoLock);
	}
}

void
InplaceRegisterLockPrepare(void)
{
	RegisterXactCallback(before_prepare, NULL);
}

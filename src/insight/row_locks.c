/*-------------------------------------------------------------------------
 *
 * row_locks.c
 *	  inplace.row_locks(): which rows of a table are locked, or being changed, by
 *	  whom.  What pgrowlocks is for heap.
 *
 * Each page is copied under its share lock, and nothing is locked while undo
 * and the multixact log are asked.  A row may have changed by then: what it
 * shows is what was true of each row at some moment while the function ran.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/multixact.h"
#include "access/subtrans.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "insight/limits.h"
#include "insight/open_table.h"
#include "insight/walk.h"
#include "miscadmin.h"
#include "page/page.h"
#include "page/tuple.h"
#include "row/memory_lock.h"
#include "row/row_lock.h"
#include "storage/procarray.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"


PG_FUNCTION_INFO_V1(inplace_row_locks);
Datum		inplace_row_locks(PG_FUNCTION_ARGS);

enum
{
	COL_LOCKED_ROW,
	COL_LOCKER,
	COL_MULTI,
	COL_XIDS,
	COL_MODES,
	COL_PIDS,
	NUM_COLS
};

/* the transactions that hold a row */
typedef struct RowHolders
{
	Datum	   *xids;
	Datum	   *modes;
	Datum	   *pids;
	int			n;
} RowHolders;

static void
add_holder(RowHolders *holders, TransactionId xid, const char *mode)
{
	TransactionId top = SubTransGetTopmostTransaction(xid);

	holders->xids[holders->n] = TransactionIdGetDatum(xid);
	holders->modes[holders->n] = CStringGetTextDatum(mode);
	/* that of a prepared transaction is 0 */
	holders->pids[holders->n] = Int32GetDatum(BackendXidGetPid(top));
	holders->n++;
}

static void
alloc_holders(RowHolders *holders, int max)
{
	holders->xids = palloc(max * sizeof(Datum));
	holders->modes = palloc(max * sizeof(Datum));
	holders->pids = palloc(max * sizeof(Datum));
	holders->n = 0;
}

static const char *
member_mode(MultiXactStatus status)
{
	switch (status)
	{
		case MultiXactStatusForKeyShare:
			return inplace_lock_mode_name(LockTupleKeyShare);
		case MultiXactStatusForShare:
			return inplace_lock_mode_name(LockTupleShare);
		case MultiXactStatusForNoKeyUpdate:
			return inplace_lock_mode_name(LockTupleNoKeyExclusive);
		case MultiXactStatusForUpdate:
			return inplace_lock_mode_name(LockTupleExclusive);
		case MultiXactStatusNoKeyUpdate:
			return "no key update";
		case MultiXactStatusUpdate:
			return "update";
	}
	return "unknown";
}

static void
refuse_damaged_row(Relation rel, BlockNumber block, OffsetNumber off,
				   const char *problem)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("row (%u,%u) of relation \"%s\" is damaged: %s",
					block, off, RelationGetRelationName(rel), problem)));
}

/*
 * The lockers of the version that the walk is at which are still running; returns how
 * many of them are on the page.  (Of ids that are too old the table's limits may have
 * come to know only after the page was copied; these are not running.)
 */
static int
find_lockers(const InsightWalk *walk, RowHolders *holders)
{
	const char *problem = NULL;
	MemoryLocks memory;
	int			on_page;

	if (walk->locked && walk->lock_known &&
		(walk->lock_multi ?
		 !MultiXactIdPrecedes(walk->locker, walk->limits->next_multi) :
		 !TransactionIdPrecedes(walk->locker, walk->limits->next_xid)))
		problem = InsightCheckLocker(walk);
	if (problem != NULL)
		refuse_damaged_row(walk->rel, walk->block, walk->off, problem);

	if (!walk->locked || !walk->lock_known)
		alloc_holders(holders, 3);
	else if (walk->lock_multi)
	{
		MultiXactMember *members;
		int			n = InsightLockMembers(walk, &members);

		alloc_holders(holders, n + 3);
		for (int i = 0; i < n; i++)
			if (TransactionIdIsInProgress(members[i].xid))
				add_holder(holders, members[i].xid,
						   member_mode(members[i].status));
	}
	else
	{
		alloc_holders(holders, 4);
		if (TransactionIdIsInProgress(walk->locker))
			add_holder(holders, walk->locker,
					   inplace_lock_mode_name(walk->lock_mode));
	}

	on_page = holders->n;
	inplace_get_memory_locks(walk->rel, walk->block, walk->off, &memory);
	if (memory.own)
		add_holder(holders, memory.own_xid, inplace_lock_mode_name(memory.own_mode));
	if (TransactionIdIsValid(memory.xid))
		add_holder(holders, memory.xid, inplace_lock_mode_name(memory.mode));
	return on_page;
}

/* is the row locked in memory alone? */
static bool
locked_in_memory(Relation rel, BlockNumber block, OffsetNumber off)
{
	MemoryLocks memory;

	inplace_get_memory_locks(rel, block, off, &memory);
	return memory.own || TransactionIdIsValid(memory.xid);
}

/*
 * Is a change by another transaction, which is what the walk is at, one of a row
 * that was there before?  (A row that is just being inserted is nobody's to
 * lock.)  Also false if the change has ended since.
 */
static bool
changes_old_row(InsightWalk *walk)
{
	while (walk->status == INSIGHT_XID_IN_PROGRESS)
		if (!InsightWalkBack(walk))
			return false;
	return true;
}

static void
show_row(ReturnSetInfo *rsinfo, InsightWalk *walk)
{
	ItemPointerData tid;
	RowHolders	holders;
	TransactionId locker = walk->locker;
	bool		multi = walk->locked && walk->lock_multi;
	Datum		values[NUM_COLS];
	bool		nulls[NUM_COLS] = {false};

	/* gone, or moved: its locks have gone along */
	if ((walk->tuple->t_infomask & IP_DELETED) &&
		(walk->status == INSIGHT_XID_COMMITTED ||
		 walk->status == INSIGHT_XID_CURRENT))
		return;

	ItemPointerSet(&tid, walk->block, walk->off);
	if (find_lockers(walk, &holders) == 0)
		multi = false;
	if (holders.n > 0 && !multi)
		locker = DatumGetTransactionId(holders.xids[0]);

	if (walk->status == INSIGHT_XID_IN_PROGRESS)
	{
		TransactionId xid = walk->tuple->t_xid;
		bool		keys = inplace_change_mode(walk->tuple) == LockTupleExclusive;

		if (!changes_old_row(walk))
			return;
		if (holders.n == 0)
			locker = xid;
		add_holder(&holders, xid, keys ? "update" : "no key update");
	}
	if (holders.n == 0)
		return;

	values[COL_LOCKED_ROW] = PointerGetDatum(&tid);
	values[COL_LOCKER] = TransactionIdGetDatum(locker);
	values[COL_MULTI] = BoolGetDatum(multi);
	values[COL_XIDS] =
		PointerGetDatum(construct_array(holders.xids, holders.n, XIDOID,
										sizeof(TransactionId), true,
										TYPALIGN_INT));
	values[COL_MODES] =
		PointerGetDatum(construct_array(holders.modes, holders.n, TEXTOID,
										-1, false, TYPALIGN_INT));
	values[COL_PIDS] =
		PointerGetDatum(construct_array(holders.pids, holders.n, INT4OID,
										sizeof(int32), true, TYPALIGN_INT));
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

static void
show_page(ReturnSetInfo *rsinfo, Relation rel, InsightLimits *limits,
		  InsightWalk *walk, BlockNumber block, Page page)
{
	OffsetNumber maxoff = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);

	/* after the page, so that nobody on it is in the future */
	InsightLimitsRefresh(limits, rel);
	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		InplaceTupleHeader tup;
		const char *problem;

		if (!ItemIdIsNormal(lp))
			continue;

		/* the row need not be aligned on the page */
		tup = palloc(ItemIdGetLength(lp));
		memcpy(tup, PageGetItem(page, lp), ItemIdGetLength(lp));
		if (!HdrIsLocked(tup) &&
			((tup->t_infomask & (IP_FROZEN | IP_HINT_BITS)) ||
			 !TransactionIdIsInProgress(tup->t_xid)) &&
			!locked_in_memory(rel, block, off))
			continue;
		problem = InsightWalkBegin(walk, rel, limits, block, off, tup,
								   ItemIdGetLength(lp));
		if (problem != NULL)
			refuse_damaged_row(rel, block, off, problem);
		show_row(rsinfo, walk);
	}
}

Datum
inplace_row_locks(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			relid = PG_GETARG_OID(0);
	Relation	rel;
	InsightLimits limits;
	InsightWalk *walk;
	BlockNumber nblocks;
	BufferAccessStrategy strategy;
	MemoryContext cxt;
	MemoryContext oldcxt;
	AclResult	aclresult;

	InplaceRequirePreload();
	InitMaterializedSRF(fcinfo, 0);

	rel = InsightOpenTable(relid, false);
	aclresult = pg_class_aclcheck(relid, GetUserId(), ACL_SELECT);
	if (aclresult != ACLCHECK_OK &&
		!has_privs_of_role(GetUserId(), ROLE_PG_STAT_SCAN_TABLES))
		aclcheck_error(aclresult, OBJECT_TABLE, RelationGetRelationName(rel));

	InsightLimitsInit(&limits, rel);
	walk = palloc(sizeof(InsightWalk));
	strategy = GetAccessStrategy(BAS_BULKREAD);
	cxt = AllocSetContextCreate(CurrentMemoryContext, "inplace row locks",
								ALLOCSET_DEFAULT_SIZES);
	oldcxt = MemoryContextSwitchTo(cxt);

	nblocks = RelationGetNumberOfBlocks(rel);
	for (BlockNumber block = 0; block < nblocks; block++)
	{
		Buffer		buffer;
		PGAlignedBlock copy;

		CHECK_FOR_INTERRUPTS();
		buffer = ReadBufferExtended(rel, MAIN_FORKNUM, block, RBM_NORMAL,
									strategy);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		memcpy(copy.data, BufferGetPage(buffer), BLCKSZ);
		UnlockReleaseBuffer(buffer);
		inplace_check_page(rel, (Page) copy.data, block);
		show_page(rsinfo, rel, &limits, walk, block, (Page) copy.data);
		MemoryContextReset(cxt);
	}

	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(cxt);
	FreeAccessStrategy(strategy);
	relation_close(rel, AccessShareLock);

	return (Datum) 0;
}

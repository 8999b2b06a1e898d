/*-------------------------------------------------------------------------
 *
 * check.c
 *	  inplace.check(): is a table what it should be?
 *
 * The order of things
 *	  1. A fresh snapshot is registered.  From then on nothing that it may see
 *		 goes away: neither the undo of a version that it does not see, nor an
 *		 index entry of one that it does see.
 *	  2. Each index is scanned from end to end.  What its entries say (row and
 *		 key) goes into a Bloom filter, and which rows have an entry into a
 *		 bitmap.
 *		 B-trees are looked at as such (check_btree.c).  GIN, hash and GiST
 *		 indexes that take updates are walked through (check_other.c).
 *	  3. The table is read page by page.  Each page is copied under its share
 *		 lock, together with its visibility map bits; everything is worked out
 *		 on the copy.  Of each row that the snapshot sees the keys are looked
 *		 up in the filters.
 *	  4. Entries found to lead nowhere are looked for once more in the indexes
 *		 and on their pages, now that VACUUM may have been there.
 *
 * Only what is certain is reported
 *	  A page copy is consistent in itself, but what it leads to may have moved
 *	  on.  So undo that is missing is a finding only if the snapshot needs it,
 *	  and if the row on the page is the same still; an index entry that leads
 *	  nowhere only if it is there at the second look, and its row is not; a
 *	  row that no entry leads to always, for the snapshot protects the entry.
 *	  INCLUDE columns of an entry (its payload) count while the row is not
 *	  IP_STALE (index/index.h): they are a finding if they are others than the
 *	  row's when the index is asked, and the row is the same, without that
 *	  mark, before and after.  Our snapshot keeps VACUUM from taking a mark away
 *	  that was put in between.
 *	  A Bloom filter may say that an entry is there which is not (with filters
 *	  that fit maintenance_work_mem: one in fifty at worst, and of small tables
 *	  hardly ever), never the reverse.
 *
 * Corrupt data must not crash or stop us
 *	  Rows are validated before they are deformed (row_bytes.c), and each
 *	  page, and each index scan, is looked at in a subtransaction: an error of
 *	  the kinds that damage causes becomes a line of the result.
 *
 * Nothing is held from one page to the next but relation locks; memory is
 * given back after each page.  Expressions and predicates of indexes run as
 * the table's owner, with the restrictions that index builds have.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/visibilitymap.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "funcapi.h"
#include "insight/check.h"
#include "insight/limits.h"
#include "insight/open_table.h"
#include "insight/row_bytes.h"
#include "insight/walk.h"
#include "page/page.h"
#include "page/slot.h"
#include "page/tuple.h"
#include "undo/hold.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"


PG_FUNCTION_INFO_V1(inplace_check);
Datum		inplace_check(PG_FUNCTION_ARGS);

enum
{
	COL_BLOCK,
	COL_ITEM,
	COL_INDEX,
	COL_SEVERITY,
	COL_PROBLEM,
	NUM_COLS
};

/* ---------------- findings ---------------- */

void
CheckReport(CheckState *state, int64 block, int item, Relation index,
			const char *severity, const char *problem)
{
	Datum		values[NUM_COLS];
	bool		nulls[NUM_COLS];

	memset(nulls, false, sizeof(nulls));
	values[COL_BLOCK] = Int64GetDatum(block);
	nulls[COL_BLOCK] = block < 0;
	values[COL_ITEM] = Int32GetDatum(item);
	nulls[COL_ITEM] = item == InvalidOffsetNumber;
	nulls[COL_INDEX] = index == NULL;
	values[COL_INDEX] = index == NULL ? (Datum) 0 :
		ObjectIdGetDatum(RelationGetRelid(index));
	values[COL_SEVERITY] = CStringGetTextDatum(severity);
	values[COL_PROBLEM] = CStringGetTextDatum(problem);
	tuplestore_putvalues(state->rsinfo->setResult, state->rsinfo->setDesc,
						 values, nulls);
}

/*
 * Call fn in a subtransaction.  Errors that damage can cause (internal,
 * corruption, I/O) are reported, and false returned; others go on.
 */
bool
CheckGuarded(CheckState *state, GuardedFunction fn, void *arg, int64 block,
			 Relation index)
{
	MemoryContext oldcxt = CurrentMemoryContext;
	ResourceOwner oldowner = CurrentResourceOwner;
	volatile bool ok = true;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(oldcxt);
	PG_TRY();
	{
		fn(state, arg);

		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(oldcxt);
		CurrentResourceOwner = oldowner;
	}
	PG_CATCH();
	{
		ErrorData  *edata;
		int			category;

		MemoryContextSwitchTo(oldcxt);
		edata = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(oldcxt);
		CurrentResourceOwner = oldowner;

		category = ERRCODE_TO_CATEGORY(edata->sqlerrcode);
		if (category != ERRCODE_TO_CATEGORY(ERRCODE_INTERNAL_ERROR) &&
			category != ERRCODE_TO_CATEGORY(ERRCODE_SYSTEM_ERROR))
			ReThrowError(edata);
		CheckReport(state, block, InvalidOffsetNumber, index, "error",
					edata->message ? edata->message : "unknown error");
		ok = false;
	}
	PG_END_TRY();
	return ok;
}

/* ---------------- looking at a page a second time ---------------- */

/*
 * Is the row still what the copy showed, but for some bits of its header?
 */
bool
CheckRowUnchanged(CheckState *state, BlockNumber block, OffsetNumber off,
				  const InplaceTupleHeaderData *seen, uint16 but_for)
{
	Buffer		buffer = ReadBuffer(state->rel, block);
	Page		page;
	bool		same = false;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	if (!PageIsNew(page) && off <= PageGetMaxOffsetNumber(page))
	{
		ItemId		lp = PageGetItemId(page, off);

		if (ItemIdIsNormal(lp) &&
			ItemIdGetLength(lp) >= SizeOfInplaceTupleHeader &&
			ItemIdGetOffset(lp) + ItemIdGetLength(lp) <= BLCKSZ)
		{
			InplaceTupleHeaderData now;

			memcpy(&now, PageGetItem(page, lp), SizeOfInplaceTupleHeader);
			same = HdrSameVersion(&now, seen) &&
				((now.t_infomask ^ seen->t_infomask) & ~but_for) == 0 &&
				HdrSameUndo(&now, seen);
		}
	}
	UnlockReleaseBuffer(buffer);
	return same;
}

/*
 * Does the line pointer lead nowhere?
 */
bool
CheckItemUnused(CheckState *state, BlockNumber block, OffsetNumber off)
{
	Buffer		buffer = ReadBufferExtended(state->rel, MAIN_FORKNUM, block,
											RBM_NORMAL, state->strategy);
	Page		page;
	bool		unused;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	unused = PageIsNew(page) || off > PageGetMaxOffsetNumber(page) ||
		!ItemIdIsUsed(PageGetItemId(page, off));
	UnlockReleaseBuffer(buffer);
	return unused;
}

/* ---------------- pages ---------------- */

static bool
check_page_header(CheckState *state, BlockNumber block, Page page)
{
	PageHeader	ph = (PageHeader) page;

	if (PageGetPageSize(page) != BLCKSZ ||
		PageGetPageLayoutVersion(page) != PG_PAGE_LAYOUT_VERSION)
	{
		CheckReport(state, block, InvalidOffsetNumber, NULL, "error",
					psprintf("page says it has %zu bytes and version %d",
							 PageGetPageSize(page),
							 (int) PageGetPageLayoutVersion(page)));
		return false;
	}
	if (ph->pd_lower < SizeOfPageHeaderData || ph->pd_lower > ph->pd_upper ||
		ph->pd_upper > ph->pd_special || ph->pd_special != BLCKSZ)
	{
		CheckReport(state, block, InvalidOffsetNumber, NULL, "error",
					psprintf("page header is wrong: pd_lower %u, pd_upper %u, pd_special %u",
							 ph->pd_lower, ph->pd_upper, ph->pd_special));
		return false;
	}
	if (!RowPageIsMarked(page) && !inplace_page_is_blank(page))
	{
		CheckReport(state, block, InvalidOffsetNumber, NULL, "error",
					psprintf("page is not one of an inplace table: pd_lower %u",
							 ph->pd_lower));
		return false;
	}
	if (PageGetMaxOffsetNumber(page) > InplaceMaxTuplesPerPage)
	{
		CheckReport(state, block, InvalidOffsetNumber, NULL, "error",
					psprintf("page has %d line pointers",
							 (int) PageGetMaxOffsetNumber(page)));
		return false;
	}
	return true;
}

/*
 * A line pointer by itself.  True if it has an item that can be looked at.
 */
static bool
check_line_pointer(CheckState *state, BlockNumber block, OffsetNumber off,
				   Page page)
{
	ItemId		lp = PageGetItemId(page, off);
	uint32		start = ItemIdGetOffset(lp);
	uint32		len = ItemIdGetLength(lp);
	bool	   *occupied = state->occupied;

	if (ItemIdIsRedirected(lp))
	{
		CheckReport(state, block, off, NULL, "error",
					"line pointer is a redirection, which inplace tables do not have");
		return false;
	}
	if (!ItemIdIsNormal(lp))
	{
		if (len != 0)
			CheckReport(state, block, off, NULL, "error",
						psprintf("line pointer without a row has %u bytes", len));
		return false;
	}
	if (start < ((PageHeader) page)->pd_upper || start + len > BLCKSZ)
	{
		CheckReport(state, block, off, NULL, "error",
					psprintf("line pointer leads to bytes %u to %u, outside %u to %u",
							 start, start + len, ((PageHeader) page)->pd_upper,
							 BLCKSZ));
		return false;
	}
	if (len < SizeOfInplaceTupleHeader)
	{
		CheckReport(state, block, off, NULL, "error",
					psprintf("item of %u bytes is shorter than a row header", len));
		return false;
	}
	if (memchr(occupied + start, true, len) != NULL)
	{
		CheckReport(state, block, off, NULL, "error",
					psprintf("bytes %u to %u overlap another item", start,
							 start + len));
		return false;
	}
	memset(occupied + start, true, len);
	return true;
}

static void
check_item(CheckState *state, BlockNumber block, OffsetNumber off, Page page,
		   uint8 vmbits)
{
	ItemId		lp = PageGetItemId(page, off);
	Size		itemlen = ItemIdGetLength(lp);
	InplaceTupleHeader tup = (InplaceTupleHeader) state->row.data;
	InplaceTupleHeaderData page_hdr;
	InplaceTupleHeader version;
	Size		version_len;
	const char *problem;
	bool		seen;

	/* a private, aligned copy, whatever the flag says */
	memcpy(tup, PageGetItem(page, lp), itemlen);
	page_hdr = *tup;

	if ((tup->t_natts & IP_ALIGNED) &&
		ItemIdGetOffset(lp) != MAXALIGN(ItemIdGetOffset(lp)))
		CheckReport(state, block, off, NULL, "error",
					psprintf("aligned row stands at byte %u", ItemIdGetOffset(lp)));

	problem = CheckXid(state, tup);
	if (problem == NULL)
		problem = InsightWalkBegin(&state->walk, state->rel, &state->limits,
								   block, off, tup, itemlen);
	if (problem != NULL)
	{
		CheckReport(state, block, off, NULL, "error", problem);
		return;
	}

	if (PageIsAllVisible(page))
	{
		if (page_hdr.t_infomask & IP_DELETED)
			CheckReport(state, block, off, NULL, "error",
						"page is all-visible but the row is deleted");
		else if (state->walk.status != INSIGHT_XID_COMMITTED ||
				 !InsightVisible(&state->walk, state->snapshot))
			CheckReport(state, block, off, NULL, "error",
						psprintf("page is all-visible but the row's transaction %u is not visible",
								 page_hdr.t_xid));
		if (page_hdr.t_infomask & IP_STALE)
			CheckReport(state, block, off, NULL, "error",
						"page is all-visible but the row may have stale index entries");
	}
	if (vmbits & VISIBILITYMAP_ALL_FROZEN)
	{
		/* VACUUM passes over the page and does not see what is on it */
		if (!(page_hdr.t_infomask & IP_FROZEN))
			CheckReport(state, block, off, NULL, "error",
						"page is all-frozen but the row is not frozen");
		if (HdrIsLocked(&page_hdr))
			CheckReport(state, block, off, NULL, "error",
						"page is all-frozen but the row has a locker");
	}

	if (!CheckChain(state, block, off, &page_hdr, &version, &version_len,
					&seen) || !seen)
		return;

	/* the version that the snapshot sees */
	{
		Datum	   *values = palloc(sizeof(Datum) * Max(state->desc->natts, 1));
		bool	   *isnull = palloc(sizeof(bool) * Max(state->desc->natts, 1));
		bool		ok = true;

		if (version->t_natts & IP_HASEXTERNAL)
		{
			InsightDeform(state->desc, version, values, isnull);
			CheckToast(state, block, off, values, isnull, &ok);
		}
		if (ok && state->nindexes > 0)
			CheckRowInIndexes(state, block, off, version, version_len,
							  &page_hdr);
	}
}

static void
check_block(CheckState *state, void *arg)
{
	BlockNumber block = *(BlockNumber *) arg;
	Page		page = (Page) state->copy.data;
	Buffer		buffer;
	Buffer		vmbuffer = InvalidBuffer;
	uint8		vmbits;
	OffsetNumber maxoff;
	OffsetNumber off;

	/* have the map page pinned before the lock is taken */
	(void) visibilitymap_get_status(state->rel, block, &vmbuffer);

	buffer = ReadBufferExtended(state->rel, MAIN_FORKNUM, block, RBM_NORMAL,
								state->strategy);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(page, BufferGetPage(buffer), BLCKSZ);
	vmbits = visibilitymap_get_status(state->rel, block, &vmbuffer);
	UnlockReleaseBuffer(buffer);
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);

	/* whatever is on the page has an id older than these */
	state->limits.next_xid = ReadNextTransactionId();
	state->limits.next_multi = ReadNextMultiXactId();

	if (PageIsNew(page))
	{
		if (vmbits != 0)
			CheckReport(state, block, InvalidOffsetNumber, NULL, "error",
						"page is new but has visibility map bits");
		maxoff = 0;
	}
	else
	{
		if (!check_page_header(state, block, page))
			return;
		maxoff = PageGetMaxOffsetNumber(page);

		if ((vmbits & VISIBILITYMAP_ALL_FROZEN) &&
			!(vmbits & VISIBILITYMAP_ALL_VISIBLE))
			CheckReport(state, block, InvalidOffsetNumber, NULL, "error",
						"visibility map has the page all-frozen but not all-visible");
		if ((vmbits & VISIBILITYMAP_ALL_VISIBLE) && !PageIsAllVisible(page))
			CheckReport(state, block, InvalidOffsetNumber, NULL, "error",
						"visibility map has the page all-visible, the page says it is not");
	}

	memset(state->occupied, false, sizeof(state->occupied));
	for (off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);

		CHECK_FOR_INTERRUPTS();

		if (ItemIdIsDead(lp) && PageIsAllVisible(page))
			CheckReport(state, block, off, NULL, "error",
						"page is all-visible but has a dead line pointer");
		if (!ItemIdIsUsed(lp) && CheckEntryKnown(state, block, off))
			CheckAddSuspect(state, block, off);
		if (check_line_pointer(state, block, off, page))
			check_item(state, block, off, page, vmbits);
	}

	/* entries for line pointers past the last one */
	if (block < state->entries_blocks)
		for (; off <= InplaceMaxTuplesPerPage; off++)
			if (CheckEntryKnown(state, block, off))
				CheckAddSuspect(state, block, off);
}

/* ---------------- the function ---------------- */

/*
 * All of it, with a snapshot that is not the transaction's.
 */
static void
CheckTable(CheckState *state, bool check_indexes)
{
	BlockNumber block;

	state->snapshot = RegisterSnapshot(GetLatestSnapshot());
	PushActiveSnapshot(state->snapshot);
	InsightLimitsInit(&state->limits, state->rel);

	if (check_indexes)
	{
		state->estate = CreateExecutorState();
		state->econtext = GetPerTupleExprContext(state->estate);
		state->slot = MakeSingleTupleTableSlot(state->desc, &TTSOpsInplace);
		state->entries_blocks = RelationGetNumberOfBlocks(state->rel);
		state->entries =
			MemoryContextAllocExtended(CurrentMemoryContext,
									   Max((Size) state->entries_blocks * ENTRY_BYTES, 1),
									   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
		CheckOpenIndexes(state);
		CheckIndexes(state);
		state->suspects =
			MemoryContextAllocExtended(CurrentMemoryContext,
									   Max((Size) state->entries_blocks * ENTRY_BYTES, 1),
									   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	}

	/* after the index scans: what they saw of the table is in here */
	state->nblocks = RelationGetNumberOfBlocks(state->rel);
	for (block = 0; block < state->nblocks; block++)
	{
		MemoryContext oldcxt = MemoryContextSwitchTo(state->page_cxt);

		CHECK_FOR_INTERRUPTS();
		CheckGuarded(state, check_block, &block, block, NULL);
		MemoryContextSwitchTo(oldcxt);
		MemoryContextReset(state->page_cxt);
	}

	CheckSuspects(state);
	CheckCloseIndexes(state);
	if (state->slot != NULL)
		ExecDropSingleTupleTableSlot(state->slot);
	if (state->estate != NULL)
		FreeExecutorState(state->estate);

	PopActiveSnapshot();
	UnregisterSnapshot(state->snapshot);
}

Datum
inplace_check(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	bool		check_indexes = PG_GETARG_BOOL(1);
	CheckState *state;
	Oid			save_userid;
	int			save_sec_context;
	int			save_nestlevel;

	InplaceRequirePreload();
	InitMaterializedSRF(fcinfo, 0);

	state = palloc0(sizeof(CheckState));
	state->rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	state->rel = InsightOpenTable(relid, false);
	state->desc = RelationGetDescr(state->rel);
	state->strategy = GetAccessStrategy(BAS_BULKREAD);
	state->page_cxt = AllocSetContextCreate(CurrentMemoryContext,
											"inplace check page",
											ALLOCSET_DEFAULT_SIZES);
	if (OidIsValid(state->rel->rd_rel->reltoastrelid))
		state->toastrel = table_open(state->rel->rd_rel->reltoastrelid,
									 AccessShareLock);

	/* what index expressions call runs as the owner, as in an index build */
	GetUserIdAndSecContext(&save_userid, &save_sec_context);
	SetUserIdAndSecContext(state->rel->rd_rel->relowner,
						   save_sec_context | SECURITY_RESTRICTED_OPERATION);
	save_nestlevel = NewGUCNestLevel();
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);

	/* an error may end a subtransaction only */
	UndoHoldSuspend();
	PG_TRY();
	{
		CheckTable(state, check_indexes);
	}
	PG_FINALLY();
	{
		UndoHoldResume();
	}
	PG_END_TRY();
	AtEOXact_GUC(false, save_nestlevel);
	SetUserIdAndSecContext(save_userid, save_sec_context);

	FreeAccessStrategy(state->strategy);
	if (state->toastrel != NULL)
		table_close(state->toastrel, AccessShareLock);
	MemoryContextDelete(state->page_cxt);
	relation_close(state->rel, AccessShareLock);

	return (Datum) 0;
}

/*-------------------------------------------------------------------------
 *
 * insert.c
 *	  New rows.
 *
 * A new row needs no undo: its header says FRESH and carries the command id.
 * Pages are found by the server's RelationGetBufferForTuple, so free space
 * map, fillfactor, bulk extension and all work as for heap.
 *
 * Lock order: data page -> visibility map page (pinned before).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/heaptoast.h"
#include "access/hio.h"
#include "access/parallel.h"
#include "access/visibilitymap.h"
#include "freeze/freeze_model.h"
#include "freeze/freeze_stats.h"
#include "modify/modify.h"
#include "modify/room.h"
#include "modify/toast.h"
#include "page/page.h"
#include "page/protect.h"
#include "page/slot.h"
#include "page/tuple.h"
#include "pgstat.h"
#include "scan/fetch.h"
#include "scan/rewrite_progress.h"
#include "storage/predicate.h"
#include "wal/log.h"
#include "wal/log_vacuum.h"
#include "wal/logical.h"

/*
 * Form the row of a slot, toasting what is too large.  The result is
 * palloc'd, unless the slot's own form can be used.
 */
static InplaceTupleHeader
form_new_row(Relation rel, TupleTableSlot *slot, Size *len, int options)
{
	TupleDesc	desc = RelationGetDescr(rel);
	uint16		flags;
	InplaceTupleHeader tup;

	if ((tup = inplace_slot_ready_row(rel, slot, len)) != NULL)
		return tup;

	slot_getallattrs(slot);
	*len = inplace_compute_size(desc, slot->tts_values, slot->tts_isnull, &flags);

	if ((flags & IP_HASEXTERNAL) || *len > TOAST_TUPLE_THRESHOLD)
	{
		tup = inplace_toast_insert(rel, slot, len, options, NULL);
		/* (before logical decoding's preparations take it for damaged) */
		if (*len > InplaceMaxTupleSize)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("row is too big: size %zu, maximum size %zu",
							*len, (Size) InplaceMaxTupleSize)));
		return tup;
	}

	tup = (InplaceTupleHeader) palloc(*len);
	inplace_fill_tuple(desc, slot->tts_values, slot->tts_isnull, flags, tup, *len);
	return tup;
}

static void
set_fresh_header(InplaceTupleHeader tup, TransactionId xid, CommandId cid,
				 int options)
{
	tup->t_xid = xid;
	tup->t_tag = FirstVersionTag;
	tup->t_infomask = IP_FRESH;
	HdrSetFreshCid(tup, cid);
	if (options & TABLE_INSERT_FROZEN)
		tup->t_infomask |= IP_FROZEN | IP_COMMITTED;
}

static void
set_slot_after_insert(Relation rel, TupleTableSlot *slot, BlockNumber blk,
					  OffsetNumber off, TransactionId xid, CommandId cid)
{
	ItemPointerSet(&slot->tts_tid, blk, off);
	slot->tts_tableOid = RelationGetRelid(rel);
	if (TTS_IS_INPLACE(slot))
	{
		InplaceTupleTableSlot *is = (InplaceTupleTableSlot *) slot;

		is->has_sysattrs = true;
		is->xmin = xid;
		is->xmax = InvalidTransactionId;
		is->cmin = cid;
		is->cmax = cid;
		is->replaced = false;
		is->tag = FirstVersionTag;
	}
}

/*
 * Put one formed row on a page.  The header's version part is complete.
 */
static void
put_row(Relation rel, InplaceTupleHeader tup, Size len, int options,
		BulkInsertState bistate, BlockNumber *blk, OffsetNumber *off)
{
	Buffer		vmbuffer = InvalidBuffer;
	Buffer		buffer;
	Page		page;
	bool		clear;
	bool		init_page;
	FreezeUnset unset;
	LogicalChange lc;
	bool		logical;

	logical = !(options & TABLE_INSERT_NO_LOGICAL) &&
		inplace_logical_prepare(&lc, rel, tup, NULL, NULL, NULL, false);
	if (logical && HdrIsSpeculative(tup))
		inplace_logical_set_speculative(&lc);

	options = MakeRoom(rel, PageSpaceFor(tup, len), options, bistate);
	buffer = GetBufferForTuple(rel, PageSpaceFor(tup, len), InvalidBuffer, options, bistate,
							   &vmbuffer, NULL);
	page = RowPage(rel, buffer);
	*blk = BufferGetBlockNumber(buffer);
	inplace_check_page_header(rel, page, *blk);

	/* as heap: in serializable transactions this row may be a phantom */
	CheckForSerializableConflictIn(rel, NULL, InvalidBlockNumber);

	inplace_rows_put++;
	START_CRIT_SECTION();
	clear = FreezeClearVisible(rel, buffer, vmbuffer,
							   VISIBILITYMAP_VALID_BITS, &unset);
	*off = inplace_page_add(page, tup, len, InvalidOffsetNumber);
	if (*off == InvalidOffsetNumber)
		elog(PANIC, "failed to add row to page");
	init_page = (*off == FirstOffsetNumber &&
				 PageGetMaxOffsetNumber(page) == FirstOffsetNumber);
	MarkBufferDirty(buffer);
	inplace_log_insert(rel, buffer, *off, init_page, clear, logical ? &lc : NULL);
	END_CRIT_SECTION();

	UnlockReleaseBuffer(buffer);
	FreezeNoteUnset(rel, &unset, true);
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);
	if (logical)
		pfree(lc.tuples);
}

void
inplace_tuple_insert(Relation rel, TupleTableSlot *slot, CommandId cid,
					 int options, BulkInsertState bistate)
{
	TransactionId xid;
	InplaceTupleHeader tup;
	InplaceTupleHeader formed = NULL;
	Size		len;
	BlockNumber blk;
	OffsetNumber off;

	InplaceRequirePreload();
	if (IsParallelWorker())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot insert tuples in a parallel worker")));

	xid = GetCurrentTransactionId();
	tup = inplace_slot_own_row(rel, slot, &len);
	if (tup == NULL)
		tup = formed = form_new_row(rel, slot, &len, options);
	set_fresh_header(tup, xid, cid, options);
	put_row(rel, tup, len, options, bistate, &blk, &off);
	if (formed)
		pfree(formed);

	if (unlikely(OidIsValid(inplace_rewriting)))
		RewriteProgressRowWritten(rel);
	pgstat_count_heap_insert(rel, 1);
	set_slot_after_insert(rel, slot, blk, off, xid, cid);
}

void
inplace_tuple_insert_speculative(Relation rel, TupleTableSlot *slot,
								 CommandId cid, int options,
								 BulkInsertState bistate, uint32 specToken)
{
	TransactionId xid;
	InplaceTupleHeader tup;
	Size		len;
	BlockNumber blk;
	OffsetNumber off;

	InplaceRequirePreload();
	xid = GetCurrentTransactionId();
	tup = form_new_row(rel, slot, &len, options);
	set_fresh_header(tup, xid, cid, options);
	HdrSetSpeculative(tup, specToken);
	put_row(rel, tup, len, options, bistate, &blk, &off);
	pfree(tup);

	pgstat_count_heap_insert(rel, 1);
	set_slot_after_insert(rel, slot, blk, off, xid, cid);
}

/*
 * A speculative insertion is over.  If it succeeded the row becomes an ordinary
 * one, with the command id in place of the token; neither is in the WAL, for
 * nobody needs them after a crash (only decoders are told that it is over).
 * So a row may come out of a crash as speculative, and committed: that counts.
 * Otherwise it is dead at once.
 */
void
inplace_tuple_complete_speculative(Relation rel, TupleTableSlot *slot,
								   uint32 specToken, bool succeeded)
{
	BlockNumber blk = ItemPointerGetBlockNumber(&slot->tts_tid);
	OffsetNumber off = TidOffset(&slot->tts_tid);
	Buffer		buffer = ReadBuffer(rel, blk);
	Page		page;
	PageItems	items;
	InplaceTupleHeader tup;
	InplaceTupleHeader gone = NULL;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	page = RowPage(rel, buffer);
	if (off > PageGetMaxOffsetNumber(page) ||
		!ItemIdIsNormal(PageGetItemId(page, off)))
		elog(ERROR, "invalid line pointer for speculative row (%u,%u)", blk, off);
	tup = PageGetTupleAt(page, off);
	if (!HdrIsSpeculative(tup) || HdrSpecToken(tup) != specToken)
		elog(ERROR, "row (%u,%u) is not the speculative one", blk, off);

	/* compacting finds a corrupted page, but that is too late then */
	if (!succeeded)
		inplace_check_items(rel, page, blk, &items);

	if (!succeeded && (tup->t_natts & IP_HASEXTERNAL))
	{
		gone = palloc(ItemIdGetLength(PageGetItemId(page, off)));
		memcpy(gone, tup, ItemIdGetLength(PageGetItemId(page, off)));
	}

	START_CRIT_SECTION();
	if (succeeded)
	{
		CommandId	cid = GetCurrentCommandId(true);

		if (TTS_IS_INPLACE(slot) && ((InplaceTupleTableSlot *) slot)->has_sysattrs)
			cid = ((InplaceTupleTableSlot *) slot)->cmin;
		HdrEndSpeculation(tup, cid);

		/*
		 * No record of it: a checkpoint since the insert wants an image.  But
		 * a hint on a page that is not logged (yet) may be lost with its
		 * buffer, and the row must not be speculative again while we run.
		 */
		if (RelationNeedsWAL(rel))
			inplace_mark_hint(buffer);
		else
			MarkBufferDirty(buffer);
	}
	else
	{
		inplace_page_apply_prune(page, &off, 1, NULL, 0, NULL, 0, &items);
		MarkBufferDirty(buffer);
		if (RelationNeedsWAL(rel))
			inplace_log_prune(rel, buffer, InvalidTransactionId, &off, 1,
							  NULL, 0, NULL, 0);
	}
	inplace_log_speculative_end(rel, succeeded);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);

	if (!succeeded)
	{
		if (gone)
		{
			inplace_toast_delete(rel, gone, &slot->tts_tid, true);
			pfree(gone);
		}
		pgstat_count_heap_delete(rel);
	}
}

/*
 * A transaction that sees the table at all sees such rows: the page holds nothing else.
 */
static void
set_visible_frozen(Relation rel, Buffer buffer, Buffer vmbuffer)
{
	FreezePage	page = {.age = -1,.has_room = false};
	uint8		flags = VISIBILITYMAP_ALL_VISIBLE | VISIBILITYMAP_ALL_FROZEN;

	inplace_visibilitymap_set(rel, BufferGetBlockNumber(buffer), buffer, vmbuffer,
							  InvalidTransactionId, flags);
	FreezeNoteVisible(rel, flags, &page);
}

/*
 * Rows that are inserted together.
 */
typedef struct MultiInsert
{
	Relation	rel;
	TransactionId xid;
	CommandId	cid;
	int			options;
	BulkInsertState bistate;
	Buffer		vmbuffer;
	Size		save_free;		/* what stays free on a page */
	int			n;
	int			done;			/* of them, so far */
	InplaceTupleHeader *tups;
	Size	   *lens;
	OffsetNumber *offs;			/* on the page at hand */
	char	   *scratch;
	bool		logical;		/* for logical decoding: */
	StringInfoData rows;		/* ... the rows, */
	Size	   *starts;			/* ... and where each begins there */
} MultiInsert;

static void
form_new_rows(MultiInsert *mi, TupleTableSlot **slots)
{
	mi->tups = palloc(mi->n * sizeof(InplaceTupleHeader));
	mi->lens = palloc(mi->n * sizeof(Size));
	mi->offs = palloc(mi->n * sizeof(OffsetNumber));
	mi->scratch = palloc(MULTI_INSERT_SCRATCH);
	for (int i = 0; i < mi->n; i++)
	{
		mi->tups[i] = form_new_row(mi->rel, slots[i], &mi->lens[i], mi->options);
		set_fresh_header(mi->tups[i], mi->xid, mi->cid, mi->options);
	}

	mi->logical = !(mi->options & TABLE_INSERT_NO_LOGICAL) &&
		RowsAreDecoded(mi->rel);
	if (mi->logical)
	{
		initStringInfo(&mi->rows);
		mi->starts = palloc((mi->n + 1) * sizeof(Size));
		for (int i = 0; i < mi->n; i++)
		{
			mi->starts[i] = mi->rows.len;
			inplace_logical_append_new(&mi->rows, mi->rel, mi->tups[i]);
		}
		mi->starts[mi->n] = mi->rows.len;
	}
}

static void
free_new_rows(MultiInsert *mi)
{
	for (int i = 0; i < mi->n; i++)
		pfree(mi->tups[i]);
	pfree(mi->tups);
	pfree(mi->lens);
	pfree(mi->offs);
	pfree(mi->scratch);
	if (mi->logical)
	{
		pfree(mi->rows.data);
		pfree(mi->starts);
	}
}

/*
 * Put as many of the rows on the page as fit, at least one; in a critical section.
 * Returns how many.
 */
static int
add_rows(MultiInsert *mi, Page page)
{
	int			n = 0;

	do
	{
		OffsetNumber off;

		off = inplace_page_add(page, mi->tups[mi->done + n],
							   mi->lens[mi->done + n], InvalidOffsetNumber);
		if (off == InvalidOffsetNumber)
		{
			if (n == 0)
				elog(PANIC, "failed to add row to page");
			break;
		}
		mi->offs[n++] = off;
	} while (mi->done + n < mi->n &&
			 PageGetHeapFreeSpace(page) >=
			 MAXALIGN(mi->lens[mi->done + n]) + mi->save_free);
	return n;
}

/*
 * Fill a page.  Returns the number of rows put there, and its block.
 */
static int
insert_page(MultiInsert *mi, BlockNumber *blk)
{
	Relation	rel = mi->rel;
	bool		frozen = (mi->options & TABLE_INSERT_FROZEN) != 0;
	int			options;
	Buffer		buffer;
	Page		page;
	int			n;
	bool		clear = false;
	bool		init_page;
	FreezeUnset unset = {0};
	LogicalChange lc;

	options = MakeRoom(rel, PageSpaceFor(mi->tups[mi->done], mi->lens[mi->done]),
					   mi->options, mi->bistate);
	buffer = GetBufferForTuple(rel, PageSpaceFor(mi->tups[mi->done], mi->lens[mi->done]),
							   InvalidBuffer, options,
							   mi->bistate, &mi->vmbuffer, NULL);
	page = RowPage(rel, buffer);
	*blk = BufferGetBlockNumber(buffer);
	inplace_check_page_header(rel, page, *blk);
	init_page = PageGetMaxOffsetNumber(page) == 0;

	inplace_rows_put++;
	START_CRIT_SECTION();
	if (!frozen || init_page)
		clear = FreezeClearVisible(rel, buffer, mi->vmbuffer,
								   VISIBILITYMAP_VALID_BITS, &unset);
	n = add_rows(mi, page);
	MarkBufferDirty(buffer);
	if (mi->logical)
		inplace_logical_set_rows(&lc, mi->rows.data + mi->starts[mi->done],
								 mi->starts[mi->done + n] - mi->starts[mi->done],
								 mi->done + n < mi->n);
	inplace_log_multi_insert(rel, buffer, mi->offs, n, init_page, clear,
							 mi->scratch, mi->logical ? &lc : NULL);
	END_CRIT_SECTION();
	if (frozen && init_page)
		set_visible_frozen(rel, buffer, mi->vmbuffer);
	UnlockReleaseBuffer(buffer);
	FreezeNoteUnset(rel, &unset, true);
	return n;
}

/*
 * COPY and friends: as many rows to a page as fit, one WAL record a page.  Frozen
 * rows leave the bits of a page as they are, and set them if it was empty.
 */
void
inplace_multi_insert(Relation rel, TupleTableSlot **slots, int nslots,
					 CommandId cid, int options, BulkInsertState bistate)
{
	MultiInsert mi = {
		.rel = rel,
		.cid = cid,
		.options = options,
		.bistate = bistate,
		.vmbuffer = InvalidBuffer,
		.n = nslots
	};

	InplaceRequirePreload();
	mi.xid = GetCurrentTransactionId();
	mi.save_free = RelationGetTargetPageFreeSpace(rel, HEAP_DEFAULT_FILLFACTOR);
	form_new_rows(&mi, slots);

	/* as heap: early, to save work that would be rolled back */
	CheckForSerializableConflictIn(rel, NULL, InvalidBlockNumber);

	while (mi.done < nslots)
	{
		BlockNumber blk;
		int			n;

		CHECK_FOR_INTERRUPTS();
		n = insert_page(&mi, &blk);
		for (int i = 0; i < n; i++)
			set_slot_after_insert(rel, slots[mi.done + i], blk, mi.offs[i],
								  mi.xid, cid);
		mi.done += n;
	}

	if (BufferIsValid(mi.vmbuffer))
		ReleaseBuffer(mi.vmbuffer);
	free_new_rows(&mi);

	/*
	 * Again, and this is the one that counts: a scan may have locked the
	 * table since, and have read it before the rows were there.
	 */
	CheckForSerializableConflictIn(rel, NULL, InvalidBlockNumber);

	pgstat_count_heap_insert(rel, nslots);
}

void
inplace_insert_raw(Relation rel, InplaceTupleHeader tup, Size len, int options,
				   BulkInsertState bistate, ItemPointer tid)
{
	BlockNumber blk;
	OffsetNumber off;
	Buffer		buffer;
	Buffer		vmbuffer = InvalidBuffer;
	Page		page;

	buffer = GetBufferForTuple(rel, PageSpaceFor(tup, len), InvalidBuffer, options, bistate,
							   &vmbuffer, NULL);
	page = RowPage(rel, buffer);
	blk = BufferGetBlockNumber(buffer);

	START_CRIT_SECTION();
	off = inplace_page_add(page, tup, len, InvalidOffsetNumber);
	if (off == InvalidOffsetNumber)
		elog(PANIC, "failed to add row to page");
	MarkBufferDirty(buffer);
	inplace_log_push(rel, buffer, off, tup, len, NULL, NULL, 0);
	END_CRIT_SECTION();

	UnlockReleaseBuffer(buffer);
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);
	ItemPointerSet(tid, blk, off);
}

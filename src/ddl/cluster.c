/*-------------------------------------------------------------------------
 *
 * cluster.c
 *	  CLUSTER and VACUUM FULL: copy a table's rows into a new one.
 *
 * AccessExclusiveLock is held, so nobody but our own transaction has changes
 * or row locks in progress, and a page read stays as it was read.  Only
 * the undo worker might write, to restore aborted changes.  That is done here
 * before anything is taken from a page.
 *
 * Snapshots older than this command must find in the new table what they found
 * in the old one.  A row whose newest version everybody sees is written as one
 * fresh row with the xid it had.  Of another row all versions are collected
 * back to one that everybody sees (or to the beginning, or to where undo has
 * been given back because nobody needs more); the oldest is written as a fresh
 * row and the others are pushed on top, in order, each as the change of the
 * transaction that made it.  The first gets the space of the longest, so
 * that all of them fit where it stands.
 *
 * Tags are renumbered from 0: no trigger event is pending (CLUSTER sees to
 * that), nor has anybody else a TID of the old table.  A row that was moved
 * leads to its new place in the new table (cluster_moves.c).
 *
 * Indexes are built afterwards.  A row with versions that was IP_STALE is so in the
 * new table, too: it gets the entries that these need (build.c).  All others have no
 * stale entries.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/heaptoast.h"
#include "catalog/catalog.h"
#include "commands/progress.h"
#include "ddl/cluster.h"
#include "ddl/cluster_push.h"
#include "ddl/ddl.h"
#include "executor/executor.h"
#include "index/entry.h"
#include "index/index_fetch.h"
#include "modify/chunk.h"
#include "modify/modify.h"
#include "modify/toast.h"
#include "page/page.h"
#include "page/slot.h"
#include "page/tuple.h"
#include "pgstat.h"
#include "row/restore.h"
#include "row/visibility.h"
#include "row/walk.h"
#include "undo/undo.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"
#include "vacuum/compat_vacuum.h"

/*
 * In sort tuples, whose header nobody else looks at:
 * SORTED_HAS_VERSIONS: the row has more versions than the one sorted, they are
 * to be fetched from the old table again (t_self).  Without it t_xmin and cmin
 * are those of the one version there is.
 * SORTED_FROZEN: the version was frozen.
 */
#define SORTED_HAS_VERSIONS HEAP_XMIN_INVALID
#define SORTED_FROZEN		HEAP_XMIN_COMMITTED

typedef struct CopyState
{
	Relation	old;
	Relation	new;
	TransactionId oldest_xmin;
	TransactionId freeze_limit;
	bool		is_catalog;
	double	   *num_tuples;
	double	   *tups_vacuumed;
	double	   *tups_recently_dead;

	BulkInsertState bistate;
	TupleTableSlot *old_slot;	/* a stored version */
	TupleTableSlot *new_slot;	/* virtual, without dropped columns */
	Tuplesortstate *sort;		/* or NULL */
	MemoryContext row_cxt;		/* reset for each row */
	CopyWalk   *copies;
	MoveLinks  *links;			/* or NULL */
	ValueCopies *values;		/* of the row's versions, or NULL */
	ValueCopies *moved_values;	/* of rows that moved, and all others with
								 * versions */
	HTAB	   *seen;			/* rows that an index scan may find twice */
	BlockNumber checked;		/* old block known to need no restoring, whose
								 * copy is in page */
	PGAlignedBlock page;
} CopyState;

typedef struct CopyVersion
{
	InplaceTupleHeader tuple;	/* reformed, with the header it came with */
	Size		len;
	CommandId	cid;			/* of the insert, if it is the oldest */
	UndoReplaced replaced;		/* what replaced it, if a newer one is copied */
} CopyVersion;

/*
 * Form the tuple for the new table from the values in new_slot.
 */
static InplaceTupleHeader
form_new(CopyState *cs, bool has_external, Size *len)
{
	TupleDesc	desc = RelationGetDescr(cs->new);
	TupleTableSlot *slot = cs->new_slot;
	uint16		nattsflags;

	if (!has_external &&
		inplace_compute_size(desc, slot->tts_values, slot->tts_isnull,
							 &nattsflags) <= TOAST_TUPLE_THRESHOLD)
		return inplace_form_tuple(desc, slot->tts_values, slot->tts_isnull,
								  len);

	return inplace_toast_insert(cs->new, slot, len,
								TABLE_INSERT_SKIP_FSM | TABLE_INSERT_NO_LOGICAL,
								cs->values);
}

/*
 * Before a row is written: may versions of it share values?  Where rows have moved
 * they may with those of another place.
 */
static void
begin_values(CopyState *cs, ItemPointer tid, bool versions)
{
	cs->values = NULL;
	if (!OidIsValid(cs->new->rd_rel->reltoastrelid) ||
		(!versions && !inplace_cluster_is_moved_to(cs->links, tid)))
		return;
	if (cs->links == NULL)
		cs->values = inplace_copies_begin(cs->row_cxt);
	else if (cs->moved_values == NULL)
		cs->moved_values = inplace_copies_begin(GetMemoryChunkContext(cs));
	if (cs->links != NULL)
		cs->values = cs->moved_values;
	inplace_copies_set_newest(cs->values, true);
}

static void
end_values(CopyState *cs)
{
	if (cs->values != NULL && cs->values != cs->moved_values)
		inplace_copies_end(cs->values, cs->new);
	cs->values = NULL;
}

/*
 * The values have been put into new_slot: take out those of dropped columns.
 */
static void
finish_new_slot(CopyState *cs)
{
	TupleDesc	desc = RelationGetDescr(cs->new);
	int			i;

	for (i = 0; i < desc->natts; i++)
	{
		if (TupleDescAttr(desc, i)->attisdropped)
		{
			cs->new_slot->tts_isnull[i] = true;
			cs->new_slot->tts_values[i] = (Datum) 0;
		}
	}
	ExecStoreVirtualTuple(cs->new_slot);
}

/*
 * The tuple of the new table for a version of the old one: dropped columns
 * are nulls, missing ones are filled in, large values are in the new TOAST
 * table.  The header's fixed part is that of the old tuple.  blk and off are for
 * errors.  NULL if values are gone of a version that is no row's newest.
 */
static InplaceTupleHeader
reform(CopyState *cs, BlockNumber blk, OffsetNumber off,
	   InplaceTupleHeader tup, Size len, Size *newlen)
{
	int			natts = RelationGetDescr(cs->new)->natts;
	ItemPointerData tid;
	InplaceTupleHeader new;
	uint16		nattsflags;

	TidSet(&tid, blk, off);
	inplace_store_tuple(cs->old_slot, RelationGetRelid(cs->old), &tid, tup,
						len, NULL, false);
	slot_getallattrs(cs->old_slot);

	ExecClearTuple(cs->new_slot);
	memcpy(cs->new_slot->tts_values, cs->old_slot->tts_values,
		   natts * sizeof(Datum));
	memcpy(cs->new_slot->tts_isnull, cs->old_slot->tts_isnull,
		   natts * sizeof(bool));
	finish_new_slot(cs);

	new = form_new(cs, (tup->t_natts & IP_HASEXTERNAL) != 0, newlen);
	if (new != NULL)
	{
		nattsflags = new->t_natts;
		*new = *tup;
		new->t_natts = nattsflags;
	}

	ExecClearTuple(cs->new_slot);
	ExecClearTuple(cs->old_slot);
	return new;
}

/*
 * Give the oldest version its header: a fresh row by xid.  A frozen row's xid
 * may be of an age that cannot be compared any more: it stays frozen.
 */
static void
set_fresh(CopyState *cs, InplaceTupleHeader tup, TransactionId xid,
		  CommandId cid, bool frozen)
{
	tup->t_xid = xid;
	tup->t_infomask = IP_FRESH;
	tup->t_tag = FirstVersionTag;
	HdrSetFreshCid(tup, cid);

	/* aborted versions have been restored, what is not ours has committed */
	if (frozen || TransactionIdPrecedes(xid, cs->freeze_limit))
		tup->t_infomask |= IP_FROZEN | IP_COMMITTED;
	else if (!TransactionIdIsCurrentTransactionId(xid) &&
			 !TransactionIdIsInProgress(xid))
		tup->t_infomask |= IP_COMMITTED;
}

static inline CommandId
fresh_cid(InplaceTupleHeader tup)
{
	return HdrHasCid(tup) ? HdrFreshCid(tup) : FirstCommandId;
}

/*
 * Is there anything older that somebody may need?  A row that has been found
 * all-visible is not asked about.
 */
static inline bool
has_versions(CopyState *cs, InplaceTupleHeader tup)
{
	return HdrHasUndo(tup) && !TransactionIdPrecedes(HdrXid(tup), cs->oldest_xmin);
}

static void
write_simple(CopyState *cs, BlockNumber blk, OffsetNumber off,
			 InplaceTupleHeader tup, Size len)
{
	ItemPointerData old_tid;
	ItemPointerData tid;
	InplaceTupleHeader new;
	Size		newlen;

	TidSet(&old_tid, blk, off);
	begin_values(cs, &old_tid, false);
	new = reform(cs, blk, off, tup, len, &newlen);
	end_values(cs);
	set_fresh(cs, new, tup->t_xid, fresh_cid(tup),
			  (tup->t_infomask & IP_FROZEN) != 0);
	inplace_insert_raw(cs->new, new, newlen,
					   TABLE_INSERT_SKIP_FSM | TABLE_INSERT_NO_LOGICAL,
					   cs->bistate, &tid);
	inplace_cluster_note_row(cs->links, &old_tid, &tid);
}

/*
 * The walk begins at an evicted row.  In the new table it stands as a deleted row does:
 * with the values of the version before, to which the walk is moved on.  If nobody
 * needs that it has none, and the result is false.
 */
static bool
collect_evicted(CopyState *cs, ChainWalk *walk, CopyVersion *v)
{
	InplaceTupleHeaderData gone = *walk->tuple;

	v->cid = InvalidCommandId;
	v->tuple = NULL;
	if (cs->values != NULL)
		inplace_copies_set_newest(cs->values, false);
	if (inplace_walk_back_needed(walk, cs->oldest_xmin))
		v->tuple = reform(cs, walk->blk, walk->off, walk->tuple, walk->len, &v->len);
	if (v->tuple != NULL)
	{
		gone.t_natts = v->tuple->t_natts;
		*v->tuple = gone;
		return true;
	}
	v->len = SizeOfInplaceTupleHeader;
	v->tuple = palloc(v->len);
	*v->tuple = gone;
	return false;
}

/*
 * Collect the versions of a row that are to be written, the newest first.  Returns
 * their number, which is 0 if nobody needs the row.
 *
 * Who needed a version may have gone since this command began.  Undo of its large values
 * may then be given back before the row's own.  So the first version without them ends
 * the chain.
 */
static int
collect_versions(CopyState *cs, BlockNumber blk, OffsetNumber off,
				 InplaceTupleHeader tup, Size len, CopyVersion **versions)
{
	ChainWalk  *walk;
	CopyVersion *v;
	int			n = 0;
	int			max = 16;
	UndoReplaced replaced = {InvalidTransactionId, InvalidCommandId};

	if (cs->copies == NULL)
		cs->copies = MemoryContextAlloc(GetMemoryChunkContext(cs),
										sizeof(CopyWalk));

	v = palloc(max * sizeof(CopyVersion));
	walk = inplace_walk_begin(cs->copies, cs->old, blk, off, tup, len);
	if (HdrIsEvicted(walk->tuple))
	{
		v[n].replaced = replaced;
		*versions = v;
		if (!collect_evicted(cs, walk, &v[n++]))
			return n;
		replaced = walk->rec.replaced;
	}
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();

		if (n >= max)
		{
			max *= 2;
			v = repalloc(v, max * sizeof(CopyVersion));
		}
		if (cs->values != NULL)
			inplace_copies_set_newest(cs->values, n == 0 &&
									  !(walk->tuple->t_infomask & IP_DELETED));
		v[n].tuple = reform(cs, blk, off, walk->tuple, walk->len,
							&v[n].len);
		if (v[n].tuple == NULL)
			break;
		v[n].cid = fresh_cid(walk->tuple);
		v[n].replaced = replaced;

		/* locks are no versions: what is below one is the same version */
		if (!inplace_walk_back_needed(walk, cs->oldest_xmin))
		{
			InplaceTupleHeaderData *last = walk->tuple;

			/* the command id may have been below a lock */
			if (HdrSameVersion(last, v[n].tuple))
				v[n].cid = fresh_cid(last);
			n++;
			break;
		}
		n++;
		replaced = walk->rec.replaced;
	}
	*versions = v;
	return n;
}

/*
 * Write the oldest of the versions, with room for the longest.
 */
static void
write_oldest(CopyState *cs, CopyVersion *v, int n, uint16 stale, ItemPointer tid)
{
	CopyVersion *oldest = &v[n - 1];
	Size		maxlen = 0;
	bool		any_aligned = false;

	for (int i = 0; i < n; i++)
	{
		maxlen = Max(maxlen, v[i].len);
		any_aligned |= (v[i].tuple->t_natts & IP_ALIGNED) != 0;
	}

	set_fresh(cs, oldest->tuple, oldest->tuple->t_xid, oldest->cid,
			  (oldest->tuple->t_infomask & IP_FROZEN) != 0);
	oldest->tuple->t_infomask |= stale;

	/*
	 * Its place may have to take an aligned version.  (Reserving a few bytes
	 * more instead would not do: what is left at the end of the page may not
	 * be a multiple of the alignment.)
	 */
	if (any_aligned)
		oldest->tuple->t_natts |= IP_ALIGNED;
	if (oldest->len < maxlen)
	{
		oldest->tuple = repalloc(oldest->tuple, maxlen);
		inplace_set_padding(oldest->tuple, oldest->len, maxlen);
	}
	inplace_insert_raw(cs->new, oldest->tuple, maxlen,
					   TABLE_INSERT_SKIP_FSM | TABLE_INSERT_NO_LOGICAL,
					   cs->bistate, tid);
}

/*
 * Write a row with all its versions.
 */
static void
write_versions(CopyState *cs, BlockNumber blk, OffsetNumber off,
			   InplaceTupleHeader tup, Size len)
{
	CopyVersion *v;
	int			n;
	ItemPointerData old_tid;
	ItemPointerData tid;
	VersionTag	tag;
	uint16		stale;

	TidSet(&old_tid, blk, off);
	begin_values(cs, &old_tid, true);
	n = collect_versions(cs, blk, off, tup, len, &v);
	end_values(cs);
	stale = n > 1 ? tup->t_infomask & IP_STALE : 0;

	if (n == 0 || (v[n - 1].tuple->t_infomask & IP_DELETED))
	{
		/*
		 * Undo ends at a delete: nobody needs the row before it, so nobody
		 * needs the row.
		 */
		if (n > 1)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("row (%u,%u) of relation \"%s\" has versions that are newer than its deletion",
							cs->copies->walk.blk, cs->copies->walk.off,
							RelationGetRelationName(cs->copies->walk.rel))));
		*cs->tups_vacuumed += 1;
		*cs->num_tuples -= 1;
		*cs->tups_recently_dead -= 1;
		return;
	}

	write_oldest(cs, v, n, stale, &tid);
	inplace_cluster_note_row(cs->links, &old_tid, &tid);

	tag = TagBeforeAll((v[0].tuple->t_infomask & IP_DELETED) ? n - 2 : n - 1);
	for (int i = n - 2; i >= 0; i--)
	{
		InplaceTupleHeader newer = v[i].tuple;

		CHECK_FOR_INTERRUPTS();

		/* (a delete is no version of its own) */
		if (!(newer->t_infomask & IP_DELETED))
			tag = NextTag(tag);
		newer->t_tag = tag;
		newer->t_infomask &= (IP_DELETED | IP_MOVED_PARTITION |
							  IP_KEYS_UPDATED | IP_COMMITTED);
		newer->t_infomask |= stale;
		HdrSetUndoPtr(newer, InvalidUndoPtr);

		/* where it moved to is in the undo of the old table's row */
		if (i > 0 || !inplace_cluster_delete_moved(cs->links, cs->new, tup,
												   &old_tid, newer, &tid))
			inplace_push_version_raw(cs->new, &tid, newer, v[i].len, NULL,
									 &v[i + 1].replaced);
	}
}

/*
 * Have the block of the old table in cs->page, without aborted changes, and
 * with the states of its rows as hints.
 */
static void
load_old_block(CopyState *cs, Buffer buffer, BlockNumber blk)
{
	Page		page;
	OffsetNumber off;
	OffsetNumber maxoff;

restart:
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = RowPage(cs->old, buffer);
	if (PageIsNew(page))
		maxoff = 0;
	else
	{
		inplace_check_page(cs->old, page, blk);
		maxoff = PageGetMaxOffsetNumber(page);
	}
	for (off = FirstOffsetNumber; off <= maxoff; off++)
	{
		bool		all_visible;

		if (ItemIdIsNormal(PageGetItemId(page, off)) &&
			inplace_row_state(cs->old, PageGetTupleAt(page, off), buffer,
							  cs->oldest_xmin, NULL,
							  &all_visible) == ROW_ABORTED_CHANGE)
		{
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
			inplace_restore_page(cs->old, buffer, true);
			goto restart;
		}
	}
	memcpy(cs->page.data, page, BLCKSZ);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	cs->checked = blk;
}

static Page
load_for_moves(void *state, Buffer buffer, BlockNumber blk)
{
	CopyState  *cs = state;

	load_old_block(cs, buffer, blk);
	return (Page) cs->page.data;
}

/*
 * Form a heap tuple for the sort.
 */
static void
put_sort(CopyState *cs, BlockNumber blk, OffsetNumber off,
		 InplaceTupleHeader tup, Size len, bool versions)
{
	ItemPointerData tid;
	HeapTuple	htup;

	TidSet(&tid, blk, off);
	inplace_store_tuple(cs->old_slot, RelationGetRelid(cs->old), &tid, tup,
						len, NULL, false);
	htup = ExecCopySlotHeapTuple(cs->old_slot);
	htup->t_self = tid;
	htup->t_tableOid = RelationGetRelid(cs->old);
	htup->t_data->t_infomask &= ~HEAP_XACT_MASK;
	HeapTupleHeaderSetXmin(htup->t_data, tup->t_xid);
	HeapTupleHeaderSetCmin(htup->t_data, fresh_cid(tup));
	if (versions)
		htup->t_data->t_infomask |= SORTED_HAS_VERSIONS;
	if (tup->t_infomask & IP_FROZEN)
		htup->t_data->t_infomask |= SORTED_FROZEN;

	tuplesort_putheaptuple(cs->sort, htup);
	ExecClearTuple(cs->old_slot);
}

/*
 * An evicted row is sorted by the version that was deleted.  If nobody needs that it is
 * not written.
 */
static void
put_sort_evicted(CopyState *cs, BlockNumber blk, OffsetNumber off,
				 InplaceTupleHeader tup, Size len)
{
	ChainWalk  *walk;

	if (cs->copies == NULL)
		cs->copies = MemoryContextAlloc(GetMemoryChunkContext(cs),
										sizeof(CopyWalk));
	walk = inplace_walk_begin(cs->copies, cs->old, blk, off, tup, len);
	if (inplace_walk_back_needed(walk, cs->oldest_xmin))
	{
		put_sort(cs, blk, off, walk->tuple, walk->len, true);
		return;
	}
	*cs->tups_vacuumed += 1;
	*cs->num_tuples -= 1;
	*cs->tups_recently_dead -= 1;
}

/*
 * Copy the row at off of the block in cs->page, or put it into the sort.
 */
static void
copy_row(CopyState *cs, BlockNumber blk, OffsetNumber off)
{
	Page		page = cs->page.data;
	InplaceTupleHeader tup;
	MemoryContext oldcxt;
	bool		all_visible;
	bool		versions;
	RowState	state;
	ItemId		lp;
	Size		len;

	CHECK_FOR_INTERRUPTS();

	if (PageIsNew(page) || off > PageGetMaxOffsetNumber(page))
		return;
	lp = PageGetItemId(page, off);
	if (!ItemIdIsNormal(lp))
		return;
	tup = (InplaceTupleHeader) PageGetItem(page, lp);
	len = RowLength(tup, lp);

	/* states are looked up on the copy: no hint can be set */
	state = inplace_row_state(cs->old, tup, InvalidBuffer, cs->oldest_xmin, NULL,
							  &all_visible);
	switch (state)
	{
		case ROW_DEAD:
		case ROW_ABORTED_INSERT:
			*cs->tups_vacuumed += 1;
			return;

		case ROW_LIVE:
			break;

		case ROW_RECENTLY_DEAD:
			*cs->tups_recently_dead += 1;
			break;

		case ROW_INSERT_IN_PROGRESS:
		case ROW_UPDATE_IN_PROGRESS:
			if (!cs->is_catalog &&
				!TransactionIdIsCurrentTransactionId(tup->t_xid))
				elog(WARNING, "concurrent insert in progress within table \"%s\"",
					 RelationGetRelationName(cs->old));
			break;

		case ROW_DELETE_IN_PROGRESS:
			if (!cs->is_catalog &&
				!TransactionIdIsCurrentTransactionId(tup->t_xid))
				elog(WARNING, "concurrent delete in progress within table \"%s\"",
					 RelationGetRelationName(cs->old));
			*cs->tups_recently_dead += 1;
			break;

		case ROW_ABORTED_CHANGE:
			elog(ERROR, "row (%u,%u) of relation \"%s\" has not been restored",
				 blk, off, RelationGetRelationName(cs->old));
			break;
	}

	*cs->num_tuples += 1;
	versions = !all_visible && has_versions(cs, tup);

	oldcxt = MemoryContextSwitchTo(cs->row_cxt);
	if (cs->sort != NULL)
	{
		if (HdrIsEvicted(tup))
			put_sort_evicted(cs, blk, off, tup, len);
		else
			put_sort(cs, blk, off, tup, len, versions);
		pgstat_progress_update_param(PROGRESS_CLUSTER_HEAP_TUPLES_SCANNED,
									 *cs->num_tuples);
	}
	else
	{
		const int	params[] = {
			PROGRESS_CLUSTER_HEAP_TUPLES_SCANNED,
			PROGRESS_CLUSTER_HEAP_TUPLES_WRITTEN
		};
		int64		vals[2];

		if (versions)
			write_versions(cs, blk, off, tup, len);
		else
			write_simple(cs, blk, off, tup, len);

		vals[0] = vals[1] = *cs->num_tuples;
		pgstat_progress_update_multi_param(2, params, vals);
	}
	MemoryContextSwitchTo(oldcxt);
	MemoryContextReset(cs->row_cxt);
}

/*
 * All of the table, block by block.
 */
static void
copy_in_table_order(CopyState *cs)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(cs->old);
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	BlockNumber blk;

	pgstat_progress_update_param(PROGRESS_CLUSTER_PHASE,
								 PROGRESS_CLUSTER_PHASE_SEQ_SCAN_HEAP);
	pgstat_progress_update_param(PROGRESS_CLUSTER_TOTAL_HEAP_BLKS, nblocks);

	for (blk = 0; blk < nblocks; blk++)
	{
		Buffer		buffer;
		OffsetNumber off;
		OffsetNumber maxoff;

		CHECK_FOR_INTERRUPTS();
		pgstat_progress_update_param(PROGRESS_CLUSTER_HEAP_BLKS_SCANNED,
									 blk + 1);

		buffer = ReadBufferExtended(cs->old, MAIN_FORKNUM, blk, RBM_NORMAL,
									strategy);
		load_old_block(cs, buffer, blk);

		maxoff = PageIsNew((Page) cs->page.data) ? 0 :
			PageGetMaxOffsetNumber((Page) cs->page.data);
		for (off = FirstOffsetNumber; off <= maxoff; off++)
			copy_row(cs, blk, off);
		ReleaseBuffer(buffer);
	}

	FreeAccessStrategy(strategy);
}

/* a row with more than one entry in the index, maybe */
typedef struct SeenRow
{
	ItemPointerData tid;		/* hash key */
	bool		copied;
} SeenRow;

/*
 * Is this the entry that says where the row goes?  A row may have more than
 * one: it goes where the key of its newest version is.
 */
static bool
entry_places_row(CopyState *cs, Relation index, IndexTuple itup,
				 BlockNumber blk, OffsetNumber off)
{
	Page		page = cs->page.data;
	InplaceTupleHeader tup;
	ItemPointerData tid;
	SeenRow    *row;
	bool		found;
	ItemId		lp;

	if (PageIsNew(page) || off > PageGetMaxOffsetNumber(page))
		return true;
	lp = PageGetItemId(page, off);
	if (!ItemIdIsNormal(lp))
		return true;
	tup = (InplaceTupleHeader) PageGetItem(page, lp);
	if (!(tup->t_infomask & IP_STALE))
		return true;

	if (cs->seen == NULL)
	{
		HASHCTL		ctl = {0};

		ctl.keysize = sizeof(ItemPointerData);
		ctl.entrysize = sizeof(SeenRow);
		ctl.hcxt = GetMemoryChunkContext(cs);
		cs->seen = hash_create("inplace cluster", 1024, &ctl,
							   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	TidSet(&tid, blk, off);
	row = hash_search(cs->seen, &tid, HASH_ENTER, &found);
	if (!found)
		row->copied = false;
	if (row->copied)
		return false;

	/* (the TOAST values of a dead row may be gone) */
	if (itup != NULL && !HdrIsEvicted(tup))
	{
		MemoryContext oldcxt = MemoryContextSwitchTo(cs->row_cxt);

		row->copied = inplace_entry_may_match(cs->old, index, itup, tup, &tid);
		MemoryContextSwitchTo(oldcxt);
		MemoryContextReset(cs->row_cxt);
	}
	else
		row->copied = true;
	return row->copied;
}

/*
 * Rows none of whose entries has the key of the newest version.  There should be
 * none; but no row gets lost by that.
 */
static Buffer
copy_unplaced_rows(CopyState *cs, Buffer buffer)
{
	HASH_SEQ_STATUS seq;
	SeenRow    *row;

	if (cs->seen == NULL)
		return buffer;
	hash_seq_init(&seq, cs->seen);
	while ((row = hash_seq_search(&seq)) != NULL)
	{
		BlockNumber blk = ItemPointerGetBlockNumber(&row->tid);

		if (row->copied)
			continue;
		if (blk != cs->checked)
		{
			buffer = ReleaseAndReadBuffer(buffer, cs->old, blk);
			load_old_block(cs, buffer, blk);
		}
		copy_row(cs, blk, TidOffset(&row->tid));
	}
	return buffer;
}

static void
copy_in_index_order(CopyState *cs, Relation index)
{
	const int	params[] = {
		PROGRESS_CLUSTER_PHASE,
		PROGRESS_CLUSTER_INDEX_RELID
	};
	int64		vals[2];
	IndexScanDesc scan;
	Buffer		buffer = InvalidBuffer;
	ItemPointer tid;

	vals[0] = PROGRESS_CLUSTER_PHASE_INDEX_SCAN_HEAP;
	vals[1] = RelationGetRelid(index);
	pgstat_progress_update_multi_param(2, params, vals);

	scan = IndexBeginScan(cs->old, index, SnapshotAny, 0, 0);
	index_rescan(scan, NULL, 0, NULL, 0);

	while ((tid = index_getnext_tid(scan, ForwardScanDirection)) != NULL)
	{
		BlockNumber blk = ItemPointerGetBlockNumber(tid);
		OffsetNumber off = TidOffset(tid);

		if (scan->xs_recheck)
			elog(ERROR, "CLUSTER does not support lossy index conditions");

		if (blk != cs->checked)
		{
			buffer = ReleaseAndReadBuffer(buffer, cs->old, blk);
			load_old_block(cs, buffer, blk);
		}

		/*
		 * (the entry only of an inplace_btree; of other methods a row is
		 * known by having been seen)
		 */
		if (entry_places_row(cs, index,
							 inplace_fetched_entry(inplace_entry_fetch(scan)).itup,
							 blk, off))
			copy_row(cs, blk, off);
	}

	index_endscan(scan);

	buffer = copy_unplaced_rows(cs, buffer);
	if (BufferIsValid(buffer))
		ReleaseBuffer(buffer);
}

/*
 * Write what has been sorted.
 */
static void
write_sorted(CopyState *cs)
{
	TupleDesc	desc = RelationGetDescr(cs->old);
	Buffer		buffer = InvalidBuffer;
	double		written = 0;
	HeapTuple	htup;

	pgstat_progress_update_param(PROGRESS_CLUSTER_PHASE,
								 PROGRESS_CLUSTER_PHASE_SORT_TUPLES);
	tuplesort_performsort(cs->sort);
	pgstat_progress_update_param(PROGRESS_CLUSTER_PHASE,
								 PROGRESS_CLUSTER_PHASE_WRITE_NEW_HEAP);

	while ((htup = tuplesort_getheaptuple(cs->sort, true)) != NULL)
	{
		MemoryContext oldcxt;

		CHECK_FOR_INTERRUPTS();
		oldcxt = MemoryContextSwitchTo(cs->row_cxt);

		if (htup->t_data->t_infomask & SORTED_HAS_VERSIONS)
		{
			BlockNumber blk = ItemPointerGetBlockNumber(&htup->t_self);
			OffsetNumber off = ItemPointerGetOffsetNumber(&htup->t_self);
			ItemId		lp;
			InplaceTupleHeader tup;

			if (blk != cs->checked)
			{
				buffer = ReleaseAndReadBuffer(buffer, cs->old, blk);
				load_old_block(cs, buffer, blk);
			}
			lp = PageGetItemId((Page) cs->page.data, off);
			tup = (InplaceTupleHeader) PageGetItem((Page) cs->page.data, lp);
			write_versions(cs, blk, off, tup, RowLength(tup, lp));
		}
		else
		{
			InplaceTupleHeader new;
			ItemPointerData tid;
			Size		len;

			ExecClearTuple(cs->new_slot);
			heap_deform_tuple(htup, desc, cs->new_slot->tts_values,
							  cs->new_slot->tts_isnull);
			finish_new_slot(cs);
			begin_values(cs, &htup->t_self, false);
			new = form_new(cs, HeapTupleHasExternal(htup), &len);
			end_values(cs);
			set_fresh(cs, new, HeapTupleHeaderGetRawXmin(htup->t_data),
					  HeapTupleHeaderGetRawCommandId(htup->t_data),
					  (htup->t_data->t_infomask & SORTED_FROZEN) != 0);
			inplace_insert_raw(cs->new, new, len,
							   TABLE_INSERT_SKIP_FSM | TABLE_INSERT_NO_LOGICAL,
							   cs->bistate, &tid);
			inplace_cluster_note_row(cs->links, &htup->t_self, &tid);
			ExecClearTuple(cs->new_slot);
		}

		MemoryContextSwitchTo(oldcxt);
		MemoryContextReset(cs->row_cxt);

		pgstat_progress_update_param(PROGRESS_CLUSTER_HEAP_TUPLES_WRITTEN,
									 ++written);
	}

	if (BufferIsValid(buffer))
		ReleaseBuffer(buffer);
}

static void
inplace_copy_for_cluster(Relation OldTable, Relation NewTable,
						 Relation OldIndex, bool use_sort,
						 TransactionId OldestXmin,
						 TransactionId *xid_cutoff,
						 MultiXactId *multi_cutoff,
						 double *num_tuples, double *tups_vacuumed,
						 double *tups_recently_dead)
{
	CopyState  *cs = palloc0(sizeof(CopyState));

	InplaceRequirePreload();
	CutoffsRespectSnapshots(OldTable, &OldestXmin, xid_cutoff);

	cs->old = OldTable;
	cs->new = NewTable;
	cs->oldest_xmin = OldestXmin;
	cs->freeze_limit = *xid_cutoff;
	cs->is_catalog = IsSystemRelation(OldTable);
	cs->num_tuples = num_tuples;
	cs->tups_vacuumed = tups_vacuumed;
	cs->tups_recently_dead = tups_recently_dead;
	cs->bistate = GetBulkInsertState();
	cs->old_slot = MakeSingleTupleTableSlot(RelationGetDescr(OldTable),
											&TTSOpsInplace);
	cs->new_slot = MakeSingleTupleTableSlot(RelationGetDescr(NewTable),
											&TTSOpsVirtual);
	cs->row_cxt = AllocSetContextCreate(CurrentMemoryContext,
										"inplace cluster row",
										ALLOCSET_DEFAULT_SIZES);
	cs->checked = InvalidBlockNumber;
	inplace_given_rewritten(OldTable->rd_rel->reltoastrelid);
	cs->links = inplace_cluster_find_moves(OldTable, OldestXmin,
										   load_for_moves, cs);
	if (use_sort)
		cs->sort = tuplesort_begin_cluster(RelationGetDescr(OldTable),
										   OldIndex, maintenance_work_mem,
										   NULL, TUPLESORT_NONE);

	if (OldIndex != NULL && !use_sort)
		copy_in_index_order(cs, OldIndex);
	else
		copy_in_table_order(cs);

	if (cs->sort != NULL)
	{
		write_sorted(cs);
		tuplesort_end(cs->sort);
	}
	inplace_cluster_finish_moves(cs->links, NewTable);
	if (cs->moved_values != NULL)
		inplace_copies_end(cs->moved_values, NewTable);

	if (cs->seen != NULL)
		hash_destroy(cs->seen);
	if (cs->copies != NULL)
		pfree(cs->copies);
	FreeBulkInsertState(cs->bistate);
	inplace_drop_empty_tail(NewTable);
	ExecDropSingleTupleTableSlot(cs->old_slot);
	ExecDropSingleTupleTableSlot(cs->new_slot);
	MemoryContextDelete(cs->row_cxt);
	pfree(cs);
}

void
inplace_init_cluster_methods(TableAmRoutine *am)
{
	am->relation_copy_for_cluster = inplace_copy_for_cluster;
	am->finish_bulk_insert = inplace_finish_bulk_insert;
}

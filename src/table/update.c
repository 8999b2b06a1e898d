/*-------------------------------------------------------------------------
 *
 * update.c
 *	  Updates, in place where that can be.
 *
 * An update is in place if
 *	 - no column of an index that cannot take it has changed (summarizing
 *	   indexes can, from PostgreSQL 16 on, and inplace_btree ones, which get
 *	   a new entry each if their key changed: index/index.h),
 *	 - the new row fits on the page, after a prune if need be,
 *	 - the transaction would not give two versions of the row the same tag,
 *	 - what changed fits an undo page.
 * Otherwise the row is moved: its header says DELETED and MOVED, the undo
 * record has the new TID, and the new row is FRESH.
 *
 * Lock order: data pages (by block number, through RelationGetBufferForTuple)
 * -> undo page -> visibility map pages (pinned before).
 *
 * The page is let go of while values are toasted, with the row locked before, as on heap,
 * and while a page for a moved row is looked for.  Nothing marks the row then; instead its
 * header is compared afterwards, and if somebody else was there all is looked at again.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/heaptoast.h"
#include "access/hio.h"
#include "access/visibilitymap.h"
#include "index/index.h"
#include "pgstat.h"
#include "storage/predicate.h"
#include "table/compare.h"
#include "table/rowcheck.h"
#include "utils/datum.h"
#include "utils/relcache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "vacuum/freeze_stats.h"
#include "wal/wal.h"

typedef struct UpdateState
{
	Relation	rel;
	RowTarget	target;
	BlockNumber blk;
	OffsetNumber off;
	TransactionId xid;
	CommandId	cid;
	Buffer		buffer;
	bool		borrowed;		/* the pin on it (recent.c) */
	Buffer		vmbuffer;
	RowCheck	rc;
	RowDiff		diff;
	InplaceTupleHeader newtup;	/* formed; header filled last */
	Size		newlen;
	bool		key_changed;
	bool		index_changed;	/* ... that cannot take it in place */
	bool		summary_changed;
	TakingIndexes *taking;		/* indexes that can take it, or NULL */
	bool		stale;			/* a key of theirs changed: the old entry
								 * stays */
	bool		verified;		/* with the row as in verified_hdr, */
	bool		apart;			/* ... the new keys may stand beside the old */
	InplaceTupleHeaderData verified_hdr;
	bool		conflict;		/* older versions cut off, standbys not told */
	/* the new row's place, if it moved */
	Buffer		newbuf;
	Buffer		newvm;
	OffsetNumber newoff;
	bool		searched;		/* newbuf and newvm have pins of their own */
	LogicalChange lc;			/* for logical decoding, */
	bool		logical;		/* if need be */
	/* undo records of the change: the change's own, then of locks kept */
	char		undo[UNDO_MAX_RECORD + 2 * UNDO_LOCK_RECORD_SIZE];
	char		payload[BLCKSZ * 2];
	char		wal[BLCKSZ * 2];
} UpdateState;

/* large; in use by one update at a time: user code has to come before, or see verify_keys */
static UpdateState *update_state = NULL;

/* headers equal but for hint bits and the padding flag? */
static bool
same_header(const InplaceTupleHeaderData *a, const InplaceTupleHeaderData *b)
{
	InplaceTupleHeaderData x = *a;
	InplaceTupleHeaderData y = *b;

	x.t_infomask &= ~(IP_HINT_BITS | IP_PADDED);
	y.t_infomask &= ~(IP_HINT_BITS | IP_PADDED);
	return memcmp(&x, &y, SizeOfInplaceTupleHeader) == 0;
}

static InplaceTupleHeader
current_tuple(UpdateState *us)
{
	return PageGetTupleAt(BufferGetPage(us->buffer), us->off);
}

static Size
item_len(UpdateState *us)
{
	return ItemIdGetLength(PageGetItemId(BufferGetPage(us->buffer), us->off));
}

/*
 * Compare the new row with the newest version on the page.
 */
static void
find_changes(UpdateState *us, const Bitmapset *index_attrs,
			 const Bitmapset *summary_attrs, const Bitmapset *key_attrs)
{
	InplaceTupleHeader tup = current_tuple(us);

	if (!inplace_diff_rows(RelationGetDescr(us->rel), tup,
						   inplace_tuple_len(tup, item_len(us)),
						   us->newtup, us->newlen, &us->diff))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("row (%u,%u) of relation \"%s\" is damaged",
						us->blk, us->off, RelationGetRelationName(us->rel))));
	us->index_changed = inplace_diff_overlaps(&us->diff, index_attrs);
	us->summary_changed = inplace_diff_overlaps(&us->diff, summary_attrs);
	us->key_changed = inplace_diff_overlaps(&us->diff, key_attrs);
	us->stale = us->taking != NULL &&
		inplace_taking_changed(us->taking, &us->diff);
	if (us->stale && us->verified && us->apart)
		us->stale = inplace_taking_settled(us->taking);
	if (us->stale && us->taking->payload_changed &&
		(us->newlen > MAX_ROW_WITH_PAYLOAD ||
		 (us->newtup->t_natts & IP_HASEXTERNAL)))
		us->index_changed = true;
}

/*
 * The row's newest version is not the one meant, which is what the update was
 * made from and decides how strong a lock it takes.
 */
static bool
key_of_target_changed(UpdateState *us, const Bitmapset *key_attrs)
{
	Page		page = BufferGetPage(us->buffer);
	RowVersion *version = RowVersionAlloc();
	RowDiff    *diff = palloc(sizeof(RowDiff));
	bool		changed = us->key_changed;
	bool		found = false;

	if (us->target.tag != 0)
		found = inplace_fetch_tagged(us->rel, us->buffer, page, us->blk,
									 us->off, us->target.tag, version);
	else if (us->target.snapshot != InvalidSnapshot &&
			 us->target.snapshot->snapshot_type == SNAPSHOT_MVCC)
		found = inplace_fetch_version(us->rel, us->buffer, true, page, us->blk,
									  us->off, us->target.snapshot, version);
	if (found &&
		inplace_diff_rows(RelationGetDescr(us->rel), version->tuple,
						  version->len, us->newtup, us->newlen, diff))
		changed = inplace_diff_overlaps(diff, key_attrs);
	pfree(diff);
	pfree(version);
	return changed;
}

/*
 * Would the row's next tag be one that this transaction may have used on it
 * already, or that of the version which it has replaced first?  A trigger event
 * tells these apart by their tags.  If it made the version with the last tag but
 * one, it may have come from the last tag, and have gone all the way round.
 */
static bool
tag_would_wrap(UpdateState *us)
{
	return us->rc.status == XID_CURRENT &&
		us->rc.base.t_tag >= INPLACE_MAX_TAG - 1;
}

/* the record's own part and what keeping the locks takes */
static bool
undo_fits(UpdateState *us)
{
	return SizeOfUndoRecordHeader + SizeOfInplaceTupleHeader +
		delta_size(&us->diff.edits, true) + 2 * UNDO_LOCK_RECORD_SIZE <=
		UNDO_MAX_RECORD;
}

/*
 * Room on the page?  Prunes if there is not.
 */
static bool
fits_on_page(UpdateState *us)
{
	Page		page = BufferGetPage(us->buffer);

	if (inplace_page_can_grow(page, us->off, us->newtup, us->newlen))
		return true;
	inplace_page_prune(us->rel, us->buffer, GlobalVisTestFor(us->rel), us->off);
	return inplace_page_can_grow(page, us->off, us->newtup, us->newlen);
}

/*
 * The compact form of the update's WAL record, from which redo makes the undo
 * record as well; see wal.h.  Returns its length.
 */
static Size
build_compact_wal(UpdateState *us, UndoInsert *ui, const char *undo,
				  const char *oldimg, const char *newimg)
{
	UndoRecordHeader uh;
	uint16		w = us->off | XLIP_UPD_COMPACT;
	char	   *p = us->wal;
	int			pos = 0;

	memcpy(&uh, undo, SizeOfUndoRecordHeader);
	if (us->cid != FirstCommandId)
		w |= XLIP_UPD_CID;
	if (us->key_changed)
		w |= XLIP_UPD_KEYS;
	if (uh.ur_flags & UR_TAG_ZERO)
		w |= XLIP_UPD_TAG_ZERO;
	if (uh.ur_flags & UR_TAG_WRAPPED)
		w |= XLIP_UPD_TAG_WRAPPED;
	if (uh.ur_flags & UR_FROZEN)
		w |= XLIP_UPD_OLD_FROZEN;
	if (us->conflict)
		w |= XLIP_UPD_CONFLICT;

	memcpy(p, &w, 2);
	p = inplace_wal_put_undo_place(p + 2, ui, RelLocator(us->rel));
	p = varint_put(p, us->xid - us->rc.base.t_xid);
	if (us->cid != FirstCommandId)
		p = varint_put(p, us->cid);
	for (int i = 0; i < us->diff.edits.n; i++)
	{
		DeltaEdit  *e = &us->diff.edits.edit[i];

		p = varint_put(p, e->old_start - pos);
		p = varint_put(p, e->old_len);
		memcpy(p, oldimg + e->old_start, e->old_len);
		p += e->old_len;
		memcpy(p, newimg + e->new_start, e->new_len);
		p += e->new_len;
		pos = e->old_start + e->old_len;
	}
	return p - us->wal;
}

/* in a critical section; that there is room has been seen to */
static void
replace_row(UpdateState *us)
{
	if (!inplace_page_replace(BufferGetPage(us->buffer), us->off, us->newtup,
							  us->newlen, true))
		elog(PANIC, "failed to update row in place");
}

static void
update_in_place(UpdateState *us)
{
	Relation	rel = us->rel;
	InplaceTupleHeader tup = current_tuple(us);
	char	   *oldimg = (char *) tup + SizeOfInplaceTupleHeader;
	char	   *newimg = (char *) us->newtup + SizeOfInplaceTupleHeader;
	InplaceTupleHeader hdr = us->newtup;
	bool		nothing_older;
	Size		payload_len;
	Size		undo_len;
	Size		change_len;
	UndoRecordHeader uh;
	UndoInsert	ui;
	bool		single;			/* no lock is kept beside the change */
	bool		from_page;
	bool		compact;
	Size		wal_len = 0;
	bool		clear;
	FreezeUnset unset;

	hdr->t_xid = us->xid;
	hdr->t_tag = NextTag(us->rc.base.t_tag);
	hdr->t_infomask = (us->rc.base.t_infomask & IP_STALE) |
		(us->stale ? IP_STALE : 0) |
		(us->key_changed ? IP_KEYS_UPDATED : 0);
	if (us->stale)
		inplace_taking_note_absent(rel, us->taking, &us->diff, &us->rc.base);

	/*
	 * Where nobody on this server needs anything older the undo record is
	 * short, and the WAL record compact; it can tell standbys.
	 */
	nothing_older = inplace_cut_older(rel, &us->rc.base, us->rc.status,
									  !us->rc.locked && us->diff.same_size &&
									  RelationNeedsWAL(rel) &&
									  hdr->t_natts == us->rc.base.t_natts,
									  &us->conflict);

	/* older versions pile up: from time to time a way round them */
	if (!nothing_older && us->rc.status == XID_COMMITTED)
		UndoLinkPut(rel, us->blk, us->off, tup,
					inplace_tuple_len(tup, item_len(us)), hdr, &us->rc.base);

	payload_len = delta_encode(&us->diff.edits, true, oldimg, newimg, us->payload);
	change_len = UndoBuild(us->undo, UNDO_UPDATE, us->xid, us->cid,
						   LocatorSpc(RelLocator(rel)),
						   LocatorRel(RelLocator(rel)),
						   us->blk, us->off, &us->rc.base, hdr, nothing_older,
						   us->payload, payload_len);
	undo_len = change_len;
	memcpy(&uh, us->undo, SizeOfUndoRecordHeader);

	UndoPrepare(rel, change_len +
				(us->rc.locked ? UNDO_LOCK_RECORD_SIZE : 0),
				inplace_undo_newest(&us->rc), &ui);
	HdrSetUndo(hdr, ui.ptr);
	if (us->rc.locked)
		undo_len += inplace_keep_lockers(rel, us->blk, us->off, &us->rc, hdr,
										 ui.ptr + change_len,
										 us->undo + change_len);

	single = undo_len == change_len;
	from_page = RelationNeedsWAL(rel) && single &&
		inplace_wal_old_row_on_page(tup, &us->rc.base);
	compact = from_page ||
		(us->diff.same_size && single &&
		 (uh.ur_flags & UR_RELATIVE_HEADER) != 0 &&
		 HdrNatts(hdr) == HdrNatts(&us->rc.base));
	if (RelationNeedsWAL(rel))
	{
		if (from_page)
			wal_len = inplace_wal_build_update(us->wal, &ui, rel, us->undo,
											   &us->rc.base, hdr, us->conflict,
											   &us->diff.edits, oldimg, newimg);
		else if (compact)
			wal_len = build_compact_wal(us, &ui, us->undo, oldimg, newimg);
		else
		{
			uint16		w = us->off;

			memcpy(us->wal, &w, 2);
			memcpy(us->wal + 2, hdr, SizeOfInplaceTupleHeader);
			wal_len = 2 + SizeOfInplaceTupleHeader;
			wal_len += delta_encode(&us->diff.edits, false, oldimg, newimg,
									us->wal + wal_len);
		}
	}

	START_CRIT_SECTION();
	clear = FreezeClearVisible(rel, us->buffer, us->vmbuffer,
							   VISIBILITYMAP_VALID_BITS, &unset);
	MarkBufferDirty(us->buffer);
	UndoAppend(&ui, us->undo, undo_len);
	if (!from_page)
		replace_row(us);
	if (RelationNeedsWAL(rel))
		inplace_log_update(rel, us->buffer, us->wal, wal_len, clear, &ui,
						   compact ? NULL : us->undo, undo_len,
						   us->logical ? &us->lc : NULL);
	else if (ui.needs_wal)
		inplace_log_undo_alone(&ui, us->undo, undo_len);
	if (from_page)
		replace_row(us);
	END_CRIT_SECTION();

	UndoRelease(&ui);
	FreezeNoteUnset(rel, &unset, false);
}

/*
 * Find a page for the moved row; afterwards both pages are locked (they may
 * be one).  The old page is let go of unless it has room itself: false if the
 * row was changed meanwhile, with only the old page pinned and unlocked.
 */
static bool
find_new_page(UpdateState *us)
{
	Page		page = BufferGetPage(us->buffer);
	InplaceTupleHeaderData before = *current_tuple(us);

	us->searched = false;
	if (inplace_page_free_space(page) >= us->newlen + MAXIMUM_ALIGNOF + sizeof(ItemIdData) &&
		inplace_page_next_offset(page) <= InplaceMaxTuplesPerPage)
	{
		us->newbuf = us->buffer;
		us->newvm = us->vmbuffer;
		return true;
	}

	LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
	us->searched = true;
	us->newvm = InvalidBuffer;
	us->newbuf = GetBufferForTuple(us->rel, PageSpaceFor(us->newtup, us->newlen),
								   us->buffer, 0, NULL,
								   &us->newvm, &us->vmbuffer);
	inplace_check_page_header(us->rel, BufferGetPage(us->newbuf),
							  BufferGetBlockNumber(us->newbuf));

	if (us->off <= PageGetMaxOffsetNumber(page) &&
		ItemIdIsNormal(PageGetItemId(page, us->off)) &&
		same_header(&before, current_tuple(us)))
		return true;

	LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
	if (us->newbuf != us->buffer)
		UnlockReleaseBuffer(us->newbuf);
	if (BufferIsValid(us->newvm))
		ReleaseBuffer(us->newvm);
	us->newbuf = us->newvm = InvalidBuffer;
	return false;
}

static void
update_by_move(UpdateState *us)
{
	Relation	rel = us->rel;
	Page		oldpage = BufferGetPage(us->buffer);
	Page		newpage = BufferGetPage(us->newbuf);
	BlockNumber newblk = BufferGetBlockNumber(us->newbuf);
	InplaceTupleHeader tup;
	InplaceTupleHeaderData oldhdr = us->rc.base;
	InplaceTupleHeader newhdr = us->newtup;
	char		link[sizeof(BlockNumber) + sizeof(OffsetNumber)];
	char	   *p = us->undo;
	UndoInsert	ui;
	bool		init_page;
	uint8		clear = 0;
	FreezeUnset unset;
	FreezeUnset unset_old = {0};
	OffsetNumber newoff;

	newhdr->t_xid = us->xid;
	newhdr->t_tag = 0;
	newhdr->t_infomask = IP_FRESH;
	HdrSetUndo32(newhdr, us->cid);

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
	UndoPrepare(rel, (p - us->undo) +
				(us->rc.locked ? 2 * UNDO_LOCK_RECORD_SIZE : 0),
				inplace_undo_newest(&us->rc), &ui);
	HdrSetUndo(&oldhdr, ui.ptr);
	if (us->rc.locked)
	{
		p += inplace_keep_lockers(rel, us->blk, us->off, &us->rc, &oldhdr,
								  ui.ptr + (p - us->undo), p);
		p += inplace_keep_lockers(rel, newblk, newoff, &us->rc, newhdr,
								  ui.ptr + (p - us->undo), p);
	}

	START_CRIT_SECTION();
	if (FreezeClearVisible(rel, us->newbuf, us->newvm,
						   VISIBILITYMAP_VALID_BITS, &unset))
		clear |= XLIP_CLEAR_VISIBLE;
	if (us->newbuf != us->buffer &&
		FreezeClearVisible(rel, us->buffer, us->vmbuffer,
						   VISIBILITYMAP_VALID_BITS, &unset_old))
		clear |= XLIP_CLEAR_VISIBLE_OLD;

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
	UndoAppend(&ui, us->undo, p - us->undo);
	inplace_log_move(rel, us->buffer, us->off, us->newbuf, us->newoff,
					 init_page, clear, &ui, us->undo, p - us->undo,
					 us->logical ? &us->lc : NULL);
	END_CRIT_SECTION();

	UndoRelease(&ui);
	FreezeNoteUnset(rel, &unset, us->newbuf != us->buffer);
	FreezeNoteUnset(rel, &unset_old, false);
}

static void
finish_slot(UpdateState *us, TupleTableSlot *slot, bool in_place)
{
	Relation	rel = us->rel;
	uint8		tag = us->newtup->t_tag;

	if (!in_place)
		ItemPointerSet(&slot->tts_tid, BufferGetBlockNumber(us->newbuf),
					   us->newoff);
	else if (rel->trigdesc && rel->trigdesc->trig_update_after_row)
		TidSetTagged(&slot->tts_tid, us->blk, us->off, tag);
	else
		ItemPointerSet(&slot->tts_tid, us->blk, us->off);
	slot->tts_tableOid = RelationGetRelid(rel);

	if (TTS_IS_INPLACE(slot))
	{
		InplaceTupleTableSlot *is = (InplaceTupleTableSlot *) slot;

		is->has_sysattrs = true;
		is->xmin = us->xid;

		/*
		 * Where the row was locked first (ON CONFLICT DO UPDATE, BEFORE ROW
		 * triggers) heap's new row still has the lock in xmax, and people
		 * tell the two outcomes of an upsert by RETURNING xmax = 0.
		 */
		is->xmax = us->target.tag != 0 ? us->xid : InvalidTransactionId;
		is->cmin = us->cid;
		is->cmax = 0;
		is->tag = in_place ? tag : 0;
	}
}

/*
 * Form the new row.  A row that has to be toasted needs the version it
 * replaces (old), which then is a copy.
 */
static void
form_row(UpdateState *us, TupleTableSlot *slot, InplaceTupleHeader old)
{
	TupleDesc	desc = RelationGetDescr(us->rel);
	uint16		flags;

	if (old == NULL &&
		(us->newtup = inplace_slot_ready_row(us->rel, slot, &us->newlen)) != NULL)
		return;

	slot_getallattrs(slot);
	if (old)
	{
		us->newtup = inplace_toast_insert_or_update(us->rel, slot, old,
													&us->target.tid,
													&us->newlen, 0);
		return;
	}
	us->newlen = inplace_compute_size(desc, slot->tts_values, slot->tts_isnull,
									  &flags);
	us->newtup = (InplaceTupleHeader) palloc(us->newlen);
	inplace_fill_tuple(desc, slot->tts_values, slot->tts_isnull, flags,
					   us->newtup, us->newlen);
}

static InplaceTupleHeader
copy_current(UpdateState *us)
{
	InplaceTupleHeader copy = palloc(item_len(us));

	memcpy(copy, current_tuple(us), item_len(us));
	return copy;
}

/*
 * What logical decoding needs of the update.
 */
static void
prepare_logical(UpdateState *us, const Bitmapset *id_attrs)
{
	InplaceTupleHeader old;

	us->logical = false;
	if (!RelationIsLogicallyLogged(us->rel))
		return;
	old = copy_current(us);
	us->logical = inplace_logical_prepare(&us->lc, us->rel, us->newtup, old,
										  &us->target.tid, id_attrs,
										  inplace_diff_overlaps(&us->diff, id_attrs));
	pfree(old);
}

/*
 * Keys that are computed, and operator classes where equal keys need not be
 * identical: see what becomes of them, and whether the row can stay.  The code of
 * operator classes may update rows, too.
 */
static pg_noinline void
verify_keys(UpdateState *us, InplaceTupleHeader old, Size len,
			TupleTableSlot *slot)
{
	if (us->borrowed)
	{
		/* it may do anything, so have a pin of our own */
		IncrBufferRefCount(us->buffer);
		us->borrowed = false;
	}
	update_state = NULL;
	PG_TRY();
	{
		us->apart = inplace_taking_settle(us->rel, us->taking, old, len,
										  slot, &us->target.tid);
	}
	PG_CATCH();
	{
		update_state = us;
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (update_state != NULL)
		pfree(update_state);
	update_state = us;
	us->verified = true;
}

/*
 * Will values be stored in the TOAST table?  Not if the new row is short, and
 * what it has there is the old one's.
 */
static bool
stores_values(UpdateState *us, TupleTableSlot *slot, InplaceTupleHeader old)
{
	TupleDesc	desc = RelationGetDescr(us->rel);
	Datum	   *values;
	bool	   *isnull;
	bool		stores = false;
	int			got;

	if (us->newlen > Min(TOAST_TUPLE_THRESHOLD,
						 RelationGetToastTupleTarget(us->rel, TOAST_TUPLE_TARGET)))
		return true;
	values = palloc(desc->natts * sizeof(Datum));
	isnull = palloc(desc->natts * sizeof(bool));
	got = inplace_deform_first(desc, old, desc->natts, values, isnull,
							   CurrentMemoryContext, &us->target.tid);
	for (int i = 0; i < desc->natts && !stores; i++)
	{
		struct varlena *v;

		if (slot->tts_isnull[i] || TupleDescAttr(desc, i)->attlen != -1)
			continue;
		v = (struct varlena *) DatumGetPointer(slot->tts_values[i]);
		if (VARATT_IS_EXTERNAL(v))
			stores = i >= got || isnull[i] || !VARATT_IS_EXTERNAL_ONDISK(v) ||
				!VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(values[i])) ||
				memcmp(v, DatumGetPointer(values[i]), VARSIZE_EXTERNAL(v)) != 0;
	}
	pfree(values);
	pfree(isnull);
	return stores;
}

/*
 * Values that are to go to the TOAST table may differ from those that are there only in
 * how they are stored; as on heap that counts as a change.
 */
static bool
keys_differ(UpdateState *us, TupleTableSlot *slot, InplaceTupleHeader old,
			const Bitmapset *key_attrs)
{
	TupleDesc	desc = RelationGetDescr(us->rel);
	Datum	   *values = palloc(desc->natts * sizeof(Datum));
	bool	   *isnull = palloc(desc->natts * sizeof(bool));
	bool		differ = false;
	int			got;
	int			x = -1;

	slot_getallattrs(slot);
	got = inplace_deform_first(desc, old, desc->natts, values, isnull,
							   CurrentMemoryContext, &us->target.tid);
	for (; got < desc->natts; got++)
		values[got] = getmissingattr(desc, got + 1, &isnull[got]);

	while (!differ && (x = bms_next_member(key_attrs, x)) >= 0)
	{
		int			i = x + FirstLowInvalidHeapAttributeNumber - 1;
		Form_pg_attribute att;

		if (i < 0)
			continue;
		att = TupleDescAttr(desc, i);
		differ = isnull[i] != slot->tts_isnull[i] ||
			(!isnull[i] && !datumIsEqual(values[i], slot->tts_values[i],
										 att->attbyval, att->attlen));
	}
	pfree(values);
	pfree(isnull);
	return differ;
}

/*
 * Lock the row before values are stored for it with its page unlocked, so that they are
 * not stored in vain: others could keep us from ever coming to an end, and logical decoding
 * cannot do with values of a change that did not come about.  Our own change is a lock.
 */
static void
reserve_row(UpdateState *us, LockTupleMode mode)
{
	TransactionId locker;
	bool		multi;
	LockTupleMode strongest;

	if (us->rc.status == XID_CURRENT ||
		(us->rc.own_lock && us->rc.own_mode >= mode))
		return;

	MultiXactIdSetOldestMember();
	inplace_compute_lockers(&us->rc, us->xid, mode, &locker, &multi, &strongest);
	inplace_set_row_lock(us->rel, us->buffer, us->vmbuffer, us->off, &us->rc,
						 us->xid, locker, multi, strongest);
}

/*
 * The whole update; result TM_Ok with *in_place told, or what stands in the
 * way.
 */
static TM_Result
do_update(UpdateState *us, TupleTableSlot *slot, Snapshot crosscheck,
		  bool wait, TM_FailureData *tmfd, LockTupleMode *lockmode,
		  bool *in_place)
{
	Relation	rel = us->rel;
	TM_Result	result;
	RowQueue	queue = {0};
	Bitmapset  *index_attrs;
	Bitmapset  *summary_attrs = NULL;
	Bitmapset  *key_attrs;
	Bitmapset  *id_attrs = NULL;
	InplaceTupleHeader oldcopy = NULL;	/* what newtup was toasted against */
	InplaceTupleHeaderData oldcopy_hdr;
	bool		needs_toast;
	bool		key_changed = false;	/* as far as is known before toasting */
	bool		reserved = false;	/* the row, before values were stored */

#if PG_VERSION_NUM >= 160000
	index_attrs = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_HOT_BLOCKING);
	summary_attrs = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_SUMMARIZED);
#else
	index_attrs = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_ALL);
#endif
	key_attrs = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_KEY);
	if (RelationIsLogicallyLogged(rel))
		id_attrs = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_IDENTITY_KEY);
	if (us->taking != NULL)
	{
		bms_free(index_attrs);
		index_attrs = bms_copy(TakingBlockingAttrs(us->taking));
	}

	form_row(us, slot, NULL);
	needs_toast = (us->newtup->t_natts & IP_HASEXTERNAL) != 0 ||
		us->newlen > TOAST_TUPLE_THRESHOLD;

	us->buffer = inplace_borrow_row_page(rel, us->blk, &us->borrowed);
	us->vmbuffer = InvalidBuffer;
	us->newbuf = InvalidBuffer;
	us->newvm = InvalidBuffer;
	us->searched = false;
	us->verified = false;

	for (;;)
	{
		if (!inplace_lock_row_page(rel, us->buffer, us->off, &us->vmbuffer))
		{
			tmfd->ctid = us->target.tid;
			tmfd->xmax = InvalidTransactionId;
			tmfd->cmax = InvalidCommandId;
			result = TM_Deleted;
			break;
		}

		if (us->verified && !same_header(&us->verified_hdr, current_tuple(us)))
			us->verified = false;

		/* is the version copied not there any more?  (nothing was stored) */
		if (oldcopy && !reserved &&
			!same_header(&oldcopy_hdr, current_tuple(us)))
		{
			LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
			pfree(oldcopy);
			oldcopy = NULL;
			pfree(us->newtup);
			form_row(us, slot, NULL);
			continue;
		}

		/* nobody but lockers comes to a row that is reserved */
		if (reserved && current_tuple(us)->t_tag != oldcopy_hdr.t_tag)
			elog(ERROR, "row (%u,%u) of relation \"%s\" was changed though locked",
				 us->blk, us->off, RelationGetRelationName(rel));

		/*
		 * A row that is too large before toasting cannot be compared by
		 * offsets; it is after toasting.  Until then its key columns are
		 * compared when it has been copied.
		 */
		if (!needs_toast || oldcopy)
			find_changes(us, index_attrs, summary_attrs, key_attrs);
		else
			us->key_changed = key_changed;
		*lockmode = us->key_changed ? LockTupleExclusive : LockTupleNoKeyExclusive;

		result = inplace_row_check(rel, us->buffer, &us->target, us->cid,
								   *lockmode, &us->rc, tmfd);
		if ((result == TM_Updated ||
			 (result == TM_BeingModified && !us->rc.retry &&
			  (us->rc.status == XID_IN_PROGRESS || us->rc.old_version))) &&
			(!needs_toast || oldcopy) &&
			key_of_target_changed(us, key_attrs) != us->key_changed)
		{
			us->key_changed = !us->key_changed;
			*lockmode = us->key_changed ? LockTupleExclusive : LockTupleNoKeyExclusive;
			result = inplace_row_check(rel, us->buffer, &us->target, us->cid,
									   *lockmode, &us->rc, tmfd);
		}
		if (result == TM_Ok && crosscheck != InvalidSnapshot &&
			!inplace_crosscheck(rel, us->buffer, us->off, crosscheck))
		{
			tmfd->ctid = us->target.tid;
			tmfd->xmax = current_tuple(us)->t_xid;
			tmfd->cmax = InvalidCommandId;
			result = TM_Updated;
		}
		if (result == TM_BeingModified)
		{
			if (!wait && !us->rc.retry)
				break;
			LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
			if (us->rc.retry)
				continue;
			inplace_row_wait(rel, &us->target, &us->rc, *lockmode,
							 LockWaitBlock, XLTW_Update, &queue);
			continue;
		}
		if (result != TM_Ok)
			break;

		/*
		 * Our own FOR UPDATE goes on to exclude FOR KEY SHARE; on a version
		 * of our own the lock of another subtransaction is kept as a lock.
		 */
		if ((us->rc.own_lock && us->rc.own_mode == LockTupleExclusive &&
			 (us->rc.status != XID_CURRENT ||
			  (!us->rc.lockers.multi &&
			   TransactionIdEquals(us->rc.lockers.xid,
								   GetCurrentTransactionIdIfAny())))) ||
			(us->rc.status == XID_CURRENT &&
			 (us->rc.base.t_infomask & IP_KEYS_UPDATED)))
			us->key_changed = true;

		if ((needs_toast ||
			 (current_tuple(us)->t_natts & IP_HASEXTERNAL)) && !oldcopy)
		{
			oldcopy = copy_current(us);
			oldcopy_hdr = *oldcopy;
			if (needs_toast && stores_values(us, slot, oldcopy))
			{
				key_changed = keys_differ(us, slot, oldcopy, key_attrs);
				if (key_changed && !us->key_changed)
				{
					LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
					pfree(oldcopy);
					oldcopy = NULL;
					continue;
				}
				reserve_row(us, us->key_changed ? LockTupleExclusive : LockTupleNoKeyExclusive);
				reserved = true;
			}
			LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
			if (needs_toast)
			{
				pfree(us->newtup);
				form_row(us, slot, oldcopy);
			}
			continue;
		}

		if (us->newlen > InplaceMaxTupleSize)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("row is too big: size %zu, maximum size %zu",
							us->newlen, (Size) InplaceMaxTupleSize)));

		if (us->stale && !us->index_changed && !us->verified &&
			inplace_taking_unsure(us->taking))
		{
			InplaceTupleHeader old = copy_current(us);
			Size		len = inplace_tuple_len(old, item_len(us));

			/* an operator class's code: not with the page locked */
			LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
			us->verified_hdr = *old;
			verify_keys(us, old, len, slot);
			pfree(old);
			continue;
		}

		*in_place = !us->index_changed && (!us->verified || us->apart) &&
			!tag_would_wrap(us) && undo_fits(us) && fits_on_page(us);
		if (!*in_place && !find_new_page(us))
			continue;
		break;
	}

	if (result != TM_Ok)
	{
		LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
		inplace_return_row_page(us->buffer, us->borrowed);
		if (BufferIsValid(us->vmbuffer))
			ReleaseBuffer(us->vmbuffer);
		if (reserved)
			inplace_toast_delete_replaced(rel, us->newtup, oldcopy,
										  &us->target.tid, true);
		inplace_row_wait_done(rel, &queue);
		if (result == TM_Invisible)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("attempted to update invisible tuple")));
		bms_free(index_attrs);
		bms_free(summary_attrs);
		bms_free(key_attrs);
		bms_free(id_attrs);
		return result;
	}

	{
		ItemPointerData version;

		TidSetVersion(&version, us->blk, us->off, us->rc.base.t_tag);
		CheckForSerializableConflictIn(rel, &version, us->blk);
	}

	prepare_logical(us, id_attrs);
	if (*in_place)
		update_in_place(us);
	else
		update_by_move(us);
	if (us->logical)
		pfree(us->lc.tuples);
	finish_slot(us, slot, *in_place);

	if (BufferIsValid(us->newbuf) && us->newbuf != us->buffer)
		LockBuffer(us->newbuf, BUFFER_LOCK_UNLOCK);
	LockBuffer(us->buffer, BUFFER_LOCK_UNLOCK);
	if (oldcopy)
		inplace_toast_delete_replaced(rel, oldcopy, us->newtup,
									  &us->target.tid, false);
	if (us->searched)
	{
		if (BufferIsValid(us->newvm))
			ReleaseBuffer(us->newvm);
		if (us->newbuf != us->buffer)
			ReleaseBuffer(us->newbuf);
	}
	inplace_return_row_page(us->buffer, us->borrowed);
	if (BufferIsValid(us->vmbuffer))
		ReleaseBuffer(us->vmbuffer);
	inplace_row_wait_done(rel, &queue);

	/*
	 * The server counts a dead row for every update.  One in place leaves
	 * nothing for VACUUM, unless it is the row's first that leaves an entry
	 * behind in an index; that stays so if it is rolled back.
	 */
	CountUpdate(rel, *in_place, !*in_place && us->newbuf != us->buffer);
	if (*in_place && !(us->stale && !(us->rc.base.t_infomask & IP_STALE)))
		pgstat_update_heap_dead_tuples(rel, 1);

	bms_free(index_attrs);
	bms_free(summary_attrs);
	bms_free(key_attrs);
	bms_free(id_attrs);
	return TM_Ok;
}

#if PG_VERSION_NUM >= 160000
TM_Result
inplace_tuple_update(Relation rel, ItemPointer otid, TupleTableSlot *slot,
					 CommandId cid, Snapshot snapshot, Snapshot crosscheck,
					 bool wait, TM_FailureData *tmfd, LockTupleMode *lockmode,
					 TU_UpdateIndexes *update_indexes)
#else
TM_Result
inplace_tuple_update(Relation rel, ItemPointer otid, TupleTableSlot *slot,
					 CommandId cid, Snapshot snapshot, Snapshot crosscheck,
					 bool wait, TM_FailureData *tmfd, LockTupleMode *lockmode,
					 bool *update_indexes)
#endif
{
	UpdateState *us;
	TM_Result	result;
	bool		in_place = false;
	TakingIndexes *taking;
	ItemPointerData entry_tid;
	bool		insert_entries;

	InplaceRequirePreload();
	if (IsInParallelMode())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot update tuples during a parallel operation")));

	/*
	 * may run functions that an index's expressions call, and those may come
	 * here
	 */
	taking = inplace_taking_indexes(rel);

	if (update_state == NULL)
		update_state = MemoryContextAlloc(TopMemoryContext, sizeof(UpdateState));
	us = update_state;
	us->rel = rel;
	TidClean(&us->target.tid, otid);
	us->target.tag = TidTag(otid);
	us->target.newest = false;
	us->target.queued = false;
	us->target.queued_old = false;
	us->target.gone = false;
	us->target.snapshot = snapshot;
	us->blk = ItemPointerGetBlockNumber(&us->target.tid);
	us->off = ItemPointerGetOffsetNumber(&us->target.tid);
	us->cid = cid;
	us->xid = GetCurrentTransactionId();
	tmfd->traversed = false;

	us->taking = taking;
	result = do_update(us, slot, crosscheck, wait, tmfd, lockmode, &in_place);
	entry_tid = us->target.tid;
	insert_entries = result == TM_Ok && in_place && us->stale;
	if (result == TM_Ok)
		pfree(us->newtup);

#if PG_VERSION_NUM >= 160000
	*update_indexes = result != TM_Ok ? TU_None :
		!in_place ? TU_All :
		us->summary_changed ? TU_Summarizing : TU_None;
#else
	*update_indexes = result == TM_Ok && !in_place;
#endif

	if (result == TM_Ok && (!in_place || us->summary_changed))
		inplace_open_indexes(rel, slot);

	/* may run an operator class's code, and that may come here */
	inplace_rows_put++;
	if (insert_entries)
		inplace_insert_entries(rel, taking, &entry_tid, slot);
	if (taking)
		pfree(taking);
	return result;
}

/*-------------------------------------------------------------------------
 *
 * sweep_bulk.c
 *	  Going through a hash or GiST index for VACUUM, to take out stale entries.
 *
 * The method's own deletion does it (ambulkdelete).  It asks for each entry whether that
 * is to go, and hands over where the TID stands in the entry.  With both methods that is
 * the beginning of it: so the entry is at hand, on its page, which is locked.
 *
 * What the entry of each row would be now is found out before: the hash value, or a
 * digest of the GiST tuple.  It is noted in an array, where a row is found by its place among
 * those that are noted (stale_rows.h), for it is looked for at each entry.  Then the index is
 * gone through twice.  First the entries of each row are counted, those of its present
 * version and others.  Then the others are deleted, if the row is unchanged still
 * (present_row.c).  A row without an entry of its
 * present version keeps all of them, and its mark: the operator class may have come to
 * another result than it did.  So does a row with two of them: scans go on to return
 * it once (other_fetch.c).  There should be none.  An index whose computed key is not known to
 * come out the same (key.c) loses nothing: a row with other entries keeps its mark.
 *
 * The methods see to it that each entry is met that was there when they began.  Some are
 * met twice, which may make a row look as if it had two, but never as if it had one that
 * is not there.
 *
 * Lock order: index page, exclusively; under it table pages, one at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/gist_private.h"
#include "access/hash.h"
#include "catalog/pg_am_d.h"
#include "commands/vacuum.h"
#include "common/hashfn.h"
#include "index/entry.h"
#include "index/key.h"
#include "index/other_method.h"
#include "index/present_row.h"
#include "index/sweep_bulk.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

StaticAssertDecl(offsetof(IndexTupleData, t_tid) == 0,
				 "an entry is where its TID is");

/* what tells an entry from others of its row */
typedef struct Digest
{
	uint64		a;
	uint64		b;
} Digest;

typedef struct NotedRow
{
	bool		none;			/* has no entry at present */
	uint8		present;		/* entries of the present version, up to 2 */
	bool		others;			/* has others */
	Digest		digest;			/* of the present version */
} NotedRow;

typedef struct BulkSweep
{
	Relation	table;
	Relation	index;
	StaleRows  *rows;
	NotedRow   *noted;
	uint64		nnoted;
	uint64		most;			/* there is memory for so many */
	MemoryContext work;
	ResourceOwner owner;		/* for computing, of one page */
	GISTSTATE  *giststate;
	bool		deletes;		/* else rows with other entries keep their
								 * mark */
	bool		any_others;
	int64		deleted;
} BulkSweep;

/* ---------------- what entries should be ---------------- */

static void
add_bytes(Digest *d, const void *bytes, Size len)
{
	d->a = hash_bytes_extended(bytes, len, d->a);
	d->b = hash_bytes_extended(bytes, len, ~d->b);
}

/* the same however it is stored */
static void
add_value(Digest *d, Form_pg_attribute att, Datum value)
{
	struct varlena *v;

	if (att->attbyval)
		add_bytes(d, &value, sizeof(Datum));
	else if (att->attlen > 0)
		add_bytes(d, DatumGetPointer(value), att->attlen);
	else if (att->attlen == -2)
		add_bytes(d, DatumGetCString(value), strlen(DatumGetCString(value)));
	else
	{
		v = PG_DETOAST_DATUM_PACKED(value);
		add_bytes(d, VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v));
		if ((Pointer) v != DatumGetPointer(value))
			pfree(v);
	}
}

/* (its page may be locked: nothing in an entry is in a TOAST table) */
static Digest
digest_of_entry(const BulkSweep *bs, IndexTuple itup)
{
	Digest		d = {0, 0};
	TupleDesc	desc;

	if (bs->giststate == NULL)
	{
		d.a = _hash_get_indextuple_hashkey(itup);
		return d;
	}
	desc = bs->giststate->leafTupdesc;
	for (int i = 0; i < desc->natts; i++)
	{
		bool		isnull;
		Datum		value = index_getattr(itup, i + 1, desc, &isnull);

		/* (no value is hashed to the number of a column, but by chance) */
		if (isnull)
		{
			d.a = hash_combine64(d.a, i + 1);
			d.b = hash_combine64(d.b, i + 1);
		}
		else
			add_value(&d, TupleDescAttr(desc, i), value);
	}
	return d;
}

static bool
same_digest(Digest x, Digest y)
{
	return x.a == y.a && x.b == y.b;
}

/* false if there is to be no entry */
static bool
digest_of_key(const BulkSweep *bs, const Datum *values, const bool *isnull,
			  Digest *digest)
{
	if (bs->giststate == NULL)
	{
		if (isnull[0])
			return false;
		digest->a = _hash_datum2hashkey(bs->index, values[0]);
		digest->b = 0;
		return true;
	}
	*digest = digest_of_entry(bs, gistFormTuple(bs->giststate, bs->index,
												unconstify(Datum *, values),
												unconstify(bool *, isnull), true));
	return true;
}

/* INCLUDE columns; values may be in the TOAST table */
static void
get_payload(const BulkSweep *bs, InplaceTupleHeader tup, const ItemPointerData *tid,
			Datum *values, bool *isnull)
{
	for (int i = IndexRelationGetNumberOfKeyAttributes(bs->index);
		 i < IndexRelationGetNumberOfAttributes(bs->index); i++)
		values[i] = inplace_getattr(RelationGetDescr(bs->table), tup,
									bs->index->rd_index->indkey.values[i],
									&isnull[i], CurrentMemoryContext, tid);
}

typedef struct EntryWork
{
	const BulkSweep *bs;
	InplaceTupleHeader tup;
	ItemPointer tid;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	bool		none;
	Digest		digest;
} EntryWork;

/* the rest of an entry, once its key is known */
static void
do_entry_work(void *arg)
{
	EntryWork  *ew = (EntryWork *) arg;

	get_payload(ew->bs, ew->tup, ew->tid, ew->values, ew->isnull);
	ew->none = !digest_of_key(ew->bs, ew->values, ew->isnull, &ew->digest);
}

/*
 * Note the row, of the page that has been copied.  If its entry cannot be computed, or there is no
 * memory, it is not to be looked at: false.
 */
static bool
note_row(BulkSweep *bs, Page page, StaleBlock *b, ItemPointer tid)
{
	EntryWork	ew = {0};
	ErrorData  *error;
	KeyOf		key;
	NotedRow   *row;

	ew.bs = bs;
	ew.tid = tid;
	ew.tup = inplace_copy_noted_row_of(page, ItemPointerGetOffsetNumberNoCheck(tid));
	if (ew.tup == NULL)
		return true;			/* changed: it will not be marked */
	if (bs->nnoted >= bs->most)
		return false;
	key = inplace_key_guarded(bs->table, bs->index, ew.tup, tid, true,
							  CurrentMemoryContext, &bs->owner, ew.values, ew.isnull,
							  &error);
	ew.none = key == KEY_NONE;
	if (key == KEY_FOUND &&
		!inplace_guarded(do_entry_work, &ew, CurrentMemoryContext, &bs->owner, &error))
		key = KEY_UNKNOWN;
	if (key == KEY_UNKNOWN)
		return false;
	row = &bs->noted[bs->nnoted++];
	row->none = ew.none;
	row->present = 0;
	row->others = false;
	row->digest = ew.digest;
	stale_block_add(b->met, ItemPointerGetOffsetNumberNoCheck(tid));
	return true;
}

static void
note_rows_of_block(BulkSweep *bs, StaleBlock *b)
{
	PGAlignedBlock *copy = NULL;

	b->first_met = bs->nnoted;
	for (OffsetNumber off = FirstOffsetNumber; off <= MaxHeapTuplesPerPage; off++)
	{
		MemoryContext old;
		ItemPointerData tid;

		if (!stale_block_wants(bs->rows, b, off))
			continue;
		if (copy == NULL)
		{
			copy = palloc(sizeof(PGAlignedBlock));
			inplace_copy_noted_page(bs->table, b->blk, copy);
		}
		ItemPointerSet(&tid, b->blk, off);
		old = MemoryContextSwitchTo(bs->work);
		if (!note_row(bs, (Page) copy->data, b, &tid))
			stale_rows_drop(bs->rows, &tid);
		MemoryContextSwitchTo(old);
		MemoryContextReset(bs->work);
	}
	inplace_end_guarded(&bs->owner);
	if (copy != NULL)
		pfree(copy);
}

/* rows for which there is no memory are left to the next VACUUM */
static void
note_rows(BulkSweep *bs, Size memory)
{
	bs->most = Min(memory / sizeof(NotedRow), bs->rows->nrows);
	bs->noted = MemoryContextAllocHuge(CurrentMemoryContext,
									   Max(bs->most, 1) * sizeof(NotedRow));
	for (Size i = 0; i < bs->rows->nblocks; i++)
	{
		VacuumDelayPoint();
		note_rows_of_block(bs, &bs->rows->blocks[i]);
	}
}

/* ---------------- the two ways through the index ---------------- */

/* that the entry is of, or NULL */
static inline NotedRow *
noted_row_of(BulkSweep *bs, ItemPointer tid)
{
	StaleBlock *b = stale_rows_block(bs->rows, ItemPointerGetBlockNumberNoCheck(tid));
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(tid);

	if (b == NULL || !stale_block_has(b->met, off))
		return NULL;
	return &bs->noted[stale_block_number(b, off)];
}

static bool
count_entry(ItemPointer tid, void *arg)
{
	BulkSweep  *bs = (BulkSweep *) arg;
	NotedRow   *row = noted_row_of(bs, tid);

	if (row == NULL)
		return false;
	if (!row->none && same_digest(digest_of_entry(bs, (IndexTuple) tid), row->digest))
		row->present = Min(row->present + 1, 2);
	else
		row->others = bs->any_others = true;
	return false;
}

static bool
entry_is_stale(ItemPointer tid, void *arg)
{
	BulkSweep  *bs = (BulkSweep *) arg;
	NotedRow   *row = noted_row_of(bs, tid);

	if (row == NULL || !row->others || (!row->none && row->present == 0) ||
		(!row->none && same_digest(digest_of_entry(bs, (IndexTuple) tid), row->digest)) ||
		!inplace_noted_row_unchanged(bs->table, tid))
		return false;
	bs->deleted++;
	return true;
}

/* those that cannot be rid of their mark */
static void
drop_others(BulkSweep *bs)
{
	for (Size i = 0; i < bs->rows->nblocks; i++)
	{
		StaleBlock *b = &bs->rows->blocks[i];

		for (OffsetNumber off = FirstOffsetNumber; off <= MaxHeapTuplesPerPage; off++)
		{
			NotedRow   *row;
			ItemPointerData tid;

			if (!stale_block_has(b->met, off))
				continue;
			row = &bs->noted[stale_block_number(b, off)];
			ItemPointerSet(&tid, b->blk, off);
			if ((!row->none && row->present != 1) || (row->others && !bs->deletes))
				stale_rows_drop(bs->rows, &tid);
		}
	}
}

/*
 * *stats, from the caller's memory, is what the method says of the last time that the index was
 * gone through: amvacuumcleanup need not do so again.  It stays as it is if that is not done.
 */
int64
inplace_sweep_bulk(IndexVacuumInfo *info, Relation table, StaleRows *rows, Size memory,
				   IndexBulkDeleteResult **stats)
{
	BulkSweep	bs = {0};
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext,
											  "inplace bulk sweep",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);

	(void) inplace_index_key(info->index);
	stale_rows_begin_index(rows, false);
	bs.table = table;
	bs.index = info->index;
	bs.rows = rows;
	bs.deletes = inplace_other_keys_are_known(info->index);
	if (info->index->rd_rel->relam == GIST_AM_OID)
	{
		bs.giststate = initGISTstate(info->index);
		bs.giststate->tempCxt = createTempGistContext();
	}
	bs.work = AllocSetContextCreate(cxt, "inplace bulk sweep row",
									ALLOCSET_DEFAULT_SIZES);

	note_rows(&bs, memory);
	MemoryContextSwitchTo(old);
	/* (all of them may have been changed since, or cannot be computed) */
	if (bs.nnoted > 0)
		*stats = index_bulk_delete(info, NULL, count_entry, &bs);
	if (bs.any_others && bs.deletes)
	{
		inplace_tell_standbys(table, rows);
		*stats = index_bulk_delete(info, *stats, entry_is_stale, &bs);
	}
	MemoryContextSwitchTo(cxt);
	drop_others(&bs);

	if (bs.giststate != NULL)
		freeGISTstate(bs.giststate);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	return bs.deleted;
}

/*-------------------------------------------------------------------------
 *
 * chunk_store.c
 *	  Storing, replacing and deleting values in a TOAST table that is an inplace
 *	  table.
 *
 * A new value's chunks are inserted under a base that nobody has.  A value that
 * replaces another one in the same column of its row is written over it: chunks that
 * differ are updated, as any row of an inplace table is, and so is chunk 0;
 * missing ones are inserted, those far too many deleted (KeptChunks).  The row that has the
 * value is locked before (update_toast.c).  If it is not changed after all, that is an error, for
 * its own value has been replaced (toast.c).
 *
 * The number of a change
 *	  A pointer has the change's number modulo CHUNK_ID_STEP.  So a new change
 *	  may not have the number of one that somebody may still ask for.
 *	  These are the versions of chunk 0 whose replacer is not seen by everybody.  All
 *	  are found by walking back from its rows.  The change is the next one
 *	  whose number is free; there is none if the value has been changed very often
 *	  beside an old snapshot.  Then it is stored anew.
 *	  Nor has it a number that the transaction has given in subtransactions, for these may
 *	  have been rolled back (chunk_given.c).
 *	  A standby's queries may need what nobody does here.  If the number is
 *	  that of such a version, and the way to it is there yet, they are told that all
 *	  see its replacer, as when undo is given back.  Where there is no way any more they
 *	  have been told when it went.
 *	  The proof is in chunk_read.c.
 *
 * Lock order: the TOAST table's indexes and the table, heavyweight; then as for any
 * insert, update or delete.  Nothing is locked of the table that the row is in.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/table.h"
#include "access/toast_internals.h"
#include "common/pg_prng.h"
#include "modify/chunk.h"
#include "modify/modify.h"
#include "page/tuple.h"
#include "undo/space.h"
#include "undo/undorel.h"
#include "wal/logical.h"

/* rows inserted together */
#define INSERT_BATCH	16

/*
 * A value that gets shorter keeps so many chunks: it may get longer again, and a chunk that
 * is inserted anew has another place, while that of the deleted one is free after VACUUM
 * only.  Nobody reads chunks behind a value's end.
 */
#define KeptChunks(nchunks)		Max(2 * (nchunks), 4)

/* how far to look for versions that nobody needs here */
#define MAX_CHANGES_BACK	64

/* after that many values one after the other look elsewhere */
#define MAX_BASES_IN_ROW	1000

/* a table in which none is found is as good as full */
#define MAX_BASES_TRIED	2000000

/* changes come round after four thousand millions; a value begins anew before */
#define MAX_CHANGE		((uint32) 0x7FFFFF00)

/* a chunk's row, as it is */
typedef struct OldChunk
{
	ItemPointerData tid;		/* or invalid */
	int32		len;			/* stored */
	bool		same;			/* as the new value's */
} OldChunk;

typedef struct ChunkStore
{
	Relation	toastrel;
	Relation   *indexes;
	int			nindexes;
	int			valid;
	CommandId	cid;
	int			options;
	Oid			base;
	uint32		change;
	bool		is_new;			/* nothing of its base is there */

	/* the new value */
	const char *data;
	int32		size;

	/* the value that is there */
	OldChunk   *old;
	int32		nold;
	int32		old_size;
	uint32		old_change;
	bool		has_old;
	uint32		last_change;
	uint32		needed;			/* numbers that are, a bit each */
	uint32		reachable;		/* ... of versions that nobody needs here */
	TransactionId seen_by_all;	/* replaced the newest of these */

	/* rows to be inserted */
	TupleTableSlot *slots[INSERT_BATCH];
	char	   *bytes[INSERT_BATCH];
	int			nslots;
} ChunkStore;

static void
open_store(ChunkStore *cs, Relation toastrel, int options)
{
	memset(cs, 0, sizeof(*cs));
	cs->toastrel = toastrel;
	cs->options = options;
	cs->cid = GetCurrentCommandId(true);
	cs->valid = toast_open_indexes(toastrel, RowExclusiveLock, &cs->indexes,
								   &cs->nindexes);
}

static void
close_store(ChunkStore *cs)
{
	for (int i = 0; i < INSERT_BATCH && cs->slots[i] != NULL; i++)
		ExecDropSingleTupleTableSlot(cs->slots[i]);

	/* as the server does: the locks stay, for a unique index was looked at */
	toast_close_indexes(cs->indexes, cs->nindexes, NoLock);
}

/* ---------------- what is there ---------------- */

/*
 * Chunk 0's versions: which numbers are taken?  The walk is at the newest.
 */
static void
note_changes(ChunkStore *cs, ChunkVersions *cv, GlobalVisState *vistest)
{
	bool		needed = true;
	int			steps = 0;
	Chunk		chunk;

	do
	{
		TransactionId newer = cv->newer_xid;

		if (!inplace_chunk_parse(cv, cs->base, &chunk))
			break;
		if (needed && TransactionIdIsNormal(newer) &&
			XidIsRemovable(vistest, newer))
		{
			needed = false;
			if (!TransactionIdIsValid(cs->seen_by_all) ||
				TransactionIdFollows(newer, cs->seen_by_all))
				cs->seen_by_all = newer;
		}
		if (needed)
			cs->needed |= (uint32) 1 << ChangeNumber(chunk.change);
		else
			cs->reachable |= (uint32) 1 << ChangeNumber(chunk.change);
		if (++steps >= MAX_CHANGES_BACK)
		{
			if (needed)
				cs->needed = PG_UINT32_MAX;
			else
				cs->reachable = PG_UINT32_MAX;
			break;
		}
	} while (inplace_chunk_next(cv));
}

static void
note_row(ChunkStore *cs, ChunkVersions *cv, Buffer buffer, ItemPointer tid,
		 GlobalVisState *vistest)
{
	Chunk		chunk;
	OldChunk   *old;
	uint32		aborted;

	if (!inplace_chunk_first(cv, cs->toastrel, buffer,
							 ItemPointerGetOffsetNumber(tid), false))
	{
		if (!cv->any_aborted)
			return;
	}
	else
	{
		if (!inplace_chunk_parse(cv, cs->base, &chunk))
			return;
		if (!cv->deleted)
		{
			if (chunk.seq >= cs->nold)
			{
				int32		n = Max(chunk.seq + 1, cs->nold * 2);

				cs->old = cs->old ? repalloc(cs->old, n * sizeof(OldChunk)) :
					palloc(n * sizeof(OldChunk));
				for (int32 i = cs->nold; i < n; i++)
					ItemPointerSetInvalid(&cs->old[i].tid);
				cs->nold = n;
			}
			old = &cs->old[chunk.seq];
			old->tid = *tid;
			old->len = chunk.len;
			old->same = cs->data != NULL && chunk.seq < ChunksOf(cs->size) &&
				chunk.len >= ChunkLength(cs->size, chunk.seq) &&
				memcmp(chunk.data,
					   cs->data + chunk.seq * TOAST_MAX_CHUNK_SIZE,
					   ChunkLength(cs->size, chunk.seq)) == 0;
			if (chunk.seq == 0)
			{
				cs->has_old = true;
				cs->old_size = chunk.value_size;
				cs->old_change = chunk.change;
			}
		}
		if (chunk.seq == 0)
		{
			if (ChangePrecedes(cs->last_change, chunk.change))
				cs->last_change = chunk.change;
			note_changes(cs, cv, vistest);
		}
		if (chunk.seq != 0)
			return;
	}

	/* a change that was rolled back does not come again while it can be seen */
	aborted = cv->aborted_change;
	if (cv->any_aborted && ChangePrecedes(cs->last_change, aborted))
		cs->last_change = aborted;
}

/*
 * Find the rows of the value's chunks; compare them with the new value, if there is
 * one.
 */
static void
find_chunks(ChunkStore *cs)
{
	static ChunkVersions versions;	/* large, and never in use twice */
	GlobalVisState *vistest = GlobalVisTestFor(cs->toastrel);
	IndexScanDesc scan = inplace_chunk_scan(cs->toastrel, cs->indexes[cs->valid],
											cs->base, 0, PG_INT32_MAX);
	Buffer		buffer = InvalidBuffer;
	ItemPointer tid;

	/* a damaged value can be deleted */
	versions.quiet = cs->data == NULL;
	while ((tid = index_getnext_tid(scan, ForwardScanDirection)) != NULL)
	{
		ItemPointerData row = *tid;

		CHECK_FOR_INTERRUPTS();
		buffer = inplace_chunk_page(cs->toastrel, buffer, &row);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		note_row(cs, &versions, buffer, &row, vistest);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}
	if (BufferIsValid(buffer))
		ReleaseBuffer(buffer);
	index_endscan(scan);
}

static bool
base_in_index(Relation toastrel, Relation index, Oid base)
{
	IndexScanDesc scan = inplace_chunk_scan(toastrel, index, base, 0, PG_INT32_MAX);
	bool		found = index_getnext_tid(scan, ForwardScanDirection) != NULL;

	index_endscan(scan);
	return found;
}

static bool
base_in_use(ChunkStore *cs, Oid base)
{
	return base_in_index(cs->toastrel, cs->indexes[cs->valid], base);
}

/*
 * In a TOAST table that is being rewritten, whose values keep their bases?
 */
static bool
base_in_rewritten(Oid toastrelid, Oid base)
{
	Relation	toastrel = table_open(toastrelid, AccessShareLock);
	Relation   *indexes;
	int			nindexes;
	int			valid;
	bool		found;

	valid = toast_open_indexes(toastrel, AccessShareLock, &indexes, &nindexes);
	found = RelationIsInplace(toastrel) &&
		base_in_index(toastrel, indexes[valid], base);
	toast_close_indexes(indexes, nindexes, AccessShareLock);
	table_close(toastrel, AccessShareLock);
	return found;
}

static Oid
new_base(ChunkStore *cs, Relation rel)
{
	Oid			base;
	int			tries = 0;

	do
	{
		CHECK_FOR_INTERRUPTS();
		if (++tries > MAX_BASES_TRIED)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("could not find a free value id in TOAST table \"%s\"",
							RelationGetRelationName(cs->toastrel)),
					 errhint("Consider partitioning its table.")));
		/* those in use are in runs, which the next ids would be one by one */
		base = (tries <= MAX_BASES_IN_ROW ? GetNewObjectId() :
				pg_prng_uint32(&pg_global_prng_state)) << CHUNK_ID_BITS;
	} while (!OidIsValid(base) || base_in_use(cs, base) ||
			 (OidIsValid(rel->rd_toastoid) &&
			  base_in_rewritten(rel->rd_toastoid, base)));
	return base;
}

/*
 * A value of a TOAST table that is being rewritten keeps its id, for pointers to it may
 * be in memory; but the first of a base only.  (That is the newest version's, unless
 * its row was moved.)
 */
static bool
keep_id(ChunkStore *cs, const struct varlena *copied)
{
	struct varatt_external ptr;

	VARATT_EXTERNAL_GET_POINTER(ptr, copied);
	cs->base = ChunkBase(ptr.va_valueid);
	cs->change = ChangeNumber(ptr.va_valueid);
	return OidIsValid(cs->base) && !base_in_use(cs, cs->base);
}

/* ---------------- rows ---------------- */

static inline bool
has_chunk(const ChunkStore *cs, int32 seq)
{
	return seq < cs->nold && ItemPointerIsValid(&cs->old[seq].tid);
}

/*
 * How many bytes the row of a chunk gets.  One that is there gets no shorter.  If it has
 * to get longer it may have to move to another page, and leaves its place until VACUUM: so
 * that this is rare it gets much longer at once.
 */
static int32
stored_length(const ChunkStore *cs, int32 seq)
{
	int32		len = ChunkLength(cs->size, seq);
	int32		oldlen = has_chunk(cs, seq) ? cs->old[seq].len : len;

	if (len <= oldlen)
		return oldlen;
	return seq > 0 ? TOAST_MAX_CHUNK_SIZE : Min(len + len / 2, TOAST_MAX_CHUNK_SIZE);
}

/*
 * Put the row of a chunk into a slot.
 */
static TupleTableSlot *
fill_slot(ChunkStore *cs, int n, int32 seq)
{
	Size		hdrlen = ChunkHeaderSize(seq);
	int32		len = ChunkLength(cs->size, seq);
	int32		stored = stored_length(cs, seq);
	const uint32 unchanged = 0;
	TupleTableSlot *slot;
	char	   *p;

	if (cs->slots[n] == NULL)
	{
		cs->slots[n] = MakeSingleTupleTableSlot(RelationGetDescr(cs->toastrel),
												&TTSOpsVirtual);
		cs->bytes[n] = palloc(VARHDRSZ + ChunkHeaderSize(0) + TOAST_MAX_CHUNK_SIZE);
	}
	slot = cs->slots[n];
	p = cs->bytes[n];
	SET_VARSIZE(p, VARHDRSZ + hdrlen + stored);
	p += VARHDRSZ;
	memcpy(p, seq > 0 && cs->is_new ? &unchanged : &cs->change, sizeof(uint32));
	if (seq == 0)
		memcpy(p + sizeof(uint32), &cs->size, sizeof(int32));
	memcpy(p + hdrlen, cs->data + seq * TOAST_MAX_CHUNK_SIZE, len);
	memset(p + hdrlen + len, 0, stored - len);

	ExecClearTuple(slot);
	slot->tts_values[0] = ObjectIdGetDatum(cs->base);
	slot->tts_values[1] = Int32GetDatum(seq);
	slot->tts_values[2] = PointerGetDatum(cs->bytes[n]);
	memset(slot->tts_isnull, 0, 3 * sizeof(bool));
	ExecStoreVirtualTuple(slot);
	return slot;
}

/* the entries of a row that has come to a TID, as toast_save_datum() makes them */
static void
insert_entries(ChunkStore *cs, TupleTableSlot *slot)
{
	for (int i = 0; i < cs->nindexes; i++)
	{
		Form_pg_index form = cs->indexes[i]->rd_index;

		if (form->indisready)
			index_insert(cs->indexes[i], slot->tts_values, slot->tts_isnull,
						 &slot->tts_tid, cs->toastrel,
						 form->indisunique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO,
						 false, NULL);
	}
}

static void
flush_inserts(ChunkStore *cs)
{
	if (cs->nslots == 0)
		return;
	inplace_multi_insert(cs->toastrel, cs->slots, cs->nslots, cs->cid, cs->options,
						 NULL);
	for (int i = 0; i < cs->nslots; i++)
		insert_entries(cs, cs->slots[i]);
	cs->nslots = 0;
}

static void
insert_chunk(ChunkStore *cs, int32 seq)
{
	(void) fill_slot(cs, cs->nslots++, seq);
	if (cs->nslots == INSERT_BATCH)
		flush_inserts(cs);
}

/* nobody else comes to the chunks of a value whose row is ours */
static void
check_result(ChunkStore *cs, TM_Result result, int32 seq)
{
	if (result != TM_Ok)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("chunk %d of toast value %u in %s was changed though its row is locked",
						seq, cs->base, RelationGetRelationName(cs->toastrel)),
				 errdetail_internal("Result %d.", (int) result)));
}

static void
update_chunk(ChunkStore *cs, int32 seq)
{
	TupleTableSlot *slot;
	ItemPointerData tid = cs->old[seq].tid;
	TM_FailureData tmfd;
	LockTupleMode mode;
	UpdateIndexesResult indexes;

	Assert(cs->nslots == 0);
	slot = fill_slot(cs, 0, seq);

	/* what has come in or gone has pushed what is behind it along */
	inplace_update_is_of_shifted(stored_length(cs, seq), cs->size - cs->old_size);
	check_result(cs, inplace_tuple_update(cs->toastrel, &tid, slot, cs->cid,
										  InvalidSnapshot, InvalidSnapshot, true,
										  &tmfd, &mode, &indexes), seq);
	/* it has been moved */
	if (indexes)
		insert_entries(cs, slot);
}

static void
delete_chunk(ChunkStore *cs, int32 seq)
{
	ItemPointerData tid = cs->old[seq].tid;
	TM_FailureData tmfd;

	check_result(cs, inplace_tuple_delete(cs->toastrel, &tid, cs->cid,
										  InvalidSnapshot, InvalidSnapshot, true,
										  &tmfd, false), seq);
}

/* ---------------- values ---------------- */

/*
 * The change that the value comes to have; false if there is none.
 */
static bool
choose_change(ChunkStore *cs)
{
	uint32		last = cs->last_change;
	uint32		given = inplace_given_numbers(RelationGetRelid(cs->toastrel),
											  cs->base, &last);
	uint32		bit;

	for (uint32 change = last + 1; change < last + CHUNK_ID_STEP; change++)
	{
		bit = (uint32) 1 << ChangeNumber(change);
		if ((cs->needed | given) & bit)
			continue;
		if ((cs->reachable & bit) && RelationNeedsWAL(cs->toastrel))
			UndoTellStandbys(cs->toastrel, cs->seen_by_all, true);
		cs->change = change;
		return last < MAX_CHANGE;
	}
	return false;
}

/*
 * Write the value over the one that "oldptr" points to, which is the newest of
 * its base.  False if that cannot be, with nothing done.
 */
static bool
replace_value(ChunkStore *cs, const struct varatt_external *oldptr)
{
	int32		nchunks = ChunksOf(cs->size);

	cs->base = ChunkBase(oldptr->va_valueid);
	find_chunks(cs);
	if (!cs->has_old || cs->old_size != VARATT_EXTERNAL_GET_EXTSIZE(*oldptr) ||
		ChangeNumber(cs->old_change) != ChangeNumber(oldptr->va_valueid) ||
		!choose_change(cs))
		return false;

	for (int32 seq = 0; seq < nchunks; seq++)
		if (has_chunk(cs, seq) && (seq == 0 || !cs->old[seq].same))
			update_chunk(cs, seq);
	for (int32 seq = 0; seq < nchunks; seq++)
		if (!has_chunk(cs, seq))
			insert_chunk(cs, seq);
	flush_inserts(cs);
	for (int32 seq = KeptChunks(nchunks); seq < cs->nold; seq++)
		if (has_chunk(cs, seq))
			delete_chunk(cs, seq);
	return true;
}

/*
 * The bytes that are stored of a value, and what the pointer says about them; as
 * toast_save_datum() has it.
 */
static void
describe_value(ChunkStore *cs, Datum value, struct varatt_external *ptr)
{
	struct varlena *v = (struct varlena *) DatumGetPointer(value);

	Assert(!VARATT_IS_EXTERNAL(v));
	if (VARATT_IS_SHORT(v))
	{
		cs->data = VARDATA_SHORT(v);
		cs->size = VARSIZE_SHORT(v) - VARHDRSZ_SHORT;
		ptr->va_rawsize = cs->size + VARHDRSZ;
		ptr->va_extinfo = cs->size;
	}
	else if (VARATT_IS_COMPRESSED(v))
	{
		cs->data = VARDATA(v);
		cs->size = VARSIZE(v) - VARHDRSZ;
		ptr->va_rawsize = VARDATA_COMPRESSED_GET_EXTSIZE(v) + VARHDRSZ;
		VARATT_EXTERNAL_SET_SIZE_AND_COMPRESS_METHOD(*ptr, cs->size,
													 VARDATA_COMPRESSED_GET_COMPRESS_METHOD(v));
	}
	else
	{
		cs->data = VARDATA(v);
		cs->size = VARSIZE(v) - VARHDRSZ;
		ptr->va_rawsize = VARSIZE(v);
		ptr->va_extinfo = cs->size;
	}
}

Datum
inplace_chunks_store(Relation rel, Relation toastrel, Datum value,
					 const struct varlena *oldvalue,
					 const struct varlena *copied, int options)
{
	ChunkStore	cs;
	struct varatt_external ptr;
	struct varatt_external oldptr;
	struct varlena *result;
	bool		replaced = false;

	open_store(&cs, toastrel, options);
	describe_value(&cs, value, &ptr);

	/* in a rewrite the new TOAST table gets the old one's OID */
	ptr.va_toastrelid = OidIsValid(rel->rd_toastoid) ? rel->rd_toastoid :
		RelationGetRelid(toastrel);

	if (oldvalue != NULL)
	{
		VARATT_EXTERNAL_GET_POINTER(oldptr, oldvalue);
		replaced = oldptr.va_toastrelid == ptr.va_toastrelid &&
			replace_value(&cs, &oldptr);
	}
	if (!replaced)
	{
		if (UndoKindOf(toastrel) != UNDO_TEMP)
			UndoNoteLargeValues(UndoKindOf(toastrel));
		cs.is_new = true;
		cs.nold = 0;
		if (copied == NULL || !keep_id(&cs, copied))
		{
			cs.base = new_base(&cs, rel);
			cs.change = 0;
		}
		for (int32 seq = 0; seq < ChunksOf(cs.size); seq++)
			insert_chunk(&cs, seq);
		flush_inserts(&cs);
	}
	ptr.va_valueid = cs.base + ChangeNumber(cs.change);
	if (!OidIsValid(rel->rd_toastoid))
		inplace_note_given(RelationGetRelid(toastrel), ptr.va_valueid, cs.change,
						   cs.data, cs.size);

	/* decoders come to know it as a value of its own, with all its chunks */
	if (RelationIsLogicallyLogged(toastrel) && !(options & TABLE_INSERT_NO_LOGICAL))
		inplace_log_value(toastrel, ptr.va_valueid, cs.data, cs.size,
						  TOAST_MAX_CHUNK_SIZE);
	close_store(&cs);

	result = (struct varlena *) palloc(TOAST_POINTER_SIZE);
	SET_VARTAG_EXTERNAL(result, VARTAG_ONDISK);
	memcpy(VARDATA_EXTERNAL(result), &ptr, sizeof(ptr));
	return PointerGetDatum(result);
}

void
inplace_chunks_delete(Relation toastrel, Oid valueid, bool unused)
{
	ChunkStore	cs;

	open_store(&cs, toastrel, 0);
	cs.base = ChunkBase(valueid);
	find_chunks(&cs);

	/* a command does not see what it has inserted: this is as a later one */
	if (unused)
		cs.cid++;
	for (int32 seq = 0; seq < cs.nold; seq++)
		if (has_chunk(&cs, seq))
			delete_chunk(&cs, seq);
	close_store(&cs);
}

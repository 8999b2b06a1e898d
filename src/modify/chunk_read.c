/*-------------------------------------------------------------------------
 *
 * chunk_read.c
 *	  Reading values from a TOAST table that is an inplace table.
 *
 * A pointer has a value's base and the number k of a change of it, modulo
 * CHUNK_ID_STEP; the format is in chunk.h.  It is followed so:
 *	- of chunk 0, the newest version whose change has that number, and whose size is the
 *	  pointer's, tells the change c that is meant;
 *	- of every other chunk, the newest version whose change is not after c.
 * Versions that were rolled back are passed over.  No snapshot is asked.  A chunk
 * may have been at several TIDs: it is moved as other rows are, and a chunk that was
 * deleted when the value got shorter may be inserted again.  All entries of the
 * index for the chunk are looked at, and the latest change counts.
 *
 * Proof that this finds what the row had
 *	  1. Who changes a value has its row locked, or has made the row's newest
 *		 version.  So there is one at a time with changes that have not ended, and the
 *		 versions of a chunk that were not rolled back are in the order of changes.
 *		 A new change comes after all that were not rolled back, and after those
 *		 rolled back that chunk 0 shows still.
 *	  2. Chunk 0 has a version for each change, the others have one for each that changed
 *		 them.  So what the chunks were at change c is the newest of each that is
 *		 not after c.  A version rolled back may stand on a page until somebody
 *		 restores the row, and its change may come again: therefore the commit log is
 *		 asked.  Below a committed version all are.
 *	  3. The version of a row that is read was made by M and replaced by R.  Its chunks at
 *		 that change were replaced by R or later.  Whoever may read the row's version
 *		 does not see R (or R is his own, or has not ended): his snapshot holds
 *		 back the undo of R's changes and of all later ones, those of the TOAST table as
 *		 well.  That does not depend on whether he sees M: a rewrite of the
 *		 table stores values under a newer xid than their rows have.  For that reason no
 *		 versions of a TOAST table are squeezed, nor are its rows pruned between
 *		 snapshots, which ask what a snapshot sees.
 *	  4. The number of a new change is none that a version of chunk 0 has which
 *		 somebody may need: one whose replacer somebody may not see (chunk_store.c).
 *		 Such a version is on the way from the row's page, so the writer meets
 *		 it.  If all numbers are taken the value is stored anew.  So the
 *		 newest version with the number is the one meant.  A version that nobody
 *		 needs here may be needed on a standby.  Its queries are told to end before
 *		 its number is used again, unless they have been told already when the way
 *		 there was cut off.
 *	  5. A trigger's OLD, a cursor, a prepared transaction: all that is our own and has
 *		 not ended stays in undo.  Of a value stored by a subtransaction that was rolled
 *		 back, which only our own may ask for: chunk_given.c.  A row that was locked FOR
 *		 KEY SHARE and updated by others since: our snapshot does not see these.
 *	  6. A slice without chunk 0 is read alone first.  Chunks that show a committed change
 *		 0, and nothing on top, have been so at every change of the value: each
 *		 change of a chunk has a number above, also where the value is a copy that kept
 *		 its id.
 *	  Who has no right to a version, as it is nobody's any more, may find that it
 *	  is missing, or (if number and size have come again) bytes of a later one.
 *	  Keys of index entries are computed so; those of such versions do not matter.
 *
 * With a page locked nothing is done but walking along undo and copying.
 *
 * Lock order: index page (pinned only) -> chunk's page -> undo pages.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/toast_internals.h"
#include "modify/chunk.h"
#include "page/page.h"
#include "page/tuple.h"
#include "page/whose_file.h"
#include "row/visibility.h"
#include "row/walk.h"
#include "utils/fmgroids.h"
#include "vacuum/prune.h"

bool
inplace_chunk_first(ChunkVersions *cv, Relation toastrel, Buffer buffer,
					OffsetNumber off, bool with_aborted)
{
	Page		page = RowPage(toastrel, buffer);
	ItemId		lp;
	InplaceTupleHeader tup;

	cv->any_aborted = false;
	cv->with_aborted = with_aborted;
	cv->is_aborted = false;
	cv->deleted = false;
	if (off > PageGetMaxOffsetNumber(page))
		return false;
	lp = PageGetItemId(page, off);
	if (!ItemIdIsNormal(lp))
		return false;
	tup = (InplaceTupleHeader) PageGetItem(page, lp);

	/* the walk looks at copies: who comes next finds the answer on the page */
	(void) inplace_xid_status(toastrel, tup, buffer);
	inplace_walk_start(&cv->walk, toastrel, BufferGetBlockNumber(buffer), off,
					   tup, tup, inplace_tuple_len(tup, ItemIdGetLength(lp)),
					   cv->space);
	cv->walk.may_dangle = true;
	cv->started = false;
	cv->settled = false;
	cv->newer_xid = InvalidTransactionId;
	cv->newer_frozen = false;
	return inplace_chunk_next(cv);
}

/* for writers: a change that was rolled back is not to come again */
static void
note_aborted(ChunkVersions *cv)
{
	InplaceTupleHeaderData *hdr = &cv->walk.hdr;
	Chunk		chunk;

	hdr->t_infomask |= IP_ABORTED;
	if (!(hdr->t_infomask & IP_DELETED) &&
		inplace_chunk_parse(cv, InvalidOid, &chunk) &&
		(!cv->any_aborted || ChangePrecedes(cv->aborted_change, chunk.change)))
	{
		cv->any_aborted = true;
		cv->aborted_change = chunk.change;
	}
}

bool
inplace_chunk_next(ChunkVersions *cv)
{
	ChainWalk  *walk = &cv->walk;

	for (;;)
	{
		XidStatus	status;

		cv->is_aborted = false;
		if (!cv->started)
			cv->started = true;
		else
		{
			if (!(walk->hdr.t_infomask & IP_ABORTED))
			{
				cv->newer_xid = HdrXid(&walk->hdr);
				cv->newer_frozen = (walk->hdr.t_infomask & IP_FROZEN) != 0;
			}
			if (cv->newer_frozen || !inplace_walk_on(walk, true, NULL, NULL))
				return false;
		}

		if (!cv->settled)
		{
			status = inplace_copied_xid_status(walk->rel, &walk->hdr,
											   walk->blk, walk->off);
			if (status == XID_ABORTED)
			{
				note_aborted(cv);
				if (!cv->with_aborted || (walk->hdr.t_infomask & IP_DELETED))
					continue;
				cv->is_aborted = true;
				return true;
			}
			cv->settled = status == XID_COMMITTED;
		}
		if (!(walk->hdr.t_infomask & IP_DELETED))
			return true;
		cv->deleted = true;
	}
}

static void
report_bad_chunk(const ChunkVersions *cv, const Chunk *chunk)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("invalid chunk in row (%u,%u) of relation \"%s\"",
					cv->walk.blk, cv->walk.off, RelationGetRelationName(cv->walk.rel)),
			 errdetail("Its number is %d, its length %d.", chunk->seq, chunk->len)));
}

/* can there be such a chunk? */
static bool
is_sane_chunk(const Chunk *chunk)
{
	return chunk->seq >= 0 && chunk->seq < ChunksOf(MaxAllocSize) &&
		chunk->len >= 0 && chunk->len <= TOAST_MAX_CHUNK_SIZE;
}

/*
 * The chunk in the version that the walk has come to.  False if it is none of the
 * value's (InvalidOid: of any).  A damaged one of the value's on its page is an error, or
 * none if cv->quiet.  (What undo makes of a version that is nobody's may be anything.)
 */
bool
inplace_chunk_parse(ChunkVersions *cv, Oid base, Chunk *chunk)
{
	InplaceTupleHeader tup = cv->walk.tuple;
	Datum		values[3];
	bool		isnull[3];
	uint32		off = HdrSize(tup);
	struct varlena *v;
	const char *p;

	if (HdrNatts(tup) != 3 || HdrHasNull(tup) ||
		inplace_deform(RelationGetDescr(cv->walk.rel), tup, cv->walk.len, 0, &off,
					   3, values, isnull, CurrentMemoryContext) < 0)
		return false;
	if (OidIsValid(base) && DatumGetObjectId(values[0]) != base)
		return false;
	v = (struct varlena *) DatumGetPointer(values[2]);
	if (VARATT_IS_EXTERNAL(v) || VARATT_IS_COMPRESSED(v))
		return false;

	chunk->seq = DatumGetInt32(values[1]);
	p = VARDATA_ANY(v);
	chunk->len = (int32) VARSIZE_ANY_EXHDR(v) - (int32) ChunkHeaderSize(chunk->seq);
	if (!is_sane_chunk(chunk))
	{
		if (OidIsValid(base) && !cv->quiet && cv->walk.cur < 0)
			report_bad_chunk(cv, chunk);
		return false;
	}
	memcpy(&chunk->change, p, sizeof(uint32));
	if (chunk->seq == 0)
		memcpy(&chunk->value_size, p + sizeof(uint32), sizeof(int32));
	chunk->data = p + ChunkHeaderSize(chunk->seq);
	return true;
}

IndexScanDesc
inplace_chunk_scan(Relation toastrel, Relation index, Oid base, int32 first, int32 last)
{
	ScanKeyData keys[3];
	IndexScanDesc scan;

	ScanKeyInit(&keys[0], (AttrNumber) 1, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(base));
	ScanKeyInit(&keys[1], (AttrNumber) 2, BTGreaterEqualStrategyNumber, F_INT4GE,
				Int32GetDatum(first));
	ScanKeyInit(&keys[2], (AttrNumber) 2, BTLessEqualStrategyNumber, F_INT4LE,
				Int32GetDatum(last));

	/*
	 * The rows are looked at by their TIDs.  A snapshot that is not MVCC has
	 * the index page stay pinned meanwhile.
	 */
	scan = IndexBeginScan(toastrel, index, SnapshotAny, 3, 0);
	index_rescan(scan, keys, 3, NULL, 0);
	return scan;
}

/*
 * Pin the page of a row that such a scan has come to, instead of that of the one before.
 * Dead rows are taken off it first, as by any scan that comes to a page; but not by a
 * transaction which may ask for what it has rolled back (chunk_given.c).
 */
Buffer
inplace_chunk_page(Relation toastrel, Buffer buffer, ItemPointer tid)
{
	BlockNumber blk = ItemPointerGetBlockNumber(tid);

	if (BufferIsValid(buffer) && BufferGetBlockNumber(buffer) == blk)
		return buffer;
	buffer = ReleaseAndReadBuffer(buffer, toastrel, blk);
	if (!inplace_any_given())
		inplace_page_prune_opt(toastrel, buffer);
	return buffer;
}

/* a change whose subtransaction was rolled back stands on so many others at most */
#define MAX_XIDS	64

/* a value, or part of it, being read */
typedef struct ValueRead
{
	Relation	toastrel;
	Oid			base;
	uint32		number;			/* of the change meant */
	int32		size;			/* of the whole value */
	int32		start;			/* of the slice */
	int32		end;
	char	   *result;			/* of the slice, or NULL */
	bool		found_change;
	uint32		change;
	int32		seq;			/* the chunk found last, */
	uint32		seq_change;		/* ... its change */
	ChunkVersions *cv;
	bool		unchanged_only; /* chunks as they were first stored, */
	bool		changed;		/* ... and one is not, or may be not */

	/* of a value that a subtransaction of our own has stored */
	const GivenValue *given;
	bool		with_aborted;	/* it may be among what was rolled back, */
	TransactionId xids[MAX_XIDS];	/* ... by these */
	int			nxids;
} ValueRead;

/* so much of the chunk as is in the slice */
static void
copy_chunk(ValueRead *vr, const Chunk *chunk)
{
	int32		begin = chunk->seq * TOAST_MAX_CHUNK_SIZE;
	int32		from = Max(begin, vr->start);
	int32		to = Min(begin + chunk->len, vr->end);

	if (vr->result != NULL && from < to)
		memcpy(vr->result + (from - vr->start), chunk->data + (from - begin),
			   to - from);
}

/*
 * Is this version the one meant, as far as can be told from this row?
 */
static bool
is_meant(const ValueRead *vr, const Chunk *chunk)
{
	if (chunk->seq == 0)
		return ChangeNumber(chunk->change) == vr->number &&
			chunk->value_size == vr->size &&
			(vr->given == NULL || chunk->change == vr->given->change);
	if (ChangePrecedes(vr->change, chunk->change))
		return false;
	if (vr->cv->is_aborted)
	{
		for (int i = 0; i < vr->nxids; i++)
			if (vr->xids[i] == vr->cv->walk.hdr.t_xid)
				return true;
		return false;
	}
	return true;
}

/*
 * The walk is at a version of chunk 0 with the change meant, or older ones: which
 * transactions of those rolled back was it made by, and on top of?
 */
static void
note_xids(ValueRead *vr)
{
	Chunk		chunk;

	do
	{
		if (!inplace_chunk_parse(vr->cv, vr->base, &chunk) || chunk.seq != 0 ||
			(!vr->cv->is_aborted && chunk.change != vr->given->change))
			return;
		if (vr->cv->is_aborted && !ChangePrecedes(vr->given->change, chunk.change) &&
			vr->nxids < MAX_XIDS)
			vr->xids[vr->nxids++] = vr->cv->walk.hdr.t_xid;
	} while (inplace_chunk_next(vr->cv));
}

/*
 * Is the chunk as it was when the value was first stored, with nothing rolled back on top?
 */
static bool
is_unchanged(const ChunkVersions *cv, const Chunk *chunk)
{
	return cv->settled && !cv->deleted && !cv->any_aborted && chunk->change == 0;
}

/*
 * Look at the row of a chunk, whose page is locked.
 */
static void
read_row(ValueRead *vr, Buffer buffer, OffsetNumber off)
{
	ChunkVersions *cv = vr->cv;
	Chunk		chunk;

	if (!inplace_chunk_first(cv, vr->toastrel, buffer, off, vr->with_aborted))
	{
		vr->changed |= cv->deleted || cv->any_aborted;
		return;
	}
	if (vr->unchanged_only &&
		!(inplace_chunk_parse(cv, vr->base, &chunk) && is_unchanged(cv, &chunk)))
	{
		vr->changed = true;
		return;
	}
	do
	{
		if (!inplace_chunk_parse(cv, vr->base, &chunk))
			return;
		if (chunk.seq != 0 && !vr->found_change)
			return;
		if (is_meant(vr, &chunk))
			break;
	} while (inplace_chunk_next(cv));
	if (!is_meant(vr, &chunk))
		return;

	/* entries come in the order of chunks */
	if (chunk.len < ChunkLength(vr->size, chunk.seq) ||
		!(chunk.seq == vr->seq + 1 ||
		  (chunk.seq == vr->seq && ChangePrecedes(vr->seq_change, chunk.change))))
		return;
	vr->seq = chunk.seq;
	vr->seq_change = chunk.change;
	if (chunk.seq == 0)
	{
		vr->found_change = true;
		vr->change = chunk.change;
	}
	copy_chunk(vr, &chunk);
	if (vr->with_aborted && chunk.seq == 0)
		note_xids(vr);
}

/*
 * Read chunks first to last; returns the first that is not there, or -1.
 */
static int32
read_chunks(ValueRead *vr, Relation index, int32 first, int32 last)
{
	IndexScanDesc scan = inplace_chunk_scan(vr->toastrel, index, vr->base,
											first, last);
	Buffer		buffer = InvalidBuffer;
	ItemPointer tid;

	vr->seq = first - 1;
	while ((tid = index_getnext_tid(scan, ForwardScanDirection)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		buffer = inplace_chunk_page(vr->toastrel, buffer, tid);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		read_row(vr, buffer, ItemPointerGetOffsetNumber(tid));
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}
	if (BufferIsValid(buffer))
		ReleaseBuffer(buffer);
	index_endscan(scan);
	return vr->seq == last ? -1 : vr->seq + 1;
}

/*
 * Read the chunks if they are as they were first stored: then they were so at every
 * change, and chunk 0 need not be asked which is meant.  (Of a change of our own that was
 * rolled back the page tells nothing.)
 */
static bool
read_unchanged(ValueRead *vr, Relation index, int32 first, int32 last)
{
	bool		found;

	if (vr->given != NULL)
		return false;
	vr->unchanged_only = true;
	vr->found_change = true;
	vr->change = 0;
	vr->changed = false;
	found = read_chunks(vr, index, first, last) < 0 && !vr->changed;
	vr->unchanged_only = false;
	vr->found_change = false;
	return found;
}

/*
 * Read the slice; returns the first chunk that is not there, or -1.
 */
static int32
read_slice(ValueRead *vr, Relation index)
{
	int32		first = vr->start / TOAST_MAX_CHUNK_SIZE;
	int32		last = (vr->end - 1) / TOAST_MAX_CHUNK_SIZE;
	int32		missing = -1;

	if (first > 0 && read_unchanged(vr, index, first, last))
		return -1;
	if (first > 0)
		missing = read_chunks(vr, index, 0, 0);
	if (missing < 0)
		missing = read_chunks(vr, index, first, last);
	return missing;
}

/*
 * Read the whole value, and of it the slice if its bytes are those given: *same.
 * Returns the first chunk that is not there, or -1.
 */
static int32
read_whole(const ValueRead *vr, Relation index, bool with_aborted, bool *same)
{
	ValueRead	whole = *vr;
	int32		missing;

	whole.start = 0;
	whole.end = vr->size;
	whole.result = palloc_extended(vr->size, MCXT_ALLOC_HUGE);
	whole.with_aborted = with_aborted;
	missing = read_slice(&whole, index);
	*same = missing < 0 && inplace_is_given(vr->given, whole.result, vr->size);
	if (*same && vr->result != NULL)
		memcpy(vr->result, whole.result + vr->start, vr->end - vr->start);
	pfree(whole.result);
	return missing;
}

/*
 * The same for a value of a subtransaction of our own, which has been rolled back,
 * maybe.  If somebody has restored a row of its chunks since, another session may
 * have given its number again, to a value of the same size.
 */
static int32
read_given(const ValueRead *vr, Relation index)
{
	bool		same;
	int32		missing = read_whole(vr, index, false, &same);

	if (!same)
		(void) read_whole(vr, index, true, &same);
	if (same)
		return -1;
	if (missing < 0)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent update"),
				 errdetail("A large value in %s was replaced after a subtransaction that had stored it was rolled back.",
						   RelationGetRelationName(vr->toastrel))));
	return missing;
}

static int32
read_value(Relation toastrel, Oid valueid, int32 size, int32 start, int32 len,
		   char *result, bool quiet)
{
	static ChunkVersions versions;	/* large, and never in use twice */
	int32		missing;
	Relation   *indexes;
	int			nindexes;
	int			valid;
	ValueRead	vr = {
		.toastrel = toastrel,
		.base = ChunkBase(valueid),
		.number = ChangeNumber(valueid),
		.size = size,
		.start = start,
		.end = start + len,
		.result = result,
		.cv = &versions,
		.given = inplace_given_value(RelationGetRelid(toastrel), valueid)
	};

	versions.quiet = quiet;
	valid = toast_open_indexes(toastrel, AccessShareLock, &indexes, &nindexes);
	if (vr.given != NULL && inplace_given_rolled_back())
		missing = read_given(&vr, indexes[valid]);
	else
		missing = read_slice(&vr, indexes[valid]);
	toast_close_indexes(indexes, nindexes, AccessShareLock);
	return missing;
}

/*
 * The server's detoasting.  Operator classes may do that with an index page locked, as
 * BRIN's do: it is no business of ours then.  (Our own calls are doors: no_lock.h.)
 */
void
inplace_fetch_toast_slice(Relation toastrel, Oid valueid, int32 attrsize,
						  int32 sliceoffset, int32 slicelength,
						  struct varlena *result)
{
	int32		missing;
	bool		outer;

	InplaceRequirePreload();
	if (slicelength <= 0)
		return;

	/* what may be needed is held back by one */
	if (!HaveRegisteredOrActiveSnapshot())
		elog(ERROR, "cannot fetch toast data without an active snapshot");

	outer = NoLockEnterQuery();
	inplace_check_toast_table(toastrel);
	missing = read_value(toastrel, valueid, attrsize, sliceoffset, slicelength,
						 VARDATA(result), false);
	NoLockLeaveQuery(outer);
	if (missing >= 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg_internal("missing chunk number %d for toast value %u in %s",
								 missing, valueid,
								 RelationGetRelationName(toastrel))));
}

/*
 * A value as it is stored, in memory; NULL if it is not there any more.
 */
struct varlena *
inplace_fetch_value(Relation toastrel, const struct varlena *pointer)
{
	struct varatt_external ptr;
	struct varlena *result;
	int32		size;

	VARATT_EXTERNAL_GET_POINTER(ptr, pointer);
	size = VARATT_EXTERNAL_GET_EXTSIZE(ptr);
	result = (struct varlena *) palloc(size + VARHDRSZ);
	if (VARATT_EXTERNAL_IS_COMPRESSED(ptr))
		SET_VARSIZE_COMPRESSED(result, size + VARHDRSZ);
	else
		SET_VARSIZE(result, size + VARHDRSZ);
	if (read_value(toastrel, ptr.va_valueid, size, 0, size, VARDATA(result),
				   false) < 0)
		return result;
	pfree(result);
	return NULL;
}

int32
inplace_missing_chunk(Relation toastrel, Oid valueid, int32 attrsize)
{
	return read_value(toastrel, valueid, attrsize, 0, attrsize, NULL, true);
}

/*-------------------------------------------------------------------------
 *
 * logical.c
 *	  What logical decoding needs of a change, beside what redo needs.
 *
 * A decoder has neither the page nor, while it reads WAL, the catalog: it must
 * find whole rows in the record, as heap tuples.  So with wal_level = logical
 * a change's record also carries the new row, and as much of the old one as
 * the table's replica identity asks for.  Other records stay as they are.
 *
 * All this is done outside critical sections.  Values of the new row that are
 * in the TOAST table stay there: the decoder has seen their chunks, or they
 * have not changed.  Those of the old row are fetched, for they may be gone when
 * the record is decoded.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/heapam_xlog.h"
#include "access/heaptoast.h"
#include "access/toast_internals.h"
#include "catalog/pg_type.h"
#include "page/protect.h"
#include "page/tuple.h"
#include "rmgr.h"
#include "utils/memutils.h"
#include "utils/relcache.h"
#include "wal/logical.h"
#include "wal/wal.h"

/* of a value stored in a TOAST table */
#define CHUNKS_IN_RECORD	16

/*
 * Values are put together in a context of their own: a statement may change many
 * rows in one context.
 */
static MemoryContext
enter_scratch(void)
{
	return MemoryContextSwitchTo(AllocSetContextCreate(CurrentMemoryContext,
													   "inplace logical row",
													   ALLOCSET_SMALL_SIZES));
}

static void
leave_scratch(MemoryContext outer)
{
	MemoryContext scratch = MemoryContextSwitchTo(outer);

	MemoryContextDelete(scratch);
}

/*
 * All attributes of a row, those that it does not have from the catalog.  tid is
 * for errors, or NULL.
 */
static void
deform_row(TupleDesc desc, InplaceTupleHeader tup, const ItemPointerData *tid,
		   Datum *values, bool *isnull)
{
	int			got;

	got = inplace_deform_first(desc, tup, desc->natts, values, isnull,
							   CurrentMemoryContext, tid);
	for (; got < desc->natts; got++)
		values[got] = getmissingattr(desc, got + 1, &isnull[got]);
}

/*
 * Blanks that rows are stored without can make a heap tuple larger than one
 * can be; compressed they take no space to speak of.
 */
static void
compress_blanks(TupleDesc desc, Datum *values, const bool *isnull)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		Datum		compressed;

		if (isnull[i] || att->atttypid != BPCHAROID ||
			att->attstorage == TYPSTORAGE_PLAIN ||
			!VARATT_IS_4B_U(DatumGetPointer(values[i])))
			continue;
		compressed = toast_compress_datum(values[i], TOAST_PGLZ_COMPRESSION);
		if (DatumGetPointer(compressed) != NULL)
			values[i] = compressed;
	}
}

/* length (4 bytes), xl_heap_header, null bitmap and data */
static void
append_heap_tuple(StringInfo buf, HeapTuple htup)
{
	xl_heap_header hdr;
	uint32		len = SizeOfHeapHeader + htup->t_len - SizeofHeapTupleHeader;

	hdr.t_infomask2 = htup->t_data->t_infomask2;
	/* what is of a transaction, or of a composite datum, is not of a row */
	hdr.t_infomask = htup->t_data->t_infomask & ~HEAP_XACT_MASK;
	hdr.t_hoff = htup->t_data->t_hoff;
	appendBinaryStringInfo(buf, (char *) &len, sizeof(len));
	appendBinaryStringInfo(buf, (char *) &hdr, SizeOfHeapHeader);
	appendBinaryStringInfo(buf, (char *) htup->t_data + SizeofHeapTupleHeader,
						   htup->t_len - SizeofHeapTupleHeader);
}

void
inplace_logical_append_new(StringInfo buf, Relation rel, InplaceTupleHeader tup)
{
	TupleDesc	desc = RelationGetDescr(rel);
	MemoryContext outer = enter_scratch();
	Datum	   *values = palloc(desc->natts * sizeof(Datum));
	bool	   *isnull = palloc(desc->natts * sizeof(bool));

	deform_row(desc, tup, NULL, values, isnull);
	if (heap_compute_data_size(desc, values, isnull) > TOAST_TUPLE_THRESHOLD)
		compress_blanks(desc, values, isnull);
	append_heap_tuple(buf, heap_form_tuple(desc, values, isnull));
	leave_scratch(outer);
}

/*
 * The old row, or its key, if the replica identity asks for it.  key_required
 * is false for an update that leaves the key as it is: then the key is
 * in the new row, unless it is in the TOAST table.
 */
static uint8
append_old(StringInfo buf, Relation rel, InplaceTupleHeader tup,
		   const ItemPointerData *tid, const Bitmapset *key, bool key_required)
{
	TupleDesc	desc = RelationGetDescr(rel);
	bool		full = rel->rd_rel->relreplident == REPLICA_IDENTITY_FULL;
	MemoryContext outer;
	Datum	   *values;
	bool	   *isnull;
	HeapTuple	htup;

	if (rel->rd_rel->relreplident == REPLICA_IDENTITY_NOTHING ||
		(!full && bms_is_empty(key)))
		return 0;

	outer = enter_scratch();
	values = palloc(desc->natts * sizeof(Datum));
	isnull = palloc(desc->natts * sizeof(bool));
	deform_row(desc, tup, tid, values, isnull);
	for (int i = 0; i < desc->natts && !full; i++)
	{
		if (!bms_is_member(i + 1 - FirstLowInvalidHeapAttributeNumber, key))
			isnull[i] = true;
		else if (!isnull[i] && TupleDescAttr(desc, i)->attlen == -1 &&
				 VARATT_IS_EXTERNAL(DatumGetPointer(values[i])))
			key_required = true;
	}
	if (!full && !key_required)
	{
		leave_scratch(outer);
		return 0;
	}

	htup = heap_form_tuple(desc, values, isnull);
	if (HeapTupleHasExternal(htup))
		htup = toast_flatten_tuple(htup, desc);
	append_heap_tuple(buf, htup);
	leave_scratch(outer);
	return full ? XLIP_LOGICAL_OLD : XLIP_LOGICAL_KEY;
}

bool
inplace_logical_prepare(LogicalChange *lc, Relation rel,
						InplaceTupleHeader newtup, InplaceTupleHeader oldtup,
						const ItemPointerData *oldtid, const Bitmapset *key, bool key_required)
{
	StringInfoData buf;

	if (!RowsAreDecoded(rel))
		return false;
	initStringInfo(&buf);
	lc->what = 0;
	if (newtup)
	{
		inplace_logical_append_new(&buf, rel, newtup);
		lc->what |= XLIP_LOGICAL_NEW;
	}
	if (oldtup)
		lc->what |= append_old(&buf, rel, oldtup, oldtid, key,
							   key_required);
	lc->tuples = buf.data;
	lc->len = buf.len;
	return true;
}

void
inplace_logical_set_speculative(LogicalChange *lc)
{
	lc->what |= XLIP_LOGICAL_SPECULATIVE;
}

void
inplace_logical_set_rows(LogicalChange *lc, char *tuples, Size len, bool more)
{
	lc->what = XLIP_LOGICAL_NEW | (more ? XLIP_LOGICAL_MORE : 0);
	lc->tuples = tuples;
	lc->len = len;
}

/*
 * Tell decoders how a speculative insertion ended; nothing is to be replayed.
 */
void
inplace_log_speculative_end(Relation rel, bool succeeded)
{
	xl_ip_logical rec;

	if (!RowsAreDecoded(rel))
		return;
	rec.locator = RelLocator(rel);
	rec.what = succeeded ? XLIP_SPECULATION_CONFIRMED : XLIP_SPECULATION_WITHDRAWN;
	XLogBeginInsert();
	XLogRegisterData((char *) &rec, SizeOfIpLogical);
	XLogSetRecordFlags(XLOG_INCLUDE_ORIGIN);
	(void) inplace_xlog_insert(XLOG_IP_LOGICAL);
}

/*
 * The chunks of a value, in the form that they have in a heap TOAST table.  Those
 * that an update has left as they were are told as well: a decoder puts a value
 * together from what it has seen of it.
 */
void
inplace_log_value(Relation toastrel, Oid valueid, const char *data, int32 size,
				  int32 chunk_len)
{
	TupleDesc	desc = RelationGetDescr(toastrel);
	MemoryContext outer = enter_scratch();
	char	   *chunk = palloc(VARHDRSZ + chunk_len);
	int32		seq = 0;

	for (int32 pos = 0; pos < size;)
	{
		xl_ip_logical rec;
		StringInfoData buf;

		initStringInfo(&buf);
		for (int i = 0; i < CHUNKS_IN_RECORD && pos < size; i++, seq++)
		{
			int32		len = Min(chunk_len, size - pos);
			Datum		values[3] = {ObjectIdGetDatum(valueid), Int32GetDatum(seq),
			PointerGetDatum(chunk)};
			bool		isnull[3] = {false, false, false};
			HeapTuple	htup;

			SET_VARSIZE(chunk, VARHDRSZ + len);
			memcpy(VARDATA(chunk), data + pos, len);
			htup = heap_form_tuple(desc, values, isnull);
			append_heap_tuple(&buf, htup);
			heap_freetuple(htup);
			pos += len;
		}
		rec.locator = RelLocator(toastrel);
		rec.what = XLIP_VALUE_CHUNKS;
		XLogBeginInsert();
		XLogRegisterData((char *) &rec, SizeOfIpLogical);
		XLogRegisterData(buf.data, buf.len);
		XLogSetRecordFlags(XLOG_INCLUDE_ORIGIN);
		(void) inplace_xlog_insert(XLOG_IP_LOGICAL);
		pfree(buf.data);
	}
	leave_scratch(outer);
}

/*-------------------------------------------------------------------------
 *
 * slot.c
 *	  The tuple table slot of inplace tables.
 *
 * A slot is empty, virtual (tuple NULL: values were put in by the executor)
 * or holds a row in on-disk form.  The row is in the slot's own buffer, which
 * is kept from row to row, or in memory of the caller that stored it (a scan's copy
 * of a page); never in a shared buffer, see page.h.
 *
 * TTS_FLAG_SHOULDFREE is not used: what a slot owns it keeps until it is
 * released.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "access/sysattr.h"
#include "nodes/execnodes.h"
#include "page/deform.h"
#include "page/slot.h"
#include "page/tuple.h"
#include "utils/memutils.h"

#define ISLOT(slot) ((InplaceTupleTableSlot *) (slot))

/*
 * Which of the slots of the running query's result relations is this?  (Some
 * requests of the executor mean different versions of a row, and nothing but
 * the slot tells them apart.)
 */
ResultSlot
inplace_result_slot(TupleTableSlot *slot)
{
	EState	   *estate = inplace_executor_estate;
	List	   *lists[3];

	if (estate == NULL)
		return RESULT_SLOT_NONE;
	lists[0] = estate->es_opened_result_relations;
	lists[1] = estate->es_tuple_routing_result_relations;
	lists[2] = estate->es_trig_target_relations;
	for (int i = 0; i < lengthof(lists); i++)
	{
		ListCell   *lc;

		foreach(lc, lists[i])
		{
			ResultRelInfo *rri = (ResultRelInfo *) lfirst(lc);

			if (rri->ri_ReturningSlot == slot)
				return RESULT_SLOT_RETURNING;
			if (rri->ri_TrigOldSlot == slot)
				return RESULT_SLOT_TRIGGER_OLD;
			if (rri->ri_onConflict != NULL &&
				rri->ri_onConflict->oc_Existing == slot)
				return RESULT_SLOT_CONFLICT;
		}
	}
	return RESULT_SLOT_NONE;
}

static void
tts_inplace_init(TupleTableSlot *slot)
{
	/* (the slot comes zeroed) */
}

void
inplace_slot_free_heap_tuple(InplaceTupleTableSlot *is)
{
	heap_freetuple(is->heap_tuple);
	is->heap_tuple = NULL;
}

static void
tts_inplace_release(TupleTableSlot *slot)
{
	InplaceTupleTableSlot *is = ISLOT(slot);

	if (is->buf)
		pfree(is->buf);
	if (is->spare)
		pfree(is->spare);
	if (is->deform_cxt)
		MemoryContextDelete(is->deform_cxt);
	if (is->heap_tuple)
		inplace_slot_free_heap_tuple(is);
	is->buf = NULL;
	is->spare = NULL;
	is->deform_cxt = NULL;
	is->tuple = NULL;
}

static void
tts_inplace_clear(TupleTableSlot *slot)
{
	InplaceSlotReset(ISLOT(slot));
	slot->tts_flags |= TTS_FLAG_EMPTY;
	ItemPointerSetInvalid(&slot->tts_tid);
}

static void
tts_inplace_getsomeattrs(TupleTableSlot *slot, int natts)
{
	InplaceTupleTableSlot *is = ISLOT(slot);
	int			got;

	if (is->tuple == NULL)
		elog(ERROR, "getsomeattrs called on a virtual inplace slot");
	if (unlikely(is->heap_tuple != NULL))
	{
		/* the form that has been handed out is what the slot holds */
		heap_deform_tuple(is->heap_tuple, slot->tts_tupleDescriptor,
						  slot->tts_values, slot->tts_isnull);
		slot->tts_nvalid = slot->tts_tupleDescriptor->natts;
		return;
	}
	if ((is->tuple->t_natts & IP_HASTRIMMED) && is->deform_cxt == NULL)
		is->deform_cxt = AllocSetContextCreate(slot->tts_mcxt,
											   "inplace slot values",
											   ALLOCSET_SMALL_SIZES);
	got = InplaceDeform(slot->tts_tupleDescriptor, is->tuple, is->tuple_len,
						slot->tts_nvalid, &is->off, natts,
						slot->tts_values, slot->tts_isnull, is->deform_cxt);
	if (unlikely(got < 0))
		inplace_damaged_row(slot->tts_tableOid, &slot->tts_tid);
	slot->tts_nvalid = got;
}

TransactionId (*inplace_memory_locker) (Oid relid, const ItemPointerData *tid) = NULL;

/*
 * A lock in memory is newer than one on the page.
 */
static TransactionId
newest_xmax(TupleTableSlot *slot)
{
	InplaceTupleTableSlot *is = ISLOT(slot);
	TransactionId locker = InvalidTransactionId;

	if (!is->replaced && inplace_memory_locker != NULL && ItemPointerIsValid(&slot->tts_tid))
		locker = inplace_memory_locker(slot->tts_tableOid, &slot->tts_tid);
	return TransactionIdIsValid(locker) ? locker : is->xmax;
}

static Datum
tts_inplace_getsysattr(TupleTableSlot *slot, int attnum, bool *isnull)
{
	InplaceTupleTableSlot *is = ISLOT(slot);

	if (!is->has_sysattrs)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot retrieve a system column in this context")));

	*isnull = false;
	switch (attnum)
	{
		case MinTransactionIdAttributeNumber:
			return TransactionIdGetDatum(is->xmin);
		case MaxTransactionIdAttributeNumber:
			return TransactionIdGetDatum(newest_xmax(slot));
		case MinCommandIdAttributeNumber:
			return CommandIdGetDatum(is->cmin == InvalidCommandId ? 0 : is->cmin);
		case MaxCommandIdAttributeNumber:
			return CommandIdGetDatum(is->cmax == InvalidCommandId ? 0 : is->cmax);
		default:
			elog(ERROR, "invalid system attribute number %d", attnum);
	}
	return (Datum) 0;
}

#if PG_VERSION_NUM >= 170000
static bool
tts_inplace_is_current_xact_tuple(TupleTableSlot *slot)
{
	InplaceTupleTableSlot *is = ISLOT(slot);

	if (!is->has_sysattrs)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("don't have transaction information for this type of tuple")));
	return TransactionIdIsCurrentTransactionId(is->xmin);
}
#endif

char *
inplace_slot_buffer(TupleTableSlot *slot, Size size)
{
	InplaceTupleTableSlot *is = ISLOT(slot);

	if (is->buf_size < size)
	{
		Size		newsize = Max(size, 256);

		newsize = Max(newsize, is->buf_size * 2);
		if (is->buf)
			pfree(is->buf);
		is->buf = NULL;
		is->buf_size = 0;
		is->buf = MemoryContextAllocExtended(slot->tts_mcxt, newsize,
											 MCXT_ALLOC_HUGE);
		is->buf_size = newsize;
	}
	return is->buf;
}

/*
 * Make a virtual slot's values its own by forming the row.  The values may
 * point into the slot's old buffer, so a new one is filled first.
 */
static void
form_in_slot(TupleTableSlot *slot)
{
	InplaceTupleTableSlot *is = ISLOT(slot);
	TupleDesc	desc = slot->tts_tupleDescriptor;
	uint16		flags;
	Size		len;
	Size		bufsize;
	char	   *buf;

	len = inplace_compute_size(desc, slot->tts_values, slot->tts_isnull, &flags);
	if (is->spare_size < len)
	{
		Size		newsize = Max(len, 256);

		if (is->spare)
			pfree(is->spare);
		is->spare = NULL;
		is->spare_size = 0;
		is->spare = MemoryContextAllocExtended(slot->tts_mcxt, newsize,
											   MCXT_ALLOC_HUGE);
		is->spare_size = newsize;
	}
	buf = is->spare;
	inplace_fill_tuple(desc, slot->tts_values, slot->tts_isnull, flags,
					   (InplaceTupleHeader) buf, len);
	if (is->deform_cxt)
		MemoryContextReset(is->deform_cxt);
	bufsize = is->spare_size;
	is->spare = is->buf;
	is->spare_size = is->buf_size;
	is->buf = buf;
	is->buf_size = bufsize;
	is->tuple = (InplaceTupleHeader) buf;
	is->tuple_len = len;
	is->off = HdrSize(is->tuple);
	slot->tts_nvalid = 0;
}

/*
 * Do rows of the two descriptors look the same?
 */
static bool
same_row_layout(TupleDesc a, TupleDesc b)
{
	if (a->natts != b->natts)
		return false;
	for (int i = 0; i < a->natts; i++)
	{
		Form_pg_attribute x = TupleDescAttr(a, i);
		Form_pg_attribute y = TupleDescAttr(b, i);

		if (x->atttypid != y->atttypid || x->attlen != y->attlen ||
			x->attbyval != y->attbyval || x->attalign != y->attalign ||
			x->attstorage != y->attstorage ||
			x->attgenerated != y->attgenerated ||
			x->attisdropped || y->attisdropped)
			return false;
	}
	return true;
}

/*
 * The same, remembered in the slot: both descriptors stay where they are for as
 * long as a command uses the slot.
 */
static inline bool
slot_fits_table(TupleTableSlot *slot, TupleDesc desc)
{
	InplaceTupleTableSlot *is = ISLOT(slot);

	if (slot->tts_tupleDescriptor == desc)
		return true;
	if (is->compared_desc != desc)
	{
		is->compared_desc = desc;
		is->compared_same = same_row_layout(slot->tts_tupleDescriptor, desc);
	}
	return is->compared_same;
}

/*
 * Can the slot's row be put into rel as it is?  It is formed by the table's own
 * descriptor (the executor has slots materialized before they come here) or one
 * like it, complete, and with nothing to toast.
 */
static bool
is_ready_for(Relation rel, TupleTableSlot *slot)
{
	InplaceTupleTableSlot *is = ISLOT(slot);
	TupleDesc	desc = RelationGetDescr(rel);

	/* a trigger may have written over the tuple that it was given */
	if (TTS_IS_INPLACE(slot) && unlikely(is->heap_tuple != NULL) &&
		is->tuple != NULL)
	{
		slot_getallattrs(slot);
		form_in_slot(slot);
	}

	return TTS_IS_INPLACE(slot) && is->tuple != NULL &&
		slot_fits_table(slot, desc) &&
		HdrNatts(is->tuple) == desc->natts &&
		(is->tuple->t_natts & IP_HASEXTERNAL) == 0 &&
		is->tuple_len <= TOAST_TUPLE_THRESHOLD;
}

/*
 * A copy of such a row, or NULL.  The version part of the header is up to the
 * caller.
 */
InplaceTupleHeader
inplace_slot_ready_row(Relation rel, TupleTableSlot *slot, Size *len)
{
	InplaceTupleTableSlot *is = ISLOT(slot);
	InplaceTupleHeader row;

	if (!is_ready_for(rel, slot))
		return NULL;
	*len = is->tuple_len;
	row = (InplaceTupleHeader) palloc(is->tuple_len);
	memcpy(row, is->tuple, is->tuple_len);
	row->t_natts &= ~IP_UNCHANGED;
	return row;
}

/*
 * The row itself, if it is in the slot's own memory, or NULL.  The caller may write
 * the version part of its header, which the slot does not look at.
 */
InplaceTupleHeader
inplace_slot_own_row(Relation rel, TupleTableSlot *slot, Size *len)
{
	InplaceTupleTableSlot *is = ISLOT(slot);

	if (!is_ready_for(rel, slot) || (char *) is->tuple != is->buf)
		return NULL;
	*len = is->tuple_len;
	is->tuple->t_natts &= ~IP_UNCHANGED;
	return is->tuple;
}

static void
tts_inplace_materialize(TupleTableSlot *slot)
{
	InplaceTupleTableSlot *is = ISLOT(slot);

	Assert(!TTS_EMPTY(slot));

	if (is->tuple == NULL)
		form_in_slot(slot);
	else if ((char *) is->tuple != is->buf)
	{
		char	   *buf = inplace_slot_buffer(slot, is->tuple_len);

		memcpy(buf, is->tuple, is->tuple_len);
		if ((is->tuple->t_natts & IP_HASTRIMMED) && is->deform_cxt)
			MemoryContextReset(is->deform_cxt);
		is->tuple = (InplaceTupleHeader) buf;
		is->off = HdrSize(is->tuple);
		slot->tts_nvalid = 0;
	}
}

/* the heap tuple in a slot, or NULL */
static inline HeapTuple
heap_tuple_of(TupleTableSlot *slot)
{
	if (TTS_IS_BUFFERTUPLE(slot) || TTS_IS_HEAPTUPLE(slot))
		return ((HeapTupleTableSlot *) slot)->tuple;
	if (TTS_IS_MINIMALTUPLE(slot) && ((MinimalTupleTableSlot *) slot)->mintuple)
		return ((MinimalTupleTableSlot *) slot)->tuple;
	return NULL;
}

/*
 * Copy from a slot that has a heap tuple, without its being taken apart.
 */
static bool
copy_heap_tuple(TupleTableSlot *dst, TupleTableSlot *src)
{
	InplaceTupleTableSlot *ds = ISLOT(dst);
	TupleDesc	desc = dst->tts_tupleDescriptor;
	HeapTuple	heap = heap_tuple_of(src);
	char	   *buf;

	if (heap == NULL || !slot_fits_table(dst, src->tts_tupleDescriptor))
		return false;
	ExecClearTuple(dst);
	buf = inplace_slot_buffer(dst, inplace_row_from_heap_bound(desc, heap));
	ds->tuple_len = inplace_row_from_heap(desc, heap, (InplaceTupleHeader) buf);
	if (ds->tuple_len == 0)
		return false;
	ds->tuple = (InplaceTupleHeader) buf;
	ds->off = HdrSize(ds->tuple);
	dst->tts_flags &= ~TTS_FLAG_EMPTY;
	return true;
}

static void
tts_inplace_copyslot(TupleTableSlot *dst, TupleTableSlot *src)
{
	InplaceTupleTableSlot *ds = ISLOT(dst);

	if (TTS_IS_INPLACE(src) && ISLOT(src)->tuple != NULL &&
		ISLOT(src)->heap_tuple == NULL)
	{
		InplaceTupleTableSlot *ss = ISLOT(src);
		char	   *buf;

		ExecClearTuple(dst);
		buf = inplace_slot_buffer(dst, ss->tuple_len);
		memcpy(buf, ss->tuple, ss->tuple_len);
		ds->tuple = (InplaceTupleHeader) buf;
		ds->tuple_len = ss->tuple_len;
		ds->off = HdrSize(ds->tuple);
		dst->tts_flags &= ~TTS_FLAG_EMPTY;
	}
	else if (!copy_heap_tuple(dst, src))
	{
		int			natts = src->tts_tupleDescriptor->natts;

		slot_getallattrs(src);
		ExecClearTuple(dst);
		memcpy(dst->tts_values, src->tts_values, natts * sizeof(Datum));
		memcpy(dst->tts_isnull, src->tts_isnull, natts * sizeof(bool));
		dst->tts_nvalid = natts;
		dst->tts_flags &= ~TTS_FLAG_EMPTY;
		form_in_slot(dst);
	}

	if (TTS_IS_INPLACE(src))
	{
		InplaceTupleTableSlot *ss = ISLOT(src);

		ds->has_sysattrs = ss->has_sysattrs;
		ds->xmin = ss->xmin;
		ds->xmax = ss->xmax;
		ds->cmin = ss->cmin;
		ds->cmax = ss->cmax;
		ds->replaced = ss->replaced;
		ds->tag = ss->tag;
	}
	dst->tts_tid = src->tts_tid;
	dst->tts_tableOid = src->tts_tableOid;
}

/*
 * A heap tuple carries the version information along, for whole-row values
 * and triggers look at it there.
 *
 * heap_form_tuple makes a composite datum, and from 2026 on marks it as one: both bits of
 * xmax (HEAP_IS_DATUM).  A row that has a place is none, as in a slot of heap's:
 * otherwise the server would take what is put here for the datum's type.
 */
static void
set_heap_header(TupleTableSlot *slot, HeapTuple tuple)
{
	InplaceTupleTableSlot *is = ISLOT(slot);

	tuple->t_tableOid = slot->tts_tableOid;
	if (ItemPointerIsValid(&slot->tts_tid))
	{
		TidClean(&tuple->t_self, &slot->tts_tid);
		tuple->t_data->t_ctid = tuple->t_self;
	}
	if (ItemPointerIsValid(&slot->tts_tid) || is->has_sysattrs)
	{
		tuple->t_data->t_infomask &= ~HEAP_XACT_MASK;
		if (!is->has_sysattrs || !TransactionIdIsValid(is->xmax))
			tuple->t_data->t_infomask |= HEAP_XMAX_INVALID;
	}
	if (is->has_sysattrs)
	{
		HeapTupleHeaderSetXmin(tuple->t_data, is->xmin);
		HeapTupleHeaderSetXmax(tuple->t_data, is->xmax);
		HeapTupleHeaderSetCmin(tuple->t_data,
							   is->cmin == InvalidCommandId ? 0 : is->cmin);
	}
}

static HeapTuple
tts_inplace_copy_heap_tuple(TupleTableSlot *slot)
{
	HeapTuple	tuple;

	Assert(!TTS_EMPTY(slot));
	slot_getallattrs(slot);
	tuple = heap_form_tuple(slot->tts_tupleDescriptor, slot->tts_values,
							slot->tts_isnull);
	set_heap_header(slot, tuple);
	return tuple;
}

/*
 * One that is the slot's own, until it gets another row: the server does not free
 * the copy that it would make for a trigger.  From then on it is what the slot
 * holds, as in a slot of heap's: C code may write over the tuple of a BEFORE
 * trigger, and give the same pointer back.
 */
static HeapTuple
tts_inplace_get_heap_tuple(TupleTableSlot *slot)
{
	InplaceTupleTableSlot *is = ISLOT(slot);

	if (is->heap_tuple == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(slot->tts_mcxt);

		is->heap_tuple = tts_inplace_copy_heap_tuple(slot);
		MemoryContextSwitchTo(old);
		/* (values of a virtual slot are nowhere else) */
		if (is->tuple != NULL)
			slot->tts_nvalid = 0;
	}
	else
		/* the row's TID, xmin and so on may have been found out since */
		set_heap_header(slot, is->heap_tuple);
	return is->heap_tuple;
}

#if PG_VERSION_NUM >= 180000
static MinimalTuple
tts_inplace_copy_minimal_tuple(TupleTableSlot *slot, Size extra)
{
	slot_getallattrs(slot);
	return heap_form_minimal_tuple(slot->tts_tupleDescriptor,
								   slot->tts_values, slot->tts_isnull, extra);
}
#else
static MinimalTuple
tts_inplace_copy_minimal_tuple(TupleTableSlot *slot)
{
	slot_getallattrs(slot);
	return heap_form_minimal_tuple(slot->tts_tupleDescriptor,
								   slot->tts_values, slot->tts_isnull);
}
#endif

void
inplace_store_tuple(TupleTableSlot *slot, Oid tableoid,
					const ItemPointerData *tid, InplaceTupleHeader tuple,
					Size len, const RowVersionInfo *vi, bool copy)
{
	InplaceSlotStore(slot, tableoid, tid, tuple, len, vi, copy);
}

const TupleTableSlotOps TTSOpsInplace = {
	.base_slot_size = sizeof(InplaceTupleTableSlot),
	.init = tts_inplace_init,
	.release = tts_inplace_release,
	.clear = tts_inplace_clear,
	.getsomeattrs = tts_inplace_getsomeattrs,
	.getsysattr = tts_inplace_getsysattr,
#if PG_VERSION_NUM >= 170000
	.is_current_xact_tuple = tts_inplace_is_current_xact_tuple,
#endif
	.materialize = tts_inplace_materialize,
	.copyslot = tts_inplace_copyslot,
	.get_heap_tuple = tts_inplace_get_heap_tuple,
	.get_minimal_tuple = NULL,
	.copy_heap_tuple = tts_inplace_copy_heap_tuple,
	.copy_minimal_tuple = tts_inplace_copy_minimal_tuple
};

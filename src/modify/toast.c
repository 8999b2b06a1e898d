/*-------------------------------------------------------------------------
 *
 * toast.c
 *	  Large values: into the TOAST table that the server makes.
 *
 * That is a heap table or one of ours (relation_toast_am).  Into a heap one values
 * are put as heap puts them.  In one of ours an update writes over the value that it
 * replaces (chunk_store.c).
 *
 * Values are stored before the page of the row is locked (an update has locked
 * the row itself: update.c), and those that an update replaced are deleted
 * after it was changed: so a row never points at values that are gone, and an
 * update that does not come about has only its own new values to take back.
 * If it has written over the old one, it has to fail.  To compress values leaves
 * nothing to take back, so the row is not locked for that.
 * Old versions in undo keep their pointers: rows of the TOAST table and, if it is one of
 * ours, their versions live as long as any snapshot needs them.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "access/sysattr.h"
#include "access/toast_helper.h"
#include "access/table.h"
#include "access/toast_internals.h"
#include "modify/chunk.h"
#include "modify/toast.h"
#include "page/tuple.h"
#include "page/whose_file.h"
#include "utils/memutils.h"

/*
 * A row on its way to a form that fits.  An update compresses values before it
 * has locked the row that it replaces, and stores them afterwards if that was not enough.
 */
struct Toasting
{
	MemoryContext cxt;			/* of all this */
	ToastTupleContext ttc;
	int			options;
	ValueCopies *copies;
	bool		in_line;		/* nothing is to be stored yet */
	int			put_off;		/* is to be stored before all else, or -1 */
};

static Size
current_size(ToastTupleContext *ttc)
{
	uint16		flags;

	return inplace_compute_size(RelationGetDescr(ttc->ttc_rel),
								ttc->ttc_values, ttc->ttc_isnull, &flags);
}

/*
 * Is it in the TOAST table whose OID the new one comes to have?  (What is not stored may be
 * a pointer of another kind, and shorter.)
 */
static bool
is_of_rewritten(Relation rel, const struct varlena *value)
{
	struct varatt_external ptr;

	if (!OidIsValid(rel->rd_toastoid) || !VARATT_IS_EXTERNAL_ONDISK(value))
		return false;
	VARATT_EXTERNAL_GET_POINTER(ptr, value);
	return ptr.va_toastrelid == rel->rd_toastoid;
}

/*
 * A value in a TOAST table of ours, in memory; NULL if it is gone.  Any other value is as
 * it is.
 */
static struct varlena *
held_value(struct varlena *value)
{
	struct varatt_external ptr;
	struct varlena *result = value;
	Relation	toastrel;

	if (!VARATT_IS_EXTERNAL_ONDISK(value))
		return value;
	VARATT_EXTERNAL_GET_POINTER(ptr, value);
	toastrel = table_open(ptr.va_toastrelid, AccessShareLock);
	if (RelationIsInplace(toastrel))
		result = inplace_fetch_value(toastrel, value);
	table_close(toastrel, AccessShareLock);
	return result;
}

bool
inplace_toast_hold_values(TupleTableSlot *slot, const Bitmapset *attrs)
{
	TupleDesc	desc = slot->tts_tupleDescriptor;
	bool		all = bms_is_member(InvalidAttrNumber - FirstLowInvalidHeapAttributeNumber,
									attrs);

	slot_getallattrs(slot);
	for (int i = 0; i < desc->natts; i++)
	{
		struct varlena *held;

		if (slot->tts_isnull[i] || TupleDescAttr(desc, i)->attlen != -1 ||
			!(all || bms_is_member(i + 1 - FirstLowInvalidHeapAttributeNumber, attrs)))
			continue;
		held = held_value((struct varlena *) DatumGetPointer(slot->tts_values[i]));
		if (held == NULL)
			return false;
		slot->tts_values[i] = PointerGetDatum(held);
	}
	return true;
}

/*
 * The same for a version that a rewrite writes.  Where the values were is kept, for
 * the toaster is to know what they are copies of.
 */
static bool
hold_copied(ToastTupleContext *ttc, struct varlena **pointers)
{
	TupleDesc	desc = RelationGetDescr(ttc->ttc_rel);

	for (int i = 0; i < desc->natts; i++)
	{
		struct varlena *value;
		struct varlena *held;

		if (ttc->ttc_isnull[i] || TupleDescAttr(desc, i)->attlen != -1)
			continue;
		value = (struct varlena *) DatumGetPointer(ttc->ttc_values[i]);
		held = held_value(value);
		if (held == NULL)
			return false;
		if (held == value)
			continue;
		if (TupleDescAttr(desc, i)->attstorage == TYPSTORAGE_PLAIN)
			held = detoast_attr(held);
		pointers[i] = value;
		ttc->ttc_values[i] = PointerGetDatum(held);
	}
	return true;
}

/*
 * toast_tuple_externalize() for either kind of TOAST table.
 */
static void
externalize(ToastTupleContext *ttc, int att, int options, ValueCopies *copies)
{
	Relation	rel = ttc->ttc_rel;
	ToastAttrInfo *attr = &ttc->ttc_attr[att];
	Relation	toastrel = table_open(rel->rd_rel->reltoastrelid, RowExclusiveLock);
	const struct varlena *old = NULL;
	const struct varlena *copied = attr->tai_oldexternal;
	struct varlena *copy = NULL;
	Datum		value = ttc->ttc_values[att];

	inplace_check_toast_table(toastrel);
	if (!RelationIsInplace(toastrel))
		toast_tuple_externalize(ttc, att, options);
	else
	{
		if (copied != NULL && !is_of_rewritten(rel, copied))
			copied = NULL;
		if (copied != NULL && copies != NULL)
			copy = inplace_find_copy(copies, copied);
		if (ttc->ttc_oldvalues != NULL && !ttc->ttc_oldisnull[att])
			old = (struct varlena *) DatumGetPointer(ttc->ttc_oldvalues[att]);
		if (old != NULL && !VARATT_IS_EXTERNAL_ONDISK(old))
			old = NULL;
		if (copy == NULL)
		{
			ttc->ttc_values[att] = inplace_chunks_store(rel, toastrel, value, old,
														copied, options);
			copy = (struct varlena *) DatumGetPointer(ttc->ttc_values[att]);
			if (copied != NULL && copies != NULL)
				inplace_note_copy(copies, copied, copy);
		}
		ttc->ttc_values[att] = PointerGetDatum(copy);
		if (attr->tai_colflags & TOASTCOL_NEEDS_FREE)
			pfree(DatumGetPointer(value));
		attr->tai_colflags |= TOASTCOL_IGNORE | TOASTCOL_NEEDS_FREE;
		ttc->ttc_flags |= TOAST_NEEDS_CHANGE | TOAST_NEEDS_FREE;
	}
	table_close(toastrel, NoLock);
}

/*
 * Is the value stored?  Not if that is not to be done yet.
 */
static bool
store_value(Toasting *toasting, int att)
{
	if (toasting->in_line)
	{
		toasting->put_off = att;
		return false;
	}
	externalize(&toasting->ttc, att, toasting->options, toasting->copies);
	return true;
}

/*
 * The same four rounds as for heap rows: compress what may be compressed and
 * move out what is very large; move out the rest; compress MAIN; move out
 * MAIN if there is no other way.  False if a value has to be moved out and is not
 * to be yet; the next call begins with it, and rounds that are over do nothing then.
 */
static bool
shrink_row(Toasting *toasting)
{
	ToastTupleContext *ttc = &toasting->ttc;
	Relation	rel = ttc->ttc_rel;
	TupleDesc	desc = RelationGetDescr(rel);
	bool		has_toast = OidIsValid(rel->rd_rel->reltoastrelid);
	Size		limit = RelationGetToastTupleTarget(rel, TOAST_TUPLE_TARGET);
	int			att;

	if (toasting->put_off >= 0 && !store_value(toasting, toasting->put_off))
		return false;
	toasting->put_off = -1;

	while (current_size(ttc) > limit &&
		   (att = toast_tuple_find_biggest_attribute(ttc, true, false)) >= 0)
	{
		if (TupleDescAttr(desc, att)->attstorage == TYPSTORAGE_EXTENDED)
			toast_tuple_try_compression(ttc, att);
		else
			ttc->ttc_attr[att].tai_colflags |= TOASTCOL_INCOMPRESSIBLE;

		if (has_toast && ttc->ttc_attr[att].tai_size > limit &&
			!store_value(toasting, att))
			return false;
	}

	while (has_toast && current_size(ttc) > limit &&
		   (att = toast_tuple_find_biggest_attribute(ttc, false, false)) >= 0)
		if (!store_value(toasting, att))
			return false;

	while (current_size(ttc) > limit &&
		   (att = toast_tuple_find_biggest_attribute(ttc, true, true)) >= 0)
		toast_tuple_try_compression(ttc, att);

	limit = TOAST_TUPLE_TARGET_MAIN;
	while (has_toast && current_size(ttc) > limit &&
		   (att = toast_tuple_find_biggest_attribute(ttc, false, true)) >= 0)
		if (!store_value(toasting, att))
			return false;
	return true;
}

/*
 * The row's values, and those of the row that it replaces, if it does.  The context
 * is left to the caller.
 */
static Toasting *
take_values(Relation rel, TupleTableSlot *slot, InplaceTupleHeader old,
			const ItemPointerData *oldtid)
{
	TupleDesc	desc = RelationGetDescr(rel);
	int			natts = desc->natts;
	Toasting   *toasting;
	ToastTupleContext *ttc;

	toasting = palloc0(sizeof(Toasting));
	toasting->cxt = CurrentMemoryContext;
	toasting->put_off = -1;

	ttc = &toasting->ttc;
	ttc->ttc_rel = rel;
	slot_getallattrs(slot);
	ttc->ttc_values = palloc(natts * sizeof(Datum));
	ttc->ttc_isnull = palloc(natts * sizeof(bool));
	memcpy(ttc->ttc_values, slot->tts_values, natts * sizeof(Datum));
	memcpy(ttc->ttc_isnull, slot->tts_isnull, natts * sizeof(bool));
	ttc->ttc_attr = palloc(natts * sizeof(ToastAttrInfo));

	if (old)
	{
		int			got;

		ttc->ttc_oldvalues = palloc(natts * sizeof(Datum));
		ttc->ttc_oldisnull = palloc(natts * sizeof(bool));
		got = inplace_deform_first(desc, old, natts, ttc->ttc_oldvalues,
								   ttc->ttc_oldisnull, toasting->cxt, oldtid);
		for (; got < natts; got++)
			ttc->ttc_oldvalues[got] = getmissingattr(desc, got + 1,
													 &ttc->ttc_oldisnull[got]);
	}

	/*
	 * Flatten expanded objects first: the toaster looks at sizes as they are
	 * stored.
	 */
	for (int i = 0; i < natts; i++)
	{
		if (!ttc->ttc_isnull[i] && TupleDescAttr(desc, i)->attlen == -1 &&
			VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(ttc->ttc_values[i])))
			ttc->ttc_values[i] =
				PointerGetDatum(detoast_external_attr((struct varlena *)
													  DatumGetPointer(ttc->ttc_values[i])));
	}
	return toasting;
}

static InplaceTupleHeader
form_toasted(Toasting *toasting, MemoryContext cxt, Size *len)
{
	ToastTupleContext *ttc = &toasting->ttc;
	TupleDesc	desc = RelationGetDescr(ttc->ttc_rel);
	InplaceTupleHeader result;
	uint16		flags;

	*len = inplace_compute_size(desc, ttc->ttc_values, ttc->ttc_isnull, &flags);
	result = (InplaceTupleHeader) MemoryContextAlloc(cxt, *len);
	inplace_fill_tuple(desc, ttc->ttc_values, ttc->ttc_isnull, flags, result, *len);
	return result;
}

InplaceTupleHeader
inplace_toast_insert(Relation rel, TupleTableSlot *slot, Size *len, int options,
					 ValueCopies *copies)
{
	int			natts = RelationGetDescr(rel)->natts;
	MemoryContext cxt;
	MemoryContext outer;
	Toasting   *toasting;
	struct varlena **copied;
	InplaceTupleHeader result = NULL;

	cxt = AllocSetContextCreate(CurrentMemoryContext, "inplace toast",
								ALLOCSET_DEFAULT_SIZES);
	outer = MemoryContextSwitchTo(cxt);
	toasting = take_values(rel, slot, NULL, NULL);
	toasting->options = options & ~HEAP_INSERT_SPECULATIVE;
	toasting->copies = copies;
	copied = palloc0(natts * sizeof(struct varlena *));

	if (copies == NULL || inplace_copies_of_newest(copies) ||
		hold_copied(&toasting->ttc, copied))
	{
		toast_tuple_init(&toasting->ttc);
		for (int i = 0; i < natts; i++)
			if (copied[i] != NULL)
				toasting->ttc.ttc_attr[i].tai_oldexternal = copied[i];
		(void) shrink_row(toasting);
		result = form_toasted(toasting, outer, len);
	}

	MemoryContextSwitchTo(outer);
	MemoryContextDelete(cxt);
	return result;
}

Toasting *
inplace_toast_begin(Relation rel, TupleTableSlot *slot, InplaceTupleHeader old,
					const ItemPointerData *oldtid)
{
	MemoryContext cxt;
	MemoryContext outer;
	Toasting   *toasting;

	cxt = AllocSetContextCreate(CurrentMemoryContext, "inplace toast",
								ALLOCSET_DEFAULT_SIZES);
	outer = MemoryContextSwitchTo(cxt);
	toasting = take_values(rel, slot, old, oldtid);
	toast_tuple_init(&toasting->ttc);
	MemoryContextSwitchTo(outer);
	return toasting;
}

bool
inplace_toast_in_line(Toasting *toasting)
{
	MemoryContext outer = MemoryContextSwitchTo(toasting->cxt);
	bool		fits;

	toasting->in_line = true;
	fits = shrink_row(toasting);
	toasting->in_line = false;
	MemoryContextSwitchTo(outer);
	return fits;
}

InplaceTupleHeader
inplace_toast_finish(Toasting *toasting, Size *len)
{
	MemoryContext outer = MemoryContextSwitchTo(toasting->cxt);
	InplaceTupleHeader result;

	(void) shrink_row(toasting);
	result = form_toasted(toasting, outer, len);
	MemoryContextSwitchTo(outer);
	inplace_toast_forget(toasting);
	return result;
}

void
inplace_toast_forget(Toasting *toasting)
{
	MemoryContextDelete(toasting->cxt);
}

/* a row's columns, for functions in this file; those it does not have are null */
static void
stored_values(TupleDesc desc, InplaceTupleHeader tup, const ItemPointerData *tid,
			  Datum **values, bool **isnull)
{
	int			got;

	*values = palloc(desc->natts * sizeof(Datum));
	*isnull = palloc(desc->natts * sizeof(bool));
	got = inplace_deform_first(desc, tup, desc->natts, *values, *isnull,
							   CurrentMemoryContext, tid);
	for (; got < desc->natts; got++)
		(*isnull)[got] = true;
}

/*
 * Delete a value that is in the TOAST table, but if "kept" is one of the same base in a
 * TOAST table of ours: then it has been written over.
 */
static void
delete_value(Relation rel, Datum value, const struct varlena *kept, bool unused)
{
	struct varatt_external ptr;
	struct varatt_external keptptr;
	Relation	toastrel;

	VARATT_EXTERNAL_GET_POINTER(ptr, (struct varlena *) DatumGetPointer(value));
	toastrel = table_open(ptr.va_toastrelid, RowExclusiveLock);
	inplace_check_toast_table(toastrel);
	if (!RelationIsInplace(toastrel))
	{
		toast_delete_datum(rel, value, unused);
		table_close(toastrel, RowExclusiveLock);
		return;
	}

	if (kept != NULL)
		VARATT_EXTERNAL_GET_POINTER(keptptr, kept);
	if (kept == NULL || ptr.va_toastrelid != keptptr.va_toastrelid ||
		ChunkBase(ptr.va_valueid) != ChunkBase(keptptr.va_valueid))
		inplace_chunks_delete(toastrel, ptr.va_valueid, unused);
	else if (unused)
		ereport(ERROR,
				(errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
				 errmsg("row of relation \"%s\" was changed by the same command while its large values were being replaced",
						RelationGetRelationName(rel))));
	table_close(toastrel, NoLock);
}

void
inplace_toast_delete_replaced(Relation rel, InplaceTupleHeader gone,
							  InplaceTupleHeader kept,
							  const ItemPointerData *tid, bool unused)
{
	TupleDesc	desc = RelationGetDescr(rel);
	MemoryContext cxt;
	MemoryContext outer;
	Datum	   *old_values;
	bool	   *old_isnull;
	Datum	   *values;
	bool	   *isnull;

	if (!(gone->t_natts & IP_HASEXTERNAL))
		return;

	cxt = AllocSetContextCreate(CurrentMemoryContext, "inplace toast",
								ALLOCSET_SMALL_SIZES);
	outer = MemoryContextSwitchTo(cxt);
	stored_values(desc, gone, tid, &old_values, &old_isnull);
	stored_values(desc, kept, tid, &values, &isnull);

	for (int i = 0; i < desc->natts; i++)
	{
		struct varlena *v;
		struct varlena *now = NULL;

		if (old_isnull[i] || TupleDescAttr(desc, i)->attlen != -1)
			continue;
		v = (struct varlena *) DatumGetPointer(old_values[i]);
		if (!VARATT_IS_EXTERNAL_ONDISK(v))
			continue;
		if (!isnull[i] &&
			VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(values[i])))
			now = (struct varlena *) DatumGetPointer(values[i]);
		if (now != NULL && memcmp(v, now, VARSIZE_EXTERNAL(v)) == 0)
			continue;
		delete_value(rel, old_values[i], now, unused);
	}
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(cxt);
}

void
inplace_toast_delete(Relation rel, InplaceTupleHeader old,
					 const ItemPointerData *tid, bool is_speculative)
{
	MemoryContext cxt;
	MemoryContext outer;
	TupleDesc	desc = RelationGetDescr(rel);
	Datum	   *values;
	bool	   *isnull;

	cxt = AllocSetContextCreate(CurrentMemoryContext, "inplace toast",
								ALLOCSET_SMALL_SIZES);
	outer = MemoryContextSwitchTo(cxt);
	stored_values(desc, old, tid, &values, &isnull);
	for (int i = 0; i < desc->natts; i++)
		if (!isnull[i] && TupleDescAttr(desc, i)->attlen == -1 &&
			VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(values[i])))
			delete_value(rel, values[i], NULL, is_speculative);
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(cxt);
}

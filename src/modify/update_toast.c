/*-------------------------------------------------------------------------
 *
 * update_toast.c
 *	  Updates that store values in the TOAST table lock their row before.
 *
 * Values are stored with the row's page unlocked.  Whether there are any, and how strong a lock
 * the update takes, is found out from a copy of the old row.
 *
 * A lock is a change of the row: it is in the WAL, and its record takes the place of what
 * lets the next one be short.  So what can be compressed is compressed first, and if the
 * row fits then it is updated like any other.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/heaptoast.h"
#include "modify/update.h"
#include "page/compare.h"
#include "page/tuple.h"
#include "row/row_lock.h"
#include "row/rowcheck.h"
#include "row/visibility.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* the columns of the old row, in a context of their own */
typedef struct OldValues
{
	MemoryContext cxt;
	Datum	   *values;
	bool	   *isnull;
	int			got;			/* so many; the rest it does not have */
} OldValues;

static void
get_old_values(OldValues *ov, UpdateState *us, InplaceTupleHeader old)
{
	TupleDesc	desc = RelationGetDescr(us->rel);
	MemoryContext outer;

	ov->cxt = AllocSetContextCreate(CurrentMemoryContext, "inplace old values",
									ALLOCSET_SMALL_SIZES);
	outer = MemoryContextSwitchTo(ov->cxt);
	ov->values = palloc(desc->natts * sizeof(Datum));
	ov->isnull = palloc(desc->natts * sizeof(bool));
	ov->got = inplace_deform_first(desc, old, desc->natts, ov->values, ov->isnull,
								   ov->cxt, &us->target.tid);
	MemoryContextSwitchTo(outer);
}

/* might it do to compress the value? */
static bool
may_be_compressed(Form_pg_attribute att, const struct varlena *value)
{
	return (att->attstorage == TYPSTORAGE_EXTENDED ||
			att->attstorage == TYPSTORAGE_MAIN) &&
		!VARATT_IS_COMPRESSED(value) &&
		(VARATT_IS_EXTERNAL_EXPANDED(value) ||
		 VARSIZE_ANY(value) > MAXALIGN(TOAST_POINTER_SIZE));
}

/*
 * Will values be stored in the TOAST table?  Not if the new row is short, and
 * what it has there is the old one's.  Values of others are fetched with the row locked.
 */
ToastNeed
inplace_update_toast_need(UpdateState *us, TupleTableSlot *slot, InplaceTupleHeader old)
{
	TupleDesc	desc = RelationGetDescr(us->rel);
	OldValues	ov;
	bool		is_long;
	bool		compresses = false;
	bool		stores = false;

	is_long = us->newlen > Min(TOAST_TUPLE_THRESHOLD,
							   RelationGetToastTupleTarget(us->rel, TOAST_TUPLE_TARGET));
	get_old_values(&ov, us, old);
	for (int i = 0; i < desc->natts && !stores; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		struct varlena *v;

		if (slot->tts_isnull[i] || att->attlen != -1)
			continue;
		v = (struct varlena *) DatumGetPointer(slot->tts_values[i]);
		if (VARATT_IS_EXTERNAL(v) && !VARATT_IS_EXTERNAL_EXPANDED(v))
			stores = i >= ov.got || ov.isnull[i] || !VARATT_IS_EXTERNAL_ONDISK(v) ||
				!VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(ov.values[i])) ||
				memcmp(v, DatumGetPointer(ov.values[i]), VARSIZE_EXTERNAL(v)) != 0;
		else if (may_be_compressed(att, v))
			compresses = true;
	}
	MemoryContextDelete(ov.cxt);
	if (stores || (is_long && !compresses))
		return TOAST_STORES;
	return is_long ? TOAST_COMPRESSES : TOAST_KEEPS;
}

/*
 * Make the new row against the copy of the old one, with the page unlocked: as far as that
 * goes without storing anything, or to the end.
 */
void
inplace_update_toast(UpdateState *us, TupleTableSlot *slot, bool in_line)
{
	if (us->toasting == NULL)
		us->toasting = inplace_toast_begin(us->rel, slot, us->oldcopy,
										   &us->target.tid);
	if (in_line && !inplace_toast_in_line(us->toasting))
		return;

	pfree(us->newtup);
	us->newtup = inplace_toast_finish(us->toasting, &us->newlen);
	us->toasting = NULL;
	us->toasted = true;
	if (in_line && !(us->newtup->t_natts & IP_HASEXTERNAL))
	{
		/* it is a row like any other now, whatever becomes of the old one */
		us->needs_toast = false;
		inplace_update_forget_copy(us);
	}
}

/*
 * The old row was copied, but the copy is not of use.
 */
void
inplace_update_forget_copy(UpdateState *us)
{
	if (us->toasting)
		inplace_toast_forget(us->toasting);
	us->toasting = NULL;
	us->toasted = false;
	pfree(us->oldcopy);
	us->oldcopy = NULL;
}

/*
 * Values that are to go to the TOAST table may differ from those that are there only in
 * how they are stored; as on heap that counts as a change.
 */
bool
inplace_update_keys_differ(UpdateState *us, TupleTableSlot *slot,
						   InplaceTupleHeader old)
{
	TupleDesc	desc = RelationGetDescr(us->rel);
	OldValues	ov;
	bool		differ = false;
	int			x = -1;

	slot_getallattrs(slot);
	get_old_values(&ov, us, old);
	for (int i = ov.got; i < desc->natts; i++)
		ov.values[i] = getmissingattr(desc, i + 1, &ov.isnull[i]);

	while (!differ && (x = bms_next_member(us->key_attrs, x)) >= 0)
	{
		int			i = x + FirstLowInvalidHeapAttributeNumber - 1;
		Form_pg_attribute att;

		if (i < 0)
			continue;
		att = TupleDescAttr(desc, i);
		differ = ov.isnull[i] != slot->tts_isnull[i] ||
			(!ov.isnull[i] && !inplace_same_stored(ov.values[i], slot->tts_values[i],
												   att->attbyval, att->attlen));
	}
	MemoryContextDelete(ov.cxt);
	return differ;
}

/*
 * Lock the row before values are stored for it with its page unlocked, so that they are
 * not stored in vain: others could keep us from ever coming to an end, and logical decoding
 * cannot do with values of a change that did not come about.  Our own change is a lock.
 */
void
inplace_update_reserve_row(UpdateState *us, LockTupleMode mode, UndoRoom *room)
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
						 room, us->xid, locker, multi, strongest);
}

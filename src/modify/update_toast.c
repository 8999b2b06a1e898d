/*-------------------------------------------------------------------------
 *
 * update_toast.c
 *	  Updates that store values in the TOAST table lock their row before.
 *
 * Values are stored with the row's page unlocked.  Whether there are any, and how strong a lock
 * the update takes, is found out from a copy of the old row.
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

/*
 * Will values be stored in the TOAST table?  Not if the new row is short, and
 * what it has there is the old one's.
 */
bool
inplace_update_stores_values(UpdateState *us, TupleTableSlot *slot, InplaceTupleHeader old)
{
	TupleDesc	desc = RelationGetDescr(us->rel);
	OldValues	ov;
	bool		stores = false;

	if (us->newlen > Min(TOAST_TUPLE_THRESHOLD,
						 RelationGetToastTupleTarget(us->rel, TOAST_TUPLE_TARGET)))
		return true;
	get_old_values(&ov, us, old);
	for (int i = 0; i < desc->natts && !stores; i++)
	{
		struct varlena *v;

		if (slot->tts_isnull[i] || TupleDescAttr(desc, i)->attlen != -1)
			continue;
		v = (struct varlena *) DatumGetPointer(slot->tts_values[i]);
		if (VARATT_IS_EXTERNAL(v))
			stores = i >= ov.got || ov.isnull[i] || !VARATT_IS_EXTERNAL_ONDISK(v) ||
				!VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(ov.values[i])) ||
				memcmp(v, DatumGetPointer(ov.values[i]), VARSIZE_EXTERNAL(v)) != 0;
	}
	MemoryContextDelete(ov.cxt);
	return stores;
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

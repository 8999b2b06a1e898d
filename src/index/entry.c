/*-------------------------------------------------------------------------
 *
 * entry.c
 *	  An index entry and the versions of its row: does it belong to this one,
 *	  is it needed by any, is it there already?
 *
 * Only for indexes that take in-place updates, where the keys of versions are
 * identical to those of their entries (index.h), and for others whose entries always belong to every
 * version: those have no IP_STALE rows of their own doing, and the comparison
 * just comes out true, or cannot be made (key.c).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/nbtree.h"
#include "catalog/pg_type.h"
#include "index/index.h"
#include "index/key.h"
#include "storage/predicate.h"
#include "table/scan.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/memutils.h"

/*
 * nbtree takes equal bpchar values for identical, though without a length in the type they
 * may have more or fewer blanks at the end: where it splits a posting list one row's
 * entry may get those of another.
 */
static bool
same_but_for_blanks(Datum a, Datum b)
{
	struct varlena *x = PG_DETOAST_DATUM_PACKED(a);
	struct varlena *y = PG_DETOAST_DATUM_PACKED(b);
	int			len = bpchartruelen(VARDATA_ANY(x), VARSIZE_ANY_EXHDR(x));
	bool		same;

	same = len == bpchartruelen(VARDATA_ANY(y), VARSIZE_ANY_EXHDR(y)) &&
		memcmp(VARDATA_ANY(x), VARDATA_ANY(y), len) == 0;
	if ((Pointer) x != DatumGetPointer(a))
		pfree(x);
	if ((Pointer) y != DatumGetPointer(b))
		pfree(y);
	return same;
}

/*
 * A key column of an index, against a value of the table's column.  (The index
 * has names as C strings; that does for both.)
 */
static bool
same_value(Relation index, int i, Datum entry, bool entry_null,
		   Datum value, bool value_null)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);

	if (entry_null || value_null)
		return entry_null == value_null;
	return datum_image_eq(entry, value, att->attbyval, att->attlen) ||
		(index->rd_opcintype[i] == BPCHAROID &&
		 same_but_for_blanks(entry, value));
}

static bool
entry_has_key(Relation index, IndexTuple itup, const Datum *values,
			  const bool *isnull)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		bool		entry_null;
		Datum		entry = index_getattr(itup, i + 1, RelationGetDescr(index),
										  &entry_null);

		if (!same_value(index, i, entry, entry_null, values[i], isnull[i]))
			return false;
	}
	return true;
}

static bool
matches_computed(Relation index, IndexTuple itup, TupleTableSlot *slot)
{
	static MemoryContext cxt = NULL;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	MemoryContext old;
	bool		result;

	if (cxt == NULL)
		cxt = AllocSetContextCreate(TopMemoryContext, "inplace index recheck",
									ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(cxt);
	switch (inplace_key_of_slot(index, slot, values, isnull))
	{
		case KEY_NONE:
			result = false;
			break;
		case KEY_FOUND:
			result = entry_has_key(index, itup, values, isnull);
			break;
		default:
			result = true;
			break;
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(cxt);
	return result;
}

bool
inplace_entry_matches_slot(Relation index, IndexTuple itup, TupleTableSlot *slot)
{
	if (inplace_key_is_computed(index))
		return matches_computed(index, itup, slot);
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		bool		entry_null;
		bool		value_null;
		Datum		entry = index_getattr(itup, i + 1, RelationGetDescr(index),
										  &entry_null);
		Datum		value = slot_getattr(slot, index->rd_index->indkey.values[i],
										 &value_null);

		if (!same_value(index, i, entry, entry_null, value, value_null))
			return false;
	}
	return true;
}

/*
 * With "locked" an index page is locked, and a value in a TOAST table must not be
 * looked up: it counts as equal, and so does a key that cannot be computed.
 * Otherwise such a version has never got into the index.
 */
bool
inplace_entry_matches_tuple(Relation table, Relation index, IndexTuple itup,
							InplaceTupleHeader tup, const ItemPointerData *tid,
							bool locked)
{
	if (inplace_key_is_computed(index))
	{
		Datum		values[INDEX_MAX_KEYS];
		bool		isnull[INDEX_MAX_KEYS];

		if (!inplace_index_key(index)->known)
			return true;
		switch (inplace_key_guarded(table, index, tup, tid, !locked, values, isnull))
		{
			case KEY_NONE:
				return false;
			case KEY_FOUND:
				return entry_has_key(index, itup, values, isnull);
			case KEY_UNKNOWN:
				return locked;
		}
	}
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		bool		entry_null;
		bool		value_null;
		Datum		entry = index_getattr(itup, i + 1, RelationGetDescr(index),
										  &entry_null);
		Datum		value = inplace_getattr(RelationGetDescr(table), tup,
											index->rd_index->indkey.values[i],
											&value_null, CurrentMemoryContext, tid);

		if (locked && !value_null &&
			TupleDescAttr(RelationGetDescr(index), i)->attlen == -1 &&
			VARATT_IS_EXTERNAL(DatumGetPointer(value)))
			continue;
		if (!same_value(index, i, entry, entry_null, value, value_null))
			return false;
	}
	return true;
}

bool
inplace_has_payload(Relation index)
{
	return IndexRelationGetNumberOfAttributes(index) >
		IndexRelationGetNumberOfKeyAttributes(index);
}

static void
entry_keys(Relation index, IndexTuple itup, Datum *values, bool *isnull)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		values[i] = index_getattr(itup, i + 1, RelationGetDescr(index), &isnull[i]);
}

/* the INCLUDE columns */
void
inplace_payload_of_slot(Relation index, TupleTableSlot *slot, Datum *values,
						bool *isnull)
{
	for (int i = IndexRelationGetNumberOfKeyAttributes(index);
		 i < IndexRelationGetNumberOfAttributes(index); i++)
		values[i] = slot_getattr(slot, index->rd_index->indkey.values[i], &isnull[i]);
}

/*
 * The entry as it would be for the version in the slot, which has its key.
 */
IndexTuple
inplace_entry_with_payload(Relation index, IndexTuple itup, TupleTableSlot *slot)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	IndexTuple	result;

	entry_keys(index, itup, values, isnull);
	inplace_payload_of_slot(index, slot, values, isnull);
	result = index_form_tuple(RelationGetDescr(index), values, isnull);
	result->t_tid = itup->t_tid;
	return result;
}

/*
 * The same for a tuple without external values; NULL if the entry is that
 * already.
 */
IndexTuple
inplace_entry_of_tuple(Relation table, Relation index, IndexTuple itup,
					   InplaceTupleHeader tup)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	bool		same = true;
	IndexTuple	result;

	for (int i = IndexRelationGetNumberOfKeyAttributes(index);
		 i < IndexRelationGetNumberOfAttributes(index); i++)
	{
		bool		entry_null;
		Datum		entry = index_getattr(itup, i + 1, RelationGetDescr(index),
										  &entry_null);

		values[i] = inplace_getattr(RelationGetDescr(table), tup,
									index->rd_index->indkey.values[i],
									&isnull[i], CurrentMemoryContext,
									&itup->t_tid);
		if (!same_value(index, i, entry, entry_null, values[i], isnull[i]))
			same = false;
	}
	if (same)
		return NULL;
	entry_keys(index, itup, values, isnull);
	result = index_form_tuple(RelationGetDescr(index), values, isnull);
	result->t_tid = itup->t_tid;
	return result;
}

/* equal by the operator class */
static bool
equal_value(Relation index, int i, Datum a, bool a_null, Datum b, bool b_null)
{
	if (a_null || b_null)
		return a_null == b_null;
	return DatumGetInt32(FunctionCall2Coll(index_getprocinfo(index, i + 1, BTORDER_PROC),
										   index->rd_indcollation[i], a, b)) == 0;
}

/*
 * The key of a row to be inserted, which need only be equal to the version's.  In
 * an index that never took in-place updates an entry belongs to every version
 * of its row.  (One that does not take any now, because it is not valid, may have
 * taken some before; and one that was not valid when it was built has the
 * former keys all the same, see build.c.)  The index page and the table's are
 * locked.
 */
bool
inplace_key_matches_tuple(Relation table, const UniqueCheckKey *key,
						  InplaceTupleHeader tup, const ItemPointerData *tid)
{
	Relation	index = key->index;
	bool		exact;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	if (!inplace_index_took(index))
		return true;
	exact = inplace_index_key(index)->exact;
	if ((inplace_key_is_computed(index) ?
		 inplace_key_guarded(table, index, tup, tid, true, values, isnull) :
		 inplace_key_of_tuple(table, index, tup, tid, values, isnull)) != KEY_FOUND)
		return false;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (!same_value(index, i, key->values[i], key->isnull[i],
						values[i], isnull[i]) &&
			(exact || !equal_value(index, i, key->values[i], key->isnull[i],
								   values[i], isnull[i])))
			return false;
	return true;
}

/* did the transaction of the version abort? */
static bool
version_aborted(const ChainWalk *walk)
{
	return inplace_copied_xid_status(walk->rel, walk->tuple, walk->blk,
									 walk->off) == XID_ABORTED;
}

static bool
any_version_matches(ChainWalk *walk, Relation table, Relation index,
					IndexTuple itup, TransactionId oldest_xmin,
					int *versions, TransactionId *xid)
{
	ItemPointerData tid;

	ItemPointerSet(&tid, walk->blk, walk->off);
	for (;;)
	{
		if (--*versions < 0)
			return true;
		if (version_aborted(walk))
		{
			/* nobody's; but an older one may be */
			if (!inplace_walk_back(walk, InvalidTransactionId))
				return true;
			continue;
		}
		if (inplace_entry_matches_tuple(table, index, itup, walk->tuple, &tid, true))
			return true;
		*xid = (walk->tuple->t_infomask & IP_FROZEN) ? InvalidTransactionId :
			walk->tuple->t_xid;
		if (!inplace_walk_back(walk, oldest_xmin))
		{
			/*
			 * The row itself is younger than the horizon: the entry is of an
			 * update that was rolled back, and no snapshot ever needed it.
			 */
			if (!TransactionIdPrecedes(*xid, oldest_xmin))
				*xid = InvalidTransactionId;
			return false;
		}
	}
}

/*
 * Does any version of a row that somebody may still see have the entry's key?
 * The row's page is locked.  If not, *horizon is raised to the xid of the oldest
 * version that is looked at: the entry's own version is older, so whoever
 * needs the entry does not see that one.
 *
 * No more than *versions are looked at, and it is reduced by those that were.
 * Below zero: there are more, and the answer is that somebody may.
 */
bool
inplace_entry_needed(Relation table, Relation index, IndexTuple itup,
					 BlockNumber blk, OffsetNumber off,
					 InplaceTupleHeader tup, Size len,
					 TransactionId oldest_xmin, int *versions,
					 TransactionId *horizon)
{
	static ChainWalk *walk = NULL;
	static MemoryContext cxt = NULL;
	MemoryContext old;
	TransactionId xid = InvalidTransactionId;
	bool		needed;

	if (cxt == NULL)
	{
		walk = MemoryContextAlloc(TopMemoryContext, sizeof(ChainWalk));
		cxt = AllocSetContextCreate(TopMemoryContext, "inplace index entry",
									ALLOCSET_SMALL_SIZES);
	}
	old = MemoryContextSwitchTo(cxt);
	inplace_walk_begin(walk, table, blk, off, tup, len);
	needed = any_version_matches(walk, table, index, itup, oldest_xmin, versions,
								 &xid);
	MemoryContextSwitchTo(old);
	MemoryContextReset(cxt);

	if (!needed && TransactionIdIsValid(xid) &&
		(!TransactionIdIsValid(*horizon) || TransactionIdFollows(xid, *horizon)))
		*horizon = xid;
	return needed;
}

/* is the TID in the posting list of the tuple? */
static bool
posting_has(IndexTuple itup, ItemPointer tid)
{
	int			low = 0;
	int			high = BTreeTupleGetNPosting(itup);

	while (low < high)
	{
		int			mid = low + (high - low) / 2;
		int			cmp = ItemPointerCompare(tid, BTreeTupleGetPostingN(itup, mid));

		if (cmp == 0)
			return true;
		if (cmp < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return false;
}

static bool
same_keys(Relation index, IndexTuple a, IndexTuple b)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		bool		a_null;
		bool		b_null;
		Datum		x = index_getattr(a, i + 1, RelationGetDescr(index), &a_null);
		Datum		y = index_getattr(b, i + 1, RelationGetDescr(index), &b_null);

		if (!same_value(index, i, x, a_null, y, b_null))
			return false;
	}
	return true;
}

/*
 * Is there an entry with that key and TID?
 */
EntryFound
inplace_entry_exists(Relation table, Relation index, const Datum *values,
					 const bool *isnull, ItemPointer tid)
{
	IndexTuple	itup = index_form_tuple(RelationGetDescr(index),
										unconstify(Datum *, values),
										unconstify(bool *, isnull));
	BTScanInsert key;
	BTStack		stack;
	Buffer		buffer;
	EntryFound	result = ENTRY_NONE;

	itup->t_tid = *tid;
	key = _bt_mkscankey(index, itup);
	stack = BtSearchLeaf(index, table, key, &buffer);
	if (BufferIsValid(buffer))
	{
		Page		page = BufferGetPage(buffer);
		BTPageOpaque opaque = BTPageGetOpaque(page);
		OffsetNumber low = P_FIRSTDATAKEY(opaque);
		OffsetNumber high = OffsetNumberNext(PageGetMaxOffsetNumber(page));

		while (low < high)
		{
			OffsetNumber mid = low + (high - low) / 2;

			if (_bt_compare(index, key, page, mid) > 0)
				low = mid + 1;
			else
				high = mid;
		}
		if (low <= PageGetMaxOffsetNumber(page) &&
			_bt_compare(index, key, page, low) == 0)
		{
			IndexTuple	there = (IndexTuple) PageGetItem(page, PageGetItemId(page, low));

			if (BTreeTupleIsPosting(there) ? posting_has(there, tid) :
				ItemPointerEquals(&there->t_tid, tid))
				result = same_keys(index, there, itup) ?
					ENTRY_IDENTICAL : ENTRY_EQUAL;
		}
		/* it stands in for the insertion of an entry */
		if (result == ENTRY_IDENTICAL)
			CheckForSerializableConflictIn(index, NULL, BufferGetBlockNumber(buffer));
		_bt_relbuf(index, buffer);
	}
	if (stack)
		_bt_freestack(stack);
	pfree(key);
	pfree(itup);
	return result;
}

/*
 * What does the update of a row from the version "old" to the one in the slot
 * mean to an index?  No page is locked.  A new key must not be equal to the old
 * one, nor to that of an entry that is still there for the TID, without being
 * the same.
 */
KeyChange
inplace_key_change(Relation table, Relation index, InplaceTupleHeader old,
				   TupleTableSlot *slot, ItemPointer tid)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	Datum		old_values[INDEX_MAX_KEYS];
	bool		old_isnull[INDEX_MAX_KEYS];
	KeyOf		had = inplace_key_of_tuple(table, index, old, tid, old_values, old_isnull);
	KeyOf		has = inplace_key_of_slot(index, slot, values, isnull);
	bool		identical = true;
	bool		equal = true;

	if (had == KEY_UNKNOWN || has == KEY_UNKNOWN)
		elog(ERROR, "index \"%s\" does not take in-place updates",
			 RelationGetRelationName(index));
	if (has == KEY_NONE)
		return had == KEY_NONE ? KEY_SAME : KEY_LEFT;
	if (had == KEY_FOUND)
	{
		for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		{
			if (same_value(index, i, values[i], isnull[i],
						   old_values[i], old_isnull[i]))
				continue;
			identical = false;
			if (!equal_value(index, i, values[i], isnull[i],
							 old_values[i], old_isnull[i]))
				equal = false;
		}
		if (identical)
			return KEY_SAME;
		if (equal)
			return KEY_CLASH;
	}
	if (inplace_index_key(index)->exact)
		return KEY_NEW;
	inplace_payload_of_slot(index, slot, values, isnull);
	return inplace_entry_exists(table, index, values, isnull, tid) == ENTRY_EQUAL ?
		KEY_CLASH : KEY_NEW;
}

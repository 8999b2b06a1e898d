/*-------------------------------------------------------------------------
 *
 * entry.c
 *	  An index entry and the versions of its row: does it belong to this one,
 *	  is it needed by any, is it there already?
 *
 * Only for indexes that take in-place updates, where the keys of versions are
 * identical to those of their entries (index.h), and for others whose entries always belong to every
 * version: those have no IP_STALE rows of their own doing, and the comparison
 * just comes out true.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/nbtree.h"
#include "catalog/pg_type.h"
#include "index/index.h"
#include "storage/predicate.h"
#include "table/scan.h"
#include "utils/datum.h"
#include "utils/memutils.h"

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
	return datum_image_eq(entry, value, att->attbyval, att->attlen);
}

/*
 * May the key be compared with the row's columns?  Not where it is computed:
 * such indexes do not take in-place updates, and any change of what they are
 * computed from moves the row.
 */
static bool
key_is_plain(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (index->rd_index->indkey.values[i] <= 0)
			return false;
	return true;
}

bool
inplace_entry_matches_slot(Relation index, IndexTuple itup, TupleTableSlot *slot)
{
	if (!key_is_plain(index))
		return true;
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
 * With "locked" a page is locked, and a value in a TOAST table must not be
 * looked up: it counts as equal.
 */
bool
inplace_entry_matches_tuple(Relation table, Relation index, IndexTuple itup,
							InplaceTupleHeader tup, bool locked)
{
	if (!key_is_plain(index))
		return true;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		bool		entry_null;
		bool		value_null;
		Datum		entry = index_getattr(itup, i + 1, RelationGetDescr(index),
										  &entry_null);
		Datum		value = inplace_getattr(RelationGetDescr(table), tup,
											index->rd_index->indkey.values[i],
											&value_null, CurrentMemoryContext);

		if (locked && !value_null &&
			TupleDescAttr(RelationGetDescr(index), i)->attlen == -1 &&
			VARATT_IS_EXTERNAL(DatumGetPointer(value)))
			continue;
		if (!same_value(index, i, entry, entry_null, value, value_null))
			return false;
	}
	return true;
}

/*
 * The key of a row to be inserted, which need only be equal to the entry's.  In
 * an index that does not take in-place updates that is not to be identical, but
 * there an entry belongs to every version of its row.
 */
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
	for (int i = IndexRelationGetNumberOfKeyAttributes(index);
		 i < IndexRelationGetNumberOfAttributes(index); i++)
		values[i] = slot_getattr(slot, index->rd_index->indkey.values[i], &isnull[i]);
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
									&isnull[i], CurrentMemoryContext);
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

bool
inplace_key_matches_tuple(Relation table, const UniqueCheckKey *key,
						  InplaceTupleHeader tup)
{
	Relation	index = key->index;

	if (!inplace_index_takes(index))
		return true;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		bool		value_null;
		Datum		value = inplace_getattr(RelationGetDescr(table), tup,
											index->rd_index->indkey.values[i],
											&value_null, CurrentMemoryContext);

		if (!same_value(index, i, key->values[i], key->isnull[i],
						value, value_null))
			return false;
	}
	return true;
}

/* did the transaction of the version abort? */
static bool
version_aborted(InplaceTupleHeader tup)
{
	return inplace_xid_status(tup, InvalidBuffer) == XID_ABORTED;
}

static bool
any_version_matches(ChainWalk *walk, Relation table, Relation index,
					IndexTuple itup, TransactionId oldest_xmin,
					TransactionId *xid)
{
	for (;;)
	{
		if (version_aborted(walk->tuple))
		{
			/* nobody's; but an older one may be */
			if (!inplace_walk_back(walk, FirstNormalTransactionId))
				return true;
			continue;
		}
		if (inplace_entry_matches_tuple(table, index, itup, walk->tuple, true))
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
 */
bool
inplace_entry_needed(Relation table, Relation index, IndexTuple itup,
					 BlockNumber blk, OffsetNumber off,
					 InplaceTupleHeader tup, Size len,
					 TransactionId oldest_xmin, TransactionId *horizon)
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
	needed = any_version_matches(walk, table, index, itup, oldest_xmin, &xid);
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
 * May the row with the version "old" get the key in the slot?  It may if that
 * is no other key at all, or one that is not equal to the old one nor to that of
 * an entry that is still there for the TID.
 */
bool
inplace_key_apart(Relation table, Relation index, InplaceTupleHeader old,
				  TupleTableSlot *slot, ItemPointer tid)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	bool		identical = true;
	bool		equal = true;

	for (int i = 0; i < IndexRelationGetNumberOfAttributes(index); i++)
		values[i] = slot_getattr(slot, index->rd_index->indkey.values[i], &isnull[i]);
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		bool		old_null;
		Datum		value = inplace_getattr(RelationGetDescr(table), old,
											index->rd_index->indkey.values[i],
											&old_null, CurrentMemoryContext);

		if (same_value(index, i, values[i], isnull[i], value, old_null))
			continue;
		identical = false;
		if (isnull[i] || old_null ||
			DatumGetInt32(FunctionCall2Coll(index_getprocinfo(index, i + 1, BTORDER_PROC),
											index->rd_indcollation[i],
											values[i], value)) != 0)
			equal = false;
	}
	if (identical)
		return true;
	return !equal &&
		inplace_entry_exists(table, index, values, isnull, tid) != ENTRY_EQUAL;
}

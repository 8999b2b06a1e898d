/*-------------------------------------------------------------------------
 *
 * entry.c
 *	  An index entry and the versions of its row: does it belong to this one,
 *	  is it needed by any, is it there already?
 *
 * All this is for indexes that take in-place updates, where the keys of versions are
 * identical to those of their entries (index.h), and for others whose entries always
 * belong to every version.  The latter make no rows IP_STALE, and the comparison
 * just comes out true, or cannot be made (key.c).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/detoast.h"
#include "access/nbtree.h"
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "index/entry.h"
#include "index/insertion.h"
#include "index/key.h"
#include "index/taking.h"
#include "index/version_keys.h"
#include "no_lock.h"
#include "page/compare.h"
#include "page/tuple.h"
#include "row/visibility.h"
#include "row/walk.h"
#include "storage/predicate.h"
#include "utils/builtins.h"
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
 * A column of an index, against a value of the table's column.  (The index
 * has names as C strings; that does for both.)  INCLUDE columns have no operator
 * class, and what is kept of them is the value as it stands.
 */
static bool
same_value(Relation index, int i, Datum entry, bool entry_null,
		   Datum value, bool value_null)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);

	if (entry_null || value_null)
		return entry_null == value_null;
	return inplace_same_value(entry, value, att->attbyval, att->attlen) ||
		(i < IndexRelationGetNumberOfKeyAttributes(index) &&
		 index->rd_opcintype[i] == BPCHAROID &&
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

/* what is computed, and thrown away again */
static MemoryContext
recheck_context(void)
{
	static MemoryContext cxt = NULL;

	if (cxt == NULL)
		cxt = AllocSetContextCreate(TopMemoryContext, "inplace index recheck",
									ALLOCSET_SMALL_SIZES);
	return cxt;
}

/* what does a key say to that of an entry? */
static bool
entry_has(Relation index, IndexTuple itup, KeyOf key, const Datum *values,
		  const bool *isnull)
{
	switch (key)
	{
		case KEY_NONE:
			return false;
		case KEY_FOUND:
			return entry_has_key(index, itup, values, isnull);
		default:
			return true;
	}
}

static bool
matches_computed(Relation index, IndexTuple itup, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(recheck_context());
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	bool		result = entry_has(index, itup,
								   inplace_key_of_slot(index, slot, values, isnull),
								   values, isnull);

	MemoryContextSwitchTo(old);
	MemoryContextReset(recheck_context());
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
 * Does the version's value go with a key's, which is in line?  Pages may be locked,
 * so a value in a TOAST table is not looked up, but its length says something.
 */
static KeyMatch
compare_value(Relation index, int i, Datum key, bool key_null,
			  Datum value, bool value_null)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);

	if (!key_null && !value_null && att->attlen == -1 &&
		VARATT_IS_EXTERNAL(DatumGetPointer(value)))
		return index->rd_opcintype[i] == BPCHAROID ||
			toast_raw_datum_size(key) == toast_raw_datum_size(value) ?
			KEY_UNSURE : KEY_IS_OTHER;
	return same_value(index, i, key, key_null, value, value_null) ?
		KEY_MATCHES : KEY_IS_OTHER;
}

/*
 * An entry against a version, by what is at hand: pages may be locked.
 */
KeyMatch
inplace_entry_compare(Relation table, Relation index, IndexTuple itup,
					  InplaceTupleHeader tup, const ItemPointerData *tid)
{
	KeyMatch	result = inplace_key_is_computed(index) ? KEY_UNSURE : KEY_MATCHES;

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		AttrNumber	att = index->rd_index->indkey.values[i];
		bool		entry_null;
		bool		value_null;
		Datum		entry;
		Datum		value;
		KeyMatch	match;

		if (att == 0)
			continue;
		entry = index_getattr(itup, i + 1, RelationGetDescr(index), &entry_null);
		value = inplace_getattr(RelationGetDescr(table), tup, att, &value_null,
								CurrentMemoryContext, tid);
		match = compare_value(index, i, entry, entry_null, value, value_null);
		if (match == KEY_IS_OTHER)
			return KEY_IS_OTHER;
		if (match == KEY_UNSURE)
			result = KEY_UNSURE;
	}
	return result;
}

/*
 * The same for certain: no page is locked, and the version is one that is in the
 * index, or in doubt, but not one that may never have been.
 */
bool
inplace_entry_matches_tuple(Relation table, Relation index, IndexTuple itup,
							InplaceTupleHeader tup, const ItemPointerData *tid)
{
	MemoryContext old;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	bool		result;

	AssertNoPageLock();
	/* nothing is compared where an entry is of all its row's versions */
	if (inplace_key_is_computed(index) && !inplace_index_key(index)->known)
		return true;
	old = MemoryContextSwitchTo(recheck_context());
	result = entry_has(index, itup,
					   inplace_key_of_tuple(table, index, tup, tid, values, isnull),
					   values, isnull);
	MemoryContextSwitchTo(old);
	MemoryContextReset(recheck_context());
	return result;
}

/*
 * The same of any version, whose TOAST values may be gone, and whose key may fail:
 * what cannot be known counts as a match.
 */
bool
inplace_entry_may_match(Relation table, Relation index, IndexTuple itup,
						InplaceTupleHeader tup, const ItemPointerData *tid)
{
	KeyMatch	match = inplace_entry_compare(table, index, itup, tup, tid);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	ResourceOwner owner = NULL;
	ErrorData  *error;
	bool		result;

	if (match != KEY_UNSURE)
		return match == KEY_MATCHES;
	if (!inplace_key_is_computed(index) || !inplace_index_key(index)->known)
		return true;
	result = entry_has(index, itup,
					   inplace_key_guarded(table, index, tup, tid, false,
										   recheck_context(), &owner, values,
										   isnull, &error),
					   values, isnull);
	inplace_end_guarded(&owner);
	MemoryContextReset(recheck_context());
	return result;
}

/* is the column's value in the TOAST table? */
bool
inplace_is_external(TupleDesc desc, InplaceTupleHeader tup, AttrNumber att,
					const ItemPointerData *tid)
{
	bool		isnull;
	Datum		value;

	if (att <= 0 || TupleDescAttr(desc, att - 1)->attlen != -1)
		return false;
	value = inplace_getattr(desc, tup, att, &isnull, CurrentMemoryContext, tid);
	return !isnull && VARATT_IS_EXTERNAL(DatumGetPointer(value));
}

/* is one of the columns that are keys as they stand? */
bool
inplace_has_external_key(Relation table, Relation index, InplaceTupleHeader tup,
						 const ItemPointerData *tid)
{
	Form_pg_index form = index->rd_index;

	if (!(tup->t_natts & IP_HASEXTERNAL))
		return false;
	for (int i = 0; i < form->indnkeyatts; i++)
		if (inplace_is_external(RelationGetDescr(table), tup,
								form->indkey.values[i], tid))
			return true;
	return false;
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
 * The key of a row to be inserted against a version, which need only be equal.  In
 * an index that never took in-place updates an entry belongs to every version
 * of its row.  (One that does not take any now, because it is not valid, may have
 * taken some before; and one that was not valid when it was built has the
 * former keys all the same, see build.c.)  The index page and the table's are
 * locked.
 */
KeyMatch
inplace_new_key_compare(const Insertion *ins, InplaceTupleHeader tup,
						const ItemPointerData *tid)
{
	Relation	index = ins->index;
	KeyMatch	result = inplace_key_is_computed(index) ? KEY_UNSURE : KEY_MATCHES;
	bool		exact;

	if (!inplace_index_took(index))
		return KEY_MATCHES;
	exact = inplace_index_key(index)->exact;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		AttrNumber	att = index->rd_index->indkey.values[i];
		bool		isnull;
		Datum		value;
		KeyMatch	match;

		if (att == 0)
			continue;
		value = inplace_getattr(RelationGetDescr(ins->table), tup, att, &isnull,
								CurrentMemoryContext, tid);
		match = compare_value(index, i, ins->values[i], ins->isnull[i], value, isnull);
		if (match == KEY_IS_OTHER && !exact)
		{
			if (!isnull && TupleDescAttr(RelationGetDescr(index), i)->attlen == -1 &&
				VARATT_IS_EXTERNAL(DatumGetPointer(value)))
				match = KEY_UNSURE;
			else if (equal_value(index, i, ins->values[i], ins->isnull[i], value, isnull))
				match = KEY_MATCHES;
		}
		if (match == KEY_IS_OTHER)
			return KEY_IS_OTHER;
		if (match == KEY_UNSURE)
			result = KEY_UNSURE;
	}
	return result;
}

/* ... against a key that has been computed */
bool
inplace_new_key_matches(const Insertion *ins, const VersionKey *vk)
{
	bool		exact = inplace_index_key(ins->index)->exact;

	if (vk->key != KEY_FOUND)
		return false;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(ins->index); i++)
		if (!same_value(ins->index, i, ins->values[i], ins->isnull[i],
						vk->values[i], vk->isnull[i]) &&
			(exact || !equal_value(ins->index, i, ins->values[i], ins->isnull[i],
								   vk->values[i], vk->isnull[i])))
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

/* is no older version needed by anybody? */
static bool
is_last_needed(InplaceTupleHeader tup, TransactionId oldest_xmin)
{
	return TransactionIdPrecedes(HdrXid(tup), oldest_xmin);
}

static void
raise_horizon(TransactionId *horizon, TransactionId xid)
{
	if (TransactionIdIsValid(xid) &&
		(!TransactionIdIsValid(*horizon) || TransactionIdFollows(xid, *horizon)))
		*horizon = xid;
}

static KeyMatch
version_matches(EntryQuestion *q, IndexTuple itup, const ChainWalk *walk,
				const ItemPointerData *tid)
{
	KeyMatch	match = inplace_entry_compare(q->table, q->index, itup, walk->tuple, tid);
	VersionKey *vk;

	if (match != KEY_UNSURE)
		return match;
	/* a value in a TOAST table is taken for the entry's */
	if (q->keys == NULL)
		return KEY_MATCHES;
	vk = version_keys_find(q->keys, tid, walk->tuple, walk->len);
	if (vk == NULL)
	{
		/* where more than one version is needed, so are most entries */
		if (q->may_want && is_last_needed(walk->tuple, q->oldest_xmin) &&
			!version_keys_are_many(q->keys))
		{
			version_keys_want(q->keys, tid, walk->tuple, walk->len, false);
			q->nwanted++;
		}
		return KEY_UNSURE;
	}
	if (vk->key == KEY_UNKNOWN)
		return KEY_UNSURE;
	return entry_has(q->index, itup, vk->key, vk->values, vk->isnull) ?
		KEY_MATCHES : KEY_IS_OTHER;
}

/*
 * What is known of the versions before the one that a walk is at.
 */
typedef struct Replacer
{
	TransactionId xid;			/* what has replaced the version */
	bool		committed;		/* ... for sure, and all before it */
	TransactionId horizon;		/* for standbys, of versions that were left
								 * out */
} Replacer;

/*
 * Is the version nobody's any more?  Then standbys are told what has replaced it, should
 * it have the entry's key.  The replacer may have been in progress when its own version
 * was looked at, and ended since; not so one before the horizon, of which nothing may be
 * known any more.
 */
static bool
is_between(EntryQuestion *q, IndexTuple itup, const ChainWalk *walk,
		   const ItemPointerData *tid, Replacer *replacer)
{
	if (!q->between || !TransactionIdIsValid(replacer->xid) ||
		(walk->tuple->t_infomask & IP_FROZEN) ||
		!inplace_version_between(q->table, walk->tuple->t_xid, replacer->xid,
								 &q->bounds))
		return false;
	if (!replacer->committed &&
		!TransactionIdPrecedes(replacer->xid, q->oldest_xmin) &&
		!TransactionIdDidCommit(replacer->xid))
		return false;
	replacer->committed = true;
	if (inplace_entry_compare(q->table, q->index, itup, walk->tuple, tid) != KEY_IS_OTHER)
		raise_horizon(&replacer->horizon, replacer->xid);
	return true;
}

/* "xid" is that of the oldest version that was looked at */
static KeyMatch
any_version_matches(EntryQuestion *q, IndexTuple itup, ChainWalk *walk,
					TransactionId *xid, Replacer *replacer)
{
	ItemPointerData tid;

	ItemPointerSet(&tid, walk->blk, walk->off);
	for (;;)
	{
		if (--q->versions < 0)
			return KEY_UNSURE;
		if (version_aborted(walk))
		{
			/*
			 * nobody's; but an older one may be.  It has replaced nothing,
			 * and neither have versions of the same transaction above it that
			 * were in progress a moment ago.
			 */
			replacer->xid = InvalidTransactionId;
			if (!inplace_walk_back(walk, InvalidTransactionId))
				return KEY_MATCHES;
			continue;
		}
		if (HdrIsEvicted(walk->tuple))
		{
			/* its keys are those of the version that was deleted */
			if (!inplace_walk_back(walk, q->oldest_xmin))
				return KEY_MATCHES;
			replacer->xid = walk->replaced.xid;
			continue;
		}
		if (!is_between(q, itup, walk, &tid, replacer))
			switch (version_matches(q, itup, walk, &tid))
			{
				case KEY_MATCHES:
					return KEY_MATCHES;
				case KEY_UNSURE:
					return KEY_UNSURE;
				case KEY_IS_OTHER:
					break;
			}
		*xid = (walk->tuple->t_infomask & IP_FROZEN) ? InvalidTransactionId :
			walk->tuple->t_xid;
		if (!inplace_walk_back(walk, q->oldest_xmin))
		{
			/*
			 * The row itself is younger than the horizon: the entry is of an
			 * update that was rolled back, and no snapshot ever needed it.
			 */
			if (!TransactionIdPrecedes(*xid, q->oldest_xmin))
				*xid = InvalidTransactionId;
			return KEY_IS_OTHER;
		}
		replacer->xid = walk->replaced.xid;
	}
}

/*
 * Does any version of a row that somebody may still see have the entry's key?
 * The row's page is locked, and the index's.  KEY_IS_OTHER: none does, and the
 * question's horizon is raised to the xid of the oldest version that is looked at.
 * The entry's own version is older, so a snapshot that needs the entry does not see
 * that one.  Or it is one that is_between() left out, and the horizon is raised to the
 * xid of what replaced it.  KEY_UNSURE: there are more versions than were to be looked at, or not
 * all of their keys are known.
 */
KeyMatch
inplace_entry_needed(EntryQuestion *question, IndexTuple itup,
					 BlockNumber blk, OffsetNumber off,
					 InplaceTupleHeader tup, Size len)
{
	static CopyWalk copies;		/* large, and never in use twice */
	static MemoryContext cxt = NULL;
	ChainWalk  *walk;
	MemoryContext old;
	TransactionId xid = InvalidTransactionId;
	Replacer	replacer = {0};
	KeyMatch	result;

	if (cxt == NULL)
		cxt = AllocSetContextCreate(TopMemoryContext, "inplace index entry",
									ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(cxt);
	walk = inplace_walk_begin(&copies, question->table, blk, off, tup, len);
	result = any_version_matches(question, itup, walk, &xid, &replacer);
	MemoryContextSwitchTo(old);
	MemoryContextReset(cxt);

	if (result == KEY_IS_OTHER)
	{
		raise_horizon(&question->horizon, xid);
		raise_horizon(&question->horizon, replacer.horizon);
	}
	return result;
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

/*-------------------------------------------------------------------------
 *
 * taking.c
 *	  Which indexes of a table take in-place updates (index.h), and giving
 *	  them their new entries.
 *
 * What is found out about a table's indexes is kept in its relcache entry
 * (rd_amcache), which the server drops whenever an index comes, goes or
 * becomes valid.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/xact.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_type.h"
#include "index/btree_handler.h"
#include "index/entry.h"
#include "index/kept_key.h"
#include "index/key.h"
#include "index/other_entry.h"
#include "index/other_mark.h"
#include "index/other_method.h"
#include "index/taking.h"
#include "nodes/execnodes.h"
#include "optimizer/optimizer.h"
#include "page/compare.h"
#include "page/tuple.h"
#include "replication/logicalworker.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"

/*
 * Has it a key of type bpchar without a length?  Then its entries do not tell equal values
 * apart that are not identical (entry.c), and a row can have one for each of them only at
 * another TID.  (A domain may have a length, but that is not looked for here.)
 */
static bool
blanks_may_differ(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);

		if (index->rd_opcintype[i] == BPCHAROID &&
			(att->atttypid != BPCHAROID || att->atttypmod < 0))
			return true;
	}
	return false;
}

bool
inplace_index_takes(Relation index)
{
	Form_pg_index form = index->rd_index;

	/* whether an exclusion constraint holds is for the executor to see */
	return form->indisready && form->indisvalid && form->indislive &&
		!form->indisexclusion && !blanks_may_differ(index) &&
		inplace_index_took(index);
}

/*
 * May it have taken some, when it was valid?
 */
bool
inplace_index_took(Relation index)
{
	Form_pg_index form = index->rd_index;
	const IndexKey *key;

	if (!inplace_index_is_btree(index))
		return false;
	if (!form->indisunique && !inplace_key_is_computed(index))
		return true;
	key = inplace_index_key(index);
	return key->known && (!form->indisunique || key->exact || key->comparable);
}

/*
 * Has this transaction made an inplace_btree of an index that was there before?
 * If that is rolled back, the file is a btree's again, whose entries nobody compares
 * with their rows: until it is committed, none of former keys may come into it.
 * (Other changes of the pg_index row count, too, which does no harm.  The method's
 * invalidates the table's relcache entry, at the end of the transaction again.)
 */
static bool
method_may_be_rolled_back(Relation index)
{
	return index->rd_createSubid == InvalidSubTransactionId &&
		TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data));
}

/*
 * Must the server insert into the index itself?  A worker of logical replication
 * reports a key that is taken already as a conflict, and counts it, if its
 * own insertion has met it, not if the table's update has.  What a process is does not
 * change, so the answer can be kept.
 */
static bool
left_to_server(Relation index)
{
	return WORKER_FINDS_CONFLICTS && index->rd_index->indisunique &&
		IsLogicalWorker();
}

static Bitmapset *
add_column(Bitmapset *set, AttrNumber attnum)
{
	return bms_add_member(set, attnum - FirstLowInvalidHeapAttributeNumber);
}

/*
 * The columns that an index which does not take in-place updates depends on.
 */
static Bitmapset *
add_blocking(Bitmapset *set, Relation index)
{
	Form_pg_index form = index->rd_index;

	if (IndexIsSummarizing(index))
		return set;
	for (int i = 0; i < form->indnatts; i++)
		if (form->indkey.values[i] != 0)
			set = add_column(set, form->indkey.values[i]);
	if (inplace_index_keeps(index))
		return set;
	pull_varattnos((Node *) RelationGetIndexExpressions(index), 1, &set);
	pull_varattnos((Node *) RelationGetIndexPredicate(index), 1, &set);
	return set;
}

/*
 * A payload that takes much more room in an entry than in the row.
 */
static bool
may_be_trimmed(Relation rel, AttrNumber attnum)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), attnum - 1);

	return att->atttypid == BPCHAROID &&
		(att->atttypmod < 0 || att->atttypmod > MAX_ROW_WITH_PAYLOAD / 8);
}

static Size
set_size(const Bitmapset *set)
{
	return set == NULL ? 0 :
		MAXALIGN(offsetof(Bitmapset, words) + set->nwords * sizeof(bitmapword));
}

/* a copy of the set to the end of the chunk; returns its place, or 0 */
static Size
put_set(TakingIndexes *chunk, const Bitmapset *set)
{
	Size		off = chunk->size;

	if (set == NULL)
		return 0;
	memcpy((char *) chunk + off, set,
		   offsetof(Bitmapset, words) + set->nwords * sizeof(bitmapword));
	chunk->size += set_size(set);
	return off;
}

/*
 * An index of another method.  Of such each column of a version is in the entry, as if all of them
 * were of the key.
 */
static void
add_other(Relation index, TakingIndexes *t, Bitmapset **columns)
{
	Form_pg_index form = index->rd_index;
	int			n = t->n++;
	TakingIndex *ti = &t->index[n];

	ti->indexid = RelationGetRelid(index);
	ti->other = true;
	ti->sought = index->rd_rel->relam != GIN_AM_OID;
	ti->waits = index->rd_rel->relam == GIST_AM_OID;
	ti->exact = true;			/* equal keys may stand beside each other */
	ti->computed = inplace_key_is_computed(index);
	ti->nkeys = ti->computed ? form->indnkeyatts : form->indnatts;
	ti->natts = form->indnatts;
	ti->own_code = inplace_other_has_own_code(index);
	if (ti->computed)
		for (int i = 0; i < inplace_index_key(index)->ncolumns; i++)
			columns[n] = add_column(columns[n],
									inplace_index_key(index)->columns[i]);
	for (int i = 0; i < form->indnatts; i++)
		ti->keys[i] = form->indkey.values[i];
	for (int i = ti->nkeys; i < ti->natts; i++)
		columns[n] = add_column(columns[n], ti->keys[i]);
}

/*
 * Note an index: as one that takes updates in place, or as one whose columns block
 * them, of which a kept key is noted, too.
 */
static void
add_index(Relation rel, Relation index, TakingIndexes *t, Bitmapset **columns,
		  Bitmapset **blocking)
{
	TakingIndex *ti = &t->index[t->n];

	/* (relam: a routine may be left over, see index_method.c) */
	if (index->rd_rel->relam != BTREE_AM_OID &&
		!method_may_be_rolled_back(index) &&
		inplace_index_takes(index) && !left_to_server(index))
	{
		Form_pg_index form = index->rd_index;
		int			n = t->n++;

		ti->indexid = RelationGetRelid(index);
		ti->nkeys = form->indnkeyatts;
		ti->natts = form->indnatts;
		ti->exact = inplace_index_key(index)->exact;
		ti->computed = inplace_key_is_computed(index);
		ti->own_code = inplace_index_key(index)->comparable;
		if (ti->computed)
			for (int i = 0; i < inplace_index_key(index)->ncolumns; i++)
				columns[n] = add_column(columns[n],
										inplace_index_key(index)->columns[i]);
		for (int i = 0; i < form->indnatts; i++)
		{
			ti->keys[i] = form->indkey.values[i];
			if (i >= ti->nkeys && may_be_trimmed(rel, ti->keys[i]))
				*blocking = add_column(*blocking, ti->keys[i]);
		}
		return;
	}

	if (inplace_other_takes(index))
	{
		add_other(index, t, columns);
		return;
	}

	*blocking = add_blocking(*blocking, index);
	if (inplace_index_keeps(index))
	{
		ti->indexid = RelationGetRelid(index);
		ti->computed = ti->kept = true;
		columns[t->n++] = inplace_kept_key_columns(index);
	}
}

static void
find_taking(Relation rel)
{
	List	   *list;
	List	   *now;
	TakingIndexes *t;
	Bitmapset **columns;
	Bitmapset  *blocking;
	Size		size;
	TakingIndexes *chunk;
	ListCell   *lc;

restart:
	list = RelationGetIndexList(rel);
	t = palloc0(offsetof(TakingIndexes, index) +
				sizeof(TakingIndex) * list_length(list));
	columns = palloc0(sizeof(Bitmapset *) * (list_length(list) + 1));
	blocking = NULL;

	foreach(lc, list)
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		add_index(rel, index, t, columns, &blocking);
		index_close(index, AccessShareLock);
	}

	/*
	 * While an index was opened we may have been told of another one, which
	 * CREATE INDEX CONCURRENTLY makes; what we keep is not thrown away for it
	 * again.
	 */
	now = RelationGetIndexList(rel);
	if (!equal(list, now))
	{
		list_free(list);
		list_free(now);
		goto restart;
	}
	list_free(list);
	list_free(now);

	t->size = MAXALIGN(offsetof(TakingIndexes, index) + sizeof(TakingIndex) * t->n);
	size = t->size + set_size(blocking);
	for (int i = 0; i < t->n; i++)
		size += set_size(columns[i]);
	chunk = MemoryContextAlloc(CacheMemoryContext, size);
	memcpy(chunk, t, offsetof(TakingIndexes, index) + sizeof(TakingIndex) * t->n);
	chunk->blocking_off = put_set(chunk, blocking);
	for (int i = 0; i < t->n; i++)
	{
		chunk->index[i].columns_off = put_set(chunk, columns[i]);
		bms_free(columns[i]);
	}
	Assert(chunk->size == size);
	bms_free(blocking);
	pfree(columns);
	pfree(t);

	/* (opening the indexes may have rebuilt the relcache entry) */
	if (rel->rd_amcache)
		pfree(rel->rd_amcache);
	rel->rd_amcache = chunk;
}

/*
 * A copy, for the relcache's own may go while we wait for somebody.  NULL if no
 * index takes in-place updates.
 */
TakingIndexes *
inplace_taking_indexes(Relation rel)
{
	TakingIndexes *cached;
	TakingIndexes *copy;

	if (!rel->rd_rel->relhasindex)
		return NULL;
	if (rel->rd_amcache == NULL)
		find_taking(rel);
	cached = (TakingIndexes *) rel->rd_amcache;
	if (cached->n == 0)
		return NULL;
	copy = palloc(cached->size);
	memcpy(copy, cached, cached->size);
	return copy;
}

/*
 * Note which of the indexes get a new key; false if none does, nor any another
 * payload.
 */
bool
inplace_taking_changed(TakingIndexes *taking, const RowDiff *diff)
{
	bool		any = false;

	taking->payload_changed = false;
	for (int i = 0; i < taking->n; i++)
	{
		TakingIndex *index = &taking->index[i];

		index->absent = index->included_changed = false;
		index->changed = index->computed &&
			inplace_diff_overlaps(diff, TakingColumns(taking, i));
		for (int k = index->computed ? index->nkeys : 0; k < index->natts; k++)
		{
			if (index->keys[k] > diff->natts || !diff->changed[index->keys[k] - 1])
				continue;
			if (k < index->nkeys)
				index->changed = true;
			else if (index->other)
				index->included_changed = true;
			else
				taking->payload_changed = true;
		}
		any |= index->changed;
	}
	return any || taking->payload_changed;
}

/* does inserting the new entries run no code but the server's, or such as is known? */
static bool
runs_own_code(const TakingIndexes *taking)
{
	for (int i = 0; i < taking->n; i++)
		if (taking->index[i].changed && !taking->index[i].kept &&
			!taking->index[i].own_code)
			return false;
	return true;
}

/* has the row no entries in indexes of other methods but those of this version? */
static bool
has_one_entry(const TakingIndexes *taking, const InplaceTupleHeaderData *base)
{
	return runs_own_code(taking) &&
		(!(base->t_infomask & IP_STALE) || HdrIsSwept(base));
}

/*
 * Which of the new keys have no entry for the row's TID, so that it need not be
 * looked for?  The row is about to be changed, its page is locked; "base" is the
 * header of the version that is replaced, after whatever was aborted has been
 * taken back.
 *
 * If that version is not IP_STALE, and a key column passed by value changes, an
 * index whose equal keys are identical has no entry with the new key:
 *	 - Entries of a row that stood at this TID before have gone: its line
 *	   pointer is free only after VACUUM has removed all entries of the TID from
 *	   all indexes, and an index made later never had them.
 *	 - Of this row there is one entry at most (invariant 3), for every update
 *	   that adds one marks the row first, and the mark stays when it is rolled
 *	   back: by the transaction, by a savepoint, or by a crash, since the record
 *	   of the update is in WAL before that of the entry.
 *	 - VACUUM takes the mark off only after it has seen to it that the
 *	   row has the entry of its present key alone; and no update that came
 *	   before can still be about to add one, for its transaction has ended
 *	   (vacuum/stale.c).
 *	 - That one entry has the replaced version's key (invariant 1).  It is not
 *	   identical to the new one, nor equal.  (An index that is not ready, or not
 *	   valid, takes nothing in place, and one that is being made gets the
 *	   version that CREATE INDEX sees, with no version after it that has
 *	   another key in place: build.c.)
 *	 - Between now and the insertion nobody else can change the row, and
 *	   this transaction comes by only through code that is run by the
 *	   insertion: that of comparisons, hence runs_own_code().
 *
 * By value, because stored bytes of others may differ although the values do
 * not (compression).  The rows that are updated for the first time since VACUUM
 * cleared their mark are those that gain.
 *
 * Of an index of another method it is noted that there is no entry but that of the version
 * which is replaced.  Where an entry has been looked for it may be known that it is missing.
 * That still holds if the row's page has not been changed since ("as_verified"): who inserts
 * one changes the row before, and the transaction that has changed it last has ended, or is
 * our own.  (The header alone would not do.  A change that was rolled back meanwhile may have
 * left an entry.)
 */
void
inplace_taking_note_absent(Relation rel, TakingIndexes *taking,
						   const RowDiff *diff,
						   const InplaceTupleHeaderData *base, bool as_verified)
{
	bool		own_code = runs_own_code(taking);

	for (int i = 0; i < taking->n; i++)
	{
		if (taking->index[i].other)
			taking->index[i].absent = has_one_entry(taking, base);
		taking->index[i].missing &= as_verified && own_code;
	}
	if ((base->t_infomask & IP_STALE) || !own_code)
		return;
	for (int i = 0; i < taking->n; i++)
	{
		TakingIndex *index = &taking->index[i];

		if (!index->changed || index->computed || index->other || !index->exact)
			continue;
		for (int k = 0; k < index->nkeys && !index->absent; k++)
			index->absent = index->keys[k] <= diff->natts &&
				diff->changed[index->keys[k] - 1] &&
				TupleDescAttr(RelationGetDescr(rel), index->keys[k] - 1)->attbyval;
	}
}

/* is it to be computed, or is an equal one not sure to be identical? */
static bool
key_is_unsure(const TakingIndex *index)
{
	return index->changed && (index->computed || !index->exact);
}

/* may its entry be there already, among others, so that it has to be looked for? */
static bool
entry_is_sought(const TakingIndexes *taking, const TakingIndex *index,
				const InplaceTupleHeaderData *base)
{
	return index->changed && index->sought && !has_one_entry(taking, base);
}

/*
 * "base" is the header of the version that is replaced.  Entries are not looked for while an index
 * takes no updates yet, for the row moves anyway.  (inplace_taking_start_others() comes
 * first, unless keys have to be computed, which may show that they have not changed.)
 */
bool
inplace_taking_has_unsure_keys(Relation rel, const TakingIndexes *taking,
							   const InplaceTupleHeaderData *base)
{
	bool		sought = false;

	for (int i = 0; i < taking->n; i++)
	{
		if (key_is_unsure(&taking->index[i]))
			return true;
		sought |= entry_is_sought(taking, &taking->index[i], base);
	}
	return sought && inplace_taking_others_known(rel, taking);
}

static KeyChange
verify_key(Relation rel, TakingIndex *ti, InplaceTupleHeader old, Size len,
		   TupleTableSlot *slot, ItemPointer tid, bool sought, EntrySought *entry)
{
	Relation	index = index_open(ti->indexid, RowExclusiveLock);
	KeyChange	change = KEY_NEW;

	if (ti->kept)
		change = inplace_key_is_kept(rel, index, old, len, slot, tid) ?
			KEY_SAME : KEY_CLASH;
	else if (!ti->other)
		change = inplace_key_change(rel, index, old, slot, tid);
	else if (ti->computed)
		change = inplace_other_key_change(rel, index, old, slot, tid,
										  ti->included_changed);
	if (sought && change == KEY_NEW &&
		(*entry = inplace_other_seek_entry(rel, index, tid, slot,
										   &ti->place)) == ENTRY_NOT_SEEN)
		change = KEY_CLASH;
	index_close(index, NoLock);
	return change;
}

/*
 * Find out what the update does to the keys that are unsure.  Can the row stay
 * where it is?  Not if it would come to have keys that are equal without being
 * identical, or if it is not known what entries it has.  No page is locked; "old" is a copy
 * of the newest version.
 */
bool
inplace_taking_verify_keys(Relation rel, TakingIndexes *taking,
						   InplaceTupleHeader old, Size len,
						   const InplaceTupleHeaderData *base,
						   TupleTableSlot *slot, ItemPointer tid)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext,
											  "inplace index keys",
											  ALLOCSET_SMALL_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(cxt);
	bool		distinct = true;

	for (int i = 0; i < taking->n && distinct; i++)
	{
		TakingIndex *ti = &taking->index[i];
		bool		sought = entry_is_sought(taking, ti, base);

		EntrySought entry = ENTRY_NOT_SEEN;

		ti->missing = false;
		if (!key_is_unsure(ti) && !sought)
			continue;
		ti->key_change = verify_key(rel, ti, old, len, slot, tid, sought, &entry);
		ti->missing = entry == ENTRY_MISSING;
		distinct = ti->key_change != KEY_CLASH;
	}
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(cxt);
	return distinct;
}

/*
 * The same as inplace_taking_changed has said, now that it has been found out.
 */
bool
inplace_taking_keys_verified(TakingIndexes *taking)
{
	bool		any = taking->payload_changed;

	for (int i = 0; i < taking->n; i++)
	{
		TakingIndex *index = &taking->index[i];

		if (key_is_unsure(index) && index->key_change == KEY_SAME)
			index->changed = false;
		any |= index->changed;
	}
	return any;
}

/*
 * The new entry of one index.  If it is there from an earlier version, there
 * is nothing to insert, but others may have taken a unique key since.
 */
static void
insert_entry(Relation rel, Relation index, bool absent, ItemPointer tid,
			 TupleTableSlot *slot)
{
	Form_pg_index form = index->rd_index;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	IndexInfo  *info = makeNode(IndexInfo);
	bool		unique = form->indisunique;
	EntryFound	found;

	if (inplace_key_of_slot(index, slot, values, isnull) != KEY_FOUND)
	{
		/* the row has left the predicate */
		pfree(info);
		return;
	}
	inplace_payload_of_slot(index, slot, values, isnull);
	for (int i = 0; i < form->indnkeyatts; i++)
		/* nulls that are distinct conflict with nothing */
		if (isnull[i] && !form->indnullsnotdistinct)
			unique = false;

	info->ii_NumIndexAttrs = form->indnatts;
	info->ii_NumIndexKeyAttrs = form->indnkeyatts;
	info->ii_Unique = form->indisunique;
	info->ii_ReadyForInserts = true;
	info->ii_Am = index->rd_rel->relam;
	info->ii_Context = CurrentMemoryContext;

#ifdef USE_ASSERT_CHECKING
	found = inplace_entry_exists(rel, index, values, isnull, tid);
	Assert(!absent || found == ENTRY_NONE);
#else
	found = absent ? ENTRY_NONE :
		inplace_entry_exists(rel, index, values, isnull, tid);
#endif

	/*
	 * It was not there when the update looked for it: made by one that came
	 * in between and was rolled back.
	 */
	if (found == ENTRY_EQUAL)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent update")));
	if (found == ENTRY_NONE)
		index_insert(index, values, isnull, tid, rel,
					 unique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO,
					 true, info);
	else if (unique)
		index_insert(index, values, isnull, tid, rel, UNIQUE_CHECK_EXISTING,
					 true, info);
	pfree(info);
}

/* is the version that is replaced needed for the entries of the new one? */
bool
inplace_taking_wants_old(const TakingIndexes *taking)
{
	for (int i = 0; i < taking->n; i++)
		if (taking->index[i].changed && taking->index[i].other)
			return true;
	return false;
}

/*
 * Do the indexes of other methods whose keys change take that, as far as this process knows?
 * A page may be locked.
 */
bool
inplace_taking_others_known(Relation rel, const TakingIndexes *taking)
{
	for (int i = 0; i < taking->n; i++)
		if (taking->index[i].changed && taking->index[i].other &&
			!inplace_other_known_taking(rel, taking->index[i].indexid))
			return false;
	return true;
}

/*
 * They are to take it as soon as they may.  No page is locked.
 */
void
inplace_taking_start_others(Relation rel, const TakingIndexes *taking)
{
	for (int i = 0; i < taking->n; i++)
		if (taking->index[i].changed && taking->index[i].other)
			(void) inplace_other_start_taking(rel, taking->index[i].indexid,
											  taking->index[i].waits);
}

/*
 * After an in-place update: the entries of the indexes whose keys changed.  No
 * page is locked.  "old" is a copy of the version that was replaced, if it is wanted.
 */
void
inplace_insert_entries(Relation rel, const TakingIndexes *taking,
					   ItemPointer tid, InplaceTupleHeader old,
					   TupleTableSlot *slot)
{
	MemoryContext outer = CurrentMemoryContext;

	for (int i = 0; i < taking->n; i++)
	{
		const TakingIndex *ti = &taking->index[i];
		MemoryContext cxt = NULL;
		Relation	index;

		if (!ti->changed)
			continue;

		/* a key that is computed takes memory; others are in the slot */
		if (ti->computed || ti->other)
		{
			cxt = AllocSetContextCreate(outer, "inplace index keys",
										ALLOCSET_SMALL_SIZES);
			MemoryContextSwitchTo(cxt);
		}
		index = index_open(ti->indexid, RowExclusiveLock);
		if (ti->other)
			/* (code of users may have changed the row once more meanwhile) */
			inplace_other_insert(rel, index, tid, old, slot, ti->absent,
								 ti->missing ? &ti->place : NULL);
		else
			insert_entry(rel, index, ti->absent, tid, slot);
		index_close(index, NoLock);
		if (cxt)
		{
			MemoryContextSwitchTo(outer);
			MemoryContextDelete(cxt);
		}
	}
}

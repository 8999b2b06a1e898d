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
#include "access/nbtree.h"
#include "access/sysattr.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "index/index.h"
#include "nodes/execnodes.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"

/* does the operator class promise that equal keys are identical? */
static bool
key_equal_is_identical(Relation index, int i)
{
	Oid			type = index->rd_opcintype[i];
	Oid			proc = get_opfamily_proc(index->rd_opfamily[i], type, type,
										 BTEQUALIMAGE_PROC);

	/* names are filled up with zeroes */
	if (type == NAMEOID)
		return get_collation_isdeterministic(index->rd_indcollation[i]);
	if (!OidIsValid(proc))
		return false;
	return DatumGetBool(OidFunctionCall1Coll(proc, index->rd_indcollation[i],
											 ObjectIdGetDatum(type)));
}

static bool
index_is_exact(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (!key_equal_is_identical(index, i))
			return false;
	return true;
}

bool
inplace_index_takes(Relation index)
{
	Form_pg_index form = index->rd_index;

	if (!inplace_index_is_btree(index) ||
		!form->indisready || !form->indisvalid || !form->indislive ||
		!heap_attisnull(index->rd_indextuple, Anum_pg_index_indexprs, NULL) ||
		!heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL))
		return false;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (form->indkey.values[i] <= 0)
			return false;
	return !form->indisunique || index_is_exact(index);
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

static void
find_taking(Relation rel)
{
	List	   *list = RelationGetIndexList(rel);
	TakingIndexes *t = palloc0(offsetof(TakingIndexes, index) +
							   sizeof(TakingIndex) * list_length(list));
	Bitmapset  *blocking = NULL;
	Size		len;
	Size		set_len;
	TakingIndexes *chunk;
	ListCell   *lc;

	foreach(lc, list)
	{
		Oid			indexid = lfirst_oid(lc);
		Relation	index = index_open(indexid, AccessShareLock);

		/* (relam: a routine may be left over, see index_method.c) */
		if (index->rd_rel->relam != BTREE_AM_OID && inplace_index_takes(index))
		{
			TakingIndex *ti = &t->index[t->n++];
			Form_pg_index form = index->rd_index;

			ti->indexid = indexid;
			ti->nkeys = form->indnkeyatts;
			ti->natts = form->indnatts;
			ti->exact = index_is_exact(index);
			for (int i = 0; i < form->indnatts; i++)
			{
				ti->keys[i] = form->indkey.values[i];
				if (i >= ti->nkeys && may_be_trimmed(rel, ti->keys[i]))
					blocking = add_column(blocking, ti->keys[i]);
			}
		}
		else
			blocking = add_blocking(blocking, index);
		index_close(index, AccessShareLock);
	}
	list_free(list);

	len = MAXALIGN(offsetof(TakingIndexes, index) + sizeof(TakingIndex) * t->n);
	set_len = blocking == NULL ? 0 :
		offsetof(Bitmapset, words) + blocking->nwords * sizeof(bitmapword);
	t->blocking_off = set_len == 0 ? 0 : len;
	t->size = len + set_len;
	chunk = MemoryContextAlloc(CacheMemoryContext, len + set_len);
	memcpy(chunk, t, offsetof(TakingIndexes, index) + sizeof(TakingIndex) * t->n);
	if (set_len > 0)
		memcpy((char *) chunk + len, blocking, set_len);
	bms_free(blocking);
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

		index->changed = false;
		for (int k = 0; k < index->natts; k++)
		{
			if (index->keys[k] > diff->natts || !diff->changed[index->keys[k] - 1])
				continue;
			if (k < index->nkeys)
				index->changed = true;
			else
				taking->payload_changed = true;
		}
		any |= index->changed;
	}
	return any || taking->payload_changed;
}

/* is a new key of an index such that an equal one need not be identical? */
bool
inplace_taking_unsure(const TakingIndexes *taking)
{
	for (int i = 0; i < taking->n; i++)
		if (taking->index[i].changed && !taking->index[i].exact)
			return true;
	return false;
}

/*
 * Can the row stay where it is?  Not if it would come to have keys that are
 * equal without being identical.  No page is locked; "old" is a copy of the
 * newest version.
 */
bool
inplace_taking_verify(Relation rel, const TakingIndexes *taking,
					  InplaceTupleHeader old, TupleTableSlot *slot,
					  ItemPointer tid)
{
	bool		apart = true;

	for (int i = 0; i < taking->n && apart; i++)
	{
		Relation	index;

		if (!taking->index[i].changed || taking->index[i].exact)
			continue;
		index = index_open(taking->index[i].indexid, RowExclusiveLock);
		apart = inplace_key_apart(rel, index, old, slot, tid);
		index_close(index, NoLock);
	}
	return apart;
}

/*
 * The new entry of one index.  If it is there from an earlier version, there
 * is nothing to insert, but others may have taken a unique key since.
 */
static void
insert_entry(Relation rel, Relation index, ItemPointer tid, TupleTableSlot *slot)
{
	Form_pg_index form = index->rd_index;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	IndexInfo  *info = makeNode(IndexInfo);
	bool		unique = form->indisunique;
	EntryFound	found;

	for (int i = 0; i < form->indnatts; i++)
	{
		values[i] = slot_getattr(slot, form->indkey.values[i], &isnull[i]);
		/* nulls that are distinct conflict with nothing */
		if (i < form->indnkeyatts && isnull[i] && !form->indnullsnotdistinct)
			unique = false;
	}

	info->ii_NumIndexAttrs = form->indnatts;
	info->ii_NumIndexKeyAttrs = form->indnkeyatts;
	info->ii_Unique = form->indisunique;
	info->ii_ReadyForInserts = true;
	info->ii_Am = index->rd_rel->relam;
	info->ii_Context = CurrentMemoryContext;

	found = inplace_entry_exists(rel, index, values, isnull, tid);

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

/*
 * After an in-place update: the entries of the indexes whose keys changed.  No
 * page is locked.
 */
void
inplace_insert_entries(Relation rel, const TakingIndexes *taking,
					   ItemPointer tid, TupleTableSlot *slot)
{
	for (int i = 0; i < taking->n; i++)
	{
		Relation	index;

		if (!taking->index[i].changed)
			continue;
		index = index_open(taking->index[i].indexid, RowExclusiveLock);
		insert_entry(rel, index, tid, slot);
		index_close(index, NoLock);
	}
}

/*-------------------------------------------------------------------------
 *
 * kept_key.c
 *	  Indexes with expressions or a predicate that do not take in-place updates,
 *	  and updates that leave their keys as they are.
 *
 * These are inplace_btree ones that are computed by code of users, since nobody
 * else than the updater may run that, or by functions that may come out otherwise
 * in another session (key.c), and btree ones: a unique index of
 * the open jobs is one, up to PostgreSQL 17.  Each row has one entry at most in
 * them, which is that of all its versions.  But an update of what the key is
 * computed from need not change it.  If it does not, the update does not concern
 * the index, and nobody will ever have to compute an older version's key.  If it
 * does, the row moves.
 *
 * Code of users.  A backend that updates a row runs it anyway, with its user's
 * privileges, when the executor gives the index its entry.  It is run here in the
 * same way, before the row is changed and with no page locked.  The old key is not
 * computed, but looked up: either the entry with the new key is there already, or
 * the old key was another one.  So a function that has changed, by being replaced or
 * by not being immutable after all, makes an entry where it would make one on heap.
 * A row that it now puts outside of the predicate, but not when the row's entry was
 * made, moves away from that entry.  The predicate is asked whether the old version
 * was outside only where it is sure to say what it said then.  Elsewhere the index
 * tells, if the key is nothing but columns, and these have not changed.
 *
 * In a btree, only functions known to come out the same are run once more, so that
 * nobody can notice.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "catalog/index.h"
#include "catalog/pg_am_d.h"
#include "executor/executor.h"
#include "index/btree_handler.h"
#include "index/entry.h"
#include "index/kept_key.h"
#include "index/key.h"
#include "nodes/execnodes.h"
#include "optimizer/optimizer.h"
#include "page/slot.h"
#include "page/tuple.h"

/*
 * Of an inplace_btree this does not change while it exists (key.c).  (relam: a
 * routine may be left over, see index_method.c)
 */
bool
inplace_index_keeps(Relation index)
{
	Form_pg_index form = index->rd_index;

	if (!form->indisready || !form->indisvalid || !form->indislive ||
		!inplace_key_is_computed(index))
		return false;
	if (index->rd_rel->relam == BTREE_AM_OID)
		return inplace_index_key(index)->known;
	return inplace_index_is_btree(index) && !inplace_index_key(index)->known;
}

/* what only expressions and the predicate have need of */
Bitmapset *
inplace_kept_key_columns(Relation index)
{
	Bitmapset  *set = NULL;

	pull_varattnos((Node *) RelationGetIndexExpressions(index), 1, &set);
	pull_varattnos((Node *) RelationGetIndexPredicate(index), 1, &set);
	return set;
}

static bool
satisfies(ExprState *predicate, EState *estate, TupleTableSlot *slot)
{
	GetPerTupleExprContext(estate)->ecxt_scantuple = slot;
	return ExecQual(predicate, GetPerTupleExprContext(estate));
}

static bool
old_satisfies(Relation table, ExprState *predicate, EState *estate,
			  InplaceTupleHeader old, Size len, ItemPointer tid)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(RelationGetDescr(table),
													&TTSOpsInplace);
	bool		result;

	inplace_store_tuple(slot, RelationGetRelid(table), tid, old, len, NULL, true);
	result = satisfies(predicate, estate, slot);
	ExecDropSingleTupleTableSlot(slot);
	return result;
}

/*
 * The version in the slot has no key.  Has the row no entry either, which would be that
 * of "old", the newest version there is?
 */
static bool
has_no_entry(Relation table, Relation index, IndexInfo *info, EState *estate,
			 ExprState *predicate, InplaceTupleHeader old, Size len,
			 TupleTableSlot *slot, ItemPointer tid)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	if (inplace_index_key(index)->predicate_known)
		return !old_satisfies(table, predicate, estate, old, len, tid);
	/* outside of the predicate an expression may fail */
	if (info->ii_Expressions != NIL)
		return false;
	FormIndexDatum(info, slot, estate, values, isnull);
	return inplace_entry_exists(table, index, values, isnull, tid) == ENTRY_NONE;
}

/*
 * Is the key of the version in the slot that of the row's entry, or has neither
 * it nor the version "old", the newest there is, a key?
 */
static bool
users_key_is_kept(Relation table, Relation index, InplaceTupleHeader old,
				  Size len, TupleTableSlot *slot, ItemPointer tid)
{
	EState	   *estate = CreateExecutorState();
	MemoryContext cxt = MemoryContextSwitchTo(estate->es_query_cxt);
	IndexInfo  *info = BuildIndexInfo(index);
	ExprState  *predicate = ExecPrepareQual(info->ii_Predicate, estate);
	bool		result;

	if (satisfies(predicate, estate, slot))
	{
		Datum		values[INDEX_MAX_KEYS];
		bool		isnull[INDEX_MAX_KEYS];

		FormIndexDatum(info, slot, estate, values, isnull);
		result = inplace_entry_exists(table, index, values, isnull, tid) ==
			ENTRY_IDENTICAL;
	}
	else
		result = has_no_entry(table, index, info, estate, predicate, old, len,
							  slot, tid);
	MemoryContextSwitchTo(cxt);
	FreeExecutorState(estate);
	return result;
}

/* the same of any index that keeps; no page is locked */
bool
inplace_key_is_kept(Relation table, Relation index, InplaceTupleHeader old,
					Size len, TupleTableSlot *slot, ItemPointer tid)
{
	return inplace_index_key(index)->known ?
		inplace_key_change(table, index, old, slot, tid) == KEY_SAME :
		users_key_is_kept(table, index, old, len, slot, tid);
}

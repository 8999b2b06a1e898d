/*-------------------------------------------------------------------------
 *
 * gin_entry.c
 *	  The keys of a version in a GIN index.
 *
 * They go straight into the tree.  In the list of pending entries a TID would stand under a key
 * as often as it has been inserted, and what works off the list does not expect that.  In the
 * tree it stands there once.  A scan looks for rows that fit in the list, and in the tree,
 * but does not put together what a row has in either.  So all keys of the version have to be in
 * the tree, though others of its keys may be pending.
 *
 * Most keys are there already.  Those that the version before has, too, are in the tree if nothing
 * is pending: they have been inserted with it, or been found, and VACUUM takes no key out that
 * the newest version has.  Another one that is there costs a descent, and no WAL.  One that is not
 * gets the TID into its posting list with a record that has nothing but the TID (wal/log_gin.c).
 * What else may have to be done is left to GIN: a key that is new, a list that becomes a tree,
 * a tree, a page that has to be split.
 *
 * Lock order: one leaf page of the entry tree, exclusively, with nothing under it.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/gin_private.h"
#include "index/gin_entry.h"
#include "index/gin_query.h"
#include "index/insert_info.h"
#include "miscadmin.h"
#include "storage/predicate.h"
#include "wal/log_gin.h"

/*
 * An entry with a posting list, on the locked page: true if the TID is in it now.
 */
static bool
add_to_list(Relation index, Buffer buffer, OffsetNumber off, ItemPointer tid)
{
	Page		page = BufferGetPage(buffer);
	ItemId		lp = PageGetItemId(page, off);
	IndexTuple	itup;
	bool		there;

	/* it may stand in for the insertion of an entry */
	CheckForSerializableConflictIn(index, NULL, BufferGetBlockNumber(buffer));

	itup = inplace_gin_entry_with((IndexTuple) PageGetItem(page, lp), tid, &there);
	if (itup == NULL)
		return there;
	if (MAXALIGN(IndexTupleSize(itup)) >
		MAXALIGN(ItemIdGetLength(lp)) + PageGetExactFreeSpace(page))
	{
		pfree(itup);
		return false;
	}
	START_CRIT_SECTION();
	if (!PageIndexTupleOverwrite(page, off, (Item) itup, IndexTupleSize(itup)))
		elog(PANIC, "failed to overwrite an entry of index \"%s\"",
			 RelationGetRelationName(index));
	MarkBufferDirty(buffer);
	inplace_log_gin_add(index, buffer, off, tid);
	END_CRIT_SECTION();
	pfree(itup);
	return true;
}

/*
 * The TID under one key.  (As GIN's own ginEntryInsert, with which it begins again where it
 * cannot go on.)
 */
static void
add_tid(GinState *state, OffsetNumber attnum, Datum key, GinNullCategory category,
		ItemPointer tid)
{
	GinBtreeData btree;
	GinBtreeStack *stack;
	BlockNumber tree = InvalidBlockNumber;
	bool		done = false;

	ginPrepareEntryScan(&btree, attnum, key, category, state);
	btree.isBuild = false;
	stack = GinFindLeafToChange(&btree);
	if (btree.findItem(&btree, stack))
	{
		Page		page = BufferGetPage(stack->buffer);
		IndexTuple	itup = (IndexTuple) PageGetItem(page, PageGetItemId(page, stack->off));

		if (GinIsPostingTree(itup))
			tree = GinGetPostingTree(itup);
		else
			done = add_to_list(state->index, stack->buffer, stack->off, tid);
	}
	LockBuffer(stack->buffer, GIN_UNLOCK);
	freeGinBtreeStack(stack);

	if (tree != InvalidBlockNumber)
		ginInsertItemPointers(state->index, tree, tid, 1, NULL);
	else if (!done)
		ginEntryInsert(state, attnum, key, category, tid, 1, NULL);
}

/* (what has been inserted before is in the tree then) */
static bool
nothing_is_pending(Relation index)
{
	Buffer		meta = ReadBuffer(index, GIN_METAPAGE_BLKNO);
	bool		result;

	LockBuffer(meta, GIN_SHARE);
	result = GinPageGetMeta(BufferGetPage(meta))->head == InvalidBlockNumber;
	UnlockReleaseBuffer(meta);
	return result;
}

/* keys of a column, in their order, each once */
typedef struct ColumnKeys
{
	Datum	   *keys;
	GinNullCategory *categories;
	int32		n;
} ColumnKeys;

static void
extract_keys(GinState *state, OffsetNumber attnum, const EntryValues *v, ColumnKeys *keys)
{
	keys->keys = ginExtractEntries(state, attnum, v->values[attnum - 1],
								   v->isnull[attnum - 1], &keys->n, &keys->categories);
}

/*
 * Is the k-th key among the others?  "at" goes through those from one call to the next.
 */
static bool
is_among(GinState *state, OffsetNumber attnum, const ColumnKeys *keys, int k,
		 const ColumnKeys *others, int *at)
{
	for (; *at < others->n; (*at)++)
	{
		int			c = ginCompareEntries(state, attnum,
										  others->keys[*at], others->categories[*at],
										  keys->keys[k], keys->categories[k]);

		if (c >= 0)
			return c == 0;
	}
	return false;
}

/*
 * Does a SERIALIZABLE transaction have to insert keys that the version before has, too?  A
 * query that a key keeps rows out of has locks on pages of the index alone, those of the keys
 * that it wants, as it does not come to such a row.  When an update takes the first key out it
 * meets these pages only by the others.
 */
static bool
checks_all_keys(Relation index)
{
	return IsolationIsSerializable() && inplace_gin_keeps_rows_out(index);
}

/*
 * "had": of the version before, whose keys are in the tree or pending; or NULL.  Memory is the
 * caller's to free.
 */
void
inplace_gin_insert(Relation index, const EntryValues *v, const EntryValues *had,
				   ItemPointer tid)
{
	GinState   *state = inplace_gin_state(index);

	if (had != NULL && (checks_all_keys(index) || !nothing_is_pending(index)))
		had = NULL;
	for (int i = 1; i <= IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		ColumnKeys	keys;
		ColumnKeys	former = {0};
		int			at = 0;

		extract_keys(state, i, v, &keys);
		if (had != NULL)
			extract_keys(state, i, had, &former);
		for (int k = 0; k < keys.n; k++)
		{
			CHECK_FOR_INTERRUPTS();
			if (!is_among(state, i, &keys, k, &former, &at))
				add_tid(state, i, keys.keys[k], keys.categories[k], tid);
		}
	}
}

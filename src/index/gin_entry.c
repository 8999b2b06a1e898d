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
 * Most keys are there already.  One that is costs a descent, and no WAL.  One that is not gets
 * the TID into its posting list with a record that has nothing but the TID (wal/log_gin.c).
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

/* memory is the caller's to free */
void
inplace_gin_insert(Relation index, const Datum *values, const bool *isnull, ItemPointer tid)
{
	GinState   *state = inplace_gin_state(index);

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		GinNullCategory *categories;
		int32		n;
		Datum	   *keys = ginExtractEntries(state, i + 1, values[i], isnull[i], &n,
											 &categories);

		for (int k = 0; k < n; k++)
		{
			CHECK_FOR_INTERRUPTS();
			add_tid(state, i + 1, keys[k], categories[k], tid);
		}
	}
}

/*-------------------------------------------------------------------------
 *
 * insert_info.c
 *	  What inserting into a GIN, hash or GiST index needs to know, from one row to the next.
 *
 * GIN and GiST look up the functions of their operator classes for it, and keep what they have
 * found in the IndexInfo, which the executor has for a statement.  An update in place has no
 * executor's, and there may be many of single rows.  So one is kept with what else is known
 * of the index in this process (key.c), which forgets it when the index's relcache entry is
 * invalidated.  It refers to that entry: another one has another.
 *
 * What functions of operator classes keep for themselves is kept as long, then.  And these may run
 * while others of the same state do.  So it is done for such classes only as
 * are known (inplace_other_has_own_code); others have it made for each row, in the caller's
 * memory.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/gin_private.h"
#include "access/gist_private.h"
#include "index/insert_info.h"
#include "index/key.h"
#include "index/other_method.h"
#include "utils/memutils.h"

/* a new one, in the current memory context */
static IndexInfo *
make_info(Relation index)
{
	IndexInfo  *info = makeNode(IndexInfo);

	info->ii_NumIndexAttrs = index->rd_index->indnatts;
	info->ii_NumIndexKeyAttrs = index->rd_index->indnkeyatts;
	info->ii_ReadyForInserts = true;
	info->ii_Am = index->rd_rel->relam;
	info->ii_Context = CurrentMemoryContext;
	return info;
}

/*
 * It stays until the next call of this, or of inplace_index_key(), for the index.
 */
IndexInfo *
inplace_insert_info(Relation index)
{
	IndexKey   *key = inplace_index_key(index);
	MemoryContext old;

	AssertNoPageLock();
	if (key->info != NULL && key->info_of == index &&
		key->info_desc == RelationGetDescr(index))
		return key->info;
	if (!inplace_other_has_own_code(index))
		return make_info(index);

	if (key->info != NULL)
		MemoryContextDelete(key->info->ii_Context);
	key->info = NULL;
	old = MemoryContextSwitchTo(AllocSetContextCreate(key->cxt, "inplace insert info",
													  ALLOCSET_SMALL_SIZES));
	key->info = make_info(index);
	key->info_of = index;
	key->info_desc = RelationGetDescr(index);
	MemoryContextSwitchTo(old);
	return key->info;
}

/* as gininsert() has it */
struct GinState *
inplace_gin_state(Relation index)
{
	IndexInfo  *info = inplace_insert_info(index);

	if (info->ii_AmCache == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(info->ii_Context);
		GinState   *state = palloc(sizeof(GinState));

		initGinState(state, index);
		info->ii_AmCache = state;
		MemoryContextSwitchTo(old);
	}
	return info->ii_AmCache;
}

/* as gistinsert() has it */
struct GISTSTATE *
inplace_gist_state(Relation index)
{
	IndexInfo  *info = inplace_insert_info(index);

	if (info->ii_AmCache == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(info->ii_Context);
		GISTSTATE  *state = initGISTstate(index);

		state->tempCxt = createTempGistContext();
		info->ii_AmCache = state;
		MemoryContextSwitchTo(old);
	}
	return info->ii_AmCache;
}

/*-------------------------------------------------------------------------
 *
 * insertion.c
 *	  aminsert of inplace_btree: nbtree's, which may be left and begun again.
 *
 * nbtree asks the table twice, with index pages locked: whether a row with an equal
 * key is alive (a unique check, scan/fetch.c), and which entries of a page that
 * is about to split are dead (index_delete.c).  With stale entries (index.h) that may be a
 * question about the keys of versions.  These may have to be computed from expressions, or
 * to be fetched from a TOAST table, and that must not be done there: it may be
 * slow, fail, wait for a lock, look into catalogs, and neither a cancel nor a
 * timeout ends it, while others wait for the page.
 *
 * So it is not done there.  The table's side notes which versions it has to know
 * the keys of (version_keys.c) and lets go of the page: it jumps back here, out
 * of nbtree (inplace_let_go).  Here, with nothing locked, the keys are computed, and nbtree is
 * called again.
 *
 * What is left behind
 *	 - Page locks: all this backend has, since it had none when nbtree was called
 *	   (or it may not let go).
 *	 - Pins, and references to tuple descriptors: these are of a resource owner that
 *	   only this call has.
 *	 - Memory: from a context that only this call has.
 *	 - Nothing else.  Both questions come between an insertion's steps: nothing has
 *	   been changed but what is complete in itself, as a deletion before, and no
 *	   input or output is going on.
 * nbtree has no PG_TRY of its own around these questions, and code of operator classes is
 * not running then.  We do not take that for granted: if there is another handler than
 * the one put up here, the page is not let go of (inplace_can_let_go).
 *
 * The jump is no error: none is raised, so no error context is asked what it has to
 * say while the page is locked.
 *
 * How often: a unique check may be begun again as often as it meets versions that it
 * does not know, just as it may wait for any number of transactions.  A deletion is
 * begun again once, and entries of versions that are not known then are kept.
 *
 * A version whose key cannot be computed must not be taken for one with another key: if
 * the check meets it again, the error is raised, here.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/detoast.h"
#include "access/nbtree.h"
#include "catalog/pg_type.h"
#include "index/as_btree.h"
#include "index/btree_handler.h"
#include "index/insertion.h"
#include "index/key.h"
#include "index/version_keys.h"
#include "miscadmin.h"
#include "no_lock.h"
#include "nodes/execnodes.h"
#include "storage/lwlock.h"
#include "utils/memutils.h"

/*
 * Values up to this length are not moved to the TOAST table: with their header they
 * take no more than MAXALIGN(TOAST_POINTER_SIZE).  (Of bpchar that says nothing: the
 * length is in characters, and a value of the same key may have more bytes.)
 */
#define NEVER_EXTERNAL		20

Insertion  *inplace_insertion = NULL;

/* ---------------- values ---------------- */

/* the values, those out of line fetched */
static void
put_in_line(Relation index, const Datum *values, const bool *isnull, Datum *in_line)
{
	TupleDesc	desc = RelationGetDescr(index);

	for (int i = 0; i < desc->natts; i++)
	{
		in_line[i] = values[i];
		if (!isnull[i] && TupleDescAttr(desc, i)->attlen == -1 &&
			VARATT_IS_EXTERNAL(DatumGetPointer(values[i])))
		{
			AssertNoPageLock();
			in_line[i] = PointerGetDatum(detoast_external_attr((struct varlena *)
															   DatumGetPointer(values[i])));
		}
	}
}

/* those fetched are freed: many rows may be inserted in one memory context */
static void
free_in_line(Relation index, const Datum *values, const bool *isnull, const Datum *in_line)
{
	for (int i = 0; i < RelationGetDescr(index)->natts; i++)
		if (!isnull[i] && in_line[i] != values[i])
			pfree(DatumGetPointer(in_line[i]));
}

/* ---------------- letting go ---------------- */

/*
 * Can the table's side, which is asked by nbtree, leave it?
 */
bool
inplace_can_let_go(const Insertion *ins)
{
	return ins->may_let_go && ins == inplace_insertion &&
		PG_exception_stack == ins->handler && CritSectionCount == 0;
}

/*
 * Leave it.  The versions to be computed have been noted.
 */
void
inplace_let_go(Insertion *ins)
{
	Assert(inplace_can_let_go(ins));
	ins->let_go = true;
	siglongjmp(*PG_exception_stack, 1);
}

static void
release_owner(ResourceOwner owner, bool success)
{
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_BEFORE_LOCKS, success, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_LOCKS, success, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_AFTER_LOCKS, success, false);
}

/*
 * nbtree has come back: it has released its pins itself.  Only code of users, in an
 * operator class, may have left anything, as locks on relations.
 */
static void
end_owner(const Insertion *ins)
{
	if (!ins->key->comparable)
		release_owner(ins->owner, true);
	ResourceOwnerDelete(ins->owner);
}

/* nbtree has been left */
static void
release_all(const Insertion *ins)
{
	LWLockReleaseAll();
	InterruptHoldoffCount = 0;
	release_owner(ins->owner, false);
	ResourceOwnerDelete(ins->owner);
}

/*
 * May the check of a plain unique key, or deletion, have to know what it cannot
 * know with a page locked?
 */
static bool
may_have_to_let_go(const Insertion *ins)
{
	Relation	index = ins->index;

	if (ins->key == NULL)
		return false;
	if (inplace_key_is_computed(index))
		return ins->key->known;
	if (!ins->unique_check || !OidIsValid(ins->table->rd_rel->reltoastrelid))
		return false;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (TupleDescAttr(RelationGetDescr(index), i)->attlen == -1 &&
			!ins->isnull[i] &&
			(!ins->key->exact || index->rd_opcintype[i] == BPCHAROID ||
			 toast_raw_datum_size(ins->values[i]) > VARHDRSZ + NEVER_EXTERNAL))
			return true;
	return false;
}

/* ---------------- the insertion ---------------- */

/* what aminsert is called with, but for the values */
typedef struct InsertCall
{
	ItemPointer tid;
	IndexUniqueCheck check;
	bool		index_unchanged;
	IndexInfo  *info;
} InsertCall;

static bool
call_nbtree(Insertion *ins, const InsertCall *call)
{
	return inplace_nbtree_routine()->aminsert(ins->index,
											  unconstify(Datum *, ins->values),
											  unconstify(bool *, ins->isnull),
											  call->tid, ins->table, call->check,
											  call->index_unchanged, call->info);
}

/* nbtree has come back, or has been left */
static void
end_call(Insertion *ins, ActsAsBtree *as, ResourceOwner owner)
{
	inplace_act_as_itself(as);
	/* an operator class may have come here to insert something itself */
	inplace_insertion = ins->outer;
	CurrentResourceOwner = owner;
}

/*
 * Call nbtree for it; false if that was left.
 */
static bool
try_insert(Insertion *ins, const InsertCall *call, MemoryContext work, bool *result)
{
	MemoryContext cxt = CurrentMemoryContext;
	ResourceOwner outer = CurrentResourceOwner;
	ActsAsBtree as;

	ins->owner = ins->may_let_go ?
		ResourceOwnerCreate(outer, "inplace index insertion") : NULL;
	ins->let_go = false;
	ins->outer = inplace_insertion;
	inplace_act_as_btree(&as, ins->index);
	PG_TRY();
	{
		ins->handler = PG_exception_stack;
		inplace_insertion = ins;
		if (ins->owner != NULL)
		{
			CurrentResourceOwner = ins->owner;
			MemoryContextSwitchTo(work);
		}
		*result = call_nbtree(ins, call);
		end_call(ins, &as, outer);
	}
	PG_CATCH();
	{
		end_call(ins, &as, outer);
		if (!ins->let_go)
			PG_RE_THROW();
	}
	PG_END_TRY();

	MemoryContextSwitchTo(cxt);
	if (ins->let_go)
		release_all(ins);
	else if (ins->owner != NULL)
		end_owner(ins);
	return !ins->let_go;
}

/* with nothing locked: what is needed to try again */
static void
prepare_again(Insertion *ins, MemoryContext work)
{
	AssertNoPageLock();
	MemoryContextReset(work);
	if (ins->failed != NULL)
		ReThrowError(ins->failed->error);
	CHECK_FOR_INTERRUPTS();
	version_keys_compute(&ins->keys);
}

/* where nbtree works: mostly there is nothing in it that has to be given back */
static MemoryContext
work_context(void)
{
	static MemoryContext cxt = NULL;

	if (inplace_insertion != NULL)
		return AllocSetContextCreate(CurrentMemoryContext, "inplace index insertion",
									 ALLOCSET_DEFAULT_SIZES);
	if (cxt == NULL)
		cxt = AllocSetContextCreate(TopMemoryContext, "inplace index insertion",
									ALLOCSET_DEFAULT_SIZES);
	else
		MemoryContextReset(cxt);	/* after an error */
	return cxt;
}

static void
end_work(MemoryContext work)
{
	if (inplace_insertion != NULL)
		MemoryContextDelete(work);
	else
		MemoryContextReset(work);
}

static bool
insert_key(Insertion *ins, const InsertCall *call)
{
	MemoryContext work;
	bool		result = false;

	/* what the code that this is called from has locked stays so */
	ins->may_let_go = InterruptHoldoffCount == 0 && may_have_to_let_go(ins);
	if (!ins->may_let_go)
	{
		(void) try_insert(ins, call, NULL, &result);
		return result;
	}
	version_keys_init(&ins->keys, ins->table, ins->index);
	work = work_context();
	while (!try_insert(ins, call, work, &result))
		prepare_again(ins, work);
	end_work(work);
	version_keys_free(&ins->keys);
	return result;
}

bool
inplace_btree_insert(Relation index, Datum *values, bool *isnull,
					 ItemPointer tid, Relation table,
					 IndexUniqueCheck check, bool index_unchanged,
					 IndexInfo *info)
{
	InsertCall	call = {tid, check, index_unchanged, info};
	Insertion	ins = {0};
	Datum		in_line[INDEX_MAX_KEYS];
	bool		needs_key;
	bool		result;

	InplaceRequirePreload();
	needs_key = index->rd_index->indisunique || inplace_key_is_computed(index);
#ifndef USE_ASSERT_CHECKING
	if (check == UNIQUE_CHECK_NO && !needs_key)
		return inplace_nbtree_routine()->aminsert(index, values, isnull, tid, table,
												  check, index_unchanged, info);
#endif

	/*
	 * index_form_tuple() would look into the TOAST table.  And what deletion,
	 * or the check of a unique key, will want to know of the index while a
	 * page is locked must have been found out before.
	 */
	put_in_line(index, values, isnull, in_line);
	if (needs_key)
		ins.key = inplace_index_key(index);
	ins.index = index;
	ins.table = table;
	ins.values = in_line;
	ins.isnull = isnull;
	ins.unique_check = check != UNIQUE_CHECK_NO;
	result = insert_key(&ins, &call);
	free_in_line(index, values, isnull, in_line);
	return result;
}

/*-------------------------------------------------------------------------
 *
 * heap_readers.c
 *	  Functions of others that take every page for heap's.
 *
 * Most programs that read heap pages look at the table's access method first, and
 * refuse what they do not know.  pg_visibility's pg_check_visible() and
 * pg_check_frozen() do not: they ask heap's visibility rules about each item of an
 * all-visible page, and these set hint bits, in the middle of a row of ours.
 *
 * What they do ask a table's access method for is its size, before they read
 * anything, and for nothing else: so that is where they are refused.  The hooks of the
 * function manager tell when one is running.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/transam.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "ddl/heap_readers.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "own.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"


/* what the hook keeps with each function it is called for */
typedef struct ReaderState
{
	bool		is_reader;
	Oid			outer;			/* running_reader before this call */
	Datum		next_private;	/* for the hook after this one */
} ReaderState;

static needs_fmgr_hook_type prev_needs_fmgr_hook = NULL;
static fmgr_hook_type prev_fmgr_hook = NULL;

static Oid	running_reader = InvalidOid;

static bool
is_heap_reader(Oid fn_oid)
{
	HeapTuple	tuple;
	Form_pg_proc proc;
	bool		result = false;

	if (fn_oid < FirstNormalObjectId)
		return false;

	/* the server has just done the same, whatever it has locked */
	NoLockInUserCode();
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(fn_oid));
	if (!HeapTupleIsValid(tuple))
		return false;			/* the caller complains */

	proc = (Form_pg_proc) GETSTRUCT(tuple);
	if (proc->prolang == ClanguageId && proc->proretset)
	{
		bool		isnull;
		Datum		src = SysCacheGetAttr(PROCOID, tuple,
										  Anum_pg_proc_prosrc, &isnull);

		if (!isnull)
		{
			char	   *symbol = TextDatumGetCString(src);

			result = strcmp(symbol, "pg_check_visible") == 0 ||
				strcmp(symbol, "pg_check_frozen") == 0;
			pfree(symbol);
		}
	}
	ReleaseSysCache(tuple);
	return result;
}

static bool
needs_hook(Oid fn_oid)
{
	if (prev_needs_fmgr_hook && prev_needs_fmgr_hook(fn_oid))
		return true;
	/* (last, this once: for hardly any function catalogs are looked at) */
	return is_heap_reader(fn_oid) && InplaceInstalledNow();
}

static void
call_hook(FmgrHookEventType event, FmgrInfo *flinfo, Datum *private)
{
	ReaderState *state = (ReaderState *) DatumGetPointer(*private);

	if (state == NULL)
	{
		state = MemoryContextAllocZero(flinfo->fn_mcxt, sizeof(ReaderState));
		state->is_reader = is_heap_reader(flinfo->fn_oid);
		*private = PointerGetDatum(state);
	}

	if (state->is_reader)
	{
		if (event == FHET_START)
		{
			state->outer = running_reader;
			running_reader = flinfo->fn_oid;
		}
		else
			running_reader = state->outer;
	}
	if (prev_fmgr_hook)
		prev_fmgr_hook(event, flinfo, &state->next_private);
}

void
inplace_heap_readers_init(void)
{
	prev_needs_fmgr_hook = needs_fmgr_hook;
	needs_fmgr_hook = needs_hook;
	prev_fmgr_hook = fmgr_hook;
	fmgr_hook = call_hook;
}

uint64
inplace_relation_size(Relation rel, ForkNumber fork)
{
	/* without the hooks we cannot tell which function asks */
	InplaceRequirePreload();

	if (unlikely(OidIsValid(running_reader)))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("function \"%s\" cannot be used on relation \"%s\" of access method \"inplace\"",
						get_func_name(running_reader),
						RelationGetRelationName(rel)),
				 errdetail("It would take its rows for those of a heap table, and damage them."),
				 errhint("Use inplace.check() instead.")));
	return table_block_relation_size(rel, fork);
}

/*-------------------------------------------------------------------------
 *
 * key.c
 *	  The keys of versions in indexes with expressions or a predicate.
 *
 * Such a key is computed by other sessions than the one that made the entry.  A
 * session that happens to read a row never meant to run what the table's owner
 * wrote.  So an index takes in-place updates that change its key only
 * if its expressions and predicate consist of functions of the server's that are known to
 * come out the same in all sessions (safe_functions.c): "known".  Elsewhere an
 * update that changes the key moves the row (kept_key.c).
 *
 * "Readable" is more: the server's own functions, whatever they look at, which do no
 * harm.  An index of an earlier version of the extension, which took all these but
 * for a list of exceptions, may have stale entries.  Therefore
 *	 - a scan compares the entry that led to a stale row with the key that the row
 *	   has for the reader, as it always did
 *	 - a sweep leaves the mark to rows with an entry that is not their key's
 *	   (sweep.c), and nothing is deleted from it
 *	 - in a unique check each entry counts for its row, as on heap.  If it was stale,
 *	   an error says that the key is there already, until the index is rebuilt.
 *
 * Whether an index is of these kinds must not change while it exists.  Otherwise some
 * backends would compare entries that others take for those of all versions.  So the
 * expressions as they were written count: these name functions by OID, and the
 * server's own do not change.  A user's function counts as such even if the planner
 * would replace it by its body.
 *
 * Computing may be slow, fail, wait for a lock (of a TOAST table), look into catalogs:
 * it is done with no page locked.  What has to be known while one is, is computed
 * before (version_keys.c).
 *
 * Errors.  An expression may fail on a version (1 / 0).  A version that is in
 * the index has not failed, so a scan, which finds visible versions, computes
 * its key without a guard.  A backend that follows older versions comes to some that
 * were replaced before the index was made: there inplace_key_guarded says UNKNOWN.
 *
 * The memory of results is the caller's context.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/detoast.h"
#include "access/nbtree.h"
#include "access/sysattr.h"
#include "access/tupdesc.h"
#include "access/xact.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_authid_d.h"
#include "catalog/pg_language_d.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "index/btree_handler.h"
#include "index/key.h"
#include "index/safe_functions.h"
#include "no_lock.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "page/tuple.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/syscache.h"
#include "xact_end.h"

static HTAB *index_keys = NULL;

/* since the last transaction some of them have been marked */
static bool any_invalid = false;

/* ---------------- what does no harm ---------------- */

/*
 * A type of the server, or an enum, or an array of such.  Functions for any type
 * call those of the type that they are given.
 */
static bool
type_is_builtin(Oid type)
{
	Oid			element;

	type = getBaseType(type);
	while (OidIsValid(element = get_element_type(type)))
		type = getBaseType(element);
	switch (get_typtype(type))
	{
		case TYPTYPE_ENUM:
			return true;
		case TYPTYPE_COMPOSITE:
			return false;
		default:
			return type < FirstNormalObjectId && type != RECORDOID;
	}
}

static bool
function_is_builtin(Oid function)
{
	HeapTuple	tuple;
	bool		result;

	if (function >= FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_proc) GETSTRUCT(tuple))->prolang == INTERNALlanguageId;
	ReleaseSysCache(tuple);
	return result;
}

static bool
function_of_user(Oid function, void *context)
{
	return function >= FirstNormalObjectId;
}

/*
 * The exceptions there were: an index with one of these never had stale entries, and its
 * keys may come out otherwise for each reader.
 */
static bool
function_by_settings(Oid function, void *context)
{
	switch (function)
	{
			/* bytea_output */
		case F_BYTEAOUT:
			/* extra_float_digits */
		case F_FLOAT4OUT:
		case F_FLOAT8OUT:
		case F_POINT_OUT:
		case F_LSEG_OUT:
		case F_PATH_OUT:
		case F_BOX_OUT:
		case F_POLY_OUT:
		case F_CIRCLE_OUT:
		case F_LINE_OUT:
			/* quote_all_identifiers */
		case F_QUOTE_IDENT:
			/* search_path */
		case F_CONVERT:
		case F_CONVERT_FROM:
		case F_CONVERT_TO:
			return true;
		default:
			return false;
	}
}

/*
 * Those for which a time zone may be named by an abbreviation.  What it means is
 * up to timezone_abbreviations, and from 18 on to TimeZone.
 */
static bool
function_of_zone(Oid function)
{
	switch (function)
	{
		case F_TIMEZONE_TEXT_TIMESTAMP:
		case F_TIMEZONE_TEXT_TIMESTAMPTZ:
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT:
#if PG_VERSION_NUM >= 160000
		case F_DATE_ADD_TIMESTAMPTZ_INTERVAL_TEXT:
		case F_DATE_SUBTRACT_TIMESTAMPTZ_INTERVAL_TEXT:
#endif
			return true;
		default:
			return false;
	}
}

/* a constant like Europe/Berlin, which is no abbreviation */
static bool
is_zone_by_place(Node *node)
{
	Const	   *zone = (Const *) node;

	return IsA(node, Const) && !zone->constisnull &&
		zone->consttype == TEXTOID &&
		strchr(TextDatumGetCString(zone->constvalue), '/') != NULL;
}

static bool
depends_on_settings(Node *node)
{
	if (IsA(node, FuncExpr) && function_of_zone(((FuncExpr *) node)->funcid))
	{
		FuncExpr   *call = (FuncExpr *) node;

		/* in timezone() the zone comes first, in the others last */
		if (call->funcid == F_TIMEZONE_TEXT_TIMESTAMP ||
			call->funcid == F_TIMEZONE_TEXT_TIMESTAMPTZ)
			return !is_zone_by_place(linitial(call->args));
		return !is_zone_by_place(llast(call->args));
	}
	return check_functions_in_node(node, function_by_settings, NULL);
}

/*
 * Is there anything in the expression that is not the server's?
 */
static bool
has_foreign_code(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_List:
		case T_CaseWhen:
			return expression_tree_walker(node, has_foreign_code, context);
		case T_Var:
			/* whole rows have a type of their own */
			if (((Var *) node)->varattno <= 0)
				return true;
			break;
		case T_Const:
		case T_FuncExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_BoolExpr:
		case T_RelabelType:
		case T_CollateExpr:
		case T_NamedArgExpr:
		case T_RowCompareExpr:
		case T_CoerceViaIO:
		case T_ArrayCoerceExpr:
		case T_ArrayExpr:
		case T_CaseExpr:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
		case T_MinMaxExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_SubscriptingRef:
			break;
		default:
			return true;
	}
	/* dictionaries have code of their own */
	if (exprType(node) == REGCONFIGOID || exprType(node) == REGDICTIONARYOID)
		return true;
	return !type_is_builtin(exprType(node)) ||
		depends_on_settings(node) ||
		check_functions_in_node(node, function_of_user, NULL) ||
		expression_tree_walker(node, has_foreign_code, context);
}

/* a column of pg_index as it was written */
static Node *
written(Relation index, AttrNumber attnum)
{
	bool		isnull;
	Datum		value = SysCacheGetAttr(INDEXRELID, index->rd_indextuple, attnum,
										&isnull);

	return isnull ? NULL : (Node *) stringToNode(TextDatumGetCString(value));
}

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

/* ---------------- what is known of an index ---------------- */

/* not while it may be in use: marked only */
static void
forget_index(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS status;
	IndexKey   *key;

	if (OidIsValid(relid))
	{
		key = hash_search(index_keys, &relid, HASH_FIND, NULL);
		if (key)
		{
			key->valid = false;
			any_invalid = true;
		}
		return;
	}
	any_invalid = true;
	hash_seq_init(&status, index_keys);
	while ((key = hash_seq_search(&status)) != NULL)
		key->valid = false;
}

/*
 * At the end of a transaction nobody uses any.  Those marked may be of indexes that
 * have been dropped, and nobody would ask for them again.
 */
static void
drop_forgotten(XactEvent event, void *arg)
{
	HASH_SEQ_STATUS status;
	IndexKey   *key;

	if (!XactIsLeft(event) || !any_invalid)
		return;
	any_invalid = false;
	hash_seq_init(&status, index_keys);
	while ((key = hash_seq_search(&status)) != NULL)
	{
		if (key->valid)
			continue;
		if (key->cxt != NULL)
			MemoryContextDelete(key->cxt);
		hash_search(index_keys, &key->indexid, HASH_REMOVE, NULL);
	}
}

static void
init_index_keys(void)
{
	HASHCTL		ctl = {0};

	ctl.keysize = sizeof(Oid);
	ctl.entrysize = sizeof(IndexKey);
	index_keys = hash_create("inplace index keys", 64, &ctl,
							 HASH_ELEM | HASH_BLOBS);
	CacheRegisterRelcacheCallback(forget_index, (Datum) 0);
	RegisterXactCallback(drop_forgotten, NULL);
}

/* the columns of the table that the key depends on */
static void
set_columns(IndexKey *key, Relation index, Node *exprs, Node *predicate)
{
	Bitmapset  *set = NULL;
	int			x = -1;

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (index->rd_index->indkey.values[i] > 0)
			set = bms_add_member(set, index->rd_index->indkey.values[i] -
								 FirstLowInvalidHeapAttributeNumber);
	pull_varattnos(exprs, 1, &set);
	pull_varattnos(predicate, 1, &set);

	key->columns = palloc(sizeof(AttrNumber) * Max(bms_num_members(set), 1));
	while ((x = bms_next_member(set, x)) >= 0)
		key->columns[key->ncolumns++] = x + FirstLowInvalidHeapAttributeNumber;
}

/* planned as the relation cache does it */
static void
init_expressions(IndexKey *key, Relation index, Node *written_exprs,
				 Node *written_predicate)
{
	List	   *exprs = (List *) eval_const_expressions(NULL, written_exprs);
	List	   *predicate = make_ands_implicit((Expr *)
											   eval_const_expressions(NULL,
																	  written_predicate));
	int			next = 0;

	fix_opfuncids((Node *) exprs);
	fix_opfuncids((Node *) predicate);
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (index->rd_index->indkey.values[i] == 0)
			key->expr[i] = ExecInitExpr((Expr *) list_nth(exprs, next++), NULL);
	key->predicate = ExecInitQual(predicate, NULL);
}

/*
 * The privileges of the user who happens to read a row do not matter, for the functions
 * are harmless.  Nor does it depend on the user what the planner makes of them.
 */
static void
prepare_expressions(IndexKey *key, Relation index, Node *exprs, Node *predicate)
{
	Relation	table = RelationIdGetRelation(index->rd_index->indrelid);
	Oid			user;
	int			context;

	if (!RelationIsValid(table))
		elog(ERROR, "could not open relation with OID %u",
			 index->rd_index->indrelid);
	/* a descriptor that nobody counts references of */
	key->slot = MakeSingleTupleTableSlot(CreateTupleDescCopyConstr(RelationGetDescr(table)),
										 &TTSOpsVirtual);
	RelationClose(table);
	key->econtext = CreateStandaloneExprContext();

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID, context);
	PG_TRY();
	{
		init_expressions(key, index, exprs, predicate);
	}
	PG_FINALLY();
	{
		SetUserIdAndSecContext(user, context);
	}
	PG_END_TRY();
}

/*
 * Other methods than btree may keep something else than the value, of another type.
 */
static void
learn_columns(IndexKey *key, Relation index)
{
	bool		btree = index->rd_rel->relam == BTREE_AM_OID ||
		inplace_index_is_btree(index);

	key->exact = key->comparable = btree;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);

		if (!btree)
		{
			get_typlenbyval(index->rd_opcintype[i], &key->len[i], &key->byval[i]);
			continue;
		}
		key->len[i] = att->attlen;
		key->byval[i] = att->attbyval;
		if (!key_equal_is_identical(index, i))
			key->exact = false;
		if (!function_is_builtin(index_getprocid(index, i + 1, BTORDER_PROC)) ||
			(att->atttypid != CSTRINGOID && !type_is_builtin(att->atttypid)))
			key->comparable = false;
	}
}

static void
learn_index(IndexKey *key, Relation index)
{
	MemoryContext old;
	Node	   *exprs;
	Node	   *predicate;

	AssertNoPageLock();

	if (key->cxt == NULL)
		key->cxt = AllocSetContextCreate(TopMemoryContext, "inplace index key",
										 ALLOCSET_SMALL_SIZES);
	else
		MemoryContextReset(key->cxt);
	key->info = NULL;
	key->ncolumns = 0;
	key->columns = NULL;
	memset(key->expr, 0, sizeof(key->expr));
	key->predicate = NULL;

	/* invalidations that arrive from here on count */
	key->valid = true;
	key->learned = false;
	old = MemoryContextSwitchTo(key->cxt);
	PG_TRY();
	{
		learn_columns(key, index);
		exprs = written(index, Anum_pg_index_indexprs);
		predicate = written(index, Anum_pg_index_indpred);
		key->readable = !has_foreign_code(exprs, NULL) &&
			!has_foreign_code(predicate, NULL);
		key->predicate_known = inplace_expression_is_safe(predicate);
		key->known = key->readable && key->predicate_known &&
			inplace_expression_is_safe(exprs);
		if (key->readable)
		{
			set_columns(key, index, exprs, predicate);
			if (exprs != NULL || predicate != NULL)
				prepare_expressions(key, index, exprs, predicate);
		}
	}
	PG_CATCH();
	{
		key->valid = false;
		PG_RE_THROW();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
	key->learned = true;
}

/*
 * What has been found out about the index.  The result, and what it says, stays until the
 * next call for the same index.
 *
 * Finding out means to look into catalogs.  These may be locked by a backend that waits
 * for a page of ours, and no deadlock check would notice.  So a process that is going to
 * ask with a page locked has to ask once before that.  Then it gets what was found out at
 * that time, even if an invalidation has come since: it does not change while the index is
 * locked.
 */
IndexKey *
inplace_index_key(Relation index)
{
	Oid			indexid = RelationGetRelid(index);
	IndexKey   *key;
	bool		found;

	if (index_keys == NULL)
		init_index_keys();
	key = hash_search(index_keys, &indexid, HASH_ENTER, &found);
	if (!found)
	{
		key->valid = key->learned = false;
		key->cxt = NULL;
		key->info = NULL;
		any_invalid = true;		/* if finding out fails */
	}
	/* (interrupts are held off as long as a page is locked) */
	if (!key->valid && !(key->learned && InterruptHoldoffCount > 0))
		learn_index(key, index);
	return key;
}

/* ---------------- computing keys ---------------- */

static KeyOf
compute(IndexKey *key, Relation index, TupleTableSlot *slot, Datum *values,
		bool *isnull)
{
	AssertNoPageLock();
	ResetExprContext(key->econtext);
	key->econtext->ecxt_scantuple = slot;
	if (!ExecQual(key->predicate, key->econtext))
		return KEY_NONE;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (key->expr[i] != NULL)
		{
			values[i] = ExecEvalExpr(key->expr[i], key->econtext, &isnull[i]);
			/* a constant is in key->cxt, which may go at the next call */
			if (!isnull[i] && !key->byval[i])
				values[i] = datumCopy(values[i], false, key->len[i]);
		}
		else
			values[i] = slot_getattr(slot, index->rd_index->indkey.values[i],
									 &isnull[i]);
	return KEY_FOUND;
}

/* the slot has a version that is, or comes to be, in the table */
KeyOf
inplace_key_of_slot(Relation index, TupleTableSlot *slot, Datum *values,
					bool *isnull)
{
	IndexKey   *key;

	if (!inplace_key_is_computed(index))
	{
		for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
			values[i] = slot_getattr(slot, index->rd_index->indkey.values[i],
									 &isnull[i]);
		return KEY_FOUND;
	}
	key = inplace_index_key(index);
	return key->readable ? compute(key, index, slot, values, isnull) : KEY_UNKNOWN;
}

/* is it out of line? */
static inline bool
is_external(TupleDesc desc, AttrNumber att, Datum value, bool isnull)
{
	return !isnull && TupleDescAttr(desc, att - 1)->attlen == -1 &&
		VARATT_IS_EXTERNAL(DatumGetPointer(value));
}

static KeyOf
compute_of_tuple(Relation table, Relation index, InplaceTupleHeader tup,
				 const ItemPointerData *tid, bool fetch, Datum *values, bool *isnull)
{
	TupleDesc	desc = RelationGetDescr(table);
	IndexKey   *key = inplace_index_key(index);
	TupleTableSlot *slot = key->slot;

	if (!key->readable)
		return KEY_UNKNOWN;
	ExecClearTuple(slot);
	memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts);
	for (int i = 0; i < key->ncolumns; i++)
	{
		AttrNumber	att = key->columns[i];
		bool		null;
		Datum		value = inplace_getattr(desc, tup, att, &null,
											CurrentMemoryContext, tid);

		if (!fetch && is_external(desc, att, value, null))
			return KEY_UNKNOWN;
		slot->tts_values[att - 1] = value;
		slot->tts_isnull[att - 1] = null;
	}
	ExecStoreVirtualTuple(slot);
	return compute(key, index, slot, values, isnull);
}

/* the same of a tuple */
KeyOf
inplace_key_of_tuple(Relation table, Relation index, InplaceTupleHeader tup,
					 const ItemPointerData *tid, Datum *values, bool *isnull)
{
	if (inplace_key_is_computed(index))
		return compute_of_tuple(table, index, tup, tid, true, values, isnull);
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		values[i] = inplace_getattr(RelationGetDescr(table), tup,
									index->rd_index->indkey.values[i],
									&isnull[i], CurrentMemoryContext, tid);
	return KEY_FOUND;
}

/* each value so that it can be compared at once */
static KeyOf
key_in_line(Relation table, Relation index, InplaceTupleHeader tup,
			const ItemPointerData *tid, bool fetch, Datum *values, bool *isnull)
{
	const IndexKey *key = inplace_index_key(index);
	KeyOf		result = inplace_key_is_computed(index) ?
		compute_of_tuple(table, index, tup, tid, fetch, values, isnull) :
		inplace_key_of_tuple(table, index, tup, tid, values, isnull);

	for (int i = 0; i < (result == KEY_FOUND ?
						 IndexRelationGetNumberOfKeyAttributes(index) : 0); i++)
	{
		if (isnull[i] || key->len[i] != -1 ||
			!VARATT_IS_EXTENDED(DatumGetPointer(values[i])))
			continue;
		if (!fetch && VARATT_IS_EXTERNAL(DatumGetPointer(values[i])))
			return KEY_UNKNOWN;
		values[i] = PointerGetDatum(PG_DETOAST_DATUM_PACKED(values[i]));
	}
	return result;
}

/*
 * Is it an error of the functions that fetch values?  (A value that is not there any more
 * may have another one's bytes: modify/chunk_read.c.)
 */
static bool
is_of_fetching(const char *funcname)
{
	static const char *const names[] = {
		"heap_fetch_toast_slice", "inplace_fetch_toast_slice",
		"pglz_decompress_datum", "pglz_decompress_datum_slice",
		"lz4_decompress_datum", "lz4_decompress_datum_slice"
	};

	for (int i = 0; i < lengthof(names) && funcname != NULL; i++)
		if (strcmp(funcname, names[i]) == 0)
			return true;
	return false;
}

/*
 * Is it the version's own fault, so that nothing but the computation has failed?
 * The version may be nobody's any more by now, and then its TOAST values, too.
 */
static bool
is_of_version(const ErrorData *error)
{
	switch (ERRCODE_TO_CATEGORY(error->sqlerrcode))
	{
		case ERRCODE_DATA_EXCEPTION:
		case ERRCODE_PROGRAM_LIMIT_EXCEEDED:
		case ERRCODE_FEATURE_NOT_SUPPORTED:
		case ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION:
			return true;
		default:
			if (error->sqlerrcode == ERRCODE_DATA_CORRUPTED)
				return is_of_fetching(error->funcname);
			/* compressed by a method that there is none of */
			return error->sqlerrcode == ERRCODE_INTERNAL_ERROR &&
				error->funcname != NULL &&
				(strcmp(error->funcname, "toast_decompress_datum") == 0 ||
				 strcmp(error->funcname, "toast_decompress_datum_slice") == 0);
	}
}

/*
 * Do something with a version that may be nobody's any more; no page is locked.  If it fails
 * for that the result is false, and the error a copy in the caller's memory
 * context.  Memory for the work is from "cxt".
 *
 * What the functions hold when they fail, catalog cache entries, the TOAST table, is
 * "owner's", for no transaction is rolled back.
 */
bool
inplace_guarded(GuardedWork work, void *arg, MemoryContext cxt,
				ResourceOwner *owner, ErrorData **error)
{
	volatile bool done = false;
	MemoryContext old = MemoryContextSwitchTo(cxt);
	ResourceOwner outer = CurrentResourceOwner;
	uint32		holdoff = InterruptHoldoffCount;
	uint32		cancel_holdoff = QueryCancelHoldoffCount;

	AssertNoPageLock();
	*error = NULL;
	if (*owner == NULL)
		*owner = ResourceOwnerCreate(outer, "inplace index key");
	PG_TRY();
	{
		CurrentResourceOwner = *owner;
		work(arg);
		done = true;
		CurrentResourceOwner = outer;
	}
	PG_CATCH();
	{
		CurrentResourceOwner = outer;
		MemoryContextSwitchTo(old);
		*error = CopyErrorData();
		if (!is_of_version(*error))
			PG_RE_THROW();
		FlushErrorState();
		/* an error sets them to 0 */
		InterruptHoldoffCount = holdoff;
		QueryCancelHoldoffCount = cancel_holdoff;
		inplace_end_guarded(owner);
	}
	PG_END_TRY();

	MemoryContextSwitchTo(old);
	return done;
}

typedef struct KeyWork
{
	Relation	table;
	Relation	index;
	InplaceTupleHeader tup;
	const ItemPointerData *tid;
	bool		fetch;
	Datum	   *values;
	bool	   *isnull;
	KeyOf		result;
} KeyWork;

static void
do_key_work(void *arg)
{
	KeyWork    *kw = (KeyWork *) arg;

	kw->result = key_in_line(kw->table, kw->index, kw->tup, kw->tid, kw->fetch,
							 kw->values, kw->isnull);
}

/*
 * The key of a version that the index need not have seen, in line; no page is
 * locked.  Without "fetch" no value in a TOAST table is looked up.  If computing it
 * fails the result is KEY_UNKNOWN (inplace_guarded).  The values are from "work", too.
 */
KeyOf
inplace_key_guarded(Relation table, Relation index, InplaceTupleHeader tup,
					const ItemPointerData *tid, bool fetch, MemoryContext work,
					ResourceOwner *owner, Datum *values, bool *isnull,
					ErrorData **error)
{
	KeyWork		kw = {table, index, tup, tid, fetch, values, isnull, KEY_UNKNOWN};

	if (!inplace_guarded(do_key_work, &kw, work, owner, error))
		return KEY_UNKNOWN;
	return kw.result;
}

/* give back what the owner has */
void
inplace_end_guarded(ResourceOwner *owner)
{
	if (*owner == NULL)
		return;
	ResourceOwnerRelease(*owner, RESOURCE_RELEASE_BEFORE_LOCKS, false, false);
	ResourceOwnerRelease(*owner, RESOURCE_RELEASE_LOCKS, false, false);
	ResourceOwnerRelease(*owner, RESOURCE_RELEASE_AFTER_LOCKS, false, false);
	ResourceOwnerDelete(*owner);
	*owner = NULL;
}

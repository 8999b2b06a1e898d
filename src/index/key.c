/*-------------------------------------------------------------------------
 *
 * key.c
 *	  The keys of versions in indexes with expressions or a predicate.
 *
 * Such a key is needed where code of users must not run: with an index page
 * locked, to which the code might come back, and on behalf of whoever happens
 * to read a row, who never meant to run what the table's owner wrote.  So it is
 * computed only where the expressions and the predicate consist of the server's
 * own functions, on its own types (and enums), and with a page locked only if
 * these are all written in C; elsewhere the index does not take in-place updates
 * that change the key (kept_key.c).
 *
 * It is computed by other sessions than the one that made the entry, and must come
 * out the same.  Some of the server's own functions look at settings although
 * they are called immutable.  On heap an index of theirs works for all who use
 * the same settings, and no others lose an entry by it; so such an index does not
 * take in-place updates that change the key, either.
 *
 * Whether an index is of that kind must not change while it exists, or some
 * would compare entries that others take for those of all versions.  So the
 * expressions as they were written count: these name functions by OID, and the
 * server's own do not change.  A function of a user's that the planner would
 * replace by what it consists of, does not count as that.  (The language of one of
 * the server's may change by pg_upgrade; readers do not mind.)
 *
 * Errors.  An expression may fail on a version (1 / 0).  A version that is in
 * the index has not failed, so a scan, which finds visible versions, computes
 * without further ado.  Who follows older versions comes to some that were
 * replaced before the index was made: inplace_key_guarded says UNKNOWN.
 *
 * The memory of results is the caller's context.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/nbtree.h"
#include "access/sysattr.h"
#include "access/tupdesc.h"
#include "catalog/pg_authid_d.h"
#include "catalog/pg_language_d.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "index/key.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/syscache.h"

static HTAB *index_keys = NULL;

/* ---------------- what may be computed here ---------------- */

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

static bool
function_not_builtin(Oid function, void *context)
{
	return !function_is_builtin(function);
}

/*
 * The server's functions that are called immutable and are not, for they look at
 * a setting (or at the search path, for a conversion).  As of 18; those that are
 * called stable cannot be in an index.
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
 * Is there anything in the expression that must not be computed here?  The
 * context is the question about functions.
 */
static bool
has_foreign_code(Node *node, void *context)
{
	bool		(*foreign) (Oid, void *) = *(bool (**) (Oid, void *)) context;

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
		check_functions_in_node(node, foreign, NULL) ||
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

static bool
written_is_readable(Relation index, AttrNumber attnum)
{
	bool		(*of_user) (Oid, void *) = function_of_user;

	return !has_foreign_code(written(index, attnum), &of_user);
}

static bool
is_known(List *nodes)
{
	bool		(*not_builtin) (Oid, void *) = function_not_builtin;

	return !has_foreign_code((Node *) nodes, &not_builtin);
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
			key->valid = false;
		return;
	}
	hash_seq_init(&status, index_keys);
	while ((key = hash_seq_search(&status)) != NULL)
		key->valid = false;
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
}

/* the columns of the table that the key depends on */
static void
set_columns(IndexKey *key, Relation index, List *exprs, List *predicate)
{
	Bitmapset  *set = NULL;
	int			x = -1;

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (index->rd_index->indkey.values[i] > 0)
			set = bms_add_member(set, index->rd_index->indkey.values[i] -
								 FirstLowInvalidHeapAttributeNumber);
	pull_varattnos((Node *) exprs, 1, &set);
	pull_varattnos((Node *) predicate, 1, &set);

	key->columns = palloc(sizeof(AttrNumber) * Max(bms_num_members(set), 1));
	while ((x = bms_next_member(set, x)) >= 0)
		key->columns[key->ncolumns++] = x + FirstLowInvalidHeapAttributeNumber;
}

static void
init_expressions(IndexKey *key, Relation index, List *exprs, List *predicate)
{
	int			next = 0;

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (index->rd_index->indkey.values[i] == 0)
			key->expr[i] = ExecInitExpr((Expr *) list_nth(exprs, next++), NULL);
	key->predicate = ExecInitQual(predicate, NULL);
}

/*
 * Privileges on functions are not asked of whoever happens to read a row; the
 * functions are harmless.
 */
static void
prepare_expressions(IndexKey *key, Relation index, List *exprs, List *predicate)
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

static void
learn_index(IndexKey *key, Relation index)
{
	MemoryContext old;
	List	   *exprs;
	List	   *predicate;
	bool		predicate_readable;

	if (key->cxt == NULL)
		key->cxt = AllocSetContextCreate(TopMemoryContext, "inplace index key",
										 ALLOCSET_SMALL_SIZES);
	else
		MemoryContextReset(key->cxt);
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
		key->exact = key->comparable = true;
		for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		{
			Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);

			if (!key_equal_is_identical(index, i))
				key->exact = false;
			if (!function_is_builtin(index_getprocid(index, i + 1, BTORDER_PROC)) ||
				(att->atttypid != CSTRINGOID && !type_is_builtin(att->atttypid)))
				key->comparable = false;
		}

		exprs = RelationGetIndexExpressions(index);
		predicate = RelationGetIndexPredicate(index);
		predicate_readable = written_is_readable(index, Anum_pg_index_indpred);
		key->readable = predicate_readable &&
			written_is_readable(index, Anum_pg_index_indexprs);
		key->predicate_known = predicate_readable && is_known(predicate);
		key->known = key->readable && key->predicate_known && is_known(exprs);
		if (key->readable)
		{
			set_columns(key, index, exprs, predicate);
			if (exprs != NIL || predicate != NIL)
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
 * It stays where it is, and what it says does, until the next call for the same
 * index.
 *
 * Finding out means to look into catalogs, which may be locked by somebody who waits
 * for a page of ours (and nobody would notice).  So whoever is going to ask with a
 * page locked has to ask once before that; then he gets what was found out at that
 * time, even if an invalidation has come since: it does not change while the index is
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
	ResetExprContext(key->econtext);
	key->econtext->ecxt_scantuple = slot;
	if (!ExecQual(key->predicate, key->econtext))
		return KEY_NONE;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (key->expr[i] != NULL)
		{
			Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);

			values[i] = ExecEvalExpr(key->expr[i], key->econtext, &isnull[i]);
			/* a constant is in key->cxt, which may go at the next call */
			if (!isnull[i] && !att->attbyval)
				values[i] = datumCopy(values[i], false, att->attlen);
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

static KeyOf
key_of_tuple(Relation table, Relation index, InplaceTupleHeader tup,
			 const ItemPointerData *tid, bool detoast, Datum *values, bool *isnull)
{
	TupleDesc	desc = RelationGetDescr(table);
	IndexKey   *key = inplace_index_key(index);
	TupleTableSlot *slot = key->slot;

	if (!key->known)
		return KEY_UNKNOWN;
	ExecClearTuple(slot);
	memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts);
	for (int i = 0; i < key->ncolumns; i++)
	{
		AttrNumber	att = key->columns[i];
		bool		null;
		Datum		value = inplace_getattr(desc, tup, att, &null,
											CurrentMemoryContext, tid);

		if (!detoast && !null && TupleDescAttr(desc, att - 1)->attlen == -1 &&
			VARATT_IS_EXTERNAL(DatumGetPointer(value)))
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
		return key_of_tuple(table, index, tup, tid, true, values, isnull);
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		values[i] = inplace_getattr(RelationGetDescr(table), tup,
									index->rd_index->indkey.values[i],
									&isnull[i], CurrentMemoryContext, tid);
	return KEY_FOUND;
}

/*
 * The computed key of a version that the index need not have seen; pages may be
 * locked.  Without detoast no value in a TOAST table is looked up.
 *
 * What the functions hold when they fail, catalog cache entries at most, has an
 * owner of its own, for no transaction is rolled back.
 */
KeyOf
inplace_key_guarded(Relation table, Relation index, InplaceTupleHeader tup,
					const ItemPointerData *tid, bool detoast, Datum *values, bool *isnull)
{
	volatile KeyOf result = KEY_UNKNOWN;
	MemoryContext cxt = CurrentMemoryContext;
	ResourceOwner outer = CurrentResourceOwner;
	ResourceOwner owner = ResourceOwnerCreate(outer, "inplace index key");
	uint32		holdoff = InterruptHoldoffCount;
	uint32		cancel_holdoff = QueryCancelHoldoffCount;

	PG_TRY();
	{
		CurrentResourceOwner = owner;
		result = key_of_tuple(table, index, tup, tid, detoast, values, isnull);
		CurrentResourceOwner = outer;
	}
	PG_CATCH();
	{
		ErrorData  *error;

		CurrentResourceOwner = outer;
		MemoryContextSwitchTo(cxt);
		error = CopyErrorData();
		switch (ERRCODE_TO_CATEGORY(error->sqlerrcode))
		{
			case ERRCODE_INSUFFICIENT_RESOURCES:
			case ERRCODE_OPERATOR_INTERVENTION:
			case ERRCODE_SYSTEM_ERROR:
			case ERRCODE_INTERNAL_ERROR:
				PG_RE_THROW();
		}
		FlushErrorState();
		FreeErrorData(error);
		/* an error sets them to 0, but locks are held all the same */
		InterruptHoldoffCount = holdoff;
		QueryCancelHoldoffCount = cancel_holdoff;
	}
	PG_END_TRY();

	ResourceOwnerRelease(owner, RESOURCE_RELEASE_BEFORE_LOCKS, false, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_LOCKS, false, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_AFTER_LOCKS, false, false);
	ResourceOwnerDelete(owner);
	return result;
}

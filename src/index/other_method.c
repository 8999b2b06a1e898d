/*-------------------------------------------------------------------------
 *
 * other_method.c
 *	  Updates in place of columns under stock GIN, hash and GiST indexes, as CREATE
 *	  INDEX makes them.
 *
 * Such an index takes an update as an inplace_btree does (index.h): it gets entries
 * for the new value at the row's TID, and those of the former value stay.  The row is
 * IP_STALE from then on.  The index itself knows nothing of it.
 *
 * Reading.  In bitmap scans, the only ones that GIN has, the table has the rows of a page
 * rechecked if there is one among them that is IP_STALE (scan/bitmap.c).  A bitmap has a
 * TID once, and the recheck is of the version that the snapshot sees.  For other scans
 * see other_fetch.c.
 *
 * Inserting.  The method's own aminsert does it, but for GIN.  There a TID stands once
 * under a key in the tree, but would be in the list of pending entries as often as it
 * has been inserted, and what works off the list does not expect that.  So entries go
 * straight into the tree.  A scan looks for rows that fit in the list, and in the tree,
 * but does not put together what a row has in either.  So all keys of the new version
 * go into the tree, unless nothing is pending: then those that the version before did
 * not have, whose keys are there.
 * For a hash or GiST index it is looked whether the entry is there (gist_entry.c).  Equal
 * values need not be identical, nor are they compared.
 *
 * Removing.  VACUUM sweeps these indexes as it sweeps inplace_btree ones: sweep_gin.c,
 * sweep_bulk.c.  That is so whatever the setting says, if it was ever on (other_mark.c).
 *
 * Rebuilding.  An index of these methods gets the keys of newest versions only.  So it is
 * kept from snapshots that may need others (young_index.c).
 *
 * Which indexes.  Those that are valid, and whose expressions and predicate are
 * known to come out the same in every session (key.c).  The code of an operator class
 * may be anybody's: it runs where the server runs it, and in VACUUM with no page
 * locked.  Those of exclusion constraints are left to the executor.  GiST indexes that
 * can return rows by a distance have to do so by one in floating point.
 *
 * GIN puts together what a row has from all entries of its TID, those of former keys among
 * them.  It must not take the row for one that does not fit because of a key too many.
 * So the operator class has to be one in which further keys never keep a row out.  That
 * is known of those for arrays and jsonb, of btree_gin, hstore and pg_trgm.  It is not so
 * for text search, which has a NOT.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/genam.h"
#include "access/gin.h"
#include "access/gin_private.h"
#include "access/hash.h"
#include "access/transam.h"
#include "catalog/pg_am_d.h"
#include "catalog/dependency.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_proc_d.h"
#include "catalog/pg_type_d.h"
#include "commands/extension.h"
#include "index/gist_entry.h"
#include "index/key.h"
#include "index/other_method.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "page/compare.h"
#include "storage/predicate.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

bool		inplace_update_under_others = false;

bool
inplace_is_other_method(Oid relam)
{
	return relam == GIN_AM_OID || relam == HASH_AM_OID || relam == GIST_AM_OID;
}

/*
 * May it have taken some, when it was valid?
 */
bool
inplace_other_took(Relation index)
{
	Form_pg_index form = index->rd_index;

	if (!inplace_is_other_method(index->rd_rel->relam) || form->indisexclusion)
		return false;
	if (!inplace_key_is_computed(index))
		return true;
	/* (which columns it depends on is known of key columns alone) */
	return form->indnatts == form->indnkeyatts &&
		inplace_index_key(index)->known;
}

/*
 * Of other distances nobody here knows which is the least (other_fetch.c).
 */
static bool
family_orders_by_float(Oid family)
{
	CatCList   *list = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(family));
	bool		result = true;

	for (int i = 0; i < list->n_members; i++)
	{
		Form_pg_amop op = (Form_pg_amop) GETSTRUCT(&list->members[i]->tuple);
		Oid			type;

		if (op->amoppurpose != AMOP_ORDER)
			continue;
		type = get_op_rettype(op->amopopr);
		if (type != FLOAT8OID && type != FLOAT4OID)
			result = false;
	}
	ReleaseSysCacheList(list);
	return result;
}

static bool
orders_by_float(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (!family_orders_by_float(index->rd_opfamily[i]))
			return false;
	return true;
}

/* see above; OIDs of functions of the server, or of one of these extensions */
static bool
is_monotone(Oid function)
{
	static const char *const extensions[] = {"btree_gin", "hstore", "pg_trgm"};
	Oid			extension;
	char	   *name;

	switch (function)
	{
		case InvalidOid:
		case F_GINARRAYCONSISTENT:
		case F_GINARRAYTRICONSISTENT:
		case F_GIN_CONSISTENT_JSONB:
		case F_GIN_TRICONSISTENT_JSONB:
		case F_GIN_CONSISTENT_JSONB_PATH:
		case F_GIN_TRICONSISTENT_JSONB_PATH:
			return true;
		default:
			break;
	}
	if (function < FirstNormalObjectId)
		return false;
	extension = getExtensionOfObject(ProcedureRelationId, function);
	name = OidIsValid(extension) ? get_extension_name(extension) : NULL;
	for (int i = 0; name != NULL && i < lengthof(extensions); i++)
		if (strcmp(name, extensions[i]) == 0)
			return true;
	return false;
}

static bool
gin_takes(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (!is_monotone(index_getprocid(index, i + 1, GIN_CONSISTENT_PROC)) ||
			!is_monotone(index_getprocid(index, i + 1, GIN_TRICONSISTENT_PROC)))
			return false;
	return true;
}

bool
inplace_other_takes(Relation index)
{
	Form_pg_index form = index->rd_index;

	return inplace_update_under_others &&
		form->indisready && form->indisvalid && form->indislive &&
		inplace_other_took(index) &&
		(index->rd_rel->relam != GIST_AM_OID || orders_by_float(index)) &&
		(index->rd_rel->relam != GIN_AM_OID || gin_takes(index));
}

/* is what an insertion runs the server's own? */
bool
inplace_other_has_own_code(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (index->rd_opfamily[i] >= FirstNormalObjectId ||
			index->rd_opcintype[i] >= FirstNormalObjectId)
			return false;
	return true;
}

/*
 * What does the update of a row from the version "old" to the one in the slot mean
 * to an index with expressions or a predicate?  No page is locked.
 */
KeyChange
inplace_other_key_change(Relation table, Relation index, InplaceTupleHeader old,
						 TupleTableSlot *slot, ItemPointer tid)
{
	const IndexKey *key = inplace_index_key(index);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	Datum		old_values[INDEX_MAX_KEYS];
	bool		old_isnull[INDEX_MAX_KEYS];
	KeyOf		had = inplace_key_of_tuple(table, index, old, tid, old_values, old_isnull);
	KeyOf		has = inplace_key_of_slot(index, slot, values, isnull);

	if (had == KEY_UNKNOWN || has == KEY_UNKNOWN)
		elog(ERROR, "index \"%s\" does not take in-place updates",
			 RelationGetRelationName(index));
	if (has == KEY_NONE)
		return had == KEY_NONE ? KEY_SAME : KEY_LEFT;
	if (had == KEY_NONE)
		return KEY_NEW;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (isnull[i] != old_isnull[i] ||
			(!isnull[i] && !inplace_same_value(values[i], old_values[i],
											   key->byval[i], key->len[i])))
			return KEY_NEW;
	return KEY_SAME;
}

/*
 * Has a hash index the entry already?  It is known by the hash value alone.
 */
static bool
hash_entry_exists(Relation index, Datum value, ItemPointer tid)
{
	ScanKeyData key = {0};
	IndexScanDesc scan = IndexBeginScanBitmap(index, SnapshotAny, 1);
	ItemPointer found;
	Buffer		bucket;

	/* (nobody asks for the operator's function) */
	key.sk_attno = 1;
	key.sk_strategy = HTEqualStrategyNumber;
	key.sk_collation = index->rd_indcollation[0];
	key.sk_argument = value;
	index_rescan(scan, &key, 1, NULL, 0);
	while ((found = index_getnext_tid(scan, ForwardScanDirection)) != NULL)
		if (ItemPointerEquals(found, tid))
			break;
	index_endscan(scan);
	if (found == NULL)
		return false;

	/* it stands in for the insertion of an entry */
	bucket = _hash_getbucketbuf_from_hashkey(index, _hash_datum2hashkey(index, value),
											 HASH_READ, NULL);
	CheckForSerializableConflictIn(index, NULL, BufferGetBlockNumber(bucket));
	_hash_relbuf(index, bucket);
	return true;
}

/*
 * The keys of a column; those that the version before had have entries.
 */
static void
gin_insert_column(GinState *state, OffsetNumber attnum, Datum value, bool isnull,
				  bool had, Datum old_value, bool old_isnull, ItemPointer tid)
{
	GinNullCategory *categories;
	GinNullCategory *old_categories = NULL;
	Datum	   *old_keys = NULL;
	int32		n;
	int32		nold = 0;
	int			j = 0;
	Datum	   *keys = ginExtractEntries(state, attnum, value, isnull, &n, &categories);

	if (had)
		old_keys = ginExtractEntries(state, attnum, old_value, old_isnull, &nold,
									 &old_categories);
	for (int i = 0; i < n; i++)
	{
		int			cmp = -1;

		while (j < nold &&
			   (cmp = ginCompareEntries(state, attnum, keys[i], categories[i],
										old_keys[j], old_categories[j])) > 0)
			j++;
		if (j < nold && cmp == 0)
			continue;
		CHECK_FOR_INTERRUPTS();
		ginEntryInsert(state, attnum, keys[i], categories[i], tid, 1, NULL);
	}
}

/*
 * Is nothing pending?  What is worked off the list is in the tree before it leaves the list.
 */
static bool
gin_nothing_pending(Relation index)
{
	Buffer		buffer = ReadBuffer(index, GIN_METAPAGE_BLKNO);
	bool		result;

	LockBuffer(buffer, GIN_SHARE);
	result = GinPageGetMeta(BufferGetPage(buffer))->head == InvalidBlockNumber;
	UnlockReleaseBuffer(buffer);
	return result;
}

static void
gin_insert(Relation table, Relation index, const Datum *values, const bool *isnull,
		   InplaceTupleHeader old, ItemPointer tid)
{
	GinState   *state = palloc(sizeof(GinState));
	Datum		old_values[INDEX_MAX_KEYS];
	bool		old_isnull[INDEX_MAX_KEYS];
	bool		had = old != NULL && gin_nothing_pending(index) &&
		inplace_key_of_tuple(table, index, old, tid, old_values,
							 old_isnull) == KEY_FOUND;

	initGinState(state, index);
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		gin_insert_column(state, i + 1, values[i], isnull[i],
						  had, had ? old_values[i] : (Datum) 0,
						  had && old_isnull[i], tid);
}

/*
 * The entries of the version in the slot, which has replaced "old", or NULL if that is
 * not sure to have entries.  "one_entry": the row has no other in the index.  No page is
 * locked; memory is the caller's to free.
 */
void
inplace_other_insert(Relation table, Relation index, ItemPointer tid,
					 InplaceTupleHeader old, TupleTableSlot *slot, bool one_entry)
{
	Form_pg_index form = index->rd_index;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	IndexInfo  *info;

	/* has it left the predicate? */
	if (inplace_key_of_slot(index, slot, values, isnull) != KEY_FOUND)
		return;
	if (index->rd_rel->relam == GIN_AM_OID)
	{
		gin_insert(table, index, values, isnull, old, tid);
		return;
	}
	if (index->rd_rel->relam == HASH_AM_OID &&
		(isnull[0] || hash_entry_exists(index, values[0], tid)))
		return;
	inplace_payload_of_slot(index, slot, values, isnull);
	if (index->rd_rel->relam == GIST_AM_OID &&
		inplace_gist_has_entry(index, values, isnull, tid, one_entry))
		return;
	info = makeNode(IndexInfo);
	info->ii_NumIndexAttrs = form->indnatts;
	info->ii_NumIndexKeyAttrs = form->indnkeyatts;
	info->ii_ReadyForInserts = true;
	info->ii_Am = index->rd_rel->relam;
	info->ii_Context = CurrentMemoryContext;
	index_insert(index, values, isnull, tid, table, UNIQUE_CHECK_NO, false, info);
}

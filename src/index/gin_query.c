/*-------------------------------------------------------------------------
 *
 * gin_query.c
 *	  Queries of GIN indexes that a key too many keeps rows out of.
 *
 * GIN puts together what a row has from all entries of its TID, and in an index that takes
 * updates in place those of other versions' keys are among them (other_method.c).  In
 * most operator classes a key too many brings a row in at most, and the recheck takes it
 * out.  But where a query has a NOT, as that of a text search, it keeps a row out that
 * belongs in.
 *
 * Such a row is IP_STALE, so its page is not all-visible (invariants in index.h,
 * vacuum/stale.c).  So a bitmap scan with such a condition gets, besides what the index
 * returns, each page of the table that is not all-visible, as one of which all rows are to
 * be rechecked.  That holds at any time that the scan may have met a key:
 *	 - The key of an update that the snapshot does not see: the update took the page's bit
 *	   away when it changed the row, before it made the entry.  The map is read after the
 *	   index.
 *	 - A former key: VACUUM sets the bit when the mark has gone, and that goes when all
 *	   snapshots have ended that are older than the sweep which took the key out.
 * The same is true on standbys: the map's changes are replayed in the same order.
 * An index without a mark (other_mark.c) has no other versions' keys.  It may get the mark
 * while the scan runs, but before the first such key: so it is asked about after that, too.
 *
 * The server calls a method's functions through the index's relation.  So the function there is
 * replaced, when a plan that uses it has been started and keeps the relation open (plan_start.c).
 * Nothing else asks for bitmaps.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/gin.h"
#include "access/gin_private.h"
#include "access/table.h"
#include "access/visibilitymap.h"
#include "catalog/dependency.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_proc_d.h"
#include "commands/extension.h"
#include "index/gin_query.h"
#include "index/index.h"
#include "index/other_mark.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "tsearch/ts_type.h"
#include "tsearch/ts_utils.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/syscache.h"

/* operator of intarray's gin__int_ops with a query_int */
#define INT_QUERY_STRATEGY	20

/* what has been found out about functions of extensions, since each scan asks */
typedef struct KnownClass
{
	Oid			function;		/* must be first */
	GinClass	class;
} KnownClass;

static HTAB *known_classes = NULL;

/* of these extensions' classes it is known, too */
static GinClass
class_of_extension(Oid function)
{
	static const struct
	{
		const char *extension;
		GinClass	class;
	}			known[] = {
		{"btree_gin", GIN_MONOTONE},
		{"hstore", GIN_MONOTONE},
		{"intarray", GIN_INT_QUERY},
		{"pg_trgm", GIN_MONOTONE}
	};
	Oid			extension = getExtensionOfObject(ProcedureRelationId, function);
	char	   *name = OidIsValid(extension) ? get_extension_name(extension) : NULL;

	for (int i = 0; name != NULL && i < lengthof(known); i++)
		if (strcmp(name, known[i].extension) == 0)
			return known[i].class;
	return GIN_UNKNOWN;
}

/* a function has gone, and its OID may come back */
static void
forget_classes(Datum arg, int cacheid, uint32 hashvalue)
{
	if (known_classes != NULL)
		hash_destroy(known_classes);
	known_classes = NULL;
}

static GinClass
known_class_of_extension(Oid function)
{
	static bool registered = false;
	KnownClass *known = known_classes == NULL ? NULL :
		hash_search(known_classes, &function, HASH_FIND, NULL);
	GinClass	class;

	if (known != NULL)
		return known->class;
	if (!registered)
		CacheRegisterSyscacheCallback(PROCOID, forget_classes, (Datum) 0);
	registered = true;
	class = class_of_extension(function);
	if (known_classes == NULL)
	{
		HASHCTL		ctl = {0};

		ctl.keysize = sizeof(Oid);
		ctl.entrysize = sizeof(KnownClass);
		known_classes = hash_create("inplace gin classes", 16, &ctl,
									HASH_ELEM | HASH_BLOBS);
	}
	known = hash_search(known_classes, &function, HASH_ENTER, NULL);
	known->class = class;
	return class;
}

static GinClass
class_of_function(Oid function)
{
	switch (function)
	{
		case F_GINARRAYCONSISTENT:
		case F_GINARRAYTRICONSISTENT:
		case F_GIN_CONSISTENT_JSONB:
		case F_GIN_TRICONSISTENT_JSONB:
		case F_GIN_CONSISTENT_JSONB_PATH:
		case F_GIN_TRICONSISTENT_JSONB_PATH:
			return GIN_MONOTONE;
		case F_GIN_TSQUERY_TRICONSISTENT:
			return GIN_TEXT_SEARCH;
		default:
			break;
	}
	return function >= FirstNormalObjectId ? known_class_of_extension(function) : GIN_UNKNOWN;
}

/*
 * GIN takes the function with three values where there is one; so it has to be that by which
 * the class is known.
 */
GinClass
inplace_gin_class(Relation index, int column)
{
	Oid			ternary = index_getprocid(index, column, GIN_TRICONSISTENT_PROC);
	Oid			binary = index_getprocid(index, column, GIN_CONSISTENT_PROC);
	GinClass	class = class_of_function(OidIsValid(ternary) ? ternary : binary);

	/* (text search has several of the other kind, for older dumps) */
	if (OidIsValid(ternary) && OidIsValid(binary) && class != GIN_TEXT_SEARCH &&
		class_of_function(binary) != class)
		return GIN_UNKNOWN;
	return class;
}

static bool
has_not(TSQuery query)
{
	QueryItem  *item = GETQUERY(query);

	for (int i = 0; i < query->size; i++)
		if (item[i].type == QI_OPR && item[i].qoperator.oper == OP_NOT)
			return true;
	return false;
}

/* may a key too many keep a row out that fits the condition? */
static bool
may_keep_rows_out(Relation index, ScanKey key)
{
	if (key->sk_flags & SK_ISNULL)
		return false;
	switch (inplace_gin_class(index, key->sk_attno))
	{
		case GIN_MONOTONE:
			return false;
		case GIN_TEXT_SEARCH:
			return has_not(DatumGetTSQuery(key->sk_argument));
		case GIN_INT_QUERY:
			return key->sk_strategy == INT_QUERY_STRATEGY;
		case GIN_UNKNOWN:
			break;
	}
	return true;
}

static void
add_pages_not_visible(Relation table, TIDBitmap *tbm)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(table);
	Buffer		vmbuffer = InvalidBuffer;

	for (BlockNumber blk = 0; blk < nblocks; blk++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!VM_ALL_VISIBLE(table, blk, &vmbuffer))
			tbm_add_page(tbm, blk);
	}
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);
}

static int64
get_bitmap(IndexScanDesc scan, TIDBitmap *tbm)
{
	Relation	index = scan->indexRelation;
	int64		ntids = gingetbitmap(scan, tbm);
	Relation	table;

	for (int i = 0; i < scan->numberOfKeys; i++)
	{
		if (!may_keep_rows_out(index, &scan->keyData[i]))
			continue;
		table = table_open(index->rd_index->indrelid, NoLock);	/* has a lock */
		if (inplace_other_marked(table->rd_rel->relpersistence, RelationGetRelid(index)))
			add_pages_not_visible(table, tbm);
		table_close(table, NoLock);
		break;
	}
	return ntids;
}

bool
inplace_gin_keeps_rows_out(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (inplace_gin_class(index, i + 1) != GIN_MONOTONE)
			return true;
	return false;
}

/* a query with such a scan is about to begin */
void
inplace_gin_query_look(BitmapIndexScanState *bis)
{
	Relation	index = bis->biss_RelationDesc;

	/* (not opened for EXPLAIN) */
	if (index == NULL || index->rd_rel->relam != GIN_AM_OID ||
		index->rd_indam->amgetbitmap == get_bitmap)
		return;
	if (inplace_is_inplace_table(index->rd_index->indrelid) &&
		inplace_gin_keeps_rows_out(index))
		index->rd_indam->amgetbitmap = get_bitmap;
}

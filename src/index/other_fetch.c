/*-------------------------------------------------------------------------
 *
 * other_fetch.c
 *	  Rows that a scan of a hash or GiST index comes to by stale entries.
 *
 * The scan is the server's, and tells the table a TID alone.  For a row that is
 * IP_STALE the entry may be of another version than the snapshot sees, and there may be
 * several entries that the scan comes to.  What is done about it:
 *	 - The executor is told to recheck the condition, on the version that is seen
 *	   (xs_recheck; hash indexes always say so).  It does not recheck the predicate of
 *	   the index, so that is done here.
 *	 - A row is returned once (GiST).  It may be updated after it was returned, and the scan
 *	   come to its new entry, which leads to the version that was returned.  So all rows
 *	   that are returned are noted, if the index is marked as one with such updates.  If it is
 *	   not, it does not come to be one of those while the scan runs (unmarked_scan.c).  A hash
 *	   index has a TID once under a hash value (other_method.c), and can be read backward,
 *	   where no row would be the first.
 *	 - Where a GiST index returns rows by their distance, that of the entry which the
 *	   version seen has is computed, as GiST does it.  If the scan is not at that distance, it
 *	   is not this entry, and the row has not been returned: the scan will come to it, or
 *	   has been there.
 *	   GiST computes with distances in floating point, but tells them only where the operator
 *	   returns such a number.  Where it does not (btree_gist), GiST is told that it does, and
 *	   the scan begins again, at its first row: see begins_again.
 *	 - An index-only scan of a GiST index returns what the entry has.  So the entry has to
 *	   say what one of the version seen would say, value by value as it is read out of
 *	   entries.
 *
 * The scan's state is found by where the TID is that the table is asked for: a field of it,
 * as is the flag "call again".  Nobody else but a scan calls with both.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/gist_private.h"
#include "access/htup_details.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_type_d.h"
#include "common/hashfn.h"
#include "index/entry.h"
#include "index/gist_only.h"
#include "index/key.h"
#include "index/other_entry.h"
#include "index/other_fetch.h"
#include "index/other_mark.h"
#include "index/other_method.h"
#include "index/unmarked_scan.h"
#include "nodes/execnodes.h"
#include "page/compare.h"
#include "pgstat.h"
#include "utils/float.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* rows of a page */
typedef struct ReturnedRows
{
	BlockNumber blk;
	char		status;			/* of the hash table */
	uint64		rows[MaxHeapTuplesPerPage / 64 + 1];
} ReturnedRows;

#define SH_PREFIX		returned
#define SH_ELEMENT_TYPE	ReturnedRows
#define SH_KEY_TYPE		BlockNumber
#define SH_KEY			blk
#define SH_HASH_KEY(tb, key)	murmurhash32(key)
#define SH_EQUAL(tb, a, b)		((a) == (b))
#define SH_SCOPE		static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* has the row been returned?  If not, it is noted that it is now. */
static bool
has_been_returned(OtherFetch *of, const ItemPointerData *tid)
{
	BlockNumber blk = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(tid);
	uint64		bit = UINT64CONST(1) << (off % 64);
	ReturnedRows *page;
	bool		found;

	if (of->returned == NULL)
		of->returned = returned_create(of->cxt, 64, NULL);
	page = returned_insert(of->returned, blk, &found);
	if (!found)
		memset(page->rows, 0, sizeof(page->rows));
	if (page->rows[off / 64] & bit)
		return true;
	page->rows[off / 64] |= bit;
	return false;
}

/*
 * Is the query that runs about to change rows, or to lock them, most likely for that?  Its scans had
 * better not stand in their own way.
 */
static bool
query_changes_rows(void)
{
	PlannedStmt *stmt = inplace_executor_estate == NULL ? NULL :
		inplace_executor_estate->es_plannedstmt;

	return inplace_update_under_others && stmt != NULL &&
		(stmt->commandType == CMD_UPDATE || stmt->commandType == CMD_MERGE ||
		 stmt->hasModifyingCTE || stmt->rowMarks != NIL);
}

/*
 * May rows be updated in place under the index while the scan runs?  What is found out first
 * holds for the scan (other_mark.c).
 */
static bool
matters(OtherFetch *of, IndexScanDesc scan)
{
	Relation	index = scan->indexRelation;

	if (!of->asked)
	{
		of->asked = true;
		of->marked = inplace_other_took(index) &&
			((!scan->xs_want_itup && query_changes_rows()) ||
			 inplace_other_marked_for_scan(index->rd_rel->relpersistence,
										   RelationGetRelid(index), &of->unmarked));
	}
	return of->marked;
}

static inline bool
is_float(Oid type)
{
	return type == FLOAT8OID || type == FLOAT4OID;
}

/* does the scan say at which distances it is? */
static bool
tells_distances(IndexScanDesc scan)
{
	GISTScanOpaque so = (GISTScanOpaque) scan->opaque;

	for (int i = 0; i < scan->numberOfOrderBys; i++)
		if (!is_float(so->orderByTypes[i]))
			return false;
	return true;
}

/*
 * A scan in the order of a distance has come to its first row.  Does it have to begin again,
 * as it does not tell at which distance it is?
 *
 * GiST goes by the type that the ordering operator returns, which it has found out when the scan
 * began.  The executor reads a distance of the scan only where the scan says that it is
 * not exact, which GiST refuses of other types; so is it here.
 */
static bool
begins_again(OtherFetch *of, IndexScanDesc scan)
{
	GISTScanOpaque so = (GISTScanOpaque) scan->opaque;

	if (of->begun)
		return false;
	of->begun = true;
	if (tells_distances(scan))
		return false;

	/*
	 * Rows of pages that are all-visible have been returned.  The query was
	 * planned before the mark.  It is registered (gist_only.c): if the index
	 * waits it does so to the end.
	 */
	if (scan->xs_want_itup)
	{
		if (inplace_other_may_take(RelationGetRelid(scan->indexRelation), scan->xs_snapshot))
			inplace_gist_plan_is_old(scan->indexRelation);
		of->marked = false;
		return false;
	}
	for (int i = 0; i < scan->numberOfOrderBys; i++)
		if (!is_float(so->orderByTypes[i]))
			so->orderByTypes[i] = FLOAT8OID;
	of->as_floats = true;
	ForgetIndexSearch(scan);
	if (pgstat_should_count_relation(scan->indexRelation))
		scan->indexRelation->pgstat_info->TableStatusCounts.PendingCount(numscans)--;
	scan->indexRelation->rd_indam->amrescan(scan, NULL, 0, NULL, 0);
	return true;
}

static void
refuse_lossy_distance(const OtherFetch *of, IndexScanDesc scan)
{
	if (of->as_floats && scan->xs_recheckorderby)
		elog(ERROR, "ORDER BY operator must return float8 or float4 if the distance function is lossy");
}

/*
 * A scan has come to a row that is not IP_STALE, and has not been returned.  Is it to be returned
 * now?  If not, the scan comes to it once more.
 */
bool
inplace_other_returns(OtherFetch *of, IndexScanDesc scan, const ItemPointerData *tid)
{
	Relation	index = scan->indexRelation;

	of->plain = index->rd_rel->relam != GIST_AM_OID;
	if (of->plain || !matters(of, scan))
	{
		of->begun = true;
		return true;
	}
	if (begins_again(of, scan))
		return false;
	refuse_lossy_distance(of, scan);
	if (of->marked)
		(void) has_been_returned(of, tid);
	return true;
}

/* NULL: it is no scan that asks */
IndexScanDesc
inplace_scan_of_fetch(IndexFetchTableData *fetch, ItemPointer tid, bool *call_again)
{
	char	   *scan = (char *) tid - offsetof(IndexScanDescData, xs_heaptid);

	if ((char *) call_again != scan + offsetof(IndexScanDescData, xs_heap_continue))
		return NULL;
	if (((IndexScanDesc) scan)->xs_heapfetch != fetch)
		return NULL;
	return (IndexScanDesc) scan;
}

void
inplace_other_fetch_reset(OtherFetch *of)
{
	if (of->returned != NULL)
		returned_destroy(of->returned);
	of->returned = NULL;
	if (of->work != NULL)
		MemoryContextDelete(of->work);
	of->work = NULL;
	/* (as_floats goes with what the scan has been told, which may stay so) */
	of->begun = false;
}

void
inplace_other_fetch_end(OtherFetch *of)
{
	inplace_unmarked_end(&of->unmarked);
}

/*
 * The distance of an entry from what the scan's i-th ordering compares with, as GiST itself
 * has it; false: it has none.
 */
static bool
entry_distance(IndexScanDesc scan, int i, IndexTuple itup, float8 *distance, bool *recheck)
{
	GISTSTATE  *state = ((GISTScanOpaque) scan->opaque)->giststate;
	ScanKey		key = &scan->orderByData[i];
	PGAlignedBlock leaf;
	GISTENTRY	entry;
	bool		isnull;
	Datum		datum = index_getattr(itup, key->sk_attno, state->leafTupdesc, &isnull);

	if (isnull || (key->sk_flags & SK_ISNULL))
		return false;
	/* (operator classes ask the page whether it is a leaf) */
	gistinitpage((Page) leaf.data, F_LEAF);
	gistdentryinit(state, key->sk_attno - 1, &entry, datum, scan->indexRelation,
				   (Page) leaf.data, FirstOffsetNumber, false, false);
	*distance = DatumGetFloat8(FunctionCall5Coll(&key->sk_func, key->sk_collation,
												 PointerGetDatum(&entry),
												 key->sk_argument,
												 Int16GetDatum(key->sk_strategy),
												 ObjectIdGetDatum(key->sk_subtype),
												 PointerGetDatum(recheck)));
	return true;
}

/* is the scan at the distance at which it returns this entry? */
static bool
is_at_distance_of(IndexScanDesc scan, IndexTuple itup)
{
	GISTScanOpaque so = (GISTScanOpaque) scan->opaque;

	for (int i = 0; i < scan->numberOfOrderBys; i++)
	{
		float8		distance;
		bool		recheck = false;

		if (!entry_distance(scan, i, itup, &distance, &recheck))
		{
			if (!scan->xs_orderbynulls[i])
				return false;
			continue;
		}
		if (scan->xs_orderbynulls[i])
			return false;
		if (so->orderByTypes[i] == FLOAT8OID ?
			!float8_eq(distance, DatumGetFloat8(scan->xs_orderbyvals[i])) :
			!float4_eq((float4) distance, DatumGetFloat4(scan->xs_orderbyvals[i])))
			return false;
		scan->xs_recheckorderby |= recheck;
	}
	return true;
}

/* does the entry that the scan returns say what this one would say? */
static bool
says_the_same(IndexScanDesc scan, IndexTuple itup)
{
	GISTScanOpaque so = (GISTScanOpaque) scan->opaque;
	HeapTuple	said = gistFetchTuple(so->giststate, scan->indexRelation, itup);
	TupleDesc	desc = scan->xs_hitupdesc;
	EntryValues a;
	EntryValues b;

	heap_deform_tuple(said, desc, a.values, a.isnull);
	heap_deform_tuple(scan->xs_hitup, desc, b.values, b.isnull);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (a.isnull[i] != b.isnull[i] ||
			(!a.isnull[i] && !inplace_same_value(a.values[i], b.values[i],
												 att->attbyval, att->attlen)))
			return false;
	}
	return true;
}

static bool
is_of_version(IndexScanDesc scan, TupleTableSlot *slot)
{
	Relation	index = scan->indexRelation;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	IndexTuple	itup;

	if (inplace_key_of_slot(index, slot, values, isnull) != KEY_FOUND)
		return false;
	if (index->rd_rel->relam != GIST_AM_OID ||
		(!scan->xs_want_itup && scan->numberOfOrderBys == 0))
		return true;
	inplace_payload_of_slot(index, slot, values, isnull);
	itup = gistFormTuple(((GISTScanOpaque) scan->opaque)->giststate, index,
						 values, isnull, true);
	return (!scan->xs_want_itup || says_the_same(scan, itup)) &&
		is_at_distance_of(scan, itup);
}

/*
 * A scan has come to a row that is IP_STALE, of which its snapshot sees the version in the
 * slot.  Is it to be returned for this entry?
 */
bool
inplace_other_entry_counts(OtherFetch *of, IndexScanDesc scan,
						   const ItemPointerData *tid, TupleTableSlot *slot)
{
	Relation	index = scan->indexRelation;
	bool		gist = index->rd_rel->relam == GIST_AM_OID;
	MemoryContext old;
	bool		counts;

	if (!inplace_other_took(index))
	{
		of->begun = true;
		return true;
	}
	/* (a hash index may have come to take updates since the scan began) */
	if (gist ? !matters(of, scan) :
		!inplace_key_is_computed(index) ||
		!inplace_other_marked(index->rd_rel->relpersistence, RelationGetRelid(index)))
	{
		of->begun = true;
		return true;
	}
	if (gist && begins_again(of, scan))
		return false;
	if (gist && !of->marked)
		return true;
	if (inplace_key_is_computed(index) ||
		(gist && (scan->xs_want_itup || scan->numberOfOrderBys > 0)))
	{
		if (of->work == NULL)
			of->work = AllocSetContextCreate(of->cxt, "inplace other entry",
											 ALLOCSET_SMALL_SIZES);
		old = MemoryContextSwitchTo(of->work);
		counts = is_of_version(scan, slot);
		MemoryContextSwitchTo(old);
		MemoryContextReset(of->work);
		if (!counts)
			return false;
	}
	if (!gist)
		return true;
	refuse_lossy_distance(of, scan);
	if (has_been_returned(of, tid))
		return false;
	if (!scan->xs_want_itup)
		scan->xs_recheck = true;
	return true;
}

/*-------------------------------------------------------------------------
 *
 * check_index.c
 *	  inplace.check(): do the table and its indexes agree?
 *
 * What the entries of an index say goes into a Bloom filter, and which rows have an
 * entry into a bitmap; rows are looked up there.  What counts as a finding, and
 * why, is in check.c.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/amapi.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/tupmacs.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "executor/executor.h"
#include "index/entry.h"
#include "index/other_method.h"
#include "insight/check.h"
#include "insight/check_btree.h"
#include "insight/check_other.h"
#include "own.h"
#include "page/slot.h"
#include "page/tuple.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"


static void
report_index(CheckState *state, IndexCheck *ic, int64 block, int item,
			 const char *problem)
{
	if (ic->nfindings < MAX_INDEX_FINDINGS)
		CheckReport(state, block, item, ic->rel, "error", problem);
	else if (ic->nfindings == MAX_INDEX_FINDINGS)
	{
		CheckReport(state, -1, InvalidOffsetNumber, ic->rel, "warning",
					psprintf("more than %d findings, the rest is not reported",
							 MAX_INDEX_FINDINGS));
		ic->check_rows = false;
	}
	ic->nfindings++;
}

/*
 * The bytes that stand for an index entry in the filter: the row's TID and
 * the keys, in a form that does not depend on how a value is stored.
 */
static void
fingerprint_begin(StringInfo buf, ItemPointer tid)
{
	ItemPointerData clean = *tid;

	resetStringInfo(buf);
	appendBinaryStringInfo(buf, (char *) &clean, sizeof(clean));
}

void
CheckFingerprint(StringInfo buf, Form_pg_attribute att, Datum value, bool isnull)
{
	appendStringInfoChar(buf, isnull ? 'n' : 'v');
	if (isnull)
		return;

	if (att->attbyval)
	{
		Datum		image = value;

		/* what is above the type's own bits is anybody's guess */
		if (att->attlen < (int) sizeof(Datum))
			image &= (((Datum) 1) << (att->attlen * BITS_PER_BYTE)) - 1;
		appendBinaryStringInfo(buf, (char *) &image, sizeof(image));
	}
	else if (att->attlen == -1)
	{
		struct varlena *v = PG_DETOAST_DATUM_PACKED(value);
		uint32		len = VARSIZE_ANY_EXHDR(v);

		appendBinaryStringInfo(buf, (char *) &len, sizeof(len));
		appendBinaryStringInfo(buf, VARDATA_ANY(v), len);
	}
	else if (att->attlen == -2)
		appendBinaryStringInfo(buf, DatumGetCString(value),
							   strlen(DatumGetCString(value)) + 1);
	else
		appendBinaryStringInfo(buf, DatumGetPointer(value), att->attlen);
}

/* entries with their payload are in the filter, too */
static void
fingerprint_payload(StringInfo buf, Relation index, const Datum *values,
					const bool *isnull)
{
	TupleDesc	desc = RelationGetDescr(index);

	appendStringInfoChar(buf, 'p');
	for (int i = IndexRelationGetNumberOfKeyAttributes(index); i < desc->natts; i++)
		CheckFingerprint(buf, TupleDescAttr(desc, i), values[i], isnull[i]);
}

/* is this row in one of the bitmaps? */
static bool
bitmap_has(CheckState *state, const uint8 *bitmap, BlockNumber block,
		   OffsetNumber off)
{
	return block < state->entries_blocks &&
		off >= FirstOffsetNumber && off <= InplaceMaxTuplesPerPage &&
		(bitmap[(Size) block * ENTRY_BYTES + (off - 1) / 8] &
		 (1 << ((off - 1) % 8))) != 0;
}

bool
CheckEntryKnown(CheckState *state, BlockNumber block, OffsetNumber off)
{
	return bitmap_has(state, state->entries, block, off);
}

/* room in the entry bitmap for blocks that the table has got since */
static void
grow_entries(CheckState *state, BlockNumber nblocks)
{
	Size		oldsize = (Size) state->entries_blocks * ENTRY_BYTES;
	Size		newsize = (Size) nblocks * ENTRY_BYTES;

	if (nblocks <= state->entries_blocks)
		return;
	state->entries = repalloc_huge(state->entries, newsize);
	memset(state->entries + oldsize, 0, newsize - oldsize);
	state->entries_blocks = nblocks;
}

static void
note_entry(CheckState *state, IndexCheck *ic, ItemPointer tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(tid);

	if (off < FirstOffsetNumber || off > InplaceMaxTuplesPerPage)
	{
		report_index(state, ic, -1, InvalidOffsetNumber,
					 psprintf("entry for row (%u,%u), which is not possible",
							  block, off));
		return;
	}
	if (block >= state->entries_blocks)
		grow_entries(state, RelationGetNumberOfBlocks(state->rel));
	if (block >= state->entries_blocks)
	{
		report_index(state, ic, -1, InvalidOffsetNumber,
					 psprintf("entry for row (%u,%u), which is past the table's end",
							  block, off));
		return;
	}
	state->entries[(Size) block * ENTRY_BYTES + (off - 1) / 8] |=
		1 << ((off - 1) % 8);
}

/* ---------------- GIN, hash and GiST indexes with their keys ---------------- */

typedef struct OtherWalk
{
	CheckState *state;
	IndexCheck *ic;
} OtherWalk;

/* what stands for such an entry in the filter */
typedef struct OtherElement
{
	uint64		digest;
	ItemPointerData tid;
} OtherElement;

static void
make_element(OtherElement *element, ItemPointer tid, uint64 digest)
{
	memset(element, 0, sizeof(OtherElement));
	element->digest = digest;
	element->tid = *tid;
}

static void
note_other_entry(void *arg, ItemPointer tid, uint64 digest)
{
	OtherWalk  *walk = arg;
	OtherElement element;

	note_entry(walk->state, walk->ic, tid);
	if (!walk->ic->check_rows)
		return;
	make_element(&element, tid, digest);
	bloom_add_element(walk->ic->filter, (unsigned char *) &element, sizeof(element));
}

typedef struct OtherQuestion
{
	Relation	index;
	const CheckOtherKey *key;
	Datum	   *values;
	bool	   *isnull;
	ItemPointer tid;
	bool		yes;
} OtherQuestion;

static void
ask_other(CheckState *state, void *arg)
{
	OtherQuestion *q = arg;

	q->yes = CheckOtherHasEntry(q->index, q->key, q->values, q->isnull, q->tid);
}

/*
 * Has the row all entries of its values?
 */
static void
check_other_keys(CheckState *state, IndexCheck *ic, ItemPointer tid, Datum *values,
				 bool *isnull)
{
	CheckOtherKey *keys;
	int			nkeys = CheckOtherRowKeys(ic->rel, values, isnull, &keys);

	for (int i = 0; i < nkeys; i++)
	{
		OtherElement element;
		OtherQuestion question = {ic->rel, &keys[i], values, isnull, tid, false};

		make_element(&element, tid, keys[i].digest);
		if (!bloom_lacks_element(ic->filter, (unsigned char *) &element, sizeof(element)))
			continue;
		/* an index that cannot be searched is asked no more */
		if (!CheckGuarded(state, ask_other, &question, -1, ic->rel))
		{
			ic->check_rows = false;
			return;
		}
		if (!question.yes)
		{
			report_index(state, ic, ItemPointerGetBlockNumber(tid),
						 ItemPointerGetOffsetNumber(tid),
						 nkeys == 1 ? "row has no index entry with its key" :
						 "row has no index entry with one of its keys");
			break;
		}
	}
}

/*
 * Step 2: take in all entries of an index.
 */
static void
scan_index(CheckState *state, void *arg)
{
	IndexCheck *ic = arg;
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(ic->rel);
	TupleDesc	desc = RelationGetDescr(ic->rel);
	StringInfoData buf;
	IndexScanDesc scan;
	ItemPointer tid;
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	MemoryContext entry_cxt;
	MemoryContext oldcxt;

	if (ic->other_keys)
	{
		OtherWalk	walk = {state, ic};

		CheckOtherWalk(ic->rel, note_other_entry, &walk);
		return;
	}
	initStringInfo(&buf);
	entry_cxt = AllocSetContextCreate(CurrentMemoryContext,
									  "inplace index entry",
									  ALLOCSET_DEFAULT_SIZES);

	scan = IndexBeginScan(state->rel, ic->rel, state->snapshot, 0, 0);
	scan->xs_want_itup = ic->has_keys;
	index_rescan(scan, NULL, 0, NULL, 0);

	while ((tid = index_getnext_tid(scan, ForwardScanDirection)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();

		note_entry(state, ic, tid);
		if (!ic->check_rows)
			continue;

		fingerprint_begin(&buf, tid);
		if (ic->has_keys)
		{
			if (scan->xs_itup == NULL)
				elog(ERROR, "index scan returned no index tuple");
			oldcxt = MemoryContextSwitchTo(entry_cxt);
			for (int i = 0; i < nkeys; i++)
			{
				bool		isnull;
				Datum		value = index_getattr(scan->xs_itup, i + 1,
												  scan->xs_itupdesc, &isnull);

				CheckFingerprint(&buf, TupleDescAttr(desc, i), value, isnull);
			}
			bloom_add_element(ic->filter, (unsigned char *) buf.data, buf.len);
			if (ic->has_payload)
			{
				index_deform_tuple(scan->xs_itup, scan->xs_itupdesc, values, nulls);
				fingerprint_payload(&buf, ic->rel, values, nulls);
				bloom_add_element(ic->filter, (unsigned char *) buf.data, buf.len);
			}
			MemoryContextSwitchTo(oldcxt);
			MemoryContextReset(entry_cxt);
		}
		else
			bloom_add_element(ic->filter, (unsigned char *) buf.data, buf.len);
	}
	index_endscan(scan);
	MemoryContextDelete(entry_cxt);
	pfree(buf.data);
}

/*
 * Has this entry of the row the payload of the row's version?
 */
static bool
payload_agrees(IndexCheck *ic, IndexTuple itup, TupleDesc desc,
			   const Datum *values, const bool *isnull)
{
	Datum		entry_values[INDEX_MAX_KEYS];
	bool		entry_nulls[INDEX_MAX_KEYS];
	StringInfoData entry;
	StringInfoData row;
	bool		result;

	if (itup == NULL)
		elog(ERROR, "index scan returned no index tuple");
	initStringInfo(&entry);
	initStringInfo(&row);
	index_deform_tuple(itup, desc, entry_values, entry_nulls);
	fingerprint_payload(&entry, ic->rel, entry_values, entry_nulls);
	fingerprint_payload(&row, ic->rel, values, isnull);
	result = entry.len == row.len &&
		memcmp(entry.data, row.data, row.len) == 0;
	pfree(entry.data);
	pfree(row.data);
	return result;
}

/*
 * The filter does not know this entry.  It compares bytes; what the index
 * holds need only be equal by its operator class.  So ask the index.
 * "payload", if not NULL, comes to be false if the entry has another one.
 */
static bool
btree_has_entry(CheckState *state, IndexCheck *ic, ItemPointer tid,
				Datum *values, bool *isnull, bool *payload)
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(ic->rel);
	ScanKeyData keys[INDEX_MAX_KEYS];
	IndexScanDesc scan;
	ItemPointer found;
	bool		result = false;
	int			i;

	for (i = 0; i < nkeys; i++)
	{
		Oid			type = ic->rel->rd_opcintype[i];
		Oid			op;

		if (isnull[i])
		{
			ScanKeyEntryInitialize(&keys[i], SK_ISNULL | SK_SEARCHNULL, i + 1,
								   InvalidStrategy, InvalidOid, InvalidOid,
								   InvalidOid, (Datum) 0);
			continue;
		}
		op = get_opfamily_member(ic->rel->rd_opfamily[i], type, type,
								 BTEqualStrategyNumber);
		if (!OidIsValid(op))
			return true;		/* cannot tell */
		ScanKeyEntryInitialize(&keys[i], 0, i + 1, BTEqualStrategyNumber,
							   InvalidOid, ic->rel->rd_indcollation[i],
							   get_opcode(op), values[i]);
	}

	scan = IndexBeginScan(state->rel, ic->rel, state->snapshot, nkeys, 0);
	scan->xs_want_itup = payload != NULL;
	index_rescan(scan, keys, nkeys, NULL, 0);
	while (!result &&
		   (found = index_getnext_tid(scan, ForwardScanDirection)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		result = ItemPointerEquals(found, tid);
		if (result && payload != NULL)
			*payload = payload_agrees(ic, scan->xs_itup, scan->xs_itupdesc,
									  values, isnull);
	}
	index_endscan(scan);
	return result;
}

/*
 * Does the row, seen on its page with that header and not IP_STALE, have the
 * entry with its payload?  "buf" is the fingerprint of the entry's key.
 */
static void
check_payload(CheckState *state, IndexCheck *ic, StringInfo buf, ItemPointer tid,
			  Datum *values, bool *isnull, const InplaceTupleHeaderData *seen)
{
	BlockNumber block = ItemPointerGetBlockNumber(tid);
	OffsetNumber off = ItemPointerGetOffsetNumber(tid);
	bool		agrees = true;

	fingerprint_payload(buf, ic->rel, values, isnull);
	if (bloom_lacks_element(ic->filter, (unsigned char *) buf->data, buf->len) &&
		btree_has_entry(state, ic, tid, values, isnull, &agrees) && !agrees &&
		CheckRowUnchanged(state, block, off, seen, VOLATILE_BITS & ~IP_STALE))
		report_index(state, ic, block, off,
					 "index entry has INCLUDE columns that are not the row's");
}

/*
 * Step 3, for a row that the snapshot sees: is it in the indexes?  "page_hdr"
 * is what stands on the page.
 */
void
CheckRowInIndexes(CheckState *state, BlockNumber block, OffsetNumber off,
				  InplaceTupleHeader tuple, Size len,
				  const InplaceTupleHeaderData *page_hdr)
{
	bool		payload_counts = !(page_hdr->t_infomask & IP_STALE) &&
		HdrSameVersion(tuple, page_hdr);
	ItemPointerData tid;
	StringInfoData buf;
	int			i;

	TidSet(&tid, block, off);
	initStringInfo(&buf);
	inplace_store_tuple(state->slot, RelationGetRelid(state->rel), &tid,
						tuple, len, NULL, false);
	state->econtext->ecxt_scantuple = state->slot;

	for (i = 0; i < state->nindexes; i++)
	{
		IndexCheck *ic = &state->indexes[i];
		Datum		values[INDEX_MAX_KEYS];
		bool		isnull[INDEX_MAX_KEYS];
		int			k;

		if (!ic->check_rows)
			continue;
		if (ic->predicate != NULL && !ExecQual(ic->predicate, state->econtext))
			continue;

		if (ic->other_keys)
		{
			FormIndexDatum(ic->info, state->slot, state->estate, values, isnull);
			check_other_keys(state, ic, &tid, values, isnull);
			continue;
		}
		fingerprint_begin(&buf, &tid);
		if (ic->has_keys)
		{
			FormIndexDatum(ic->info, state->slot, state->estate, values, isnull);
			for (k = 0; k < IndexRelationGetNumberOfKeyAttributes(ic->rel); k++)
				CheckFingerprint(&buf,
								 TupleDescAttr(RelationGetDescr(ic->rel), k),
								 values[k], isnull[k]);
		}
		if (bloom_lacks_element(ic->filter, (unsigned char *) buf.data, buf.len) &&
			!(ic->has_keys &&
			  btree_has_entry(state, ic, &tid, values, isnull, NULL)))
			report_index(state, ic, block, off,
						 ic->has_keys ? "row has no index entry with its key" :
						 "row has no index entry");
		else if (ic->has_payload && payload_counts)
			check_payload(state, ic, &buf, &tid, values, isnull, page_hdr);
	}

	ExecClearTuple(state->slot);
	ResetExprContext(state->econtext);
	pfree(buf.data);
}

typedef struct BtreeReport
{
	CheckState *state;
	IndexCheck *ic;
} BtreeReport;

static void
report_btree(void *arg, const char *problem)
{
	BtreeReport *br = arg;

	report_index(br->state, br->ic, -1, InvalidOffsetNumber, problem);
}

/* is the index, whatever the table has, a good tree? */
static void
check_btree(CheckState *state, void *arg)
{
	BtreeReport br = {state, (IndexCheck *) arg};

	if (!InsightCheckBtree(state->rel, br.ic->rel, report_btree, &br))
		br.ic->scannable = br.ic->check_rows = false;
}

/* an entry at the second look: does it lead nowhere? */
static void
look_again(CheckState *state, IndexCheck *ic, ItemPointer tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(tid);

	if (bitmap_has(state, state->suspects, block, off) &&
		CheckItemUnused(state, block, off))
		report_index(state, ic, block, off,
					 "index entry leads to an unused line pointer");
}

static void
look_at_other_again(void *arg, ItemPointer tid, uint64 digest)
{
	OtherWalk  *walk = arg;

	look_again(walk->state, walk->ic, tid);
}

/*
 * Step 4: find the suspects' entries again.
 */
static void
rescan_index(CheckState *state, void *arg)
{
	IndexCheck *ic = arg;
	IndexScanDesc scan;
	ItemPointer tid;

	if (ic->other_keys)
	{
		OtherWalk	walk = {state, ic};

		CheckOtherWalk(ic->rel, look_at_other_again, &walk);
		return;
	}
	scan = IndexBeginScan(state->rel, ic->rel, state->snapshot, 0, 0);
	index_rescan(scan, NULL, 0, NULL, 0);
	while ((tid = index_getnext_tid(scan, ForwardScanDirection)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		look_again(state, ic, tid);
	}
	index_endscan(scan);
}

/* of an entry that is known */
void
CheckAddSuspect(CheckState *state, BlockNumber block, OffsetNumber off)
{
	state->suspects[(Size) block * ENTRY_BYTES + (off - 1) / 8] |=
		1 << ((off - 1) % 8);
	state->any_suspects = true;
}

/*
 * Can the index be scanned as a whole, without a condition and without an order?
 * amoptionalkey says that there need be no condition, but nothing says that there
 * need be no order: pgvector's methods want one.  So the methods that are scanned
 * are those of which it is known.
 */
static bool
method_is_scannable(Relation index, bool has_keys)
{
	Oid			relam = index->rd_rel->relam;

	return has_keys || relam == GIST_AM_OID || relam == SPGIST_AM_OID;
}

/*
 * Has the index been built after the snapshot was taken?  One of another method than
 * inplace_btree has the keys of newest versions only (young_index.c).
 */
static bool
is_young(Relation index, Snapshot snapshot)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(RelationGetRelid(index)));
	TransactionId xmin;

	if (!HeapTupleIsValid(tuple))
		return true;
	xmin = HeapTupleHeaderGetXmin(tuple->t_data);
	ReleaseSysCache(tuple);
	return !TransactionIdIsCurrentTransactionId(xmin) &&
		!TransactionIdPrecedes(xmin, TransactionXmin) &&
		XidInMVCCSnapshot(xmin, snapshot);
}

/*
 * Say that the entries of an index are not looked at.  That BRIN indexes are passed over, and
 * GIN and hash indexes that take no updates in place, is documented; of a method that is not
 * the server's people cannot know.
 */
static void
tell_passed_over(Relation index)
{
	ereport(index->rd_rel->relam < FirstNormalObjectId ? DEBUG1 : NOTICE,
			(errmsg("entries of index \"%s\" were not checked",
					RelationGetRelationName(index)),
			 errdetail("It is not known whether access method \"%s\" can scan an index as a whole.",
					   get_am_name(index->rd_rel->relam))));
}

void
CheckOpenIndexes(CheckState *state)
{
	List	   *oids = RelationGetIndexList(state->rel);
	ListCell   *lc;
	int			nfilters = 0;
	int			i;
	Oid			our_btree = InplaceBtreeAm();

	state->indexes = palloc0(sizeof(IndexCheck) * Max(list_length(oids), 1));
	foreach(lc, oids)
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);
		Form_pg_index form = index->rd_index;
		IndexCheck *ic;

		if (!form->indisvalid || !form->indisready || !form->indislive)
		{
			index_close(index, AccessShareLock);
			continue;
		}
		ic = &state->indexes[state->nindexes++];
		ic->rel = index;
		ic->info = BuildIndexInfo(index);
		ic->has_keys = index->rd_rel->relam == BTREE_AM_OID ||
			(OidIsValid(our_btree) && index->rd_rel->relam == our_btree);
		ic->other_keys = inplace_is_other_method(index->rd_rel->relam) &&
			inplace_other_takes(index);
		ic->scannable = ic->other_keys || method_is_scannable(index, ic->has_keys);
		if (!ic->scannable)
			tell_passed_over(index);

		/*
		 * An index that was built past broken chains need not have what an
		 * old snapshot sees; ours is fresh, but the rule is the planner's.
		 */
		ic->check_rows = ic->scannable &&
			!(ic->other_keys && is_young(index, state->snapshot)) &&
			!(form->indcheckxmin &&
			  !TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data),
									 TransactionXmin));
		ic->has_payload = ic->has_keys && inplace_has_payload(index);
		if (ic->check_rows)
			nfilters++;
	}
	list_free(oids);

	for (i = 0; i < state->nindexes; i++)
	{
		IndexCheck *ic = &state->indexes[i];
		int64		elems;

		if (!ic->check_rows)
			continue;
		elems = (int64) RelationGetNumberOfBlocks(ic->rel) *
			(BLCKSZ / (sizeof(ItemIdData) + sizeof(IndexTupleData) + 8));
		if (ic->rel->rd_rel->reltuples > elems)
			elems = (int64) ic->rel->rd_rel->reltuples;
		if (ic->has_payload)
			elems *= 2;
		/* (a posting list takes two bytes for a TID, or less) */
		if (ic->rel->rd_rel->relam == GIN_AM_OID)
			elems = (int64) RelationGetNumberOfBlocks(ic->rel) * (BLCKSZ / 2);
		ic->filter = bloom_create(Max(elems, 1),
								  Max(maintenance_work_mem / nfilters, 1024),
								  (uint64) GetCurrentTimestamp());
		ic->predicate = ExecPrepareQual(ic->info->ii_Predicate, state->estate);
	}
}

/*
 * Step 2.
 */
void
CheckIndexes(CheckState *state)
{
	for (int i = 0; i < state->nindexes; i++)
	{
		IndexCheck *ic = &state->indexes[i];

		if (ic->has_keys &&
			!CheckGuarded(state, check_btree, ic, -1, ic->rel))
			ic->scannable = ic->check_rows = false;
		/* half a filter would have rows missing that are not */
		if (ic->scannable &&
			!CheckGuarded(state, scan_index, ic, -1, ic->rel))
			ic->check_rows = false;
	}
}

/*
 * Step 4.
 */
void
CheckSuspects(CheckState *state)
{
	if (!state->any_suspects)
		return;
	for (int i = 0; i < state->nindexes; i++)
		if (state->indexes[i].scannable)
			CheckGuarded(state, rescan_index, &state->indexes[i], -1,
						 state->indexes[i].rel);
}

void
CheckCloseIndexes(CheckState *state)
{
	for (int i = 0; i < state->nindexes; i++)
	{
		if (state->indexes[i].filter != NULL)
			bloom_free(state->indexes[i].filter);
		index_close(state->indexes[i].rel, AccessShareLock);
	}
}

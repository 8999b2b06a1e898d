/*-------------------------------------------------------------------------
 *
 * check.c
 *	  inplace.check(): is a table what it should be?
 *
 * The order of things
 *	  1. A fresh snapshot is registered.  From then on nothing that it may see
 *		 goes away: neither the undo of a version that it does not see, nor an
 *		 index entry of one that it does see.
 *	  2. Each index is scanned from end to end.  What its entries say (row and
 *		 key) goes into a Bloom filter, and which rows have an entry into a
 *		 bitmap.
 *		 B-trees are looked at as such (check_btree.c).
 *	  3. The table is read page by page.  Each page is copied under its share
 *		 lock, together with its visibility map bits; everything is worked out
 *		 on the copy.  Of each row that the snapshot sees the keys are looked
 *		 up in the filters.
 *	  4. Entries found to lead nowhere are looked for once more in the indexes
 *		 and on their pages, now that VACUUM may have been there.
 *
 * Only what is certain is reported
 *	  A page copy is consistent in itself, but what it leads to may have moved
 *	  on.  So undo that is missing is a finding only if the snapshot needs it,
 *	  and if the row on the page is the same still; an index entry that leads
 *	  nowhere only if it is there at the second look, and its row is not; a
 *	  row that no entry leads to always, for the snapshot protects the entry.
 *	  INCLUDE columns of an entry (its payload) count while the row is not
 *	  IP_STALE (index/index.h): they are a finding if they are others than the
 *	  row's when the index is asked, and the row is the same, without that
 *	  mark, before and after.  Our snapshot keeps VACUUM from taking a mark away
 *	  that was put in between.
 *	  A Bloom filter may say that an entry is there which is not (with filters
 *	  that fit maintenance_work_mem: one in fifty at worst, and of small tables
 *	  hardly ever), never the reverse.
 *
 * Corrupt data must not crash or stop us
 *	  Rows are validated before they are deformed (InsightCheckRow), and each
 *	  page, and each index scan, is looked at in a subtransaction: an error of
 *	  the kinds that damage causes becomes a line of the result.
 *
 * Nothing is held from one page to the next but relation locks; memory is
 * given back after each page.  Expressions and predicates of indexes run as
 * the table's owner, with the restrictions that index builds have.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/amapi.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tupmacs.h"
#include "access/visibilitymap.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "commands/defrem.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/bloomfilter.h"
#include "undo/holders.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

#include "index/index.h"
#include "insight/insight.h"

PG_FUNCTION_INFO_V1(inplace_check);
Datum		inplace_check(PG_FUNCTION_ARGS);

/* after so many findings about one index we stop looking up rows in it */
#define MAX_INDEX_FINDINGS	100

/* entries that lead nowhere which are looked at again */
#define MAX_SUSPECTS		10000

/* bytes of the entry bitmap for each block */
#define ENTRY_BYTES			((InplaceMaxTuplesPerPage + 7) / 8)

/*
 * Bits of a header that change while its row stays the same: hints, freezing
 * and the giving back of reserved space.
 */
#define VOLATILE_BITS \
	(IP_HINT_BITS | IP_FROZEN | IP_PADDED | IP_STALE)

enum
{
	COL_BLOCK,
	COL_ITEM,
	COL_INDEX,
	COL_SEVERITY,
	COL_PROBLEM,
	NUM_COLS
};

typedef struct IndexCheck
{
	Relation	rel;
	IndexInfo  *info;
	ExprState  *predicate;
	bool		scannable;		/* can be scanned without keys */
	bool		has_keys;		/* btree: entries come with their keys */
	bool		has_payload;	/* and with INCLUDE columns */
	bool		check_rows;		/* rows must be found in the filter */
	bloom_filter *filter;
	int			nfindings;
} IndexCheck;

typedef struct CheckState
{
	ReturnSetInfo *rsinfo;
	Relation	rel;
	Relation	toastrel;		/* or NULL */
	TupleDesc	desc;
	Snapshot	snapshot;
	InsightLimits limits;
	BufferAccessStrategy strategy;
	BlockNumber nblocks;
	MemoryContext page_cxt;		/* reset after each page */

	PGAlignedBlock copy;		/* of the page being looked at */
	PGAlignedBlock row;			/* of an item on it */
	bool		occupied[BLCKSZ];	/* bytes of the page that an item has */
	InsightWalk walk;

	int			nindexes;
	IndexCheck *indexes;
	EState	   *estate;
	ExprContext *econtext;
	TupleTableSlot *slot;
	uint8	   *entries;		/* bitmap: rows that some entry leads to */
	BlockNumber entries_blocks;
	HTAB	   *suspects;		/* entries that lead nowhere, by TID */
	bool		suspects_lost;
} CheckState;

/* 18 wants to be told where to count */
static IndexScanDesc
begin_index_scan(Relation heap, Relation index, Snapshot snapshot, int nkeys)
{
#if PG_VERSION_NUM >= 180000
	return index_beginscan(heap, index, snapshot, NULL, nkeys, 0);
#else
	return index_beginscan(heap, index, snapshot, nkeys, 0);
#endif
}

/* ---------------- findings ---------------- */

static void
report(CheckState *state, int64 block, int item, Relation index,
	   const char *severity, const char *problem)
{
	Datum		values[NUM_COLS];
	bool		nulls[NUM_COLS];

	memset(nulls, false, sizeof(nulls));
	values[COL_BLOCK] = Int64GetDatum(block);
	nulls[COL_BLOCK] = block < 0;
	values[COL_ITEM] = Int32GetDatum(item);
	nulls[COL_ITEM] = item == InvalidOffsetNumber;
	nulls[COL_INDEX] = index == NULL;
	values[COL_INDEX] = index == NULL ? (Datum) 0 :
		ObjectIdGetDatum(RelationGetRelid(index));
	values[COL_SEVERITY] = CStringGetTextDatum(severity);
	values[COL_PROBLEM] = CStringGetTextDatum(problem);
	tuplestore_putvalues(state->rsinfo->setResult, state->rsinfo->setDesc,
						 values, nulls);
}

static void
report_index(CheckState *state, IndexCheck *ic, int64 block, int item,
			 const char *problem)
{
	if (ic->nfindings < MAX_INDEX_FINDINGS)
		report(state, block, item, ic->rel, "error", problem);
	else if (ic->nfindings == MAX_INDEX_FINDINGS)
	{
		report(state, -1, InvalidOffsetNumber, ic->rel, "warning",
			   psprintf("more than %d findings, the rest is not reported",
						MAX_INDEX_FINDINGS));
		ic->check_rows = false;
	}
	ic->nfindings++;
}

/*
 * Call fn in a subtransaction.  Errors that damage can cause (internal,
 * corruption, I/O) are reported, and false returned; others go on.
 */
typedef void (*GuardedFunction) (CheckState *state, void *arg);

static bool
call_guarded(CheckState *state, GuardedFunction fn, void *arg, int64 block,
			 Relation index)
{
	MemoryContext oldcxt = CurrentMemoryContext;
	ResourceOwner oldowner = CurrentResourceOwner;
	volatile bool ok = true;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(oldcxt);
	PG_TRY();
	{
		fn(state, arg);

		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(oldcxt);
		CurrentResourceOwner = oldowner;
	}
	PG_CATCH();
	{
		ErrorData  *edata;
		int			category;

		MemoryContextSwitchTo(oldcxt);
		edata = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(oldcxt);
		CurrentResourceOwner = oldowner;

		category = ERRCODE_TO_CATEGORY(edata->sqlerrcode);
		if (category != ERRCODE_TO_CATEGORY(ERRCODE_INTERNAL_ERROR) &&
			category != ERRCODE_TO_CATEGORY(ERRCODE_SYSTEM_ERROR))
			ReThrowError(edata);
		report(state, block, InvalidOffsetNumber, index, "error",
			   edata->message ? edata->message : "unknown error");
		ok = false;
	}
	PG_END_TRY();
	return ok;
}

/* ---------------- looking at a page a second time ---------------- */

/*
 * Is the row still what the copy showed, but for some bits of its header?
 */
static bool
row_unchanged(CheckState *state, BlockNumber block, OffsetNumber off,
			  const InplaceTupleHeaderData *seen, uint16 but_for)
{
	Buffer		buffer = ReadBuffer(state->rel, block);
	Page		page;
	bool		same = false;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	if (!PageIsNew(page) && off <= PageGetMaxOffsetNumber(page))
	{
		ItemId		lp = PageGetItemId(page, off);

		if (ItemIdIsNormal(lp) &&
			ItemIdGetLength(lp) >= SizeOfInplaceTupleHeader &&
			ItemIdGetOffset(lp) + ItemIdGetLength(lp) <= BLCKSZ)
		{
			InplaceTupleHeaderData now;

			memcpy(&now, PageGetItem(page, lp), SizeOfInplaceTupleHeader);
			same = now.t_xid == seen->t_xid &&
				memcmp(now.t_undo, seen->t_undo, sizeof(now.t_undo)) == 0 &&
				((now.t_infomask ^ seen->t_infomask) & ~but_for) == 0 &&
				now.t_tag == seen->t_tag;
		}
	}
	UnlockReleaseBuffer(buffer);
	return same;
}

/*
 * Does the line pointer lead nowhere?
 */
static bool
item_unused(CheckState *state, BlockNumber block, OffsetNumber off)
{
	Buffer		buffer = ReadBufferExtended(state->rel, MAIN_FORKNUM, block,
											RBM_NORMAL, state->strategy);
	Page		page;
	bool		unused;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	unused = PageIsNew(page) || off > PageGetMaxOffsetNumber(page) ||
		!ItemIdIsUsed(PageGetItemId(page, off));
	UnlockReleaseBuffer(buffer);
	return unused;
}

/* ---------------- rows ---------------- */

/* would a snapshot of now need this version's undo? */
static bool
undo_needed(InsightWalk *walk, Snapshot snapshot)
{
	switch (walk->status)
	{
		case INSIGHT_XID_CURRENT:
		case INSIGHT_XID_IN_PROGRESS:
		case INSIGHT_XID_ABORTED:
			return true;
		case INSIGHT_XID_COMMITTED:
			return !InsightVisible(walk, snapshot);
		case INSIGHT_XID_UNKNOWN:
			break;
	}
	return false;
}

static const char *
check_locker(CheckState *state, InsightWalk *walk)
{
	InsightLimits *limits = &state->limits;
	TransactionId id = walk->locker;

	if (!walk->lock_known)
		return NULL;
	if (walk->lock_multi)
	{
		if (!MultiXactIdIsValid(id))
			return "locker is an invalid multixact";
		if (!MultiXactIdPrecedes(id, limits->next_multi))
			return psprintf("locking multixact %u is in the future", id);
		if (MultiXactIdPrecedes(id, limits->relminmxid))
			return psprintf("locking multixact %u is older than relminmxid %u",
							id, limits->relminmxid);
	}
	else
	{
		if (!TransactionIdIsNormal(id))
			return psprintf("locker %u is not a transaction", id);
		if (!TransactionIdPrecedes(id, limits->next_xid))
			return psprintf("locker %u is in the future", id);
		if (TransactionIdIsNormal(limits->relfrozenxid) &&
			TransactionIdPrecedes(id, limits->relfrozenxid))
			return psprintf("locker %u is older than relfrozenxid %u",
							id, limits->relfrozenxid);
	}
	return NULL;
}

/*
 * The transaction of a row's newest version, and its hints.
 */
static const char *
check_xid(CheckState *state, InplaceTupleHeader tup)
{
	InsightLimits *limits = &state->limits;
	uint16		infomask = tup->t_infomask;
	TransactionId xid = tup->t_xid;
	InsightXidStatus status;

	if (infomask & IP_FROZEN)
		return NULL;
	if (!TransactionIdIsNormal(xid))
		return TransactionIdIsValid(xid) ? NULL : "row has no transaction";
	if (!TransactionIdPrecedes(xid, limits->next_xid))
		return psprintf("transaction %u is in the future", xid);
	if (TransactionIdIsNormal(limits->relfrozenxid) &&
		TransactionIdPrecedes(xid, limits->relfrozenxid))
		return psprintf("transaction %u is older than relfrozenxid %u and not frozen",
						xid, limits->relfrozenxid);

	/* hints are in the copy since before we ask */
	status = InsightGetXidStatus(limits, xid, 0);
	if ((infomask & IP_COMMITTED) && status != INSIGHT_XID_COMMITTED)
		return psprintf("row is hinted committed but transaction %u is not", xid);
	if ((infomask & IP_ABORTED) && status != INSIGHT_XID_ABORTED)
		return psprintf("row is hinted aborted but transaction %u is not", xid);
	return NULL;
}

/*
 * What a record in hand still has to agree with.  Not the table's storage: that
 * may have been copied since (ALTER TABLE SET TABLESPACE).
 */
static const char *
check_record(CheckState *state, const UndoRecord *rec, UndoPtr ptr)
{
	if ((!(rec->hdr.ur_flags & UR_RELATIVE_HEADER) || UndoPtrIsBare(ptr)) &&
		!(rec->old.t_infomask & IP_FROZEN) &&
		TransactionIdIsNormal(rec->old.t_xid) &&
		!TransactionIdPrecedes(rec->old.t_xid, state->limits.next_xid))
		return psprintf("undo record %s restores a transaction %u in the future",
						InsightUndoText(ptr), rec->old.t_xid);
	return NULL;
}

/*
 * Walk back from the newest version (state->walk has been begun at it) as far
 * as anybody may have to.  Returns false if the version that the snapshot
 * sees could not be worked out; otherwise *seen says whether there is one,
 * and then it is in *version.
 */
static bool
check_chain(CheckState *state, BlockNumber block, OffsetNumber off,
			const InplaceTupleHeaderData *page_hdr,
			InplaceTupleHeader *version, Size *version_len, bool *seen)
{
	InsightWalk *walk = &state->walk;
	InsightLink *links = NULL;
	TransactionId newer_xid = InvalidTransactionId;
	bool		decided = false;
	bool		ok = true;

	*seen = false;
	*version = NULL;
	for (;;)
	{
		const char *problem = NULL;

		CHECK_FOR_INTERRUPTS();

		if (!decided && InsightVisible(walk, state->snapshot))
		{
			decided = true;
			if (!(walk->tuple->t_infomask & IP_DELETED))
			{
				*seen = true;
				*version = palloc(walk->len);
				*version_len = walk->len;
				memcpy(*version, walk->tuple, walk->len);
			}
		}

		/* the page's own lock, or one that an older version carries */
		if (walk->locked)
		{
			problem = check_locker(state, walk);
			if (problem == NULL && UndoPtrIsValid(walk->lock_undo) &&
				walk->lock_known)
				problem = check_record(state, &walk->lockrec, walk->lock_undo);
			if (problem == NULL &&
				(walk->tuple->t_infomask & IP_LOCK_DIRECT) &&
				(walk->status == INSIGHT_XID_CURRENT ||
				 walk->status == INSIGHT_XID_IN_PROGRESS))
				problem = "row of a running transaction has a direct lock, its undo is lost";
			if (problem != NULL &&
				row_unchanged(state, block, off, page_hdr, VOLATILE_BITS))
				report(state, block, off, NULL, "error", problem);
			problem = NULL;
		}

		/*
		 * Of the newest version check_xid has looked at the transaction.  On
		 * the way to what our snapshot sees every reader has to ask about the
		 * others; further back nobody need.
		 */
		if (walk->status == INSIGHT_XID_UNKNOWN && walk->version > 0 && !decided)
			problem = psprintf("version %d is by transaction %u, whose fate cannot be known any more",
							   walk->version, walk->tuple->t_xid);
		else if ((problem = InsightCheckLinks(&links, walk, newer_xid)) != NULL)
			;
		else if (walk->undo_state == INSIGHT_UNDO_UNNEEDED)
			problem = InsightCheckLinksEnd(links);
		else if (walk->undo_state == INSIGHT_UNDO_NONE)
		{
			problem = InsightCheckLinksEnd(links);
			if (HdrHasUndo(walk->tuple) && undo_needed(walk, state->snapshot))
				problem = psprintf("version %d by transaction %u has no undo pointer, yet not everybody sees it",
								   walk->version, walk->tuple->t_xid);
		}
		else if (walk->undo_state == INSIGHT_UNDO_MISSING)
		{
			if (undo_needed(walk, state->snapshot))
				problem = psprintf("undo record %s of version %d by transaction %u does not exist or is not this row's",
								   InsightUndoText(walk->undo), walk->version,
								   walk->tuple->t_xid);
		}
		else if (walk->undo_state == INSIGHT_UNDO_BAD)
			problem = walk->problem;
		else
		{
			problem = check_record(state, &walk->rec, walk->undo);
			if (problem == NULL)
			{
				newer_xid = walk->rec.replaced.xid;
				if (InsightWalkBack(walk))
					continue;
				problem = walk->problem;
			}
		}

		if (problem != NULL)
		{
			/* if the row has changed since, we looked for what was over */
			ok = false;
			if (row_unchanged(state, block, off, page_hdr, VOLATILE_BITS))
				report(state, block, off, NULL, "error", problem);
		}
		break;
	}

	return ok || decided;
}

static void
check_toast(CheckState *state, BlockNumber block, OffsetNumber off,
			Datum *values, bool *isnull, bool *ok)
{
	int			i;

	for (i = 0; i < state->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(state->desc, i);
		const char *problem;

		if (isnull[i] || att->attisdropped || att->attlen != -1 ||
			!VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(values[i])))
			continue;

		if (state->toastrel == NULL)
			problem = "row has an external value but the table has no TOAST table";
		else
			problem = InsightCheckToast(state->toastrel, values[i],
										state->snapshot);
		if (problem != NULL)
		{
			*ok = false;
			report(state, block, off, NULL, "error",
				   psprintf("attribute %d: %s", i + 1, problem));
		}
	}
}

/* ---------------- indexes ---------------- */

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

static void
fingerprint_key(StringInfo buf, Form_pg_attribute att, Datum value, bool isnull)
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
		fingerprint_key(buf, TupleDescAttr(desc, i), values[i], isnull[i]);
}

static bool
entry_known(CheckState *state, BlockNumber block, OffsetNumber off)
{
	return block < state->entries_blocks &&
		off >= FirstOffsetNumber && off <= InplaceMaxTuplesPerPage &&
		(state->entries[(Size) block * ENTRY_BYTES + (off - 1) / 8] &
		 (1 << ((off - 1) % 8))) != 0;
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

	initStringInfo(&buf);
	entry_cxt = AllocSetContextCreate(CurrentMemoryContext,
									  "inplace index entry",
									  ALLOCSET_DEFAULT_SIZES);

	scan = begin_index_scan(state->rel, ic->rel, state->snapshot, 0);
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

				fingerprint_key(&buf, TupleDescAttr(desc, i), value, isnull);
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

	scan = begin_index_scan(state->rel, ic->rel, state->snapshot, nkeys);
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
		row_unchanged(state, block, off, seen, VOLATILE_BITS & ~IP_STALE))
		report_index(state, ic, block, off,
					 "index entry has INCLUDE columns that are not the row's");
}

/*
 * Step 3, for a row that the snapshot sees: is it in the indexes?  "page_hdr"
 * is what stands on the page.
 */
static void
check_row_in_indexes(CheckState *state, BlockNumber block, OffsetNumber off,
					 InplaceTupleHeader tuple, Size len,
					 const InplaceTupleHeaderData *page_hdr)
{
	/* versions of one transaction have different tags */
	bool		payload_counts = !(page_hdr->t_infomask & IP_STALE) &&
		tuple->t_xid == page_hdr->t_xid && tuple->t_tag == page_hdr->t_tag;
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

		fingerprint_begin(&buf, &tid);
		if (ic->has_keys)
		{
			FormIndexDatum(ic->info, state->slot, state->estate, values, isnull);
			for (k = 0; k < IndexRelationGetNumberOfKeyAttributes(ic->rel); k++)
				fingerprint_key(&buf,
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

/*
 * Step 4: find the suspects' entries again.
 */
static void
rescan_index(CheckState *state, void *arg)
{
	IndexCheck *ic = arg;
	IndexScanDesc scan;
	ItemPointer tid;

	scan = begin_index_scan(state->rel, ic->rel, state->snapshot, 0);
	index_rescan(scan, NULL, 0, NULL, 0);
	while ((tid = index_getnext_tid(scan, ForwardScanDirection)) != NULL)
	{
		BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
		OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(tid);

		CHECK_FOR_INTERRUPTS();

		if (hash_search(state->suspects, tid, HASH_FIND, NULL) != NULL &&
			item_unused(state, block, off))
			report_index(state, ic, block, off,
						 "index entry leads to an unused line pointer");
	}
	index_endscan(scan);
}

static void
add_suspect(CheckState *state, BlockNumber block, OffsetNumber off)
{
	ItemPointerData tid;

	if (hash_get_num_entries(state->suspects) >= MAX_SUSPECTS)
	{
		state->suspects_lost = true;
		return;
	}
	TidSet(&tid, block, off);
	(void) hash_search(state->suspects, &tid, HASH_ENTER, NULL);
}

static void
open_indexes(CheckState *state)
{
	List	   *oids = RelationGetIndexList(state->rel);
	ListCell   *lc;
	int			nfilters = 0;
	int			i;
	Oid			our_btree = get_am_oid("inplace_btree", true);

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
		ic->scannable = index->rd_indam->amgettuple != NULL &&
			index->rd_indam->amoptionalkey;
		ic->has_keys = index->rd_rel->relam == BTREE_AM_OID ||
			(OidIsValid(our_btree) && index->rd_rel->relam == our_btree);

		/*
		 * An index that was built past broken chains need not have what an
		 * old snapshot sees; ours is fresh, but the rule is the planner's.
		 */
		ic->check_rows = ic->scannable &&
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
		ic->filter = bloom_create(Max(elems, 1),
								  Max(maintenance_work_mem / nfilters, 1024),
								  (uint64) GetCurrentTimestamp());
		ic->predicate = ExecPrepareQual(ic->info->ii_Predicate, state->estate);
	}
}

/* ---------------- pages ---------------- */

static bool
check_page_header(CheckState *state, BlockNumber block, Page page)
{
	PageHeader	ph = (PageHeader) page;

	if (PageGetPageSize(page) != BLCKSZ ||
		PageGetPageLayoutVersion(page) != PG_PAGE_LAYOUT_VERSION)
	{
		report(state, block, InvalidOffsetNumber, NULL, "error",
			   psprintf("page says it has %zu bytes and version %d",
						PageGetPageSize(page),
						(int) PageGetPageLayoutVersion(page)));
		return false;
	}
	if (ph->pd_lower < SizeOfPageHeaderData || ph->pd_lower > ph->pd_upper ||
		ph->pd_upper > ph->pd_special || ph->pd_special != BLCKSZ ||
		(ph->pd_lower - SizeOfPageHeaderData) % sizeof(ItemIdData) != 0)
	{
		report(state, block, InvalidOffsetNumber, NULL, "error",
			   psprintf("page header is wrong: pd_lower %u, pd_upper %u, pd_special %u",
						ph->pd_lower, ph->pd_upper, ph->pd_special));
		return false;
	}
	if (PageGetMaxOffsetNumber(page) > InplaceMaxTuplesPerPage)
	{
		report(state, block, InvalidOffsetNumber, NULL, "error",
			   psprintf("page has %d line pointers",
						(int) PageGetMaxOffsetNumber(page)));
		return false;
	}
	return true;
}

/*
 * A line pointer by itself.  True if it has an item that can be looked at.
 */
static bool
check_line_pointer(CheckState *state, BlockNumber block, OffsetNumber off,
				   Page page)
{
	ItemId		lp = PageGetItemId(page, off);
	uint32		start = ItemIdGetOffset(lp);
	uint32		len = ItemIdGetLength(lp);
	bool	   *occupied = state->occupied;

	if (ItemIdIsRedirected(lp))
	{
		report(state, block, off, NULL, "error",
			   "line pointer is a redirection, which inplace tables do not have");
		return false;
	}
	if (!ItemIdIsNormal(lp))
	{
		if (len != 0)
			report(state, block, off, NULL, "error",
				   psprintf("line pointer without a row has %u bytes", len));
		return false;
	}
	if (start < ((PageHeader) page)->pd_upper || start + len > BLCKSZ)
	{
		report(state, block, off, NULL, "error",
			   psprintf("line pointer leads to bytes %u to %u, outside %u to %u",
						start, start + len, ((PageHeader) page)->pd_upper,
						BLCKSZ));
		return false;
	}
	if (len < SizeOfInplaceTupleHeader)
	{
		report(state, block, off, NULL, "error",
			   psprintf("item of %u bytes is shorter than a row header", len));
		return false;
	}
	if (memchr(occupied + start, true, len) != NULL)
	{
		report(state, block, off, NULL, "error",
			   psprintf("bytes %u to %u overlap another item", start,
						start + len));
		return false;
	}
	memset(occupied + start, true, len);
	return true;
}

static void
check_item(CheckState *state, BlockNumber block, OffsetNumber off, Page page,
		   uint8 vmbits)
{
	ItemId		lp = PageGetItemId(page, off);
	Size		itemlen = ItemIdGetLength(lp);
	InplaceTupleHeader tup = (InplaceTupleHeader) state->row.data;
	InplaceTupleHeaderData page_hdr;
	InplaceTupleHeader version;
	Size		version_len;
	const char *problem;
	bool		seen;
	Size		len;

	/* a private, aligned copy, whatever the flag says */
	memcpy(tup, PageGetItem(page, lp), itemlen);
	page_hdr = *tup;

	if ((tup->t_natts & IP_ALIGNED) &&
		ItemIdGetOffset(lp) != MAXALIGN(ItemIdGetOffset(lp)))
		report(state, block, off, NULL, "error",
			   psprintf("aligned row stands at byte %u", ItemIdGetOffset(lp)));

	/*
	 * What an aborted ALTER TABLE ... ADD COLUMN and its transaction left
	 * behind has columns that nobody knows.
	 */
	problem = check_xid(state, tup);
	if (problem == NULL && HdrNatts(tup) > state->desc->natts &&
		inplace_xid_status(tup, InvalidBuffer) == XID_ABORTED)
		return;
	if (problem == NULL)
		problem = InsightCheckRow(state->desc, tup, itemlen, &len);
	if (problem != NULL)
	{
		report(state, block, off, NULL, "error", problem);
		return;
	}

	InsightWalkBegin(&state->walk, state->rel, &state->limits, block, off,
					 tup, len);

	if (PageIsAllVisible(page))
	{
		if (page_hdr.t_infomask & IP_DELETED)
			report(state, block, off, NULL, "error",
				   "page is all-visible but the row is deleted");
		else if (state->walk.status != INSIGHT_XID_COMMITTED ||
				 !InsightVisible(&state->walk, state->snapshot))
			report(state, block, off, NULL, "error",
				   psprintf("page is all-visible but the row's transaction %u is not visible",
							page_hdr.t_xid));
		if (page_hdr.t_infomask & IP_STALE)
			report(state, block, off, NULL, "error",
				   "page is all-visible but the row may have stale index entries");
	}
	if (vmbits & VISIBILITYMAP_ALL_FROZEN)
	{
		/* VACUUM passes over the page and does not see what is on it */
		if (!(page_hdr.t_infomask & IP_FROZEN))
			report(state, block, off, NULL, "error",
				   "page is all-frozen but the row is not frozen");
		if (HdrIsLocked(&page_hdr))
			report(state, block, off, NULL, "error",
				   "page is all-frozen but the row has a locker");
	}

	if (!check_chain(state, block, off, &page_hdr, &version, &version_len,
					 &seen) || !seen)
		return;

	/* the version that the snapshot sees */
	{
		Datum	   *values = palloc(sizeof(Datum) * Max(state->desc->natts, 1));
		bool	   *isnull = palloc(sizeof(bool) * Max(state->desc->natts, 1));
		bool		ok = true;

		if (version->t_natts & IP_HASEXTERNAL)
		{
			InsightDeform(state->desc, version, values, isnull);
			check_toast(state, block, off, values, isnull, &ok);
		}
		if (ok && state->nindexes > 0)
			check_row_in_indexes(state, block, off, version, version_len,
								 &page_hdr);
	}
}

static void
check_block(CheckState *state, void *arg)
{
	BlockNumber block = *(BlockNumber *) arg;
	Page		page = (Page) state->copy.data;
	Buffer		buffer;
	Buffer		vmbuffer = InvalidBuffer;
	uint8		vmbits;
	OffsetNumber maxoff;
	OffsetNumber off;

	/* have the map page pinned before the lock is taken */
	(void) visibilitymap_get_status(state->rel, block, &vmbuffer);

	buffer = ReadBufferExtended(state->rel, MAIN_FORKNUM, block, RBM_NORMAL,
								state->strategy);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(page, BufferGetPage(buffer), BLCKSZ);
	vmbits = visibilitymap_get_status(state->rel, block, &vmbuffer);
	UnlockReleaseBuffer(buffer);
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);

	/* whatever is on the page has an id older than these */
	state->limits.next_xid = ReadNextTransactionId();
	state->limits.next_multi = ReadNextMultiXactId();

	if (PageIsNew(page))
	{
		if (vmbits != 0)
			report(state, block, InvalidOffsetNumber, NULL, "error",
				   "page is new but has visibility map bits");
		maxoff = 0;
	}
	else
	{
		if (!check_page_header(state, block, page))
			return;
		maxoff = PageGetMaxOffsetNumber(page);

		if ((vmbits & VISIBILITYMAP_ALL_FROZEN) &&
			!(vmbits & VISIBILITYMAP_ALL_VISIBLE))
			report(state, block, InvalidOffsetNumber, NULL, "error",
				   "visibility map has the page all-frozen but not all-visible");
		if ((vmbits & VISIBILITYMAP_ALL_VISIBLE) && !PageIsAllVisible(page))
			report(state, block, InvalidOffsetNumber, NULL, "error",
				   "visibility map has the page all-visible, the page says it is not");
	}

	memset(state->occupied, false, sizeof(state->occupied));
	for (off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);

		CHECK_FOR_INTERRUPTS();

		if (ItemIdIsDead(lp) && PageIsAllVisible(page))
			report(state, block, off, NULL, "error",
				   "page is all-visible but has a dead line pointer");
		if (!ItemIdIsUsed(lp) && entry_known(state, block, off))
			add_suspect(state, block, off);
		if (check_line_pointer(state, block, off, page))
			check_item(state, block, off, page, vmbits);
	}

	/* entries for line pointers past the last one */
	if (block < state->entries_blocks)
		for (; off <= InplaceMaxTuplesPerPage; off++)
			if (entry_known(state, block, off))
				add_suspect(state, block, off);
}

/* ---------------- the function ---------------- */

Datum
inplace_check(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	bool		check_indexes = PG_GETARG_BOOL(1);
	CheckState *state;
	Oid			save_userid;
	int			save_sec_context;
	int			save_nestlevel;
	HASHCTL		ctl;
	BlockNumber block;
	int			i;

	InplaceRequirePreload();
	InitMaterializedSRF(fcinfo, 0);

	state = palloc0(sizeof(CheckState));
	state->rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	state->rel = InsightOpenTable(relid, false);
	state->desc = RelationGetDescr(state->rel);
	state->strategy = GetAccessStrategy(BAS_BULKREAD);
	state->page_cxt = AllocSetContextCreate(CurrentMemoryContext,
											"inplace check page",
											ALLOCSET_DEFAULT_SIZES);
	if (OidIsValid(state->rel->rd_rel->reltoastrelid))
		state->toastrel = table_open(state->rel->rd_rel->reltoastrelid,
									 AccessShareLock);

	/* what index expressions call runs as the owner, as in an index build */
	GetUserIdAndSecContext(&save_userid, &save_sec_context);
	SetUserIdAndSecContext(state->rel->rd_rel->relowner,
						   save_sec_context | SECURITY_RESTRICTED_OPERATION);
	save_nestlevel = NewGUCNestLevel();
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);

	/* not the transaction's */
	UndoHoldSuspend();
	state->snapshot = RegisterSnapshot(GetLatestSnapshot());
	PushActiveSnapshot(state->snapshot);
	InsightLimitsInit(&state->limits, state->rel);

	ctl.keysize = sizeof(ItemPointerData);
	ctl.entrysize = sizeof(ItemPointerData);
	ctl.hcxt = CurrentMemoryContext;
	state->suspects = hash_create("inplace check suspects", 64, &ctl,
								  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);

	if (check_indexes)
	{
		state->estate = CreateExecutorState();
		state->econtext = GetPerTupleExprContext(state->estate);
		state->slot = MakeSingleTupleTableSlot(state->desc, &TTSOpsInplace);
		state->entries_blocks = RelationGetNumberOfBlocks(state->rel);
		state->entries =
			MemoryContextAllocExtended(CurrentMemoryContext,
									   Max((Size) state->entries_blocks * ENTRY_BYTES, 1),
									   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
		open_indexes(state);
		for (i = 0; i < state->nindexes; i++)
		{
			IndexCheck *ic = &state->indexes[i];

			if (ic->has_keys &&
				!call_guarded(state, check_btree, ic, -1, ic->rel))
				ic->scannable = ic->check_rows = false;
			/* half a filter would have rows missing that are not */
			if (ic->scannable &&
				!call_guarded(state, scan_index, ic, -1, ic->rel))
				ic->check_rows = false;
		}
	}

	/* after the index scans: what they saw of the table is in here */
	state->nblocks = RelationGetNumberOfBlocks(state->rel);
	for (block = 0; block < state->nblocks; block++)
	{
		MemoryContext oldcxt = MemoryContextSwitchTo(state->page_cxt);

		CHECK_FOR_INTERRUPTS();
		call_guarded(state, check_block, &block, block, NULL);
		MemoryContextSwitchTo(oldcxt);
		MemoryContextReset(state->page_cxt);
	}

	if (hash_get_num_entries(state->suspects) > 0)
	{
		for (i = 0; i < state->nindexes; i++)
			if (state->indexes[i].scannable)
				call_guarded(state, rescan_index, &state->indexes[i], -1,
							 state->indexes[i].rel);
		if (state->suspects_lost)
			report(state, -1, InvalidOffsetNumber, NULL, "warning",
				   psprintf("more than %d index entries may lead nowhere, the rest was not looked at",
							MAX_SUSPECTS));
	}

	for (i = 0; i < state->nindexes; i++)
	{
		if (state->indexes[i].filter != NULL)
			bloom_free(state->indexes[i].filter);
		index_close(state->indexes[i].rel, AccessShareLock);
	}
	if (state->slot != NULL)
		ExecDropSingleTupleTableSlot(state->slot);
	if (state->estate != NULL)
		FreeExecutorState(state->estate);

	PopActiveSnapshot();
	UnregisterSnapshot(state->snapshot);
	UndoHoldResume();
	AtEOXact_GUC(false, save_nestlevel);
	SetUserIdAndSecContext(save_userid, save_sec_context);

	FreeAccessStrategy(state->strategy);
	if (state->toastrel != NULL)
		table_close(state->toastrel, AccessShareLock);
	MemoryContextDelete(state->page_cxt);
	relation_close(state->rel, AccessShareLock);

	return (Datum) 0;
}

/*-------------------------------------------------------------------------
 *
 * ddl.c
 *	  Storage of a table: creating, truncating and moving it, and its size.
 *
 * The files are those of any relation: a main fork of standard pages, free
 * space map, visibility map, and the (empty) init fork of an unlogged table.
 * Undo is not in them, and refers to a row by its block, offset and the
 * table's relfilenumber; see inplace_copy_data.
 *
 * Large values live in a TOAST table, of heap or of ours (inplace_toast_am).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/heaptoast.h"
#include "access/table.h"
#include "catalog/pg_am.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_type_d.h"
#include "catalog/storage.h"
#include "catalog/storage_xlog.h"
#include "ddl/ddl.h"
#include "ddl/heap_readers.h"
#include "modify/chunk.h"
#include "page/page.h"
#include "page/tuple.h"
#include "row/restore.h"
#include "row/visibility.h"
#include "storage/smgr.h"
#include "utils/builtins.h"

/* setting inplace.toast_in_place */
bool		inplace_toast_in_place = true;

static void
inplace_set_new_filelocator(Relation rel, const RelFileLocator *newloc,
							char persistence, TransactionId *freezeXid,
							MultiXactId *minmulti)
{
	SMgrRelation srel;

	InplaceRequirePreload();

	/* no transaction older than these can leave anything in the table */
	*freezeXid = RecentXmin;
	*minmulti = GetOldestMultiXactId();

	srel = RelationCreateStorage(*newloc, persistence, true);

	if (persistence == RELPERSISTENCE_UNLOGGED)
	{
		smgrcreate(srel, INIT_FORKNUM, false);
		log_smgrcreate(newloc, INIT_FORKNUM);
	}

	smgrclose(srel);
}

static void
inplace_nontransactional_truncate(Relation rel)
{
	InplaceRequirePreload();
	RelationTruncate(rel, 0);
}

/*
 * Bring back every row whose newest version is an aborted change: the undo
 * that says how names the old relfilenumber, under which nobody would look
 * for the new file's rows.
 */
static void
restore_all(Relation rel)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	BlockNumber blk;

	for (blk = 0; blk < nblocks; blk++)
	{
		Buffer		buffer;
		Page		page;
		OffsetNumber off;
		OffsetNumber maxoff;
		bool		found = false;

		CHECK_FOR_INTERRUPTS();

		buffer = ReadBufferExtended(rel, MAIN_FORKNUM, blk, RBM_NORMAL,
									strategy);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		page = RowPage(rel, buffer);
		maxoff = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);
		if (maxoff > 0 && !PageIsAllVisible(page))
		{
			for (off = FirstOffsetNumber; off <= maxoff && !found; off++)
			{
				bool		all_visible;

				if (ItemIdIsNormal(PageGetItemId(page, off)) &&
					inplace_row_state(rel, PageGetTupleAt(page, off), buffer,
									  InvalidTransactionId, NULL,
									  &all_visible) == ROW_ABORTED_CHANGE)
					found = true;
			}
		}
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);

		if (found)
			inplace_restore_page(rel, buffer, true);
		ReleaseBuffer(buffer);
	}

	FreeAccessStrategy(strategy);
}

static void
inplace_copy_data(Relation rel, const RelFileLocator *newloc)
{
	char		persistence = rel->rd_rel->relpersistence;
	SMgrRelation dst;
	ForkNumber	fork;

	InplaceRequirePreload();

	restore_all(rel);

	/* the files are copied behind the back of shared buffers */
	FlushRelationBuffers(rel);

	dst = RelationCreateStorage(*newloc, persistence, true);
	for (fork = MAIN_FORKNUM; fork <= MAX_FORKNUM; fork++)
	{
		if (fork != MAIN_FORKNUM)
		{
			if (!smgrexists(RelationGetSmgr(rel), fork))
				continue;
			smgrcreate(dst, fork, false);
			if (RelationIsPermanent(rel) ||
				(persistence == RELPERSISTENCE_UNLOGGED && fork == INIT_FORKNUM))
				log_smgrcreate(newloc, fork);
		}
		RelationCopyStorage(RelationGetSmgr(rel), dst, fork, persistence);
	}

	RelationDropStorage(rel);
	smgrclose(dst);
}

/*
 * A TOAST table is needed if there is something to move out and the widest
 * possible row might not do without.  Rows are packed tighter than this counts
 * (as if each value were aligned), which is on the safe side.
 */
static bool
inplace_needs_toast_table(Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);
	int64		width = SizeOfInplaceTupleHeader + BITMAPLEN(desc->natts);
	bool		toastable = false;
	bool		unlimited = false;
	int			i;

	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped)
			continue;
#ifdef ATTRIBUTE_GENERATED_VIRTUAL
		if (att->attgenerated == ATTRIBUTE_GENERATED_VIRTUAL)
			continue;
#endif
		width = att_align_nominal(width, att->attalign);
		if (att->attlen > 0)
			width += att->attlen;
		else
		{
			int32		max = type_maximum_size(att->atttypid, att->atttypmod);

			if (max < 0)
				unlimited = true;
			else
				width += max;
			if (att->attstorage != TYPSTORAGE_PLAIN)
				toastable = true;
		}
	}

	return toastable && (unlimited || MAXALIGN(width) > TOAST_TUPLE_THRESHOLD);
}

/*
 * The access method of a TOAST table about to be made.  A rewrite that has values
 * keep their OID exchanges the files of two TOAST tables, and the server cannot do
 * that if they are of different methods: so the new one is of the old one's.
 */
static Oid
inplace_toast_am(Relation rel)
{
	Oid			am = inplace_toast_in_place ? rel->rd_rel->relam : HEAP_TABLE_AM_OID;

	/* after_upgrade.c */
	if (IsBinaryUpgrade)
		return rel->rd_rel->relam;
	if (OidIsValid(rel->rd_rel->relrewrite))
	{
		Relation	old = table_open(rel->rd_rel->relrewrite, AccessShareLock);

		if (RelationIsInplace(old) && OidIsValid(old->rd_rel->reltoastrelid))
		{
			Relation	toast = table_open(old->rd_rel->reltoastrelid,
										   AccessShareLock);

			am = toast->rd_rel->relam;
			table_close(toast, AccessShareLock);
		}
		table_close(old, AccessShareLock);
	}
	return am;
}

/*
 * Does the table have a column whose declared width says little of what it
 * takes, as trailing blanks are not stored?
 */
static bool
has_wide_bpchar(TupleDesc desc)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->atttypid == BPCHAROID && !att->attisdropped &&
			att->atttypmod > VARHDRSZ + 32)
			return true;
	}
	return false;
}

/*
 * The number of rows on the block.
 */
static int
rows_on_block(Relation rel, BlockNumber blk)
{
	Buffer		buffer = ReadBuffer(rel, blk);
	Page		page;
	int			nrows = 0;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = RowPage(rel, buffer);
	if (!PageIsNew(page))
	{
		OffsetNumber maxoff = PageGetMaxOffsetNumber(page);

		inplace_check_page(rel, page, blk);
		for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
			if (ItemIdIsNormal(PageGetItemId(page, off)))
				nrows++;
	}
	UnlockReleaseBuffer(buffer);
	return nrows;
}

static void
inplace_estimate_size(Relation rel, int32 *attr_widths, BlockNumber *pages,
					  double *tuples, double *allvisfrac)
{
	Size		overhead = SizeOfInplaceTupleHeader + sizeof(ItemIdData);
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);

	/*
	 * A table that was never vacuumed or analyzed counts as ten pages if it
	 * is smaller.  That is a guess at what it will become, not a measure of
	 * what is in it; rows as long as heap's make it the same guess, so that
	 * new tables get the plans that they get with heap.
	 */
	if (rel->rd_rel->reltuples < 0 && nblocks < 10)
		overhead = MAXALIGN(SizeofHeapTupleHeader) + sizeof(ItemIdData);

	table_block_relation_estimate_size(rel, attr_widths, pages, tuples,
									   allvisfrac, overhead,
									   BLCKSZ - SizeOfPageHeaderData);

	/* without statistics widths are those declared: better look at a page */
	if (rel->rd_rel->reltuples < 0 && nblocks >= 10 && inplace_preloaded &&
		has_wide_bpchar(RelationGetDescr(rel)))
		*tuples = Max(*tuples,
					  (double) nblocks * rows_on_block(rel, nblocks / 2));
}

void
inplace_init_ddl_methods(TableAmRoutine *am)
{
	am->relation_set_new_filelocator = inplace_set_new_filelocator;
	am->relation_nontransactional_truncate = inplace_nontransactional_truncate;
	am->relation_copy_data = inplace_copy_data;
	am->relation_size = inplace_relation_size;
	am->relation_needs_toast_table = inplace_needs_toast_table;
	am->relation_toast_am = inplace_toast_am;
	am->relation_fetch_toast_slice = inplace_fetch_toast_slice;
	am->relation_estimate_size = inplace_estimate_size;
}

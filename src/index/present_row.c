/*-------------------------------------------------------------------------
 *
 * present_row.c
 *	  The rows whose stale entries VACUUM takes out of indexes of other methods
 *	  than inplace_btree, as they are at present.
 *
 * VACUUM has noted rows whose one needed version is on the page, and set
 * IP_UNCHANGED on them (vacuum/stale.c).  As long as a row has that, what stands on
 * its page is that version.  An update takes it away before it makes entries.  So a
 * backend that has an index page locked, and finds the row unchanged, may delete
 * the row's entries on that page that are not of this version: those of a
 * later one are not there yet.
 *
 * Standbys.  The records of these methods say nothing of snapshots that need what they
 * delete.  So before the first deletion there is a record that does: it
 * conflicts with all that do not see each of the noted versions.
 *
 * Lock order: an index page may be locked; table pages are share-locked, one at a
 * time.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/transam.h"
#include "index/present_row.h"
#include "miscadmin.h"
#include "page/page.h"
#include "wal/log_vacuum.h"

/* the row on a locked page, or NULL if it has been changed since it was noted */
static InplaceTupleHeader
noted_row(Page page, OffsetNumber off)
{
	InplaceTupleHeader tup;

	if (off < FirstOffsetNumber || off > PageGetMaxOffsetNumber(page) ||
		!ItemIdIsNormal(PageGetItemId(page, off)))
		return NULL;
	tup = PageGetTupleAt(page, off);
	if (!(tup->t_infomask & IP_STALE) || !(tup->t_natts & IP_UNCHANGED) ||
		HdrIsSwept(tup))
		return NULL;
	return tup;
}

/* of a locked page, or of a copy; NULL if the row has been changed */
InplaceTupleHeader
inplace_copy_noted_row_of(Page page, OffsetNumber off)
{
	InplaceTupleHeader tup = noted_row(page, off);
	InplaceTupleHeader copy;
	Size		len;

	if (tup == NULL)
		return NULL;
	len = ItemIdGetLength(PageGetItemId(page, off));
	copy = palloc(len);
	memcpy(copy, tup, len);
	return copy;
}

InplaceTupleHeader
inplace_copy_noted_row(Relation table, ItemPointer tid)
{
	Buffer		buffer = ReadBuffer(table, ItemPointerGetBlockNumberNoCheck(tid));
	InplaceTupleHeader copy;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	copy = inplace_copy_noted_row_of(RowPage(table, buffer),
									 ItemPointerGetOffsetNumberNoCheck(tid));
	UnlockReleaseBuffer(buffer);
	return copy;
}

/* a page whose rows are wanted one after the other */
void
inplace_copy_noted_page(Relation table, BlockNumber blk, PGAlignedBlock *copy)
{
	Buffer		buffer = ReadBuffer(table, blk);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(copy->data, RowPage(table, buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
}

bool
inplace_noted_row_unchanged(Relation table, ItemPointer tid)
{
	Buffer		buffer = ReadBuffer(table, ItemPointerGetBlockNumberNoCheck(tid));
	bool		result;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	result = noted_row(RowPage(table, buffer),
					   ItemPointerGetOffsetNumberNoCheck(tid)) != NULL;
	UnlockReleaseBuffer(buffer);
	return result;
}

/*
 * Entries of the rows are about to be deleted.  The record is that of a sweep which marks
 * no row.
 */
void
inplace_tell_standbys(Relation table, StaleRows *rows)
{
	Buffer		buffer;

	if (rows->told_standbys)
		return;
	rows->told_standbys = true;
	if (!RelationNeedsWAL(table) || !TransactionIdIsValid(rows->newest))
		return;
	buffer = ReadBuffer(table, rows->blocks[0].blk);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	START_CRIT_SECTION();
	MarkBufferDirty(buffer);
	inplace_log_swept(table, buffer, rows->newest, InvalidTransactionId,
					  NULL, 0, NULL, 0);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}

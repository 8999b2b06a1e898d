/*-------------------------------------------------------------------------
 *
 * log_gin.c
 *	  Leaf pages of a GIN index's entry tree: one more TID in a posting list, and a page from
 *	  which VACUUM has deleted.
 *
 * GIN's own record of an insertion has the whole entry, with all TIDs of the key.  That of a
 * single TID here says where it goes, and replay makes the same entry of the one on the page.
 * It is an XLOG_IP_VACUUM with XLIP_MERGE and XLIP_GIN_ADD (wal.h), since there is no other
 * number left for records of indexes.
 *
 * The record of a deletion is GIN's own, an image of the page, so replay is, too.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/gin_private.h"
#include "access/ginxlog.h"
#include "access/xloginsert.h"
#include "page/protect.h"
#include "rmgr.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "wal/log_gin.h"
#include "wal/wal.h"

/*
 * An entry with a posting list, and one more TID in it.  NULL if it has that already (*there),
 * or if it would be too large for a list, or is not as this version of GIN makes them.
 */
IndexTuple
inplace_gin_entry_with(IndexTuple itup, const ItemPointerData *tid, bool *there)
{
	ItemPointerData added = *tid;
	Size		off = GinGetPostingOffset(itup);
	int			n = GinGetNPosting(itup);
	int			decoded = 0;
	int			nmerged = 0;
	int			nwritten = 0;
	ItemPointer items = NULL;
	ItemPointer merged;
	GinPostingList *list = NULL;
	IndexTuple	result = NULL;

	*there = false;
	if (GinIsPostingTree(itup) || !GinItupIsCompressed(itup))
		return NULL;
	if (n > 0)
		items = ginPostingListDecode((GinPostingList *) GinGetPosting(itup), &decoded);
	else
		items = palloc(sizeof(ItemPointerData));
	if (decoded == n)
	{
		merged = ginMergeItemPointers(&added, 1, items, n, &nmerged);
		*there = nmerged == n;
		if (!*there)
			list = ginCompressPostingList(merged, nmerged, GinMaxItemSize, &nwritten);
		pfree(merged);
	}
	pfree(items);
	if (list == NULL)
		return NULL;

	if (nwritten == nmerged &&
		MAXALIGN(off + SizeOfGinPostingList(list)) <= GinMaxItemSize)
	{
		Size		size = MAXALIGN(off + SizeOfGinPostingList(list));

		result = palloc0(size);
		memcpy(result, itup, off);
		memcpy((char *) result + off, list, SizeOfGinPostingList(list));
		GinSetNPosting(result, nmerged);
		result->t_info = (result->t_info & ~INDEX_SIZE_MASK) | size;
	}
	pfree(list);
	return result;
}

/* in a critical section */
void
inplace_log_gin_add(Relation index, Buffer buffer, OffsetNumber off,
					const ItemPointerData *tid)
{
	xl_ip_gin_add xlrec;
	XLogRecPtr	lsn;

	if (!RelationNeedsWAL(index))
		return;
	xlrec.what = XLIP_MERGE | XLIP_GIN_ADD;
	xlrec.off = off;
	xlrec.tid = *tid;
	XLogBeginInsert();
	XLogRegisterData((char *) &xlrec, SizeOfIpGinAdd);
	XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
	lsn = inplace_xlog_insert(XLOG_IP_VACUUM);
	PageSetLSN(BufferGetPage(buffer), lsn);
}

/* in a critical section */
void
inplace_log_gin_entries(Relation index, Buffer buffer)
{
	XLogRecPtr	lsn;

	if (!RelationNeedsWAL(index))
		return;
	XLogBeginInsert();
	XLogRegisterBuffer(0, buffer, REGBUF_FORCE_IMAGE | REGBUF_STANDARD);
	lsn = XLogInsert(RM_GIN_ID, XLOG_GIN_VACUUM_PAGE);
	PageSetLSN(BufferGetPage(buffer), lsn);
}

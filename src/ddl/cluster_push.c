/*-------------------------------------------------------------------------
 *
 * cluster_push.c
 *	  Putting a row's later versions on top of its first one, in a table that is
 *	  being rewritten (cluster.c), which nobody else can read yet.
 *
 * Lock order: the data page, then the undo page.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "ddl/cluster_push.h"
#include "page/compare.h"
#include "page/delta.h"
#include "page/page.h"
#include "page/tuple.h"
#include "undo/append.h"
#include "undo/record.h"
#include "undo/undo.h"
#include "wal/log.h"


/*
 * The payload of the undo record that leads from the newer version to "tup".  Returns
 * its length.  "replaced" if versions in between have been dropped.
 */
static Size
make_payload(Relation rel, ItemPointer tid, InplaceTupleHeader tup, Size tuplen,
			 InplaceTupleHeader newer, Size len,
			 const ItemPointerData *moved_to, const UndoReplaced *replaced,
			 char *payload)
{
	char	   *p = payload;

	if ((newer->t_infomask & IP_DELETED) == 0)
	{
		RowDiff    *diff = palloc(sizeof(RowDiff));

		if (!inplace_diff_rows(RelationGetDescr(rel), tup, tuplen, newer, len,
							   diff))
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("versions of row (%u,%u) of relation \"%s\" do not fit each other",
							ItemPointerGetBlockNumber(tid),
							ItemPointerGetOffsetNumber(tid),
							RelationGetRelationName(rel))));
		if (replaced)
		{
			memcpy(p, replaced, sizeof(UndoReplaced));
			p += sizeof(UndoReplaced);
		}
		p += delta_encode(&diff->edits, true,
						  (char *) tup + SizeOfInplaceTupleHeader,
						  (char *) newer + SizeOfInplaceTupleHeader, p);
		pfree(diff);
	}
	else if (moved_to)
	{
		BlockNumber newblk = ItemPointerGetBlockNumber(moved_to);
		OffsetNumber newoff = ItemPointerGetOffsetNumber(moved_to);

		memcpy(p, &newblk, sizeof(newblk));
		p += sizeof(newblk);
		memcpy(p, &newoff, sizeof(newoff));
		p += sizeof(newoff);
	}
	return p - payload;
}

/*
 * For rewrites (cluster.c), which hold AccessExclusiveLock: put a newer
 * version on top of a row just written.  The undo record is that of the
 * version's own transaction, whose end is long known.  "replaced" tells which
 * transaction replaced the older version.  That is not the newer version's own if versions
 * in between have been dropped (row/squeeze.c).
 */
void
inplace_push_version_raw(Relation rel, ItemPointer tid,
						 InplaceTupleHeader newer, Size len,
						 const ItemPointerData *moved_to,
						 const UndoReplaced *replaced)
{
	BlockNumber blk = ItemPointerGetBlockNumber(tid);
	OffsetNumber off = ItemPointerGetOffsetNumber(tid);
	Buffer		buffer = ReadBuffer(rel, blk);
	Page		page;
	ItemId		lp;
	InplaceTupleHeader tup;
	char	   *undo = palloc(UNDO_MAX_RECORD + BLCKSZ);
	char	   *payload = palloc(2 * BLCKSZ);
	Size		payload_len;
	Size		undo_len;
	bool		is_delete = (newer->t_infomask & IP_DELETED) != 0;
	bool		squeezed = !is_delete && replaced->xid != newer->t_xid;
	UndoRoom	room;
	UndoInsert	ui;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	page = RowPage(rel, buffer);
	lp = PageGetItemId(page, off);
	tup = (InplaceTupleHeader) PageGetItem(page, lp);

	payload_len = make_payload(rel, tid, tup,
							   inplace_tuple_len(tup, ItemIdGetLength(lp)),
							   newer, len, moved_to, squeezed ? replaced : NULL,
							   payload);
	if (SizeOfUndoRecordHeader + SizeOfInplaceTupleHeader + payload_len >
		UNDO_MAX_RECORD)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("undo record of row (%u,%u) of relation \"%s\" is too large",
						blk, off, RelationGetRelationName(rel))));
	if (!inplace_page_can_grow(page, off, newer, len))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("no room for a version of row (%u,%u) of relation \"%s\"",
						blk, off, RelationGetRelationName(rel))));

	undo_len = UndoBuild(undo,
						 !is_delete ? UNDO_UPDATE :
						 moved_to ? UNDO_MOVE : UNDO_DELETE,
						 newer->t_xid, 0, LocatorSpc(RelLocator(rel)),
						 LocatorRel(RelLocator(rel)), blk, off, tup, newer,
						 false, payload, payload_len);
	if (squeezed)
		((UndoRecordHeader *) undo)->ur_flags |= UR_SQUEEZED;
	room = UndoRoomFor(1, undo_len);
	while (!UndoHasRoom(rel, &room))
	{
		/* nobody else comes to the page */
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		UndoReserve(rel, &room);
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	}
	UndoPrepare(rel, &room, undo_len, newer->t_xid, &ui);
	HdrSetUndoPtr(newer, ui.ptr);

	START_CRIT_SECTION();
	if (!inplace_page_replace(page, off, newer, len, true))
		elog(PANIC, "failed to push row version");
	if (is_delete)
		PageSetPrunable(page, newer->t_xid);
	MarkBufferDirty(buffer);
	UndoAppend(&ui, undo, undo_len);
	inplace_log_push(rel, buffer, off, newer, len, &ui, undo, undo_len);
	END_CRIT_SECTION();

	UndoRelease(&ui);
	UnlockReleaseBuffer(buffer);
	pfree(undo);
	pfree(payload);
}

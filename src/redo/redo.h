/*-------------------------------------------------------------------------
 *
 * redo.h
 *	  What the files that replay records share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_REDO_H
#define INPLACE_REDO_H

#include "inplace.h"

#include "access/xlogutils.h"
#include "page/page.h"
#include "page/tuple.h"
#include "wal/log.h"

static inline BlockNumber
block_location(XLogReaderState *record, uint8 block_id, RelFileLocator *loc)
{
	BlockNumber blk;

	XLogRecGetBlockTag(record, block_id, loc, NULL, &blk);
	return blk;
}

/* XLIP_CLEAR_VISIBLE and the like */
static inline uint8
visible_flags(XLogReaderState *record)
{
	return XLogRecGetDataLen(record) > 0 ? *(uint8 *) XLogRecGetData(record) : 0;
}

INPLACE_NORETURN extern void inplace_bad_record(XLogReaderState *record,
												const char *what);

static inline void
inplace_redo_check_page(XLogReaderState *record, Page page)
{
	if (!RowPageIsMarked(page) && !inplace_page_is_blank(page))
		inplace_bad_record(record, "page is not one of an inplace table");
}

/* XLogReadBufferForRedo() of a data page: is there something to do? */
static inline bool
inplace_redo_row_page(XLogReaderState *record, uint8 block_id, Buffer *buffer)
{
	if (XLogReadBufferForRedo(record, block_id, buffer) != BLK_NEEDS_REDO)
		return false;
	inplace_redo_check_page(record, BufferGetPage(*buffer));
	return true;
}

static inline void
finish_page(XLogReaderState *record, Buffer buffer)
{
	PageSetLSN(BufferGetPage(buffer), record->EndRecPtr);
	MarkBufferDirty(buffer);
}

/* redo.c: visibility map bits, whether or not the page needs redo */
extern void inplace_redo_clear_visible(XLogReaderState *record, uint8 block_id,
									   uint8 bits);
extern bool inplace_redo_data_page(XLogReaderState *record, uint8 block_id,
								   Buffer *buffer);
extern void inplace_redo_undo(XLogReaderState *record, uint8 block_id);
extern void inplace_redo_add_item(XLogReaderState *record, Page page,
								  OffsetNumber off, InplaceTupleHeader tup,
								  Size len);
extern void inplace_redo_after_insert(XLogReaderState *record, uint8 block_id,
									  Size freespace);
extern InplaceTupleHeader inplace_redo_item(XLogReaderState *record, Page page,
											OffsetNumber off);
extern void inplace_redo_apply_update(XLogReaderState *record, Page page,
									  OffsetNumber off,
									  const InplaceTupleHeaderData *hdr,
									  const char *delta, Size delta_len);
extern void inplace_redo_cut_conflict(TransactionId old_xid,
									  RelFileLocator loc);
extern void inplace_redo_undo_put(XLogReaderState *record, uint8 block_id,
								  uint16 offset, const char *rec, Size len);

/* redo_compact.c */
extern const char *inplace_wal_get_undo_place(XLogReaderState *record,
											  const char *p, const char *end,
											  UndoPlace *place);
extern void inplace_redo_undo_place(XLogReaderState *record,
									const UndoPlace *place,
									const char *rec /* or NULL: none */ ,
									Size len);
extern void inplace_redo_undo_to_disk(const UndoPlace *place);
extern void inplace_redo_report_torn(void);
extern void inplace_redo_update_compact(XLogReaderState *record,
										const char *data, Size len);
extern void inplace_redo_delete_compact(XLogReaderState *record,
										const char *data, Size len);
extern void inplace_redo_delete_bare(XLogReaderState *record,
									 const char *data, Size len);

/* redo_update.c */
extern void inplace_redo_update_from_page(XLogReaderState *record,
										  const char *data, Size len,
										  bool clear_visible);

/* redo_evict.c */
extern void inplace_redo_evict(XLogReaderState *record, const char *data,
							   Size len);

/* redo_move.c */
extern void inplace_redo_move(XLogReaderState *record);

/* redo_vacuum.c: redo of the records that VACUUM and pruning write */
extern void inplace_redo_prune(XLogReaderState *record);
extern void inplace_redo_vacuum(XLogReaderState *record);
extern void inplace_redo_freeze(XLogReaderState *record);
extern void inplace_redo_visible(XLogReaderState *record);
extern void inplace_redo_discard(XLogReaderState *record);

/* ... a recovery conflict with snapshots that do not see horizon */
extern void inplace_redo_conflict(TransactionId horizon, RelFileLocator loc);

/* redo_btree.c */
extern void inplace_redo_merge(XLogReaderState *record);
extern void inplace_redo_relocate(XLogReaderState *record);

/* redo_gin.c */
extern void inplace_redo_gin_add(XLogReaderState *record);

/* the resource manager: redo.c, desc.c, decode.c */
extern void InplaceRmgrRegister(void);
extern void inplace_redo(XLogReaderState *record);
extern void inplace_desc(StringInfo buf, XLogReaderState *record);
extern const char *inplace_identify(uint8 info);
extern void inplace_mask(char *pagedata, BlockNumber blkno);

struct LogicalDecodingContext;
struct XLogRecordBuffer;
extern void inplace_decode(struct LogicalDecodingContext *ctx,
						   struct XLogRecordBuffer *buf);

#endif							/* INPLACE_REDO_H */

/*-------------------------------------------------------------------------
 *
 * decode.c
 *	  Logical decoding of row changes.
 *
 * The records of changes carry what a decoder needs in their main data, see
 * logical.c, if the table was logically logged when they were written; those
 * without (rewrites, for instance) say nothing that is to be decoded.  An
 * update is one change whether or not it moved the row.  Chunks of large
 * values have come before, through heap's decoder, or in records of their own if
 * the TOAST table is an inplace table: then all of the value's, whatever was changed of
 * them.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/heapam_xlog.h"
#include "redo/redo.h"
#include "replication/decode.h"
#include "replication/logical.h"
#include "replication/reorderbuffer.h"
#include "replication/snapbuild.h"
#include "rmgr.h"
#include "wal/wal.h"

/*
 * Take a heap tuple from p; moves p behind it.
 */
static DecodedTuple
take_tuple(LogicalDecodingContext *ctx, XLogReaderState *record,
		   const char **p, const char *end)
{
	DecodedTuple buf;
	HeapTuple	tuple;
	xl_heap_header hdr;
	uint32		len;
	Size		rest;

	if (end - *p < (ptrdiff_t) (sizeof(len) + SizeOfHeapHeader))
		goto damaged;
	memcpy(&len, *p, sizeof(len));
	*p += sizeof(len);
	if (len < SizeOfHeapHeader || len > (Size) (end - *p))
		goto damaged;
	memcpy(&hdr, *p, SizeOfHeapHeader);
	rest = len - SizeOfHeapHeader;

	buf = AllocDecodedTuple(ctx->reorder, rest);
	tuple = DecodedHeapTuple(buf);
	ItemPointerSetInvalid(&tuple->t_self);
	tuple->t_tableOid = InvalidOid;
	tuple->t_len = SizeofHeapTupleHeader + rest;
	memset(tuple->t_data, 0, SizeofHeapTupleHeader);
	memcpy((char *) tuple->t_data + SizeofHeapTupleHeader,
		   *p + SizeOfHeapHeader, rest);
	tuple->t_data->t_infomask = hdr.t_infomask;
	tuple->t_data->t_infomask2 = hdr.t_infomask2;
	tuple->t_data->t_hoff = hdr.t_hoff;
	*p += len;
	return buf;

damaged:
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("inplace WAL record at %X/%X has a damaged row for logical decoding",
					LSN_FORMAT_ARGS(record->ReadRecPtr))));
	return NULL;				/* keep compiler quiet */
}

static ReorderBufferChange *
new_change(LogicalDecodingContext *ctx, XLogReaderState *record,
		   const RelFileLocator *loc, enum ReorderBufferChangeType action)
{
	ReorderBufferChange *change = AllocDecodedChange(ctx->reorder);

	change->action = action;
	change->origin_id = XLogRecGetOrigin(record);
	ChangeLocator(change) = *loc;
	change->data.tp.clear_toast_afterwards = true;
	return change;
}

static void
queue(LogicalDecodingContext *ctx, XLogRecordBuffer *buf,
	  ReorderBufferChange *change)
{
	ReorderBufferQueueChange(ctx->reorder, XLogRecGetXid(buf->record),
							 buf->origptr, change, false);
}

/* does nobody want changes of this table from this origin? */
static bool
filtered(LogicalDecodingContext *ctx, XLogReaderState *record,
		 const RelFileLocator *loc)
{
	if (LocatorDb(*loc) != ctx->slot->data.database)
		return true;
	return ctx->callbacks.filter_by_origin_cb != NULL &&
		filter_by_origin_cb_wrapper(ctx, XLogRecGetOrigin(record));
}

static void
decode_row_change(LogicalDecodingContext *ctx, XLogRecordBuffer *buf, uint8 info)
{
	XLogReaderState *record = buf->record;
	const char *p = XLogRecGetData(record);
	const char *end = p + XLogRecGetDataLen(record);
	ReorderBufferChange *change;
	RelFileLocator loc;
	uint8		what;

	if (end - p < 2 || !(*(const uint8 *) p & XLIP_LOGICAL))
		return;
	what = *(const uint8 *) (p + 1);
	p += 2;
	XLogRecGetBlockTag(record, 0, &loc, NULL, NULL);
	if (filtered(ctx, record, &loc))
		return;

	if (info == XLOG_IP_INSERT || info == XLOG_IP_MULTI_INSERT)
	{
		while (p < end)
		{
			change = new_change(ctx, record, &loc,
								(what & XLIP_LOGICAL_SPECULATIVE) ?
								REORDER_BUFFER_CHANGE_INTERNAL_SPEC_INSERT :
								REORDER_BUFFER_CHANGE_INSERT);
			change->data.tp.newtuple = take_tuple(ctx, record, &p, end);

			/* the chunks of all rows of a multi-insert come before the first */
			change->data.tp.clear_toast_afterwards =
				p >= end && !(what & XLIP_LOGICAL_MORE);
			queue(ctx, buf, change);
		}
		return;
	}

	change = new_change(ctx, record, &loc,
						info == XLOG_IP_DELETE ? REORDER_BUFFER_CHANGE_DELETE :
						REORDER_BUFFER_CHANGE_UPDATE);
	if (what & XLIP_LOGICAL_NEW)
		change->data.tp.newtuple = take_tuple(ctx, record, &p, end);
	if (what & (XLIP_LOGICAL_OLD | XLIP_LOGICAL_KEY))
		change->data.tp.oldtuple = take_tuple(ctx, record, &p, end);
	queue(ctx, buf, change);
}

/*
 * The chunks of a value: insertions into its TOAST table, as heap's are.
 */
static void
decode_chunks(LogicalDecodingContext *ctx, XLogRecordBuffer *buf,
			  const RelFileLocator *loc)
{
	XLogReaderState *record = buf->record;
	const char *p = XLogRecGetData(record) + SizeOfIpLogical;
	const char *end = XLogRecGetData(record) + XLogRecGetDataLen(record);

	while (p < end)
	{
		ReorderBufferChange *change = new_change(ctx, record, loc,
												 REORDER_BUFFER_CHANGE_INSERT);

		change->data.tp.newtuple = take_tuple(ctx, record, &p, end);
		ReorderBufferQueueChange(ctx->reorder, XLogRecGetXid(record),
								 buf->origptr, change, true);
	}
}

static void
decode_logical(LogicalDecodingContext *ctx, XLogRecordBuffer *buf)
{
	xl_ip_logical rec;

	memcpy(&rec, XLogRecGetData(buf->record), SizeOfIpLogical);
	if (filtered(ctx, buf->record, &rec.locator))
		return;
	if (rec.what > XLIP_VALUE_CHUNKS)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("inplace WAL record at %X/%X is of an unknown kind for logical decoding",
						LSN_FORMAT_ARGS(buf->record->ReadRecPtr))));
	if (rec.what == XLIP_VALUE_CHUNKS)
		decode_chunks(ctx, buf, &rec.locator);
	else
		queue(ctx, buf,
			  new_change(ctx, buf->record, &rec.locator,
						 rec.what == XLIP_SPECULATION_CONFIRMED ?
						 REORDER_BUFFER_CHANGE_INTERNAL_SPEC_CONFIRM :
						 REORDER_BUFFER_CHANGE_INTERNAL_SPEC_ABORT));
}

void
inplace_decode(struct LogicalDecodingContext *ctx, struct XLogRecordBuffer *buf)
{
	uint8		info = XLogRecGetInfo(buf->record) & ~XLR_INFO_MASK;
	TransactionId xid = XLogRecGetXid(buf->record);

	ReorderBufferProcessXid(ctx->reorder, xid, buf->origptr);

	/* no snapshot to decode with yet */
	if (SnapBuildCurrentState(ctx->snapshot_builder) < SNAPBUILD_FULL_SNAPSHOT)
		return;

	switch (info)
	{
		case XLOG_IP_INSERT:
		case XLOG_IP_MULTI_INSERT:
		case XLOG_IP_UPDATE:
		case XLOG_IP_DELETE:
		case XLOG_IP_MOVE:
			if (SnapBuildProcessChange(ctx->snapshot_builder, xid, buf->origptr) &&
				!ctx->fast_forward)
				decode_row_change(ctx, buf, info);
			break;
		case XLOG_IP_LOGICAL:
			if (SnapBuildProcessChange(ctx->snapshot_builder, xid, buf->origptr) &&
				!ctx->fast_forward)
				decode_logical(ctx, buf);
			break;
		default:
			/* locks, undo, vacuuming: nothing that changes what a table says */
			break;
	}
}

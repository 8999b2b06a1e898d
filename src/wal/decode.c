/*-------------------------------------------------------------------------
 *
 * decode.c
 *	  Logical decoding: not there yet.
 *
 * The records of row changes do not carry what a decoder needs.  To pass over
 * them would be to lose changes without a word, so a slot whose database has
 * changes of inplace tables stops with an error at the first of them.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "replication/decode.h"
#include "replication/logical.h"
#include "replication/reorderbuffer.h"
#include "replication/snapbuild.h"
#include "wal/wal.h"

void
inplace_decode(struct LogicalDecodingContext *ctx, struct XLogRecordBuffer *buf)
{
	RelFileLocator loc;

	ReorderBufferProcessXid(ctx->reorder, XLogRecGetXid(buf->record),
							buf->origptr);

	if (SnapBuildCurrentState(ctx->snapshot_builder) < SNAPBUILD_FULL_SNAPSHOT ||
		ctx->fast_forward)
		return;

	switch (XLogRecGetInfo(buf->record) & ~XLR_INFO_MASK)
	{
		case XLOG_IP_INSERT:
		case XLOG_IP_MULTI_INSERT:
		case XLOG_IP_UPDATE:
		case XLOG_IP_DELETE:
		case XLOG_IP_MOVE:
			break;
		default:
			/* nothing that changes what a table says */
			return;
	}

	XLogRecGetBlockTag(buf->record, 0, &loc, NULL, NULL);
	if (LocatorDb(loc) != ctx->slot->data.database)
		return;

	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("logical decoding of inplace tables is not supported"),
			 errdetail("Slot \"%s\" has come to a change of relation %u at %X/%X.",
					   NameStr(ctx->slot->data.name), LocatorRel(loc),
					   LSN_FORMAT_ARGS(buf->origptr)),
			 errhint("In a database that is decoded, keep tables on the heap access method.")));
}

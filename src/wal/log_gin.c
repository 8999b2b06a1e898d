/*-------------------------------------------------------------------------
 *
 * log_gin.c
 *	  A leaf page of a GIN index's entry tree from which VACUUM has deleted.
 *
 * The record is GIN's own, an image of the page, so replay is, too.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/ginxlog.h"
#include "access/xloginsert.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "wal/log_gin.h"

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

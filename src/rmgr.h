/*-------------------------------------------------------------------------
 *
 * rmgr.h
 *	  The resource manager, and the kinds of its records.  What is in them is in
 *	  wal/wal.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_RMGR_H
#define INPLACE_RMGR_H

#include "inplace.h"

/* custom resource manager IDs are 128 to 255 */
#define RM_INPLACE_ID			177
#define RM_INPLACE_NAME			"inplace"

#define XLOG_IP_INSERT			0x00
#define XLOG_IP_MULTI_INSERT	0x10
#define XLOG_IP_UPDATE			0x20	/* in place */
#define XLOG_IP_DELETE			0x30
#define XLOG_IP_MOVE			0x40	/* update to a new TID */
#define XLOG_IP_LOCK			0x50
#define XLOG_IP_RESTORE			0x60	/* rollback of one row, on its page */
#define XLOG_IP_PRUNE			0x70
#define XLOG_IP_VACUUM			0x80	/* LP_DEAD to LP_UNUSED; or pages of
										 * an index merged */
#define XLOG_IP_FREEZE			0x90
#define XLOG_IP_VISIBLE			0xA0
#define XLOG_IP_UNDO_DISCARD	0xB0
#define XLOG_IP_HEADER			0xC0	/* a row's header set, nothing else */
#define XLOG_IP_PUSH			0xD0	/* raw version pushed by a rewrite */
#define XLOG_IP_UNDO			0xE0	/* undo alone, of a table without WAL
										 * or to refer to its page (log.c);
										 * block 0 is the undo page */
#define XLOG_IP_LOGICAL			0xF0	/* for logical decoding only */

#endif							/* INPLACE_RMGR_H */

/*-------------------------------------------------------------------------
 *
 * undo_log.h
 *	  Records about the files of undo; see undo_log.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_UNDO_LOG_H
#define INPLACE_UNDO_LOG_H

#include "inplace.h"

/*
 * XLOG_IP_UNDO_DISCARD.  No block.
 */
typedef struct xl_ip_undo_discard
{
	Oid			dboid;
	TransactionId horizon;		/* newest xid whose undo is given back */
} xl_ip_undo_discard;

extern void inplace_log_discard(Oid dboid, TransactionId horizon);
extern void inplace_log_undo_cut(RelFileLocator locator, BlockNumber start,
								 BlockNumber end);

#endif							/* INPLACE_UNDO_LOG_H */

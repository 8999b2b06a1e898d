/*-------------------------------------------------------------------------
 *
 * protect.h
 *	  Inserting records, and hints; see protect.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_PROTECT_H
#define INPLACE_PROTECT_H

#include "inplace.h"

#include "access/xlogdefs.h"

extern Size WalProtectShmemSize(void);
extern void WalProtectShmemInit(void);
extern XLogRecPtr inplace_xlog_insert(uint8 info);
extern bool inplace_pages_protected(void);
extern void inplace_mark_hint(Buffer buffer);
extern void inplace_redo_cleanup(void);

#endif							/* INPLACE_PROTECT_H */

/*-------------------------------------------------------------------------
 *
 * temp.h
 *	  The undo of temporary tables; see temp.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_TEMP_H
#define INPLACE_TEMP_H

#include "inplace.h"

#include "page/tuple.h"
#include "undo/append.h"

extern void UndoTempPrepare(Relation rel, Size len, UndoInsert *ui);
extern void UndoTempAppended(UndoInsert *ui);
extern Buffer UndoTempReadBuffer(UndoPtr ptr, bool missing_ok);
extern void UndoTempPreCommit(void);
extern void UndoTempAtCommit(void);
extern void UndoTempAtAbort(void);
extern void UndoTempSubCommit(int level);
extern void UndoTempSubAbort(int level);
extern int64 UndoTempSizeBytes(void);
extern int64 UndoTempUsedBytes(void);

#endif							/* INPLACE_TEMP_H */

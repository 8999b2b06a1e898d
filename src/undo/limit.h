/*-------------------------------------------------------------------------
 *
 * limit.h
 *	  How far undo may grow; see limit.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_LIMIT_H
#define INPLACE_LIMIT_H

#include "inplace.h"

#include "undo/space.h"

/* setting */
extern int	inplace_undo_limit;

extern bool UndoLimitAllows(uint32 n);
extern bool UndoLimitSpares(const UndoSpace *sp, uint32 n);
extern bool UndoHasSpare(Relation rel);
extern void UndoReportLimit(UndoSpace *sp);

#endif							/* INPLACE_LIMIT_H */

/*-------------------------------------------------------------------------
 *
 * shrink.h
 *	  Making the file of undo shorter; see shrink.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_SHRINK_H
#define INPLACE_SHRINK_H

#include "inplace.h"

#include "undo/space.h"

extern void UndoShrink(UndoSpace *sp, Relation undorel);

#endif							/* INPLACE_SHRINK_H */

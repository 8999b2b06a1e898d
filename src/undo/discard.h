/*-------------------------------------------------------------------------
 *
 * discard.h
 *	  Giving undo back; see discard.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_DISCARD_H
#define INPLACE_DISCARD_H

#include "inplace.h"

extern bool UndoDiscardTick(bool *in_use, bool *more);

#endif							/* INPLACE_DISCARD_H */

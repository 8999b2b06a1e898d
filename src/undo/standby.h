/*-------------------------------------------------------------------------
 *
 * standby.h
 *	  Reading undo on a standby; see standby.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_STANDBY_H
#define INPLACE_STANDBY_H

#include "inplace.h"

extern Buffer UndoReadOnStandby(Relation undorel, BlockNumber block);

#endif							/* INPLACE_STANDBY_H */

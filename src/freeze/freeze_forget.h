/*-------------------------------------------------------------------------
 *
 * freeze_forget.h
 *	  Dropping the figures of what is dropped; see freeze_forget.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_FREEZE_FORGET_H
#define INPLACE_FREEZE_FORGET_H

#include "inplace.h"

extern void FreezeStatsForgetDatabase(Oid dboid);
extern void FreezeForgetInit(void);

#endif							/* INPLACE_FREEZE_FORGET_H */

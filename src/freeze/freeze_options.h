/*-------------------------------------------------------------------------
 *
 * freeze_options.h
 *	  What a table has instead of the settings; see freeze_options.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_FREEZE_OPTIONS_H
#define INPLACE_FREEZE_OPTIONS_H

#include "inplace.h"

/* what VACUUM of a table is to go by */
typedef struct FreezeOptions
{
	bool		adaptive;
	int			target;			/* seconds */
} FreezeOptions;

extern void FreezeOptionsInit(void);
extern void FreezeOptionsGet(Oid relid, FreezeOptions *options);

#endif							/* INPLACE_FREEZE_OPTIONS_H */

/*-------------------------------------------------------------------------
 *
 * older_keys.h
 *	  Builds of indexes that met versions with other keys; see older_keys.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_OLDER_KEYS_H
#define INPLACE_OLDER_KEYS_H

#include "inplace.h"

extern Size OlderKeysShmemSize(void);
extern void OlderKeysShmemInit(void);
extern void inplace_build_met_older_keys(Oid indexid);
extern uint32 inplace_builds_with_older_keys(Oid indexid);

#endif							/* INPLACE_OLDER_KEYS_H */

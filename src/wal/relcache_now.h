/*-------------------------------------------------------------------------
 *
 * relcache_now.h
 *	  See relcache_now.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_RELCACHE_NOW_H
#define INPLACE_RELCACHE_NOW_H

#include "inplace.h"

extern void inplace_forget_relcache_now(Oid relid, bool on_standbys);

#endif							/* INPLACE_RELCACHE_NOW_H */

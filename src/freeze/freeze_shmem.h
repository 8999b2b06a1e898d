/*-------------------------------------------------------------------------
 *
 * freeze_shmem.h
 *	  The shared memory of adaptive freezing, for the files that keep it:
 *
 *		freeze_stats.c	what is done with it while the server runs
 *		freeze_file.c	how it gets over a restart
 *		freeze_forget.c tables and databases that are dropped
 *
 * The lock protects the timeline and the hash table, an entry's spinlock its
 * figures (which may be read and written without it under the exclusive
 * lock).  In the postmaster, before and after all others, no lock is needed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_FREEZE_SHMEM_H
#define INPLACE_FREEZE_SHMEM_H

#include "inplace.h"

#include "freeze/freeze_model.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
#include "utils/hsearch.h"

#define TIMELINE_SIZE			256

typedef struct TimelinePair
{
	XLogRecPtr	lsn;
	TimestampTz time;
} TimelinePair;

typedef struct FreezeKey
{
	Oid			dboid;
	Oid			relid;
} FreezeKey;

typedef struct FreezeEntry
{
	FreezeKey	key;
	slock_t		mutex;
	TimestampTz last_vacuum;
	FreezeStats stats;
} FreezeEntry;

typedef struct FreezeShared
{
	LWLock		lock;
	pg_atomic_uint64 last_tick; /* time of the last pair, read without lock */
	int			npairs;
	TimelinePair pairs[TIMELINE_SIZE];
} FreezeShared;

extern FreezeShared *freeze_shared;
extern HTAB *freeze_tables;

/* freeze_stats.c; the lock is held exclusively */
extern void FreezeTimelineAppend(XLogRecPtr lsn, TimestampTz now);
extern FreezeEntry *FreezeMakeEntry(const FreezeKey *key);

/* freeze_file.c */
extern void FreezeFileLoad(void);
extern void FreezeFileSave(int code, Datum arg);

#endif							/* INPLACE_FREEZE_SHMEM_H */

/*-------------------------------------------------------------------------
 *
 * freeze_stats.h
 *	  Shared memory that has the figures of each table about how long its
 *	  pages stay as they are, and the timeline; see freeze_stats.c.
 *
 * Lock order
 *	  The lock of the shared memory is taken last, with a data page locked or
 *	  not; nothing is locked under it but an entry's spinlock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_FREEZE_STATS_H
#define INPLACE_FREEZE_STATS_H

#include "inplace.h"

#include "access/visibilitymapdefs.h"
#include "freeze/freeze_model.h"
#include "utils/timestamp.h"

/* what a change of a page took off the visibility map, and when it had last
 * been changed before */
typedef struct FreezeUnset
{
	uint8		bits;
	bool		empty;			/* it had no rows */
	bool		has_room;
	XLogRecPtr	lsn;
} FreezeUnset;

extern int	inplace_target_freeze_duration;
extern bool inplace_adaptive_freezing;
extern int	inplace_max_freeze_stats_tables;

extern Size FreezeShmemSize(void);
extern void FreezeShmemInit(void);
extern void FreezeTimelineTick(void);
extern TimestampTz FreezeTimelineTime(XLogRecPtr lsn);
extern bool FreezeStatsGet(Oid relid, FreezeStats *stats);
extern void FreezeStatsBegin(Relation rel, int target, FreezeStats *stats);
extern bool FreezePageHasRoom(Relation rel, Page page, bool *empty);
extern double FreezePageAge(const FreezeSample *sample, XLogRecPtr lsn,
							uint8 bits);
extern void FreezeNoteVisible(Relation rel, uint8 bits, const FreezePage *page);
extern void FreezeNotePageFreeze(Relation rel, double age);
extern void FreezeNoteUnset(Relation rel, const FreezeUnset *unset,
							bool by_insert);

/* for the critical section of a change, before the page is changed;
 * FreezeNoteUnset is for after it */
extern bool FreezeClearVisible(Relation rel, Buffer buffer, Buffer vmbuffer,
							   uint8 bits, FreezeUnset *unset);

#endif							/* INPLACE_FREEZE_STATS_H */

/*-------------------------------------------------------------------------
 *
 * freeze_stats.c
 *	  Shared memory of adaptive freezing: when which WAL was written, and how
 *	  long the pages of each table stay all-visible.
 *
 * Timeline
 *	  Pairs of (LSN, time), both ascending.  A page's LSN says where in WAL it
 *	  was last changed; the timeline says when that was, by linear
 *	  interpolation.  When it is full it loses the pair that is missed least: the
 *	  one with the closest neighbours for its age.  So precision is in proportion
 *	  to age.  LSNs from before the first pair are taken to be as old as that:
 *	  ages are never too high.
 *
 * Tables
 *	  VACUUM makes the entry of a table.  If there is no room, it takes the place
 *	  of the table that was vacuumed longest ago.  Changes of pages only look an
 *	  entry up, and only when they cleared a bit of the visibility map.  In a crash
 *	  all is lost; a table then is as one without observations.
 *
 * Nothing here is called in a critical section but FreezeClearVisible, which
 * takes no lock of ours.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/visibilitymap.h"
#include "freeze/freeze_model.h"
#include "freeze/freeze_shmem.h"
#include "freeze/freeze_stats.h"
#include "miscadmin.h"
#include "page/page.h"
#include "storage/ipc.h"
#include "storage/shmem.h"

#define TIMELINE_MIN_USECS		INT64CONST(250000)

int			inplace_target_freeze_duration = 86400;
bool		inplace_adaptive_freezing = true;
int			inplace_max_freeze_stats_tables = 1000;

FreezeShared *freeze_shared = NULL;
HTAB	   *freeze_tables = NULL;

Size
FreezeShmemSize(void)
{
	return add_size(MAXALIGN(sizeof(FreezeShared)),
					hash_estimate_size(inplace_max_freeze_stats_tables,
									   sizeof(FreezeEntry)));
}

void
FreezeShmemInit(void)
{
	HASHCTL		info;
	bool		found;

	freeze_shared = ShmemInitStruct("inplace freezing", sizeof(FreezeShared),
									&found);
	if (!found)
	{
		int			tranche = LWLockNewTrancheId();

		LWLockRegisterTranche(tranche, "InplaceFreezing");
		LWLockInitialize(&freeze_shared->lock, tranche);
		NoLockRegister(NO_LOCK_FREEZING, &freeze_shared->lock, 1, sizeof(LWLock));
		pg_atomic_init_u64(&freeze_shared->last_tick, 0);
		freeze_shared->npairs = 0;
	}

	memset(&info, 0, sizeof(info));
	info.keysize = sizeof(FreezeKey);
	info.entrysize = sizeof(FreezeEntry);
	freeze_tables = ShmemInitHash("inplace freezing tables",
								  inplace_max_freeze_stats_tables,
								  inplace_max_freeze_stats_tables,
								  &info,
								  HASH_ELEM | HASH_BLOBS | HASH_FIXED_SIZE);

	if (!found && !IsUnderPostmaster)
	{
		FreezeFileLoad();
		on_shmem_exit(FreezeFileSave, 0);
	}
}

/* ---------------- the timeline ---------------- */

/*
 * Make room by leaving out the pair that is missed least.
 */
static void
timeline_thin(TimestampTz now)
{
	int			victim = 1;
	double		least = -1;

	for (int i = 1; i < freeze_shared->npairs - 1; i++)
	{
		TimelinePair *p = &freeze_shared->pairs[i];
		double		gap = (double) (p[1].time - p[-1].time);
		double		weight = gap / ((double) (now - p[1].time) + 1);

		if (least < 0 || weight < least)
		{
			least = weight;
			victim = i;
		}
	}
	freeze_shared->npairs--;
	memmove(&freeze_shared->pairs[victim], &freeze_shared->pairs[victim + 1],
			(freeze_shared->npairs - victim) * sizeof(TimelinePair));
}

/*
 * One more pair: WAL is here now.
 */
void
FreezeTimelineAppend(XLogRecPtr lsn, TimestampTz now)
{
	TimelinePair *pairs = freeze_shared->pairs;
	int			n = freeze_shared->npairs;

	/* a clock that was set back: what it said is worth nothing */
	while (n > 0 && pairs[n - 1].time > now)
		n--;
	freeze_shared->npairs = n;

	if (n > 0 && pairs[n - 1].lsn > lsn)
		return;
	if (n >= 2 && pairs[n - 1].lsn == lsn && pairs[n - 2].lsn == lsn)
		pairs[n - 1].time = now;	/* nothing goes on */
	else
	{
		if (n == TIMELINE_SIZE)
			timeline_thin(now);
		n = freeze_shared->npairs++;
		pairs[n].lsn = lsn;
		pairs[n].time = now;
	}
}

/*
 * Note where WAL is, if that has not been done just now.
 */
void
FreezeTimelineTick(void)
{
	TimestampTz now = GetCurrentTimestamp();
	int64		since = now - (int64) pg_atomic_read_u64(&freeze_shared->last_tick);

	if ((since >= 0 && since < TIMELINE_MIN_USECS) || RecoveryInProgress())
		return;

	LWLockAcquire(&freeze_shared->lock, LW_EXCLUSIVE);
	FreezeTimelineAppend(GetXLogInsertRecPtr(), now);
	pg_atomic_write_u64(&freeze_shared->last_tick, (uint64) now);
	LWLockRelease(&freeze_shared->lock);
}

/*
 * The pairs on either side: *before is the last one below, *after the first
 * one from there on, which is now if WAL has gone on since the last pair.
 * Returns false if there is none below; then *after is the first one.
 */
static bool
timeline_find(XLogRecPtr lsn, TimelinePair *before, TimelinePair *after)
{
	TimelinePair now;
	int			low = 0;
	int			high;
	bool		found;

	now.time = GetCurrentTimestamp();
	now.lsn = GetXLogInsertRecPtr();

	LWLockAcquire(&freeze_shared->lock, LW_SHARED);
	high = freeze_shared->npairs;
	while (low < high)
	{
		int			mid = (low + high) / 2;

		if (freeze_shared->pairs[mid].lsn < lsn)
			low = mid + 1;
		else
			high = mid;
	}
	found = low > 0;
	if (found)
		*before = freeze_shared->pairs[low - 1];
	*after = low < freeze_shared->npairs ? freeze_shared->pairs[low] : now;
	LWLockRelease(&freeze_shared->lock);
	return found;
}

/* when was this written? */
TimestampTz
FreezeTimelineTime(XLogRecPtr lsn)
{
	TimelinePair before;
	TimelinePair after;

	if (!timeline_find(lsn, &before, &after) ||
		after.lsn <= before.lsn || after.time <= before.time)
		return after.time;
	if (lsn >= after.lsn)
		return after.time;
	return before.time + (TimestampTz)
		((double) (after.time - before.time) *
		 ((double) (lsn - before.lsn) / (double) (after.lsn - before.lsn)));
}

/* ---------------- tables ---------------- */

/* with the lock held */
static FreezeEntry *
find_entry(Oid relid)
{
	FreezeKey	key = {MyDatabaseId, relid};

	return hash_search(freeze_tables, &key, HASH_FIND, NULL);
}

bool
FreezeStatsGet(Oid relid, FreezeStats *stats)
{
	FreezeEntry *entry;

	LWLockAcquire(&freeze_shared->lock, LW_SHARED);
	entry = find_entry(relid);
	if (entry != NULL)
	{
		SpinLockAcquire(&entry->mutex);
		*stats = entry->stats;
		SpinLockRelease(&entry->mutex);
	}
	LWLockRelease(&freeze_shared->lock);
	return entry != NULL;
}

/* the one vacuumed longest ago; the lock is held exclusively */
static void
evict_entry(void)
{
	HASH_SEQ_STATUS seq;
	FreezeEntry *entry;
	FreezeKey	victim = {InvalidOid, InvalidOid};
	TimestampTz oldest = DT_NOEND;

	hash_seq_init(&seq, freeze_tables);
	while ((entry = hash_seq_search(&seq)) != NULL)
	{
		if (entry->last_vacuum < oldest)
		{
			oldest = entry->last_vacuum;
			victim = entry->key;
		}
	}
	hash_search(freeze_tables, &victim, HASH_REMOVE, NULL);
}

/*
 * The entry of a table, a new one if need be.  The lock is held exclusively.
 */
FreezeEntry *
FreezeMakeEntry(const FreezeKey *key)
{
	FreezeEntry *entry = hash_search(freeze_tables, key, HASH_FIND, NULL);

	if (entry != NULL)
		return entry;
	if (hash_get_num_entries(freeze_tables) >= inplace_max_freeze_stats_tables)
		evict_entry();
	entry = hash_search(freeze_tables, key, HASH_ENTER, NULL);
	SpinLockInit(&entry->mutex);
	memset(&entry->stats, 0, sizeof(entry->stats));
	return entry;
}

/*
 * A VACUUM begins: make sure of an entry, and say what is known.  A table without pages
 * gets none: most TOAST tables are empty, and there is nothing to learn of them.
 */
void
FreezeStatsBegin(Relation rel, int target, FreezeStats *stats)
{
	FreezeKey	key = {MyDatabaseId, RelationGetRelid(rel)};
	FreezeEntry *entry;

	FreezeTimelineTick();

	LWLockAcquire(&freeze_shared->lock, LW_EXCLUSIVE);
	entry = RelationGetNumberOfBlocks(rel) > 0 ? FreezeMakeEntry(&key) :
		hash_search(freeze_tables, &key, HASH_FIND, NULL);
	if (entry != NULL)
	{
		entry->last_vacuum = GetCurrentTimestamp();
		entry->stats.target = target;
		*stats = entry->stats;
	}
	else
	{
		memset(stats, 0, sizeof(*stats));
		stats->target = target;
	}
	LWLockRelease(&freeze_shared->lock);
}

/* seconds since this was written */
static double
seconds_since(XLogRecPtr lsn)
{
	double		seconds = (double) (GetCurrentTimestamp() -
									FreezeTimelineTime(lsn)) / USECS_PER_SEC;

	return Max(seconds, 0);
}

/*
 * How much older a page is than its LSN says, if these bits are set for it.  Setting
 * them gave it a new LSN; without hint bits in WAL it may not have.
 */
static double
age_hidden(const FreezeSample *sample, uint8 bits)
{
	if (bits & VISIBILITYMAP_ALL_FROZEN)
		return FreezeSampleAgeAtSet(sample, true);
	if ((bits & VISIBILITYMAP_ALL_VISIBLE) && XLogHintBitIsNeeded())
		return FreezeSampleAgeAtSet(sample, false);
	return 0;
}

/*
 * Is there room on a page for another row of about the size of those that it has?
 * One without rows has, and *empty is set.
 */
bool
FreezePageHasRoom(Relation rel, Page page, bool *empty)
{
	Size		space = PageGetHeapFreeSpace(page);
	Size		reserve;
	Size		total = 0;
	int			n = 0;

	for (OffsetNumber off = FirstOffsetNumber;
		 off <= PageGetMaxOffsetNumber(page); off++)
	{
		ItemId		lp = PageGetItemId(page, off);

		if (ItemIdIsNormal(lp))
		{
			total += ItemIdGetLength(lp);
			n++;
		}
	}
	*empty = (n == 0);
	if (n == 0)
		return true;
	reserve = RelationGetTargetPageFreeSpace(rel, HEAP_DEFAULT_FILLFACTOR);
	return space >= total / n + reserve;
}

/*
 * How long this page has not been changed, as far as that can be told.
 */
double
FreezePageAge(const FreezeSample *sample, XLogRecPtr lsn, uint8 bits)
{
	return XLogRecPtrIsInvalid(lsn) ? 0 :
		seconds_since(lsn) + age_hidden(sample, bits);
}

/*
 * VACUUM left a page all-visible, and set these bits to that end, or none.
 */
void
FreezeNoteVisible(Relation rel, uint8 bits, const FreezePage *page)
{
	FreezeEntry *entry;
	double		now;

	if (bits == 0 && !page->has_room)
		return;
	now = FreezeSampleNow();
	LWLockAcquire(&freeze_shared->lock, LW_SHARED);
	entry = find_entry(RelationGetRelid(rel));
	if (entry != NULL)
	{
		FreezeStats *stats = &entry->stats;

		SpinLockAcquire(&entry->mutex);
		if (bits & VISIBILITYMAP_ALL_FROZEN)
			stats->frozen_sets++;
		if (bits & VISIBILITYMAP_ALL_VISIBLE)
		{
			stats->visible_sets++;
			FreezeSampleAddSet(&stats->sample, now);
			if (page->age >= 0 && (bits & VISIBILITYMAP_ALL_FROZEN) == 0)
			{
				stats->sample.plain_sets++;
				stats->sample.plain_ages += page->age;
			}
		}
		if (page->has_room)
			FreezeSampleAddSet(&stats->fills, now);
		SpinLockRelease(&entry->mutex);
	}
	LWLockRelease(&freeze_shared->lock);
}

void
FreezeNotePageFreeze(Relation rel, double age)
{
	FreezeEntry *entry;

	LWLockAcquire(&freeze_shared->lock, LW_SHARED);
	entry = find_entry(RelationGetRelid(rel));
	if (entry != NULL)
	{
		SpinLockAcquire(&entry->mutex);
		entry->stats.page_freezes++;
		if (age >= 0)
		{
			entry->stats.sample.freezes++;
			entry->stats.sample.freeze_ages += age;
		}
		SpinLockRelease(&entry->mutex);
	}
	LWLockRelease(&freeze_shared->lock);
}

/*
 * Clear bits of the visibility map, with what they depend on, and remember
 * what was there.  A row lock takes ALL_FROZEN alone; then the page stays
 * all-visible.
 */
bool
FreezeClearVisible(Relation rel, Buffer buffer, Buffer vmbuffer, uint8 bits,
				   FreezeUnset *unset)
{
	Page		page = RowPage(rel, buffer);
	BlockNumber blk = BufferGetBlockNumber(buffer);

	unset->bits = 0;
	if (!PageIsAllVisible(page))
		return false;
	unset->has_room = FreezePageHasRoom(rel, page, &unset->empty);

	/* the map page is pinned: this reads no buffer */
	unset->bits = visibilitymap_get_status(rel, blk, &vmbuffer) & bits;
	unset->lsn = PageGetLSN(page);
	if (bits & VISIBILITYMAP_ALL_VISIBLE)
		PageClearAllVisible(page);
	return visibilitymap_clear(rel, blk, vmbuffer, bits) ||
		(bits & VISIBILITYMAP_ALL_VISIBLE) != 0;
}

/*
 * Called after the critical section.  A change is early if it comes sooner than the
 * target after VACUUM's work on the page.  The duration before a change of rows counts
 * from the last change that was not VACUUM's, that before an insert from VACUUM's
 * visit.  An insert does not count as early unless it makes the page's freezing vain:
 * the bit of an empty page costs nothing.
 */
void
FreezeNoteUnset(Relation rel, const FreezeUnset *unset, bool by_insert)
{
	FreezeEntry *entry;
	bool		was_visible = (unset->bits & VISIBILITYMAP_ALL_VISIBLE) != 0;
	bool		timed;
	double		seconds = 0;
	double		now;

	if (likely(unset->bits == 0))
		return;

	timed = RelationIsPermanent(rel) && !XLogRecPtrIsInvalid(unset->lsn);
	if (timed)
	{
		FreezeTimelineTick();
		seconds = seconds_since(unset->lsn);
	}
	now = was_visible ? 0 : FreezeSampleNow();

	LWLockAcquire(&freeze_shared->lock, LW_SHARED);
	entry = find_entry(RelationGetRelid(rel));
	if (entry != NULL)
	{
		FreezeStats *stats = &entry->stats;
		bool		early = timed && seconds < stats->target;

		SpinLockAcquire(&entry->mutex);
		if (was_visible)
			stats->visible_unsets++;
		else
			FreezeSampleAddSet(&stats->sample, now);	/* a lock: all-visible
														 * as before */
		if (unset->bits & VISIBILITYMAP_ALL_FROZEN)
			stats->frozen_unsets++;
		if (early)
		{
			if (!by_insert)
				stats->early_unsets++;
			if ((unset->bits & VISIBILITYMAP_ALL_FROZEN) && !unset->empty)
				stats->early_frozen_unsets++;
		}
		if (by_insert)
		{
			FreezeSampleWithdrawSet(&stats->sample);
			if (timed)
				FreezeSampleAdd(&stats->fills, seconds);
		}
		else
		{
			if (unset->has_room && was_visible)
				FreezeSampleWithdrawSet(&stats->fills);
			if (timed)
				FreezeSampleAdd(&stats->sample,
								seconds + age_hidden(&stats->sample, unset->bits));
		}
		SpinLockRelease(&entry->mutex);
	}
	LWLockRelease(&freeze_shared->lock);
}

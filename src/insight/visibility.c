/*-------------------------------------------------------------------------
 *
 * visibility.c
 *	  What the visibility map says of a table's pages, by their age.
 *
 * A page's age is the time since its last change that went into WAL, VACUUM's
 * included, as told from its LSN by the timeline of adaptive freezing.  Each
 * page is share-locked for as long as it takes to look at its LSN; the bits are
 * read after that, without any lock on the map, so each page's row of figures is
 * as it was at some time during the call.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/relation.h"
#include "access/visibilitymap.h"
#include "freeze/freeze_stats.h"
#include "funcapi.h"
#include "insight/open_table.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(inplace_visibility_summary);

#define SUMMARY_COLS		5

/* upper ends of the classes, in seconds; the last class has none */
static const int class_ends[] = {
	1, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400
};

#define NUM_ENDS			((int) lengthof(class_ends))
#define CLASS_UNKNOWN		(NUM_ENDS + 1)
#define NUM_CLASSES			(NUM_ENDS + 2)

typedef struct VisibilityClass
{
	int64		pages;
	int64		visible;
	int64		frozen;
} VisibilityClass;

static int
class_of(XLogRecPtr lsn, TimestampTz now)
{
	double		age;
	int			class;

	/* a new page, one whose changes do not go into WAL, a standby */
	if (XLogRecPtrIsInvalid(lsn))
		return CLASS_UNKNOWN;
	age = (double) (now - FreezeTimelineTime(lsn)) / USECS_PER_SEC;
	for (class = 0; class < NUM_ENDS; class++)
		if (age < class_ends[class])
			break;
	return class;
}

static void
look_at_pages(Relation rel, VisibilityClass *classes)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	bool		logged = RelationIsPermanent(rel) && !RecoveryInProgress();
	Buffer		vmbuffer = InvalidBuffer;

	for (BlockNumber blk = 0; blk < nblocks; blk++)
	{
		Buffer		buffer;
		XLogRecPtr	lsn;
		VisibilityClass *class;
		uint8		bits;

		CHECK_FOR_INTERRUPTS();
		buffer = ReadBufferExtended(rel, MAIN_FORKNUM, blk, RBM_NORMAL,
									strategy);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		lsn = logged ? PageGetLSN(BufferGetPage(buffer)) : InvalidXLogRecPtr;
		UnlockReleaseBuffer(buffer);
		bits = visibilitymap_get_status(rel, blk, &vmbuffer);

		class = &classes[class_of(lsn, GetCurrentTimestamp())];
		class->pages++;
		if (bits & VISIBILITYMAP_ALL_VISIBLE)
			class->visible++;
		if (bits & VISIBILITYMAP_ALL_FROZEN)
			class->frozen++;
	}
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);
	FreeAccessStrategy(strategy);
}

static Datum
seconds_interval(int seconds)
{
	Interval   *result = palloc0(sizeof(Interval));

	result->day = seconds / 86400;
	result->time = (int64) (seconds % 86400) * USECS_PER_SEC;
	return IntervalPGetDatum(result);
}

Datum
inplace_visibility_summary(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	VisibilityClass classes[NUM_CLASSES];
	Relation	rel;

	InplaceRequirePreload();
	InitMaterializedSRF(fcinfo, 0);
	rel = InsightOpenTable(PG_GETARG_OID(0), false);

	memset(classes, 0, sizeof(classes));
	look_at_pages(rel, classes);

	for (int i = 0; i < NUM_CLASSES; i++)
	{
		Datum		values[SUMMARY_COLS];
		bool		nulls[SUMMARY_COLS] = {false};

		nulls[0] = (i == CLASS_UNKNOWN);
		nulls[1] = (i >= NUM_ENDS);
		values[0] = nulls[0] ? (Datum) 0 :
			seconds_interval(i == 0 ? 0 : class_ends[i - 1]);
		values[1] = nulls[1] ? (Datum) 0 : seconds_interval(class_ends[i]);
		values[2] = Int64GetDatum(classes[i].pages);
		values[3] = Int64GetDatum(classes[i].visible);
		values[4] = Int64GetDatum(classes[i].frozen);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	relation_close(rel, AccessShareLock);
	return (Datum) 0;
}

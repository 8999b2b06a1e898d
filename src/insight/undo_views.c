/*-------------------------------------------------------------------------
 *
 * undo_views.c
 *	  Functions behind the views on undo.
 *
 * On a standby there is no map of extents: only sizes are known there.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "funcapi.h"
#include "undo/record.h"
#include "undo/space.h"
#include "undo/temp.h"
#include "undo/undorel.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(inplace_undo_stats);
PG_FUNCTION_INFO_V1(inplace_undo_size);
PG_FUNCTION_INFO_V1(inplace_undo_records_read);
PG_FUNCTION_INFO_V1(inplace_require_preload);

typedef struct SpaceSummary
{
	int64		extents;
	int64		free;
	int64		used_bytes;
	int64		to_restore;
	TransactionId oldest;
	TransactionId horizon;
	int64		restored;
	int			worker_pid;
} SpaceSummary;

static const char *const kind_names[] = {"logged", "unlogged", "temporary"};

/*
 * Owners change their extents while we look: the figures are of about now.
 */
static void
SummarizeSpace(UndoKind kind, SpaceSummary *s)
{
	UndoSpace  *sp = UndoSpaceLock(kind, LW_SHARED);
	uint32		tail = UndoTailExtents(sp);

	memset(s, 0, sizeof(*s));
	s->extents = sp->nextents;
	for (uint32 n = 0; n < sp->nextents; n++)
	{
		UndoExtent *ext = UndoExtentAt(sp, n);
		uint32		state = pg_atomic_read_u32(&ext->state);
		TransactionId newest = pg_atomic_read_u32(&ext->newest_xid);

		if ((state & EXT_STATE_MASK) == EXT_FREE)
		{
			s->free++;
			continue;
		}
		s->used_bytes += (int64) ext->fill * BLCKSZ;
		if (state & EXT_NEEDS_SCAN)
			s->to_restore++;
		if (TransactionIdIsValid(newest) &&
			(!TransactionIdIsValid(s->oldest) ||
			 TransactionIdPrecedes(newest, s->oldest)))
			s->oldest = newest;
	}
	s->extents += tail;
	if (tail > 0)
	{
		s->used_bytes += (int64) (sp->tail_end - UndoExtentStart(sp->nextents)) * BLCKSZ;
		if (sp->tail_scanned < sp->tail_end)
			s->to_restore += tail;
		if (!TransactionIdIsValid(s->oldest) ||
			TransactionIdPrecedes(sp->tail_xid, s->oldest))
			s->oldest = sp->tail_xid;
	}
	s->horizon = sp->horizon;
	s->restored = pg_atomic_read_u64(&sp->rows_restored);
	s->worker_pid = (int) pg_atomic_read_u32(&sp->worker_pid);
	UndoSpaceUnlock(sp);
}

#define UNDO_STATS_COLS 10

static void
PutXid(Datum *value, bool *isnull, TransactionId xid)
{
	*isnull = !TransactionIdIsValid(xid);
	*value = TransactionIdGetDatum(xid);
}

static void
PutSummary(UndoKind kind, Datum *values, bool *nulls)
{
	SpaceSummary s;

	SummarizeSpace(kind, &s);
	values[2] = Int64GetDatum(s.used_bytes);
	values[3] = Int64GetDatum(s.extents);
	values[4] = Int64GetDatum(s.free);
	PutXid(&values[5], &nulls[5], s.oldest);
	PutXid(&values[6], &nulls[6], s.horizon);
	values[7] = Int64GetDatum(s.to_restore);
	values[8] = Int64GetDatum(s.restored);
	values[9] = Int32GetDatum(s.worker_pid);
	nulls[9] = s.worker_pid == 0;
}

Datum
inplace_undo_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InplaceRequirePreload();
	InitMaterializedSRF(fcinfo, 0);

	for (int kind = UNDO_LOGGED; kind <= UNDO_TEMP; kind++)
	{
		Datum		values[UNDO_STATS_COLS] = {0};
		bool		nulls[UNDO_STATS_COLS] = {0};

		values[0] = CStringGetTextDatum(kind_names[kind]);
		for (int i = 3; i < UNDO_STATS_COLS; i++)
			nulls[i] = true;
		if (kind == UNDO_TEMP)
		{
			values[1] = Int64GetDatum(UndoTempSizeBytes());
			values[2] = Int64GetDatum(UndoTempUsedBytes());
		}
		else
		{
			Relation	undorel = UndoRelGet((UndoKind) kind, false);

			/* on a standby an unlogged relation has no main fork */
			values[1] = Int64GetDatum(kind == UNDO_UNLOGGED && RecoveryInProgress() ? 0 :
									  (int64) smgrnblocks(RelationGetSmgr(undorel),
														  MAIN_FORKNUM) * BLCKSZ);
			nulls[2] = true;
			if (!RecoveryInProgress())
			{
				memset(nulls, 0, sizeof(nulls));
				PutSummary((UndoKind) kind, values, nulls);
			}
		}
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

Datum
inplace_undo_size(PG_FUNCTION_ARGS)
{
	InplaceRequirePreload();
	PG_RETURN_INT64(UndoSizeBytes());
}

Datum
inplace_undo_records_read(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64((int64) UndoRecordsRead);
}

/*
 * The first thing that CREATE EXTENSION calls.
 */
Datum
inplace_require_preload(PG_FUNCTION_ARGS)
{
	InplaceRequirePreload();
	PG_RETURN_VOID();
}

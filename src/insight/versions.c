/*-------------------------------------------------------------------------
 *
 * versions.c
 *	  inplace.versions(): the versions of one row, newest first.
 *
 * The item is copied under the page's share lock; everything after that works
 * on the copy (walk.c).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "insight/limits.h"
#include "insight/open_table.h"
#include "insight/row_bytes.h"
#include "insight/walk.h"
#include "page/compare.h"
#include "page/page.h"
#include "page/tuple.h"
#include "row/memory_lock.h"
#include "row/row_lock.h"
#include "undo/undo.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"


PG_FUNCTION_INFO_V1(inplace_versions);
Datum		inplace_versions(PG_FUNCTION_ARGS);

enum
{
	COL_VERSION,
	COL_XID,
	COL_CID,
	COL_OPERATION,
	COL_STATUS,
	COL_TAG,
	COL_VISIBLE,
	COL_UNDO,
	COL_CHANGED,
	COL_CONTENTS,
	COL_LOCK_MODE,
	COL_MOVED_TO,
	NUM_COLS
};

/* a version, kept until the one before it is known */
typedef struct Shown
{
	MemoryContext cxt;			/* all that hangs off it */
	InplaceTupleHeaderData hdr;
	bool		unknown_columns;	/* or there are none: it is evicted */
	Datum	   *attr;			/* point into a copy in cxt */
	bool	   *isnull;
	Datum		values[NUM_COLS];
	bool		nulls[NUM_COLS];
} Shown;

typedef struct VersionsState
{
	ReturnSetInfo *rsinfo;
	Relation	rel;
	Relation	toastrel;		/* or NULL */
	FmgrInfo   *out;			/* output functions of the columns */
	InsightLimits limits;
	Snapshot	snapshot;
} VersionsState;

static const char *
status_name(InsightXidStatus status)
{
	switch (status)
	{
		case INSIGHT_XID_CURRENT:
			return "current";
		case INSIGHT_XID_IN_PROGRESS:
			return "in progress";
		case INSIGHT_XID_COMMITTED:
			return "committed";
		case INSIGHT_XID_ABORTED:
			return "aborted";
		case INSIGHT_XID_UNKNOWN:
			break;
	}
	return "unknown";
}

static bool
is_external(Form_pg_attribute att, Datum value)
{
	return att->attlen == -1 &&
		VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value));
}

/*
 * The row as record_out gives it.  An old version's external value may be
 * gone (of a change that was rolled back, say): then its name stands there.
 */
static char *
row_text(VersionsState *state, Datum *values, bool *isnull)
{
	TupleDesc	desc = RelationGetDescr(state->rel);
	StringInfoData buf;
	bool		first = true;
	int			i;

	initStringInfo(&buf);
	appendStringInfoChar(&buf, '(');
	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		const char *str;
		const char *p;
		bool		quote;

		if (att->attisdropped)
			continue;
		if (!first)
			appendStringInfoChar(&buf, ',');
		first = false;
		if (isnull[i])
			continue;

		if (is_external(att, values[i]) &&
			(state->toastrel == NULL ||
			 InsightCheckToast(state->toastrel, values[i], SnapshotAny) != NULL))
		{
			struct varatt_external ptr;

			VARATT_EXTERNAL_GET_POINTER(ptr, (struct varlena *) DatumGetPointer(values[i]));
			str = psprintf("<TOAST value %u is gone>", ptr.va_valueid);
		}
		else
			str = OutputFunctionCall(&state->out[i], values[i]);

		quote = (*str == '\0');
		for (p = str; *p && !quote; p++)
			quote = strchr("\"\\(),", *p) != NULL ||
				isspace((unsigned char) *p);
		if (quote)
			appendStringInfoChar(&buf, '"');
		for (p = str; *p; p++)
		{
			if (*p == '"' || *p == '\\')
				appendStringInfoChar(&buf, *p);
			appendStringInfoChar(&buf, *p);
		}
		if (quote)
			appendStringInfoChar(&buf, '"');
	}
	appendStringInfoChar(&buf, ')');
	return buf.data;
}

/*
 * Do two versions of a column differ?  External values are compared by their
 * pointers: an update that does not touch one keeps it.
 */
static bool
column_differs(Form_pg_attribute att, Datum a, bool anull, Datum b, bool bnull)
{
	if (anull || bnull)
		return anull != bnull;
	if (is_external(att, a) || is_external(att, b))
		return !inplace_same_stored(a, b, att->attbyval, att->attlen);
	return !inplace_same_value(a, b, att->attbyval, att->attlen);
}

static Datum
changed_array(TupleDesc desc, const Shown *newer, const Shown *older)
{
	Datum	   *names = palloc(sizeof(Datum) * Max(desc->natts, 1));
	int			n = 0;
	int			i;

	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped &&
			column_differs(att, newer->attr[i], newer->isnull[i],
						   older->attr[i], older->isnull[i]))
			names[n++] = CStringGetTextDatum(NameStr(att->attname));
	}
	return PointerGetDatum(construct_array(names, n, TEXTOID, -1, false,
										   TYPALIGN_INT));
}

static void
set_text(Datum *values, bool *nulls, int col, const char *str)
{
	values[col] = CStringGetTextDatum(str);
	nulls[col] = false;
}

static void
show_locker(VersionsState *state, const InsightWalk *walk, TransactionId xid,
			LockTupleMode mode, UndoPtr undo)
{
	Datum		values[NUM_COLS];
	bool		nulls[NUM_COLS];

	memset(nulls, true, sizeof(nulls));
	values[COL_VERSION] = Int32GetDatum(walk->version);
	values[COL_XID] = TransactionIdGetDatum(xid);
	values[COL_TAG] = Int32GetDatum(TagNumber(walk->tuple->t_tag));
	nulls[COL_VERSION] = nulls[COL_XID] = nulls[COL_TAG] = false;
	set_text(values, nulls, COL_OPERATION, "lock");
	set_text(values, nulls, COL_STATUS,
			 status_name(InsightGetXidStatus(&state->limits, xid, 0)));
	set_text(values, nulls, COL_LOCK_MODE, inplace_lock_mode_name(mode));
	if (UndoPtrIsValid(undo))
		set_text(values, nulls, COL_UNDO, InsightUndoText(undo));
	tuplestore_putvalues(state->rsinfo->setResult, state->rsinfo->setDesc, values, nulls);
}

/*
 * One line for each transaction that holds, or held, the lock on a version.
 */
static void
show_lock(VersionsState *state, const InsightWalk *walk)
{
	MultiXactMember single;
	MultiXactMember *members = &single;
	int			nmembers = 1;

	if (!walk->lock_known)
		return;

	if (walk->lock_multi)
		nmembers = InsightLockMembers(walk, &members);
	else
	{
		single.xid = walk->locker;
		single.status = (MultiXactStatus) walk->lock_mode;
	}
	for (int i = 0; i < nmembers; i++)
		show_locker(state, walk, members[i].xid, inplace_member_mode(members[i].status),
					walk->lock_undo);
}

/* ... in memory, and so on the newest version */
static void
show_memory_locks(VersionsState *state, const InsightWalk *walk)
{
	MemoryLocks memory;

	inplace_get_memory_locks(walk->rel, walk->block, walk->off, &memory);
	if (memory.own)
		show_locker(state, walk, memory.own_xid, memory.own_mode, InvalidUndoPtr);
	if (TransactionIdIsValid(memory.xid))
		show_locker(state, walk, memory.xid, memory.mode, InvalidUndoPtr);
}

/* fill in what is known of the version that the walk is at */
static Shown *
show_version(VersionsState *state, InsightWalk *walk, bool *found_visible)
{
	TupleDesc	desc = RelationGetDescr(state->rel);
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext,
											  "inplace row version",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt = MemoryContextSwitchTo(cxt);
	Shown	   *shown = palloc0(sizeof(Shown));
	InplaceTupleHeader tuple = palloc(walk->len);
	Datum	   *values = shown->values;
	bool	   *nulls = shown->nulls;
	bool		deleted;
	bool		visible = false;

	memcpy(tuple, walk->tuple, walk->len);
	shown->cxt = cxt;
	shown->hdr = *tuple;
	shown->attr = palloc(sizeof(Datum) * Max(desc->natts, 1));
	shown->isnull = palloc(sizeof(bool) * Max(desc->natts, 1));
	shown->unknown_columns = walk->unknown_columns || HdrIsEvicted(tuple);
	if (!shown->unknown_columns)
		InsightDeform(desc, tuple, shown->attr, shown->isnull);
	memset(nulls, true, sizeof(shown->nulls));

	deleted = (tuple->t_infomask & IP_DELETED) != 0;
	if (!*found_visible && InsightVisible(walk, state->snapshot))
	{
		*found_visible = true;
		visible = !deleted;
	}

	values[COL_VERSION] = Int32GetDatum(walk->version);
	values[COL_XID] = TransactionIdGetDatum(tuple->t_xid);
	values[COL_TAG] = Int32GetDatum(TagNumber(tuple->t_tag));
	values[COL_VISIBLE] = BoolGetDatum(visible);
	nulls[COL_VERSION] = nulls[COL_XID] = false;
	nulls[COL_TAG] = nulls[COL_VISIBLE] = false;
	if (walk->cid_known)
	{
		values[COL_CID] = CommandIdGetDatum(walk->cid);
		nulls[COL_CID] = false;
	}
	set_text(values, nulls, COL_OPERATION,
			 deleted ? ((tuple->t_infomask & (IP_MOVED | IP_MOVED_PARTITION)) ?
						"move" : "delete") :
			 TagIsFirst(tuple->t_tag) ? "insert" : "update");
	set_text(values, nulls, COL_STATUS, status_name(walk->status));
	if (UndoPtrIsValid(walk->undo) && !UndoPtrIsBare(walk->undo))
		set_text(values, nulls, COL_UNDO, InsightUndoText(walk->undo));
	if (!deleted && !shown->unknown_columns)
		set_text(values, nulls, COL_CONTENTS,
				 row_text(state, shown->attr, shown->isnull));

	if (walk->undo_state == INSIGHT_UNDO_FOUND &&
		walk->rec.hdr.ur_type == UNDO_MOVE &&
		(tuple->t_infomask & IP_MOVED) &&
		walk->rec.payload_len >= sizeof(BlockNumber) + sizeof(OffsetNumber))
	{
		ItemPointer tid = palloc(sizeof(ItemPointerData));
		BlockNumber blk;
		OffsetNumber off;

		memcpy(&blk, walk->rec.payload, sizeof(blk));
		memcpy(&off, walk->rec.payload + sizeof(blk), sizeof(off));
		ItemPointerSet(tid, blk, off);
		values[COL_MOVED_TO] = PointerGetDatum(tid);
		nulls[COL_MOVED_TO] = false;
	}

	MemoryContextSwitchTo(oldcxt);
	return shown;
}

/*
 * A copy of the row's item, or NULL if there is none.  A damaged one is copied as it
 * is.
 */
static char *
copy_item(Relation rel, BlockNumber blk, OffsetNumber off, Size *len)
{
	Buffer		buffer = ReadBuffer(rel, blk);
	Page		page;
	char	   *item = NULL;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = RowPage(rel, buffer);
	if (!PageIsNew(page) && off >= FirstOffsetNumber &&
		off <= PageGetMaxOffsetNumber(page))
	{
		ItemId		lp = PageGetItemId(page, off);

		if (ItemIdIsNormal(lp) &&
			ItemIdGetOffset(lp) >= SizeOfPageHeaderData &&
			ItemIdGetOffset(lp) + ItemIdGetLength(lp) <= BLCKSZ)
		{
			*len = ItemIdGetLength(lp);
			item = palloc(Max(*len, SizeOfInplaceTupleHeader));
			memcpy(item, (char *) page + ItemIdGetOffset(lp), *len);
		}
	}
	UnlockReleaseBuffer(buffer);
	return item;
}

/* what it takes to show contents */
static void
open_contents(VersionsState *state)
{
	TupleDesc	desc = RelationGetDescr(state->rel);

	if (OidIsValid(state->rel->rd_rel->reltoastrelid))
		state->toastrel = table_open(state->rel->rd_rel->reltoastrelid,
									 AccessShareLock);
	state->out = palloc0(sizeof(FmgrInfo) * Max(desc->natts, 1));
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		Oid			outfunc;
		bool		isvarlena;

		if (att->attisdropped)
			continue;
		getTypeOutputInfo(att->atttypid, &outfunc, &isvarlena);
		fmgr_info(outfunc, &state->out[i]);
	}
}

/*
 * Show the versions from the one that the walk is at.  Each is put out when the one
 * before it is known, for the columns that changed.
 */
static void
show_versions(VersionsState *state, InsightWalk *walk)
{
	bool		found_visible = false;
	Shown	   *newer;

	if (walk->locked)
		show_lock(state, walk);
	show_memory_locks(state, walk);
	newer = show_version(state, walk, &found_visible);
	while (newer != NULL)
	{
		Shown	   *older = NULL;

		CHECK_FOR_INTERRUPTS();

		if (InsightWalkBack(walk))
		{
			MemoryContext oldcxt;

			older = show_version(state, walk, &found_visible);
			oldcxt = MemoryContextSwitchTo(newer->cxt);
			if (!(newer->hdr.t_infomask & IP_DELETED) &&
				!newer->unknown_columns && !older->unknown_columns)
			{
				newer->values[COL_CHANGED] =
					changed_array(RelationGetDescr(state->rel), newer, older);
				newer->nulls[COL_CHANGED] = false;
			}
			MemoryContextSwitchTo(oldcxt);
		}

		tuplestore_putvalues(state->rsinfo->setResult, state->rsinfo->setDesc,
							 newer->values, newer->nulls);
		MemoryContextDelete(newer->cxt);
		if (older != NULL && walk->locked)
			show_lock(state, walk);
		newer = older;
	}
}

Datum
inplace_versions(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	ItemPointer tid = (ItemPointer) PG_GETARG_POINTER(1);
	BlockNumber blk = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber off = TidOffset(tid);
	VersionsState state;
	char	   *item;
	Size		itemlen = 0;

	InplaceRequirePreload();
	InitMaterializedSRF(fcinfo, 0);

	memset(&state, 0, sizeof(state));
	state.rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	state.rel = InsightOpenTable(relid, true);
	state.snapshot = GetActiveSnapshot();

	if (blk >= RelationGetNumberOfBlocks(state.rel))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("block number %u is out of range for relation \"%s\"",
						blk, RelationGetRelationName(state.rel))));

	/* the limits that have to be older than the page's copy ... */
	InsightLimitsInit(&state.limits, state.rel);
	item = copy_item(state.rel, blk, off, &itemlen);
	/* ... and those that have to be younger */
	InsightLimitsRefresh(&state.limits, state.rel);

	if (item != NULL)
	{
		InsightWalk *walk = palloc(sizeof(InsightWalk));
		const char *problem;

		problem = InsightWalkBegin(walk, state.rel, &state.limits, blk, off,
								   (InplaceTupleHeader) item, itemlen);
		if (problem)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("row (%u,%u) of table \"%s\" is corrupt",
							blk, off, RelationGetRelationName(state.rel)),
					 errdetail_internal("%s", problem)));

		open_contents(&state);
		show_versions(&state, walk);

		if (walk->problem)
			ereport(WARNING,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("undo of row (%u,%u) of table \"%s\" is corrupt",
							blk, off, RelationGetRelationName(state.rel)),
					 errdetail_internal("%s", walk->problem)));

		if (state.toastrel != NULL)
			table_close(state.toastrel, AccessShareLock);
	}

	relation_close(state.rel, AccessShareLock);
	return (Datum) 0;
}

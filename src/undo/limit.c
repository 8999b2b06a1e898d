/*-------------------------------------------------------------------------
 *
 * limit.c
 *	  inplace.undo_limit: an error, which says what holds undo back, instead of
 *	  a full disk.
 *
 * The limit is on the size of an undo file.  The lowest free extent is always
 * taken first, so when that lies past the limit there is none free below.
 * Changes then fail; inserts, which need no undo, and rollbacks do not, and
 * once the undo worker has given extents back the changes go on.
 *
 * Work that is optional, and that costs much undo (row/evict.c), stops well before, so
 * that changes are not refused because of it.  It has extents of its own; what is left
 * of these is for changes, too, before one is refused (append.c).
 *
 * Nothing is locked when this is reported (append.c).  The texts of others'
 * queries go to the log alone, as the user that gets the error may not be allowed
 * to see them.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/twophase.h"
#include "mb/pg_wchar.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "undo/limit.h"
#include "undo/space.h"
#include "undo/undo.h"
#include "utils/backend_status.h"

int			inplace_undo_limit = 0;

/* so many holders are named, ... */
#define LIMIT_HOLDERS		8
/* so much of what they are doing, ... */
#define LIMIT_ACTIVITY_BYTES	200
/* ... and not more often than that */
#define LIMIT_REPORT_MS		10000

typedef struct UndoHolder
{
	TransactionId xmin;
	int			pid;			/* 0: prepared transaction, -1: slots */
	bool		follows;		/* has a snapshot that is no older than
								 * somebody else's xid */
} UndoHolder;

bool
UndoLimitAllows(uint32 n)
{
	return inplace_undo_limit == 0 ||
		((uint64) n + 1) * (UNDO_EXTENT_BLOCKS * (BLCKSZ / 1024)) <=
		(uint64) inplace_undo_limit;
}

/*
 * May the n-th extent be taken, or what is left of others be used up, for optional work?
 * The last quarter of the limit is for changes alone.  So is that of the extent map, which
 * all databases share; when no more than that is left, that of what the space has of it.
 * Without a lock it is a hint.
 */
bool
UndoLimitSpares(const UndoSpace *sp, uint32 n)
{
	uint64		size = ((uint64) n + 1) * (UNDO_EXTENT_BLOCKS * (BLCKSZ / 1024));

	if (inplace_undo_limit != 0 && size > (uint64) inplace_undo_limit / 4 * 3)
		return false;
	return (uint64) n * 4 < (uint64) sp->nchunks * UNDO_CHUNK_EXTENTS * 3 ||
		UndoMapHasSpare();
}

/*
 * With nothing locked: is undo far from its limits?
 */
bool
UndoHasSpare(Relation rel)
{
	UndoKind	kind = UndoKindOf(rel);
	UndoSpace  *sp;
	bool		spare;

	AssertNoPageLock();
	if (kind == UNDO_TEMP)
		return true;

	/* none below is free, perhaps some of those above neither */
	sp = UndoSpaceLock(kind, LW_SHARED);
	spare = UndoLimitSpares(sp, sp->first_free);
	UndoSpaceUnlock(sp);
	if (!spare)
		return false;
	sp = UndoSpaceLock(kind, LW_EXCLUSIVE);
	spare = UndoLimitSpares(sp, UndoLowestFree(sp));
	UndoSpaceUnlock(sp);
	return spare;
}

/*
 * Of holders with the same horizon the one whose own xid that is comes first: the
 * snapshots of all others have this horizon because its transaction is running.
 */
static bool
HolderPrecedes(const UndoHolder *a, const UndoHolder *b)
{
	if (a->xmin != b->xmin)
		return TransactionIdPrecedes(a->xmin, b->xmin);
	return b->follows && !a->follows;
}

/* keep the oldest ones, oldest first */
static void
NoteHolder(UndoHolder *holders, int *n, TransactionId xmin, int pid,
		   bool follows)
{
	UndoHolder	h = {xmin, pid, follows};
	int			i;

	if (!TransactionIdIsNormal(xmin))
		return;
	if (*n == LIMIT_HOLDERS)
	{
		if (!HolderPrecedes(&h, &holders[*n - 1]))
			return;
		(*n)--;
	}
	for (i = *n; i > 0 && HolderPrecedes(&h, &holders[i - 1]); i--)
		holders[i] = holders[i - 1];
	holders[i] = h;
	(*n)++;
}

/*
 * The server's allProcCount leaves out prepared transactions, whose entries come
 * after the others.  One that is not in use still has the xid it had last.
 */
static TransactionId
PreparedXid(PGPROC *proc)
{
	TransactionId xid = proc->xid;

	if (!TransactionIdIsNormal(xid) || proc->pgxactoff < 0 ||
		ProcGlobal->xids[proc->pgxactoff] != xid)
		return InvalidTransactionId;
	return xid;
}

/*
 * Backends come and go while we look: this is for a message.
 */
static int
FindHolders(UndoHolder *holders)
{
	int			n = 0;
	TransactionId slot_xmin;
	TransactionId catalog_xmin;

	for (uint32 i = 0; i < ProcGlobal->allProcCount; i++)
	{
		PGPROC	   *proc = &ProcGlobal->allProcs[i];
		TransactionId xmin = proc->xmin;
		TransactionId xid = proc->xid;

		/* this backend comes last, of those with the same horizon */
		if (proc == MyProc)
			continue;
		if ((proc->databaseId != MyDatabaseId &&
			 !(proc->statusFlags & PROC_AFFECTS_ALL_HORIZONS)) ||
			(proc->statusFlags & (PROC_IN_VACUUM | PROC_IN_LOGICAL_DECODING)))
			continue;
		if (!TransactionIdIsNormal(xmin) ||
			(TransactionIdIsNormal(xid) && TransactionIdPrecedes(xid, xmin)))
			xmin = xid;
		NoteHolder(holders, &n, xmin, proc->pid, xmin != xid);
	}
	LWLockAcquire(ProcArrayLock, LW_SHARED);
	for (int i = 0; i < max_prepared_xacts; i++)
	{
		PGPROC	   *proc = &ProcGlobal->allProcs[ProcGlobal->allProcCount + i];

		if (proc->databaseId == MyDatabaseId)
			NoteHolder(holders, &n, PreparedXid(proc), 0, false);
	}
	LWLockRelease(ProcArrayLock);
	ProcArrayGetReplicationSlotXmin(&slot_xmin, &catalog_xmin);
	NoteHolder(holders, &n, slot_xmin, -1, false);
	NoteHolder(holders, &n,
			   TransactionIdIsNormal(MyProc->xid) &&
			   (!TransactionIdIsNormal(MyProc->xmin) ||
				TransactionIdPrecedes(MyProc->xid, MyProc->xmin)) ?
			   MyProc->xid : MyProc->xmin, MyProcPid, true);
	return n;
}

/*
 * What the session is doing, cut between characters.
 */
static void
AppendActivity(StringInfo buf, int pid)
{
	const char *activity = pgstat_get_backend_current_activity(pid, false);

	appendBinaryStringInfo(buf, activity,
						   pg_mbcliplen(activity, strlen(activity),
										LIMIT_ACTIVITY_BYTES));
}

static void
LogHolders(void)
{
	UndoHolder	holders[LIMIT_HOLDERS];
	int			n = FindHolders(holders);
	TransactionId next = ReadNextTransactionId();
	StringInfoData detail;

	initStringInfo(&detail);
	for (int i = 0; i < n; i++)
	{
		UndoHolder *h = &holders[i];
		int32		age = (int32) (next - h->xmin);

		if (i > 0)
			appendStringInfoChar(&detail, '\n');
		if (h->pid > 0)
		{
			appendStringInfo(&detail,
							 "Process %d needs undo from transaction %u on (age %d): ",
							 h->pid, h->xmin, age);
			AppendActivity(&detail, h->pid);
		}
		else if (h->pid == 0)
			appendStringInfo(&detail,
							 "Prepared transaction %u needs its undo (age %d).",
							 h->xmin, age);
		else
			appendStringInfo(&detail,
							 "A replication slot needs undo from transaction %u on (age %d).",
							 h->xmin, age);
	}
	ereport(LOG,
			(errmsg("undo of inplace tables has reached \"inplace.undo_limit\" (%d kB) in database %u",
					inplace_undo_limit, MyDatabaseId),
			 n > 0 ? errdetail_log("%s", detail.data) : 0));
	pfree(detail.data);
}

void
UndoReportLimit(UndoSpace *sp)
{
	uint64		now = (uint64) GetCurrentTimestamp();
	uint64		last = pg_atomic_read_u64(&sp->limit_reported);

	if (now - last >= LIMIT_REPORT_MS * UINT64CONST(1000) &&
		pg_atomic_compare_exchange_u64(&sp->limit_reported, &last, now))
		LogHolders();

	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("undo of inplace tables has reached the limit of %d kB",
					inplace_undo_limit),
			 errhint("View inplace.undo_holders shows who holds undo back; \"inplace.undo_limit\" sets the limit.")));
}

/*-------------------------------------------------------------------------
 *
 * other_mark.c
 *	  Under which indexes of other methods than inplace_btree have rows ever been updated in
 *	  place (other_method.c)?
 *
 * Nothing is asked of all others by scans, by VACUUM, or by the planner.  Before the first such
 * update an index is marked: the meta page of the undo of permanent tables gets its OID, and
 * another format version, which a library that does not know of such updates refuses.
 * An index keeps its mark for good, since nobody knows when the last former key has gone.  (So the
 * OID of an index that was dropped may come to stand for another one, which does no harm.)
 * If the page is full the last mark is for all indexes.  Temporary tables need no marks:
 * nobody else reads them, nor does their session with another setting.
 *
 * A scan of a GiST index asks once, when it returns its first row.  If there is a mark it notes what
 * it returns (other_fetch.c), whatever its snapshot.  If there is none it does not, nor is an
 * index-only scan kept from the planner (gist_only.c).  The index must not take updates while
 * such a scan runs.  Each is registered (unmarked_scan.c), and as long as there is one, the mark
 * says that the index waits, and rows move.  The first update that meets none takes that
 * off the mark.  Mostly it is the one that has set it.
 *
 * Standbys have scans of their own.  A mark that waits has the xid of the transaction that set it.
 * The record of the end of that has standbys end what snapshots they have to which the xid is
 * running, or yet to come.  So do all of those of scans that had found no mark.  While a standby
 * is connected, or its slot holds an xmin, the index also waits until the xid precedes the horizon,
 * so that with hot_standby_feedback no query there is ended.  (One that connects later is served
 * by the record.)  After a promotion scans that began on the standby are registered.
 *
 * A mark is of no transaction: it stays when that which has set it is rolled back.  It is in WAL
 * before any update that relies on it.  After a crash in between the index waits, and no scan runs.
 * Of a mark for all others scans of any index count.
 *
 * GIN and hash indexes do not wait: what is done about them is decided when a stale row is met.
 *
 * The setting does not change while the server runs.  So where it is off, the marks are as they
 * are, but on a standby, whose primary may have it on.
 *
 * Lock order: the meta page alone.  Under it the slots of unmarked_scan.c are read and written,
 * which takes no lock.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/transam.h"
#include "index/other_mark.h"
#include "index/other_method.h"
#include "index/unmarked_scan.h"
#include "storage/procarray.h"
#include "undo/seen.h"
#include "undo/undo.h"
#include "undo/undorel.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "wal/log_vacuum.h"
#include "wal/relcache_now.h"

/* on the meta page, from the header to pd_lower; docs/format.md */
typedef struct OtherMark
{
	Oid			indexid;		/* InvalidOid: all that have none of their own */
	uint32		unused;
	FullTransactionId since;	/* its xid, while the index waits; else
								 * invalid: the index takes updates */
} OtherMark;

#define MAX_MARKS \
	((BLCKSZ - SizeOfPageHeaderData - MAXALIGN(sizeof(UndoPageSpecial))) / \
	 sizeof(OtherMark))

typedef enum MarkState
{
	MARK_NONE,
	MARK_WAITS,
	MARK_TAKES
} MarkState;

typedef struct KnownMark
{
	Oid			indexid;		/* must be first */
	MarkState	state;			/* MARK_NONE: and none will come */
} KnownMark;

/*
 * What this process knows, and of which undo relation.  That may be another one the next time:
 * the extension may be dropped and created again, or its creation be rolled back.
 */
static HTAB *known = NULL;
static Oid	known_relid;
static RelFileLocator known_locator;

static KnownMark *
find_known(Relation undorel, Oid indexid)
{
	if (known == NULL || known_relid != undorel->rd_id ||
		!RelFileLocatorEquals(known_locator, RelLocator(undorel)))
		return NULL;
	return hash_search(known, &indexid, HASH_FIND, NULL);
}

static void
note_known(Relation undorel, Oid indexid, MarkState state)
{
	KnownMark  *mark;

	if (known != NULL &&
		(known_relid != undorel->rd_id ||
		 !RelFileLocatorEquals(known_locator, RelLocator(undorel))))
	{
		hash_destroy(known);
		known = NULL;
	}
	if (known == NULL)
	{
		HASHCTL		ctl = {0};

		ctl.keysize = sizeof(Oid);
		ctl.entrysize = sizeof(KnownMark);
		known = hash_create("inplace marked indexes", 16, &ctl, HASH_ELEM | HASH_BLOBS);
		known_relid = undorel->rd_id;
		known_locator = RelLocator(undorel);
	}
	mark = hash_search(known, &indexid, HASH_ENTER, NULL);
	mark->state = state;
}

static int
count_marks(Page meta)
{
	if (PageIsNew(meta))
		return 0;
	return (((PageHeader) meta)->pd_lower - SizeOfPageHeaderData) / sizeof(OtherMark);
}

static OtherMark *
mark_at(Page meta, int i)
{
	return (OtherMark *) ((char *) meta + SizeOfPageHeaderData) + i;
}

/* the page is locked; NULL: the index has none */
static OtherMark *
find_mark(Page meta, Oid indexid)
{
	OtherMark  *all = NULL;

	for (int i = 0; i < count_marks(meta); i++)
	{
		OtherMark  *mark = mark_at(meta, i);

		if (mark->indexid == indexid)
			return mark;
		if (!OidIsValid(mark->indexid))
			all = mark;
	}
	return all;
}

static MarkState
state_of(const OtherMark *mark)
{
	return mark == NULL ? MARK_NONE :
		FullTransactionIdIsValid(mark->since) ? MARK_WAITS : MARK_TAKES;
}

static pg_noinline MarkState
look_at_mark(Relation undorel, Oid indexid)
{
	bool		may_come = inplace_update_under_others || RecoveryInProgress();
	Buffer		meta;
	MarkState	state;

	AssertNoPageLock();
	meta = ReadBuffer(undorel, UNDO_META_BLOCK);
	LockBuffer(meta, BUFFER_LOCK_SHARE);
	state = state_of(find_mark(BufferGetPage(meta), indexid));
	UnlockReleaseBuffer(meta);
	if (state != MARK_NONE || !may_come)
		note_known(undorel, indexid, state);
	return state;
}

/* may the xid mean nothing any more? */
static bool
is_long_ago(FullTransactionId since, FullTransactionId next)
{
	return U64FromFullTransactionId(next) - U64FromFullTransactionId(since) >
		MaxTransactionId / 4;
}

/*
 * May rows have been updated so under the index?  No page is locked.  Of a temporary table only its
 * session's own setting tells.
 */
bool
inplace_other_marked(char persistence, Oid indexid)
{
	Relation	undorel;
	KnownMark  *mark;

	if (persistence == RELPERSISTENCE_TEMP)
		return inplace_update_under_others;
	undorel = UndoRelGet(UNDO_LOGGED, true);
	if (undorel == NULL)
		return false;
	mark = find_known(undorel, indexid);
	return (mark != NULL ? mark->state : look_at_mark(undorel, indexid)) != MARK_NONE;
}

/*
 * The same question by a scan of a GiST index that is about to return its first row.  If there is no
 * mark the index takes no updates until the scan is ended, by inplace_unmarked_end(), or the
 * transaction is.
 */
bool
inplace_other_marked_for_scan(char persistence, Oid indexid, UnmarkedScan *scan)
{
	Relation	undorel;
	KnownMark  *mark = NULL;

	if (persistence == RELPERSISTENCE_TEMP)
		return inplace_update_under_others;
	undorel = UndoRelGet(UNDO_LOGGED, true);
	if (undorel != NULL)
		mark = find_known(undorel, indexid);
	if (mark != NULL)
		return mark->state != MARK_NONE;
	inplace_unmarked_begin(scan, indexid);
	if (undorel == NULL || look_at_mark(undorel, indexid) == MARK_NONE)
		return false;
	inplace_unmarked_end(scan);
	return true;
}

/* a copy of the mark of such an index, or of the one for all others; false if there is none */
static bool
read_mark(Oid indexid, OtherMark *copy)
{
	Relation	undorel = UndoRelGet(UNDO_LOGGED, true);
	Buffer		meta;
	OtherMark  *mark;

	if (undorel == NULL)
		return false;
	AssertNoPageLock();
	meta = ReadBuffer(undorel, UNDO_META_BLOCK);
	LockBuffer(meta, BUFFER_LOCK_SHARE);
	mark = find_mark(BufferGetPage(meta), indexid);
	if (mark != NULL)
		*copy = *mark;
	UnlockReleaseBuffer(meta);
	return mark != NULL;
}

/*
 * Does an index of a table that is not temporary take updates, or may it begin to while a scan is
 * there?  That is registered already, and its snapshot taken.  On a standby nobody asks who is
 * registered: snapshots are ended to which the mark's xid is running.  No page is locked.
 */
bool
inplace_other_may_take(Oid indexid, Snapshot snapshot)
{
	OtherMark	mark;

	if (!read_mark(indexid, &mark))
		return false;
	if (!FullTransactionIdIsValid(mark.since))
		return true;
	return RecoveryInProgress() &&
		(is_long_ago(mark.since, ReadNextFullTransactionId()) ||
		 TransactionIdPrecedes(XidFromFullTransactionId(mark.since), snapshot->xmin));
}

/*
 * Has the index a mark that is not for others as well?  No page is locked.
 */
bool
inplace_other_has_own_mark(Oid indexid)
{
	OtherMark	mark;

	return read_mark(indexid, &mark) && mark.indexid == indexid;
}

/*
 * Does the index take updates, as far as this process knows?  A page may be locked.
 */
bool
inplace_other_known_taking(Relation table, Oid indexid)
{
	KnownMark  *mark;

	if (RelationUsesLocalBuffers(table))
		return true;
	mark = find_known(UndoRelGet(UNDO_LOGGED, false), indexid);
	return mark != NULL && mark->state == MARK_TAKES;
}

/* in a critical section */
static OtherMark *
add_mark(Page meta, Oid indexid, bool waits, FullTransactionId xid)
{
	int			n = count_marks(meta);
	OtherMark  *mark = mark_at(meta, n);
	UndoPageSpecial *special = UndoPageGetSpecial(meta);

	memset(mark, 0, sizeof(OtherMark));
	mark->indexid = n == MAX_MARKS - 1 ? InvalidOid : indexid;
	mark->since = waits || !OidIsValid(mark->indexid) ? xid : InvalidFullTransactionId;
	((PageHeader) meta)->pd_lower += sizeof(OtherMark);
	UndoVersionAdd(&special->version, UNDO_HAS_OTHER_KEYS);
	return mark;
}

/*
 * Mark the index if it has none.  Returns what the mark is then.
 */
static OtherMark
see_to_mark(Relation undorel, Relation table, Oid indexid, bool waits)
{
	FullTransactionId xid = GetTopFullTransactionId();
	Buffer		meta = ReadBuffer(undorel, UNDO_META_BLOCK);
	OtherMark  *mark;
	OtherMark	copy;
	bool		added = false;

	LockBuffer(meta, BUFFER_LOCK_SHARE);
	mark = find_mark(BufferGetPage(meta), indexid);
	if (mark == NULL)
	{
		LockBuffer(meta, BUFFER_LOCK_UNLOCK);
		LockBuffer(meta, BUFFER_LOCK_EXCLUSIVE);
		mark = find_mark(BufferGetPage(meta), indexid);
	}
	if (mark == NULL)
	{
		START_CRIT_SECTION();
		mark = add_mark(BufferGetPage(meta), indexid, waits, xid);
		MarkBufferDirty(meta);
		log_newpage_buffer(meta, true);
		END_CRIT_SECTION();
		added = true;
	}
	copy = *mark;
	UnlockReleaseBuffer(meta);

	/*
	 * Have all sessions plan anew what they have planned without the mark.
	 * They hear of it at once, since the mark is there however the
	 * transaction ends.  The transaction's own messages are for standbys.
	 */
	if (added && !OidIsValid(copy.indexid))
	{
		inplace_forget_relcache_now(InvalidOid, false);
		CacheInvalidateRelcacheAll();
	}
	else if (added && waits)
	{
		inplace_forget_relcache_now(RelationGetRelid(table), false);
		CacheInvalidateRelcache(table);
	}
	return copy;
}

/*
 * May queries of standbys lose their snapshots, if the index begins to take updates?
 */
static bool
standbys_are_concerned(void)
{
	TransactionId xmin;
	TransactionId catalog_xmin;

	ProcArrayGetReplicationSlotXmin(&xmin, &catalog_xmin);
	return TransactionIdIsValid(xmin) || UndoStandbyConnected();
}

/*
 * Have the index take updates; false if a scan is registered.  (A mark that has waited for long may
 * be so old that its xid means nothing to standbys.)
 */
static bool
end_waiting(Relation undorel, Oid indexid)
{
	FullTransactionId next = ReadNextFullTransactionId();
	Buffer		meta = ReadBuffer(undorel, UNDO_META_BLOCK);
	OtherMark  *mark;
	bool		ended = true;

	LockBuffer(meta, BUFFER_LOCK_EXCLUSIVE);
	mark = find_mark(BufferGetPage(meta), indexid);
	Assert(mark != NULL);
	if (!FullTransactionIdIsValid(mark->since))
		;						/* somebody else has done it */
	else if (inplace_unmarked_any(mark->indexid))
		ended = false;
	else
	{
		TransactionId xid = XidFromFullTransactionId(mark->since);

		if (is_long_ago(mark->since, next))
			xid = InvalidTransactionId;
		START_CRIT_SECTION();
		mark->since = InvalidFullTransactionId;
		MarkBufferDirty(meta);
		inplace_log_others_begin(undorel, meta, xid);
		END_CRIT_SECTION();
	}
	UnlockReleaseBuffer(meta);
	return ended;
}

/*
 * A row's key in the index is about to be updated; the transaction has an xid.  May it be in
 * place?  No page is locked.  "waits": what a scan does depends on the mark.
 */
bool
inplace_other_start_taking(Relation table, Oid indexid, bool waits)
{
	Relation	undorel;
	OtherMark	mark;

	AssertNoPageLock();
	if (inplace_other_known_taking(table, indexid))
		return true;
	undorel = UndoRelGet(UNDO_LOGGED, false);
	mark = see_to_mark(undorel, table, indexid, waits);
	if (FullTransactionIdIsValid(mark.since))
	{
		/* (asked without the lock first, for the sake of those who wait long) */
		if (inplace_unmarked_any(mark.indexid) ||
			(standbys_are_concerned() &&
			 !GlobalVisCheckRemovableFullXid(table, mark.since)) ||
			!end_waiting(undorel, indexid))
			return false;
	}
	note_known(undorel, indexid, MARK_TAKES);
	return true;
}

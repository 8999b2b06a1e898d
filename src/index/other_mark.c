/*-------------------------------------------------------------------------
 *
 * other_mark.c
 *	  Has a row of this database ever been updated in place under an index of another
 *	  method than inplace_btree (other_method.c)?
 *
 * Where none has, nothing is asked of these indexes by scans, by VACUUM, or by the planner.
 * Before the first such update the meta page of the undo of permanent tables gets
 * another format version.  It keeps it for good, since nobody knows when the last former
 * key has gone.  A library that does not know of such keys refuses that version.  Temporary tables
 * need no mark: nobody else reads them, nor does their session with another setting.
 *
 * The setting does not change while the server runs.  So where it is off a "no" holds as
 * long as the process lives, but on a standby, whose primary may have it on.
 *
 * A standby's scan that has begun under a "no" has not noted what it returned.  So the record
 * after that of the mark conflicts with all snapshots that there were: their xmin is not
 * beyond the xid of who sets the mark.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "index/other_mark.h"
#include "index/other_method.h"
#include "undo/undo.h"
#include "undo/undorel.h"
#include "wal/log_vacuum.h"

/*
 * What this process knows, and of which undo relation.  That may be another one the next time:
 * the extension may be dropped and created again, or its creation be rolled back.
 */
static struct
{
	Oid			relid;			/* or InvalidOid */
	RelFileLocator locator;
	bool		marked;			/* else there is no mark, and none will come */
}			known;

static bool
is_known(Relation undorel)
{
	return known.relid == undorel->rd_id &&
		RelFileLocatorEquals(known.locator, RelLocator(undorel));
}

static void
note_known(Relation undorel, bool marked)
{
	known.relid = undorel->rd_id;
	known.locator = RelLocator(undorel);
	known.marked = marked;
}

static bool
page_is_marked(Buffer meta)
{
	return UndoPageGetSpecial(BufferGetPage(meta))->version ==
		INPLACE_FORMAT_VERSION_OTHERS;
}

static pg_noinline bool
look_at_mark(Relation undorel)
{
	bool		may_come = inplace_update_under_others || RecoveryInProgress();
	Buffer		meta;
	bool		marked;

	AssertNoPageLock();
	meta = ReadBuffer(undorel, UNDO_META_BLOCK);
	LockBuffer(meta, BUFFER_LOCK_SHARE);
	marked = page_is_marked(meta);
	UnlockReleaseBuffer(meta);
	if (marked || !may_come)
		note_known(undorel, marked);
	return marked;
}

/*
 * May rows of the table have been updated so?  No page is locked.  Of a temporary table only its
 * session's own setting tells.
 */
bool
inplace_others_marked(char persistence)
{
	Relation	undorel;

	if (persistence == RELPERSISTENCE_TEMP)
		return inplace_update_under_others;
	undorel = UndoRelGet(UNDO_LOGGED, true);
	if (undorel == NULL)
		return false;
	return is_known(undorel) ? known.marked : look_at_mark(undorel);
}

/*
 * Does this process know of the mark, or is none needed?  A page may be locked.
 */
bool
inplace_others_known_marked(Relation table)
{
	if (RelationUsesLocalBuffers(table))
		return true;
	return is_known(UndoRelGet(UNDO_LOGGED, false)) && known.marked;
}

/*
 * An update of a row is about to be made that may be the first; the transaction has an xid.  No page is
 * locked.
 */
void
inplace_mark_others(void)
{
	Relation	undorel = UndoRelGet(UNDO_LOGGED, false);
	Buffer		meta;

	if (likely(is_known(undorel) && known.marked) || look_at_mark(undorel))
		return;
	meta = ReadBuffer(undorel, UNDO_META_BLOCK);
	LockBuffer(meta, BUFFER_LOCK_EXCLUSIVE);
	if (!page_is_marked(meta))
	{
		START_CRIT_SECTION();
		UndoPageGetSpecial(BufferGetPage(meta))->version = INPLACE_FORMAT_VERSION_OTHERS;
		MarkBufferDirty(meta);
		inplace_log_others_mark(undorel, meta, GetTopTransactionId());
		END_CRIT_SECTION();
	}
	UnlockReleaseBuffer(meta);
	note_known(undorel, true);
}

/*-------------------------------------------------------------------------
 *
 * dirty.c
 *	  Has a row that was found by an index entry, for SnapshotDirty, the key that it was
 *	  looked for by?
 *
 * That is asked of rows that may have stale entries (index/index.h), by nbtree's
 * unique check, which has the index page locked, and by scans (ON CONFLICT, exclusion
 * constraints, the apply worker), which have not.
 *
 * The version that will be left of the row is the newest, or if that is not
 * committed the one before: either will do, for the caller to wait for.  It waits
 * for the maker of the version that has the key, if that has not ended: other
 * changes of the row, by the same transaction, may be those of its parents,
 * which go on when it is rolled back to a savepoint.  Of several such versions it is
 * the first, as on heap.  The others may be of subtransactions that are over, and a
 * wait for one of these lasts as long as the whole transaction (rowcheck.c).
 *
 * What is at hand is compared while the row's page is locked.  Where that does not settle
 * it, the versions are copied, and the rest comes when the page is not locked any more.  A
 * scan computes then what has to be computed; a unique check leaves nbtree for
 * that, unless it has done so before (index/insertion.c).
 *
 * Aborted versions are not computed, nor older ones than those.  The backend that made
 * any other had its key computed, so if that fails here it is for a reason that the
 * caller should know.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "index/dirty.h"
#include "index/entry.h"
#include "index/index_fetch.h"
#include "index/insertion.h"
#include "index/key.h"
#include "index/version_keys.h"
#include "page/tuple.h"
#include "row/visibility.h"
#include "row/walk.h"

typedef struct DirtyVersion
{
	struct DirtyVersion *older;
	InplaceTupleHeader tuple;	/* a copy */
	Size		len;
	bool		in_progress;
	bool		matches;		/* for certain */
} DirtyVersion;

/* if it has not ended */
static void
wait_for_maker(Snapshot snapshot, TransactionId maker)
{
	if (!TransactionIdIsValid(maker))
		return;
	snapshot->xmin = maker;
	snapshot->xmax = InvalidTransactionId;
}

static KeyMatch
dirty_version_compare(Relation rel, const FetchedEntry *entry,
					  InplaceTupleHeader tup, const ItemPointerData *tid)
{
	if (entry->itup == NULL)
		return inplace_new_key_compare(inplace_insertion, tup, tid);
	return inplace_entry_compare(rel, entry->index, entry->itup, tup, tid);
}

static DirtyVersion *
copy_dirty_version(const ChainWalk *walk, XidStatus status, bool matches)
{
	DirtyVersion *v = palloc(sizeof(DirtyVersion));

	v->older = NULL;
	v->tuple = palloc(walk->len);
	memcpy(v->tuple, walk->tuple, walk->len);
	v->len = walk->len;
	v->in_progress = status == XID_IN_PROGRESS;
	v->matches = matches;
	return v;
}

/* the page is locked; KEY_UNSURE: it depends on the versions */
KeyMatch
inplace_dirty_compare(Relation rel, const FetchedEntry *entry, BlockNumber blk,
					  OffsetNumber off, InplaceTupleHeader tup, Size len,
					  Snapshot snapshot, DirtyVersion **versions)
{
	static CopyWalk copies;		/* large, and never in use twice */
	ChainWalk  *walk;
	DirtyVersion **end = versions;
	ItemPointerData tid;
	XidStatus	status;
	TransactionId maker = InvalidTransactionId;
	bool		found = false;

	/* a check of another table may have been begun by an operator class */
	if (entry->itup == NULL &&
		(inplace_insertion == NULL || !inplace_insertion->unique_check ||
		 inplace_insertion->table != rel))
		return KEY_MATCHES;
	walk = inplace_walk_begin(&copies, rel, blk, off, tup, len);
	ItemPointerSet(&tid, blk, off);
	do
	{
		KeyMatch	match;

		status = inplace_copied_xid_status(rel, walk->tuple, blk, off);
		match = status == XID_ABORTED || (found && status != XID_IN_PROGRESS) ||
			HdrIsEvicted(walk->tuple) ?
			KEY_IS_OTHER : dirty_version_compare(rel, entry, walk->tuple, &tid);

		if (match == KEY_MATCHES && *versions == NULL)
		{
			found = true;
			if (status == XID_IN_PROGRESS)
				maker = walk->tuple->t_xid;
		}
		else if (match != KEY_IS_OTHER && !found)
		{
			*end = copy_dirty_version(walk, status, match == KEY_MATCHES);
			end = &(*end)->older;
		}
	} while (status != XID_COMMITTED && status != XID_CURRENT &&
			 inplace_walk_back(walk, InvalidTransactionId));

	if (!found)
		return *versions == NULL ? KEY_IS_OTHER : KEY_UNSURE;
	wait_for_maker(snapshot, maker);
	return KEY_MATCHES;
}

/*
 * The key of one of these, in a unique check of nbtree's, which has the index page locked: has
 * it been computed?  If not, it will be.
 */
static KeyMatch
checked_version_matches(Insertion *ins, DirtyVersion *v, const ItemPointerData *tid)
{
	VersionKey *vk;

	if (v->matches)
		return KEY_MATCHES;
	vk = version_keys_find(&ins->keys, tid, v->tuple, v->len);
	if (vk == NULL || (vk->key == KEY_UNKNOWN && !vk->fetch))
	{
		version_keys_want(&ins->keys, tid, v->tuple, v->len, true);
		return KEY_UNSURE;
	}
	if (vk->key == KEY_UNKNOWN)
	{
		ins->failed = vk;
		return KEY_UNSURE;
	}
	return inplace_new_key_matches(ins, vk) ? KEY_MATCHES : KEY_IS_OTHER;
}

/* leave nbtree; the check comes again */
static void
let_go_of_check(void)
{
	Insertion  *ins = inplace_insertion;

	if (!inplace_can_let_go(ins))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot check the key of index \"%s\" from code that is run with a page locked",
						RelationGetRelationName(ins->index)),
				 errhint("A function of an operator class must not change tables.")));
	inplace_let_go(ins);
}

static void
free_dirty_versions(DirtyVersion *v)
{
	while (v != NULL)
	{
		DirtyVersion *older = v->older;

		pfree(v->tuple);
		pfree(v);
		v = older;
	}
}

/*
 * The table's page is not locked any more, nor pinned, for this may not come back; the
 * index's is locked, in a unique check of nbtree's.
 */
bool
inplace_dirty_settle(Relation rel, const FetchedEntry *entry, BlockNumber blk,
					 OffsetNumber off, Snapshot snapshot, DirtyVersion *versions)
{
	bool		unsure = false;
	bool		found = false;
	TransactionId maker = InvalidTransactionId;
	ItemPointerData tid;

	ItemPointerSet(&tid, blk, off);
	for (DirtyVersion *v = versions; v != NULL; v = v->older)
	{
		KeyMatch	match;

		if (found && !v->in_progress)
			break;
		if (entry->itup == NULL)
			match = checked_version_matches(inplace_insertion, v, &tid);
		else
			match = v->matches ||
				inplace_entry_matches_tuple(rel, entry->index, entry->itup,
											v->tuple, &tid) ? KEY_MATCHES : KEY_IS_OTHER;
		if (match == KEY_UNSURE)
		{
			/* whom to wait for is known, if not the first of them */
			if (found)
				break;
			unsure = true;
		}
		if (match == KEY_MATCHES)
		{
			found = true;
			if (v->in_progress)
				maker = v->tuple->t_xid;
		}
	}
	if (found && !unsure)
		wait_for_maker(snapshot, maker);
	free_dirty_versions(versions);
	if (unsure)
		let_go_of_check();
	return found && !unsure;
}

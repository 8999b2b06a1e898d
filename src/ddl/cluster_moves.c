/*-------------------------------------------------------------------------
 *
 * cluster_moves.c
 *	  The links of moved rows, when a table is rewritten.
 *
 * A transaction whose snapshot is older than a rewrite may come upon a row that
 * was moved after its snapshot was taken.  It must find that it was updated,
 * not deleted: the errors are different ones, and FOR KEY SHARE (a foreign key's
 * check) goes on to the new row if no key has changed.  So the new table's rows
 * are linked like those of the old one.
 *
 * Which rows are moved to is found before anything is copied, from those that
 * moved and are still seen at their old place by somebody; the new TID of each
 * is noted when it is written.  A deletion that leads to a row not written yet
 * waits for the end: until then its row stands undeleted in the new table,
 * which nobody else can see.
 *
 * That takes one more look at the pages that are not all-visible, and memory in
 * proportion to the moved rows still seen, but not to other rows.  Where nobody has a
 * snapshot from before, there is nothing to look for.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/visibilitymap.h"
#include "access/xact.h"
#include "ddl/cluster.h"
#include "ddl/cluster_push.h"
#include "page/page.h"
#include "page/tuple.h"
#include "row/visibility.h"
#include "row/walk.h"
#include "storage/lmgr.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"


/* a row that another one has moved to */
typedef struct MovedTo
{
	ItemPointerData old_tid;	/* key */
	ItemPointerData new_tid;	/* invalid until it has been written */
} MovedTo;

/* the deletion of a row whose new place was not known yet */
typedef struct PendingMove
{
	ItemPointerData tid;		/* in the new table */
	MovedTo    *to;
	InplaceTupleHeaderData hdr; /* of the deletion */
} PendingMove;

struct MoveLinks
{
	Relation	old;
	HTAB	   *targets;
	PendingMove *pending;
	Size		npending;
	Size		maxpending;
};

/*
 * Can anybody have moved a row that somebody else still sees where it was?  Not
 * if no transaction is older than ours, none has come after it, and ours has
 * changed nothing here.  A younger one may have moved rows before we had the
 * table locked: a CLUSTER in a transaction block may have had an xid for long, and
 * where standbys are told of locks any rewrite gets its xid before it waits for
 * its lock.  The oldest xmin then is our own xid, whether or not there is a
 * snapshot from before the move.
 */
static bool
may_have_moves(Relation old, TransactionId oldest_xmin)
{
	TransactionId own = GetTopTransactionIdIfAny();
	TransactionId next = own;

	if (!TransactionIdIsValid(own) ||
		TransactionIdPrecedes(oldest_xmin, own) ||
		CheckRelationLockedByMe(old, RowExclusiveLock, false))
		return true;
	TransactionIdAdvance(next);
	return !TransactionIdEquals(next, ReadNextTransactionId());
}

MoveLinks *
inplace_cluster_find_moves(Relation old, TransactionId oldest_xmin,
						   ClusterLoadBlock load, void *load_state)
{
	BlockNumber nblocks;
	BlockNumber blk;
	BufferAccessStrategy strategy;
	Buffer		vmbuffer = InvalidBuffer;
	HASHCTL		ctl = {0};
	MoveLinks  *links;

	if (!may_have_moves(old, oldest_xmin))
		return NULL;

	links = palloc0(sizeof(MoveLinks));
	links->old = old;
	ctl.keysize = sizeof(ItemPointerData);
	ctl.entrysize = sizeof(MovedTo);
	ctl.hcxt = CurrentMemoryContext;
	links->targets = hash_create("inplace moved rows", 128, &ctl,
								 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);

	nblocks = RelationGetNumberOfBlocks(old);
	strategy = GetAccessStrategy(BAS_BULKREAD);
	for (blk = 0; blk < nblocks; blk++)
	{
		Buffer		buffer;
		Page		page;
		OffsetNumber off;
		OffsetNumber maxoff;

		CHECK_FOR_INTERRUPTS();
		if (VM_ALL_VISIBLE(old, blk, &vmbuffer))
			continue;

		buffer = ReadBufferExtended(old, MAIN_FORKNUM, blk, RBM_NORMAL,
									strategy);
		page = load(load_state, buffer, blk);
		maxoff = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);
		for (off = FirstOffsetNumber; off <= maxoff; off++)
		{
			InplaceTupleHeader tup;
			ItemPointerData tid;
			ItemPointerData to;
			MovedTo    *entry;
			bool		found;

			if (!ItemIdIsNormal(PageGetItemId(page, off)))
				continue;
			tup = PageGetTupleAt(page, off);
			if (!(tup->t_infomask & IP_MOVED) ||
				TransactionIdPrecedes(HdrXid(tup), oldest_xmin))
				continue;
			TidSet(&tid, blk, off);
			if (!inplace_moved_to(old, tup, &tid, &to))
				continue;
			entry = hash_search(links->targets, &to, HASH_ENTER, &found);
			ItemPointerSetInvalid(&entry->new_tid);
		}
		ReleaseBuffer(buffer);
	}
	FreeAccessStrategy(strategy);
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);

	if (hash_get_num_entries(links->targets) == 0)
	{
		inplace_cluster_free_moves(links);
		return NULL;
	}
	return links;
}

bool
inplace_cluster_is_moved_to(MoveLinks *links, ItemPointer old_tid)
{
	return links != NULL &&
		hash_search(links->targets, old_tid, HASH_FIND, NULL) != NULL;
}

void
inplace_cluster_note_row(MoveLinks *links, ItemPointer old_tid,
						 ItemPointer new_tid)
{
	MovedTo    *entry;

	if (links == NULL)
		return;
	entry = hash_search(links->targets, old_tid, HASH_FIND, NULL);
	if (entry)
		entry->new_tid = *new_tid;
}

/*
 * Push the deletion of the row at tid, which has been moved to "to".
 */
static void
push_move(Relation new, ItemPointer tid, const InplaceTupleHeaderData *hdr,
		  ItemPointer to)
{
	Buffer		buffer = ReadBuffer(new, ItemPointerGetBlockNumber(tid));
	Page		page;
	ItemId		lp;
	InplaceTupleHeader deleted;
	Size		len;

	/* the deletion has the row as it stands there */
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = RowPage(new, buffer);
	lp = PageGetItemId(page, ItemPointerGetOffsetNumber(tid));
	len = RowLength((InplaceTupleHeader) PageGetItem(page, lp), lp);
	deleted = palloc(len);
	memcpy(deleted, PageGetItem(page, lp), len);
	UnlockReleaseBuffer(buffer);

	deleted->t_xid = hdr->t_xid;
	deleted->t_infomask = hdr->t_infomask | (to ? IP_MOVED : 0);
	deleted->t_tag = hdr->t_tag;
	HdrSetUndoPtr(deleted, InvalidUndoPtr);
	inplace_push_version_raw(new, tid, deleted, len, to, NULL);
	pfree(deleted);
}

bool
inplace_cluster_delete_moved(MoveLinks *links, Relation new,
							 InplaceTupleHeader old_tup, ItemPointer old_tid,
							 const InplaceTupleHeaderData *hdr,
							 ItemPointer new_tid)
{
	ItemPointerData to;
	MovedTo    *entry = NULL;
	PendingMove *p;

	if (links != NULL && (old_tup->t_infomask & IP_MOVED) &&
		inplace_moved_to(links->old, old_tup, old_tid, &to))
		entry = hash_search(links->targets, &to, HASH_FIND, NULL);
	if (entry == NULL)
		return false;

	if (ItemPointerIsValid(&entry->new_tid))
	{
		push_move(new, new_tid, hdr, &entry->new_tid);
		return true;
	}

	if (links->npending >= links->maxpending)
	{
		MemoryContext cxt = GetMemoryChunkContext(links);

		links->maxpending = Max(2 * links->maxpending, 64);
		if (links->pending == NULL)
			links->pending = MemoryContextAlloc(cxt, links->maxpending *
												sizeof(PendingMove));
		else
			links->pending = repalloc_huge(links->pending, links->maxpending *
										   sizeof(PendingMove));
	}
	p = &links->pending[links->npending++];
	p->tid = *new_tid;
	p->to = entry;
	p->hdr = *hdr;
	return true;
}

void
inplace_cluster_finish_moves(MoveLinks *links, Relation new)
{
	if (links == NULL)
		return;
	for (Size i = 0; i < links->npending; i++)
	{
		PendingMove *p = &links->pending[i];

		CHECK_FOR_INTERRUPTS();

		/*
		 * A row that its mover deleted again is seen by nobody, and has not
		 * been copied: then this is a deletion and no more.
		 */
		push_move(new, &p->tid, &p->hdr,
				  ItemPointerIsValid(&p->to->new_tid) ? &p->to->new_tid : NULL);
	}
	inplace_cluster_free_moves(links);
}

void
inplace_cluster_free_moves(MoveLinks *links)
{
	hash_destroy(links->targets);
	if (links->pending)
		pfree(links->pending);
	pfree(links);
}

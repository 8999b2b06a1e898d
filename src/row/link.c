/*-------------------------------------------------------------------------
 *
 * link.c
 *	  Links: ways round the older versions of a row.
 *
 * Under a snapshot that is held, the versions of a row that is updated over
 * and over again pile up, and a reader with that snapshot would have to go
 * back through all of them.  Every UNDO_LINK_SPACING versions there are
 * therefore links beside the chain, which lead further back in one step, so
 * that any version is found in a number of steps that grows with the logarithm
 * of the number of versions.  Nobody has to know which snapshots there are.
 *
 * A link is an undo record of its own (UNDO_LINK), put between a version and
 * the record of the change that made it:
 *
 *	  newer change -> version P -> link -> link -> change that made P -> ...
 *						  |          |       +-> the version with links before P
 *						  |          +-> one further back
 *
 * It has the header of the version that it leads to, the delta that makes
 * that version from P, and the xid that replaced that version.
 *
 * Which readers may follow
 *	  P and all the versions down to the one that the link leads to are
 *	  committed, by transactions that had ended when the link was put, and
 *	  each was put on top of the one below after that one's transaction had
 *	  ended, or by the same transaction.  So for an MVCC snapshot the versions
 *	  fall in two: the newer ones, which it does not see, and the older, which
 *	  it does.  If it does not see the transaction that replaced the version
 *	  the link leads to, then it sees none of those that are passed over; so
 *	  the version that it sees is that one, or an older one.  On a standby the
 *	  order of the commit records says the same.
 *	  Its own transaction's changes, which are seen by command and not by
 *	  xid, cannot be among them: they would have to have ended.
 *	  Serializable transactions have to be found in conflict with the transaction
 *	  that replaced the version they see, or that made the row.  The link has the
 *	  former, and the oldest version, where links end, has the latter.  Why that
 *	  is enough stands in squeeze.c.
 *	  A reader without an MVCC snapshot walks step by step: UndoFetch passes over
 *	  links.  So do those of large values, and chunks in TOAST tables get none.
 *
 * Invariants
 *	  1. Links are put under a committed version only, by the transaction that
 *		 replaces it.  What is under a version in progress cannot be linked
 *		 past, and is at most INPLACE_MAX_TAG versions.
 *	  2. A link is followed only by a reader that does not see P.  Its extent is
 *		 kept as long as there may be such a reader, for P's xid counts in the
 *		 extent's newest_xid.  That holds whatever becomes of the transaction that
 *		 wrote it: if that is rolled back P is on the page again, with its links.
 *	  3. What a link leads to is still there for whoever may follow it:
 *		 neither that version's own record, nor any between, can have been
 *		 given back, as the snapshot does not see them.
 *	  4. The older end of the chain may have been given back, or be another
 *		 row's by now, when a link to it is put.  The backend that puts the link
 *		 need not notice: every snapshot that would follow the link has gone by
 *		 then.
 *	  5. Links carry no lock, and are of no interest to a rollback.
 *
 * Which links
 *	  The versions of a row that have links are numbered from 1.  Number n
 *	  has a link to number n - 1 (number 0 is the oldest version there was when
 *	  number 1 was made), and one to n - 4^k for each k > 0 with 4^k dividing
 *	  n.  The farthest comes first.
 *
 * When
 *	  Where every transaction makes one version of the row, links are put by the
 *	  one whose version's tag is a multiple of UNDO_LINK_SPACING.  Where
 *	  transactions make several, the version with that tag may always be in the
 *	  middle of one.  So about every second update looks whether the transaction
 *	  before it made several versions, and puts links if the last ones are far
 *	  enough behind.  If subtransactions made those versions this is not seen, so
 *	  about every sixteenth update looks for the last links in any case.
 *
 * The links go to undo before the update itself does, with a WAL record of
 * their own: if the update then fails, nothing leads to them.
 *
 * Lock order: the row's page is locked exclusively; undo pages are locked one
 * at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "common/hashfn.h"
#include "page/compare.h"
#include "page/delta.h"
#include "page/tuple.h"
#include "row/link.h"
#include "row/squeeze.h"
#include "row/walk.h"
#include "undo/append.h"
#include "undo/holders.h"
#include "undo/record.h"
#include "undo/undo.h"
#include "utils/snapmgr.h"
#include "wal/log.h"

#ifndef UNDO_LINK_SPACING
#define UNDO_LINK_SPACING	25
#endif

/* a link that passes over fewer versions is not worth its bytes */
#define UNDO_LINK_MIN_STEPS	(UNDO_LINK_SPACING / 3 + 1)

StaticAssertDecl(INPLACE_MAX_TAG % UNDO_LINK_SPACING == 0,
				 "links would not be evenly spaced");
StaticAssertDecl(sizeof(UndoLink) == 28, "UndoLink must have no padding");

/*
 * How hard to look for a reason to put links.  By chance, for any regular
 * choice of transactions may always meet the same ones.
 */
typedef enum LinkEffort
{
	LINK_NONE,
	LINK_IF_SEVERAL,			/* if the version is not its transaction's
								 * only one */
	LINK_IF_FAR					/* if there are none nearby */
} LinkEffort;

/*
 * The way back from the version that gets the links.
 */
typedef struct LinkWalk
{
	ChainWalk	walk;
	LinkEffort	effort;
	TransactionId first_xid;	/* that of the version it began at */
	int			steps;
	bool		no_links;		/* there is a reason to put none */
	uint32		seq;			/* number among those with links, or 0 */
	uint32		target;			/* number to go to along links */
	uint8		level;			/* of the link taken last */
	bool		keys;			/* a version passed over has changed a key */
	RowImage	space[2];
	/* what is being put together */
	RowDiff		diff;
	char		payload[SizeOfUndoLink + BLCKSZ * 2];
	char		undo[UNDO_MAX_RECORD];
	Size		undo_len;
	Size		starts[UNDO_LINK_MAX_LEVEL + 1];
	int			nlinks;
} LinkWalk;

static LinkEffort
link_effort(TransactionId xid, VersionTag tag)
{
	uint32		chance = murmurhash32(xid);

	if (TagNumber(tag) % UNDO_LINK_SPACING == 0 || chance % 16 == 0)
		return LINK_IF_FAR;
	return chance % 2 == 0 ? LINK_IF_SEVERAL : LINK_NONE;
}

/*
 * Does the version lead to a record that anybody can need?
 */
static inline bool
leads_on(const ChainWalk *walk)
{
	return HdrHasUndo(&walk->hdr) && !(walk->hdr.t_infomask & IP_FROZEN);
}

/*
 * Go back; what is left behind may have changed a key.
 */
static bool
go_back(LinkWalk *w, WalkCallback choose)
{
	bool		keys = (w->walk.hdr.t_infomask & IP_KEYS_UPDATED) != 0;

	if (!inplace_walk_on(&w->walk, true, choose, w))
		return false;
	w->keys |= keys;
	return true;
}

/*
 * Step by step, to the first link.
 */
static WalkChoice
choose_step(ChainWalk *walk, void *arg)
{
	LinkWalk   *w = arg;

	if (walk->rec.hdr.ur_type == UNDO_LINK)
	{
		UndoLink	link;
		Size		len;

		(void) UndoGetLink(&walk->rec, &link, &len);
		w->seq = link.ul_seq;
		return WALK_STOP;
	}
	if (walk->rec.hdr.ur_type == UNDO_UPDATE &&
		!(w->effort == LINK_IF_SEVERAL && w->steps == 0 &&
		  walk->rec.old.t_xid != w->first_xid))
		return WALK_GO;
	w->no_links = true;
	return WALK_STOP;
}

/*
 * Walk back, step by step, to a version with links or to the oldest.  Returns
 * the number of steps, -1 if there is a reason to put no links.
 */
static int
walk_to_links(LinkWalk *w, LinkEffort effort)
{
	ChainWalk  *walk = &w->walk;
	GlobalVisState *vistest = GlobalVisTestFor(walk->rel);

	w->effort = effort;
	w->first_xid = walk->hdr.t_xid;
	w->steps = 0;
	w->no_links = false;
	w->seq = 0;
	while (TransactionIdIsNormal(HdrXid(&walk->hdr)) && /* not damaged */
		   !HdrIsSeenByAll(vistest, &walk->hdr) &&
		   leads_on(walk) && go_back(w, choose_step))
		w->steps++;
	return w->no_links ? -1 : w->steps;
}

/*
 * Of the links of version w->seq the farthest that does not lead beyond w->target.
 */
static WalkChoice
choose_link(ChainWalk *walk, void *arg)
{
	LinkWalk   *w = arg;
	UndoLink	link;
	Size		len;

	if (walk->rec.hdr.ur_type != UNDO_LINK)
		return WALK_STOP;
	(void) UndoGetLink(&walk->rec, &link, &len);
	if (link.ul_seq != w->seq || UndoLinkLevel(&link) > UNDO_LINK_MAX_LEVEL)
		return WALK_STOP;
	w->level = link.ul_level;
	return UndoLinkSpan(UndoLinkLevel(&link)) <= w->seq - w->target ?
		WALK_GO : WALK_PASS;
}

/*
 * Go on along links from number w->seq to number "seq"; false if the way is
 * not there any more.
 */
static bool
follow_links(LinkWalk *w, uint32 seq)
{
	ChainWalk  *walk = &w->walk;

	/* the record that the walk so far ended at is read again */
	memset(&walk->guard, 0, sizeof(walk->guard));
	w->target = seq;
	while (w->seq > seq)
	{
		if (!leads_on(walk) || !go_back(w, choose_link))
			return false;
		w->keys |= (w->level & UNDO_LINK_KEYS) != 0;
		w->seq -= UndoLinkSpan(w->level & ~UNDO_LINK_KEYS);
	}
	return true;
}

/*
 * Build the link from tup to the version we are at, behind those built
 * already; false if there is no room for it.
 */
static bool
add_link(LinkWalk *w, const InplaceTupleHeaderData *base,
		 InplaceTupleHeader tup, Size len, uint32 seq, int level)
{
	const ChainWalk *walk = &w->walk;
	UndoLink	link;
	Size		payload_len;

	if (!inplace_diff_rows(RelationGetDescr(walk->rel), walk->tuple, walk->len,
						   tup, len, &w->diff))
		return false;
	payload_len = SizeOfUndoLink + delta_size(&w->diff.edits, true);
	if (w->undo_len + SizeOfUndoRecordHeader + SizeOfInplaceTupleHeader +
		payload_len > UNDO_MAX_RECORD)
		return false;

	link.ul_seq = seq;
	link.ul_level = level | (w->keys ? UNDO_LINK_KEYS : 0);
	link.ul_newer_xid = walk->replaced.xid;
	link.ul_newer_cid = walk->replaced.cid;
	link.ul_hdr = walk->hdr;
	link.ul_hdr.t_infomask &= ~(IP_PADDED | IP_ABORTED);
	memcpy(w->payload, &link, SizeOfUndoLink);
	(void) delta_encode(&w->diff.edits, true,
						(char *) walk->tuple + SizeOfInplaceTupleHeader,
						(char *) tup + SizeOfInplaceTupleHeader,
						w->payload + SizeOfUndoLink);

	w->starts[w->nlinks++] = w->undo_len;
	w->undo_len += UndoBuild(w->undo + w->undo_len, UNDO_LINK,
							 GetCurrentTransactionId(), 0,
							 LocatorSpc(RelLocator(walk->rel)),
							 LocatorRel(RelLocator(walk->rel)),
							 walk->blk, walk->off, base, base, false,
							 w->payload, payload_len);
	return true;
}

/*
 * Write the links; base leads to the last of them, each to the one before,
 * the first to where base led.
 */
static void
write_links(LinkWalk *w, InplaceTupleHeader base, UndoRoom *room)
{
	UndoInsert	ui;

	UndoPrepare(w->walk.rel, room, w->undo_len, base->t_xid, &ui);
	for (int i = 0; i < w->nlinks; i++)
	{
		char	   *old = w->undo + w->starts[i] + SizeOfUndoRecordHeader;
		InplaceTupleHeaderData hdr;

		memcpy(&hdr, old, SizeOfInplaceTupleHeader);
		HdrSetUndoPtr(&hdr, HdrUndoPtr(base));
		memcpy(old, &hdr, SizeOfInplaceTupleHeader);
		HdrSetUndoPtr(base, ui.ptr + w->starts[i]);
	}

	START_CRIT_SECTION();
	UndoAppend(&ui, w->undo, w->undo_len);
	inplace_log_undo_alone(&ui, w->undo, w->undo_len);
	END_CRIT_SECTION();
	UndoRelease(&ui);
}

bool
UndoLinkIsDue(TransactionId xid, VersionTag tag)
{
	return link_effort(xid, tag) != LINK_NONE;
}

void
UndoLinkPut(Relation rel, BlockNumber block, OffsetNumber off,
			InplaceTupleHeader tup, Size len,
			const InplaceTupleHeaderData *newer, InplaceTupleHeader base,
			UndoRoom *room)
{
	static LinkWalk link_walk;	/* large, and never in use twice */
	LinkWalk   *w = &link_walk;
	LinkEffort	effort = link_effort(newer->t_xid, newer->t_tag);
	int			steps;
	uint32		seq;

	/* who looks for a version of a chunk goes step by step (chunk_read.c) */
	if (effort == LINK_NONE || rel->rd_rel->relkind == RELKIND_TOASTVALUE)
		return;
	if (effort == LINK_IF_FAR && UndoHoldersAny() &&
		UndoSqueeze(rel, block, off, tup, len, base, room))
		return;
	inplace_walk_start(&w->walk, rel, block, off, base, tup, len, w->space);
	w->walk.may_dangle = true;	/* invariant 4 */
	w->keys = false;
	w->undo_len = 0;
	w->nlinks = 0;

	steps = walk_to_links(w, effort);
	if (steps < UNDO_LINK_MIN_STEPS)
		return;
	seq = w->seq + 1;
	if (!add_link(w, base, tup, len, seq, 0))
		return;
	for (int level = 1; level <= UNDO_LINK_MAX_LEVEL; level++)
	{
		if (seq % UndoLinkSpan(level) != 0 ||
			!follow_links(w, seq - UndoLinkSpan(level)) ||
			!add_link(w, base, tup, len, seq, level))
			break;
	}
	write_links(w, base, room);
}

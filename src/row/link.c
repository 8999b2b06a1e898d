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
 *	  links.
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

typedef union RowImage
{
	char		data[BLCKSZ];
	InplaceTupleHeaderData hdr;
	double		align_double;
	int64		align_int64;
} RowImage;

/*
 * Where we are on the way back from the version that gets the links.
 */
typedef struct LinkWalk
{
	Relation	rel;
	BlockNumber block;
	OffsetNumber off;
	UndoWalkGuard guard;
	InplaceTupleHeaderData hdr;
	InplaceTupleHeader image;	/* its header does not count */
	Size		len;
	TransactionId newer_xid;	/* the xid that replaced this version */
	CommandId	newer_cid;
	uint32		seq;			/* number among those with links, or 0 */
	bool		keys;			/* a version passed over has changed a key */
	int			cur;			/* space[] in use, or -1 */
	RowImage	space[2];
	UndoRecord	rec;
	/* what is being put together */
	RowDiff		diff;
	char		payload[SizeOfUndoLink + BLCKSZ * 2];
	char		undo[UNDO_MAX_RECORD];
	Size		undo_len;
	Size		starts[UNDO_LINK_MAX_LEVEL + 1];
	int			nlinks;
} LinkWalk;

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

static LinkEffort
link_effort(TransactionId xid, VersionTag tag)
{
	uint32		chance = murmurhash32(xid);

	if (TagNumber(tag) % UNDO_LINK_SPACING == 0 || chance % 16 == 0)
		return LINK_IF_FAR;
	return chance % 2 == 0 ? LINK_IF_SEVERAL : LINK_NONE;
}

/*
 * The record that the version we are at leads to; false if it has none that
 * anybody can need.
 */
static bool
fetch(LinkWalk *w, const InplaceTupleHeaderData *hdr)
{
	if (!HdrHasUndo(hdr) || (hdr->t_infomask & IP_FROZEN))
		return false;
	if (!UndoFetchRecord(w->rel, HdrUndoPtr(hdr), w->block, w->off, hdr, true,
						 &w->rec))
		return false;
	UndoWalkCheck(&w->guard, w->rel, HdrUndoPtr(hdr), w->block, w->off);
	return true;
}

/*
 * Go to the version with this header, made by the delta from the one we are at.
 */
static bool
go_to(LinkWalk *w, const InplaceTupleHeaderData *hdr, const char *delta,
	  Size delta_len, TransactionId newer_xid, CommandId newer_cid)
{
	int			next = w->cur == 0 ? 1 : 0;
	int			len;

	len = delta_apply(delta, delta_len,
					  (char *) w->image + SizeOfInplaceTupleHeader,
					  w->len - SizeOfInplaceTupleHeader,
					  w->space[next].data + SizeOfInplaceTupleHeader,
					  InplaceMaxTupleSize - SizeOfInplaceTupleHeader);
	if (len < 0)
		return false;			/* invariant 4 */
	w->keys |= (w->hdr.t_infomask & IP_KEYS_UPDATED) != 0;
	w->hdr = *hdr;
	w->cur = next;
	w->image = &w->space[next].hdr;
	*w->image = *hdr;
	w->len = SizeOfInplaceTupleHeader + len;
	w->newer_xid = newer_xid;
	w->newer_cid = newer_cid;
	return true;
}

/*
 * Walk back, step by step, to a version with links or to the oldest.  Returns
 * the number of steps, -1 if there is a reason to put no links.
 */
static int
walk_to_links(LinkWalk *w, LinkEffort effort)
{
	GlobalVisState *vistest = GlobalVisTestFor(w->rel);
	TransactionId xid = w->hdr.t_xid;
	int			steps = 0;

	w->seq = 0;
	while (TransactionIdIsNormal(w->hdr.t_xid) &&	/* not damaged */
		   !GlobalVisTestIsRemovableXid(vistest, w->hdr.t_xid) &&
		   fetch(w, &w->hdr))
	{
		if (w->rec.hdr.ur_type == UNDO_LINK)
		{
			UndoLink	link;
			Size		len;

			(void) UndoGetLink(&w->rec, &link, &len);
			w->seq = link.ul_seq;
			break;
		}
		if (w->rec.hdr.ur_type != UNDO_UPDATE)
			return -1;
		if (effort == LINK_IF_SEVERAL && steps == 0 && w->rec.old.t_xid != xid)
			return -1;
		if (!go_to(w, &w->rec.old, w->rec.payload, w->rec.payload_len,
				   w->rec.replaced.xid, w->rec.replaced.cid))
			break;
		steps++;
	}
	return steps;
}

/*
 * Go on along links from number w->seq to number "seq"; false if the way is
 * not there any more.
 */
static bool
follow_links(LinkWalk *w, uint32 seq)
{
	/* the record that the walk so far ended at is read again */
	memset(&w->guard, 0, sizeof(w->guard));
	while (w->seq > seq)
	{
		InplaceTupleHeaderData hdr = w->hdr;
		UndoLink	link;
		const char *delta;
		Size		len;

		/* the farthest of its links that does not lead too far */
		for (;;)
		{
			if (!fetch(w, &hdr) || w->rec.hdr.ur_type != UNDO_LINK)
				return false;
			delta = UndoGetLink(&w->rec, &link, &len);
			if (link.ul_seq != w->seq ||
				UndoLinkLevel(&link) > UNDO_LINK_MAX_LEVEL)
				return false;
			if (UndoLinkSpan(UndoLinkLevel(&link)) <= w->seq - seq)
				break;
			hdr = w->rec.old;
		}
		if (!go_to(w, &link.ul_hdr, delta, len, link.ul_newer_xid,
				   link.ul_newer_cid))
			return false;
		w->keys |= (link.ul_level & UNDO_LINK_KEYS) != 0;
		w->seq -= UndoLinkSpan(UndoLinkLevel(&link));
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
	UndoLink	link;
	Size		payload_len;

	if (!inplace_diff_rows(RelationGetDescr(w->rel), w->image, w->len, tup, len,
						   &w->diff))
		return false;
	payload_len = SizeOfUndoLink + delta_size(&w->diff.edits, true);
	if (w->undo_len + SizeOfUndoRecordHeader + SizeOfInplaceTupleHeader +
		payload_len > UNDO_MAX_RECORD)
		return false;

	link.ul_seq = seq;
	link.ul_level = level | (w->keys ? UNDO_LINK_KEYS : 0);
	link.ul_newer_xid = w->newer_xid;
	link.ul_newer_cid = w->newer_cid;
	link.ul_hdr = w->hdr;
	link.ul_hdr.t_infomask &= ~(IP_PADDED | IP_ABORTED);
	memcpy(w->payload, &link, SizeOfUndoLink);
	(void) delta_encode(&w->diff.edits, true,
						(char *) w->image + SizeOfInplaceTupleHeader,
						(char *) tup + SizeOfInplaceTupleHeader,
						w->payload + SizeOfUndoLink);

	w->starts[w->nlinks++] = w->undo_len;
	w->undo_len += UndoBuild(w->undo + w->undo_len, UNDO_LINK,
							 GetCurrentTransactionId(), 0,
							 LocatorSpc(RelLocator(w->rel)),
							 LocatorRel(RelLocator(w->rel)),
							 w->block, w->off, base, base, false,
							 w->payload, payload_len);
	return true;
}

/*
 * Write the links; base leads to the last of them, each to the one before,
 * the first to where base led.
 */
static void
write_links(LinkWalk *w, InplaceTupleHeader base)
{
	UndoInsert	ui;

	UndoPrepare(w->rel, w->undo_len, base->t_xid, &ui);
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
			const InplaceTupleHeaderData *newer, InplaceTupleHeader base)
{
	static LinkWalk walk;		/* large, and never in use twice */
	LinkWalk   *w = &walk;
	LinkEffort	effort = link_effort(newer->t_xid, newer->t_tag);
	int			steps;
	uint32		seq;

	if (effort == LINK_NONE)
		return;
	if (effort == LINK_IF_FAR && UndoHoldersAny() &&
		UndoSqueeze(rel, block, off, tup, len, base))
		return;
	w->rel = rel;
	w->block = block;
	w->off = off;
	memset(&w->guard, 0, sizeof(w->guard));
	w->hdr = *base;
	w->image = tup;
	w->len = len;
	w->newer_xid = InvalidTransactionId;
	w->newer_cid = InvalidCommandId;
	w->cur = -1;
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
	write_links(w, base);
}

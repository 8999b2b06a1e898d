/*-------------------------------------------------------------------------
 *
 * links.c
 *	  inplace.check(): do the links past older versions (row/link.c) lead to
 *	  what a walk along the chain comes to?
 *
 * The caller walks back version by version, and shows us each.  We work out
 * what its links make of it, and wait for the walk to come there.
 *
 * A link whose version was replaced by a transaction that everybody sees is
 * followed by nobody, and what it leads to may have been given back.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "insight/links.h"
#include "insight/row_bytes.h"
#include "insight/walk.h"
#include "page/delta.h"
#include "page/tuple.h"
#include "undo/record.h"
#include "undo/undo.h"


/* flags that say nothing of what a version is */
#define IGNORED_FLAGS	(IP_HINT_BITS | IP_STALE | IP_PADDED)

/* a link whose version has not been met yet */
struct InsightLink
{
	InsightLink *next;
	UndoPtr		ptr;			/* its record */
	TransactionId newer_xid;
	Size		len;
	union
	{
		char		data[BLCKSZ];
		InplaceTupleHeaderData hdr;
		double		align_double;
		int64		align_int64;
	}			row;
};

/*
 * The version that the link leads to is the one we are at: it must be the
 * same.
 */
static const char *
compare(const InsightLink *link, const InsightWalk *walk,
		TransactionId newer_xid)
{
	const InplaceTupleHeaderData *a = &link->row.hdr;
	const InplaceTupleHeaderData *b = walk->tuple;

	if (link->newer_xid != newer_xid)
		return psprintf("link %s says that version %d was replaced by transaction %u, it was by %u",
						InsightUndoText(link->ptr), walk->version,
						link->newer_xid, newer_xid);
	if (((a->t_infomask ^ b->t_infomask) & ~IGNORED_FLAGS) != 0 ||
		a->t_natts != b->t_natts || !HdrSameVersion(a, b))
		return psprintf("link %s has another header than version %d",
						InsightUndoText(link->ptr), walk->version);
	if (link->len != walk->len ||
		memcmp(link->row.data + SizeOfInplaceTupleHeader,
			   (const char *) b + SizeOfInplaceTupleHeader,
			   walk->len - SizeOfInplaceTupleHeader) != 0)
		return psprintf("link %s makes another row than version %d",
						InsightUndoText(link->ptr), walk->version);
	return NULL;
}

static const char *
meet_version(InsightLink **links, const InsightWalk *walk,
			 TransactionId newer_xid)
{
	InsightLink **prev = links;

	while (*prev != NULL)
	{
		InsightLink *link = *prev;
		const char *problem;

		if (link->row.hdr.t_xid != walk->tuple->t_xid ||
			!HdrSameUndo(&link->row.hdr, walk->tuple))
		{
			prev = &link->next;
			continue;
		}
		problem = compare(link, walk, newer_xid);
		if (problem)
			return problem;
		*prev = link->next;
		pfree(link);
	}
	return NULL;
}

/*
 * What the link record makes of the version we are at; NULL if it is not to be
 * followed, or with *problem.
 */
static InsightLink *
make_link(const InsightWalk *walk, const UndoRecord *rec, UndoPtr ptr,
		  const char **problem)
{
	UndoLink	ul;
	Size		delta_len;
	const char *delta = UndoGetLink(rec, &ul, &delta_len);
	InsightLink *link;
	const char *bad;
	int			n;

	if (ul.ul_seq == 0 || UndoLinkLevel(&ul) > UNDO_LINK_MAX_LEVEL ||
		UndoLinkSpan(UndoLinkLevel(&ul)) > ul.ul_seq ||
		ul.ul_seq % UndoLinkSpan(UndoLinkLevel(&ul)) != 0)
	{
		*problem = psprintf("link %s has number %u and level %d",
							InsightUndoText(ptr), ul.ul_seq, UndoLinkLevel(&ul));
		return NULL;
	}
	if (TransactionIdPrecedes(ul.ul_newer_xid, walk->limits->horizon))
		return NULL;

	link = palloc(sizeof(InsightLink));
	n = delta_apply(delta, delta_len,
					(char *) walk->tuple + SizeOfInplaceTupleHeader,
					walk->len - SizeOfInplaceTupleHeader,
					link->row.data + SizeOfInplaceTupleHeader,
					InplaceMaxTupleSize - SizeOfInplaceTupleHeader);
	if (n < 0)
	{
		*problem = psprintf("delta of link %s does not fit version %d",
							InsightUndoText(ptr), walk->version);
		return NULL;
	}
	link->row.hdr = ul.ul_hdr;
	link->ptr = ptr;
	link->newer_xid = ul.ul_newer_xid;
	bad = InsightCheckRow(RelationGetDescr(walk->rel), &link->row.hdr,
						  SizeOfInplaceTupleHeader + n, &link->len);
	if (bad)
	{
		*problem = psprintf("version that link %s leads to: %s",
							InsightUndoText(ptr), bad);
		return NULL;
	}
	return link;
}

const char *
InsightCheckLinks(InsightLink **links, const InsightWalk *walk,
				  TransactionId newer_xid)
{
	InplaceTupleHeaderData hdr = *walk->tuple;
	UndoPtr		ptr = walk->undo;
	const char *problem;
	UndoRecord *rec;

	problem = meet_version(links, walk, newer_xid);
	if (problem || walk->undo_state != INSIGHT_UNDO_FOUND)
		return problem;

	rec = palloc(sizeof(UndoRecord));
	for (int i = 0;
		 UndoFetchRecord(walk->rel, ptr, walk->block, walk->off, &hdr, true,
						 rec) &&
		 rec->hdr.ur_type == UNDO_LINK; i++)
	{
		InsightLink *link = make_link(walk, rec, ptr, &problem);

		if (!problem && i > UNDO_LINK_MAX_LEVEL)
			problem = psprintf("link %s is behind too many links",
							   InsightUndoText(ptr));
		if (problem)
			break;
		if (link)
		{
			link->next = *links;
			*links = link;
		}
		hdr = rec->old;
		ptr = HdrUndoPtr(&hdr);
	}
	pfree(rec);
	return problem;
}

/*
 * The walk has come to the oldest version that anybody needs.
 */
const char *
InsightCheckLinksEnd(const InsightLink *links)
{
	if (links == NULL)
		return NULL;
	return psprintf("link %s leads to no version of the row",
					InsightUndoText(links->ptr));
}

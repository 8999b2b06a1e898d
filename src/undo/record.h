/*-------------------------------------------------------------------------
 *
 * record.h
 *	  Building and reading undo records; see record.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_RECORD_H
#define INPLACE_RECORD_H

#include "inplace.h"

#include "page/tuple.h"
#include "undo/undo.h"

/* page-level work shared with redo */
extern void UndoPageInit(Page page);
extern void UndoPagePut(Page page, uint16 offset, const char *rec, Size len);

/*
 * Build a record in dst (room for UNDO_MAX_RECORD); returns its length.
 * "newer" is the header the row will have, to see if the relative form fits;
 * relative_ok says that nobody needs anything older than "old".
 */
extern Size UndoBuild(char *dst, UndoRecordType type, TransactionId xid,
					  CommandId cid, Oid spc, Oid rel,
					  BlockNumber block, OffsetNumber off,
					  const InplaceTupleHeaderData *old,
					  const InplaceTupleHeaderData *newer, bool relative_ok,
					  const char *payload, Size payload_len);

/*
 * A row that is to be evicted: a deleted one, without lock, whose delete has
 * committed.  Its record takes the place of the delete's (row/evict.c).
 */
typedef struct EvictedRow
{
	OffsetNumber off;
	bool		bare;			/* what follows is told by its header */
	uint16		undo_len;		/* of the record */
	CommandId	cid;			/* of the delete, or move */
	InplaceTupleHeaderData old; /* of the version before */
	char		link[SizeOfUndoMoveLink];	/* of a moved row: where it went */
} EvictedRow;

/* what the header of a bare delete says of the delete and the version before */
extern void UndoBareDelete(const InplaceTupleHeaderData *newer, CommandId *cid,
						   InplaceTupleHeader old);

/* the record of a row of "len" bytes, with its header on the page; returns its length */
extern Size UndoEvictedSize(const InplaceTupleHeaderData *tup, Size len);
extern Size UndoBuildEvicted(char *dst, RelFileLocator table, BlockNumber block,
							 const EvictedRow *row,
							 const InplaceTupleHeaderData *tup, Size len);

/*
 * Reading.  UndoFetch copies and checks the record at ptr, which must be one
 * of (block, off) of rel; newer is the header that leads there (completes a
 * relative header).  A record that is not there, or is another row's, is
 * corruption: ereport(ERROR, ERRCODE_DATA_CORRUPTED) with relation, block and
 * offset; with missing_ok, false is returned instead.  missing_ok is for
 * callers that may hold a pointer to undo that was given back (lock records):
 * it is safe against reuse and truncation going on at the same time.
 * A bare delete (tuple.h) has no record; it is made up.
 */
extern bool UndoFetch(Relation rel, UndoPtr ptr, BlockNumber block,
					  OffsetNumber off, const InplaceTupleHeaderData *newer,
					  bool missing_ok, UndoRecord *rec);

/*
 * The same, but links are told: UndoFetch passes over them, for they change
 * nothing about what comes next.
 */
extern bool UndoFetchRecord(Relation rel, UndoPtr ptr, BlockNumber block,
							OffsetNumber off,
							const InplaceTupleHeaderData *newer,
							bool missing_ok, UndoRecord *rec);

/* records that this process has read so far */
extern uint64 UndoRecordsRead;

/* the link of an UNDO_LINK record, and its delta */
static inline const char *
UndoGetLink(const UndoRecord *rec, UndoLink *link, Size *delta_len)
{
	memcpy(link, rec->payload, SizeOfUndoLink);
	*delta_len = rec->payload_len - SizeOfUndoLink;
	return rec->payload + SizeOfUndoLink;
}

/*
 * Guard of a walk along undo pointers against damage that makes them a circle
 * (Brent's algorithm): call with each pointer that has led to a record; ereports
 * at the latest after twice round.  Not before it has: the last one of a chain
 * may be dangling, and what it points to may be the place, used again, where the
 * chain began.  Long walks with a page locked can be ended by that, too.
 */
typedef struct UndoWalkGuard
{
	UndoPtr		seen;
	uint32		steps;
	uint32		limit;
} UndoWalkGuard;

extern void UndoReportCircle(Relation rel, UndoPtr ptr, BlockNumber block,
							 OffsetNumber off);

static inline void
UndoWalkCheck(UndoWalkGuard *g, Relation rel, UndoPtr ptr, BlockNumber block,
			  OffsetNumber off)
{
	if (unlikely(InterruptPending))
		InplaceEndIfAsked();
	if (ptr == g->seen && g->limit > 0)
		UndoReportCircle(rel, ptr, block, off);
	if (++g->steps > g->limit)
	{
		g->seen = ptr;
		g->limit = g->limit * 2 + 8;
		g->steps = 0;
	}
}

/* parse a raw record image; returns false if it makes no sense */
extern bool UndoParse(const char *raw, Size maxlen,
					  const InplaceTupleHeaderData *newer, UndoRecord *rec);

/* of records being written, in a critical section */
extern bool UndoLocksOpenChange(const char *rec, Size len);

#endif							/* INPLACE_RECORD_H */

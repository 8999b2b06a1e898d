/*-------------------------------------------------------------------------
 *
 * check.h
 *	  Shared by the parts of inplace.check(): what it knows of the table and
 *	  its indexes, and how it reports.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_CHECK_H
#define INPLACE_CHECK_H

#include "inplace.h"

#include "insight/limits.h"
#include "insight/walk.h"
#include "lib/bloomfilter.h"
#include "nodes/execnodes.h"
#include "page/tuple.h"
#include "utils/hsearch.h"

/* after so many findings about one index we stop looking up rows in it */
#define MAX_INDEX_FINDINGS	100

/* bytes of the entry bitmap for each block */
#define ENTRY_BYTES			((InplaceMaxTuplesPerPage + 7) / 8)

/*
 * Bits of a header that change while its row stays the same: hints, freezing
 * and the giving back of reserved space.
 */
#define VOLATILE_BITS \
	(IP_HINT_BITS | IP_FROZEN | IP_PADDED | IP_STALE)

typedef struct IndexCheck
{
	Relation	rel;
	IndexInfo  *info;
	ExprState  *predicate;
	bool		scannable;		/* can be scanned without keys */
	bool		has_keys;		/* btree: entries come with their keys */
	bool		other_keys;		/* GIN, hash, GiST: check_other.c */
	bool		has_payload;	/* and with INCLUDE columns */
	bool		check_rows;		/* rows must be found in the filter */
	bloom_filter *filter;
	int			nfindings;
} IndexCheck;

typedef struct CheckState
{
	ReturnSetInfo *rsinfo;
	Relation	rel;
	Relation	toastrel;		/* or NULL */
	TupleDesc	desc;
	Snapshot	snapshot;
	InsightLimits limits;
	BufferAccessStrategy strategy;
	BlockNumber nblocks;
	MemoryContext page_cxt;		/* reset after each page */

	PGAlignedBlock copy;		/* of the page being looked at */
	PGAlignedBlock row;			/* of an item on it */
	bool		occupied[BLCKSZ];	/* bytes of the page that an item has */
	InsightWalk walk;

	int			nindexes;
	IndexCheck *indexes;
	EState	   *estate;
	ExprContext *econtext;
	TupleTableSlot *slot;
	uint8	   *entries;		/* bitmap: rows that some entry leads to */
	BlockNumber entries_blocks;
	uint8	   *suspects;		/* likewise, of entries that led nowhere */
	bool		any_suspects;
} CheckState;

/* ---------------- check.c ---------------- */

typedef void (*GuardedFunction) (CheckState *state, void *arg);

extern void CheckReport(CheckState *state, int64 block, int item,
						Relation index, const char *severity,
						const char *problem);
extern bool CheckGuarded(CheckState *state, GuardedFunction fn, void *arg,
						 int64 block, Relation index);
extern bool CheckRowUnchanged(CheckState *state, BlockNumber block,
							  OffsetNumber off,
							  const InplaceTupleHeaderData *seen,
							  uint16 but_for);
extern bool CheckItemUnused(CheckState *state, BlockNumber block,
							OffsetNumber off);

/* ---------------- check_rows.c ---------------- */

extern const char *CheckXid(CheckState *state, InplaceTupleHeader tup);
extern bool CheckChain(CheckState *state, BlockNumber block, OffsetNumber off,
					   const InplaceTupleHeaderData *page_hdr,
					   InplaceTupleHeader *version, Size *version_len,
					   bool *seen);
extern void CheckToast(CheckState *state, BlockNumber block, OffsetNumber off,
					   Datum *values, bool *isnull, bool *ok);

/* ---------------- check_index.c ---------------- */

extern void CheckOpenIndexes(CheckState *state);
extern void CheckIndexes(CheckState *state);
extern void CheckSuspects(CheckState *state);
extern void CheckCloseIndexes(CheckState *state);
extern bool CheckEntryKnown(CheckState *state, BlockNumber block,
							OffsetNumber off);
extern void CheckAddSuspect(CheckState *state, BlockNumber block,
							OffsetNumber off);
extern void CheckRowInIndexes(CheckState *state, BlockNumber block,
							  OffsetNumber off, InplaceTupleHeader tuple,
							  Size len,
							  const InplaceTupleHeaderData *page_hdr);

#endif							/* INPLACE_CHECK_H */

/*-------------------------------------------------------------------------
 *
 * taking.h
 *	  Which indexes of a table take in-place updates; see taking.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_TAKING_H
#define INPLACE_TAKING_H

#include "inplace.h"

#include "index/entry.h"
#include "index/other_entry.h"
#include "page/compare.h"
#include "page/tuple.h"

typedef struct TakingIndex
{
	Oid			indexid;
	bool		other;			/* not an inplace_btree (other_method.c) */
	bool		sought;			/* ... whose entries are looked for before the
								 * row is changed (gist_entry.c) */
	bool		waits;			/* ... which takes none while there are
								 * snapshots from before its mark */
	bool		own_code;		/* an insertion runs none of users */
	bool		exact;			/* equal keys are identical */
	bool		computed;		/* it has expressions or a predicate */
	bool		kept;			/* takes updates only that keep its key
								 * (kept_key.c) */
	Size		columns_off;	/* if so, the columns that takes, in the
								 * chunk; 0: none, it is a constant */
	/* by the update at hand: */
	bool		changed;		/* its key, or as long as that is not known
								 * what it is computed from */
	bool		included_changed;	/* of another method, and computed:
									 * INCLUDE columns */
	KeyChange	key_change;
	bool		absent;			/* no entry with the new key can be there; of
								 * another method: none but the old key's */
	bool		missing;		/* of another method: that with the new key is
								 * not there, */
	EntryPlace	place;			/* ... and may be put there */
	int			nkeys;
	int			natts;			/* with INCLUDE columns */
	AttrNumber	keys[INDEX_MAX_KEYS];
} TakingIndex;

/* rows up to this length fit an entry, whatever of them is in it */
#define MAX_ROW_WITH_PAYLOAD	2000

/*
 * The indexes of a table that take in-place updates, or those that keep their
 * keys.  In the relation's relcache entry, one chunk of memory.
 */
typedef struct TakingIndexes
{
	Size		size;			/* of the chunk */
	int			n;
	Size		blocking_off;	/* where in the chunk the set is, or 0 */
	bool		payload_changed;	/* by the update at hand */
	TakingIndex index[FLEXIBLE_ARRAY_MEMBER];
} TakingIndexes;

/* a set in the chunk; 0 stands for the empty one */
static inline const Bitmapset *
TakingSet(const TakingIndexes *t, Size off)
{
	return off == 0 ? NULL : (const Bitmapset *) ((const char *) t + off);
}

/* what the key of a computed index depends on */
static inline const Bitmapset *
TakingColumns(const TakingIndexes *t, int i)
{
	return TakingSet(t, t->index[i].columns_off);
}

/*
 * the columns of all other indexes that are not summarizing, but for what only
 * expressions and predicates of kept keys need
 */
static inline const Bitmapset *
TakingBlockingAttrs(const TakingIndexes *t)
{
	return TakingSet(t, t->blocking_off);
}

extern TakingIndexes *inplace_taking_indexes(Relation rel);
extern bool inplace_taking_changed(TakingIndexes *taking, const RowDiff *diff);
extern void inplace_taking_note_absent(Relation rel, TakingIndexes *taking,
									   const RowDiff *diff,
									   const InplaceTupleHeaderData *base,
									   bool as_verified);
extern bool inplace_taking_has_unsure_keys(Relation rel, const TakingIndexes *taking,
										   const InplaceTupleHeaderData *base);
extern bool inplace_taking_verify_keys(Relation rel, TakingIndexes *taking,
									   InplaceTupleHeader old, Size len,
									   const InplaceTupleHeaderData *base,
									   TupleTableSlot *slot, ItemPointer tid);
extern bool inplace_taking_keys_verified(TakingIndexes *taking);
extern bool inplace_taking_wants_old(const TakingIndexes *taking);
extern bool inplace_taking_others_known(Relation rel, const TakingIndexes *taking);
extern void inplace_taking_start_others(Relation rel, const TakingIndexes *taking);
extern void inplace_insert_entries(Relation rel, const TakingIndexes *taking,
								   ItemPointer tid, InplaceTupleHeader old,
								   TupleTableSlot *slot);
extern bool inplace_index_takes(Relation index);
extern bool inplace_index_took(Relation index);

#endif							/* INPLACE_TAKING_H */

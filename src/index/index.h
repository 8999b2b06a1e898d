/*-------------------------------------------------------------------------
 *
 * index.h
 *	  inplace_btree: which indexes take an in-place update, and their entries.
 *
 * An index that takes it gets one new entry when the row's key changes; the
 * entry of the old key stays, for the snapshots that see the old version.  The
 * row is marked IP_STALE from then on: a TID from such an index may belong to
 * another version's key, so whoever comes through it compares the entry with
 * the version that he sees.
 *
 * Invariants
 *	 1. Every version of a row that somebody may see has an entry with its
 *		key in each index.  So an entry goes only when no version that is
 *		still needed has its key (index_delete.c), which is found out with the
 *		index page locked.  Keys that are computed have been so before.
 *	 2. There is one entry at most for a key and a TID.  Before an entry is
 *		made it is looked for, unless there cannot be one (taking.c).  The row
 *		has been changed by then, so an entry that is found is needed again and
 *		cannot go any more.
 *	 3. A row with more than one entry in an index is IP_STALE, its rolled
 *		back versions included.  The mark goes when its other entries have gone
 *		and nobody can come with one of them any more (vacuum/stale.c).
 *	 4. The key of each version is identical to that of its entry, not only
 *		equal: where an operator class does not promise that equal keys are
 *		identical (equalimage), an update to a key that is equal to the old
 *		one, or to that of an entry that is left, moves the row.  So keys are
 *		compared byte by byte, by their lengths (page/compare.h); no code of an
 *		operator class runs under a page lock of the table.
 *
 *	 5. What an entry has of INCLUDE columns (its payload) counts only while
 *		the row is not IP_STALE.  An update leaves it as it is and marks
 *		the row; an index-only scan takes the payload of a marked row from the
 *		version it sees; and the sweep that goes before the mark is cleared
 *		puts the payload right.  So a rolled back payload is never shown.
 *
 *	 6. In an index with expressions or a predicate all of this is about the key
 *		that is computed from a version, which may be none.  It is
 *		computed from old and new version before the row is changed; if it is
 *		the same, the update does not concern the index.  It comes out the same in
 *		every session, or the index takes no such update (safe_functions.c).
 *		It is never computed with a page locked (version_keys.c, insertion.c).  A row that leaves the
 *		predicate or enters it is IP_STALE, for its entry is not of all its
 *		versions.
 *
 * An index does not take in-place updates of its columns (the row moves) if it
 * is not an inplace_btree, is not ready or not valid, has expressions or a
 * predicate with functions that are not known to come out the same in all sessions
 * (key.c; unless they come out as before: kept_key.c), or is unique with
 * an operator class that makes no such promise and is not the server's own (a
 * unique check compares keys with the page locked).  Rows so long that their
 * payload might not fit an entry move, too; and so do those whose unique keys a
 * worker of logical replication changes (left_to_server in taking.c).
 *
 * Lock order: index page, then table page, then undo page.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_INDEX_H
#define INPLACE_INDEX_H

#include "access/genam.h"
#include "access/itup.h"
#include "index/stale_rows.h"
#include "modify/table.h"
#include "page/compare.h"

/* what an update does to the key */
typedef enum KeyChange
{
	KEY_SAME,					/* nothing */
	KEY_NEW,					/* there is a new one, */
	KEY_LEFT,					/* ... or none any more */
	KEY_CLASH					/* a new one that cannot stand beside another */
} KeyChange;

typedef struct TakingIndex
{
	Oid			indexid;
	bool		exact;			/* equal keys are identical */
	bool		computed;		/* it has expressions or a predicate */
	bool		kept;			/* takes updates only that keep its key
								 * (kept_key.c) */
	Size		columns_off;	/* if so, the columns that takes, in the chunk */
	/* by the update at hand: */
	bool		changed;		/* its key, or as long as that is not settled
								 * what it is computed from */
	KeyChange	settled;
	bool		absent;			/* no entry with the new key can be there */
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
	bool		own_code;		/* keys are compared by the server's own code */
	TakingIndex index[FLEXIBLE_ARRAY_MEMBER];
} TakingIndexes;

/* what the key of a computed index depends on */
static inline const Bitmapset *
TakingColumns(const TakingIndexes *t, int i)
{
	return (const Bitmapset *) ((const char *) t + t->index[i].columns_off);
}

/*
 * the columns of all other indexes that are not summarizing, but for what only
 * expressions and predicates of kept keys need
 */
static inline const Bitmapset *
TakingBlockingAttrs(const TakingIndexes *t)
{
	return t->blocking_off == 0 ? NULL :
		(const Bitmapset *) ((const char *) t + t->blocking_off);
}

/* taking.c */
extern TakingIndexes *inplace_taking_indexes(Relation rel);
extern bool inplace_taking_changed(TakingIndexes *taking, const RowDiff *diff);
extern void inplace_taking_note_absent(Relation rel, TakingIndexes *taking,
									   const RowDiff *diff,
									   const InplaceTupleHeaderData *base);
extern bool inplace_taking_unsure(const TakingIndexes *taking);
extern bool inplace_taking_settle(Relation rel, TakingIndexes *taking,
								  InplaceTupleHeader old, Size len,
								  TupleTableSlot *slot, ItemPointer tid);
extern bool inplace_taking_settled(TakingIndexes *taking);
extern void inplace_insert_entries(Relation rel, const TakingIndexes *taking,
								   ItemPointer tid, TupleTableSlot *slot);

/* late_open.c */
extern void inplace_late_open_init(void);
extern void inplace_open_indexes(Relation rel, TupleTableSlot *slot);
extern bool inplace_indexes_in_use(Oid tableid);
extern void inplace_check_index_not_in_use(Oid tableid, const char *indexname,
										   const char *stmt);
extern void inplace_check_alter_index(AlterTableStmt *stmt);
extern bool inplace_index_takes(Relation index);
extern bool inplace_index_took(Relation index);

/* entry.c */
extern bool inplace_entry_matches_slot(Relation index, IndexTuple itup,
									   TupleTableSlot *slot);

/* does a key belong to a version? */
typedef enum KeyMatch
{
	KEY_IS_OTHER,
	KEY_MATCHES,
	KEY_UNSURE					/* it would have to be computed or fetched */
} KeyMatch;

struct Insertion;
struct VersionKey;
struct VersionKeys;

extern KeyMatch inplace_entry_compare(Relation table, Relation index,
									  IndexTuple itup, InplaceTupleHeader tup,
									  const ItemPointerData *tid);
extern bool inplace_entry_matches_tuple(Relation table, Relation index,
										IndexTuple itup, InplaceTupleHeader tup,
										const ItemPointerData *tid);
extern bool inplace_entry_may_match(Relation table, Relation index,
									IndexTuple itup, InplaceTupleHeader tup,
									const ItemPointerData *tid);
extern KeyMatch inplace_new_key_compare(const struct Insertion *ins,
										InplaceTupleHeader tup,
										const ItemPointerData *tid);
extern bool inplace_new_key_matches(const struct Insertion *ins,
									const struct VersionKey *vk);

/* is an entry needed? */
typedef struct EntryQuestion
{
	Relation	table;
	Relation	index;
	TransactionId oldest_xmin;
	int			versions;		/* to be looked at at most; reduced by those that
								 * were, and below 0 there are more */
	struct VersionKeys *keys;	/* that were computed, or NULL */
	bool		may_want;		/* others may be noted there */
	/* besides the answer: */
	TransactionId horizon;
	int			nwanted;		/* so many have been */
} EntryQuestion;

extern KeyMatch inplace_entry_needed(EntryQuestion *question, IndexTuple itup,
									 BlockNumber blk, OffsetNumber off,
									 InplaceTupleHeader tup, Size len);
extern bool inplace_has_payload(Relation index);
extern void inplace_payload_of_slot(Relation index, TupleTableSlot *slot,
									Datum *values, bool *isnull);
extern IndexTuple inplace_entry_with_payload(Relation index, IndexTuple itup,
											 TupleTableSlot *slot);
extern IndexTuple inplace_entry_of_tuple(Relation table, Relation index,
										 IndexTuple itup,
										 InplaceTupleHeader tup);

/* an entry of the same TID */
typedef enum EntryFound
{
	ENTRY_NONE,					/* there is none with that key */
	ENTRY_IDENTICAL,
	ENTRY_EQUAL					/* with an equal key that is not the same */
} EntryFound;

extern EntryFound inplace_entry_exists(Relation table, Relation index,
									   const Datum *values, const bool *isnull,
									   ItemPointer tid);
extern KeyChange inplace_key_change(Relation table, Relation index,
									InplaceTupleHeader old, TupleTableSlot *slot,
									ItemPointer tid);

/* kept_key.c */
extern bool inplace_index_keeps(Relation index);
extern Bitmapset *inplace_kept_key_columns(Relation index);
extern bool inplace_key_is_kept(Relation table, Relation index,
								InplaceTupleHeader old, Size len,
								TupleTableSlot *slot, ItemPointer tid);

/*
 * sweep.c.  bottomupfreespace of a deletion that wants all there is; it goes by
 * inplace_sweep.
 */
#define SWEEP_EVERYTHING	INT_MAX

typedef struct Sweep
{
	TransactionId horizon;
	StaleRows  *rows;			/* those that have to keep their mark are dropped */
	struct VersionKeys *keys;	/* of the rows on the page */
} Sweep;

extern Sweep inplace_sweep;

extern BlockNumber inplace_sweep_index(Relation table, Relation index,
									   TransactionId horizon,
									   StaleRows *rows, Size *freed);
extern bool inplace_leaves_in_circle(Relation index, BlockNumber visited);

/* older_keys.c */
extern Size OlderKeysShmemSize(void);
extern void OlderKeysShmemInit(void);
extern void inplace_build_met_older_keys(Oid indexid);
extern uint32 inplace_builds_with_older_keys(Oid indexid);

/* merge_leaves.c */
extern bool inplace_merge_index_pages;

/* a table grows if its rows have become more by such a part since the VACUUM before */
#define TABLE_GROWS		0.02

/* what VACUUM has removed from an index: by the index, and with the rows */
typedef struct RemovedEntries
{
	Size		bytes;
	double		share;
	double		grown;			/* by what part of its rows has the table
								 * grown? */
	bool		xids_are_taken; /* while it did so */
	bool		is_alone;		/* its file can be cut off afterwards */
} RemovedEntries;

extern BlockNumber inplace_merge_leaves(IndexVacuumInfo *info, Relation table,
										const RemovedEntries *removed);

/* as_btree.c */

/* a call during which an index says that it is a btree */
typedef struct ActsAsBtree
{
	Relation	index;
	Oid			relam;			/* what it is */
	struct ActsAsBtree *outer;
} ActsAsBtree;

extern void inplace_act_as_btree(ActsAsBtree *as, Relation index);
extern void inplace_act_as_itself(ActsAsBtree *as);
extern void inplace_as_btree_init(void);

/* what pg_class says, and nothing else */
extern void inplace_index_set_relam(Oid indexid, Oid am);

/* btree_handler.c */

extern bool inplace_index_is_btree(Relation index);
extern bool inplace_index_class_takes(Relation index);

#endif							/* INPLACE_INDEX_H */

/*-------------------------------------------------------------------------
 *
 * entry.h
 *	  Entries of an inplace_btree, and the keys of row versions; see entry.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_ENTRY_H
#define INPLACE_ENTRY_H

#include "inplace.h"

#include "access/itup.h"
#include "page/tuple.h"
#include "row/between.h"

/* what an update does to the key */
typedef enum KeyChange
{
	KEY_SAME,					/* nothing */
	KEY_NEW,					/* there is a new one, */
	KEY_LEFT,					/* ... or none any more */
	KEY_CLASH					/* a new one that cannot stand beside another */
} KeyChange;

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
	bool		between;		/* leave out versions between two snapshots */
	int			versions;		/* to be looked at at most; reduced by those
								 * that were, and below 0 there are more */
	struct VersionKeys *keys;	/* that were computed, or NULL */
	bool		may_want;		/* others may be noted there */
	/* besides the answer: */
	TransactionId horizon;
	int			nwanted;		/* so many have been */
	/* for inplace_version_between() */
	BetweenQuestion bounds;
} EntryQuestion;

extern KeyMatch inplace_entry_needed(EntryQuestion *question, IndexTuple itup,
									 BlockNumber blk, OffsetNumber off,
									 InplaceTupleHeader tup, Size len);
extern bool inplace_is_external(TupleDesc desc, InplaceTupleHeader tup,
								AttrNumber att, const ItemPointerData *tid);
extern bool inplace_has_external_key(Relation table, Relation index,
									 InplaceTupleHeader tup,
									 const ItemPointerData *tid);
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

#endif							/* INPLACE_ENTRY_H */

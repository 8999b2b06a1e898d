/*-------------------------------------------------------------------------
 *
 * key.h
 *	  The key that a version of a row has in an index: its columns, and what is
 *	  computed from them; or none, where a predicate leaves it out.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_KEY_H
#define INPLACE_KEY_H

#include "inplace.h"

#include "access/htup_details.h"
#include "catalog/pg_index.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "page/tuple.h"
#include "utils/resowner.h"

/* what has been found out about an index; in this process's memory */
typedef struct IndexKey
{
	Oid			indexid;		/* must be first */
	bool		valid;			/* else it is to be found out again, */
	bool		learned;		/* ... and is as it was until then */
	bool		readable;		/* computing a version's key does no harm, */
	bool		known;			/* ... and it comes out the same for all */
	bool		predicate_known;	/* what the predicate says does, at least */
	bool		exact;			/* equal keys are identical */
	bool		comparable;		/* its comparisons may run with a page locked */

	/* the type of each column's value, which may be another than the entry's */
	int16		len[INDEX_MAX_KEYS];
	bool		byval[INDEX_MAX_KEYS];

	/* of computed keys */
	MemoryContext cxt;
	int			ncolumns;		/* of the table, that it depends on */
	AttrNumber *columns;
	ExprState  *expr[INDEX_MAX_KEYS];	/* NULL: a plain column */
	ExprState  *predicate;
	ExprContext *econtext;
	TupleTableSlot *slot;

	/* of another method than btree, or NULL (insert_info.c) */
	IndexInfo  *info;
	Relation	info_of;
	TupleDesc	info_desc;
} IndexKey;

typedef enum KeyOf
{
	KEY_NONE,					/* the predicate says no */
	KEY_FOUND,
	KEY_UNKNOWN					/* cannot be computed now */
} KeyOf;

static inline bool
inplace_key_is_computed(Relation index)
{
	return !heap_attisnull(index->rd_indextuple, Anum_pg_index_indexprs, NULL) ||
		!heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL);
}

extern IndexKey *inplace_index_key(Relation index);
extern KeyOf inplace_key_of_slot(Relation index, TupleTableSlot *slot,
								 Datum *values, bool *isnull);
extern KeyOf inplace_key_of_tuple(Relation table, Relation index,
								  InplaceTupleHeader tup, const ItemPointerData *tid,
								  Datum *values, bool *isnull);

/* what may fail as the version that it is about is nobody's any more */
typedef void (*GuardedWork) (void *arg);

extern bool inplace_guarded(GuardedWork work, void *arg, MemoryContext cxt,
							ResourceOwner *owner, ErrorData **error);
extern KeyOf inplace_key_guarded(Relation table, Relation index,
								 InplaceTupleHeader tup, const ItemPointerData *tid,
								 bool fetch, MemoryContext work,
								 ResourceOwner *owner,
								 Datum *values, bool *isnull, ErrorData **error);
extern void inplace_end_guarded(ResourceOwner *owner);

#endif							/* INPLACE_KEY_H */

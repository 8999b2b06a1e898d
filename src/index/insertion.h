/*-------------------------------------------------------------------------
 *
 * insertion.h
 *	  An insertion into an inplace_btree, as the table's side of it knows it;
 *	  see insertion.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_INSERTION_H
#define INPLACE_INSERTION_H

#include "inplace.h"

#include <setjmp.h>

#include "access/amapi.h"
#include "index/key.h"
#include "index/version_keys.h"
#include "utils/resowner.h"

typedef struct Insertion
{
	Relation	index;
	Relation	table;
	const IndexKey *key;		/* NULL: nobody will ask for it */
	const Datum *values;		/* the new key, and payload; in line */
	const bool *isnull;
	bool		unique_check;

	/* letting go of the page: */
	bool		may_let_go;
	sigjmp_buf *handler;		/* where that leads */
	ResourceOwner owner;		/* of what nbtree holds meanwhile */
	bool		let_go;
	VersionKeys keys;
	VersionKey *failed;			/* its error is to be raised */
	bool		deletion_let_go;	/* once is enough */
	uint32		deletion_begins;	/* where, each time the same */
	int			deletion_visits;	/* of blocks, before */

	struct Insertion *outer;	/* by which code this one was made */
} Insertion;

/* the one in progress, that nbtree has been called for */
extern Insertion *inplace_insertion;

extern bool inplace_can_let_go(const Insertion *ins);
INPLACE_NORETURN extern void inplace_let_go(Insertion *ins);
extern bool inplace_btree_insert(Relation index, Datum *values, bool *isnull,
								 ItemPointer tid, Relation table,
								 IndexUniqueCheck check, bool index_unchanged,
								 IndexInfo *info);

#endif							/* INPLACE_INSERTION_H */

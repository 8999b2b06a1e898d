/*-------------------------------------------------------------------------
 *
 * version_keys.h
 *	  Keys of row versions that were computed before they are asked for, with
 *	  pages locked; see version_keys.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_VERSION_KEYS_H
#define INPLACE_VERSION_KEYS_H

#include "inplace.h"

#include "index/key.h"
#include "page/tuple.h"

/* a version, and the key it has */
typedef struct VersionKey
{
	struct VersionKey *next_same;	/* in the same bucket */
	struct VersionKey *next_wanted;
	ItemPointerData tid;
	Size		len;
	InplaceTupleHeader tuple;	/* a copy */
	bool		wanted;			/* to be computed yet */
	bool		fetch;			/* ... with values of the TOAST table */
	KeyOf		key;
	Datum	   *values;			/* if KEY_FOUND; in line, not compressed */
	bool	   *isnull;
	ErrorData  *error;			/* if KEY_UNKNOWN because of one */
} VersionKey;

#define VERSION_KEYS_BUCKETS	256

typedef struct VersionKeys
{
	Relation	table;
	Relation	index;
	MemoryContext parent;
	MemoryContext cxt;			/* NULL as long as there are none */
	VersionKey **bucket;
	VersionKey *wanted;
	int			nversions;
	Size		bytes;
} VersionKeys;

extern void version_keys_init(VersionKeys *keys, Relation table, Relation index);
extern void version_keys_free(VersionKeys *keys);
extern VersionKey *version_keys_find(const VersionKeys *keys, const ItemPointerData *tid,
									 InplaceTupleHeader tup, Size len);
extern void version_keys_want(VersionKeys *keys, const ItemPointerData *tid,
							  InplaceTupleHeader tup, Size len, bool fetch);
extern bool version_keys_are_many(const VersionKeys *keys);
extern void version_keys_compute(VersionKeys *keys);

#endif							/* INPLACE_VERSION_KEYS_H */

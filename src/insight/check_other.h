/*-------------------------------------------------------------------------
 *
 * check_other.h
 *	  Entries of GIN, hash and GiST indexes, with their keys; see check_other.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_CHECK_OTHER_H
#define INPLACE_CHECK_OTHER_H

#include "inplace.h"

#include "access/tupdesc.h"
#include "lib/stringinfo.h"

/* an entry that a row is to have */
typedef struct CheckOtherKey
{
	uint64		digest;

	/* of GIN alone */
	OffsetNumber attnum;
	signed char category;
	Datum		key;
} CheckOtherKey;

typedef void (*CheckOtherEntry) (void *arg, ItemPointer tid, uint64 digest);

/* ---------------- check_index.c ---------------- */

extern void CheckFingerprint(StringInfo buf, Form_pg_attribute att, Datum value,
							 bool isnull);

/* ---------------- check_other.c ---------------- */

extern void CheckOtherWalk(Relation index, CheckOtherEntry tell, void *arg);
extern int	CheckOtherRowKeys(Relation index, Datum *values, bool *isnull,
							  CheckOtherKey **keys);
extern bool CheckOtherHasEntry(Relation index, const CheckOtherKey *key,
							   Datum *values, bool *isnull, ItemPointer tid);

#endif							/* INPLACE_CHECK_OTHER_H */

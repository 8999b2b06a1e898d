/*-------------------------------------------------------------------------
 *
 * version_keys.c
 *	  Keys of row versions, computed with no page locked, for code that asks for
 *	  them with pages locked.
 *
 * A unique check, the deletion of index entries, and VACUUM's sweep want to
 * know the keys of versions while they have an index page locked.  There nothing
 * may be computed or fetched from a TOAST table: it may be slow, wait or fail,
 * and nothing can end it.  So they look here.  What is not here they note
 * (version_keys_want), let go of the page, have it computed, and come again
 * (insertion.c, sweep.c).
 *
 * A version is known by its bytes: they are all that a key depends on.  So it does
 * not matter what has become of its row meanwhile.  A copy of the version is made
 * under the lock; that takes memory, and nothing else.
 *
 * A computation that fails leaves the error here, for a caller that cannot do without
 * the key.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/detoast.h"
#include "index/key.h"
#include "index/version_keys.h"
#include "miscadmin.h"
#include "no_lock.h"
#include "page/tuple.h"
#include "utils/datum.h"
#include "utils/memutils.h"

/* so many are enough for one page */
#define MANY_VERSIONS		400
#define MANY_BYTES			(1024 * 1024)

/* of t_natts, what tells how to read the row */
#define NATTS_OF_LAYOUT		((uint16) ~IP_UNCHANGED)

void
version_keys_init(VersionKeys *keys, Relation table, Relation index)
{
	memset(keys, 0, sizeof(VersionKeys));
	keys->table = table;
	keys->index = index;
	keys->parent = CurrentMemoryContext;
}

void
version_keys_free(VersionKeys *keys)
{
	if (keys->cxt != NULL)
		MemoryContextDelete(keys->cxt);
	version_keys_init(keys, keys->table, keys->index);
}

static inline int
bucket_of(const ItemPointerData *tid)
{
	return (ItemPointerGetBlockNumberNoCheck(tid) * 31 +
			ItemPointerGetOffsetNumberNoCheck(tid)) % VERSION_KEYS_BUCKETS;
}

static inline bool
is_version(const VersionKey *vk, const ItemPointerData *tid,
		   InplaceTupleHeader tup, Size len)
{
	return ItemPointerEquals(unconstify(ItemPointerData *, &vk->tid),
							 unconstify(ItemPointerData *, tid)) &&
		vk->len == len &&
		((vk->tuple->t_natts ^ tup->t_natts) & NATTS_OF_LAYOUT) == 0 &&
		memcmp((char *) vk->tuple + SizeOfInplaceTupleHeader,
			   (char *) tup + SizeOfInplaceTupleHeader,
			   len - SizeOfInplaceTupleHeader) == 0;
}

static VersionKey *
look_up(const VersionKeys *keys, const ItemPointerData *tid,
		InplaceTupleHeader tup, Size len)
{
	VersionKey *vk;

	if (keys->cxt == NULL)
		return NULL;
	for (vk = keys->bucket[bucket_of(tid)]; vk != NULL; vk = vk->next_same)
		if (is_version(vk, tid, tup, len))
			return vk;
	return NULL;
}

/* NULL if it has not been computed */
VersionKey *
version_keys_find(const VersionKeys *keys, const ItemPointerData *tid,
				  InplaceTupleHeader tup, Size len)
{
	VersionKey *vk = look_up(keys, tid, tup, len);

	return vk != NULL && !vk->wanted ? vk : NULL;
}

/* more than one page's entries are worth? */
bool
version_keys_are_many(const VersionKeys *keys)
{
	return keys->nversions >= MANY_VERSIONS || keys->bytes >= MANY_BYTES;
}

/*
 * Have a version's key computed, or computed again with values from the TOAST
 * table.
 */
void
version_keys_want(VersionKeys *keys, const ItemPointerData *tid,
				  InplaceTupleHeader tup, Size len, bool fetch)
{
	VersionKey *vk = look_up(keys, tid, tup, len);
	MemoryContext old;

	if (keys->cxt == NULL)
	{
		keys->cxt = AllocSetContextCreate(keys->parent, "inplace version keys",
										  ALLOCSET_DEFAULT_SIZES);
		keys->bucket = MemoryContextAllocZero(keys->cxt,
											  VERSION_KEYS_BUCKETS * sizeof(VersionKey *));
	}
	if (vk == NULL)
	{
		int			b = bucket_of(tid);

		old = MemoryContextSwitchTo(keys->cxt);
		vk = palloc0(sizeof(VersionKey));
		vk->tid = *tid;
		vk->len = len;
		vk->tuple = palloc(len);
		memcpy(vk->tuple, tup, len);
		MemoryContextSwitchTo(old);
		vk->next_same = keys->bucket[b];
		keys->bucket[b] = vk;
		keys->nversions++;
		keys->bytes += len;
	}
	vk->fetch |= fetch;
	if (!vk->wanted)
	{
		vk->wanted = true;
		vk->next_wanted = keys->wanted;
		keys->wanted = vk;
	}
}

/* the key to where it stays, each value as it can be compared at once */
static void
keep_key(VersionKeys *keys, VersionKey *vk, const Datum *values, const bool *isnull)
{
	int			n = IndexRelationGetNumberOfKeyAttributes(keys->index);

	vk->values = palloc(n * sizeof(Datum));
	vk->isnull = palloc(n * sizeof(bool));
	for (int i = 0; i < n; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(keys->index), i);

		vk->isnull[i] = isnull[i];
		vk->values[i] = isnull[i] ? (Datum) 0 :
			datumCopy(values[i], att->attbyval, att->attlen);
	}
}

static void
compute_version(VersionKeys *keys, VersionKey *vk, MemoryContext work,
				ResourceOwner *owner)
{
	MemoryContext old = MemoryContextSwitchTo(keys->cxt);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	vk->key = inplace_key_guarded(keys->table, keys->index, vk->tuple, &vk->tid,
								  vk->fetch, work, owner, values, isnull,
								  &vk->error);
	if (vk->key == KEY_FOUND)
		keep_key(keys, vk, values, isnull);
	MemoryContextSwitchTo(old);
	MemoryContextReset(work);
}

/*
 * All that are wanted.  No page is locked.
 */
void
version_keys_compute(VersionKeys *keys)
{
	MemoryContext work;
	ResourceOwner owner = NULL;

	AssertNoPageLock();
	if (keys->wanted == NULL)
		return;
	work = AllocSetContextCreate(keys->cxt, "inplace version key",
								 ALLOCSET_DEFAULT_SIZES);
	while (keys->wanted != NULL)
	{
		VersionKey *vk = keys->wanted;

		CHECK_FOR_INTERRUPTS();
		compute_version(keys, vk, work, &owner);
		vk->wanted = false;
		keys->wanted = vk->next_wanted;
	}
	inplace_end_guarded(&owner);
	MemoryContextDelete(work);
}

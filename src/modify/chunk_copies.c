/*-------------------------------------------------------------------------
 *
 * chunk_copies.c
 *	  Values that a rewrite of a table puts into its new TOAST table, of ours.
 *
 * All versions of a row are written, and rows that have moved twice.  Many of them
 * have the same value, which is stored once: here is noted where.
 *
 * A value that no newest version of a row has is nobody's but older snapshots'.
 * It is deleted as soon as it has been stored: the deleter is the rewrite.  Whoever
 * needs the older version does not see that, so the chunks stay as long as
 * he does.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/detoast.h"
#include "access/table.h"
#include "modify/chunk.h"
#include "modify/toast.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

typedef struct CopyKey
{
	Oid			valueid;
	uint32		extinfo;
} CopyKey;

typedef struct CopiedValue
{
	CopyKey		key;			/* in the old TOAST table */
	bool		of_newest;
	struct varatt_external ptr; /* in the new one */
} CopiedValue;

struct ValueCopies
{
	MemoryContext cxt;
	HTAB	   *values;			/* or NULL: none yet */
	bool		newest;			/* the version being written is a newest one */
};

ValueCopies *
inplace_copies_begin(MemoryContext cxt)
{
	ValueCopies *copies = MemoryContextAlloc(cxt, sizeof(ValueCopies));

	copies->cxt = cxt;
	copies->values = NULL;
	copies->newest = true;
	return copies;
}

void
inplace_copies_set_newest(ValueCopies *copies, bool newest)
{
	copies->newest = newest;
}

/* if not, the version being written may be nobody's by now */
bool
inplace_copies_of_newest(const ValueCopies *copies)
{
	return copies->newest;
}

static CopiedValue *
copied_value(ValueCopies *copies, const struct varlena *old, HASHACTION action)
{
	struct varatt_external ptr;
	CopyKey		key;

	if (copies->values == NULL)
	{
		HASHCTL		ctl;

		if (action == HASH_FIND)
			return NULL;
		ctl.keysize = sizeof(CopyKey);
		ctl.entrysize = sizeof(CopiedValue);
		ctl.hcxt = copies->cxt;
		copies->values = hash_create("inplace values copied", 32, &ctl,
									 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	VARATT_EXTERNAL_GET_POINTER(ptr, old);
	key.valueid = ptr.va_valueid;
	key.extinfo = ptr.va_extinfo;
	return hash_search(copies->values, &key, action, NULL);
}

/*
 * Where has this value been put?  A pointer to it, or NULL.
 */
struct varlena *
inplace_find_copy(ValueCopies *copies, const struct varlena *old)
{
	CopiedValue *entry = copied_value(copies, old, HASH_FIND);
	struct varlena *result;

	if (entry == NULL)
		return NULL;
	entry->of_newest |= copies->newest;
	result = palloc(TOAST_POINTER_SIZE);
	SET_VARTAG_EXTERNAL(result, VARTAG_ONDISK);
	memcpy(VARDATA_EXTERNAL(result), &entry->ptr, sizeof(entry->ptr));
	return result;
}

void
inplace_note_copy(ValueCopies *copies, const struct varlena *old,
				  const struct varlena *new)
{
	CopiedValue *entry = copied_value(copies, old, HASH_ENTER);

	entry->of_newest = copies->newest;
	VARATT_EXTERNAL_GET_POINTER(entry->ptr, new);
}

/*
 * The versions are written: delete those values that are of older ones only.
 */
void
inplace_copies_end(ValueCopies *copies, Relation rel)
{
	HASH_SEQ_STATUS seq;
	CopiedValue *entry;
	Relation	toastrel = NULL;

	if (copies->values == NULL)
	{
		pfree(copies);
		return;
	}
	hash_seq_init(&seq, copies->values);
	while ((entry = hash_seq_search(&seq)) != NULL)
	{
		if (entry->of_newest)
			continue;
		CHECK_FOR_INTERRUPTS();
		if (toastrel == NULL)
			toastrel = table_open(rel->rd_rel->reltoastrelid, RowExclusiveLock);
		inplace_chunks_delete(toastrel, entry->ptr.va_valueid, true);
	}
	if (toastrel != NULL)
		table_close(toastrel, NoLock);
	hash_destroy(copies->values);
	pfree(copies);
}

/*-------------------------------------------------------------------------
 *
 * chunk_given.c
 *	  Values that subtransactions of our own have stored in TOAST tables of ours.
 *
 * What a subtransaction has stored and is rolled back may have left a pointer behind, in
 * a variable of PL/pgSQL for one.  Nobody but our own transaction has such a
 * pointer.  Until the transaction ends
 *	- its number is not given again: whatever the pointer leads to, it is
 *	  never another value;
 *	- a reader may look for the value among what was rolled back, as on
 *	  heap.  It is there as long as nobody has restored a row of its chunks.  Some may
 *	  have been restored and others not: so the bytes found are compared with a
 *	  hash of those that were stored.
 *
 * All of it is memory of this session.  A parallel worker does not have it, and might be
 * given such a pointer as a parameter.  So when a subtransaction has been rolled back,
 * queries have no workers until the transaction ends (load.c).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "modify/chunk.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

/*
 * New values, unlike changes, need not be noted: their bases do not come again.
 * After so many of both they are not, and cannot be read when they are rolled back.
 */
#define MAX_NEW_VALUES	1000000

typedef struct GivenKey
{
	Oid			toastrelid;
	Oid			valueid;
} GivenKey;

typedef struct GivenEntry
{
	GivenKey	key;
	bool		rewritten;		/* the table since: not to be read by this */
	GivenValue	value;
} GivenEntry;

static HTAB *given_values = NULL;	/* in TopTransactionContext, */
static TransactionId given_xid = InvalidTransactionId;	/* ... of this one */
static bool given_rolled_back = false;	/* any of them, maybe */

static uint64
hash_of(const char *data, int32 size)
{
	return hash_bytes_extended((const unsigned char *) data, size, 0);
}

/*
 * Are there any of this transaction?
 */
bool
inplace_any_given(void)
{
	if (given_values != NULL &&
		!TransactionIdEquals(given_xid, GetTopTransactionIdIfAny()))
		given_values = NULL;
	return given_values != NULL;
}

/*
 * A value has been stored.
 */
void
inplace_note_given(Oid toastrelid, Oid valueid, uint32 change, const char *data,
				   int32 size)
{
	GivenKey	key = {toastrelid, valueid};
	GivenEntry *entry;

	if (GetCurrentTransactionNestLevel() <= 1)
		return;
	if (!inplace_any_given())
	{
		HASHCTL		ctl;

		ctl.keysize = sizeof(GivenKey);
		ctl.entrysize = sizeof(GivenEntry);
		ctl.hcxt = TopTransactionContext;
		given_values = hash_create("inplace values of subtransactions", 64, &ctl,
								   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		given_xid = GetTopTransactionId();
		given_rolled_back = false;
	}
	if (change == 0 && hash_get_num_entries(given_values) >= MAX_NEW_VALUES)
		return;
	entry = hash_search(given_values, &key, HASH_ENTER, NULL);
	entry->rewritten = false;
	entry->value.change = change;
	entry->value.hash = hash_of(data, size);
}

const GivenValue *
inplace_given_value(Oid toastrelid, Oid valueid)
{
	GivenKey	key = {toastrelid, valueid};
	GivenEntry *entry;

	if (!inplace_any_given())
		return NULL;
	entry = hash_search(given_values, &key, HASH_FIND, NULL);
	return entry != NULL && !entry->rewritten ? &entry->value : NULL;
}

bool
inplace_is_given(const GivenValue *given, const char *data, int32 size)
{
	return given->hash == hash_of(data, size);
}

/*
 * The numbers that a value's base has been given with, a bit each; *last becomes the last
 * change of them if that is later.
 */
uint32
inplace_given_numbers(Oid toastrelid, Oid base, uint32 *last)
{
	uint32		numbers = 0;

	if (!inplace_any_given())
		return 0;
	for (uint32 number = 0; number < CHUNK_ID_STEP; number++)
	{
		GivenKey	key = {toastrelid, base + number};
		GivenEntry *entry = hash_search(given_values, &key, HASH_FIND, NULL);

		if (entry == NULL)
			continue;
		numbers |= (uint32) 1 << number;
		if (!entry->rewritten && ChangePrecedes(*last, entry->value.change))
			*last = entry->value.change;
	}
	return numbers;
}

bool
inplace_given_rolled_back(void)
{
	return given_rolled_back && inplace_any_given();
}

static void
subtransaction_ends(SubXactEvent event, SubTransactionId subid,
					SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB && given_values != NULL)
		given_rolled_back = true;
}

void
inplace_given_init(void)
{
	RegisterSubXactCallback(subtransaction_ends, NULL);
}

/*
 * A rewrite keeps ids, but changes begin anew, and it does not take over what was
 * rolled back.
 */
void
inplace_given_rewritten(Oid toastrelid)
{
	HASH_SEQ_STATUS seq;
	GivenEntry *entry;

	if (!inplace_any_given())
		return;
	hash_seq_init(&seq, given_values);
	while ((entry = hash_seq_search(&seq)) != NULL)
		if (entry->key.toastrelid == toastrelid)
			entry->rewritten = true;
}

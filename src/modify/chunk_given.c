/*-------------------------------------------------------------------------
 *
 * chunk_given.c
 *	  Values that subtransactions of our own have stored in TOAST tables of ours.
 *
 * What a subtransaction has stored and is rolled back may have left a pointer behind, in
 * a variable of PL/pgSQL for one.  Nobody but our own transaction has such a
 * pointer.  Until the transaction ends
 *	- its number is not given again by us.  Others may do that once somebody has
 *	  restored chunk 0, whose page tells nothing of it any more;
 *	- a reader may look for the value among what was rolled back, as on
 *	  heap.  It is there as long as nobody has restored a row of its chunks.  Some may
 *	  have been restored and others not.
 * So, once any has been rolled back, whatever bytes are found are compared with a hash of
 * those that were stored, and it is never another value that is read.  Who reads the value
 * of another session which has the same pointer is told to try again.
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
 * Then subtransactions store every value anew.
 */
#define MAX_GIVEN	100000

typedef struct GivenKey
{
	Oid			toastrelid;
	Oid			valueid;		/* or base */
} GivenKey;

typedef struct GivenEntry
{
	GivenKey	key;
	bool		rewritten;		/* the table since: not to be read by this */
	GivenValue	value;
} GivenEntry;

/* a value that has been changed */
typedef struct GivenBase
{
	GivenKey	key;
	uint32		numbers;		/* of the changes, a bit each */
	bool		rewritten;
	uint32		last;			/* change, if not rewritten since */
} GivenBase;

static HTAB *given_values = NULL;	/* both in TopTransactionContext, */
static HTAB *given_bases = NULL;
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

static void
make_given(void)
{
	HASHCTL		ctl;

	ctl.keysize = sizeof(GivenKey);
	ctl.entrysize = sizeof(GivenBase);
	ctl.hcxt = TopTransactionContext;
	given_bases = hash_create("inplace changes of subtransactions", 64, &ctl,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	ctl.entrysize = sizeof(GivenEntry);
	given_values = hash_create("inplace values of subtransactions", 64, &ctl,
							   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	given_xid = GetTopTransactionId();
	given_rolled_back = false;
}

/* can no more be noted? */
static bool
given_is_full(void)
{
	return hash_get_num_entries(given_values) >= MAX_GIVEN;
}

static void
note_change(Oid toastrelid, Oid valueid, uint32 change)
{
	GivenKey	key = {toastrelid, ChunkBase(valueid)};
	bool		found;
	GivenBase  *base = hash_search(given_bases, &key, HASH_ENTER, &found);

	if (!found)
		base->numbers = 0;
	if (!found || base->rewritten || ChangePrecedes(base->last, change))
		base->last = change;
	base->rewritten = false;
	base->numbers |= (uint32) 1 << ChangeNumber(change);
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
		make_given();
	if (change != 0)
		note_change(toastrelid, valueid, change);
	else if (given_is_full())
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
 * change of them if that is later.  All are taken if another could not be noted.
 */
uint32
inplace_given_numbers(Oid toastrelid, Oid base, uint32 *last)
{
	GivenKey	key = {toastrelid, base};
	GivenBase  *given;

	if (!inplace_any_given())
		return 0;
	if (given_is_full() && GetCurrentTransactionNestLevel() > 1)
		return PG_UINT32_MAX;
	given = hash_search(given_bases, &key, HASH_FIND, NULL);
	if (given == NULL)
		return 0;
	if (!given->rewritten && ChangePrecedes(*last, given->last))
		*last = given->last;
	return given->numbers;
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
	GivenBase  *base;

	if (!inplace_any_given())
		return;
	hash_seq_init(&seq, given_bases);
	while ((base = hash_seq_search(&seq)) != NULL)
		if (base->key.toastrelid == toastrelid)
			base->rewritten = true;
	hash_seq_init(&seq, given_values);
	while ((entry = hash_seq_search(&seq)) != NULL)
		if (entry->key.toastrelid == toastrelid)
			entry->rewritten = true;
}

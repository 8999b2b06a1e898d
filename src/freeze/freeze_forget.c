/*-------------------------------------------------------------------------
 *
 * freeze_forget.c
 *	  Dropped tables and databases take what adaptive freezing knows of them
 *	  along, so that a later one with the same OID begins with nothing.
 *
 * A DROP may be rolled back, as a whole or to a savepoint.  So the tables that
 * it names are remembered, and looked for at the end of the transaction.  Those
 * that the catalog does not have any more then are forgotten when the transaction
 * has committed.  A prepared transaction is taken for a committed one.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "freeze/freeze_forget.h"
#include "freeze/freeze_model.h"
#include "freeze/freeze_shmem.h"
#include "freeze/freeze_stats.h"
#include "own.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

static object_access_hook_type prev_object_access_hook = NULL;

/* in TopTransactionContext */
static List *dropped = NIL;

static void
forget_tables(List *relids)
{
	ListCell   *lc;

	LWLockAcquire(&freeze_shared->lock, LW_EXCLUSIVE);
	foreach(lc, relids)
	{
		FreezeKey	key = {MyDatabaseId, lfirst_oid(lc)};

		hash_search(freeze_tables, &key, HASH_REMOVE, NULL);
	}
	LWLockRelease(&freeze_shared->lock);
}

/* no one is connected to the database any more */
void
FreezeStatsForgetDatabase(Oid dboid)
{
	HASH_SEQ_STATUS seq;
	FreezeEntry *entry;

	LWLockAcquire(&freeze_shared->lock, LW_EXCLUSIVE);
	hash_seq_init(&seq, freeze_tables);
	while ((entry = hash_seq_search(&seq)) != NULL)
		if (entry->key.dboid == dboid)
			hash_search(freeze_tables, &entry->key, HASH_REMOVE, NULL);
	LWLockRelease(&freeze_shared->lock);
}

static void
note_drop(ObjectAccessType access, Oid classId, Oid objectId, int subId,
		  void *arg)
{
	FreezeStats stats;

	if (prev_object_access_hook)
		prev_object_access_hook(access, classId, objectId, subId, arg);
	if (access != OAT_DROP || classId != RelationRelationId || subId != 0 ||
		!InplaceInstalledHere())
		return;
	if (freeze_shared != NULL && FreezeStatsGet(objectId, &stats))
	{
		MemoryContext oldcontext = MemoryContextSwitchTo(TopTransactionContext);

		dropped = lappend_oid(dropped, objectId);
		MemoryContextSwitchTo(oldcontext);
	}
}

/* leave in the list what is really gone */
static void
look_for_dropped(void)
{
	ListCell   *lc;

	foreach(lc, dropped)
	{
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(lfirst_oid(lc))))
			dropped = foreach_delete_current(dropped, lc);
	}
}

static void
transaction_ends(XactEvent event, void *arg)
{
	if (likely(dropped == NIL))
		return;
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			look_for_dropped();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
			forget_tables(dropped);
			dropped = NIL;
			break;
		case XACT_EVENT_ABORT:
			dropped = NIL;
			break;
		default:
			break;
	}
}

void
FreezeForgetInit(void)
{
	prev_object_access_hook = object_access_hook;
	object_access_hook = note_drop;
	RegisterXactCallback(transaction_ends, NULL);
}

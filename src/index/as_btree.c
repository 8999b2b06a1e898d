/*-------------------------------------------------------------------------
 *
 * as_btree.c
 *	  An inplace_btree index that nbtree is to take for one of its own.
 *
 * Sort support is given to indexes of the method btree only, and nbtree asserts
 * that where it looks at storage parameters.  So for the time of a call the
 * relation cache entry says btree.
 *
 * The entry may be read again from the catalog meanwhile, wherever an
 * invalidation is taken in: an operator class is looked up, the table is locked
 * by somebody's expression, the index was built concurrently and so is not new in
 * this transaction.  Then it says btree again before anybody looks.
 *
 * Calls are nested, for code of an operator class may insert somewhere itself.  They
 * end in the opposite order, errors included: PG_FINALLY.  But a backend that is told
 * to terminate does not come to that.  It aborts its transaction with the call still
 * on the stack.  So the call is forgotten before relation cache entries are released.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "index/as_btree.h"
#include "index/index.h"
#include "storage/lmgr.h"
#include "utils/inval.h"
#include "utils/syscache.h"
#include "xact_end.h"

static ActsAsBtree *acting = NULL;

void
inplace_act_as_btree(ActsAsBtree *as, Relation index)
{
	as->index = index;
	as->relam = index->rd_rel->relam;
	as->outer = acting;
	acting = as;
	index->rd_rel->relam = BTREE_AM_OID;
}

void
inplace_act_as_itself(ActsAsBtree *as)
{
	Assert(acting == as);
	acting = as->outer;
	as->index->rd_rel->relam = as->relam;
}

static void
keep_acting(Datum arg, Oid relid)
{
	for (ActsAsBtree *as = acting; as != NULL; as = as->outer)
		if (!OidIsValid(relid) || relid == RelationGetRelid(as->index))
			as->index->rd_rel->relam = BTREE_AM_OID;
}

/* (the server calls it before it releases what the transaction has open) */
static void
forget_acting(XactEvent event, void *arg)
{
	if (XactIsRolledBack(event))
		acting = NULL;
}

void
inplace_as_btree_init(void)
{
	CacheRegisterRelcacheCallback(keep_acting, (Datum) 0);
	RegisterXactCallback(forget_acting, NULL);
}

/*
 * What pg_class says, and nothing else.
 */
void
inplace_index_set_relam(Oid indexid, Oid am)
{
	Relation	pg_class = table_open(RelationRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(indexid));
	ItemPointerData tid;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", indexid);
	/* the server updates this row in place, too, and this is its rule */
	tid = tuple->t_self;
	LockTuple(pg_class, &tid, ExclusiveLock);
	((Form_pg_class) GETSTRUCT(tuple))->relam = am;
	CatalogTupleUpdate(pg_class, &tid, tuple);
	UnlockTuple(pg_class, &tid, ExclusiveLock);
	heap_freetuple(tuple);
	table_close(pg_class, RowExclusiveLock);
}

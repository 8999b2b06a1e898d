/*-------------------------------------------------------------------------
 *
 * convert_stats.c
 *	  The server's statistics of a table that has got another access method.
 *
 * They are kept by the table's OID, and so they would go on with the counts of the
 * file before: updates that the former method did its own way, and dead rows
 * that the rewrite has left behind.  When a transaction commits that has moved a
 * table from heap to inplace, or back, the counts of changes begin at zero, and there
 * are no dead rows.  Scans, live rows and what ANALYZE goes by are as before.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/xact.h"
#include "ddl/convert_stats.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/pgstat_internal.h"
#include "utils/rel.h"

typedef struct Converted
{
	Oid			relid;
	SubTransactionId subid;
} Converted;

/* in TopTransactionContext */
static List *converted = NIL;

void
ConvertStatsNote(Oid relid)
{
	MemoryContext oldcontext = MemoryContextSwitchTo(TopTransactionContext);
	Converted  *c = palloc(sizeof(Converted));

	c->relid = relid;
	c->subid = GetCurrentSubTransactionId();
	converted = lappend(converted, c);
	MemoryContextSwitchTo(oldcontext);
}

/*
 * What this session has counted and not reported yet.  (By way of the relation: the
 * struct that the server finds it by is not the same in all minor releases.)
 */
static void
forget_pending(Oid relid)
{
	Relation	rel = RelationIdGetRelation(relid);
	PgStat_TableCounts *counts;

	if (!RelationIsValid(rel))
		return;
	if (pgstat_should_count_relation(rel))
	{
		counts = &rel->pgstat_info->TableStatusCounts;
		counts->PendingCount(tuples_inserted) = 0;
		counts->PendingCount(tuples_updated) = 0;
		counts->PendingCount(tuples_deleted) = 0;
		counts->PendingCount(tuples_hot_updated) = 0;
		counts->PendingCount(delta_dead_tuples) = 0;
#if PG_VERSION_NUM >= 160000
		counts->tuples_newpage_updated = 0;
#endif
	}
	RelationClose(rel);
}

static void
begin_anew(Oid relid)
{
	PgStat_EntryRef *ref = pgstat_get_entry_ref_locked(PGSTAT_KIND_RELATION,
													   MyDatabaseId, relid, false);
	PgStat_StatTabEntry *stats = &((PgStatShared_Relation *) ref->shared_stats)->stats;

	stats->tuples_inserted = 0;
	stats->tuples_updated = 0;
	stats->tuples_deleted = 0;
	stats->tuples_hot_updated = 0;
	stats->TableDeadTuples = 0;
#if PG_VERSION_NUM >= 160000
	stats->tuples_newpage_updated = 0;
#endif
	pgstat_unlock_entry(ref);
}

static void
transaction_ends(XactEvent event, void *arg)
{
	ListCell   *lc;

	if (converted == NIL)
		return;
	if (event == XACT_EVENT_PRE_COMMIT)
	{
		foreach(lc, converted)
		{
			Oid			relid = ((Converted *) lfirst(lc))->relid;

			forget_pending(relid);
			begin_anew(relid);
		}
	}
	converted = NIL;
}

static void
subtransaction_ends(SubXactEvent event, SubTransactionId subid,
					SubTransactionId parent, void *arg)
{
	ListCell   *lc;

	foreach(lc, converted)
	{
		Converted  *c = lfirst(lc);

		if (c->subid != subid)
			continue;
		if (event == SUBXACT_EVENT_COMMIT_SUB)
			c->subid = parent;
		else if (event == SUBXACT_EVENT_ABORT_SUB)
			converted = foreach_delete_current(converted, lc);
	}
}

void
ConvertStatsInit(void)
{
	RegisterXactCallback(transaction_ends, NULL);
	RegisterSubXactCallback(subtransaction_ends, NULL);
}

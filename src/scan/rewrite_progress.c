/*-------------------------------------------------------------------------
 *
 * rewrite_progress.c
 *	  Progress of ALTER TABLE ... SET ACCESS METHOD, from and to inplace, and
 *	  with it of inplace.convert.
 *
 * The server reports the progress of CLUSTER and VACUUM FULL, in
 * pg_stat_progress_cluster.  ALTER TABLE does the same work, but reads and
 * writes the rows itself, and announces nothing.  It shares the rest with
 * CLUSTER, though, which reports from there that files are swapped and how many
 * indexes have been built.  So all that is missing is the announcement, by the
 * utility hook, and the first phase, which we see one side of:
 *	 - to inplace, the insertion of each row; how far the scan of the old table
 *	   has come is in the server's count of the pages it has read of it;
 *	 - from inplace, the scan's pages; rows are written when the next page is
 *	   asked for.
 * A rewrite writes all the rows that it reads.
 *
 * A backend reports one command at a time: if one is being reported already,
 * it stays.  The column "command" is null, for it is neither of the two.
 *
 * Invariant: inplace_rewriting is valid while the statement runs and not
 * after, however it ends (the caller's PG_FINALLY), and in no parallel worker.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/xact.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "commands/progress.h"
#include "commands/tablecmds.h"
#include "own.h"
#include "pgstat.h"
#include "scan/rewrite_progress.h"
#include "utils/backend_progress.h"
#include "utils/backend_status.h"
#include "utils/relcache.h"

/* the old table's statistics are looked up once in so many rows */
#define ROWS_BETWEEN_LOOKS	16

Oid			inplace_rewriting = InvalidOid;

static bool from_inplace;
static int64 rows_read;
static int64 blocks_read;		/* from inplace */
static int64 blocks_before;		/* to inplace: the count at the beginning */
static int64 blocks_total;

static void
report(int64 scanned, int64 written)
{
	const int	params[] = {
		PROGRESS_CLUSTER_HEAP_TUPLES_SCANNED,
		PROGRESS_CLUSTER_HEAP_TUPLES_WRITTEN
	};
	int64		values[2];

	values[0] = scanned;
	values[1] = written;
	pgstat_progress_update_multi_param(2, params, values);
}

static void
report_blocks(int64 blocks)
{
	pgstat_progress_update_param(PROGRESS_CLUSTER_HEAP_BLKS_SCANNED,
								 Min(blocks, blocks_total));
}

/* the method that the statement gives its table, or InvalidOid */
static Oid
new_method(AlterTableStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);

		/* (without a name it is the default, from 17 on) */
		if (cmd->subtype == AT_SetAccessMethod)
			return get_table_am_oid(cmd->name ? cmd->name :
									default_table_access_method, true);
	}
	return InvalidOid;
}

/*
 * Announce the rewrite, if the statement is going to be one that concerns us.
 * The caller calls RewriteProgressEnd then.
 */
bool
RewriteProgressBegin(AlterTableStmt *stmt)
{
	Oid			am = new_method(stmt);
	Oid			inplace_am;
	Oid			relid;
	Relation	rel;
	bool		concerned;

	if (!OidIsValid(am) || XactReadOnly || OidIsValid(inplace_rewriting) ||
		MyBEEntry == NULL ||
		MyBEEntry->st_progress_command != PROGRESS_COMMAND_INVALID)
		return false;
	inplace_am = InplaceTableAm();
	/* locks the table, and checks, as the statement does */
	relid = AlterTableLookupRelation(stmt, AlterTableGetLockLevel(stmt->cmds));
	if (!OidIsValid(relid))
		return false;

	rel = RelationIdGetRelation(relid);
	if (!RelationIsValid(rel))
		return false;
	concerned = (rel->rd_rel->relkind == RELKIND_RELATION ||
				 rel->rd_rel->relkind == RELKIND_MATVIEW) &&
		OidIsValid(inplace_am) && rel->rd_rel->relam != am &&
		(rel->rd_rel->relam == inplace_am || am == inplace_am);
	if (concerned)
	{
		from_inplace = rel->rd_rel->relam == inplace_am;
		rows_read = blocks_read = 0;
		blocks_before = RelationBlocksFetched(rel);
		blocks_total = RelationGetNumberOfBlocks(rel);
	}
	RelationClose(rel);
	if (!concerned)
		return false;

	pgstat_progress_start_command(PROGRESS_COMMAND_CLUSTER, relid);
	pgstat_progress_update_param(PROGRESS_CLUSTER_TOTAL_HEAP_BLKS, blocks_total);
	pgstat_progress_update_param(PROGRESS_CLUSTER_PHASE,
								 PROGRESS_CLUSTER_PHASE_SEQ_SCAN_HEAP);
	inplace_rewriting = relid;
	return true;
}

void
RewriteProgressEnd(void)
{
	inplace_rewriting = InvalidOid;
	pgstat_progress_end_command();
}

/* ---------------- to inplace ---------------- */

void
RewriteProgressRowWritten(Relation rel)
{
	Relation	old;

	/* the table that is to take the place of the other */
	if (from_inplace || rel->rd_rel->relrewrite != inplace_rewriting)
		return;
	rows_read++;
	report(rows_read, rows_read);
	if (rows_read % ROWS_BETWEEN_LOOKS != 1)
		return;
	old = RelationIdGetRelation(inplace_rewriting);
	if (!RelationIsValid(old))
		return;
	report_blocks(RelationBlocksFetched(old) - blocks_before);
	RelationClose(old);
}

/* ---------------- from inplace ---------------- */

/*
 * A page was read, with so many rows, after those before it have been
 * written.
 */
void
RewriteProgressPageRead(Relation rel, int nrows)
{
	if (!from_inplace || RelationGetRelid(rel) != inplace_rewriting)
		return;
	report(rows_read + nrows, rows_read);
	rows_read += nrows;
	report_blocks(++blocks_read);
}

/* there are no more pages */
void
RewriteProgressReadAll(Relation rel)
{
	if (from_inplace && RelationGetRelid(rel) == inplace_rewriting)
		report(rows_read, rows_read);
}

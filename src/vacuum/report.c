/*-------------------------------------------------------------------------
 *
 * report.c
 *	  What VACUUM says: the context of its errors, and the report at its end
 *	  (VACUUM VERBOSE, log_autovacuum_min_duration).
 *
 * The report has the lines of heap's, so that whatever reads those from the
 * log reads ours.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "lib/stringinfo.h"
#include "vacuum/compat_vacuum.h"
#include "vacuum/report.h"
#include "vacuum/vacuum.h"

/*
 * Called with vac->rel, verbose, nindexes and indrels filled in.
 */
void
vacuum_report_start(VacuumReport *report, InplaceVacuum *vac,
					VacuumParams *params)
{
	memset(report, 0, sizeof(*report));
	report->enabled = vac->verbose ||
		(InAutoVacuumWorker() && params->log_min_duration >= 0);
	report->start = GetCurrentTimestamp();
	if (!report->enabled)
		return;

	pg_rusage_init(&report->rusage);
	report->wal = pgWalUsage;
	report->buffers = pgBufferUsage;
	if (track_io_timing)
	{
		report->read_time = pgStatBlockReadTime;
		report->write_time = pgStatBlockWriteTime;
	}

	/* the indexes will be closed when we need their names */
	report->indnames = palloc0(sizeof(char *) * Max(vac->nindexes, 1));
	for (int i = 0; i < vac->nindexes; i++)
		report->indnames[i] = pstrdup(RelationGetRelationName(vac->indrels[i]));
}

static const char *
report_title(InplaceVacuum *vac, VacuumParams *params)
{
	if (vac->verbose)
		return _("finished vacuuming \"%s.%s.%s\": index scans: %d\n");
	if (params->is_wraparound)
		return vac->aggressive ?
			_("automatic aggressive vacuum to prevent wraparound of table \"%s.%s.%s\": index scans: %d\n") :
			_("automatic vacuum to prevent wraparound of table \"%s.%s.%s\": index scans: %d\n");
	return vac->aggressive ?
		_("automatic aggressive vacuum of table \"%s.%s.%s\": index scans: %d\n") :
		_("automatic vacuum of table \"%s.%s.%s\": index scans: %d\n");
}

static double
percent(double part, BlockNumber whole)
{
	return whole == 0 ? 100.0 : 100.0 * part / whole;
}

static void
report_indexes(StringInfo buf, VacuumReport *report, InplaceVacuum *vac)
{
	const char *format;

	if (vac->do_index_vacuuming)
	{
		if (vac->nindexes == 0 || vac->num_index_scans == 0)
			appendStringInfoString(buf, _("index scan not needed: "));
		else
			appendStringInfoString(buf, _("index scan needed: "));
		format = _("%u pages from table (%.2f%% of total) had %lld dead item identifiers removed\n");
	}
	else
	{
		if (!vac->failsafe)
			appendStringInfoString(buf, _("index scan bypassed: "));
		else
			appendStringInfoString(buf, _("index scan bypassed by failsafe: "));
		format = _("%u pages from table (%.2f%% of total) have %lld dead item identifiers\n");
	}
	appendStringInfo(buf, format, vac->lpdead_item_pages,
					 percent(vac->lpdead_item_pages, report->orig_rel_pages),
					 (long long) vac->lpdead_items);
	if (vac->swept)
		appendStringInfo(buf,
						 _("index entries of former keys removed: %u pages from table (%.2f%% of total) had %lld rows that may have some\n"),
						 vac->swept_pages,
						 percent(vac->swept_pages, report->orig_rel_pages),
						 (long long) vac->swept_rows);

	for (int i = 0; i < vac->nindexes; i++)
	{
		IndexBulkDeleteResult *istat = vac->indstats[i];

		if (istat)
			appendStringInfo(buf,
							 _("index \"%s\": pages: %u in total, %u newly deleted, %u currently deleted, %u reusable\n"),
							 report->indnames[i], istat->num_pages,
							 istat->pages_newly_deleted, istat->pages_deleted,
							 istat->pages_free);
		if (vac->merged_pages[i] > 0)
			appendStringInfo(buf, _("index \"%s\": %u pages merged\n"),
							 report->indnames[i], vac->merged_pages[i]);
		if (vac->cut_pages[i] > 0 || vac->relocated_pages[i] > 0)
			appendStringInfo(buf, _("index \"%s\": %u pages moved, %u removed from the end of the file\n"),
							 report->indnames[i], vac->relocated_pages[i],
							 vac->cut_pages[i]);
	}
}

static void
report_usage(StringInfo buf, VacuumReport *report, TimestampTz end)
{
	WalUsage	wal;
	BufferUsage buffers;
	long		secs;
	int			usecs;
	double		elapsed;
	double		read_rate = 0;
	double		write_rate = 0;
	int64		hits;
	int64		reads;
	int64		dirtied;

	memset(&wal, 0, sizeof(wal));
	WalUsageAccumDiff(&wal, &pgWalUsage, &report->wal);
	memset(&buffers, 0, sizeof(buffers));
	BufferUsageAccumDiff(&buffers, &pgBufferUsage, &report->buffers);
	hits = buffers.shared_blks_hit + buffers.local_blks_hit;
	reads = buffers.shared_blks_read + buffers.local_blks_read;
	dirtied = buffers.shared_blks_dirtied + buffers.local_blks_dirtied;

	ReportDelayTime(buf);
	if (track_io_timing)
		appendStringInfo(buf, _("I/O timings: read: %.3f ms, write: %.3f ms\n"),
						 (pgStatBlockReadTime - report->read_time) / 1000.0,
						 (pgStatBlockWriteTime - report->write_time) / 1000.0);

	TimestampDifference(report->start, end, &secs, &usecs);
	elapsed = secs + usecs / 1000000.0;
	if (elapsed > 0)
	{
		read_rate = (double) BLCKSZ * reads / (1024 * 1024) / elapsed;
		write_rate = (double) BLCKSZ * dirtied / (1024 * 1024) / elapsed;
	}
	appendStringInfo(buf, _("avg read rate: %.3f MB/s, avg write rate: %.3f MB/s\n"),
					 read_rate, write_rate);
	appendStringInfo(buf,
					 REPORT_READS_AS_MISSES ?
					 _("buffer usage: %lld hits, %lld misses, %lld dirtied\n") :
					 _("buffer usage: %lld hits, %lld reads, %lld dirtied\n"),
					 (long long) hits, (long long) reads, (long long) dirtied);
	appendStringInfo(buf,
					 _("WAL usage: %lld records, %lld full page images, %llu bytes"),
					 (long long) wal.wal_records, (long long) wal.wal_fpi,
					 (unsigned long long) wal.wal_bytes);
	ReportWalBuffersFull(buf, &wal);
	appendStringInfoChar(buf, '\n');
	appendStringInfo(buf, _("system usage: %s"), pg_rusage_show(&report->rusage));
}

void
vacuum_report_end(VacuumReport *report, InplaceVacuum *vac,
				  VacuumParams *params, bool frozenxid_updated,
				  bool minmulti_updated)
{
	TimestampTz end = GetCurrentTimestamp();
	StringInfoData buf;
	int32		age;

	if (!report->enabled ||
		!(vac->verbose || params->log_min_duration == 0 ||
		  TimestampDifferenceExceeds(report->start, end,
									 params->log_min_duration)))
		return;

	initStringInfo(&buf);
	appendStringInfo(&buf, report_title(vac, params), vac->dbname,
					 vac->nspname, vac->relname, vac->num_index_scans);
	appendStringInfo(&buf, _("pages: %u removed, %u remain, %u scanned (%.2f%% of total)"),
					 vac->removed_pages, vac->rel_pages, vac->scanned_pages,
					 percent(vac->scanned_pages, report->orig_rel_pages));
	if (REPORT_VISIBILITY)
		appendStringInfo(&buf, _(", %u eagerly scanned"), vac->revisited_pages);
	appendStringInfoChar(&buf, '\n');
	appendStringInfo(&buf,
					 _("tuples: %lld removed, %lld remain, %lld are dead but not yet removable\n"),
					 (long long) vac->tuples_deleted,
					 (long long) vac->new_rel_tuples,
					 (long long) vac->recently_dead_tuples);
	age = (int32) (ReadNextTransactionId() - vac->cutoffs.OldestXmin);
	appendStringInfo(&buf,
					 _("removable cutoff: %u, which was %d XIDs old when operation ended\n"),
					 vac->cutoffs.OldestXmin, age);
	if (frozenxid_updated)
	{
		age = (int32) (vac->new_relfrozenxid - vac->cutoffs.relfrozenxid);
		appendStringInfo(&buf,
						 _("new relfrozenxid: %u, which is %d XIDs ahead of previous value\n"),
						 vac->new_relfrozenxid, age);
	}
	if (minmulti_updated)
	{
		age = (int32) (vac->new_relminmxid - vac->cutoffs.relminmxid);
		appendStringInfo(&buf,
						 _("new relminmxid: %u, which is %d MXIDs ahead of previous value\n"),
						 vac->new_relminmxid, age);
	}
	if (REPORT_FROZEN)
		appendStringInfo(&buf, _("frozen: %u pages from table (%.2f%% of total) had %lld tuples frozen\n"),
						 vac->frozen_pages,
						 percent(vac->frozen_pages, report->orig_rel_pages),
						 (long long) vac->tuples_frozen);
	if (REPORT_VISIBILITY)
		appendStringInfo(&buf, _("visibility map: %u pages set all-visible, %u pages set all-frozen (%u were all-visible)\n"),
						 vac->vm_visible_pages, vac->vm_frozen_pages,
						 vac->vm_only_frozen_pages);
	report_indexes(&buf, report, vac);
	report_usage(&buf, report, end);

	ereport(vac->verbose ? INFO : LOG, (errmsg_internal("%s", buf.data)));
	pfree(buf.data);
}

void
vacuum_error_callback(void *arg)
{
	InplaceVacuum *vac = arg;

	switch (vac->phase)
	{
		case VACUUM_PHASE_SCAN:
			if (BlockNumberIsValid(vac->blkno))
				errcontext("while scanning block %u of relation \"%s.%s\"",
						   vac->blkno, vac->nspname, vac->relname);
			else
				errcontext("while scanning relation \"%s.%s\"",
						   vac->nspname, vac->relname);
			break;
		case VACUUM_PHASE_TABLE:
			if (BlockNumberIsValid(vac->blkno))
				errcontext("while vacuuming block %u of relation \"%s.%s\"",
						   vac->blkno, vac->nspname, vac->relname);
			else
				errcontext("while vacuuming relation \"%s.%s\"",
						   vac->nspname, vac->relname);
			break;
		case VACUUM_PHASE_INDEX:
			errcontext("while vacuuming index \"%s\" of relation \"%s.%s\"",
					   vac->indname, vac->nspname, vac->relname);
			break;
		case VACUUM_PHASE_INDEX_CLEANUP:
			errcontext("while cleaning up index \"%s\" of relation \"%s.%s\"",
					   vac->indname, vac->nspname, vac->relname);
			break;
		case VACUUM_PHASE_TRUNCATE:
			errcontext("while truncating relation \"%s.%s\" to %u blocks",
					   vac->nspname, vac->relname, vac->blkno);
			break;
		case VACUUM_PHASE_UNKNOWN:
			break;
	}
}

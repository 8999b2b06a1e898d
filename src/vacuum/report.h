/*-------------------------------------------------------------------------
 *
 * report.h
 *	  What a VACUUM says: error context and the report at its end; see report.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_REPORT_H
#define INPLACE_REPORT_H

#include "inplace.h"

#include "executor/instrument.h"
#include "utils/pg_rusage.h"
#include "utils/timestamp.h"
#include "vacuum/vacuum.h"

typedef struct VacuumReport
{
	bool		enabled;
	PGRUsage	rusage;
	TimestampTz start;
	int64		read_time;
	int64		write_time;
	WalUsage	wal;
	BufferUsage buffers;
	BlockNumber orig_rel_pages;
	char	  **indnames;
} VacuumReport;

extern void vacuum_report_start(VacuumReport *report, InplaceVacuum *vac,
								VacuumParams *params);
extern void vacuum_report_end(VacuumReport *report, InplaceVacuum *vac,
							  VacuumParams *params, bool frozenxid_updated,
							  bool minmulti_updated);
extern void vacuum_error_callback(void *arg);

#endif							/* INPLACE_REPORT_H */

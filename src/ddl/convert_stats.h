/*-------------------------------------------------------------------------
 *
 * convert_stats.h
 *	  The statistics of a table that has been converted; see convert_stats.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_CONVERT_STATS_H
#define INPLACE_CONVERT_STATS_H

#include "inplace.h"

extern void ConvertStatsNote(Oid relid);
extern void ConvertStatsInit(void);

#endif							/* INPLACE_CONVERT_STATS_H */

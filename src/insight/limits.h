/*-------------------------------------------------------------------------
 *
 * limits.h
 *	  What became of a transaction, if that can be asked; see limits.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_LIMITS_H
#define INPLACE_LIMITS_H

#include "inplace.h"

/*
 * Between which ids the commit log and the multixact log may be asked, and
 * what everybody sees.  The lower limits are read before any page is, the
 * upper ones after it (InsightLimitsRefresh), so that a concurrent VACUUM or
 * a new transaction cannot put a good id out of range.
 */
typedef struct InsightLimits
{
	TransactionId relfrozenxid;
	MultiXactId relminmxid;
	TransactionId next_xid;
	MultiXactId next_multi;
	TransactionId horizon;		/* older committed xids are seen by all */
} InsightLimits;

typedef enum InsightXidStatus
{
	INSIGHT_XID_CURRENT,		/* ours */
	INSIGHT_XID_IN_PROGRESS,
	INSIGHT_XID_COMMITTED,
	INSIGHT_XID_ABORTED,
	INSIGHT_XID_UNKNOWN			/* out of range: nobody can be asked */
} InsightXidStatus;

extern void InsightLimitsInit(InsightLimits *limits, Relation rel);
extern void InsightLimitsRefresh(InsightLimits *limits, Relation rel);
extern InsightXidStatus InsightGetXidStatus(const InsightLimits *limits,
											TransactionId xid,
											uint16 infomask);

#endif							/* INPLACE_LIMITS_H */

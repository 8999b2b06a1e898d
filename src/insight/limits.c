/*-------------------------------------------------------------------------
 *
 * limits.c
 *	  Between which ids the server may be asked what became of a transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/transam.h"
#include "insight/limits.h"
#include "page/tuple.h"
#include "storage/procarray.h"

void
InsightLimitsInit(InsightLimits *limits, Relation rel)
{
	limits->relfrozenxid = rel->rd_rel->relfrozenxid;
	limits->relminmxid = rel->rd_rel->relminmxid;
	InsightLimitsRefresh(limits, rel);
}

void
InsightLimitsRefresh(InsightLimits *limits, Relation rel)
{
	limits->next_xid = ReadNextTransactionId();
	limits->next_multi = ReadNextMultiXactId();
	limits->horizon = GetOldestNonRemovableTransactionId(rel);
}

/*
 * Never asks the commit log about an id that it may not know.
 */
InsightXidStatus
InsightGetXidStatus(const InsightLimits *limits, TransactionId xid,
					uint16 infomask)
{
	if (infomask & IP_FROZEN)
		return INSIGHT_XID_COMMITTED;
	if (!TransactionIdIsNormal(xid))
		return TransactionIdIsValid(xid) ? INSIGHT_XID_COMMITTED :
			INSIGHT_XID_UNKNOWN;
	if (TransactionIdIsCurrentTransactionId(xid))
		return INSIGHT_XID_CURRENT;
	if (!TransactionIdPrecedes(xid, limits->next_xid))
		return INSIGHT_XID_UNKNOWN;
	if (TransactionIdIsNormal(limits->relfrozenxid) &&
		TransactionIdPrecedes(xid, limits->relfrozenxid))
	{
		if (infomask & IP_COMMITTED)
			return INSIGHT_XID_COMMITTED;
		if (infomask & IP_ABORTED)
			return INSIGHT_XID_ABORTED;
		return INSIGHT_XID_UNKNOWN;
	}
	if (TransactionIdIsInProgress(xid))
		return INSIGHT_XID_IN_PROGRESS;
	return TransactionIdDidCommit(xid) ? INSIGHT_XID_COMMITTED :
		INSIGHT_XID_ABORTED;
}

/*-------------------------------------------------------------------------
 *
 * inplace.c
 *	  What every file of the extension may need: see inplace.h.
 *
 * Loading is in load.c.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/relation.h"
#include "storage/lwlock.h"

bool		inplace_preloaded = false;
int			inplace_executor_depth = 0;
EState	   *inplace_executor_estate = NULL;

/* filled by handler.c */
TableAmRoutine inplace_table_am;

void
InplaceRequirePreload(void)
{
	if (likely(inplace_preloaded))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("inplace must be loaded through \"shared_preload_libraries\""),
			 errhint("Add inplace to \"shared_preload_libraries\" in postgresql.conf and restart the server.")));
}

/*
 * A regclass may be 0, a number that never was a relation's, or one dropped
 * since.
 */
Relation
InplaceOpenArgument(Oid relid, LOCKMODE lockmode)
{
	Relation	rel = OidIsValid(relid) ? try_relation_open(relid, lockmode) : NULL;

	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	return rel;
}

bool
InplaceXidsRunShort(void)
{
	TransactionId warn_limit;

	LWLockAcquire(XidGenLock, LW_SHARED);
	warn_limit = TransamVariables->xidWarnLimit;
	LWLockRelease(XidGenLock);
	return TransactionIdFollowsOrEquals(ReadNextTransactionId(), warn_limit);
}

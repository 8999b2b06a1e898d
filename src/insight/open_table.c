/*-------------------------------------------------------------------------
 *
 * open_table.c
 *	  Opening a table for the functions that look into it.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "insight/open_table.h"
#include "utils/acl.h"
#include "utils/rls.h"

/*
 * Open a table of ours.  With read_rows the caller is about to see contents,
 * which takes the right to SELECT and no row-level security in force: what
 * the functions show has not passed any policy.
 */
Relation
InsightOpenTable(Oid relid, bool read_rows)
{
	Relation	rel = InplaceOpenArgument(relid, AccessShareLock);

	if (!RelationIsInplace(rel))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table of access method inplace",
						RelationGetRelationName(rel))));

	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary tables of other sessions")));

	if (RecoveryInProgress() &&
		rel->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot access temporary or unlogged relations during recovery")));

	if (read_rows)
	{
		AclResult	aclresult = pg_class_aclcheck(relid, GetUserId(), ACL_SELECT);

		if (aclresult != ACLCHECK_OK)
			aclcheck_error(aclresult, OBJECT_TABLE,
						   RelationGetRelationName(rel));
		if (check_enable_rls(relid, InvalidOid, true) == RLS_ENABLED)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("row versions of table \"%s\" cannot be shown to users subject to row-level security",
							RelationGetRelationName(rel))));
	}

	return rel;
}

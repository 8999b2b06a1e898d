/*-------------------------------------------------------------------------
 *
 * no_lock.h
 *	  What is not done with a page or the space of undo locked.
 *
 * A backend that has a page's content lock, or a lightweight lock of ours, holds
 * interrupts off: nothing ends it, others wait for it, and no deadlock detector looks.
 * So with such a lock nothing is computed by functions of users, fetched from the TOAST
 * table, looked up in catalogs, waited for, extended on disk or reported to a client.
 * The calls that do such a thing are doors.
 *
 * Doors
 *	  In builds with assertions each call of a door in our sources asserts that
 *	  nothing is locked: the macros below stand for the functions of the same
 *	  name.  Other doors (computing a key, for one) call AssertNoPageLock().
 *	  The server itself calls functions of operator classes with an index page
 *	  locked, as it does on heap.  What runs within these is not asserted
 *	  anything: hooks of the planner and the executor note that they are called
 *	  with a lock.
 *
 * Reports
 *	  ereport() and elog() in our sources let go of all lightweight locks before
 *	  an ERROR or a FATAL is raised.  That is what the abort does first, so nothing else
 *	  may catch such an error and go on with a lock: a PG_CATCH of ours ends in an
 *	  abort, in PG_RE_THROW(), or surrounds calls of the server that our own
 *	  reports cannot come from (undo/standby.c).  The locks go after the
 *	  arguments have been evaluated, so these may look at the page.
 *	  What is less than an error is asserted to be reported with nothing locked.
 *	  For what the server reports under our locks see client.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_NO_LOCK_H
#define INPLACE_NO_LOCK_H

#include "access/detoast.h"
#include "access/hio.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/visibilitymap.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/freespace.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lwlock.h"
#include "utils/elog.h"
#include "utils/lsyscache.h"
#include "utils/relcache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* no_lock.c */
extern int	InplaceBeforeReport(int elevel);

#undef ereport
#define ereport(elevel, ...) \
	ereport_domain(elevel, TEXTDOMAIN, __VA_ARGS__, InplaceBeforeReport(elevel))

/*
 * In a walk that may be long, with a page locked: ends it with an error, and lets go of
 * the locks, if the statement is to be cancelled or the backend terminated.
 */
extern void InplaceEndIfAsked(void);

/* client.c */
extern void InplaceGuardClient(void);

/* lightweight locks of ours, under which no door may be gone through */
typedef enum NoLockGroup
{
	NO_LOCK_DIRECTORY,
	NO_LOCK_WORKERS,
	NO_LOCK_SPACES,
	NO_LOCK_EXTEND,
	NO_LOCK_SEEN,
	NO_LOCK_FREEZING,
	NO_LOCK_ROW_LOCKS
} NoLockGroup;

#define NO_LOCK_GROUPS	(NO_LOCK_ROW_LOCKS + 1)

#ifndef USE_ASSERT_CHECKING

#define NoLockRegister(group, locks, n, stride)	((void) 0)
#define AssertNoPageLock()	((void) 0)
#define NoLockInUserCode()	((void) 0)
#define NoLockEnterQuery()	false
#define NoLockLeaveQuery(outer)	((void) (outer))

#else

/* from the shared memory's startup hook; forked processes inherit what it sets */
extern void NoLockRegister(NoLockGroup group, LWLock *locks, int n, Size stride);
extern void AssertNoPageLock(void);

/* by hooks; it counts until the end of the query, or else of the transaction */
extern void NoLockInUserCode(void);

/* a query begins and ends; what the first returns is for the second */
extern bool NoLockEnterQuery(void);
extern void NoLockLeaveQuery(bool outer);

#define DOOR(call)	(AssertNoPageLock(), call)

/* catalogs */
#define SearchSysCache1(...)		DOOR(SearchSysCache1(__VA_ARGS__))
#define SearchSysCache2(...)		DOOR(SearchSysCache2(__VA_ARGS__))
#define SearchSysCache3(...)		DOOR(SearchSysCache3(__VA_ARGS__))
#define SearchSysCache4(...)		DOOR(SearchSysCache4(__VA_ARGS__))
#define SearchSysCacheExists(...)	DOOR(SearchSysCacheExists(__VA_ARGS__))
#define GetSysCacheOid(...)			DOOR(GetSysCacheOid(__VA_ARGS__))
#define SearchSysCacheList(...)		DOOR(SearchSysCacheList(__VA_ARGS__))
#define lookup_type_cache(...)		DOOR(lookup_type_cache(__VA_ARGS__))
#define get_namespace_oid(...)		DOOR(get_namespace_oid(__VA_ARGS__))
#define get_relname_relid(...)		DOOR(get_relname_relid(__VA_ARGS__))
#define get_rel_name(...)			DOOR(get_rel_name(__VA_ARGS__))
#define get_func_name(...)			DOOR(get_func_name(__VA_ARGS__))

/* relations */
#define relation_open(...)			DOOR(relation_open(__VA_ARGS__))
#define try_relation_open(...)		DOOR(try_relation_open(__VA_ARGS__))
#define table_open(...)				DOOR(table_open(__VA_ARGS__))
#define try_table_open(...)			DOOR(try_table_open(__VA_ARGS__))
#define index_open(...)				DOOR(index_open(__VA_ARGS__))
#define RelationIdGetRelation(...)	DOOR(RelationIdGetRelation(__VA_ARGS__))
#define RelationGetIndexList(...)	DOOR(RelationGetIndexList(__VA_ARGS__))
#define RelationGetIndexAttrBitmap(...) \
	DOOR(RelationGetIndexAttrBitmap(__VA_ARGS__))
#define RelationGetIndexExpressions(...) \
	DOOR(RelationGetIndexExpressions(__VA_ARGS__))
#define RelationGetIndexPredicate(...) \
	DOOR(RelationGetIndexPredicate(__VA_ARGS__))

/* functions of users */
#define ExecQual(...)				DOOR(ExecQual(__VA_ARGS__))
#define FormIndexDatum(...)			DOOR(FormIndexDatum(__VA_ARGS__))

/* large values; those in line are at hand */
#define DETOAST_DOOR(name, function) \
static inline struct varlena * \
name(struct varlena *value) \
{ \
	if (VARATT_IS_EXTERNAL(value)) \
		AssertNoPageLock(); \
	return function(value); \
}

DETOAST_DOOR(DetoastAttr, detoast_attr)
DETOAST_DOOR(DetoastExternalAttr, detoast_external_attr)
DETOAST_DOOR(DetoastDatum, pg_detoast_datum)
DETOAST_DOOR(DetoastDatumCopy, pg_detoast_datum_copy)
DETOAST_DOOR(DetoastDatumPacked, pg_detoast_datum_packed)

#define detoast_attr(value)			DetoastAttr(value)
#define detoast_external_attr(value)	DetoastExternalAttr(value)
#define pg_detoast_datum(value)		DetoastDatum(value)
#define pg_detoast_datum_copy(value)	DetoastDatumCopy(value)
#define pg_detoast_datum_packed(value)	DetoastDatumPacked(value)

/* waits */
#define XactLockTableWait(...)		DOOR(XactLockTableWait(__VA_ARGS__))
#define SpeculativeInsertionWait(...)	DOOR(SpeculativeInsertionWait(__VA_ARGS__))
#define LockTuple(...)				DOOR(LockTuple(__VA_ARGS__))
#define LockRelation(...)			DOOR(LockRelation(__VA_ARGS__))
#define LockRelationOid(...)		DOOR(LockRelationOid(__VA_ARGS__))
#define WaitLatch(...)				DOOR(WaitLatch(__VA_ARGS__))

/* files that grow */
#define visibilitymap_pin(...)		DOOR(visibilitymap_pin(__VA_ARGS__))
#define RelationGetBufferForTuple(...) \
	DOOR(RelationGetBufferForTuple(__VA_ARGS__))
#define RecordPageWithFreeSpace(...)	DOOR(RecordPageWithFreeSpace(__VA_ARGS__))
#define FreeSpaceMapVacuumRange(...)	DOOR(FreeSpaceMapVacuumRange(__VA_ARGS__))

/* with interrupts held off it would do nothing */
static inline void
CheckForInterrupts(void)
{
	AssertNoPageLock();
	CHECK_FOR_INTERRUPTS();
}

#undef CHECK_FOR_INTERRUPTS
#define CHECK_FOR_INTERRUPTS()	CheckForInterrupts()

#endif							/* USE_ASSERT_CHECKING */

#endif							/* INPLACE_NO_LOCK_H */

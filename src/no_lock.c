/*-------------------------------------------------------------------------
 *
 * no_lock.c
 *	  What is not done with a page or the space of undo locked: see no_lock.h.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "storage/buf_internals.h"

/*
 * To be called with the report's arguments, after all others.  In a critical
 * section an error is a PANIC, and what is locked then must never be seen by
 * others.
 */
int
InplaceBeforeReport(int elevel)
{
	if (elevel < ERROR)
		AssertNoPageLock();
	else if (elevel < PANIC && CritSectionCount == 0)
		LWLockReleaseAll();
	return 0;
}

/*
 * Nothing but lightweight locks holds interrupts off here: this is not called from an
 * abort, nor in any other section without interrupts.  The server may find that the
 * request was not one to end the statement after all.  It is ended nevertheless, for
 * there is no way back to the locks.
 */
void
InplaceEndIfAsked(void)
{
	if (!(QueryCancelPending || ProcDiePending) ||
		QueryCancelHoldoffCount > 0 || CritSectionCount > 0)
		return;
	if (InterruptHoldoffCount == 0)
	{
		CHECK_FOR_INTERRUPTS();
		return;
	}
	LWLockReleaseAll();
	InterruptHoldoffCount = 0;
	CHECK_FOR_INTERRUPTS();
	ereport(ERROR,
			(errcode(ERRCODE_QUERY_CANCELED),
			 errmsg("canceling statement due to user request")));
}

#ifdef USE_ASSERT_CHECKING

typedef struct OwnLocks
{
	LWLock	   *locks;
	int			n;
	Size		stride;
} OwnLocks;

static OwnLocks own_locks[NO_LOCK_GROUPS];

void
NoLockRegister(NoLockGroup group, LWLock *locks, int n, Size stride)
{
	own_locks[group].locks = locks;
	own_locks[group].n = n;
	own_locks[group].stride = stride;
}

/* in code of users that the server has called with a page locked */
static bool in_locked_query = false;

static bool
holds_lock(void)
{
	/* any lightweight lock holds interrupts off */
	if (InterruptHoldoffCount == 0)
		return false;
	if (LWLockAnyHeldByMe(BufferDescriptorGetContentLock(GetBufferDescriptor(0)),
						  NBuffers, sizeof(BufferDescPadded)))
		return true;
	for (int i = 0; i < NO_LOCK_GROUPS; i++)
		if (LWLockAnyHeldByMe(own_locks[i].locks, own_locks[i].n,
							  own_locks[i].stride))
			return true;
	return false;
}

void
AssertNoPageLock(void)
{
	Assert(in_locked_query || !holds_lock());
}

bool
NoLockEnterQuery(void)
{
	bool		outer = in_locked_query;

	if (holds_lock())
		in_locked_query = true;
	return outer;
}

void
NoLockInUserCode(void)
{
	(void) NoLockEnterQuery();
}

void
NoLockLeaveQuery(bool outer)
{
	in_locked_query = outer;
}

#endif							/* USE_ASSERT_CHECKING */

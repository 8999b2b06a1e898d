/*-------------------------------------------------------------------------
 *
 * page_lock.h
 *	  Locking a row's page where many backends want the same rows.
 *
 * A change keeps its page locked for some microseconds.  It takes longer to put a backend
 * to sleep, and to wake it up, than to wait for that.  A backend that sleeps also lets
 * others have the row first, and then finds another lock in its way.  So the lock is tried
 * for some times before we sleep.  If the backend that has it was put off its processor,
 * all that want the page would fall asleep, and be woken one by one: so before that
 * the processor is given up for others, of which it is one.
 *
 * It is not given up with another lock held, as where nbtree looks for duplicates with an
 * index page locked.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_PAGE_LOCK_H
#define INPLACE_PAGE_LOCK_H

#include "inplace.h"

#include <sched.h>

#include "miscadmin.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/lwlock.h"
#include "storage/s_lock.h"

/* a lock that another backend has is tried for so often, */
#define PAGE_LOCK_SPINS		90
/* ... and then so often with the processor given up */
#define PAGE_LOCK_YIELDS	8

static inline void
inplace_lock_page(Buffer buffer, LWLockMode mode)
{
	if (!BufferIsLocal(buffer))
	{
		LWLock	   *lock = BufferDescriptorGetContentLock(GetBufferDescriptor(buffer - 1));
		int			tries = PAGE_LOCK_SPINS;

		if (InterruptHoldoffCount == 0)
			tries += PAGE_LOCK_YIELDS;

		for (int i = 0; i < tries; i++)
		{
			if (LWLockConditionalAcquire(lock, mode))
				return;
			if (i < PAGE_LOCK_SPINS)
				SPIN_DELAY();
			else
				sched_yield();
		}
	}
	LockBuffer(buffer, mode == LW_SHARED ? BUFFER_LOCK_SHARE : BUFFER_LOCK_EXCLUSIVE);
}

#endif							/* INPLACE_PAGE_LOCK_H */

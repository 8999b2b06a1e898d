/*-------------------------------------------------------------------------
 *
 * standby.c
 *	  Reading undo, on a standby, that may be gone.
 *
 * On a primary the map of extents tells whether a page is there, and stays
 * locked until it is pinned (space.c).  A standby has none, and replay cuts off
 * the end of the undo file whenever it comes to that: also between looking how
 * long the file is and reading a page.  The read then fails as it would with a
 * file that is damaged; it is told from that by what length the file has
 * afterwards.
 *
 * The failed read must leave nothing behind, for its caller goes on, with a
 * page locked: what it has (a pin, the buffer's state of being read) belongs to
 * a resource owner of its own.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "storage/bufmgr.h"
#include "storage/smgr.h"
#include "undo/standby.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

static bool
page_exists(Relation undorel, BlockNumber block)
{
	return block < smgrnblocks(RelationGetSmgr(undorel), MAIN_FORKNUM);
}

static void
release_all(ResourceOwner owner)
{
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_BEFORE_LOCKS, false, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_LOCKS, false, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_AFTER_LOCKS, false, false);
}

/* has the read in progress failed because there is no such page? */
static bool
failed_for_truncation(Relation undorel, BlockNumber block)
{
	int			sqlstate = geterrcode();

	if (sqlstate != ERRCODE_DATA_CORRUPTED && sqlstate != ERRCODE_UNDEFINED_FILE)
		return false;
	/* segments that are open count as full, even if they have been cut off */
	smgrrelease(RelationGetSmgr(undorel));
	return !page_exists(undorel, block);
}

/*
 * Pin the page, or return InvalidBuffer if the file does not reach to it.
 */
Buffer
UndoReadOnStandby(Relation undorel, BlockNumber block)
{
	ResourceOwner save = CurrentResourceOwner;
	MemoryContext cxt = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	ResourceOwner owner;
	volatile Buffer buffer = InvalidBuffer;

	if (!page_exists(undorel, block))
		return InvalidBuffer;

	owner = ResourceOwnerCreate(save, "inplace undo of a standby");
	PG_TRY();
	{
		CurrentResourceOwner = owner;
		buffer = ReadBuffer(undorel, block);
		CurrentResourceOwner = save;
		IncrBufferRefCount(buffer);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(cxt);
		CurrentResourceOwner = save;
		if (!failed_for_truncation(undorel, block))
			PG_RE_THROW();
		FlushErrorState();
		/* an error lets interrupts in; locks are still held */
		InterruptHoldoffCount = holdoff;
		AbortFailedRead();
		buffer = InvalidBuffer;
	}
	PG_END_TRY();

	/* one of two pins, if the page was read */
	CurrentResourceOwner = owner;
	if (BufferIsValid(buffer))
		ReleaseBuffer(buffer);
	CurrentResourceOwner = save;
	release_all(owner);
	ResourceOwnerDelete(owner);
	return buffer;
}

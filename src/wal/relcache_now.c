/*-------------------------------------------------------------------------
 *
 * relcache_now.c
 *	  Invalidations of the relation cache that do not wait for a commit.
 *
 * The server's own, CacheInvalidateRelcache(), are sent when the transaction commits.  A
 * change that stands however the transaction ends has to be told at once.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/sinval.h"
#include "storage/standby.h"
#include "wal/relcache_now.h"

/*
 * Have all sessions of this server build the relation's entry anew, or with InvalidOid those
 * of all relations; and if asked those of standbys.  No page is locked: with a full
 * queue, sessions that are behind are waited for or signalled.
 * The caller's own session hears of it with the next messages that it takes.
 */
void
inplace_forget_relcache_now(Oid relid, bool on_standbys)
{
	SharedInvalidationMessage msg;

	AssertNoPageLock();
	memset(&msg, 0, sizeof(msg));
	msg.rc.id = SHAREDINVALRELCACHE_ID;
	msg.rc.dbId = MyDatabaseId;
	msg.rc.relId = relid;
	SendSharedInvalidMessages(&msg, 1);
	if (on_standbys && XLogStandbyInfoActive())
		LogStandbyInvalidations(1, &msg, false);
}

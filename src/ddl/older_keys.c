/*-------------------------------------------------------------------------
 *
 * older_keys.c
 *	  Has the build of an index met versions of rows with other keys?
 *
 * An ordinary index must then not be used by the snapshots that need these versions.
 * CREATE INDEX hears of it from the build (ii_BrokenHotChain), REINDEX tells nobody.
 * When an index is rebuilt that had such keys before (index_method.c), we need to
 * know it, and also what a parallel worker has met.  So builds that have met any are
 * counted in shared memory, by a hash of the index.  If two indexes share a counter one
 * may be taken for having met them, never the opposite.
 *
 * Locks: none.  The workers of a build have ended before its leader reads the counter.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "common/hashfn.h"
#include "ddl/older_keys.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/shmem.h"

#define COUNTERS	256

static pg_atomic_uint32 *counters = NULL;

Size
OlderKeysShmemSize(void)
{
	return COUNTERS * sizeof(pg_atomic_uint32);
}

void
OlderKeysShmemInit(void)
{
	bool		found;

	counters = ShmemInitStruct("inplace older keys", OlderKeysShmemSize(), &found);
	if (found)
		return;
	for (int i = 0; i < COUNTERS; i++)
		pg_atomic_init_u32(&counters[i], 0);
}

static pg_atomic_uint32 *
counter_of(Oid indexid)
{
	return &counters[murmurhash32(indexid ^ murmurhash32(MyDatabaseId)) % COUNTERS];
}

void
inplace_build_met_older_keys(Oid indexid)
{
	pg_atomic_fetch_add_u32(counter_of(indexid), 1);
}

uint32
inplace_builds_with_older_keys(Oid indexid)
{
	return pg_atomic_read_u32(counter_of(indexid));
}

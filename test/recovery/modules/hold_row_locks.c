/*
 * Holds all partitions of the row locks in memory until there is a file, for a test in
 * which backends are to stop when they have looked at a row and are about to lock it.
 */
#include "postgres.h"

#include <unistd.h>

#include "fmgr.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/builtins.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(hold_row_locks);

#define PARTITIONS		32		/* of memory_lock.c */
#define TENTHS_AT_MOST	1200

/* the size of the shared memory, and the file */
Datum
hold_row_locks(PG_FUNCTION_ARGS)
{
	bool		found;
	char	   *mem = ShmemInitStruct("inplace row locks", PG_GETARG_INT64(0), &found);
	LWLockPadded *partitions = (LWLockPadded *) CACHELINEALIGN(mem);
	char	   *file = text_to_cstring(PG_GETARG_TEXT_PP(1));

	if (!found)
		elog(ERROR, "there are no row locks in memory");
	for (int i = 0; i < PARTITIONS; i++)
		LWLockAcquire(&partitions[i].lock, LW_EXCLUSIVE);
	for (int i = 0; i < TENTHS_AT_MOST && access(file, F_OK) != 0; i++)
		pg_usleep(100000);
	for (int i = 0; i < PARTITIONS; i++)
		LWLockRelease(&partitions[i].lock);
	PG_RETURN_VOID();
}

/*
 * Holds a page's lock until there is a file, for a test in which a backend is to stop in
 * the middle of what it does.
 */
#include "postgres.h"

#include <unistd.h>

#include "access/relation.h"
#include "fmgr.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/rel.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(hold_page);

#define TENTHS_AT_MOST	1200

Datum
hold_page(PG_FUNCTION_ARGS)
{
	Relation	rel = relation_open(PG_GETARG_OID(0), AccessShareLock);
	char	   *file = text_to_cstring(PG_GETARG_TEXT_PP(2));
	Buffer		buffer = ReadBuffer(rel, PG_GETARG_INT32(1));

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	for (int i = 0; i < TENTHS_AT_MOST && access(file, F_OK) != 0; i++)
		pg_usleep(100000);
	UnlockReleaseBuffer(buffer);
	relation_close(rel, AccessShareLock);
	PG_RETURN_VOID();
}

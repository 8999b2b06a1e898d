/*-------------------------------------------------------------------------
 *
 * probe.c
 *	  Mistakes that a sanitized server must report (scripts/check-one): a
 *	  check of the sanitizers, not of the extension.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/rel.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(sanitize_probe);

static int
first_byte_of_page(bool pinned)
{
	Relation	rel = relation_open(RelationRelationId, AccessShareLock);
	Buffer		buffer = ReadBuffer(rel, RelationGetNumberOfBlocks(rel) - 1);
	volatile char *page = BufferGetPage(buffer);
	int			result;

	if (!pinned)
		ReleaseBuffer(buffer);
	result = page[0];
	if (pinned)
		ReleaseBuffer(buffer);
	relation_close(rel, AccessShareLock);
	return result;
}

Datum
sanitize_probe(PG_FUNCTION_ARGS)
{
	char	   *what = text_to_cstring(PG_GETARG_TEXT_PP(0));
	volatile char *chunk = palloc0(100);
	volatile int n = 40;

	if (strcmp(what, "beyond") == 0)
		PG_RETURN_INT32(chunk[100]);
	if (strcmp(what, "freed") == 0)
	{
		pfree(unvolatize(char *, chunk));
		PG_RETURN_INT32(chunk[0]);
	}
	if (strcmp(what, "unpinned") == 0)
		PG_RETURN_INT32(first_byte_of_page(false));
	if (strcmp(what, "undefined") == 0)
		PG_RETURN_INT32(1 << n);
	PG_RETURN_INT32(chunk[99] + first_byte_of_page(true));
}

/*
 * A callback that ends the process when its transaction is rolled back, before those
 * that were registered earlier are called.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(abort_fails);

static void
fail(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT)
		ereport(FATAL, (errmsg("a callback fails")));
}

Datum
abort_fails(PG_FUNCTION_ARGS)
{
	RegisterXactCallback(fail, NULL);
	PG_RETURN_VOID();
}

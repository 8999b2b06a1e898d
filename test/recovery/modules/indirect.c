/*
 * A value that is a pointer to memory (VARTAG_INDIRECT), as reorder buffers make them and
 * code of extensions may.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "fmgr.h"
#include "utils/memutils.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(indirect);

Datum
indirect(PG_FUNCTION_ARGS)
{
	MemoryContext outer = MemoryContextSwitchTo(TopTransactionContext);
	struct varlena *value = PG_DETOAST_DATUM_COPY(PG_GETARG_DATUM(0));
	struct varlena *result;
	varatt_indirect ptr;

	MemoryContextSwitchTo(outer);
	result = (struct varlena *) palloc0(INDIRECT_POINTER_SIZE);
	ptr.pointer = value;
	SET_VARTAG_EXTERNAL(result, VARTAG_INDIRECT);
	memcpy(VARDATA_EXTERNAL(result), &ptr, sizeof(ptr));
	PG_RETURN_POINTER(result);
}

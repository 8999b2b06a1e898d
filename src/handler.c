/*-------------------------------------------------------------------------
 *
 * handler.c
 *	  The table access method "inplace": its routine, filled from the files
 *	  that implement it.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "ddl/ddl.h"
#include "fmgr.h"
#include "index/index_delete.h"
#include "modify/modify.h"
#include "page/slot.h"
#include "scan/scan.h"
#include "undo/undorel.h"
#include "vacuum/vacuum.h"

PG_FUNCTION_INFO_V1(inplace_table_handler);

static const TupleTableSlotOps *
inplace_slot_callbacks(Relation rel)
{
	return &TTSOpsInplace;
}

static void
fill_routine(TableAmRoutine *am)
{
	am->type = T_TableAmRoutine;
	am->slot_callbacks = inplace_slot_callbacks;

	am->tuple_insert = inplace_tuple_insert;
	am->tuple_insert_speculative = inplace_tuple_insert_speculative;
	am->tuple_complete_speculative = inplace_tuple_complete_speculative;
	am->multi_insert = inplace_multi_insert;
	am->tuple_delete = inplace_tuple_delete;
	am->tuple_update = inplace_tuple_update;
	am->tuple_lock = inplace_tuple_lock;
	am->index_delete_tuples = inplace_index_delete_tuples;

	inplace_init_scan_methods(am);
	inplace_init_fetch_methods(am);
	inplace_init_build_methods(am);
	inplace_init_analyze_methods(am);
	inplace_init_vacuum_methods(am);
	inplace_init_ddl_methods(am);
}

/* the server asks when it makes a relcache entry of a table */
Datum
inplace_table_handler(PG_FUNCTION_ARGS)
{
	NoLockInUserCode();
	InplaceGuardClient();
	UndoRelRenew();
	if (inplace_table_am.type != T_TableAmRoutine)
		fill_routine(&inplace_table_am);
	PG_RETURN_POINTER(&inplace_table_am);
}

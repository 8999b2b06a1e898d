/*-------------------------------------------------------------------------
 *
 * btree_handler.c
 *	  Routine of the index access method inplace_btree.
 *
 * It is nbtree's, whose operator classes sql/parts/30-btree-opclasses.sql
 * mirrors.  The recheck of stale entries is not there yet, so no such index
 * can be built: whoever tries is told.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/amapi.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "utils/fmgroids.h"

PG_FUNCTION_INFO_V1(inplace_btree_handler);

INPLACE_NORETURN static void
RefuseIndex(Relation index)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot build index \"%s\": access method inplace_btree is not supported yet",
					RelationGetRelationName(index)),
			 errhint("Use btree.")));
}

static IndexBuildResult *
inplace_btree_build(Relation table, Relation index, IndexInfo *info)
{
	RefuseIndex(index);
}

static void
inplace_btree_buildempty(Relation index)
{
	RefuseIndex(index);
}

Datum
inplace_btree_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *am;

	am = (IndexAmRoutine *) DatumGetPointer(OidFunctionCall1(F_BTHANDLER,
															 PointerGetDatum(NULL)));
	/* name_ops stores cstring; the server's own catalog does not ask */
	am->amstorage = true;
	am->ambuild = inplace_btree_build;
	am->ambuildempty = inplace_btree_buildempty;
	PG_RETURN_POINTER(am);
}

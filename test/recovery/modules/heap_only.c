/*
 * What extensions in C do that know only heap: they make tables by a call of
 * DefineRelation(), write heap tuples into tables of theirs, and take rows from
 * triggers.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "catalog/toasting.h"
#include "commands/tablecmds.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(make_table);
PG_FUNCTION_INFO_V1(heap_writes);
PG_FUNCTION_INFO_V1(log_rows);
PG_FUNCTION_INFO_V1(double_v);

static ColumnDef *
column(const char *name, Oid type)
{
	return makeColumnDef(name, type, -1, type == TEXTOID ? 100 : InvalidOid);
}

/* make_table(name text, parent text): a table (id int, v int, w text) */
Datum
make_table(PG_FUNCTION_ARGS)
{
	CreateStmt *stmt = makeNode(CreateStmt);
	char	   *parent = text_to_cstring(PG_GETARG_TEXT_PP(1));
	ObjectAddress table;

	stmt->relation = makeRangeVar(NULL, text_to_cstring(PG_GETARG_TEXT_PP(0)), -1);
	stmt->tableElts = list_make3(column("id", INT4OID), column("v", INT4OID),
								 column("w", TEXTOID));
	if (parent[0] != '\0')
		stmt->inhRelations = list_make1(makeRangeVar(NULL, parent, -1));
	stmt->oncommit = ONCOMMIT_NOOP;
	table = DefineRelation(stmt, RELKIND_RELATION, GetUserId(), NULL, NULL);
	CommandCounterIncrement();
	NewRelationCreateToastTable(table.objectId, (Datum) 0);
	CommandCounterIncrement();
	PG_RETURN_OID(table.objectId);
}

/* heap_writes(table regclass): inserts (1, 1), and sets v to 2, as in a catalog */
Datum
heap_writes(PG_FUNCTION_ARGS)
{
	Relation	rel = table_open(PG_GETARG_OID(0), RowExclusiveLock);
	TupleDesc	desc = RelationGetDescr(rel);
	Datum		values[3] = {Int32GetDatum(1), Int32GetDatum(1), (Datum) 0};
	bool		nulls[3] = {false, false, true};
	bool		replace[3] = {false, true, false};
	Snapshot	snapshot;
	SysScanDesc scan;
	HeapTuple	tuple;

	CatalogTupleInsert(rel, heap_form_tuple(desc, values, nulls));
	CommandCounterIncrement();
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	scan = systable_beginscan(rel, InvalidOid, false, snapshot, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		HeapTuple	changed;

		values[1] = Int32GetDatum(2);
		changed = heap_modify_tuple(tuple, desc, values, nulls, replace);
		CatalogTupleUpdate(rel, &tuple->t_self, changed);
	}
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, RowExclusiveLock);
	PG_RETURN_VOID();
}

/*
 * A trigger that writes the old and the new row into table "log" as composite
 * values, as pg_repack's does.
 */
Datum
log_rows(PG_FUNCTION_ARGS)
{
	TriggerData *td = (TriggerData *) fcinfo->context;
	TupleDesc	desc = RelationGetDescr(td->tg_relation);
	Oid			types[2];
	Datum		values[2] = {0};
	char		nulls[3] = "nn";
	HeapTuple	result = td->tg_trigtuple;

	types[0] = types[1] = td->tg_relation->rd_rel->reltype;
	SPI_connect();
	if (!TRIGGER_FIRED_BY_INSERT(td->tg_event))
	{
		values[0] = PointerGetDatum(SPI_returntuple(td->tg_trigtuple, desc));
		nulls[0] = ' ';
	}
	if (!TRIGGER_FIRED_BY_DELETE(td->tg_event))
	{
		if (TRIGGER_FIRED_BY_UPDATE(td->tg_event))
			result = td->tg_newtuple;
		values[1] = PointerGetDatum(SPI_returntuple(result, desc));
		nulls[1] = ' ';
	}
	if (SPI_execute_with_args("INSERT INTO log (id, old, new) VALUES (coalesce($1.id, $2.id), $1, $2)",
							  2, types, values, nulls, false, 0) != SPI_OK_INSERT)
		elog(ERROR, "log_rows failed");
	SPI_finish();
	return PointerGetDatum(result);
}

/*
 * A BEFORE trigger that doubles v, in the way that its argument says.
 */
Datum
double_v(PG_FUNCTION_ARGS)
{
	TriggerData *td = (TriggerData *) fcinfo->context;
	TupleDesc	desc = RelationGetDescr(td->tg_relation);
	const char *how = td->tg_trigger->tgargs[0];
	HeapTuple	row = TRIGGER_FIRED_BY_UPDATE(td->tg_event) ? td->tg_newtuple : td->tg_trigtuple;
	int			attnum = 2;
	bool		isnull;
	Datum		v = heap_getattr(row, attnum, desc, &isnull);

	if (isnull)
		return PointerGetDatum(row);
	v = Int32GetDatum(2 * DatumGetInt32(v));
	if (strcmp(how, "modify_by_cols") == 0)
		row = heap_modify_tuple_by_cols(row, desc, 1, &attnum, &v, &isnull);
	else if (strcmp(how, "SPI_modifytuple") == 0)
	{
		SPI_connect();
		row = SPI_modifytuple(td->tg_relation, row, 1, &attnum, &v, NULL);
		SPI_finish();
	}
	else if (strcmp(how, "copy") == 0)
		row = heap_copytuple(heap_modify_tuple_by_cols(row, desc, 1, &attnum, &v, &isnull));
	else						/* over the row itself */
		memcpy((char *) row->t_data + row->t_data->t_hoff + sizeof(int32), &v, sizeof(int32));
	return PointerGetDatum(row);
}

/*-------------------------------------------------------------------------
 *
 * freeze_views.c
 *	  Functions behind the view on adaptive freezing.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "freeze/freeze_model.h"
#include "freeze/freeze_stats.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"

PG_FUNCTION_INFO_V1(inplace_freeze_stats);
PG_FUNCTION_INFO_V1(inplace_freeze_probability);
PG_FUNCTION_INFO_V1(inplace_freeze_worthwhile);

#define FREEZE_STATS_COLS 14

/*
 * The figures of one table; all null if no VACUUM of it has been seen.
 */
Datum
inplace_freeze_stats(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	FreezeStats stats;
	TupleDesc	desc;
	Datum		values[FREEZE_STATS_COLS] = {0};
	bool		nulls[FREEZE_STATS_COLS] = {0};

	InplaceRequirePreload();
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (!FreezeStatsGet(relid, &stats))
		memset(nulls, true, sizeof(nulls));
	else
	{
		double		threshold = FreezeThreshold(&stats.sample, stats.target);
		double		fill_probability = FreezeFillProbability(&stats);

		values[0] = Int64GetDatum(stats.visible_sets);
		values[1] = Int64GetDatum(stats.visible_unsets);
		values[2] = Int64GetDatum(stats.frozen_sets);
		values[3] = Int64GetDatum(stats.frozen_unsets);
		values[4] = Int64GetDatum(stats.early_unsets);
		values[5] = Int64GetDatum(stats.early_frozen_unsets);
		values[6] = Int64GetDatum(stats.page_freezes);
		values[7] = Float8GetDatum(stats.sample.unsets);
		values[8] = Float8GetDatum(FreezeSampleMean(&stats.sample));
		values[9] = Float8GetDatum(FreezeSampleDeviation(&stats.sample));
		nulls[8] = nulls[9] = stats.sample.unsets <= 0;
		values[10] = Float8GetDatum(threshold);
		nulls[10] = threshold < 0;
		values[11] = Float8GetDatum(stats.fills.unsets);
		values[12] = Float8GetDatum(fill_probability);
		nulls[12] = fill_probability < 0;
		values[13] = Int32GetDatum(stats.target);
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc),
													  values, nulls)));
}

static void
check_seconds(const char *what, double value)
{
	if (isnan(value) || isinf(value) || value < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must be a number that is not negative", what)));
}

/*
 * The model by itself, on durations that the caller gives.
 */
static void
get_sample(FunctionCallInfo fcinfo, FreezeSample *sample)
{
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(0);
	double		sets = PG_GETARG_FLOAT8(1);
	Datum	   *values;
	bool	   *nulls;
	int			n;

	check_seconds("number of sets", sets);
	check_seconds("age", PG_GETARG_FLOAT8(2));
	check_seconds("target duration", PG_GETARG_FLOAT8(3));

	memset(sample, 0, sizeof(*sample));
	sample->sets = sets;
	deconstruct_array(array, FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL,
					  TYPALIGN_DOUBLE, &values, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("durations must not be null")));
		check_seconds("duration", DatumGetFloat8(values[i]));
		FreezeSampleAdd(sample, DatumGetFloat8(values[i]));
	}
}

Datum
inplace_freeze_probability(PG_FUNCTION_ARGS)
{
	FreezeSample sample;

	get_sample(fcinfo, &sample);
	PG_RETURN_FLOAT8(FreezeChangeProbability(&sample, PG_GETARG_FLOAT8(2),
											 PG_GETARG_FLOAT8(3)));
}

Datum
inplace_freeze_worthwhile(PG_FUNCTION_ARGS)
{
	FreezeSample sample;

	get_sample(fcinfo, &sample);
	PG_RETURN_BOOL(FreezeIsWorthwhile(&sample, PG_GETARG_FLOAT8(2),
									  PG_GETARG_FLOAT8(3)));
}

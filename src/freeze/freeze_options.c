/*-------------------------------------------------------------------------
 *
 * freeze_options.c
 *	  Adaptive freezing of a single table: on or off, and its target duration.
 *
 * A table access method cannot have storage parameters of its own: a table knows
 * heap's only.  But an extension can have security labels, which are what is needed
 * here.  A label is text that belongs to one table, and its owner sets it.  It is in
 * pg_dump's output, stays when the table is renamed, and goes when it is dropped.
 * The label of provider "inplace" is a list of name=value, with the names of the
 * settings that it takes the place of:
 *
 *		adaptive_freezing=off, target_freeze_duration=3600
 *
 * What is not in it is as the setting says.  It is checked when it is set.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include <ctype.h>

#include "access/relation.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "commands/seclabel.h"
#include "freeze/freeze_options.h"
#include "freeze/freeze_stats.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "own.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#define FREEZE_LABEL_PROVIDER	"inplace"

PG_FUNCTION_INFO_V1(inplace_set_freeze_options);
PG_FUNCTION_INFO_V1(inplace_freeze_options);

/* without the blanks around it, in place */
static char *
trimmed(char *str)
{
	char	   *end;

	while (isspace((unsigned char) *str))
		str++;
	end = str + strlen(str);
	while (end > str && isspace((unsigned char) end[-1]))
		end--;
	*end = '\0';
	return str;
}

/*
 * Change *options by one name=value.  Returns what is wrong with it, or NULL.
 */
static const char *
apply_option(char *item, FreezeOptions *options)
{
	char	   *value = strchr(item, '=');

	if (value == NULL)
		return "An option must be given as name=value.";
	*value++ = '\0';
	item = trimmed(item);
	value = trimmed(value);
	if (strcmp(item, "adaptive_freezing") == 0)
	{
		if (!parse_bool(value, &options->adaptive))
			return "\"adaptive_freezing\" must be on or off.";
	}
	else if (strcmp(item, "target_freeze_duration") == 0)
	{
		if (!parse_int(value, &options->target, GUC_UNIT_S, NULL) ||
			options->target < 0)
			return "\"target_freeze_duration\" must be a time that is not negative: seconds, or with one of the units \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".";
	}
	else
		return "The options are \"adaptive_freezing\" and \"target_freeze_duration\".";
	return NULL;
}

static const char *
apply_label(const char *label, FreezeOptions *options)
{
	char	   *copy = pstrdup(label);
	char	   *item = copy;
	const char *fault = NULL;

	/* (a value may have a space in it, before its unit) */
	while (fault == NULL && item != NULL)
	{
		char	   *next = strchr(item, ',');

		if (next != NULL)
			*next++ = '\0';
		item = trimmed(item);
		/* the whole label may be empty, no item of a list */
		if (*item != '\0' || next != NULL || strchr(label, ',') != NULL)
			fault = apply_option(item, options);
		item = next;
	}
	pfree(copy);
	return fault;
}

/*
 * SECURITY LABEL FOR inplace: may the object have it?  The server has checked
 * already that its owner sets it.
 */
static void
check_label(const ObjectAddress *object, const char *label)
{
	FreezeOptions options;
	const char *fault;
	char		relkind;

	if (label == NULL)
		return;
	if (!InplaceInstalledHere())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("labels of provider \"%s\" need the extension in this database",
						FREEZE_LABEL_PROVIDER),
				 errhint("Use CREATE EXTENSION inplace.")));
	relkind = object->classId == RelationRelationId && object->objectSubId == 0 ?
		get_rel_relkind(object->objectId) : '\0';

	/* heap tables keep theirs: they may have been, or become, ours */
	if (relkind != RELKIND_RELATION && relkind != RELKIND_MATVIEW)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("labels of provider \"%s\" are for tables and materialized views",
						FREEZE_LABEL_PROVIDER)));
	fault = apply_label(label, &options);
	if (fault != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid label \"%s\" for provider \"%s\"",
						label, FREEZE_LABEL_PROVIDER),
				 errdetail_internal("%s", fault)));
}

void
FreezeOptionsInit(void)
{
	register_label_provider(FREEZE_LABEL_PROVIDER, check_label);
}

/*
 * The options of a table: its own, else the settings.
 */
void
FreezeOptionsGet(Oid relid, FreezeOptions *options)
{
	ObjectAddress object;
	char	   *label;

	options->adaptive = inplace_adaptive_freezing;
	options->target = inplace_target_freeze_duration;

	ObjectAddressSet(object, RelationRelationId, relid);
	label = GetSecurityLabel(&object, FREEZE_LABEL_PROVIDER);
	if (label != NULL)
	{
		(void) apply_label(label, options);
		pfree(label);
	}
}

/*
 * The owner alone, as with ALTER TABLE.
 */
static void
check_owner(Oid relid)
{
	if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)) &&
		!RelationOwnedBy(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER,
					   get_relkind_objtype(get_rel_relkind(relid)),
					   get_rel_name(relid));
}

/*
 * set_freeze_options(rel, adaptive_freezing, target_freeze_duration): what is
 * null is left to the setting.
 */
Datum
inplace_set_freeze_options(PG_FUNCTION_ARGS)
{
	ObjectAddress object;
	StringInfoData label;
	Relation	rel;
	Oid			relid;

	InplaceRequirePreload();
	PreventCommandIfReadOnly("inplace.set_freeze_options()");
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("relation must not be null")));
	relid = PG_GETARG_OID(0);

	/* first of all, so that nobody can lock tables of others */
	check_owner(relid);
	rel = InplaceOpenArgument(relid, ShareUpdateExclusiveLock);
	/* and again: only now can the owner not change any more */
	check_owner(relid);
	if (!RelationIsInplace(rel))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table of access method inplace",
						RelationGetRelationName(rel))));

	initStringInfo(&label);
	if (!PG_ARGISNULL(1))
		appendStringInfo(&label, "adaptive_freezing=%s",
						 PG_GETARG_BOOL(1) ? "on" : "off");
	if (!PG_ARGISNULL(2))
	{
		int32		target = PG_GETARG_INT32(2);

		if (target < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("target duration must not be negative")));
		appendStringInfo(&label, "%starget_freeze_duration=%d",
						 label.len > 0 ? ", " : "", target);
	}

	ObjectAddressSet(object, RelationRelationId, relid);
	SetSecurityLabel(&object, FREEZE_LABEL_PROVIDER,
					 label.len > 0 ? label.data : NULL);
	relation_close(rel, NoLock);
	PG_RETURN_VOID();
}

/*
 * What a VACUUM of this session would go by.
 */
Datum
inplace_freeze_options(PG_FUNCTION_ARGS)
{
	FreezeOptions options;
	TupleDesc	desc;
	Datum		values[2];
	bool		nulls[2] = {false, false};

	InplaceRequirePreload();
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	FreezeOptionsGet(PG_GETARG_OID(0), &options);
	values[0] = BoolGetDatum(options.adaptive);
	values[1] = Int32GetDatum(options.target);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc),
													  values, nulls)));
}

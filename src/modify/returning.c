/*-------------------------------------------------------------------------
 *
 * returning.c
 *	  The ctid that people see.
 *
 * The slot of an updated row carries a version tag in its TID (tuple.h) where
 * AFTER ROW triggers will ask for the version.  The executor queues the triggers'
 * events with that TID.  After that it evaluates RETURNING and the check options
 * of views, with the same slot.  There people would see the tag.
 *
 * So what is evaluated after the events begins with another step, which takes the
 * tag off the slot's TID.  The state of an expression names the function that
 * evaluates it.  A state that names one of ours takes the place of the state that
 * the executor has made, and calls that one.
 *
 * Nothing of this is in plans, views, or EXPLAIN, and no function is looked up
 * that somebody could have made, or revoked.  A query has the step as soon as it
 * has updated a row with a tag, and not before.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "executor/executor.h"
#include "modify/returning.h"
#include "nodes/execnodes.h"
#include "page/tuple.h"

typedef struct CleaningExpr
{
	ExprState	pub;
	ExprState  *inner;
} CleaningExpr;

typedef struct CleaningProjection
{
	ProjectionInfo pub;			/* its pi_state is that of a CleaningExpr ... */
	ExprState  *inner;			/* ... which goes on here */
} CleaningProjection;

static void
clean_slot(TupleTableSlot *slot)
{
	if (slot != NULL)
		TidClean(&slot->tts_tid, &slot->tts_tid);
}

static Datum
evaluate_clean(ExprState *state, ExprContext *econtext, bool *isnull)
{
	ExprState  *inner = ((CleaningExpr *) state)->inner;

	clean_slot(econtext->ecxt_scantuple);
	return inner->evalfunc(inner, econtext, isnull);
}

static Datum
project_clean(ExprState *state, ExprContext *econtext, bool *isnull)
{
	CleaningProjection *projection = (CleaningProjection *)
		((char *) state - offsetof(CleaningProjection, pub.pi_state));
	ExprState  *inner = projection->inner;

	clean_slot(econtext->ecxt_scantuple);
	clean_slot(ECXT_OLDTUPLE(econtext));
	/* the executor says there which of the two rows exist */
	inner->flags = (inner->flags & ~EEO_FLAGS_OF_RETURNING) |
		(state->flags & EEO_FLAGS_OF_RETURNING);
	return inner->evalfunc(inner, econtext, isnull);
}

/* the executor looks at this much of a state that is ready */
static void
copy_state(ExprState *copy, const ExprState *state, ExprStateEvalFunc evalfunc)
{
	copy->type = T_ExprState;
	copy->flags = state->flags;
	copy->resultslot = state->resultslot;
	copy->parent = state->parent;
	copy->expr = state->expr;
	copy->evalfunc = evalfunc;
}

static ProjectionInfo *
clean_projection(ProjectionInfo *projection)
{
	CleaningProjection *result;

	if (projection == NULL || projection->pi_state.evalfunc == project_clean)
		return projection;
	result = palloc0(sizeof(CleaningProjection));
	result->pub.type = T_ProjectionInfo;
	result->pub.pi_exprContext = projection->pi_exprContext;
	copy_state(&result->pub.pi_state, &projection->pi_state, project_clean);
	result->inner = &projection->pi_state;
	return &result->pub;
}

/* (those of policies are evaluated before the row has a place, and a tag) */
static void
clean_check_options(ResultRelInfo *rri)
{
	ListCell   *option;
	ListCell   *expr;

	forboth(option, rri->ri_WithCheckOptions, expr, rri->ri_WithCheckOptionExprs)
	{
		ExprState  *state = (ExprState *) lfirst(expr);
		CleaningExpr *clean;

		if (lfirst_node(WithCheckOption, option)->kind != WCO_VIEW_CHECK ||
			state == NULL || state->evalfunc == evaluate_clean)
			continue;
		clean = palloc0(sizeof(CleaningExpr));
		copy_state(&clean->pub, state, evaluate_clean);
		clean->inner = state;
		lfirst(expr) = clean;
	}
}

/*
 * A row of the table has been updated, and the TID in its slot has a tag.  Of the
 * executor's result relations several may be the table (in WITH).
 */
void
inplace_slot_tagged(Relation rel)
{
	EState	   *estate = inplace_executor_estate;
	MemoryContext old;
	List	   *lists[2];

	/* the apply worker has neither */
	if (estate == NULL)
		return;
	old = MemoryContextSwitchTo(estate->es_query_cxt);
	lists[0] = estate->es_opened_result_relations;
	lists[1] = estate->es_tuple_routing_result_relations;
	for (int i = 0; i < lengthof(lists); i++)
	{
		ListCell   *lc;

		foreach(lc, lists[i])
		{
			ResultRelInfo *rri = (ResultRelInfo *) lfirst(lc);

			if (rri->ri_RelationDesc != rel)
				continue;
			rri->ri_projectReturning = clean_projection(rri->ri_projectReturning);
			clean_check_options(rri);
		}
	}
	MemoryContextSwitchTo(old);
}

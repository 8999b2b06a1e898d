/*-------------------------------------------------------------------------
 *
 * above.c
 *	  Statements that another extension executes: CREATE INDEX, VACUUM FULL.
 *
 * The hooks of utility statements call one another, the one that was set last
 * first.  An extension that executes a statement itself, and does not call the
 * hook before its own (TimescaleDB, with indexes on hypertables, and any VACUUM),
 * keeps it from us.  The order of preloading does not help against one that loads its library
 * only when a session uses it.
 *
 * So these statements are looked at above the others, too: when a utility
 * statement is parsed, and the first hook is not one of ours, one of ours is put
 * above it.  It changes the statement and calls the next.  A statement that has
 * been changed is not changed again: it no longer says btree, or names no
 * relation of ours.
 *
 * A hook can be in the chain once, for it calls one that is next.  So there are
 * a few of them, which is as often as libraries can be loaded one after the other
 * and still be below us.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "ddl/above.h"
#include "ddl/default_method.h"
#include "own.h"
#include "parser/analyze.h"
#include "tcop/utility.h"
#include "utils/memutils.h"

#define UTILITY_PARAMS \
	PlannedStmt *pstmt, const char *queryString, bool readOnlyTree, \
	ProcessUtilityContext context, ParamListInfo params, \
	QueryEnvironment *queryEnv, DestReceiver *dest, QueryCompletion *qc
#define UTILITY_ARGS \
	pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc

#define ABOVE_HOOKS 4

static void above_0(UTILITY_PARAMS);
static void above_1(UTILITY_PARAMS);
static void above_2(UTILITY_PARAMS);
static void above_3(UTILITY_PARAMS);

static const ProcessUtility_hook_type above[ABOVE_HOOKS] =
{above_0, above_1, above_2, above_3};
static ProcessUtility_hook_type next[ABOVE_HOOKS];
static int	n_above = 0;

/* the one that does all the rest, and changes CREATE INDEX if nobody has */
static ProcessUtility_hook_type main_utility;

static post_parse_analyze_hook_type prev_post_parse_analyze_hook = NULL;

/* the statement to execute instead; NULL for none */
static Node *
statement_instead(Node *stmt, ProcessUtilityContext context, const char *query)
{
	Node	   *index;

	switch (nodeTag(stmt))
	{
		case T_IndexStmt:
			index = (Node *) inplace_index_stmt((IndexStmt *) stmt, query);
			return index != NULL ? index : stmt;
		case T_VacuumStmt:
			return (Node *) inplace_vacuum_stmt((VacuumStmt *) stmt,
												context == PROCESS_UTILITY_TOPLEVEL,
												true);
		default:
			return stmt;
	}
}

static void
call_next(ProcessUtility_hook_type hook, UTILITY_PARAMS)
{
	Node	   *stmt = pstmt->utilityStmt;

	if (InplaceInstalledNow())
		stmt = statement_instead(stmt, context, queryString);
	if (stmt == NULL)
		return;
	if (stmt != pstmt->utilityStmt)
	{
		/* where the statement is (VACUUM makes transactions of its own) */
		PlannedStmt *changed = MemoryContextAlloc(GetMemoryChunkContext(stmt),
												  sizeof(PlannedStmt));

		memcpy(changed, pstmt, sizeof(PlannedStmt));
		changed->utilityStmt = stmt;
		pstmt = changed;
	}
	hook(UTILITY_ARGS);
}

#define DEFINE_ABOVE(n) \
static void \
above_##n(UTILITY_PARAMS) \
{ \
	call_next(next[n], UTILITY_ARGS); \
}

DEFINE_ABOVE(0)
DEFINE_ABOVE(1)
DEFINE_ABOVE(2)
DEFINE_ABOVE(3)

static bool
is_ours(ProcessUtility_hook_type hook)
{
	for (int i = 0; i < n_above; i++)
		if (hook == above[i])
			return true;
	return hook == main_utility;
}

static void
put_above(ParseState *pstate, Query *query, JumbleState *jstate)
{
	/* this may load a library */
	if (prev_post_parse_analyze_hook)
		prev_post_parse_analyze_hook(pstate, query, jstate);

	if (query->commandType != CMD_UTILITY || n_above == ABOVE_HOOKS ||
		is_ours(ProcessUtility_hook) || !InplaceInstalledHere())
		return;
	next[n_above] = ProcessUtility_hook;
	ProcessUtility_hook = above[n_above++];
}

void
inplace_above_init(ProcessUtility_hook_type hook)
{
	main_utility = hook;
	prev_post_parse_analyze_hook = post_parse_analyze_hook;
	post_parse_analyze_hook = put_above;
}

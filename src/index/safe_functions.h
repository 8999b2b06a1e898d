/*-------------------------------------------------------------------------
 *
 * safe_functions.h
 *	  What computes the same in all sessions; see safe_functions.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_SAFE_FUNCTIONS_H
#define INPLACE_SAFE_FUNCTIONS_H

#include "inplace.h"

#include "nodes/nodes.h"

extern bool inplace_function_is_safe(Oid function);
extern bool inplace_expression_is_safe(Node *node);

#endif							/* INPLACE_SAFE_FUNCTIONS_H */

/*-------------------------------------------------------------------------
 *
 * links.h
 *	  Checking links; see links.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_INSIGHT_LINKS_H
#define INPLACE_INSIGHT_LINKS_H

#include "inplace.h"

#include "insight/walk.h"

/*
 * Call with each version of a walk and the xid that replaced it,
 * then at the end of the chain.  *links is NULL at first.  NULL, or what is
 * wrong.
 */
typedef struct InsightLink InsightLink;

extern const char *InsightCheckLinks(InsightLink **links,
									 const InsightWalk *walk,
									 TransactionId newer_xid);
extern const char *InsightCheckLinksEnd(const InsightLink *links);

#endif							/* INPLACE_INSIGHT_LINKS_H */

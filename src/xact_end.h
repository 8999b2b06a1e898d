/*-------------------------------------------------------------------------
 *
 * xact_end.h
 *	  What callbacks of transactions ask of an event.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_XACT_END_H
#define INPLACE_XACT_END_H

#include "inplace.h"

#include "access/xact.h"

/*
 * Has this backend left the transaction?  It has been committed, rolled back or prepared, be
 * it a parallel worker's part.  A callback that forgets state of the backend asks this: with
 * one of the events left out the next transaction would find the state.
 */
static inline bool
XactIsLeft(XactEvent event)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
		case XACT_EVENT_PREPARE:
			return true;
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			break;
	}
	return false;
}

/* was that because it failed? */
static inline bool
XactIsRolledBack(XactEvent event)
{
	return event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT;
}

#endif							/* INPLACE_XACT_END_H */

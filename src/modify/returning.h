/*-------------------------------------------------------------------------
 *
 * returning.h
 *	  Slots whose TID has a tag; see returning.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_RETURNING_H
#define INPLACE_RETURNING_H

#include "inplace.h"

extern void inplace_slot_tagged(Relation rel);

#endif							/* INPLACE_RETURNING_H */

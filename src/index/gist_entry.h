/*-------------------------------------------------------------------------
 *
 * gist_entry.h
 *	  Has a GiST index an entry already?  See gist_entry.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_GIST_ENTRY_H
#define INPLACE_GIST_ENTRY_H

#include "inplace.h"

extern bool inplace_gist_has_entry(Relation index, const Datum *values,
								   const bool *isnull, ItemPointer tid,
								   bool one_entry);

#endif							/* INPLACE_GIST_ENTRY_H */

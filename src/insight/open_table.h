/*-------------------------------------------------------------------------
 *
 * open_table.h
 *	  Opening a table for the functions that look into it; see open_table.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_OPEN_TABLE_H
#define INPLACE_OPEN_TABLE_H

#include "inplace.h"

extern Relation InsightOpenTable(Oid relid, bool read_rows);

#endif							/* INPLACE_OPEN_TABLE_H */

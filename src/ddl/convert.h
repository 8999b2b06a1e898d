/*-------------------------------------------------------------------------
 *
 * convert.h
 *	  Converting tables; see convert.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_CONVERT_H
#define INPLACE_CONVERT_H

#include "inplace.h"

#include "nodes/pg_list.h"
#include "storage/lockdefs.h"

extern List *inplace_partition_tree(Oid relid, LOCKMODE lockmode);

#endif							/* INPLACE_CONVERT_H */

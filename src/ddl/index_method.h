/*-------------------------------------------------------------------------
 *
 * index_method.h
 *	  Changing the method of an index that is there; see index_method.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_INDEX_METHOD_H
#define INPLACE_INDEX_METHOD_H

#include "inplace.h"

extern bool inplace_index_can_have_method(Oid indexid, Oid am);
extern void inplace_index_set_method(Oid indexid, Oid am);

#endif							/* INPLACE_INDEX_METHOD_H */

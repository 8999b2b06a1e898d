/*-------------------------------------------------------------------------
 *
 * index_delete.h
 *	  Which entries of an index may go; see index_delete.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_INDEX_DELETE_H
#define INPLACE_INDEX_DELETE_H

#include "inplace.h"

extern TransactionId inplace_index_delete_tuples(Relation rel,
												 TM_IndexDeleteOp *delstate);

#endif							/* INPLACE_INDEX_DELETE_H */

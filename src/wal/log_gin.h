/*-------------------------------------------------------------------------
 *
 * log_gin.h
 *	  A page of a GIN index from which VACUUM has deleted; see log_gin.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_LOG_GIN_H
#define INPLACE_LOG_GIN_H

#include "inplace.h"

#include "storage/buf.h"

extern void inplace_log_gin_entries(Relation index, Buffer buffer);

#endif							/* INPLACE_LOG_GIN_H */

/*-------------------------------------------------------------------------
 *
 * ddl.h
 *	  What is done to tables and indexes as a whole.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_DDL_H
#define INPLACE_DDL_H

#include "inplace.h"

/* setting inplace.toast_in_place; asked when a TOAST table is made */
extern bool inplace_toast_in_place;

/* utility.c */
extern void inplace_utility_init(void);

/* filled into the routine by handler.c */
extern void inplace_init_build_methods(TableAmRoutine *am);
extern void inplace_init_cluster_methods(TableAmRoutine *am);
extern void inplace_init_ddl_methods(TableAmRoutine *am);

#endif							/* INPLACE_DDL_H */

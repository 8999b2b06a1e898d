/*-------------------------------------------------------------------------
 *
 * truncate.h
 *	  Giving back the empty end of a table; see truncate.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_TRUNCATE_H
#define INPLACE_TRUNCATE_H

#include "inplace.h"

#include "vacuum/vacuum.h"

extern void inplace_vacuum_truncate_all(InplaceVacuum *vac);

#endif							/* INPLACE_TRUNCATE_H */

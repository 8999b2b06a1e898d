/*-------------------------------------------------------------------------
 *
 * other_mark.h
 *	  Whether rows of this database have been updated in place under indexes of other
 *	  methods; see other_mark.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_OTHER_MARK_H
#define INPLACE_OTHER_MARK_H

#include "inplace.h"

extern bool inplace_others_marked(char persistence);
extern bool inplace_others_known_marked(Relation table);
extern void inplace_mark_others(void);

#endif							/* INPLACE_OTHER_MARK_H */

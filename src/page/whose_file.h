/*-------------------------------------------------------------------------
 *
 * whose_file.h
 *	  Looking at pages of files that may be another access method's; see
 *	  whose_file.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_WHOSE_FILE_H
#define INPLACE_WHOSE_FILE_H

#include "inplace.h"

#include "storage/bufpage.h"

extern void inplace_copy_page(Relation rel, BlockNumber blk, Page copy);
extern bool inplace_heap_has_our_file(Relation rel);

#endif							/* INPLACE_WHOSE_FILE_H */

/*-------------------------------------------------------------------------
 *
 * whose_page.h
 *	  Tables whose file is another access method's; see whose_page.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_WHOSE_PAGE_H
#define INPLACE_WHOSE_PAGE_H

#include "inplace.h"

#include "nodes/nodes.h"

extern void inplace_check_tables_of(Node *stmt);
extern void inplace_whose_page_init(void);

/* after_upgrade.c */
extern bool inplace_settle_marked(bool *failed);
extern void inplace_after_upgrade_init(void);

#endif							/* INPLACE_WHOSE_PAGE_H */

/*-------------------------------------------------------------------------
 *
 * process_exit.h
 *	  What a process must not leave in shared memory; see process_exit.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_PROCESS_EXIT_H
#define INPLACE_PROCESS_EXIT_H

#include "inplace.h"

/* raises no error, and waits for nobody; nothing to forget is no fault */
typedef void (*ForgetAtExit) (void);

/* no page is locked */
extern void InplaceForgetAtExit(ForgetAtExit forget);

#endif							/* INPLACE_PROCESS_EXIT_H */

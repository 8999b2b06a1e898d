/*-------------------------------------------------------------------------
 *
 * process_exit.h
 *	  What a process must not leave in shared memory; see process_exit.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_PROCESS_EXIT_H
#define INPLACE_PROCESS_EXIT_H

/* raises no error, and waits for nobody; nothing to forget is no fault */
typedef void (*ForgetAtExit) (void);

/* no page is locked; once in a process */
extern void InplaceForgetAtExit(ForgetAtExit forget);

#endif							/* INPLACE_PROCESS_EXIT_H */

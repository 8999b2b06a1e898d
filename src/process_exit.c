/*-------------------------------------------------------------------------
 *
 * process_exit.c
 *	  What a process must not leave in shared memory.
 *
 * Places in shared memory that belong to a backend are cleared by callbacks of its
 * transactions.  They may not come to it: a callback of another module that was registered
 * later is called earlier, and may end the process.  The next process in the same
 * place among the backends would take what is there for its own.  So whatever has such a
 * place registers here, too, before it puts anything there.
 *
 * The server has room for few such callbacks, which all modules share, so all of
 * ours are one.  It is called when the last transaction has been rolled back as far as that
 * goes, lightweight locks have been let go of, and MyProc is still there.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "process_exit.h"
#include "storage/ipc.h"

#define MOST_FORGETS	8

static ForgetAtExit forgets[MOST_FORGETS];
static int	nforgets = 0;

static void
process_exits(int code, Datum arg)
{
	while (nforgets > 0)
		forgets[--nforgets] ();
}

void
InplaceForgetAtExit(ForgetAtExit forget)
{
	/* again, if what the caller did next failed */
	for (int i = 0; i < nforgets; i++)
		if (forgets[i] == forget)
			return;
	if (nforgets == MOST_FORGETS)
		elog(ERROR, "too many callbacks for the end of a process");
	if (nforgets == 0)
		on_shmem_exit(process_exits, (Datum) 0);
	forgets[nforgets++] = forget;
}

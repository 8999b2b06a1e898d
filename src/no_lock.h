#ifndef INPLACE_NO_LOCK_H
#define INPLACE_NO_LOCK_H

#define AssertNoPageLock() ((void) 0)

#endif							/* INPLACE_NO_LOCK_H */

/* What PostgreSQL includes beside it: see there. */
#include "memcheck.h"

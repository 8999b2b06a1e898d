"""Is the machine equally fast all the time?  (One that shares its cores with others is not.)"""

from __future__ import annotations

import time

ADDITIONS = 50000


def loop() -> float:
    """CPU time, in ms, of a loop that is always the same."""
    start = time.thread_time()
    total = 0
    for i in range(ADDITIONS):
        total += i
    return (time.thread_time() - start) * 1000

"""The workloads, in the order in which they run."""

from __future__ import annotations

from ..model import Workload
from . import (
    bloat, bottom_up, documents, documents_wal, freeze, hot, hot_rows, index_scans, insert,
    one_statement, other_indexes, parallel_q6, pgbench_builtin, queue, queue_held, scans, sysbench,
    update_wal, wandering, warm)

WORKLOADS: dict[str, Workload] = {w.name: w for w in (
    bloat.Bloat(), hot_rows.HotRows(), *hot.ALL, *warm.ALL, wandering.Wandering(), *bottom_up.ALL,
    queue.Queue(), queue_held.QueueHeld(), documents.Documents(), documents_wal.DocumentsWal(),
    one_statement.OneStatement(), update_wal.UpdateWal(), *other_indexes.ALL,
    parallel_q6.ParallelQ6(), index_scans.IndexScans(), *freeze.ALL, *pgbench_builtin.ALL,
    *insert.ALL, *scans.ALL, sysbench.Sysbench())}

"""bench/run: the published results, reproduced for inplace beside another table
access method.

    server.py     connections, the databases made here, facts about the server
    cpu.py        CPU time of the server's processes
    wal.py        WAL written, split into records and full-page images
    buffers.py    pages read and written
    sampler.py    sizes over time
    holder.py     a session that holds snapshots
    pgbench.py    running pgbench, its rate and latencies
    measure.py    all of these around one load
    model.py      what a workload is; metrics and targets
    plan.py       rounds, their order, the time left
    results.py    medians, ratios, targets met; JSON
    text.py       the table in the terminal and in docs/benchmarks.md
    report.py     the HTML report, with plots.py
    cli.py        arguments
    workloads/    one file each
"""

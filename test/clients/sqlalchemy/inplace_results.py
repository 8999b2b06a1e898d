# A pytest plugin that writes each test's result to $RESULTS_FILE.
import os

_file = open(os.environ["RESULTS_FILE"], "a", buffering=1)


def pytest_runtest_logreport(report):
    name = report.nodeid.replace(" ", "_")
    if report.failed:
        _file.write(f"FAIL {name}\n")
    elif report.when == "call" and report.passed:
        _file.write(f"ok {name}\n")


def pytest_collectreport(report):
    if report.failed:
        _file.write(f"FAIL {report.nodeid.replace(' ', '_')}\n")


def pytest_sessionfinish(session, exitstatus):
    # 0, and 1: tests failed; anything else: not all tests were run
    if exitstatus in (0, 1):
        _file.write("end\n")

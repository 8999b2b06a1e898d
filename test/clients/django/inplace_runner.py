# Django's test runner, which writes each test's result to $RESULTS_FILE.
import os
import unittest

from django.test.runner import DiscoverRunner

_file = open(os.environ["RESULTS_FILE"], "a", buffering=1)


class Result(unittest.TextTestResult):
    def _tell(self, status, test):
        # A failure outside of any test (setUpClass) has an id with blanks.
        _file.write(f"{status} {test.id().replace(' ', '_')}\n")

    def startTest(self, test):
        self._subtest_failed = False
        super().startTest(test)

    def addSuccess(self, test):
        super().addSuccess(test)
        if not self._subtest_failed:
            self._tell("ok", test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None and not self._subtest_failed:
            self._subtest_failed = True
            self._tell("FAIL", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._tell("FAIL", test)

    def addError(self, test, err):
        super().addError(test, err)
        self._tell("FAIL", test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self._tell("FAIL", test)


class Runner(DiscoverRunner):
    def get_resultclass(self):
        return Result

    def run_suite(self, suite, **kwargs):
        result = super().run_suite(suite, **kwargs)
        _file.write("end\n")
        return result

"""Says how far the tests are that several processes run, in place of their dots."""

import threading
import time

EVERY = 10.0  # seconds from one line to the next


class Counts:
    """Prints how many tests have ended, and how many end in a second.

    A plugin of pytest beside pytest-xdist, which prints nothing before the first test
    has ended, and then a dot for each.

    Args:
        config: Configuration of pytest, which has no terminal yet.
    """

    def __init__(self, config):
        self.config = config
        self.total = self.done = self.failed = 0
        self.dear, self.seconds = {}, 0.0
        self.begin, self.ended = time.monotonic(), threading.Event()

    def pytest_xdist_setupnodes(self, specs):
        self._print(f"{len(specs)} processes import and collect the tests")
        threading.Thread(target=self._print_lines, daemon=True).start()

    def pytest_xdist_node_collection_finished(self, ids):
        if not self.total:
            self.total, self.begin = len(ids), time.monotonic()
            self._print(f"{self.total:,} tests")

    def pytest_report_teststatus(self, report):
        if report.passed:
            return "passed" if report.when == "call" else "", "", ""
        is_error = report.failed and report.when != "call"
        return "error" if is_error else report.outcome, "", report.outcome.upper()

    def pytest_runtest_logreport(self, report):
        self.done += report.when == "teardown"
        if report.failed:
            self.failed += 1
            self._print(f"FAILED {report.nodeid}")

    def pytest_testnodedown(self, node):
        output = getattr(node, "workeroutput", {})  # none of a process that died
        self.dear |= output.get("dear", {})
        self.seconds += output.get("seconds", 0.0)

    def pytest_sessionfinish(self):
        self.ended.set()

    def pytest_terminal_summary(self):
        self._print(f"{self.seconds:,.0f} s of processor time")
        for name, seconds in self.dear.items():
            self._print(
                f"{seconds:.1f} s of it: {name}, which is not in slow_tests.txt"
            )

    def _print(self, line):
        self.config.pluginmanager.getplugin("terminalreporter").write_line(line)

    def _print_lines(self):
        while not self.ended.wait(EVERY):
            if self.total > self.done:
                self._print(self.line())

    def line(self) -> str:
        rate = self.done / (time.monotonic() - self.begin)
        failed = f", {self.failed:,} failed" if self.failed else ""
        return f"{self.done:,} of {self.total:,} tests, {rate:.1f} a second{failed}"

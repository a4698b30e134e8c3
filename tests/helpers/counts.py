"""Says how far the tests are that several processes run, in place of their dots."""

import threading
import time

EVERY = 10.0  # seconds from one line to the next


class Counts:
    """Prints how many tests have ended, and how many end in a second.

    A plugin of pytest beside pytest-xdist, which prints nothing before the first test
    has ended, and then a dot for each.

    Args:
        terminal: Plugin `terminalreporter` of pytest.
    """

    def __init__(self, terminal):
        self.terminal = terminal
        self.total = self.done = self.failed = 0
        self.begin, self.ended = time.monotonic(), threading.Event()

    def pytest_xdist_setupnodes(self, specs):
        self.terminal.write_line(f"{len(specs)} processes import and collect the tests")
        threading.Thread(target=self._print, daemon=True).start()

    def pytest_xdist_node_collection_finished(self, ids):
        if not self.total:
            self.total, self.begin = len(ids), time.monotonic()
            self.terminal.write_line(f"{self.total:,} tests")

    def pytest_report_teststatus(self, report):
        if report.outcome in ("passed", "skipped"):
            is_result = report.when == "call" or report.skipped
            return report.outcome if is_result else "", "", ""
        return None

    def pytest_runtest_logreport(self, report):
        self.done += report.when == "teardown"
        self.failed += report.failed

    def pytest_sessionfinish(self):
        self.ended.set()

    def _print(self):
        while not self.ended.wait(EVERY):
            if self.total:
                self.terminal.write_line(self.line())

    def line(self) -> str:
        rate = self.done / (time.monotonic() - self.begin)
        failed = f", {self.failed:,} failed" if self.failed else ""
        return f"{self.done:,} of {self.total:,} tests, {rate:.1f} a second{failed}"

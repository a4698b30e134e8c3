"""What each test costs by itself, and which tests are slow by that."""

import os
import pathlib

import pytest

SLOW = pathlib.Path(__file__).parents[1] / "slow_tests.txt"
LIMIT = 2.0  # seconds of processor time from which on a test is slow
DEAR = 3 * LIMIT  # those from which on a quick test is named, also where it is busy


def read_seconds(path: pathlib.Path) -> dict[str, float]:
    """Reads lines of seconds and the name of a test, or of a file of tests."""
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = [line.split(maxsplit=1) for line in lines if not line.startswith("#")]
    return {name: float(seconds) for seconds, name in pairs}


def is_slow(test: str, slow: dict[str, float]) -> bool:
    """Whether a test, or its whole file, is among slow ones."""
    return test in slow or test.partition("::")[0] in slow


def processor_time() -> float:
    """Seconds of this process and of the processes that it has waited for."""
    return sum(os.times()[:4])


class Durations:
    """Measures the processor time of tests, with the fixtures that they share.

    A shared fixture is made during one test; it is counted to each test that uses it,
    since each of them would make it.

    Args:
        record: Path of a file that gets a line for each test, or `None`.
    """

    def __init__(self, record: str | None):
        self.record, self.dear = record, {}
        self._fixtures, self._made = {}, 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        if fixturedef.scope == "function":
            return (yield)
        begin, made = processor_time(), self._made
        try:
            return (yield)
        finally:
            whole = processor_time() - begin
            # Without the fixtures that this one has made, which are counted too.
            self._fixtures[fixturedef] = whole - (self._made - made)
            self._made = made + whole

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        begin, self._made = processor_time(), 0.0
        result = yield
        own = processor_time() - begin - self._made
        found = item._fixtureinfo.name2fixturedefs.values()
        used = {fixture for fixtures in found for fixture in fixtures}
        shared = sum(self._fixtures.get(fixture, 0.0) for fixture in used)
        if self.record:
            with open(self.record, "a", encoding="utf-8") as file:
                file.write(f"{own + shared:.2f} {item.nodeid}\n")
        if own > DEAR and not item.get_closest_marker("slow"):
            self.dear[item.nodeid] = own
        return result

    def pytest_sessionfinish(self, session):
        output = getattr(session.config, "workeroutput", {})  # of a process of several
        output |= {"dear": self.dear, "seconds": processor_time()}

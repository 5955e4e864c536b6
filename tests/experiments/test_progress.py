"""What a run shows of how far it is, at times that are given."""

from collections.abc import Iterator
from dataclasses import replace

from prefmh_web.experiments.progress import Display, Pace, Standing, described

START = Standing("run", "pref-sep-s0", 2, 5, 0, 6_000, "steps", 0, 0.0, 0.0, 60_000.0)


class Screen:
    """What was written, and a clock that is set by hand."""

    def __init__(self, columns: int | None = None) -> None:
        self.written: list[str] = []
        self.now = 1_000.0
        self.display = Display(self.written.append, lambda: self.now, columns, self.foretell)

    def foretell(self, rate: float) -> Iterator[str]:
        yield f"at {rate:g} a second"

    def show(self, seconds: float, requests: int, **more: object) -> None:
        """Show where a run is so many seconds after the last time."""
        self.now += seconds
        self.display.show(lambda: replace(START, requests=requests, work=float(requests), **more))


def paced(*measured: tuple[float, int, float]) -> Pace:
    pace = Pace()
    for each in measured:
        pace.measure(*each)
    return pace


def test_a_line_says_stage_part_steps_requests_rate_cost_and_time_left():
    standing = replace(START, done=1_200, requests=12_000, cost=3.5, work=12_000.0)
    pace = paced((0.0, 10_000, 9_600.0), (40.0, 12_000, 12_000.0))
    assert described(standing, pace) == (
        "run, part 2 of 5 (pref-sep-s0): 1,200 of 6,000 steps, 12,000 requests (50.0/s), cost 3.50, about 13 min left"
    )


def test_without_a_terminal_there_is_a_line_now_and_then():
    screen = Screen()
    for second in range(91):
        screen.show(1.0, 2 * second)
    lines = [line for line in screen.written if line.startswith("run")]
    assert len(lines) == 4
    assert all(line.endswith("\n") and "\r" not in line for line in screen.written)
    assert "180 requests (2.0/s)" in lines[-1]


def test_in_a_terminal_there_is_one_line_and_others_stand_above_it():
    screen = Screen(columns=40)
    screen.show(0.0, 0)
    screen.show(1.0, 5)
    screen.display.say("pref-sep-s0: done")
    screen.display.end()
    first, second, cleared, said = screen.written
    assert first.startswith("\r\x1b[K")
    assert second.startswith("\r\x1b[Krun, part 2 of 5")
    assert len(second) - len("\r\x1b[K") == 39
    assert cleared == "\r\x1b[K"
    assert said == "pref-sep-s0: done\n"

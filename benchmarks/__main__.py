"""Run the benchmarks: `python -m benchmarks --quick`."""

import argparse
import math
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import figures, picture, plot, report
from benchmarks.datasets import DATASETS, Written, ensure
from benchmarks.machine import fingerprint
from benchmarks.registry import THEMES, Case, load_theme
from benchmarks.report import CaseResult
from benchmarks.rounds import ENOUGH_PROCESS_SECONDS_QUICK, run_case
from benchmarks.summary import amount_of, exit_code, summarise

HERE = Path(__file__).resolve().parent
EXAMPLE = """\
example: the themes in_order and index on small data, one round each
  python -m benchmarks --quick --theme in_order --theme index --rounds 1

exit code: 0 fine, 1 anybatch failed or somebody decoded other values, 2 the run itself was not possible
"""


def main() -> int:
    """Run the chosen themes and return the exit code."""
    chosen = arguments()
    # being told to end is like ctrl-C: the child under way ends too
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = max([run_theme(name, chosen) for name in chosen.theme or THEMES])
        return max(code, show_all()) if everything(chosen) else code
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("benchmarks: interrupted; the theme under way wrote nothing", file=sys.stderr)
        return 130


def everything(chosen: argparse.Namespace) -> bool:
    """Return whether this run has measured all that is kept and shown."""
    less = chosen.quick or chosen.theme or chosen.case or chosen.without
    return not less and chosen.out == HERE / "results"


def show_all() -> int:
    """Draw the picture of memory over time, and write the tables of the README."""
    return max(picture.main(), figures.main())


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure anybatch beside its peers, each round in a fresh process.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small data, fewer cases and contenders, 2 rounds: below 10 minutes on 2 cores, not hours",
    )
    parser.add_argument("--theme", action="extend", nargs="+", choices=THEMES, help="default: all themes")
    parser.add_argument("--case", action="append", default=[], metavar="NAME", help="only these cases")
    parser.add_argument("--rounds", type=positive, help="timed rounds per contender (default 5, quick 2)")
    parser.add_argument(
        "--without", action="append", default=[], metavar="NAME", help="leave a contender out"
    )
    parser.add_argument("--out", type=Path, default=HERE / "results", help="where results go (%(default)s)")
    parser.add_argument("--data", type=Path, default=HERE / ".data", help="where data is kept (%(default)s)")
    return parser.parse_args()


def positive(text: str) -> int:
    """Return a whole number above zero."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} rounds measure nothing; at least 1 is needed")
    return number


def run_theme(name: str, chosen: argparse.Namespace) -> int:
    """Run one theme, show and write its results, and return its exit code."""
    theme, machine = load_theme(name), fingerprint()
    cases = theme.sized(quick=chosen.quick)
    if not cases:
        print(f"{name}: at full size only", file=sys.stderr)
        return 0
    wanted = [case for case in cases if not chosen.case or case.name in chosen.case]
    if not wanted:
        there = ", ".join(case.name for case in cases)
        print(f"{name}: no case is called {' or '.join(chosen.case)}; there are {there}", file=sys.stderr)
        return 2
    machine["quick"] = chosen.quick
    results = [run_one(theme.name, case.without(chosen.without), chosen) for case in wanted]
    stem = "-".join([name, *(["quick"] if chosen.quick else []), *chosen.case])
    report.show(theme, results, machine)
    report.write_lines(chosen.out / f"{stem}.jsonl", theme, results, machine)
    drawn = draw(chosen.out / f"{stem}.svg", theme, results)
    print(f"written: {chosen.out / stem}.jsonl{', .svg' if drawn else ''}", file=sys.stderr)
    return exit_code(row for _, _, rows in results for row in rows)


def run_one(theme: str, case: Case, chosen: argparse.Namespace) -> CaseResult:
    """Write the data of one case if need be, and run everybody on it."""
    written = data_of(case, chosen, quick=chosen.quick)
    print(f"{theme}/{case.name}: {written.folder.name}", file=sys.stderr)
    rounds = chosen.rounds or (2 if chosen.quick else 5)
    enough = ENOUGH_PROCESS_SECONDS_QUICK if chosen.quick else math.inf
    fewer = data_of(case, chosen, quick=True) if any(one.fewer for one in case.contenders) else None
    standings = run_case(case, written, rounds=rounds, fewer=fewer, enough_process_seconds=enough)
    return case, standings, summarise(case, standings, amount_of(case, written))


def data_of(case: Case, chosen: argparse.Namespace, *, quick: bool) -> Written:
    """Return the data of a case in one of its sizes, written now if it is not there."""
    if not case.dataset:
        return Written.nothing(chosen.data, case.promised)
    return ensure(DATASETS[case.dataset], chosen.data, quick=quick)


def draw(path: Path, theme: Any, results: list[CaseResult]) -> bool:
    """Draw the plot where matplotlib is installed; return whether it was."""
    try:
        plot.draw(path, theme, results)
    except ImportError as error:
        print(f"no plot: {error}; `pip install matplotlib` brings it", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())

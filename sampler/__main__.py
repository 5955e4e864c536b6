"""The command line, python -m sampler COMMAND; heavy imports wait until their command runs.

To add one: a function that does it, whose docstring is the help, one that says what it takes, and a row in `COMMANDS`.
A command prints what it finds, and returns the exit status; None is 0.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from sampler.diagnostics.findings import CLUSTERS
from sampler.experiments.outputs import MissingExtra, analysis_library, torch_library
from sampler.record.record import RecordError


class UnusableError(Exception):
    """Options that do not go together, or a file that does not hold what the command needs; the message says which."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0, 2 with a message on stderr when it cannot be done, or what the command returns."""
    parser = argparse.ArgumentParser(
        prog="python -m sampler",
        description="Exact Metropolis-Hastings from binary votes: experiments and diagnostics.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (run, add_arguments) in COMMANDS.items():
        about, _, details = inspect.cleandoc(run.__doc__ or "").partition("\n\n")
        add_arguments(commands.add_parser(name, help=about, description=details))
    options = parser.parse_args(arguments)
    try:
        status = COMMANDS[options.command][0](options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, `head` say, has seen enough. Nothing may be flushed into the broken pipe on the way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (MissingExtra, OSError, RecordError, UnusableError) as problem:
        print(f"{parser.prog} {options.command}: error: {problem}", file=sys.stderr)
        return 2
    return status or 0


def _whole(least: int, text: str) -> int:
    """Return a whole number of at least so much; `argparse` reports any other text."""
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, not {text!r}")
    return int(text)


_SEED, _POSITIVE, _SEVERAL = (partial(_whole, least) for least in (0, 1, 2))


def _print(lines: Iterable[object]) -> None:
    for line in lines:
        print(line)


def _number(command: argparse.ArgumentParser, name: str, kind: Callable[[str], int], default: int, what: str) -> None:
    command.add_argument(name, type=kind, default=default, metavar="N", help=f"{what} (default: %(default)s)".lstrip())


def _out(command: argparse.ArgumentParser, default: str, what: str = "output file") -> None:
    command.add_argument("--out", type=Path, default=Path(default), help=f"{what} (default: %(default)s)")


def _synthetic_arguments(command: argparse.ArgumentParser) -> None:
    _out(command, "synthetic", "output folder")
    _number(command, "--seed", _SEED, 0, "random seed")


def _synthetic(options: argparse.Namespace) -> None:
    """The paper's synthetic experiment: seven chains, TV to the known target, two figures.

    Run Oracle MH, Pref-MH and the invalid plug-in rule with N = 1, 2, 4 votes for 150,000 steps on the paper's 241
    states. Writes tv and distributions, each as CSV, SVG and PNG.
    """
    from sampler.experiments import synthetic

    # Both needed and both checked before any work is done.
    analysis_library("matplotlib")
    tqdm = analysis_library("tqdm").tqdm
    with tqdm(total=len(synthetic.METHODS) * synthetic.STEPS, unit=" steps", unit_scale=True) as bar:
        curves = synthetic.run(options.seed, progress=bar.update)
    _print(f"{each.method.label:16} TV after {each.times[-1]:,} steps: {each.tv[-1]:.4f}" for each in curves)
    _print(synthetic.write_results(curves, options.out))


def _diagnose_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("export", type=Path, metavar="EXPORT.zip", help="the ZIP downloaded from a campaign's page")
    command.add_argument(
        "--cluster",
        choices=CLUSTERS,
        metavar="|".join(CLUSTERS),
        help="votes that may depend on each other, and are one cluster of intervals (default: prompt where the objects "
        "answer several prompts, else chain)",
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="write what results.csv and the verdict say")
    command.add_argument("--html", type=Path, metavar="FILE", help="write one page with pictures, for a co-author")
    _number(command, "--seed", _SEED, 0, "of the bootstrap of kappa and of the tests for cycles")


def _diagnose(options: argparse.Namespace) -> None:
    """A report on an exported campaign: verdict, convergence, position bias, scores, agreement.

    Print the verdict on the chains, which share of the proposals is accepted, R-hat and effective sample sizes of the
    objects' properties, each source's position bias, and for each question Bradley-Terry scores fitted together
    with the position bias, a test for cyclic preferences, and kappas of shared and repeated questions.
    """
    from sampler.diagnostics.findings import findings
    from sampler.diagnostics.page import page
    from sampler.diagnostics.report import diagnose
    from sampler.record.record import read_record

    rng = np.random.default_rng(options.seed)
    record = read_record(options.export)
    found = findings(record, rng, options.cluster)
    _print(diagnose(found, rng))
    if options.json is not None:
        written = json.dumps(found.results.as_json(), indent=1, ensure_ascii=False)
        options.json.write_text(written + "\n", encoding="utf-8")
    if options.html is not None:
        options.html.write_bytes(page(found))


def _vocabulary_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("molecules", type=Path, nargs="*", metavar="MOLECULES.smi", help=".smi, .csv or .tsv files")
    _number(command, "--most", _POSITIVE, 1_000, "how many fragments to keep")
    _out(command, "fragments.tsv")


def _vocabulary(options: argparse.Namespace) -> None:
    """Fragments for molecule chains, cut from your own molecules.

    Cut molecules at acyclic single bonds to ring or functional atoms and list the fragments of at most 10 heavy atoms,
    most frequent first. Reads the first field of every line. Without files: the SMILES in RDKit's wheel, which the
    package's own list was cut from.
    """
    from sampler.spaces.molecules.vocabulary import write_vocabulary

    try:
        print(write_vocabulary(options.molecules, options.out, options.most))
    except ValueError as problem:
        raise UnusableError(str(problem)) from problem


def _pilot_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--fragments", type=Path, metavar="FILE", help="vocabulary (default: the package's own)")
    _number(command, "--steps", _POSITIVE, 1_200_000, "")
    _number(command, "--seed", _SEED, 0, "")
    _out(command, "size_weights.tsv")


def _pilot(options: argparse.Namespace) -> None:
    """Log-weights of molecule sizes, so that a chain without judges has drug-like sizes.

    Learn how many molecules there are of each size by stochastic approximation (Wang-Landau), then set the log-
    weights of p0 so that sizes follow a truncated normal distribution. The package's own were made so.
    """
    from sampler.kernels.fragments import write_pilot

    tqdm = analysis_library("tqdm").tqdm
    try:
        with tqdm(total=options.steps, unit=" steps", unit_scale=True) as bar:
            write_pilot(options.fragments, options.out, options.steps, options.seed, progress=bar.update)
    except ValueError as problem:
        raise UnusableError(str(problem)) from problem
    print(options.out)


def _mars_arguments(command: argparse.ArgumentParser) -> None:
    _number(command, "--chains", _SEVERAL, 200, "")
    _number(command, "--steps", _POSITIVE, 1_000, "")
    _number(command, "--seed", _SEED, 0, "of the first run")
    _number(command, "--seeds", _POSITIVE, 1, "number of runs, with the seeds S, S + 1, ...")
    command.add_argument(
        "--convention",
        choices=("exact", "paper"),
        default="exact",
        help="how r0 is computed; paper: r0 = 1, as published, not exact (default: %(default)s)",
    )
    command.add_argument(
        "--proposal",
        choices=("plain", "learned"),
        default="plain",
        help="plain: fragments drawn at random; learned: chosen by MARS's editor, which learns from edits that raise "
        "the score; needs the extra [gpu] (default: %(default)s)",
    )
    learned = command.add_argument_group("with --proposal learned")
    learned.add_argument("--learning-steps", type=_SEED, metavar="N", help="after step N the editor stays as it is")
    learned.add_argument(
        "--device", default="cpu", metavar="NAME", help="where the editor computes, as PyTorch names it (default: cpu)"
    )
    learned.add_argument("--record", type=Path, metavar="DIR", help="write DIR/mars-sSEED.zip, for `manage.py replay`")
    _out(command, "mars.csv")


def _mars(options: argparse.Namespace) -> None:
    """Molecule chains driven by drug-likeness and ease of synthesis, as in MARS.

    Run chains from CC that accept with min(1, r0 (s(x')/s(x))^30), where s is the mean of min(QED, 0.7) and min((10
    - SA)/9, 0.7). Prints QED, SA, diversity and more of the final molecules, mean and standard error over seeds,
    and writes them as CSV. With --proposal learned, fragments are chosen by an editor that learns.
    """
    from sampler.experiments import mars

    tqdm = analysis_library("tqdm").tqdm
    if options.proposal == "learned":
        torch_library()
    elif options.record or options.learning_steps is not None:
        raise UnusableError("--record and --learning-steps are for --proposal learned; leave them out, or ask for that")
    # Nobody wants to hear only after minutes that the file cannot be written.
    with options.out.open("a", encoding="utf-8"):
        pass
    fixed = {name: getattr(options, name) for name in ("chains", "steps", "convention", "learning_steps")}
    runs: dict[int, list[mars.FinalMolecule]] = {}
    with tqdm(total=options.seeds * options.steps, unit=" steps") as bar:
        for seed in range(options.seed, options.seed + options.seeds):
            settings = mars.MarsSettings(seed=seed, **fixed)
            if options.proposal == "learned":
                path = options.record and options.record / f"mars-s{seed}.zip"
                runs[seed] = mars.run_learned(settings, path, options.device, progress=lambda step: bar.update())
            else:
                runs[seed] = mars.run_mars(settings, on_step=lambda step: bar.update())
    mars.write_molecules(runs, options.out)
    _print(mars.table(list(runs.values())))
    print(options.out)


def _report(options: argparse.Namespace) -> None:
    """Tables and figures of an experiment, from its folder alone.

    Write table.csv, table.md, table.tex and figures/ of a run of `manage.py experiment` again, from settings.json,
    records/, evaluation/ and images/ in its folder. The paper's numbers stand beside those of a run of the paper's
    size and models. What was not measured stays empty.
    """
    from sampler.experiments.report import write_report

    _print(write_report(options.folder))


def _report_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", type=Path, metavar="DIR", help="the folder that `manage.py experiment` wrote to")


def _verify_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("record", type=Path, metavar="RECORD.zip", help="the ZIP downloaded from a campaign's page")


def _verify(options: argparse.Namespace) -> int:
    """What a campaign's record proves, what it only claims, and where it differs.

    Check a record against its hashes and against itself: every draw from the seed, every verdict from the votes.
    Exit status: 0 if it is accepted, 1 if it differs, 2 if it cannot be read.
    """
    from sampler.record.verify import verify

    found = verify(options.record)
    _print(found.lines())
    return 1 if found.differs else 0


def _tables(options: argparse.Namespace) -> None:
    """The files and columns of a campaign's record, as Markdown.

    Print each file of a record and each column of its tables: values, meaning, and whether a change is found.
    """
    from sampler.record.tables import markdown

    _print(markdown())


Run = Callable[[argparse.Namespace], int | None]
COMMANDS: dict[str, tuple[Run, Callable[[argparse.ArgumentParser], None]]] = {
    "synthetic": (_synthetic, _synthetic_arguments),
    "diagnose": (_diagnose, _diagnose_arguments),
    "vocabulary": (_vocabulary, _vocabulary_arguments),
    "pilot": (_pilot, _pilot_arguments),
    "mars": (_mars, _mars_arguments),
    "report": (_report, _report_arguments),
    "verify": (_verify, _verify_arguments),
    "tables": (_tables, lambda command: None),
}


if __name__ == "__main__":
    sys.exit(main())

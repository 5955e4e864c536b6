"""python -m sampler mars."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sampler.commands.arguments import UnusableOptionsError, positive, seed, several
from sampler.diagnostics.extras import analysis_library, torch_library

if TYPE_CHECKING:
    from sampler.commands.mars_runs import LearnedResult

ABOUT = "molecule chains driven by drug-likeness and ease of synthesis, as in MARS"
DETAILS = (
    "Run chains from CC that accept with min(1, r0 (s(x')/s(x))^30), where s is the mean of min(QED, 0.7) and "
    "min((10 - SA)/9, 0.7). Prints QED, SA, diversity and more of the final molecules, and writes them as CSV. "
    "With --proposal learned, fragments are chosen by an editor that learns, and --replay checks a record of that."
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    command.add_argument("--chains", type=several, default=200, metavar="N", help="(default: %(default)s)")
    command.add_argument("--steps", type=positive, default=1_000, metavar="N", help="(default: %(default)s)")
    command.add_argument("--seed", type=seed, default=0, metavar="S", help="(default: %(default)s)")
    command.add_argument(
        "--seeds",
        type=positive,
        default=1,
        metavar="N",
        help="number of runs, with the seeds S, S + 1, ...; the output then has means and standard errors over them "
        "(default: %(default)s)",
    )
    command.add_argument(
        "--processes",
        type=positive,
        default=2,
        metavar="N",
        help="number of processes; it does not change the results (default: %(default)s)",
    )
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
    learned.add_argument(
        "--learning-steps",
        type=seed,
        metavar="N",
        help="the editor stays as it is after step N (default: it learns on)",
    )
    learned.add_argument(
        "--device", default="cpu", metavar="NAME", help="where the editor computes, as PyTorch names it (default: cpu)"
    )
    learned.add_argument(
        "--against-plain",
        action="store_true",
        help="run the plain proposal too, for as many steps and for as much processor time, and print the differences",
    )
    learned.add_argument(
        "--record",
        type=Path,
        metavar="DIR",
        help="write a record of each seed into DIR/seed-S; --replay works its decisions out again",
    )
    learned.add_argument("--replay", type=Path, metavar="DIR", help="check the record in this folder; runs nothing")
    command.add_argument(
        "--out", type=Path, default=Path("mars.csv"), metavar="FILE", help="output file (default: %(default)s)"
    )
    command.add_argument(
        "--novelty",
        action="store_true",
        help="compare with the molecules that the fragments come from; takes half a minute",
    )


def run(options: argparse.Namespace) -> None:
    """Run it, and print what it has found or written."""
    if options.replay is not None:
        _replay(options.replay)
        return
    _check(options)
    # Nobody wants to hear only after minutes that the file cannot be written.
    with options.out.open("a", encoding="utf-8"):
        pass
    if options.proposal == "learned":
        _run_learned(options)
    else:
        _run_plain(options)


def _check(options: argparse.Namespace) -> None:
    if options.novelty and (options.proposal == "learned" or options.seeds > 1):
        raise UnusableOptionsError("--novelty is for one seed of the plain proposal; leave it out, or --seeds")
    if options.proposal == "learned":
        torch_library()
        return
    given = {
        "--learning-steps": options.learning_steps is not None,
        "--device": options.device != "cpu",
        "--against-plain": options.against_plain,
        "--record": options.record is not None,
    }
    for name, is_given in given.items():
        if is_given:
            raise UnusableOptionsError(f"{name} is for --proposal learned; leave it out, or ask for that proposal")


def _run_plain(options: argparse.Namespace) -> None:
    from sampler.experiments import mars, mars_table
    from sampler.spaces.molecules.vocabulary import parents

    tqdm = analysis_library("tqdm").tqdm
    plans = [mars.MarsRun(each, options.steps, options.convention) for each in _seeds(options)]
    with tqdm(total=options.chains * options.seeds, unit=" chains") as bar:
        runs = [mars.run_chains(plan, options.chains, options.processes, progress=bar.update) for plan in plans]
        seconds = bar.format_dict["elapsed"]
    if options.seeds == 1:
        mars.write_molecules(runs[0], options.out)
    else:
        mars_table.write_seeds(dict(zip(_seeds(options), runs, strict=True)), options.out)
    steps = options.seeds * options.chains * options.steps
    print(f"{options.seeds * options.chains} chains of {options.steps:,} steps in {seconds:.0f} s", end="")
    print(f", {steps / max(seconds, 1e-9):,.0f} steps a second")
    reference = parents() if options.novelty else None
    if options.seeds == 1:
        _print(mars.summary(plans[0], runs[0], reference=reference))
    else:
        _print(mars_table.table(runs))
    print(options.out)


def _run_learned(options: argparse.Namespace) -> None:
    from sampler.commands.mars_runs import LearnedJob, run_job
    from sampler.experiments import mars, mars_table

    tqdm = analysis_library("tqdm").tqdm
    jobs = [
        LearnedJob(
            mars.MarsRun(each, options.steps, options.convention),
            options.chains,
            options.learning_steps,
            options.device,
            options.record / f"seed-{each}" if options.record else None,
            options.against_plain,
        )
        for each in _seeds(options)
    ]
    with mars.mapping(min(options.processes, len(jobs))) as each, tqdm(total=len(jobs), unit=" seeds") as bar:
        results: list[LearnedResult] = []
        for result in each(run_job, jobs):
            results.append(result)
            bar.update(1)
    results.sort(key=_by_seed)
    mars_table.write_seeds({result.seed: result.learned.ended for result in results}, options.out)
    print(f"learned proposal, {options.seeds} seeds of {options.chains} chains and {options.steps:,} steps:")
    _print(mars_table.table([result.learned.ended for result in results]))
    if options.against_plain:
        _print_comparison(results)
    print(options.out)


def _print_comparison(results: Sequence[LearnedResult]) -> None:
    from sampler.experiments.mars_table import differences

    learned = [result.learned for result in results]
    rivals = {
        "equal steps": [result.equal_steps for result in results if result.equal_steps],
        "equal processor time": [result.equal_time for result in results if result.equal_time],
    }
    for name, plain in rivals.items():
        steps = ", ".join(f"{each.steps:,}" for each in plain)
        spent = sum(each.seconds for each in learned), sum(each.seconds for each in plain)
        print(f"learned minus plain at {name}, paired by seed; plain took {steps} steps;", end=" ")
        print("processor time {:.0f} s and {:.0f} s:".format(*spent))
        found = differences([each.ended for each in learned], [each.ended for each in plain])
        _print([f"{metric:21} {mean:+.4f} ± {error:.4f}" for metric, (mean, error) in found.items()])


def _replay(folder: Path) -> None:
    from sampler.experiments.lockstep_record import replay_lockstep
    from sampler.experiments.mars_table import metrics

    tqdm = analysis_library("tqdm").tqdm
    with tqdm(unit=" steps") as bar:
        found = replay_lockstep(folder, progress=bar.update)
    settings = found.settings
    decisions = settings.steps * settings.chains
    print(f"{folder}: all {decisions:,} decisions follow from the record; {found.updates:,} updates of the editor.")
    print("Proposals and their probabilities were taken as recorded, and each proposal is one edit away.")
    if settings.chains > 1:
        _print([f"{name:21} {value:.3f}" for name, value in metrics(found.final).items()])


def _seeds(options: argparse.Namespace) -> list[int]:
    return list(range(options.seed, options.seed + options.seeds))


def _by_seed(result: LearnedResult) -> int:
    return result.seed


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        print(line)

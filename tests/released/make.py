"""Makes what is kept of a release: for each space and rule one export and one database, and later code is held to them.

    python -m tests.released.make tests/released/0.2.0 [CASE ...]

For each of `cases.CASES`:

    CASE.zip       the export of a campaign that simulated people, and a scripted model, have voted to its end
    CASE.tar.gz    the database and media of the same campaign, of a copy that is half through, and of a draft

`model-images` needs PyTorch and diffusers; what is made does not depend on their numbers, only its pictures do.

Everything goes through the application's own doors, seeds are fixed and tasks run one after another. Made again by
later code, an export is equal byte for byte apart from the columns that `compare.py` names; a database holds moments
and random keys, and is only alike.
"""

import argparse
from pathlib import Path

from tests.benchmarks.own_site import own_site


def main() -> None:
    """Make the files of some cases, or of all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with own_site():
        from tests.released.campaigns import can_paint, make
        from tests.released.cases import CASES

        for name in options.cases or CASES:
            if CASES[name].is_painted and not can_paint():
                print(f"{name} is left out: it needs PyTorch, in an environment as `.ci/gpu` makes it")
                continue
            make(name, options.folder)
            made = sorted(options.folder.glob(f"{name}.*"))
            print("  ".join(f"{path.name} {path.stat().st_size / 1000:.1f} kB" for path in made))


if __name__ == "__main__":
    main()

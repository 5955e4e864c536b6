"""The command line: python -m sampler COMMAND."""

import sys

from sampler.cli import main

if __name__ == "__main__":
    sys.exit(main())

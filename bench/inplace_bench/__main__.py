"""python3 -m inplace_bench, as bench/run calls it."""

import sys

from .cli import main

sys.exit(main())

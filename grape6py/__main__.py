"""``python -m grape6py`` is the command ``grape6``."""

import sys

from grape6py.cli import main

sys.exit(main())

"""`python -m tamis.cli`."""

import sys

from tamis.cli.commands import main

sys.exit(main())

"""`python -m wordlight`, the same as `wordlight`."""

import sys

from wordlight.cli import main

sys.exit(main())

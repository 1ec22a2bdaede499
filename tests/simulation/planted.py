"""Bugs on purpose: each is a small patch that makes the product subtly wrong, in a way somebody could have written it.

`test_planted_bugs.py` shows that each is found. To see what one looks like from outside:
`python -m tests.simulation 7 --plant forgets_the_window`.
"""

from tests.simulation import bugs_in_gateway, bugs_in_scheduler
from tests.simulation.planting import PLANTED

ROOMS = (bugs_in_scheduler, bugs_in_gateway)

__all__ = ["PLANTED", "ROOMS"]

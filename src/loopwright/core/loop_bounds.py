"""What bounds the history and the state of a loop."""

ITERATIONS_PER_RUN = 50
"""Iterations after which a loop continues as new, with no child open."""
KEPT_RESULTS = 25
"""Results of iterations that a loop carries; older ones have workflows of their own."""
MAX_ASKED_EVALUATIONS = 8
"""Evaluations that may wait for their turn."""
KEPT_EVALUATION_NAMES = 24
"""Names of evaluations that were asked for, by which one is known again."""
KEPT_EVALUATIONS = 16
"""Evaluations between iterations that a loop carries; older ones have workflows of their own."""

"""What holds for the whole suite."""

import os
import signal

from hypothesis import settings

# No deadline per example: on a machine that is busy with something else a slow example says nothing of the code.
settings.register_profile("here", deadline=None)
# Hypothesis' own profile for CI draws the same examples every time, so that a change is not blamed for a new draw.
settings.load_profile("ci" if os.environ.get("CI") else "here")

# A shell that starts tests in the background has them ignore Ctrl-C, and so would every process that they start: then
# what is promised of an interrupted run could not be tried.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

"""A signal that comes while an engine starts is not lost: frames may have come by then."""

import os
import signal

from wallaroo.cli.run import _Stopper
from wallaroo.engine import ServeOptions, load_engine


def test_stop_1_a_signal_while_the_engine_starts_stops_it_cleanly(app, capfd):
    stopper = _Stopper()
    with stopper.listening():
        stopper.starts()
        os.kill(os.getpid(), signal.SIGTERM)
        handle = load_engine("reference").serve(app(sinks=0), ServeOptions())
        stopper.serves(handle)
        summary = handle.wait(20)
    assert summary is not None
    assert summary.exit_code == 0
    assert "stopping" in capfd.readouterr().err

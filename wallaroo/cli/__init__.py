"""The command line. Commands and engines are found by entry points, so packages can add theirs."""

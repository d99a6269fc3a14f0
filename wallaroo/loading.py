"""Loading an application: a file or a module in, a built `Application` out.

A file is loaded under the name `wallaroo_app_<stem>`, so a file named ``json.py`` shadows no other
module. State in a checkpoint is pickled under that name, so the same file in another folder can
read it. If a process loads two files with the same stem, the second, third, … get a number.

A file's directory goes to the *end* of `sys.path`: the modules beside it can be imported, and they
shadow neither the standard library nor an installed package.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from wallaroo.building.builder import ApplicationBuilder
from wallaroo.errors import (
    ApplicationLoadError,
    ApplicationNotFoundError,
    KafkaArgumentError,
    UsageError,
    WallarooParameterError,
)
from wallaroo.topology import Application
from wallaroo.user_code.failure import short_path, user_frames

ADDRESS_OPTIONS = (("--in", "-i", "--input"), ("--out", "-o", "--output"))
"""The options that `wallaroo.tcp_parse_input_addrs` and `tcp_parse_output_addrs` read."""

MODULE_PREFIX = "wallaroo_app_"
"""The beginning of the names of modules that were loaded from a file."""

_PLACEHOLDER = "127.0.0.1:0"
_MOST_PLACEHOLDERS = 8  # addresses tried for an application that gives none


@dataclass(frozen=True)
class LoadedModule:
    """An application's module.

    Args:
        module: the module itself.
        name: its name in `sys.modules`, by which what it defines pickles.
        path: its file, absolute; `None` for a module that has none.
        directory: the directory of the modules beside it, absolute; a process with this on its
            path can import what the application imports. `None` if `path` is `None`.
    """

    module: ModuleType
    name: str
    path: Path | None
    directory: Path | None


def load_application(
    app: str | os.PathLike[str], args: Sequence[str] = (), *, placeholders: bool = False
) -> Application:
    """Load `app` and return what its ``application_setup(args)`` built.

    Args:
        app: a file (``apps/word_count.py``) or a module (``word_count``) in the current directory
            or on ``PYTHONPATH``.
        args: the application's arguments, without a program's name, as
            ``argparse.ArgumentParser.parse_args(args)`` takes them.
        placeholders: for uses that open no port: if `args` has no ``--in`` or ``--out``, add
            ``127.0.0.1:0``, as often as the application needs it, 8 times at most.

    Raises:
        ApplicationNotFoundError: there is no such file or module.
        ApplicationLoadError: it cannot be imported, it has no ``application_setup``, or that
            function raised or did not return an application.
        WallarooParameterError: the application it describes cannot be built (build-1).
    """
    return set_up(load_module(app), args, placeholders=placeholders)


def load_module(app: str | os.PathLike[str]) -> LoadedModule:
    """Import the application's module, once in a process.

    Args:
        app: a file or a module's name, as for `load_application`.

    Raises:
        ApplicationNotFoundError: there is no such file or module.
        ApplicationLoadError: importing it raised.
        WallarooParameterError: something it describes while being imported cannot be built.
    """
    text = os.fspath(app)
    if text.endswith(".py") or os.sep in text or not isinstance(app, str):
        return load_file(Path(text))
    if not all(part.isidentifier() for part in text.split(".")):
        if Path(text).is_dir():
            raise _is_directory(text)
        raise ApplicationNotFoundError(
            _other_file(text)
            or f"{text!r} is neither a file nor a module; "
            "write the path of a Python file (word_count.py) or a module's name (word_count)"
        )
    return _load_by_name(text)


def load_function(named: str, option: str) -> tuple[LoadedModule, Callable[..., Any]]:
    """Import the function that an option names, as ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``.

    Returns:
        Its module, and the function.

    Raises:
        UsageError: it has another form, or there is no such function.
        ApplicationNotFoundError: there is no such file or module.
        ApplicationLoadError: importing it raised.
    """
    module_name, _, name = named.rpartition(":")
    if not module_name:
        raise UsageError(f"{option} takes MODULE:FUNCTION or FILE.py:FUNCTION, not {named!r}")
    loaded = load_module(module_name)
    function: Callable[..., Any] | None = getattr(loaded.module, name, None)
    if function is None or not callable(function):
        raise UsageError(f"{module_name} has no function {name!r}")
    return loaded, function


def load_file(path: Path, name: str | None = None) -> LoadedModule:
    """Import the file at `path` as the module `name`; by default a name made from its own.

    Raises:
        ApplicationNotFoundError: there is no such file.
        ApplicationLoadError: importing it raised.
        WallarooParameterError: as `load_module`.
    """
    shown, path = path, path.resolve()
    if path.is_dir():
        raise _is_directory(shown)
    if not path.is_file():
        raise ApplicationNotFoundError(f"there is no file {shown}")
    name = name or _unique_name(path)
    if name not in sys.modules:
        loader = SourceFileLoader(name, str(path))
        spec = importlib.util.spec_from_loader(name, loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        _make_importable(path.parent)
        # In `sys.modules` before it runs: its objects are pickled by this name, and dataclasses
        # look up their module.
        sys.modules[name] = module
        try:
            with _user_code(str(shown), path.parent):
                loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return LoadedModule(sys.modules[name], name, path, path.parent)


def set_up(
    loaded: LoadedModule, args: Sequence[str] = (), *, placeholders: bool = False
) -> Application:
    """Return the application that a loaded module's ``application_setup(args)`` built.

    Args:
        loaded: the module.
        args: what the user wrote behind the application's name.
        placeholders: also try addresses that nobody will use, for a module that wants some: to
            draw or check an application, nobody has to write them.

    Raises:
        ApplicationLoadError: If there is no such function, it raised, or gave something else.
    """
    shown = _shown(loaded)
    setup = getattr(loaded.module, "application_setup", None)
    if not callable(setup):
        hint = ""
        if loaded.name in sys.stdlib_module_names and Path(f"{loaded.name}.py").is_file():
            hint = f". For the file in this directory write: {loaded.name}.py"
        raise ApplicationLoadError(
            f"{shown} has no application_setup(args); an application is a module that has one, "
            f"and it returns build_application(…), or ApplicationBuilder(…)….build(){hint}"
        )
    errors: list[ApplicationLoadError] = []
    kafka: list[str] = []  # options of Kafka that the application has wanted, with placeholders
    tried = iter(_tried(args, errors) if placeholders else [()])
    extra = next(tried, None)
    while extra is not None:
        try:
            with _user_code(shown, loaded.directory):
                return _checked(shown, setup([*args, *kafka, *extra]))
        except KafkaArgumentError as error:
            if not placeholders or not error.option or error.option in kafka:
                raise
            kafka += [error.option, "TOPIC" if error.option.endswith("_topic") else _PLACEHOLDER]
            continue
        except ApplicationLoadError as error:
            # An application that gets one address and unpacks two raises one of these.
            if not isinstance(error.__cause__, (IndexError, ValueError)):
                raise
            errors.append(error)
        extra = next(tried, None)
    # An error about something else says more than the error about the number of addresses.
    reported = next((error for error in errors if not _is_about_number(error)), errors[0])
    if _wants_names(reported) and _has_option(args, ADDRESS_OPTIONS[0]):
        raise ApplicationLoadError(
            f"{reported}. If it wants a name with each address, write: --in NAME@HOST:PORT"
        ) from reported.__cause__
    raise reported


def _load_by_name(name: str) -> LoadedModule:
    _make_importable(Path.cwd())
    with _user_code(f"module {name}", Path.cwd(), missing=name):
        module = importlib.import_module(name)
    file = getattr(module, "__file__", None)
    if file is None and hasattr(module, "__path__"):
        raise _is_directory(name)
    if file is None:
        return LoadedModule(module, name, None, None)
    path = Path(file).resolve()
    levels = name.count(".") + (1 if hasattr(module, "__path__") else 0)
    return LoadedModule(module, name, path, path.parents[levels])


_names: dict[str, Path] = {}  # module names and their files; a file keeps its name
_naming = threading.Lock()


def _unique_name(path: Path) -> str:
    plain = MODULE_PREFIX + re.sub(r"\W", "_", path.stem)
    with _naming:
        for name in itertools.chain([plain], (f"{plain}_{n}" for n in itertools.count(2))):
            if _names.setdefault(name, path) == path:
                return name
    raise AssertionError("itertools.count has no end")


def _make_importable(directory: Path) -> None:
    if str(directory) not in sys.path:
        sys.path.append(str(directory))


def _tried(
    args: Sequence[str], errors: Sequence[ApplicationLoadError]
) -> Iterator[tuple[str, ...]]:
    """Yield arguments to try; at last with names, if the `errors` so far look like it."""
    yield from _placeholders(args)
    if any(map(_wants_names, errors)) and not _has_option(args, ADDRESS_OPTIONS[0]):
        yield from _placeholders(args, names=True)


def _placeholders(args: Sequence[str], *, names: bool = False) -> Iterator[tuple[str, ...]]:
    """Yield arguments to try: 1, 2, … addresses for each missing option, the fewest first.

    Args:
        args: what the user wrote.
        names: the addresses of sources have names, ``NAME@HOST:PORT``.
    """
    missing = [options[0] for options in ADDRESS_OPTIONS if not _has_option(args, options)]
    counts = itertools.product(range(1, _MOST_PLACEHOLDERS + 1), repeat=len(missing))
    for numbers in sorted(counts, key=lambda numbers: (sum(numbers), numbers)):
        extra: list[str] = []
        for option, number in zip(missing, numbers, strict=True):
            addresses = [_PLACEHOLDER] * number
            if names and option == ADDRESS_OPTIONS[0][0]:
                addresses = [f"in{index}@{one}" for index, one in enumerate(addresses, 1)]
            extra += (option, ",".join(addresses))
        yield tuple(extra)


def _is_about_number(error: ApplicationLoadError) -> bool:
    cause = error.__cause__
    return isinstance(cause, IndexError) or "to unpack" in str(cause)


def _wants_names(error: ApplicationLoadError) -> bool:
    """Whether the application may have unpacked (host, port) as (name, host, port)."""
    return "(expected 3, got 2)" in str(error.__cause__)


def _has_option(args: Sequence[str], options: tuple[str, ...]) -> bool:
    short = tuple(option for option in options if not option.startswith("--"))
    with_value = tuple(f"{option}=" for option in options)
    return any(
        argument in options or argument.startswith((*with_value, *short)) for argument in args
    )


def _checked(shown: str, result: object) -> Application:
    if isinstance(result, Application):
        return result
    if result is None:
        hint = "returned None. Does it return build_application(…), or ab.build()?"
    elif isinstance(result, ApplicationBuilder):
        hint = "returned the ApplicationBuilder itself. Write: return ab.build()"
    else:
        hint = f"returned a {type(result).__name__}. Write: return build_application(NAME, …)"
    raise ApplicationLoadError(f"{shown}: application_setup {hint}")


@contextmanager
def _user_code(shown: str, directory: Path | None, missing: str = "") -> Iterator[None]:
    """Turn exceptions of the user's code into errors that name the line."""
    try:
        yield
    except ApplicationLoadError:
        raise
    except WallarooParameterError as error:
        where = _where(error, directory)
        if where and where not in getattr(error, "__notes__", ()):
            error.add_note(where)
        raise
    except SystemExit as error:
        if error.code in (None, 0):
            raise
        where = _where(error, directory) or shown
        raise ApplicationLoadError(
            f"cannot load {shown}: {where}: it ended with exit code {error.code!r:.80}"
        ) from error
    except ModuleNotFoundError as error:
        if (
            missing
            and error.name
            and (missing == error.name or missing.startswith(error.name + "."))
        ):
            raise ApplicationNotFoundError(
                _other_file(missing)
                or f"there is no module {missing!r} in the current directory or on PYTHONPATH "
                "(a file is given with its ending: word_count.py)"
            ) from error
        raise _load_error(shown, directory, error) from error
    except Exception as error:
        raise _load_error(shown, directory, error) from error


def _is_directory(shown: object) -> ApplicationNotFoundError:
    return ApplicationNotFoundError(
        f"{shown} is a directory; write the path of a Python file in it"
    )


def _other_file(name: str) -> str | None:
    """Return the error's text for a file whose name is not that of a Python file, if it is one."""
    if not Path(name).is_file():
        return None
    return (
        f"{name} is a file whose name does not end in .py, so it was taken for a module's name; "
        f"if it is an application, write ./{name}"
    )


def _load_error(shown: str, directory: Path | None, error: Exception) -> ApplicationLoadError:
    where = _where(error, directory) or shown
    name = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
    described = _described(error)
    if name.startswith("wallaroo."):
        described = (
            f"there is no {name} here: connectors and other experimental parts were not taken "
            'over. docs/migrating.md, "Which versions", lists what is there'
        )
    return ApplicationLoadError(f"cannot load {shown}: {where}: {described}")


def _where(error: BaseException, directory: Path | None) -> str | None:
    """Return the innermost place in the user's own files, if there is one."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{short_path(error.filename)}, line {error.lineno}"
    frames = user_frames(error.__traceback__)
    own = [one for one in frames if directory and Path(one.file).is_relative_to(directory)]
    return str(own[-1]) if own else None


def _described(error: BaseException) -> str:
    try:
        text = str(error.msg if isinstance(error, SyntaxError) else error)
    except Exception:  # noqa: BLE001 - user code: its __str__ may raise anything
        text = "(its text cannot be shown)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _shown(loaded: LoadedModule) -> str:
    return f"module {loaded.name}" if loaded.path is None else short_path(loaded.path)

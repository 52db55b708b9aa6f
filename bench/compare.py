#!/usr/bin/env python3
"""Runs `hocket bench` and the peer's `llama-bench` in turns and compares their medians.

    bench/compare.py --hocket build/release/hocket --peer build/peer/bin/llama-bench -m FILE.gguf [-p 512] [-n 64]
                     [-d 0] [-np 1,8] [-t THREADS] [--rounds 7] [--at-least 0.95] [--json FILE]

A round runs each program once (-r 1) with the same flags; who goes first changes from round to round, so that a machine
that slows down or speeds up meets both alike. Each round's ratio compares neighbours in time. With --at-least the exit
status is 1 when the median ratio of any test is lower. -d and -np are lists: tokens that are remembered before a test,
and sequences that generate side by side, which the peer's llama-batched-bench measures (beside llama-bench).
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path


def cpu_model():
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def label(n_prompt, n_gen, n_depth=0, n_parallel=1):
    test = f"pp{n_prompt}" if n_gen == 0 else f"tg{n_gen}"
    return test + (f" x{n_parallel}" if n_parallel > 1 else "") + (f" @ d{n_depth}" if n_depth else "")


def run_once(command):
    """Tokens per second by test, from one run."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stderr.strip()[-2000:]}")
    try:
        rows = json.loads(done.stdout)
        return {label(row["n_prompt"], row["n_gen"], row["n_depth"], row.get("n_parallel", 1)): float(row["avg_ts"])
                for row in rows}
    except (ValueError, KeyError, TypeError) as error:
        sys.exit(f"{' '.join(command)}\nprinted something other than llama-bench's JSON ({error!r}):\n{done.stdout[:500]}")


def run_batched(command, n_gen):
    """The same from llama-batched-bench: sequences that generate after a prompt of one token."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not rows:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stderr.strip()[-2000:]}")
    return {label(0, n_gen, 0, row["pl"]): float(row["speed_tg"]) for row in rows}


def spread(samples, digits=2):
    median, low, high = (f"{value:.{digits}f}" for value in (statistics.median(samples), min(samples), max(samples)))
    return f"{median} ({low}–{high})"


def compare(hocket, peer):
    """Rows (test, samples of Hocket, samples of the peer, ratio of each round)."""
    tests = [test for test in hocket[0] if all(test in run for run in hocket + peer)]
    if not tests:
        sys.exit(f"the programs ran no common test: {sorted(hocket[0])} and {sorted(peer[0])}")
    for test in tests:
        ours, theirs = [run[test] for run in hocket], [run[test] for run in peer]
        yield test, ours, theirs, [a / b for a, b in zip(ours, theirs)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hocket", required=True, metavar="PROGRAM")
    parser.add_argument("--peer", required=True, metavar="PROGRAM", help="llama-bench")
    parser.add_argument("-m", "--model", required=True, metavar="FILE")
    parser.add_argument("-p", "--n-prompt", type=int, default=512)
    parser.add_argument("-n", "--n-gen", type=int, default=64)
    parser.add_argument("-d", "--n-depth", default="0", metavar="LIST")
    parser.add_argument("-np", "--parallel", default="1", metavar="LIST")
    parser.add_argument("-t", "--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--at-least", type=float, metavar="RATIO")
    parser.add_argument("--json", metavar="FILE", help="also write every sample there")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")

    flags = ["-m", options.model, "-p", str(options.n_prompt), "-n", str(options.n_gen), "-d", options.n_depth,
             "-t", str(options.threads), "-r", "1", "-o", "json"]
    lanes = [n for n in map(int, options.parallel.split(",")) if n > 1]
    batched = [str(Path(options.peer).with_name("llama-batched-bench")), "-m", options.model, "-npp", "1", "-ntg",
               str(options.n_gen), "-npl", ",".join(map(str, lanes)), "-c", str((options.n_gen + 8) * max(lanes, default=1)),
               "-t", str(options.threads), "--output-format", "jsonl"]

    def run(name):
        if name == "hocket":
            return run_once([options.hocket, "bench", *flags, "--parallel", options.parallel])
        return run_once([options.peer, *flags]) | (run_batched(batched, options.n_gen) if lanes else {})

    runs = {"hocket": [], "peer": []}
    for number in range(options.rounds):
        for name in ("hocket", "peer") if number % 2 == 0 else ("peer", "hocket"):
            runs[name].append(run(name))
            shown = ", ".join(f"{test} {value:.2f}" for test, value in runs[name][-1].items())
            print(f"round {number + 1}/{options.rounds} {name:6} {shown}", file=sys.stderr, flush=True)

    print(f"{cpu_model()}, {options.threads} threads; {Path(options.model).name}; {options.rounds} rounds in turns; "
          "tokens/s: median (lowest–highest)\n")
    print("| test | hocket | peer | hocket / peer: median of rounds (lowest–highest) |\n|---|---:|---:|---:|")
    rows = list(compare(runs["hocket"], runs["peer"]))
    for test, ours, theirs, ratios in rows:
        print(f"| {test} | {spread(ours)} | {spread(theirs)} | {spread(ratios, 3)} |")
    if options.json:
        report = {"cpu": cpu_model(), "threads": options.threads, "model": Path(options.model).name,
                  "tests": {test: {"hocket": ours, "peer": theirs, "ratio": ratios} for test, ours, theirs, ratios in rows}}
        Path(options.json).write_text(json.dumps(report, indent=1) + "\n")
    if options.at_least is not None:
        low = [test for test, _, _, ratios in rows if statistics.median(ratios) < options.at_least]
        if low:
            print(f"\nbelow {options.at_least}: {', '.join(low)}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

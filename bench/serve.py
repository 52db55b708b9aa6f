#!/usr/bin/env python3
"""Runs `hocket serve` and the peer's `llama-server` in turns under the same clients and compares them.

    bench/serve.py --hocket build/release/hocket --peer build/peer/bin/llama-server -m FILE.gguf [-t THREADS]
                   [--users 1,2,4,8,16] [--rounds 3] [--only users,chat,shared,health] [--json FILE]

users   N clients at a time, each with requests of mixed lengths one after the other: completion tokens a second of all
        together, time to the first token (TTFT) and time between tokens
chat    a conversation of 20 turns: TTFT of the last five
shared  a system prompt of about 4000 tokens: TTFT of the first request that has it, and of later ones
health  answers of GET /health while 16 clients stream and 256 connections stay open

A round starts each server afresh; who goes first changes from round to round. Without --peer only Hocket runs. The
clients live in this process and take their share of the same cores.
"""

import argparse
import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from compare import cpu_model, spread

WORDS = ("river stone quiet engine paper winter copper garden signal window market island letter bridge yellow "
         "thunder basket mirror harbor candle forest needle planet velvet rocket").split()
LENGTHS = (30, 400, 120, 700, 60)  # words of a prompt: what one client sends after the other
ANSWER_TOKENS = 64
LANES = 16
CONTEXT = 4096 + 1024


def words(seed, n):
    return " ".join(random.Random(seed).choices(WORDS, k=n))


class Server:
    def __init__(self, name, command):
        self.name = name
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen([*command, "--host", "127.0.0.1", "--port", str(self.port)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        for _ in range(1200):
            if self.process.poll() is not None:
                sys.exit(f"{self.name} ended with {self.process.returncode} before it was ready")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as reply:
                    if reply.status == 200:
                        return self
            except OSError:
                pass
            time.sleep(0.1)
        sys.exit(f"{self.name} was not ready after two minutes")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()

    async def stream(self, messages, max_tokens=ANSWER_TOKENS, **more):
        """(seconds to the first token, gaps between tokens, completion tokens, text)"""
        body = json.dumps({"model": "any", "messages": messages, "max_tokens": max_tokens, "temperature": 0,
                           "ignore_eos": True, "stream": True, "stream_options": {"include_usage": True}, **more}).encode()
        start = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                     b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        first, last, gaps, n_tokens, text = None, None, [], 0, []
        while line := await reader.readline():
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            if "error" in event:
                sys.exit(f"{self.name}: {event['error']}")
            if event.get("usage"):
                n_tokens = event["usage"]["completion_tokens"]
            piece = event["choices"][0]["delta"].get("content") if event["choices"] else None
            if not piece:
                continue
            now = time.perf_counter()
            if first is None:
                first = now - start
            else:
                gaps.append(now - last)
            last = now
            text.append(piece)
        writer.close()
        if first is None:
            sys.exit(f"{self.name} answered a stream without a token")
        return first, gaps, n_tokens, "".join(text)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def measure_users(server, n_users):
    async def client(user):
        done = []
        for i in range(len(LENGTHS)):
            prompt = words(1000 * user + i, LENGTHS[(user + i) % len(LENGTHS)])
            done.append(await server.stream([{"role": "user", "content": prompt}], user=f"user {user}"))
        return done

    start = time.perf_counter()
    replies = [reply for done in await asyncio.gather(*map(client, range(n_users))) for reply in done]
    seconds = time.perf_counter() - start
    firsts, gaps = [r[0] for r in replies], [gap for r in replies for gap in r[1]]
    return {f"{n_users} users, tokens/s": sum(r[2] for r in replies) / seconds,
            f"{n_users} users, TTFT p50 ms": 1e3 * percentile(firsts, 0.5),
            f"{n_users} users, TTFT p95 ms": 1e3 * percentile(firsts, 0.95),
            f"{n_users} users, between tokens p95 ms": 1e3 * percentile(gaps, 0.95)}


async def measure_chat(server):
    messages, firsts = [{"role": "system", "content": "You answer in one short sentence."}], []
    for turn in range(20):
        messages.append({"role": "user", "content": f"Tell me about {words(turn, 12)}."})
        first, _, _, text = await server.stream(messages, 24, user="chat")
        messages.append({"role": "assistant", "content": text})
        firsts.append(first)
    return {"20 turns, TTFT of the last five ms": 1e3 * statistics.median(firsts[-5:])}


async def measure_shared(server):
    system = {"role": "system", "content": words(7, 2600)}
    first, warm = None, []
    for i in range(6):
        ttft, _, _, _ = await server.stream([system, {"role": "user", "content": words(100 + i, 12)}], 8, user="team")
        if i == 0:
            first = ttft
        else:
            warm.append(ttft)
    return {"shared prompt, cold TTFT ms": 1e3 * first, "shared prompt, warm TTFT ms": 1e3 * statistics.median(warm),
            "shared prompt, cold / warm": first / statistics.median(warm)}


async def measure_health(server):
    request = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

    async def ask(connection):
        reader, writer = connection
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
        await reader.readexactly(length)

    idle = []
    for i in range(256):
        # A server may limit the connections of an address; these come from several.
        source = f"127.0.{i // 32 + 1}.1"
        connection = await asyncio.open_connection("127.0.0.1", server.port, local_addr=(source, 0))
        await ask(connection)
        idle.append(connection)
    busy = asyncio.gather(*(measure_users(server, 16),))
    probe, times = await asyncio.open_connection("127.0.0.1", server.port), []
    while not busy.done():
        if len(times) % 100 == 99:  # servers end a connection after some number of requests
            probe[1].close()
            probe = await asyncio.open_connection("127.0.0.1", server.port)
        start = time.perf_counter()
        await ask(probe)
        times.append(time.perf_counter() - start)
        await asyncio.sleep(0.02)
    await busy
    for _, writer in [*idle, probe]:
        writer.close()
    return {"/health p99 ms, 16 busy and 256 open": 1e3 * percentile(times, 0.99)}


async def measure(server, parts, users):
    results = {}
    await server.stream([{"role": "user", "content": "Hello"}], 8, user="warm-up")
    if "users" in parts:
        for n in users:
            results |= await measure_users(server, n)
    if "chat" in parts:
        results |= await measure_chat(server)
    if "shared" in parts:
        results |= await measure_shared(server)
    if "health" in parts:
        results |= await measure_health(server)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hocket", required=True, metavar="PROGRAM")
    parser.add_argument("--peer", metavar="PROGRAM", help="llama-server")
    parser.add_argument("-m", "--model", required=True, metavar="FILE")
    parser.add_argument("-t", "--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--users", default="1,2,4,8,16", help="how many at a time, separated by commas")
    parser.add_argument("--only", default="users,chat,shared,health")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", metavar="FILE", help="also write every sample there")
    options = parser.parse_args()
    users = [int(n) for n in options.users.split(",")]

    # The same room for both: the context of a request, in each of as many lanes.
    threads = ["-t", str(options.threads), "-m", options.model, "-np", str(LANES)]
    commands = {"hocket": [options.hocket, "serve", *threads, "-c", str(CONTEXT), "--cache-cells", str(CONTEXT * LANES),
                           "--any-model"]}
    if options.peer:
        commands["peer"] = [options.peer, *threads, "-c", str(CONTEXT * LANES)]
    runs = {name: [] for name in commands}
    for number in range(options.rounds):
        for name in list(commands)[::1 if number % 2 == 0 else -1]:
            with Server(name, commands[name]) as server:
                runs[name].append(asyncio.run(measure(server, options.only.split(","), users)))
            print(f"round {number + 1}/{options.rounds} {name:6} "
                  + ", ".join(f"{key} {value:.1f}" for key, value in runs[name][-1].items()), file=sys.stderr, flush=True)

    print(f"{cpu_model()}, {options.threads} threads; {Path(options.model).name}; {options.rounds} rounds in turns; "
          "median (lowest–highest)\n")
    print("| | hocket | peer | hocket / peer |\n|---|---:|---:|---:|")
    for key in runs["hocket"][0]:
        ours = [run[key] for run in runs["hocket"]]
        theirs = [run[key] for run in runs.get("peer", [])]
        ratio = spread([a / b for a, b in zip(ours, theirs)]) if theirs else ""
        print(f"| {key} | {spread(ours, 1)} | {spread(theirs, 1) if theirs else ''} | {ratio} |")
    if options.json:
        Path(options.json).write_text(json.dumps({"cpu": cpu_model(), "threads": options.threads,
                                                  "model": Path(options.model).name, "runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main()

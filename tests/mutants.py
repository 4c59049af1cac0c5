#!/usr/bin/env python3
"""The mutants of a package in one build.

`cargo mutants` builds the tests once per mutant: minutes each on a busy machine. This command builds all mutants that
it lists, without those that `.cargo/mutants.toml` excludes, into one test program: the body of a function becomes a
`match` with one arm per mutant, and `MUTANT` selects the arm. A mutant that does not compile is *unviable*.

    tests/mutants.py engine
    tests/mutants.py wal --only scan.rs --jobs 1

Each mutant runs the tests of its own module, then the other tests beside the code, first those that take less than a
second; the first failure ends it. The limits are of processor time, so other work on the machine changes no result.

A few mutants need a build of their own: those of constants, of functions that a constant calls, and of functions that
return `impl Trait`. They are listed as *separate*, with the command for each. Exits with 1 if a mutant was missed.
"""

import argparse
import json
import os
import pathlib
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "target/mutants"
SELECT = """
pub(crate) fn mutant() -> u32 {
    static SELECTED: std::sync::LazyLock<u32> =
        std::sync::LazyLock::new(|| std::env::var("MUTANT").map_or(0, |number| number.parse().expect("a number")));
    *SELECTED
}
"""
SLOW_S = 1.0
MEMORY_BYTES = 8 << 30
WITHOUT_PROGRESS_S = 1800


def listed(package, only):
    command = ["cargo", "mutants", "-p", package, "--list", "--json"]
    mutants = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    mutants = [mutant for mutant in mutants if only in mutant["file"]]
    for number, mutant in enumerate(mutants, 1):
        mutant["number"] = number
        # Every arm would have its own `impl Trait`.
        is_one_type = mutant["function"] and "impl " not in mutant["function"]["return_type"]
        mutant["verdict"] = None if is_one_type else "separate"
    return mutants


def copy_to(tree):
    shutil.rmtree(tree, ignore_errors=True)
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)


def body_start(text, at):
    """The opening brace of the function at `at`: the first one outside of parentheses, comments and strings."""
    depth = 0
    while text[at] != "{" or depth:
        if text.startswith("//", at):
            at = text.index("\n", at)
        elif text[at] == '"':
            at = re.compile(r'"(?:\\.|[^"\\])*', re.S).match(text, at).end()
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text[at], 0)
        at += 1
    return at


def write(tree, file, mutants):
    """Writes the file with one arm per mutant, between comments that name it."""
    text = (ROOT / file).read_text()
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)

    def span(of):
        return tuple(starts[of[end]["line"] - 1] + of[end]["column"] - 1 for end in ("start", "end"))

    functions = {}
    for mutant in mutants:
        functions.setdefault(span(mutant["function"]["span"]), []).append(mutant)
    # Mutants of an inner function are arms of the outer one.
    for inner in sorted(functions):
        outer = next((of for of in functions if of != inner and of[0] <= inner[0] and inner[1] <= of[1]), None)
        if outer:
            functions[outer] += functions.pop(inner)
    parts, written = [], 0
    for (start, end), arms in sorted(functions.items()):
        body = body_start(text, start)
        # A constant function cannot read what is selected.
        parts += [text[written:start], text[start:body].replace("const fn", "fn", 1), "{ match crate::mutant() {\n"]
        for mutant in arms:
            (begin, stop), number = span(mutant["span"]), mutant["number"]
            mutated = text[body:begin] + mutant["replacement"] + text[stop:end]
            parts.append(f"/*<{number}*/ {number} => {{ {mutated} }}\n/*>{number}*/")
        parts.append(f"_ => {text[body:end]}\n}} }}")
        written = end
    (tree / file).write_text("".join(parts) + text[written:])


def drop_what_fails(tree, messages, mutants):
    """Gives the mutants that the compiler's errors are about a verdict."""
    dropped = 0
    by_number = {mutant["number"]: mutant for mutant in mutants}
    for message in messages:
        message = message.get("message") or {}
        for span in message.get("spans", []) if message.get("level") == "error" else []:
            if not span["is_primary"]:
                continue
            before = (tree / span["file_name"]).read_text().encode()[: span["byte_start"]].decode()
            numbers = re.findall(r"/\*([<>])(\d+)\*/", before)
            called = re.search(r"non-const .*function `(.*)`", message["message"])
            if numbers and numbers[-1][0] == "<":
                found, verdict = [by_number[int(numbers[-1][1])]], "unviable"
            elif called:
                path = "::" + called.group(1)
                found = [of for of in mutants if path.endswith("::" + of["function"]["function_name"])]
                verdict = "separate"
            else:
                continue
            for mutant in found:
                dropped += mutant["verdict"] is None
                mutant["verdict"] = mutant["verdict"] or verdict
    return dropped


def build(tree, package, mutants):
    """Returns the test program."""
    copy_to(tree)
    with open(tree / package / "src/lib.rs", "a") as file:
        file.write(SELECT)
    command = ["cargo", "test", "-p", package, "--lib", "--no-run", "--message-format", "json"]
    # No debug information: the build is faster, and only the names of the failed tests are read.
    environment = dict(os.environ, CARGO_TARGET_DIR=str(WORK / "build"), CARGO_PROFILE_DEV_DEBUG="0")
    while True:
        built = [mutant for mutant in mutants if mutant["verdict"] is None]
        for file in {mutant["file"] for mutant in mutants}:
            write(tree, file, [mutant for mutant in built if mutant["file"] == file])
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
        messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode == 0:
            return next(message["executable"] for message in messages if message.get("executable"))
        if not drop_what_fails(tree, messages, built):
            sys.exit(done.stderr + "".join((message.get("message") or {}).get("rendered", "") for message in messages))


def test(program, place, number, arguments, cpu_s):
    """The name of the test that failed, "timeout" or None; and the seconds of each test that passed."""

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with tempfile.TemporaryDirectory() as scratch:
        process = subprocess.Popen(
            [program, "--test-threads=1", *arguments],
            cwd=place,
            env=dict(os.environ, MUTANT=str(number), TMPDIR=scratch),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            preexec_fn=limit,
            start_new_session=True,
        )
        stuck = threading.Event()

        def kill(*_):
            stuck.set()
            os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(WITHOUT_PROGRESS_S, kill)
        timer.start()
        seconds, began, failed, last = {}, time.monotonic(), None, ""
        for last in process.stdout:
            result = re.match(r"test (\S+)(?: - should panic)? \.\.\. (ok|FAILED)", last)
            if result and result.group(2) == "FAILED":
                failed = result.group(1)
                os.killpg(process.pid, signal.SIGKILL)
                break
            if result:
                seconds[result.group(1)] = time.monotonic() - began
                began = time.monotonic()
        code = process.wait()
        timer.cancel()
    if failed or code == 0:
        return failed, seconds
    if stuck.is_set() or code in (-signal.SIGXCPU, -signal.SIGKILL):
        return "timeout", seconds
    return f"exit {code} after {last.strip()}", seconds


def module(file):
    parts = pathlib.Path(file).with_suffix("").parts[2:]
    return "::".join(part for part in parts if part != "mod") + "::"


def check(program, place, mutants, jobs):
    """Runs the tests for every mutant that has no verdict yet."""
    failed, seconds = test(program, place, 0, [], 1200)
    if failed or not seconds:
        sys.exit(f"the tests fail without a mutant: {failed}")
    slow = [name for name, took in seconds.items() if took > SLOW_S]
    print(f"{len(seconds)} tests, {len(slow)} of them slow", flush=True)
    quick = [word for name in slow for word in ("--skip", name)]
    waiting = queue.Queue()
    for mutant in mutants:
        if mutant["verdict"] is None:
            waiting.put(mutant)

    def work():
        while not waiting.empty():
            try:
                mutant = waiting.get_nowait()
            except queue.Empty:
                return
            runs = [([module(mutant["file"]), *quick], 30), (quick, 45)] + [(["--exact", *slow], 600)] * bool(slow)
            tests = (test(program, place, mutant["number"], arguments, cpu_s)[0] for arguments, cpu_s in runs)
            failed = next(filter(None, tests), None)
            mutant["verdict"] = {None: "missed", "timeout": "timeout"}.get(failed, "caught")
            if mutant["verdict"] != "caught":
                print(mutant["verdict"], mutant["name"], flush=True)

    workers = [threading.Thread(target=work) for _ in range(jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def report(package, mutants):
    verdicts = ["caught", "timeout", "unviable", "separate", "missed"]
    print("| File | Mutants | " + " | ".join(verdict.capitalize() for verdict in verdicts) + " |")
    print("|---" * (len(verdicts) + 2) + "|")
    for file in sorted({mutant["file"] for mutant in mutants}):
        here = [mutant["verdict"] for mutant in mutants if mutant["file"] == file]
        print(f"| `{file}` | {len(here)} | " + " | ".join(str(here.count(verdict)) for verdict in verdicts) + " |")
    for mutant in mutants:
        if mutant["verdict"] == "separate":
            print(f"cargo mutants -p {package} -F '{re.escape(mutant['name'])}'")
    return any(mutant["verdict"] == "missed" for mutant in mutants)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", choices=["engine", "wal"])
    parser.add_argument("--only", default="", help="a part of the names of the files")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    mutants = listed(arguments.package, arguments.only)
    if not mutants:
        sys.exit("no mutants")
    tree = WORK / arguments.package
    program = build(tree, arguments.package, mutants)
    check(program, tree / arguments.package, mutants, arguments.jobs)
    sys.exit(report(arguments.package, mutants))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Power loss, block by block.

A server runs on an ext4 file system whose device logs every write and flush in order (QEMU's `blklogwrites`, exported
through FUSE, mounted over a loop device). Each cut rebuilds the device in a state that a power loss could have left:
every write up to the last flush before the cut, a random part of the later ones, the last of them torn within. The file
system is mounted, the server starts on it, and every order that was acknowledged before the cut must exist.

    tests/power/cuts.py target/debug/papertape --cuts 40            # durability `power`: nothing may be lost
    tests/power/cuts.py target/debug/papertape --cuts 40 --control  # `process`: something must be lost, or this tests nothing
    tests/power/cuts.py target/debug/papertape --cuts 40 --moves    # ended orders leave memory for the history store meanwhile

With `--moves` the clients cancel their orders, and the windows are so small that orders leave memory all the time. After a
cut every acknowledged order is found by its id, as ended as its client knows; lists have all of them, each once; a repeated
request is the same order; and `papertape history verify` finds the store sound.

Needs root, /dev/fuse, a free loop device, e2fsprogs, and Debian's qemu-system-common (`qemu-storage-daemon`).
"""

import argparse
import http.client
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

SECTOR = 512
DEVICE_BYTES = 512 << 20
FLUSH, DISCARD = 1, 4
CLIENTS = 4
READY_WITHIN_S = 60


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class WriteLog:
    """The entries of a blklogwrites log: one sector of header, then the data."""

    def __init__(self, path):
        self.file = open(path, "rb", buffering=0)
        self.at = SECTOR
        self.entries = []
        self.lock = threading.Lock()

    def position(self):
        """The current number of entries in the log."""
        with self.lock:
            while True:
                header = os.pread(self.file.fileno(), 32, self.at)
                if len(header) < 32:
                    break
                sector, count, flags, _ = struct.unpack("<QQQQ", header)
                if count == 0 and flags == 0:
                    break
                data = self.at + SECTOR
                self.entries.append((sector, count, flags, data))
                self.at = data + (0 if flags & DISCARD else count * SECTOR)
            return len(self.entries)

    def data(self, entry):
        _, count, _, data = entry
        return os.pread(self.file.fileno(), count * SECTOR, data)


class Device:
    """An image behind a loop device with its file system mounted."""

    def __init__(self, image, mount_point):
        self.mount_point = mount_point
        self.loop = run("losetup", "-f", "--show", image).strip()
        try:
            run("mount", "-t", "ext4", self.loop, mount_point)
        except BaseException:
            run("losetup", "-d", self.loop)
            raise

    def close(self):
        # A killed process releases its files with a delay.
        for attempt in range(50):
            if subprocess.run(["umount", self.mount_point], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
        run("losetup", "-d", self.loop)


class Server:
    def __init__(self, binary, config, data, durability):
        command = [binary, "serve", "--config", config, "--data-dir", data, "--durability", durability]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said = []
        self.address = None
        for line in self.process.stdout:
            self.said.append(line)
            if " on http://" in line:
                self.address = line.split("http://")[1].split()[0]
                break
        # Its further output is read, so that the pipe never fills.
        self.reader = threading.Thread(target=lambda: self.said.extend(self.process.stdout), daemon=True)
        self.reader.start()

    def wait_ready(self):
        end = time.monotonic() + READY_WITHIN_S
        while self.address and time.monotonic() < end:
            try:
                if self.ask("GET", "/v1/health/ready", None)[0] == 200:
                    return True
            except OSError:
                pass
            time.sleep(0.01)
        return False

    def ask(self, method, path, key, body=None, connection=None):
        connection = connection or http.client.HTTPConnection(self.address, timeout=30)
        headers = {"Content-Type": "application/json"} | ({"X-API-Key": key} if key else {})
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join(timeout=10)


CONFIG = """
[server]
listen = "127.0.0.1:0"
[journal]
segment_bytes = 2097152
reserve_bytes = 0
[limits.tiers.enterprise]
requests_per_second = 100000
requests_per_minute = 1000000
"""


# Windows in which orders leave memory, and segments of which many are sealed.
MOVES = """
[history]
hot_seconds = 1
hot_rows_max = 16
"""
MOVES_SEGMENTS = "segment_bytes = 1048576\ncheckpoint_segments = 1"
# Orders of a client that are open at a time, with `--moves`.
OPEN_MAX = 3


def name_of(number, count, moves):
    name = f"c{number}-{count}"
    # Long ones, so that segments fill up.
    return f"{name:-<250}" if moves else name


def body_of(token, name):
    return {"token_id": token, "side": "BUY", "order_type": "limit", "price": "0.01", "quantity": "5",
            "client_order_id": name}


def trade(server, key, token, number, log, acked, ended, moves, stop):
    """Places orders until the end; records each acknowledged one with the position of the log after its answer, and so
    with `moves` the cancels."""
    connection = http.client.HTTPConnection(server.address, timeout=30)
    resting = []
    for count in range(1_000_000):
        if stop.is_set():
            return
        name = name_of(number, count, moves)
        try:
            status, answer = server.ask("POST", "/v1/orders", key, body_of(token, name), connection)
            if status == 200:
                acked.append((log.position(), number, answer["order_id"], name))
                resting.append(answer["order_id"])
            elif status != 503:
                raise SystemExit(f"an order was refused: {status} {answer}")
            if moves and len(resting) > OPEN_MAX:
                order = resting.pop(0)
                status, answer = server.ask("DELETE", f"/v1/orders/{order}", key, None, connection)
                if status == 200:
                    ended.append((log.position(), order))
                elif status != 503:
                    raise SystemExit(f"a cancel was refused: {status} {answer}")
        except (OSError, http.client.HTTPException):
            return


def orders_of(server, key):
    """Orders with their status, newest first."""
    found, cursor = [], ""
    while True:
        status, page = server.ask("GET", f"/v1/orders?limit=200{cursor}", key)
        if status != 200:
            raise SystemExit(f"orders cannot be listed: {status} {page}")
        found.extend((row["order_id"], row["status"]) for row in page["orders"])
        if page["next_cursor"] in ("", "LTE="):
            return found
        cursor = "&cursor=" + page["next_cursor"]


def check_rows(server, key, token, listed, acked, ended, chance):
    """What is wrong with the answers about the orders of one user; they may be in memory or in the store."""
    ids = [order for order, _ in listed]
    if any(order <= older for order, older in zip(ids, ids[1:])):
        yield "the list is out of order, or has an order twice"
    status_of = dict(listed)
    for order in ended:
        if status_of.get(order) not in (None, "CANCELLED"):
            yield f"order {order} was cancelled, and is {status_of[order]}"
    # By id, and the request once more.
    for order, name in chance.sample(acked, min(len(acked), 40)):
        status, row = server.ask("GET", f"/v1/orders/{order}", key)
        if status != 200 or row["status"] != status_of.get(order):
            yield f"order {order} by its id: {status} {row}"
        status, again = server.ask("POST", "/v1/orders", key, body_of(token, name))
        if status != 200 or again["order_id"] != order or not again["is_replay"]:
            yield f"order {order} once more: {status} {again}"


def stored(binary, data):
    """What `history verify` finds, and orders in the store."""
    verified = subprocess.run([binary, "history", "verify", data], capture_output=True, text=True)
    sizes = run(binary, "history", "stats", data, "--json")
    tables = [json.loads(line) for line in sizes.splitlines()]
    orders = sum(table["rows"] for table in tables if table.get("table") == "orders")
    return (verified.stdout + verified.stderr if verified.returncode else None), orders


def record(binary, place, durability, seconds, moves):
    """Runs a server under load on a logged device; returns the log, its length, the acknowledged orders, and the keys."""
    base, disk, writes = (os.path.join(place, name) for name in ("base.raw", "disk.raw", "writes.log"))
    export, mount_point = os.path.join(place, "export"), os.path.join(place, "live")
    config, users = os.path.join(place, "papertape.toml"), os.path.join(place, "users.jsonl")
    with open(config, "w") as file:
        file.write(CONFIG.replace("segment_bytes = 2097152", MOVES_SEGMENTS) + MOVES if moves else CONFIG)
    for path, length in ((base, DEVICE_BYTES), (writes, 8 << 30)):
        with open(path, "wb") as file:
            file.truncate(length)
    run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", base)
    run("cp", "--sparse=always", base, disk)
    open(export, "w").close()
    os.mkdir(mount_point)
    daemon = subprocess.Popen([
        "qemu-storage-daemon",
        "--blockdev", f"driver=file,node-name=disk,filename={disk}",
        "--blockdev", f"driver=file,node-name=writes,filename={writes}",
        "--blockdev", "driver=blklogwrites,node-name=logged,file=disk,log=writes,log-sector-size=512",
        "--export", f"fuse,id=out,node-name=logged,mountpoint={export},writable=on",
    ])
    try:
        end = time.monotonic() + 10
        while os.path.getsize(export) != DEVICE_BYTES:
            if daemon.poll() is not None or time.monotonic() > end:
                raise SystemExit("the device is not exported: is /dev/fuse there?")
            time.sleep(0.05)
        device = Device(export, mount_point)
        try:
            data = os.path.join(mount_point, "data")
            run(binary, "seed", "--config", config, "--data-dir", data, "--users", str(CLIENTS), "--tier", "enterprise",
                "--balance", "1000000", "--out", users)
            with open(users) as file:
                keys = [json.loads(line)["api_key"] for line in file]
            server = Server(binary, config, data, durability)
            if not server.wait_ready():
                raise SystemExit("the server does not start:\n" + "".join(server.said))
            _, markets = server.ask("GET", "/v1/markets?limit=1", keys[0])
            _, market = server.ask("GET", "/v1/markets/" + markets[0]["condition_id"], keys[0])
            token = market["clob_token_ids"][0]
            log, acked, ended, stop = WriteLog(writes), [], [], threading.Event()
            run("sync", "-f", mount_point)
            begun = log.position()
            clients = [
                threading.Thread(target=trade, args=(server, key, token, number, log, acked, ended, moves, stop))
                for number, key in enumerate(keys)
            ]
            for client in clients:
                client.start()
            time.sleep(seconds)
            end_at = log.position()
            stop.set()
            for client in clients:
                client.join()
            server.kill()
        finally:
            device.close()
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()
        subprocess.run(["umount", export], capture_output=True)
    return config, base, log, begun, end_at, acked, ended, keys, token


def apply(image, log, entry, sectors=None):
    sector, count, flags, _ = entry
    if flags & DISCARD or count == 0:
        return
    data = log.data(entry)
    os.pwrite(image, data[: (count if sectors is None else sectors) * SECTOR], sector * SECTOR)


def cut(binary, place, recorded, chance, number, position, durable, durable_at, moves):
    """One power loss; returns how many acknowledged orders were due, how many of them are missing, how many were in the
    store before the start, and what else is wrong."""
    config, _, log, _, _, acked, ended, keys, token = recorded
    image_path, mount_point = os.path.join(place, "cut.raw"), os.path.join(place, "cut")
    run("cp", "--sparse=always", durable, image_path)
    with open(image_path, "r+b", buffering=0) as image:
        part = chance.random()
        kept = [entry for entry in log.entries[durable_at:position] if chance.random() < part]
        for entry in kept[:-1]:
            apply(image.fileno(), log, entry)
        if kept:
            apply(image.fileno(), log, kept[-1], chance.randint(0, kept[-1][1]))
    os.makedirs(mount_point, exist_ok=True)
    device = Device(image_path, mount_point)
    server, wrong, in_store = None, [], 0
    data = os.path.join(mount_point, "data")
    try:
        server = Server(binary, config, data, "power")
        if not server.wait_ready():
            print(f"cut {number} at {position}: no start:\n{''.join(server.said)}")
            return None
        due, lost = 0, 0
        for user, key in enumerate(keys):
            listed = orders_of(server, key)
            there = {order for order, _ in listed}
            mine = [(order, name) for at, owner, order, name in acked if owner == user and at <= position]
            wanted = {order for order, _ in mine}
            due += len(wanted)
            lost += len(wanted - there)
            if moves:
                over = {order for at, order in ended if at <= position and order in wanted}
                wrong += [f"user {user}: {what}" for what in check_rows(server, key, token, listed, mine, over, chance)]
        if moves:
            server.kill()
            unsound, in_store = stored(binary, data)
            wrong += [f"history verify: {unsound}"] if unsound else []
        return due, lost, in_store, wrong
    finally:
        if server:
            server.kill()
        device.close()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("binary")
    arguments.add_argument("--cuts", type=int, default=20)
    arguments.add_argument("--seconds", type=float, default=5.0, help="how long the load runs")
    arguments.add_argument("--seed", type=int, default=int(time.time()))
    arguments.add_argument("--control", action="store_true", help="durability `process`: orders must be lost")
    arguments.add_argument("--moves", action="store_true", help="ended orders leave memory")
    asked = arguments.parse_args()
    durability = "process" if asked.control else "power"
    print(f"durability {durability}, seed {asked.seed}", flush=True)
    chance = random.Random(asked.seed)
    place = tempfile.mkdtemp(prefix="papertape-power-")
    try:
        binary = os.path.abspath(asked.binary)
        recorded = record(binary, place, durability, asked.seconds, asked.moves)
        _, base, log, begun, end_at, acked, ended, _, _ = recorded
        flushes = sum(1 for entry in log.entries[begun:end_at] if entry[2] & FLUSH)
        print(f"{len(acked)} orders acknowledged, {len(ended)} cancelled, {end_at - begun} writes and flushes, "
              f"{flushes} flushes", flush=True)
        if not acked or not flushes:
            raise SystemExit("nothing was acknowledged or nothing flushed: this tests nothing")
        durable, durable_at = os.path.join(place, "durable.raw"), 0
        run("cp", "--sparse=always", base, durable)
        due, lost, lossy, refused, wrong, moved = 0, 0, 0, 0, 0, 0
        positions = sorted(chance.randint(begun, end_at) for _ in range(asked.cuts))
        for number, position in enumerate(positions, 1):
            last = max((at for at in range(position) if log.entries[at][2] & FLUSH), default=0)
            with open(durable, "r+b", buffering=0) as image:
                for entry in log.entries[durable_at:last]:
                    apply(image.fileno(), log, entry)
            durable_at = max(durable_at, last)
            outcome = cut(binary, place, recorded, chance, number, position, durable, durable_at, asked.moves)
            if outcome is None:
                refused += 1
                continue
            due += outcome[0]
            lost += outcome[1]
            lossy += outcome[1] > 0
            moved += outcome[2] > 0
            for what in outcome[3]:
                print(f"cut {number} at {position}: {what}", flush=True)
            wrong += len(outcome[3])
        print(f"{asked.cuts} cuts: {due} acknowledged orders looked for, {lost} lost in {lossy} cuts, {refused} refused starts")
        if asked.moves:
            print(f"orders were in the store in {moved} cuts; {wrong} answers or stores are wrong")
            if moved == 0:
                raise SystemExit("nothing has left memory: this tests nothing")
        if due == 0:
            raise SystemExit("no acknowledged order was looked for")
        failed = refused > 0 or wrong > 0 or (lost == 0 if asked.control else lost > 0)
        sys.exit(1 if failed else 0)
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()

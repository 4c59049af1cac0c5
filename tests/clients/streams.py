"""The streams with the package `websockets`, as bots use it: asyncio, one task per socket, the frames of the venue's clients.

The driver moves the market when this program prints `MOVE n`. Usage: streams.py FACTS.json
"""

import asyncio
import json
import urllib.request
from decimal import Decimal

import websockets
from checks import end, equal, facts, ok, same

FACTS = facts()
HOST, KEY, UUID = FACTS["host"], FACTS["key"], FACTS["uuid"]
MARKET, OTHER = FACTS["market"], FACTS["other"]
SOCKETS = "ws" + HOST.removeprefix("http")
# Far longer than any step here: only a broken server reaches it.
PATIENCE = 60


def rest(method, path, body=None, headers=None):
    request = urllib.request.Request(HOST + path, method=method, data=None if body is None else json.dumps(body).encode())
    request.add_header("X-API-Key", KEY)
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def move(number):
    print("MOVE", number, flush=True)


def connect(path, **more):
    return websockets.connect(SOCKETS + path, **more)


async def hear(socket):
    return json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))


async def until(socket, ready):
    while True:
        frame = await hear(socket)
        if ready(frame):
            return frame


class Books:
    """The books, folded from the frames."""

    def __init__(self):
        self.books = {}

    def take(self, frame):
        for event in frame if isinstance(frame, list) else [frame]:
            if event.get("event_type") == "book":
                sides = {"BUY": event["bids"], "SELL": event["asks"]}
                levels = {side: {Decimal(l["price"]): l["size"] for l in rows} for side, rows in sides.items()}
                self.books[event["asset_id"]] = {**levels, "hash": event["hash"]}
            elif event.get("event_type") == "price_change":
                for change in event["price_changes"]:
                    book = self.books[change["asset_id"]]
                    side, price = book[change["side"]], Decimal(change["price"])
                    side.pop(price, None)
                    if Decimal(change["size"]) != 0:
                        side[price] = change["size"]
                    book["hash"] = change["hash"]

    def shown(self, token):
        """As `GET /v1/book` shows it: the best level last."""
        book = self.books[token]
        bids = [[price, Decimal(size)] for price, size in sorted(book["BUY"].items())]
        asks = [[price, Decimal(size)] for price, size in sorted(book["SELL"].items(), reverse=True)]
        return bids, asks, book["hash"]


def as_rest_shows(token):
    book = rest("GET", f"/v1/book?token_id={token}")
    levels = lambda side: [[Decimal(l["price"]), Decimal(l["size"])] for l in book[side]]
    return levels("bids"), levels("asks"), book["hash"]


async def market_channel():
    """Each first frame that a client of the venue sends, at both mounts."""
    yes, no = MARKET["yes"], MARKET["no"]
    firsts = {
        "rust": {"type": "market", "operation": "subscribe", "markets": [], "assets_ids": [yes, no], "initial_dump": True},
        "nautilus": {"assets_ids": [yes, no], "type": "market"},
        "typescript": {"type": "market", "assets_ids": [yes, no], "initial_dump": True},
        "upper case": {"type": "MARKET", "assets_ids": [yes, no], "custom_feature_enabled": True},
        "by market": {"type": "market", "markets": [MARKET["condition"]]},
    }
    opened = []
    for mount in ["/v1/ws/market", "/ws/market"]:
        for name, first in firsts.items():
            socket = await connect(mount, additional_headers={"X-API-Key": KEY})
            await socket.send(json.dumps(first))
            books = Books()
            dump = await hear(socket)
            same(f"{mount} {name}: the first frame is a list of books", sorted(b["asset_id"] for b in dump), sorted([yes, no]))
            books.take(dump)
            same(f"{mount} {name}: book", books.shown(yes), as_rest_shows(yes))
            await socket.send("PING")
            same(f"{mount} {name}: PING", await asyncio.wait_for(socket.recv(), PATIENCE), "PONG")
            await (await socket.ping())
            opened.append((f"{mount} {name}", socket, books))
    ok("market: connected, books, heartbeats")

    move("level")
    price, size = Decimal(FACTS["level"][0]), FACTS["level"][1]
    for name, socket, books in opened:
        while books.books[yes]["BUY"].get(price) != size or books.books[no]["SELL"].get(1 - price) != size:
            books.take(await hear(socket))
        for token in [yes, no]:
            same(f"{name}: the folded book", books.shown(token), as_rest_shows(token))
    ok("market: changes fold into what REST shows")

    # Another token later, one less, in the format of the venue's clients.
    name, socket, books = opened[0]
    await socket.send(json.dumps({"operation": "subscribe", "assets_ids": [OTHER["yes"]], "initial_dump": True}))
    dump = await hear(socket)
    same("a later book", [book["asset_id"] for book in dump], [OTHER["yes"]])
    await socket.send(json.dumps({"operation": "unsubscribe", "assets_ids": [yes, no]}))
    await socket.send(json.dumps({"operation": "subscribe", "assets_ids": ["404"]}))
    same("unknown tokens have no book", await hear(socket), [])
    for _, socket, _ in opened:
        await socket.close()
        same("the close", socket.close_code, 1000)
    ok("market: more and fewer")


async def prices_channel():
    condition = MARKET["condition"]
    token = rest("POST", "/v1/keys/ws-token", {})["token"]
    ways = [connect("/v1/ws/prices", additional_headers={"X-API-Key": KEY}), connect(f"/v1/ws/prices?token={token}")]
    for way in ways:
        async with way as socket:
            hello = await hear(socket)
            same("connected", (hello["type"], hello["max_subscriptions"] >= 50), ("connected", True))
            await socket.send(json.dumps({"action": "subscribe", "markets": [condition]}))
            said = await until(socket, lambda frame: frame["type"] == "subscribed")
            same("subscribed", (said["markets"], said["count"]), ([condition], 1))
            price = await until(socket, lambda frame: frame["type"] == "price")
            same("price", (price["condition_id"], [o["token_id"] for o in price["outcomes"]]), (condition, [MARKET["yes"], MARKET["no"]]))
            book = rest("GET", f"/v1/book?token_id={MARKET['yes']}")
            equal("best bid", price["best_bid"], book["bids"][-1]["price"])
            equal("best ask", price["best_ask"], book["asks"][-1]["price"])
            await socket.send(json.dumps({"action": "ping"}))
            same("pong", (await until(socket, lambda frame: frame["type"] == "pong"))["ts"] > 0, True)
    async with connect(f"/v1/ws/prices?token={token}") as socket:
        try:
            await asyncio.wait_for(socket.recv(), PATIENCE)
        except websockets.ConnectionClosed as closed:
            same("a token is valid once", closed.rcvd.code, 4001)
    ok("prices")


async def order_entry_and_fills():
    """A bot: it rests an order over /ws/trade, the market reaches it, and the fill is sent on every channel."""
    auth = lambda key: {"apiKey": key, "secret": "", "passphrase": ""}
    users = []
    for mount in ["/v1/ws/user", "/ws/user"]:
        for first in [
            {"type": "user", "markets": [], "auth": auth(KEY)},
            {"type": "user", "operation": "subscribe", "markets": [MARKET["condition"]], "assets_ids": [], "auth": auth(UUID)},
            {"type": "USER", "markets": [], "auth": auth(UUID), "initial_dump": True},
        ]:
            socket = await connect(mount)
            await socket.send(json.dumps(first))
            await socket.send("PING")
            same(f"{mount} PING", await asyncio.wait_for(socket.recv(), PATIENCE), "PONG")
            users.append((mount, first["auth"]["apiKey"], socket))
    token = rest("POST", "/v1/keys/ws-token", {})["token"]
    executions = await connect(f"/v1/ws/executions?token={token}")
    hello = await hear(executions)
    same("executions", hello["type"], "connected")

    trade = await connect("/v1/ws/trade", additional_headers={"X-API-Key": KEY})
    answers = {}

    async def ask(op, params):
        number = f"{op}-{len(answers)}"
        answers[number] = asyncio.get_running_loop().create_future()
        await trade.send(json.dumps({"id": number, "op": op, "params": params}))
        return await asyncio.wait_for(answers[number], PATIENCE)

    async def listen():
        async for text in trade:
            frame = json.loads(text)
            answers[frame["id"]].set_result(frame)

    listening = asyncio.create_task(listen())
    order = {"token_id": MARKET["yes"], "side": "BUY", "order_type": "limit", "price": "0.37", "quantity": "20"}
    # Several concurrently; the order of the answers is not defined.
    placed, batch, missing, refused = await asyncio.gather(
        ask("order.place", {**order, "client_order_id": FACTS["name"]}),
        ask("order.batch", {"orders": [{**order, "price": "0.10"}, {**order, "price": "0.105"}]}),
        ask("order.status", {"client_order_id": "never sent"}),
        ask("order.place", {**order, "price": "0.375"}),
    )
    same("placed", (placed["status"], placed["result"]["status"]), (200, "PENDING"))
    same("batch", (batch["result"]["succeeded"], batch["result"]["failed"]), (1, 1))
    same("missing", (missing["status"], missing["error"]["error"]), (404, "ORDER_NOT_FOUND"))
    same("refused", (refused["status"], refused["error"]["error"]), (400, "INVALID_ORDER_MIN_TICK_SIZE"))
    same("the rate is sent", placed["rate"]["tier"], "enterprise")
    again = await ask("order.place", {**order, "client_order_id": FACTS["name"]})
    order_id = placed["result"]["order_id"]
    same("a repeat", (again["result"]["order_id"], again["result"]["is_replay"]), (order_id, True))
    cancelled = await ask("order.cancel", {"order_id": batch["result"]["results"][0]["order_id"]})
    same("cancelled", cancelled["result"]["status"], "CANCELLED")
    ok("trade: placed, looked up, cancelled")

    move("fill")
    fill = await until(executions, lambda frame: frame["type"] == "fill")
    same("fill", (fill["order_id"], fill["status"], fill["side"]), (order_id, "FILLED", "BUY"))
    equal("filled at", fill["price"], "0.37")
    equal("shares", fill["quantity"], "20")
    shown = (await ask("order.status", {"order_id": order_id}))["result"]
    same("REST has the fill", [row["trade_id"] for row in shown["fills"]], [fill["trade_id"]])
    for name, key, socket in users:
        event = await until(socket, lambda frame: frame.get("event_type") == "trade")
        same(f"{name}: trade", (event["market"], event["asset_id"], event["status"]), (MARKET["condition"], MARKET["yes"], "MATCHED"))
        equal(f"{name}: size", event["size"], "20")
        same(f"{name}: owner", event["owner"], UUID if key == UUID else "")
        await socket.close()
    swept = await ask("cancel_all", {"confirm": True})
    same("nothing is left", swept["result"], {"canceled": [], "not_canceled": {}})
    await executions.close()
    await trade.close()
    await listening
    ok("a resting order was filled: executions, user, REST agree", fill["trade_id"])


async def main():
    await market_channel()
    await prices_channel()
    await order_entry_and_fills()
    end("streams.py")


asyncio.run(main())

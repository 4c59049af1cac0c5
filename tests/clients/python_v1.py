"""py-clob-client (orders of the first generation) against a running server: only host, key and chain are given.

The first call makes the credentials, as in users' scripts. Usage: python_v1.py FACTS.json
"""

import copy
import time
from decimal import Decimal

from checks import Walk, end, equal, facts, ok, refused, same
from py_clob_client.client import ClobClient
from py_clob_client.clob_types import (
    AssetType,
    BalanceAllowanceParams,
    BookParams,
    MarketOrderArgs,
    OpenOrderParams,
    OrderArgs,
    OrderScoringParams,
    OrdersScoringParams,
    OrderType,
    PostOrdersArgs,
    TradeParams,
)
from py_clob_client.exceptions import PolyApiException
from py_clob_client.order_builder.constants import BUY, SELL

FACTS = facts()
MARKET, OTHERS = FACTS["market"], FACTS["others"]
NOWHERE = "0x" + "0" * 64
TOKEN, BIDS, ASKS = MARKET["yes"], MARKET["bids"], MARKET["asks"]
GONE = "order can't be found - already canceled or matched"

client = ClobClient(FACTS["host"], key=FACTS["private_key"], chain_id=FACTS["chain_id"])


def first_call():
    creds = client.create_or_derive_api_creds()
    same("the same question has the same answer", client.derive_api_key(), creds)
    client.set_api_creds(creds)
    same("the key is listed", client.get_api_keys(), {"apiKeys": [creds.api_key]})
    same("it may trade", client.get_closed_only_mode(), {"closed_only": False})
    ok("create_or_derive_api_creds", client.get_address())


def health():
    same("get_ok", client.get_ok(), "OK")
    same("the time is that of this machine", abs(client.get_server_time() - time.time()) < 60, True)
    ok("get_ok, get_server_time")


def books():
    book = client.get_order_book(TOKEN)
    same("market", (book.market, book.asset_id), (MARKET["condition"], TOKEN))
    # Best levels are last.
    same("bids", [[level.price, level.size] for level in reversed(book.bids)], BIDS)
    same("asks", [[level.price, level.size] for level in reversed(book.asks)], ASKS)
    same("tick and neg-risk", (book.tick_size, book.neg_risk), (MARKET["tick"], MARKET["neg_risk"]))
    if MARKET["hash_is_ours"]:
        said = book.hash
        same("hash", said, client.get_order_book_hash(book))
    both = client.get_order_books([BookParams(MARKET["no"]), BookParams(TOKEN), BookParams("404")])
    same("books come in the order asked, unknown ones are left out", [b.asset_id for b in both], [MARKET["no"], TOKEN])
    ok("get_order_book, get_order_books", f"{len(BIDS)} bids, {len(ASKS)} asks, hash {book.hash}")


def prices():
    bid, ask = Decimal(BIDS[0][0]), Decimal(ASKS[0][0])
    mid, spread = (bid + ask) / 2, ask - bid
    asked = [BookParams(TOKEN, BUY), BookParams(TOKEN, SELL)]
    equal("midpoint", client.get_midpoint(TOKEN)["mid"], mid)
    equal("midpoints", client.get_midpoints(asked[:1])[TOKEN], mid)
    equal("BUY is the best bid", client.get_price(TOKEN, BUY)["price"], bid)
    equal("SELL is the best ask", client.get_price(TOKEN, SELL)["price"], ask)
    same("prices", client.get_prices(asked), {TOKEN: {BUY: BIDS[0][0], SELL: ASKS[0][0]}})
    equal("spread", client.get_spread(TOKEN)["spread"], spread)
    equal("spreads", client.get_spreads(asked[:1])[TOKEN], spread)
    last, never = MARKET["last"], {"price": "0.5", "side": ""}
    same("last trade", client.get_last_trade_price(TOKEN), last or never)
    same("last trades", client.get_last_trades_prices(asked[:1]), [{"token_id": TOKEN, **last}] if last else [])
    refused("an unknown token", lambda: client.get_price("404", BUY), PolyApiException, 404, "BOOK_UNAVAILABLE")
    ok("prices", f"bid {bid}, ask {ask}, mid {mid}, spread {spread}, last {(last or never)['price']}")


def parameters():
    for market in [MARKET, *OTHERS]:
        token = market["yes"]
        client.clear_tick_size_cache()
        same("tick", client.get_tick_size(token), market["tick"])
        same("neg-risk", client.get_neg_risk(token), market["neg_risk"])
        same("fee", client.get_fee_rate_bps(token), market["base_fee"])
    ok("get_tick_size, get_neg_risk, get_fee_rate_bps", f"{1 + len(OTHERS)} markets")


def markets():
    for name, read in [("get_markets", client.get_markets), ("get_simplified_markets", client.get_simplified_markets)]:
        found, pages, cursor = [], 0, "MA=="
        while cursor != "LTE=":
            page = read(cursor)
            same("count", page["count"], len(page["data"]))
            found += [row["condition_id"] for row in page["data"]]
            cursor, pages = page["next_cursor"], pages + 1
        same(f"{name}: every market once", (len(found), len(set(found))), (FACTS["markets"], FACTS["markets"]))
        same("pages of a thousand", pages, -(-len(found) // 1000))
        ok(name, f"{len(found)} in {pages} pages")
    row = client.get_market(MARKET["condition"])
    same("tokens", [token["token_id"] for token in row["tokens"]], [TOKEN, MARKET["no"]])
    equal("minimum_tick_size", row["minimum_tick_size"], MARKET["tick"])
    sampled = [row["condition_id"] for row in client.get_sampling_markets()["data"]]
    same("a market with two sides is sampled", MARKET["condition"] in sampled, True)
    ok("get_market, get_sampling_markets", f"{len(sampled)} sampled")


def limit(market, price, size, side=BUY, order_type=OrderType.GTC, expiration=0, post_only=False):
    args = OrderArgs(market["yes"], float(price), float(size), side, expiration=expiration)
    return client.post_order(client.create_order(args), order_type, post_only)


def resting(what, posted, market, price, size, order_type="GTC", expiration="0"):
    """A posted order rests with the requested terms."""
    same(what, (posted["success"], posted["errorMsg"], posted["status"]), (True, "", "live"))
    row = client.get_order(posted["orderID"])
    same("id", row["id"], posted["orderID"])
    equal("price", row["price"], price)
    equal("original_size", row["original_size"], size)
    equal("size_matched", row["size_matched"], 0)
    words = (row["status"], row["side"], row["order_type"], row["expiration"], row["market"], row["asset_id"])
    same("row", words, ("LIVE", "BUY", order_type, expiration, market["condition"], market["yes"]))
    return posted["orderID"]


def limits():
    mine = [resting("GTC", limit(MARKET, BIDS[0][0], "12.34"), MARKET, BIDS[0][0], "12.34")]
    until = int(time.time()) + 3600
    gtd = limit(MARKET, MARKET["tick"], 5, order_type=OrderType.GTD, expiration=until)
    mine.append(resting("GTD", gtd, MARKET, MARKET["tick"], 5, "GTD", str(until)))
    for market in OTHERS:
        mine.append(resting("every tick", limit(market, market["tick"], "7.5"), market, market["tick"], "7.5"))
    crosses = "invalid post-only order: order crosses book"
    post_only = lambda: limit(MARKET, ASKS[0][0], 5, post_only=True)
    refused("post-only", post_only, PolyApiException, 400, crosses)
    small = lambda: limit(MARKET, MARKET["tick"], 1)
    refused("too small", small, PolyApiException, 400, "Size (1) lower than the minimum: 5")
    same("all of them are open", {row["id"] for row in client.get_orders()}, set(mine))
    for order in mine:
        same("cancel", client.cancel(order), {"canceled": [order], "not_canceled": {}})
    same("twice", client.cancel(mine[0]), {"canceled": [], "not_canceled": {mine[0]: GONE}})
    ok("GTC and GTD rest", f"{len(mine)} orders, ticks {[market['tick'] for market in [MARKET, *OTHERS]]}")


def taken(what, posted, walk, side):
    """A posted order took what `walk` calculates, in the answer, in its row and in its trade."""
    same(what, (posted["success"], posted["errorMsg"], posted["status"]), (True, "", "matched"))
    money, shares = ("makingAmount", "takingAmount") if side == BUY else ("takingAmount", "makingAmount")
    equal("dollars", posted[money], walk.notional)
    equal("shares", posted[shares], walk.shares)
    row = client.get_order(posted["orderID"])
    same("status", (row["status"], row["side"]), ("MATCHED", side))
    equal("size_matched", row["size_matched"], walk.shares)
    trades = [t for t in client.get_trades(TradeParams(asset_id=TOKEN)) if t["taker_order_id"] == posted["orderID"]]
    same("one walk is one trade", len(trades), 1)
    trade = trades[0]
    equal("trade price", trade["price"], walk.average)
    equal("trade size", trade["size"], walk.shares)
    equal("fee", trade["fee"], walk.fee)
    words = (trade["side"], trade["status"], trade["trader_side"], trade["fee_rate_bps"], trade["market"])
    same("trade", words, (side, "MATCHED", "TAKER", str(MARKET["fee_bps"]), MARKET["condition"]))
    ok(what, f"{walk.shares} shares for {walk.notional}, fee {walk.fee}")
    return trade["id"]


def at_market():
    """FOK and FAK, in dollars and in shares; shares that one order took are not available to the next."""
    bids, asks = copy.deepcopy(BIDS), copy.deepcopy(ASKS)

    def buy(dollars, price, order_type):
        args = MarketOrderArgs(TOKEN, float(dollars), BUY, price=float(price), order_type=order_type)
        return client.post_order(client.create_market_order(args), order_type)

    # Price 0: the client reads the worst price from the book.
    fok = Walk.budget(asks, 5, ASKS[-1][0], MARKET["fee_bps"])
    trades = [taken("FOK BUY 5 USD", buy(5, 0, OrderType.FOK), fok, BUY)]
    if FACTS["pencil"]:
        equal("by pencil: shares", fok.shares, FACTS["pencil"]["fok_shares"])
        equal("by pencil: dollars", fok.notional, FACTS["pencil"]["fok_dollars"])
        equal("by pencil: fee", fok.fee, FACTS["pencil"]["fok_fee"])
    best, dollars = asks[0][0], FACTS["fak_dollars"]
    fak = Walk.budget(asks, dollars, best, MARKET["fee_bps"])
    trades.append(taken(f"FAK BUY {dollars} USD", buy(dollars, best, OrderType.FAK), fak, BUY))
    if FACTS["pencil"]:
        equal("by pencil: the rest of the level", fak.shares, FACTS["pencil"]["fak_shares"])
        none = "no orders found to match with FAK order."
        refused("FAK, none left", lambda: buy(5, best, OrderType.FAK), PolyApiException, 400, none)
        killed = "order couldn't be fully filled. FOK orders are fully filled or killed."
        refused("FOK, too much", lambda: buy(90, ASKS[1][0], OrderType.FOK), PolyApiException, 400, killed)
    args = MarketOrderArgs(TOKEN, 5.5, SELL, order_type=OrderType.FOK)
    sold = Walk.sell(bids, "5.5", MARKET["fee_bps"])
    sell = client.post_order(client.create_market_order(args), OrderType.FOK)
    trades.append(taken("FOK SELL 5.5 shares", sell, sold, SELL))
    rows = client.get_trades()
    same("trades, newest first", [row["id"] for row in rows], trades[::-1])
    same("by id", [row["id"] for row in client.get_trades(TradeParams(id=trades[0]))], trades[:1])
    same("by market", len(client.get_trades(TradeParams(market=MARKET["condition"]))), 3)
    same("of another market", client.get_trades(TradeParams(market=NOWHERE)), [])
    ok("get_trades", f"{len(rows)} trades")


def batch(market, count):
    """Rests `count` small orders, fifteen in a call."""
    price, ids = float(market["tick"]), []
    while count > 0:
        orders = [client.create_order(OrderArgs(market["yes"], price, 5, BUY)) for _ in range(min(count, 15))]
        answers = client.post_orders([PostOrdersArgs(order, OrderType.GTC) for order in orders])
        same("batch", [(a["success"], a["status"]) for a in answers], [(True, "live")] * len(orders))
        ids += [answer["orderID"] for answer in answers]
        count -= len(orders)
    return ids


def pages_and_cancels():
    # Another market, or in a recording with a single one its other side.
    other = OTHERS[0] if OTHERS else {**MARKET, "yes": MARKET["no"]}
    here, there = batch(MARKET, FACTS["resting"]), batch(other, 6)
    bad = client.create_order(OrderArgs(TOKEN, float(MARKET["tick"]), 1, BUY))
    good = client.create_order(OrderArgs(TOKEN, float(MARKET["tick"]), 5, BUY))
    mixed = client.post_orders([PostOrdersArgs(good, OrderType.GTC), PostOrdersArgs(bad, OrderType.GTC)])
    same("one bad entry", [answer["success"] for answer in mixed], [True, False])
    same("its code", mixed[1]["code"], "INVALID_ORDER_MIN_SIZE")
    here.append(mixed[0]["orderID"])
    rows = client.get_orders()
    same("every order once, newest first", [row["id"] for row in rows], (here[:-1] + there + here[-1:])[::-1])
    theirs = OpenOrderParams(market=other["condition"], asset_id=other["yes"])
    same("by market", [row["id"] for row in client.get_orders(theirs)], there[::-1])
    same("of an unknown market", client.get_orders(OpenOrderParams(market=NOWHERE)), [])
    same("by token", len(client.get_orders(OpenOrderParams(asset_id=TOKEN))), len(here))
    same("by id", [row["id"] for row in client.get_orders(OpenOrderParams(id=here[0]))], here[:1])
    ok("get_orders", f"{len(rows)} orders, pages of 100")

    same("scoring", client.is_order_scoring(OrderScoringParams(here[0])), {"scoring": False})
    scoring = client.are_orders_scoring(OrdersScoringParams(here[:2]))
    same("scoring of two", scoring, {here[0]: False, here[1]: False})

    unknown = here[0][:-16] + "f" * 16
    several = client.cancel_orders([*here[:5], unknown])
    same("several", several, {"canceled": here[:5], "not_canceled": {unknown: GONE}})
    by_token = client.cancel_market_orders(asset_id=other["yes"])
    same("by token", (sorted(by_token["canceled"]), by_token["not_canceled"]), (sorted(there), {}))
    unknown = client.cancel_market_orders(asset_id="404")
    same("by an unknown token", unknown, {"canceled": [], "not_canceled": {}})
    by_market = client.cancel_market_orders(market=MARKET["condition"])
    same("by market", (sorted(by_market["canceled"]), by_market["not_canceled"]), (sorted(here[5:]), {}))
    rest = batch(MARKET, 3) + batch(other, 3)
    everything = client.cancel_all()
    same("all", (sorted(everything["canceled"]), everything["not_canceled"]), (sorted(rest), {}))
    same("nothing is open", client.get_orders(), [])
    same("a cancelled one", client.get_order(here[0])["status"], "CANCELED")
    ok("cancel_orders, cancel_market_orders, cancel_all", f"5, {len(there)}, {len(here) - 5} and {len(rest)} orders")


def housekeeping():
    allowance = client.get_balance_allowance(BalanceAllowanceParams(AssetType.COLLATERAL))
    # The account's initial cash, less its purchases.
    same("balance", 0 < int(allowance["balance"]) < 25_000_000_000, True)
    same("allowance", allowance["allowance"], allowance["balance"])
    asset = BalanceAllowanceParams(AssetType.CONDITIONAL, TOKEN)
    client.update_balance_allowance(asset)
    trades = [trade for trade in client.get_trades() if trade["asset_id"] == TOKEN]
    held = sum(Decimal(trade["size"]) * (1 if trade["side"] == BUY else -1) for trade in trades)
    equal("shares", Decimal(client.get_balance_allowance(asset)["balance"]) / 10**6, held)
    same("notifications", (client.get_notifications(), client.drop_notifications()), ([], "OK"))
    first = client.post_heartbeat(None)["heartbeat_id"]
    second = client.post_heartbeat(first)["heartbeat_id"]
    same("a beat has an id of its own", first != second, True)
    refused("an old beat", lambda: client.post_heartbeat(first), PolyApiException, 400, "Invalid Heartbeat ID")
    ok("balance-allowance, notifications, heartbeats")


for step in [first_call, health, books, prices, parameters, markets, limits, at_market, pages_and_cancels, housekeeping]:
    step()
end("py-clob-client 0.34.6")

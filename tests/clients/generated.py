"""A client generated from gateway/openapi.json by openapi-python-client trades: every answer is read into its typed models.

Usage: generated.py FACTS.json, with the generated package `papertape_client` on the path.
"""

from checks import end, facts, ok, same
from papertape_client import AuthenticatedClient, Client
from papertape_client.api.account import get_balance, list_positions
from papertape_client.api.books import get_book
from papertape_client.api.markets import get_market
from papertape_client.api.orders import cancel_order, get_order, get_order_by_client_id, list_orders, place_order
from papertape_client.api.venue_prices import get_prices
from papertape_client.models import (
    Balance,
    Book,
    MarketDetail,
    OrderDetail,
    OrderPage,
    OrderResponse,
    PlaceOrder,
    PlaceOrderOrderType,
    PlaceOrderSide,
)

FACTS = facts()
TOKEN = FACTS["token"]
client = AuthenticatedClient(FACTS["host"], token=FACTS["key"], prefix="", auth_header_name="X-API-Key",
                             raise_on_unexpected_status=True)


def read(kind, answer):
    """One case: the answer was read as this model."""
    same(f"an answer is {kind.__name__}", type(answer), kind)
    return answer


def public():
    anyone = Client(FACTS["host"], raise_on_unexpected_status=True)
    book = read(Book, get_book.sync(client=anyone, token_id=TOKEN))
    same("best levels", (book.bids[-1].price, book.asks[-1].price), ("0.41", "0.42"))
    prices = get_prices.sync(client=anyone, token_ids=TOKEN)
    same("prices by token", prices[TOKEN].to_dict(), {"BUY": "0.41", "SELL": "0.42"})
    ok("public reads")


def reads():
    market = read(MarketDetail, get_market.sync(client=client, condition_id=FACTS["condition"]))
    same("tokens of the market", market.clob_token_ids[0], TOKEN)
    balance = read(Balance, get_balance.sync(client=client))
    same("nothing is reserved", balance.reserved, "0.00")
    ok("reads of the account", balance.balance)


def rests():
    asked = PlaceOrder(side=PlaceOrderSide.BUY, token_id=TOKEN, order_type=PlaceOrderOrderType.LIMIT, quantity="10",
                       price="0.05", client_order_id="generated-1")
    placed = read(OrderResponse, place_order.sync(client=client, body=asked))
    same("it rests", (placed.status.value, placed.price, placed.quantity), ("PENDING", "0.05", "10"))
    seen = read(OrderDetail, get_order.sync(str(placed.order_id), client=client))
    same("it is the same order", (seen.order_id, seen.status.value), (placed.order_id, "PENDING"))
    named = read(OrderDetail, get_order_by_client_id.sync("generated-1", client=client))
    same("also by its own id", named.order_id, placed.order_id)
    page = read(OrderPage, list_orders.sync(client=client))
    same("it is listed", [row.order_id for row in page.orders], [placed.order_id])
    same("its money is reserved", get_balance.sync(client=client).reserved != "0.00", True)
    ended = read(OrderResponse, cancel_order.sync(str(placed.order_id), client=client))
    same("it is cancelled", ended.status.value, "CANCELLED")
    same("its money is free", get_balance.sync(client=client).reserved, "0.00")
    ok("place, read and cancel", placed.order_id)


def fills():
    asked = PlaceOrder(side=PlaceOrderSide.BUY_LOWER, token_id=TOKEN, order_type=PlaceOrderOrderType.MARKET,
                       quantity="10", price="0.99")
    filled = read(OrderResponse, place_order.sync(client=client, body=asked))
    same("it fills", (filled.status.value, filled.price), ("FILLED", "0.42"))
    positions = list_positions.sync(client=client)
    same("a position", [row.quantity for row in positions], ["10"])
    ok("a market order", filled.fee)


def refusals():
    asked = PlaceOrder(side=PlaceOrderSide.SELL, token_id=TOKEN, order_type=PlaceOrderOrderType.MARKET, quantity="11",
                       price="0.01")
    refused = place_order.sync_detailed(client=client, body=asked)
    same("more than is held", (int(refused.status_code), refused.parsed.error.value), (400, "INSUFFICIENT_POSITION"))
    stranger = AuthenticatedClient(FACTS["host"], token="svc_live_" + "0" * 40, prefix="", auth_header_name="X-API-Key",
                                   raise_on_unexpected_status=True)
    refused = get_balance.sync_detailed(client=stranger)
    same("a key of no one", int(refused.status_code), 401)
    same("read as a refusal", refused.parsed.error.value, "INVALID_KEY")
    ok("refusals", refused.parsed.message)


public()
reads()
rests()
fills()
refusals()
end("openapi-python-client")

"""An ordinary polling bot on py-clob-client: it reads a book, buys when the ask is cheap, and cancels what rests.

It knows nothing of back-tests: host and token come from the environment, as in users' scripts, and it ends when its
venue does not answer any more. Usage: bot.py SECONDS, the pause between two rounds.
"""

import os
import sys
import time
from decimal import Decimal

from py_clob_client.client import ClobClient
from py_clob_client.clob_types import OrderArgs, OrderType
from py_clob_client.exceptions import PolyApiException
from py_clob_client.order_builder.constants import BUY

PAUSE = float(sys.argv[1])
TOKEN = os.environ["PAPERTAPE_TOKENS"].split(",")[0]
KEY = "0x" + "5eed".rjust(64, "0")

client = ClobClient(os.environ["PAPERTAPE_URL"] + "/v1", key=KEY, chain_id=137)
client.set_api_creds(client.create_or_derive_api_creds())


def round_of_trading(resting):
    """One look at the book; returns the order that rests afterwards."""
    book = client.get_order_book(TOKEN)
    if resting:
        client.cancel(resting)
    if not book.asks:
        return None
    ask = Decimal(book.asks[-1].price)
    price = ask if ask <= Decimal("0.40") else ask - Decimal("0.02")
    order = client.create_order(OrderArgs(TOKEN, float(price), 5.0, BUY))
    posted = client.post_order(order, OrderType.GTC)
    return posted["orderID"] if posted["status"] == "live" else None


rounds, resting = 0, None
while True:
    try:
        resting = round_of_trading(resting)
    except PolyApiException as refused:
        if refused.status_code == 503:
            break
        raise
    rounds += 1
    time.sleep(PAUSE)
print(f"{rounds} rounds")

"""The paper trader's own engine, its network replaced by a book that stands still.

Reads a count from each line, buys for 10 dollars at the market so many times, and says how many seconds that took.
"""

import sys
import tempfile
import time
from pathlib import Path

from pm_trader.engine import Engine
from pm_trader.models import Market, OrderBook, OrderBookLevel

LEVELS = 40
SHARES = 1_000_000.0
DOLLARS = 10.0


class Still:
    """Answers what the venue would, at once and always the same."""

    def __init__(self):
        level = lambda cents: OrderBookLevel(price=cents / 100, size=SHARES)
        self.book = OrderBook(
            bids=[level(49 - place) for place in range(LEVELS)], asks=[level(51 + place) for place in range(LEVELS)]
        )
        self.market = Market(
            condition_id="0x1",
            slug="still",
            question="Will it stand still?",
            description="",
            outcomes=["Yes", "No"],
            outcome_prices=[0.5, 0.5],
            tokens=[{"token_id": "1", "outcome": "Yes"}, {"token_id": "2", "outcome": "No"}],
            active=True,
            closed=False,
        )

    def get_market(self, slug_or_id):
        return self.market

    def get_order_book(self, token_id):
        return self.book

    def get_midpoint(self, token_id):
        return 0.5

    def get_fee_rate(self, token_id):
        return 0

    def get_tick_size(self, token_id, price=None):
        return 0.01

    def close(self):
        pass


def main():
    with tempfile.TemporaryDirectory() as place:
        engine = Engine(Path(place))
        engine.api = Still()
        engine.init_account(1e12)
        print("ready", flush=True)
        for line in sys.stdin:
            count = int(line)
            begun = time.perf_counter()
            for _ in range(count):
                engine.buy("still", "Yes", DOLLARS)
            print(time.perf_counter() - begun, flush=True)
        engine.close()


main()

"""A live node of nautilus_trader with its Polymarket adapter: loads two instruments, follows their books, rests a limit
order and cancels it.

Usage: nautilus.py FACTS.json. Only hosts and credentials are given. The adapter reads the host of the catalogue service
from GAMMA_API_URL when it is imported.
"""

import json
import os
import sys
from datetime import timedelta

with open(sys.argv[1], encoding="utf-8") as file:
    FACTS = json.load(file)
os.environ["GAMMA_API_URL"] = FACTS["host"] + "/gamma"

import nautilus_trader  # noqa: E402
from checks import end, ok, same  # noqa: E402
from nautilus_trader.adapters.polymarket import (  # noqa: E402
    POLYMARKET,
    PolymarketDataClientConfig,
    PolymarketExecClientConfig,
    PolymarketLiveDataClientFactory,
    PolymarketLiveExecClientFactory,
    get_polymarket_instrument_id,
)
from nautilus_trader.config import (  # noqa: E402
    InstrumentProviderConfig,
    LiveExecEngineConfig,
    LoggingConfig,
    TradingNodeConfig,
)
from nautilus_trader.live.node import TradingNode  # noqa: E402
from nautilus_trader.model.enums import OrderSide  # noqa: E402
from nautilus_trader.model.identifiers import TraderId  # noqa: E402
from nautilus_trader.trading.strategy import Strategy  # noqa: E402

TOKENS = FACTS["tokens"]
IDS = [get_polymarket_instrument_id(token["condition"], token["id"]) for token in TOKENS]
PATIENCE_SECS = 60


class Rest(Strategy):
    """Rests an order when both books exist, and cancels it when it is accepted."""

    def __init__(self):
        super().__init__()
        self.books = {}
        self.events = []
        self.order = None

    def on_start(self):
        self.clock.set_time_alert("patience", self.clock.utc_now() + timedelta(seconds=PATIENCE_SECS),
                                  lambda _: node.stop())
        for instrument in IDS:
            self.subscribe_order_book_deltas(instrument)

    def on_order_book_deltas(self, deltas):
        book = self.cache.order_book(deltas.instrument_id)
        if book.best_bid_price() is not None and book.best_ask_price() is not None:
            self.books[deltas.instrument_id] = [str(book.best_bid_price()), str(book.best_ask_price())]
        if self.order is None and len(self.books) == len(IDS):
            instrument = self.cache.instrument(IDS[0])
            self.order = self.order_factory.limit(
                instrument_id=IDS[0], order_side=OrderSide.BUY, quantity=instrument.make_qty(10),
                price=instrument.make_price(FACTS["price"]),
            )
            self.submit_order(self.order)

    def on_order_event(self, event):
        self.events.append(type(event).__name__)

    def on_order_accepted(self, event):
        self.cancel_order(self.order)

    def on_order_canceled(self, event):
        node.stop()

    def on_order_rejected(self, event):
        node.stop()


account = {
    "private_key": FACTS["private_key"], "funder": FACTS["address"], "api_key": FACTS["key"], "api_secret": "c3Zj",
    "passphrase": "svc", "base_url_http": FACTS["host"], "base_url_ws": FACTS["socket"] + "/ws/",
}
loads = {"load_ids": frozenset(str(instrument) for instrument in IDS)}
try:
    from nautilus_trader.adapters.polymarket.providers import PolymarketInstrumentProviderConfig

    account["instrument_config"] = PolymarketInstrumentProviderConfig(**loads, use_gamma_markets=True)
    data, execution = {"ws_connection_initial_delay_secs": 0.1}, {"base_url_data_api": FACTS["host"] + "/data-api"}
except ImportError:
    # Versions before 1.222 or so load from the order book service alone, and request no positions.
    account["instrument_provider"] = InstrumentProviderConfig(**loads)
    data, execution = {}, {}
node = TradingNode(config=TradingNodeConfig(
    trader_id=TraderId("PAPER-001"),
    logging=LoggingConfig(log_level=os.environ.get("NAUTILUS_LOG", "WARNING"), use_pyo3=True),
    exec_engine=LiveExecEngineConfig(reconciliation=True),
    data_clients={POLYMARKET: PolymarketDataClientConfig(**account, **data)},
    exec_clients={POLYMARKET: PolymarketExecClientConfig(**account, **execution)},
    timeout_connection=30.0, timeout_reconciliation=10.0, timeout_portfolio=10.0, timeout_disconnection=5.0,
    timeout_post_stop=1.0,
))
strategy = Rest()
node.trader.add_strategy(strategy)
node.add_data_client_factory(POLYMARKET, PolymarketLiveDataClientFactory)
node.add_exec_client_factory(POLYMARKET, PolymarketLiveExecClientFactory)
node.build()
try:
    node.run()
finally:
    node.dispose()

for token, instrument in zip(TOKENS, IDS):
    same("best prices", strategy.books.get(instrument), [token["bid"], token["ask"]])
ok("books", *strategy.books.values())
ours = ["OrderInitialized", "OrderPendingCancel"]
same("the order's states", [event for event in strategy.events if event not in ours],
     ["OrderSubmitted", "OrderAccepted", "OrderCanceled"])
ok("accepted, then cancelled")
end(f"nautilus_trader {nautilus_trader.__version__}")

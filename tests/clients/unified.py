"""polymarket-client, the venue's unified SDK, over the catalogue service and the service of positions: every answer is
read into its typed models.

It has no public setting for hosts: the environment is built with its internal module. Usage: unified.py FACTS.json
"""

from dataclasses import replace
from decimal import Decimal

from checks import end, facts, ok, same
from polymarket import PublicClient
from polymarket._internal.environment import PRODUCTION_CONFIG, create_environment

FACTS = facts()
HOST, MARKET, ADDRESS = FACTS["host"], FACTS.get("market"), FACTS["address"]
environment = create_environment(
    name="paper",
    config=replace(PRODUCTION_CONFIG, clob_url=HOST, gamma_url=HOST + "/gamma", data_url=HOST + "/data-api"),
)
client = PublicClient(environment)


def markets():
    named = client.list_markets(condition_ids=[MARKET["condition"]]).first_page().items
    same("the market by its condition", [market.condition_id for market in named], [MARKET["condition"]])
    market = named[0]
    same("its tokens", [market.outcomes.yes.token_id, market.outcomes.no.token_id], [MARKET["yes"], MARKET["no"]])
    same("its best prices", [market.prices.best_bid, market.prices.best_ask], [Decimal("0.41"), Decimal("0.42")])
    same("its displayed prices", [market.outcomes.yes.price, market.outcomes.no.price],
         [Decimal("0.415"), Decimal("0.585")])
    same("its tick", market.trading.minimum_tick_size, Decimal("0.01"))
    same("its fees", market.trading.fee_schedule.rate, Decimal("0.05"))
    same("by slug", client.get_market(slug=MARKET["slug"]).id, market.id)
    same("by id", client.get_market(id=market.id).condition_id, MARKET["condition"])
    listed = [market.condition_id for page in client.list_markets(closed=False, page_size=3) for market in page.items]
    same("every open market once, in pages", sorted(listed), sorted(FACTS["open"]))
    ok("markets", len(listed))


def events():
    listed = [event for page in client.list_events(page_size=2) for event in page.items]
    same("events", len(listed) > 0, True)
    event = client.get_event(slug=listed[0].slug)
    same("an event by its slug", (event.id, len(event.markets) > 0), (listed[0].id, True))
    found = client.search(q=listed[0].title).first_page().items
    same("the search finds it", listed[0].id in [event.id for page in found for event in page.events], True)
    tags = client.list_tags().first_page().items
    same("tags", len(tags) > 0, True)
    ok("events and the search", len(listed))


def account():
    same("positions of an address, without a key", client.list_positions(user=ADDRESS).first_page().items, ())
    same("trades of an address, without a key", client.list_trades(user=ADDRESS).first_page().items, ())
    same("what they are worth", client.get_portfolio_value(user=ADDRESS).value, Decimal(0))
    ok("positions and trades")


if MARKET:
    markets()
    account()
else:
    events()
end("polymarket-client")

"""Orders that py-clob-client-v2 signs and wallets that polymarket-client derives, for the tests of the rehearsal
(gateway/edge/src/api/clob/rehearsal/golden.json). Nothing of the clients is changed; salts and times are theirs.

Usage: signed_orders.py PYTHON_OF_THE_UNIFIED_CLIENT NODE_AND_SCRIPT... > golden.json
"""

import json
import subprocess
import sys

from py_clob_client_v2.clob_types import CreateOrderOptions, MarketOrderArgs, OrderArgs
from py_clob_client_v2.order_builder.builder import OrderBuilder
from py_clob_client_v2.order_builder.constants import BUY, SELL
from py_clob_client_v2.order_utils import SignatureTypeV2
from py_clob_client_v2.order_utils.model.order_data_v2 import order_to_json_v2
from py_clob_client_v2.signer import Signer

# Markets of the tests: ticks 0.01 and 0.001.
RAIN, UNQUOTED = "81140002", "90000001"
# An hour after the clock of the tests.
END = 1790936045

DERIVE = """
import json, sys
from polymarket._internal import wallet
from polymarket.environments import PRODUCTION
config = PRODUCTION._config.wallet_derivation
print(json.dumps([{
    "owner": owner,
    "proxy": wallet.derive_proxy_wallet_address(owner, config),
    "safe": wallet.derive_safe_wallet_address(owner, config),
    "deposit_by_beacon": wallet.derive_beacon_deposit_wallet_address(owner, config),
    "deposit": wallet.derive_uups_deposit_wallet_address(owner, config),
} for owner in sys.argv[1:]]))
"""


def key(number):
    return "0x" + f"{number:064x}"


def wallets(python, owners):
    return json.loads(subprocess.run([python, "-c", DERIVE, *owners], check=True, capture_output=True).stdout)


def limit(token, side, price, size, **more):
    return OrderArgs(token_id=token, side=side, price=price, size=size, **more)


def market(token, side, amount, price):
    return MarketOrderArgs(token_id=token, side=side, amount=amount, price=price)


def main():
    signers = [Signer(key(number), 137) for number in (1, 2)]
    known = wallets(sys.argv[1], [signer.address() for signer in signers])
    first = known[0]
    builders = {
        "eoa": OrderBuilder(signers[0]),
        "proxy": OrderBuilder(signers[0], SignatureTypeV2.POLY_PROXY, first["proxy"]),
        "safe": OrderBuilder(signers[0], SignatureTypeV2.POLY_GNOSIS_SAFE, first["safe"]),
        "deposit": OrderBuilder(signers[0], SignatureTypeV2.POLY_1271, first["deposit"]),
        "deposit by beacon": OrderBuilder(signers[0], SignatureTypeV2.POLY_1271, first["deposit_by_beacon"]),
    }
    orders = []

    def add(name, order, order_type, neg_risk, version, amounts):
        row = order_to_json_v2(order, "owner", order_type)["order"]
        orders.append({
            "name": f"python: {name}", "order_type": order_type, "neg_risk": neg_risk, "version": version,
            "amounts": amounts, "order": row,
        })

    for wallet, builder in builders.items():
        for neg_risk in (False, True):
            options = CreateOrderOptions(tick_size="0.01", neg_risk=neg_risk)
            for side in (BUY, SELL):
                order = builder.build_order(limit(RAIN, side, 0.41, 12.34), options)
                add(f"{wallet} {side} neg_risk={neg_risk}", order, "GTC", neg_risk, 2, "")
        options = CreateOrderOptions(tick_size="0.01", neg_risk=False)
        add(f"{wallet} version 3", builder.build_order(limit(RAIN, BUY, 0.41, 10), options, 3), "GTC", False, 3, "")
    builder = builders["eoa"]
    options = CreateOrderOptions(tick_size="0.01", neg_risk=False)
    end = builder.build_order(limit(RAIN, BUY, 0.37, 10, expiration=END), options)
    add("GTD", end, "GTD", False, 2, "")
    add("market BUY", builder.build_market_order(market(RAIN, BUY, 5, 0.41), options), "FOK", False, 2, "")
    add("market BUY of 1.37", builder.build_market_order(market(RAIN, BUY, 1.37, 0.42), options), "FAK", False, 2, "")
    add("market BUY below 1", builder.build_market_order(market(RAIN, BUY, 0.5, 0.41), options), "FOK", False, 2, "S11")
    add("market SELL", builder.build_market_order(market(RAIN, SELL, 12.34, 0.41), options), "FOK", False, 2, "")
    options = CreateOrderOptions(tick_size="0.001", neg_risk=False)
    add("fine tick", builder.build_order(limit(UNQUOTED, SELL, 0.415, 7.77), options), "GTC", False, 2, "")
    # The client rounds shares of a budget to five decimals there, the venue takes four.
    fine = builder.build_market_order(market(UNQUOTED, BUY, 10, 0.645), options)
    add("market BUY at a fine tick", fine, "FOK", False, 2, "S09")
    if len(sys.argv) > 2:
        printed = subprocess.run([*sys.argv[2:], json.dumps(first)], check=True, capture_output=True).stdout
        orders.extend(json.loads(printed))
    json.dump({"wallets": known, "orders": orders}, sys.stdout, indent=1, sort_keys=True)
    print()


main()

"""Checks of the Python programs: a difference ends the program, figures are decimals, cases are counted.

Nothing here uses the server.
"""

import json
import sys
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal

SHARE_GRID = Decimal("0.0001")
MONEY_GRID = Decimal("0.000001")
FEE_GRID = Decimal("0.00001")

_cases = 0


class Different(Exception):
    """The server's answer differs from the expected one."""


def facts():
    """The driver's file: host, private key, chain and the content of the recording."""
    with open(sys.argv[1], encoding="utf-8") as file:
        return json.load(file)


def same(what, got, expected):
    """One case: both are equal."""
    global _cases
    _cases += 1
    if got != expected:
        raise Different(f"{what}: got {got!r}, expected {expected!r}")


def equal(what, got, expected):
    """One case: decimal texts or numbers of one value."""
    same(what, Decimal(str(got)), Decimal(str(expected)))


def refused(what, call, error, status, sentence):
    """One case: `call` raises the client's own `error` with this status, and the sentence in its text."""
    try:
        answer = call()
    except error as raised:
        same(f"{what}: status", raised.status_code, status)
        if sentence not in str(raised.error_msg):
            raise Different(f"{what}: {sentence!r} is not in {raised.error_msg!r}") from raised
        return
    raise Different(f"{what}: not refused but {answer!r}")


def ok(name, *figures):
    """Prints that a step passed, with figures."""
    print("ok", name, *figures, flush=True)


def end(program):
    """Prints how many cases ran; zero is a failure."""
    print(f"{program}: {_cases} cases", flush=True)
    if _cases == 0:
        sys.exit(1)


class Walk:
    """What one order takes of a book: levels best first, as `[price, size]` texts."""

    def __init__(self):
        self.shares = Decimal(0)
        self.notional = Decimal(0)
        self.fee = Decimal(0)

    def _take(self, price, shares, fee_bps):
        self.shares += shares
        self.notional += price * shares
        fee = shares * Decimal(fee_bps) / 10_000 * price * (1 - price)
        self.fee += fee.quantize(FEE_GRID, ROUND_HALF_UP)

    @property
    def average(self):
        return (self.notional / self.shares).quantize(MONEY_GRID, ROUND_HALF_UP)

    @staticmethod
    def budget(levels, dollars, cap, fee_bps):
        """A BUY that spends up to this many dollars at prices up to `cap`; taken shares are removed from `levels`."""
        walk, left = Walk(), Decimal(str(dollars))
        for level in levels:
            price, size = Decimal(level[0]), Decimal(level[1])
            if price > Decimal(str(cap)):
                break
            shares = min((left / price).quantize(SHARE_GRID, ROUND_DOWN), size.quantize(SHARE_GRID, ROUND_DOWN))
            if shares > 0:
                walk._take(price, shares, fee_bps)
                level[1] = str(size - shares)
                left -= price * shares
        return walk

    @staticmethod
    def sell(levels, shares, fee_bps):
        """A SELL of this many shares at any price; taken shares are removed from `levels`."""
        walk, left = Walk(), Decimal(str(shares))
        for level in levels:
            price, size = Decimal(level[0]), Decimal(level[1])
            taken = min(left, size.quantize(SHARE_GRID, ROUND_DOWN))
            if taken > 0:
                walk._take(price, taken, fee_bps)
                level[1] = str(size - taken)
                left -= taken
        return walk

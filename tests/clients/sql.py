"""The recipes of sql/ in DuckDB, and the files of an archive in pyarrow, polars and pandas.

Usage: sql.py FACTS.json. Writes what it found beside it, into found.json, for the test that compares.
"""

import json
import os
from decimal import Decimal

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.compute
import pyarrow.dataset
import pyarrow.parquet
from checks import end, equal, facts, ok, same

FACTS = facts()
RECIPES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sql")
FILES = FACTS["files"]


def text(value):
    """A value as JSON has it: decimals and whole numbers as texts."""
    return None if value is None else str(value)


def recipe(name, **variables):
    """The rows of a recipe, each as an object."""
    with duckdb.connect() as connection:
        for variable, value in variables.items():
            connection.execute(f"SET VARIABLE {variable} = ?", [value])
        with open(os.path.join(RECIPES, f"{name}.sql"), encoding="utf-8") as file:
            rows = connection.execute(file.read())
        names = [column[0] for column in rows.description]
        return [{key: text(value) for key, value in zip(names, row)} for row in rows.fetchall()]


def recipes():
    """All recipes but that of a job."""
    market, token = FACTS["market"], FACTS["token"]
    of_token = {"files": FACTS["glob"], "market": market, "token": token}
    return {
        "coverage": recipe("coverage", sidecars=FACTS["sidecars"]),
        "gaps": recipe("gaps", sidecars=FACTS["sidecars"]),
        "trades": recipe("trades", files=FACTS["glob"], market=market),
        "minute_bars": recipe("minute_bars", **of_token),
        "spread": recipe("spread", **of_token),
        "books": [recipe("book_at", at_ms=moment, **of_token) for moment in FACTS["moments"]],
    }


def job():
    """Profit and loss of a job, of a file of trades as a job has it."""
    day = 1786406400000
    rows = [
        # ts, market, side, outcome, shares, price, fee, reason
        (day, "0xa", "BUY", "Yes", "100.000000", "0.400000", "0.960000", "entry"),
        (day + 1, "0xa", "BUY", "Yes", "50.500000", "0.410000", "0.490000", "entry"),
        (day + 2, "0xa", "SELL", "Yes", "120.000000", "0.550000", "1.188000", "exit"),
        (day + 3, "0xa", "SELL", "Yes", "30.500000", "1.000000", "0.000000", "settlement"),
        (day + 1, "0xb", "BUY", "No", "10.000000", "0.333333", "0.022222", "entry"),
        (day + 9, "0xb", "SELL", "No", "10.000000", "0.000000", "0.000000", "settlement"),
        (day + 5, "0xc", "BUY", "Yes", "1.000000", "0.500000", "0.010000", "entry"),
    ]
    money = pyarrow.decimal128(18, 6)
    schema = pyarrow.schema([
        ("ts", pyarrow.timestamp("us", tz="UTC")), ("condition_id", pyarrow.string()), ("side", pyarrow.string()),
        ("outcome", pyarrow.string()), ("shares", money), ("price", money), ("fee", money),
        ("reason", pyarrow.string()),
    ])
    columns = list(zip(*rows))
    columns[0] = [moment * 1000 for moment in columns[0]]
    for place in (4, 5, 6):
        columns[place] = [Decimal(value) for value in columns[place]]
    arrays = [pyarrow.array(values, field.type) for values, field in zip(columns, schema)]
    path = os.path.join(FACTS["folder"], "trades.parquet")
    pyarrow.parquet.write_table(pyarrow.table(arrays, schema=schema), path)
    found = {row["condition_id"]: row for row in recipe("pnl", trades=path)}
    same("markets of the job", sorted(found), ["0xa", "0xb", "0xc"])
    for market, row in found.items():
        cash = shares = fees = Decimal(0)
        fills, last = 0, 0
        for moment, of, side, _, amount, price, fee, reason in rows:
            if of != market:
                continue
            amount, price, fee = Decimal(amount), Decimal(price), Decimal(fee)
            cash += (amount * price if side == "SELL" else -amount * price) - fee
            shares += amount if side == "BUY" else -amount
            fees += fee
            fills += reason != "settlement"
            last = max(last, moment)
        for name, expected in [("pnl", cash), ("shares_left", shares), ("fees", fees), ("fills", fills), ("last_ms", last)]:
            equal(f"{name} of {market}", row[name], expected)
    ok("job", *(row["pnl"] for row in found.values()))


def readers():
    """Every reader finds the same rows and values."""
    market, token = FACTS["market"].encode(), FACTS["token"]
    for path, rows in zip(FILES, FACTS["rows"]):
        table = pyarrow.parquet.read_table(path)
        frame = polars.read_parquet(path)
        panda = pandas.read_parquet(path)
        same("rows", [table.num_rows, frame.height, len(panda)], [rows] * 3)
        same("columns", [table.column_names, list(frame.columns), list(panda.columns)], [FACTS["columns"]] * 3)
        same("types", [str(field.type) for field in table.schema], FACTS["types"])
        sizes = pyarrow.compute.sum(table["size"]).as_py() or Decimal(0)
        equal("sizes in polars", frame["size"].sum() or 0, sizes)
        equal("sizes in pandas", panda["size"].dropna().sum(), sizes)
        mine = table.filter(pyarrow.compute.equal(table["asset_id"], token)).num_rows
        same("rows of the token in polars", frame.filter(polars.col("asset_id") == token).height, mine)
        same("rows of the token in pandas", int((panda["asset_id"] == token).sum()), mine)
        same("rows of the market in pandas", int((panda["market"] == market).sum()) > 0, True)
        same("rows of the market in polars", frame.filter(polars.col("market") == market).height > 0, True)
        # A row group can be skipped by its statistics.
        statistics = pyarrow.parquet.ParquetFile(path).metadata.row_group(0).column(0).statistics
        same("times have statistics", statistics is not None and statistics.has_min_max, True)
    ok("readers", len(FILES), "files")


def loader():
    """The query of a backtester that loads hours for nautilus_trader: the hour by its place in the folder, one market's
    books and changes by a filter of the scan, then one token."""
    field, found = pyarrow.dataset.field, 0
    market, token = FACTS["market"].encode(), FACTS["token"]
    for hour in FACTS["hours"]:
        day = hour[:10].replace("-", "/")
        path = os.path.join(FACTS["venue"], day, f"polymarket_orderbook_{hour}.parquet")
        columns = ["timestamp_received", "event_type", "asset_id", "bids", "asks", "price", "size", "side"]
        wanted = (field("market") == pyarrow.scalar(market, pyarrow.binary(66))) & field("event_type").isin(
            ["book", "price_change"]
        )
        scanner = pyarrow.dataset.dataset(path, format="parquet").scanner(columns=columns, filter=wanted)
        table = scanner.to_table()
        table = table.filter(pyarrow.compute.equal(table["asset_id"], token))
        times = table["timestamp_received"].to_pylist()
        same(f"{hour} is in order", times, sorted(times))
        books = table.filter(pyarrow.compute.equal(table["event_type"], "book"))
        for bids in books["bids"].to_pylist():
            same(f"a book of {hour}", all(len(level) == 2 for level in json.loads(bids)), True)
        found += table.num_rows
    ok("loader", found, "rows")
    return found


def rewritten():
    """The first hour as other writers have it: by compression, and by how the ids are stored."""
    table, made = pyarrow.parquet.read_table(FILES[0]), {}
    name = os.path.basename(FILES[0])
    for kind in ["none", "snappy", "zstd", "gzip", "brotli", "lz4"]:
        folder = os.path.join(FACTS["folder"], kind)
        os.mkdir(folder)
        made[kind] = os.path.join(folder, name)
        pyarrow.parquet.write_table(table, made[kind], compression=kind, use_dictionary=kind != "none")
    folder = os.path.join(FACTS["folder"], "polars")
    os.mkdir(folder)
    made["polars"] = os.path.join(folder, name)
    polars.read_parquet(FILES[0]).write_parquet(made["polars"], compression="zstd")
    return made


found = recipes()
job()
readers()
found["loaded"] = loader()
found["rewritten"] = rewritten()
with open(os.path.join(FACTS["folder"], "found.json"), "w", encoding="utf-8") as file:
    json.dump(found, file)
ok("versions", *(f"{of.__name__} {of.__version__}" for of in (duckdb, pyarrow, polars, pandas)))
end("sql")

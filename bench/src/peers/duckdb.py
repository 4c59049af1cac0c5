"""A book at a moment by a recipe, in a connection that has read nothing.

Reads a question from each line, as JSON, and answers with the seconds and the count of levels.
"""

import json
import sys
import time

import duckdb

print("ready", flush=True)
for line in sys.stdin:
    question = json.loads(line)
    with duckdb.connect() as connection:
        for variable in ("files", "market", "token", "at_ms"):
            connection.execute(f"SET VARIABLE {variable} = ?", [question[variable]])
        begun = time.perf_counter()
        levels = connection.execute(question["recipe"]).fetchall()
        seconds = time.perf_counter() - begun
    print(seconds, len(levels), flush=True)

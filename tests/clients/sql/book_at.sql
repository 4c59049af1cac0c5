-- The book of a token at a moment: its last whole book and the changes after it, by the rules of gateway/docs/archive.md
-- §4. `files` begins with an hour that has a whole book of the token.
--   SET VARIABLE files = 'archive/polymarket/2026/08/11/*.parquet';
--   SET VARIABLE market = '0x…';
--   SET VARIABLE token = '…';
--   SET VARIABLE at_ms = 1786406400000;
WITH events AS (
    SELECT
        row_number() OVER (ORDER BY filename, file_row_number) AS number,
        timestamp AS said, event_type, bids, asks, price, size, side
    FROM read_parquet(getvariable('files'), file_row_number = true, filename = true)
    WHERE
        market = encode(getvariable('market'))
        AND asset_id = getvariable('token')
        AND epoch_ms(timestamp_received) <= getvariable('at_ms')
        AND event_type IN ('book', 'price_change')
),
timed AS (
    SELECT *, max(said) OVER (ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest
    FROM events
),
-- A book that is older than what came before it does not count.
whole AS (
    SELECT *
    FROM timed
    WHERE event_type = 'book' AND (latest IS NULL OR said >= latest)
    ORDER BY number DESC
    LIMIT 1
),
sides AS (
    SELECT number, 'BUY' AS side, from_json(bids, '[["VARCHAR"]]') AS levels FROM whole
    UNION ALL
    SELECT number, 'SELL' AS side, from_json(asks, '[["VARCHAR"]]') AS levels FROM whole
),
unnested AS (
    SELECT number, generate_subscripts(levels, 1) AS place, side, unnest(levels) AS level
    FROM sides
),
changes AS (
    SELECT number, place, side, CAST(level[1] AS DECIMAL(9, 4)) AS price, CAST(level[2] AS DECIMAL(18, 6)) AS size
    FROM unnested
    UNION ALL
    -- Nor does a change that is older than the book.
    SELECT events.number, 0 AS place, events.side, events.price, events.size
    FROM events, whole
    WHERE events.event_type = 'price_change' AND events.number > whole.number AND events.said >= whole.said
),
levels AS (
    SELECT side, price, last(size ORDER BY number, place) AS size
    FROM changes
    GROUP BY side, price
)
SELECT side, price, size
FROM levels
WHERE size > 0
ORDER BY side, price;

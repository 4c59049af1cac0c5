-- Bars of one minute of a token's trades.
--   SET VARIABLE files = 'archive/polymarket/*/*/*/*.parquet';
--   SET VARIABLE market = '0x…';
--   SET VARIABLE token = '…';
SELECT
    epoch_ms(timestamp_received) // 60000 * 60000 AS minute_ms,
    first(price ORDER BY timestamp_received, file_row_number) AS open,
    max(price) AS high,
    min(price) AS low,
    last(price ORDER BY timestamp_received, file_row_number) AS close,
    sum(size) AS volume,
    count(*) AS trades
FROM read_parquet(getvariable('files'), file_row_number = true)
WHERE
    market = encode(getvariable('market'))
    AND asset_id = getvariable('token')
    AND event_type = 'last_trade_price'
GROUP BY minute_ms
ORDER BY minute_ms;

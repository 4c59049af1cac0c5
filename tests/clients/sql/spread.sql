-- The spread of a token by minute, of the best prices that the venue states with each change. A side without levels is
-- null, or 0 and 1 in the files of others.
--   SET VARIABLE files = 'archive/polymarket/*/*/*/*.parquet';
--   SET VARIABLE market = '0x…';
--   SET VARIABLE token = '…';
SELECT
    epoch_ms(timestamp_received) // 60000 * 60000 AS minute_ms,
    last(best_bid ORDER BY timestamp_received, file_row_number) AS best_bid,
    last(best_ask ORDER BY timestamp_received, file_row_number) AS best_ask,
    min(best_ask - best_bid) AS spread_min,
    max(best_ask - best_bid) AS spread_max,
    sum(best_ask - best_bid) AS spread_sum,
    count(*) AS statements
FROM read_parquet(getvariable('files'), file_row_number = true)
WHERE
    market = encode(getvariable('market'))
    AND asset_id = getvariable('token')
    AND event_type = 'price_change'
    AND best_bid > 0
    AND best_ask < 1
GROUP BY minute_ms
ORDER BY minute_ms;

-- The trades of a market in the order of receipt. `market` is a BLOB in the files.
--   SET VARIABLE files = 'archive/polymarket/*/*/*/*.parquet';
--   SET VARIABLE market = '0x…';
SELECT
    epoch_ms(timestamp_received) AS received_ms,
    decode(market) AS market,
    asset_id,
    side,
    price,
    size,
    fee_rate_bps,
    transaction_hash
FROM read_parquet(getvariable('files'), file_row_number = true)
WHERE market = encode(getvariable('market')) AND event_type = 'last_trade_price'
ORDER BY timestamp_received, file_row_number;

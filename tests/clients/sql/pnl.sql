-- Profit and loss of a back-test by market, of the trades of its job. A payout is a trade with the reason `settlement`.
--   SET VARIABLE trades = 'trades.parquet';
SELECT
    condition_id,
    count(*) FILTER (WHERE reason <> 'settlement') AS fills,
    sum(CAST(fee AS DECIMAL(18, 6))) AS fees,
    sum(
        CASE side WHEN 'BUY' THEN -1 ELSE 1 END * CAST(shares AS DECIMAL(18, 6)) * CAST(price AS DECIMAL(18, 6))
        - CAST(fee AS DECIMAL(18, 6))
    ) AS pnl,
    sum(CASE side WHEN 'BUY' THEN 1 ELSE -1 END * CAST(shares AS DECIMAL(18, 6))) AS shares_left,
    epoch_ms(max(ts)) AS last_ms
FROM read_parquet(getvariable('trades'))
GROUP BY condition_id
ORDER BY condition_id;

-- The hours of an archive: verdict, rows, losses.
--   SET VARIABLE sidecars = 'archive/*/*/*/*/*.json';
SELECT
    venue,
    hour,
    verdict,
    parquet."rows" AS "rows",
    tokens,
    frames.dropped AS dropped,
    minutes_empty,
    gap_ms_total
FROM read_json(
    getvariable('sidecars'),
    columns = {
        venue: 'VARCHAR', hour: 'VARCHAR', verdict: 'VARCHAR', tokens: 'BIGINT', minutes_empty: 'BIGINT',
        gap_ms_total: 'BIGINT', parquet: 'STRUCT("rows" BIGINT)', frames: 'STRUCT(dropped BIGINT)'
    }
)
ORDER BY venue, hour;

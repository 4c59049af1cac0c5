-- The gaps of an archive; without tokens a gap is of all.
--   SET VARIABLE sidecars = 'archive/*/*/*/*/*.json';
SELECT venue, hour, gap."from" AS from_ms, gap."to" AS to_ms, gap.reason AS reason, len(gap.tokens) AS tokens
FROM (
    SELECT venue, hour, unnest(gaps) AS gap
    FROM read_json(
        getvariable('sidecars'),
        columns = {
            venue: 'VARCHAR', hour: 'VARCHAR',
            gaps: 'STRUCT("from" BIGINT, "to" BIGINT, reason VARCHAR, tokens VARCHAR[])[]'
        }
    )
)
ORDER BY venue, from_ms;

-- The same job as `features.py` beside this file: strict enough JSON, each payment once, tiles of ten seconds by card.
-- What is written carries the offset that follows the newest record in it, as Headrace's rows do.

SET 'pipeline.name' = 'tiles';
SET 'table.local-time-zone' = 'UTC';
-- Headrace forgets an identity and a tile when no event on time can reach them.
SET 'table.exec.state.ttl' = '13 min';

CREATE TABLE payments (
    id STRING,
    card STRING,
    amount DOUBLE,
    country STRING,
    `at` TIMESTAMP_LTZ(6),
    `offset` BIGINT METADATA VIRTUAL,
    arrived_at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
    turn AS PROCTIME()
) WITH (
    'connector' = 'kafka',
    'topic' = '$source',
    'properties.bootstrap.servers' = '$brokers',
    'properties.group.id' = 'flink',
    'properties.fetch.max.wait.ms' = '5',
    'properties.isolation.level' = 'read_committed',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json',
    'json.timestamp-format.standard' = 'ISO-8601',
    'json.ignore-parse-errors' = 'true'
);

CREATE TABLE tiles (
    card STRING,
    tile BIGINT,
    n BIGINT,
    spend DOUBLE,
    largest DOUBLE,
    smallest DOUBLE,
    country STRING,
    max_event_time TIMESTAMP_LTZ(6),
    max_arrived_at TIMESTAMP_LTZ(3),
    next_offset BIGINT,
    PRIMARY KEY (card, tile) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka',
    'topic' = '$changelog',
    'properties.bootstrap.servers' = '$brokers',
    'properties.linger.ms' = '0',
    'sink.delivery-guarantee' = 'at-least-once',
    'key.format' = 'json',
    'value.format' = 'json',
    'value.json.timestamp-format.standard' = 'ISO-8601'
);

INSERT INTO tiles
SELECT
    card,
    tile,
    COUNT(*),
    SUM(amount),
    MAX(amount),
    MIN(amount),
    LAST_VALUE(country),
    MAX(`at`),
    MAX(arrived_at),
    MAX(`offset`) + 1
FROM (
    SELECT
        *,
        TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', CAST(`at` AS TIMESTAMP(6))) / 10 * 10 AS tile,
        ROW_NUMBER() OVER (PARTITION BY id ORDER BY turn) AS copy
    FROM payments
    WHERE amount > 0
        AND id IS NOT NULL
        AND card IS NOT NULL
        AND `at` >= arrived_at - INTERVAL '2' MINUTE
        AND `at` <= arrived_at + INTERVAL '1' MINUTE
)
WHERE copy = 1
GROUP BY card, tile;

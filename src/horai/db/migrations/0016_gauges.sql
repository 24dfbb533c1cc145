-- How much waits, as it was once in each minute of the database's clock: of all nodes together, taken by whichever comes first.
-- Each is counted up to a bound (db/minutes.py).
create table horai.gauge (
    at timestamptz primary key,
    retrying bigint not null,
    dead_letters bigint not null,
    parked_events bigint not null
);

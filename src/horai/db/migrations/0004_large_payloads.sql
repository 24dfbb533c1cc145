-- A claim does not carry a payload of more than 8 kB: whoever runs the instance reads it then (docs/concepts/storage.md).
-- The size of what is stored tells without reading it, unless it is compressed. Stable, as what it calls: so it is inlined.
create function horai.is_large(payload json) returns boolean
language sql stable parallel safe as $$
    select pg_column_size(payload) > 8192 or (pg_column_compression(payload) is not null and octet_length(payload::text) > 8192)
$$;

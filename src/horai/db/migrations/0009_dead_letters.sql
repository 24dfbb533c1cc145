-- Dead letters that are told apart, replayed and discarded.

-- fingerprint: the same for the same fault of a job (core/fingerprints.py); null for letters from before. replayed_as: the
-- instance that a replay made of it. reason: why it was discarded. changed_at: when its replay_status last changed.
alter table horai.dead_letter
    add column fingerprint text collate "C",
    add column replayed_as bigint,
    add column reason text,
    add column changed_at timestamptz;

-- Whoever changes the status: a replay, a discard, a put of its key from Python or from SQL.
create function horai.note_change() returns trigger language plpgsql set search_path = pg_catalog as $$
begin
    new.changed_at := clock_timestamp();
    return new;
end $$;
create trigger dead_letter_changed before update of replay_status on horai.dead_letter
    for each row when (old.replay_status is distinct from new.replay_status) execute function horai.note_change();

-- A replay takes the oldest first, and must not pass over years of letters that are done with.
create index dead_letter_new on horai.dead_letter (tenant_id, created_at, id) where replay_status = 'NEW';
create index dead_letter_job on horai.dead_letter (job_id, created_at, id);
create index dead_letter_fault on horai.dead_letter (tenant_id, fingerprint, created_at, id) where fingerprint is not null;
create index dead_letter_code on horai.dead_letter (tenant_id, error_code, created_at, id);
create index dead_letter_tags on horai.dead_letter using gin (tags);

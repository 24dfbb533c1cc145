-- Every tenant has a signing secret from its creation on, so that every call can be signed.
-- A secret is in force until `retired_at`: an old one keeps signing beside its successor until then.
create function horai.new_signing_secret() returns text
language sql volatile set search_path = pg_catalog
return 'whsec_' || encode(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()), 'base64');
revoke execute on function horai.new_signing_secret from public;

create function horai.add_signing_secret() returns trigger
language plpgsql set search_path = pg_catalog as $$
begin
    insert into horai.signing_secret (tenant_id, secret) values (new.id, horai.new_signing_secret());
    return null;
end $$;
revoke execute on function horai.add_signing_secret from public;

create trigger add_signing_secret after insert on horai.tenant for each row execute function horai.add_signing_secret();

insert into horai.signing_secret (tenant_id, secret)
select tenant.id, horai.new_signing_secret() from horai.tenant
where not exists (
    select from horai.signing_secret secret where secret.tenant_id = tenant.id and secret.retired_at is null
);

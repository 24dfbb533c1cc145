-- The service's own tables, in a database of its own: Horai never reads nor writes them.

create table if not exists article (
    id bigint generated always as identity primary key,
    title text not null,
    text text not null,
    status text not null default 'DRAFT',
    publish_at timestamptz not null,
    version bigint not null default 1,
    told bigint not null default 1
);

-- The articles that Horai has to hear of: few at any time.
create index if not exists article_untold on article (id) where told < version;

-- Every call that came with a good signature, and what it did. One row an attempt: the fence tells them apart.
create table if not exists delivery (
    idempotency_key text not null,
    fence bigint not null,
    unit text not null,
    attempt integer not null,
    article_id bigint not null,
    effect text,
    arrived_at timestamptz not null default clock_timestamp(),
    primary key (idempotency_key, fence)
);

create index if not exists delivery_article on delivery (article_id);

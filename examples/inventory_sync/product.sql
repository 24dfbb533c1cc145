-- The shop's own table, in a schema of its own. Nothing in it is there for Horai's sake.
create schema if not exists shop;

create table if not exists shop.product (
    code text primary key,
    name text not null,
    quantity integer,
    asked_at timestamptz
);

-- From now on every product is an entity of the job: those there are, and those that come and go, in their transactions.
select horai.follow_table('shop.product', job => 'refresh_stock', key_column => 'code');

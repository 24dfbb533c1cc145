-- A mark that moves with every statement that adds live rows or changes when or where they are claimed, on any path. A node
-- reads it with each beat: a claimer that missed a wake, or was sent none, asks for the next due times (core/news.py).
-- The mark moves before the commit, and does not move back with a rollback. One call for each statement, not for each row.
-- A claim changes neither column and moves nothing.
create sequence horai.change_mark cache 1;
select setval('horai.change_mark', 1); -- otherwise the first change would leave last_value as it is

create function horai.mark_change() returns trigger
language plpgsql as $$
begin
    perform pg_catalog.nextval('horai.change_mark');
    return null;
end $$;
revoke execute on function horai.mark_change from public;

create trigger mark_added after insert on horai.instance_live for each statement execute function horai.mark_change();
create trigger mark_moved after update of due, lane on horai.instance_live for each statement execute function horai.mark_change();

-- Reports of drills that operators have filed.

-- name: insert_drill_report
-- tenant: platform
-- Returns the row of a report that is filed already, unchanged.
insert into horai.drill_report (digest, kind, cluster, failed_at, rto, rpo, kept, filed_by, report)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (digest) do update set digest = excluded.digest
returning id, kind, cluster, failed_at, rto, rpo, kept, filed_at, filed_by, report, xmax = 0 as is_new;

-- name: find_drill_report
-- tenant: platform
select id, kind, cluster, failed_at, rto, rpo, kept, filed_at, filed_by, report from horai.drill_report where id = $1;

-- name: list_drill_reports
-- tenant: platform
-- $3: only of this kind; null for all.
select id, kind, cluster, failed_at, rto, rpo, kept, filed_at, filed_by from horai.drill_report
where id < $1 and ($3::text is null or kind = $3) order by id desc limit $2;

-- name: trim_drill_reports
-- tenant: platform
-- Removes all but the newest $1 reports.
delete from horai.drill_report where id <= (select id from horai.drill_report order by id desc offset $1 limit 1);

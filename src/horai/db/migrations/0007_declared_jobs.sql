-- A start asks which jobs its application has declared; without this it reads every definition.
create index job_declared_by on horai.job (tenant_id, (definition ->> 'declaredBy'))
where deleted_at is null and definition ->> 'declaredBy' is not null;

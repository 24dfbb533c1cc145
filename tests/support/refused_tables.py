"""A database that creates no table, as when its disk is full or the rights of the login are gone."""

REFUSE_TABLES = """
    create function public.refuse_table() returns event_trigger language plpgsql as $$
    begin raise insufficient_privilege using message = 'no table is created today'; end $$;
    create event trigger refuse_table on ddl_command_start when tag in ('CREATE TABLE')
        execute function public.refuse_table();
"""
PERMIT_TABLES = "drop event trigger refuse_table; drop function public.refuse_table()"

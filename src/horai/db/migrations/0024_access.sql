-- Keys, roles and tenants: the migration of the feature `access` takes the place of this file.
select;

-- An instance that started a run of a workflow stays RUNNING, held by no node (node 0), until its run is over or blocked
-- (docs/decisions/0029-a-starter-ends-with-its-run.md). settled: that instance has ended, and nothing that becomes of the run
-- later changes it. Runs that are open at the upgrade were started by instances that ended at once; the first look marks them.
alter table horai.workflow_run add column settled boolean not null default false;

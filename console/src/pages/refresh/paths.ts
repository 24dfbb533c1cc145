export function entitiesPath(job: string, rest: string): string {
  return `/api/v1/jobs/${encodeURIComponent(job)}/entities/${rest}`;
}

export function entityPath(job: string, key: string): string {
  return entitiesPath(job, encodeURIComponent(key));
}

import type access from "./en/access.json";
import type alerts from "./en/alerts.json";
import type archive from "./en/archive.json";
import type assets from "./en/assets.json";
import type audit from "./en/audit.json";
import type calendars from "./en/calendars.json";
import type common from "./en/common.json";
import type deadLetters from "./en/dead-letters.json";
import type definitions from "./en/definitions.json";
import type drills from "./en/drills.json";
import type forecast from "./en/forecast.json";
import type governor from "./en/governor.json";
import type incidents from "./en/incidents.json";
import type instances from "./en/instances.json";
import type jobs from "./en/jobs.json";
import type overview from "./en/overview.json";
import type panels from "./en/panels.json";
import type queues from "./en/queues.json";
import type reconcilers from "./en/reconcilers.json";
import type refresh from "./en/refresh.json";
import type schedules from "./en/schedules.json";
import type secrets from "./en/secrets.json";
import type sinks from "./en/sinks.json";
import type tenant from "./en/tenant.json";
import type workflows from "./en/workflows.json";

/** Keys are checked by the compiler against the English texts; a test holds both languages equal. */
declare module "i18next" {
  interface CustomTypeOptions {
    defaultNS: "common";
    resources: {
      common: typeof common;
      access: typeof access;
      archive: typeof archive;
      assets: typeof assets;
      audit: typeof audit;
      secrets: typeof secrets;
      overview: typeof overview;
      jobs: typeof jobs;
      instances: typeof instances;
      workflows: typeof workflows;
      panels: typeof panels;
      queues: typeof queues;
      "dead-letters": typeof deadLetters;
      refresh: typeof refresh;
      reconcilers: typeof reconcilers;
      definitions: typeof definitions;
      forecast: typeof forecast;
      governor: typeof governor;
      drills: typeof drills;
      incidents: typeof incidents;
      alerts: typeof alerts;
      sinks: typeof sinks;
      calendars: typeof calendars;
      schedules: typeof schedules;
      tenant: typeof tenant;
    };
  }
}

/** What may stand in a field: the same in every language. */
export const EXAMPLE = {
  name: "coupon_job",
  cron: "0 9 * * 1-5",
  every: "5m",
  delay: "10m",
  url: "https://example.com/run",
  header: "X-Team",
  subject: "orders.paid",
  payload: "{}",
  queue: "default",
  retryBase: "500ms",
  retryCap: "5m",
} as const;

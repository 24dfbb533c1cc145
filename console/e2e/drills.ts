/** The report of a drill on an existing cluster whose recovery took too long. */
export function reportOf(cluster: string) {
  return {
    kind: "primary",
    cluster,
    move: "switchover",
    failedAt: new Date().toISOString(),
    horai: "0.9.0",
    machine: "2 cores",
    replication: "synchronous",
    leaseSeconds: null,
    ratePerSecond: 100,
    rtoSeconds: 21.4,
    writesPausedSeconds: 21.4,
    workDelayedSeconds: 3,
    rpoSeconds: 0,
    acknowledged: 1_020,
    refused: 4,
    calls: 1_022,
    lost: 0,
    lostInstances: [],
    repeatedInFlight: 0,
    repeatedOutsideFlight: 2,
    repeatedInstances: ["instances 17, 19"],
    deadLetters: 0,
    deadLettersLost: 0,
    violations: [],
    promises: [
      { promise: "recovery time (RTO)", limit: "15.00 s", measured: "21.40 s", kept: false },
      { promise: "recovery point (RPO)", limit: "0.00 s", measured: "0.00 s", kept: true },
    ],
    kept: false,
    steps: [
      { second: 0, step: "Patroni moves the lead" },
      { second: 21.4, step: "writes are acknowledged again" },
    ],
  };
}

"""Drills: failures of a cluster, measured from outside. The drill starts the cluster, or is pointed at one.

home         the temporary directory of a drill, and the PostgreSQL binaries
pair         a primary and its streaming standby
nodes        `horai node` processes of the drill
target       the HTTP target that receives the calls
clients      clients that write at a steady rate, and the memory of acknowledged writes
outcome      pure: counts lost and repeated work, recovery time and point, and broken promises
scene        a running cluster under load, and the steps that all drills share
kinds        the drills: node, primary, standby, zone
existing     the drill of the primary on a cluster that exists
patroni      Patroni's REST API: the view of a cluster, its health, a move of the lead
markers      the job of a drill on a cluster that exists
plan         the size and the promises of a drill
interrupts   a command that ends its servers when it is interrupted
report       the report as Markdown and JSON
"""

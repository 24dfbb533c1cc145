"""Drills: failures of a cluster that the drill starts itself, measured from outside.

home         the temporary directory of a drill, and the PostgreSQL binaries
pair         a primary and its streaming standby
nodes        `horai node` processes of the drill
target       the HTTP target that receives the calls
clients      clients that write at a steady rate, and the memory of acknowledged writes
outcome      pure: counts lost and repeated work, recovery time and point, and broken promises
scene        a running cluster under load, and the steps that all drills share
kinds        the drills: node, primary, standby, zone
plan         the size and the promises of a drill
interrupts   a command that ends its servers when it is interrupted
report       the report as Markdown and JSON
"""

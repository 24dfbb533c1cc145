"""Python: jobs declared beside their functions, instances added from anywhere, workers that run them.

app          Horai: the jobs of an application, and what it is connected to
job          Job: what `@app.job` makes of a function; put, enqueue, trigger, cancel
declaration  what the decorator's arguments come to: the job's document
payloads     typed payloads and results
instance     Instance: what a function is given
handle       Handle: what adding an instance answers; its result
outcomes     RetryLater, Unrecoverable, and what an error makes of an attempt
client       what a process that adds instances holds: connections, wakes
inserts      many callers' instances in one statement
results      waiting for what instances come to
connections  `conn=`: the caller's own transaction, whatever the driver
facade       the same verbs without `await`
functions    the executor: async functions in the loop, others in threads
threads      the threads of functions that are not async
isolation    functions in processes of their own
reconciling  `@app.reconcile`: what a function wants, held against the instances of a job
worker       all of it as a process that claims its lanes itself
"""

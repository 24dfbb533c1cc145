"""The Python SDK: jobs declared beside their functions, instances added from any process, workers that run them.

app                Horai: the jobs and workflows of an application, and its connection to the database
job                Job: the result of `@app.job` on a function
job_api            Verbs: put, enqueue, trigger, cancel, next, explain, backfill
call_options       JobCaller: a job with the options of its next calls, the result of `job.options`
sync               the same methods without `await`
sync_handle        the handle of an instance without `await`
workflow           Workflow: the result of `app.workflow`
deferred           modules that are imported on first use: applications that only declare jobs do not load the rest
runtime            the rest, for the modules that declare jobs: the database, the engine, the executor of functions
reconcile          `@app.reconcile`: compares the instances that a function wants with the instances of a job
backfills          Backfill: a handle of a backfill, and its progress
entities           the entities of a refresh job
explanations       the answer of `job.explain`
queues             Queue: the result of `app.queue`, a queue with its limits
declaration        the job's document, from the decorator's arguments
payloads           the signature of a function, and the types of its payload and result
parameters         functions with several parameters: the payload by parameter name
codecs             one type as JSON text, and back
codec_choice       the choice between msgspec and pydantic
instance           Instance: the argument of a function
handle             Handle: the answer to adding an instance, and its result
branches           Branch: the return value of a node that chooses which nodes run after it
outcomes           RetryLater, Skip, Unrecoverable
function_outcomes  the outcome of an attempt, by how its function ends
client             the connections and wakes of a process that adds instances
enqueue_batcher    the instances of many callers in one statement
results            waiting for the results of instances
drivers            `conn=`: the caller's own transaction, with any supported driver
transaction        the client's methods in the caller's own transaction
lifecycle          the hooks, resources and middleware of a worker process
functions          the executor: async functions in the event loop, others in threads
eager              a coroutine run at once, up to its first wait
threads            the threads of functions that are not async
django             Django's setup, and its connections around each call
webhooks           verify_webhook: the check of a signature
worker             the worker: a process that claims its lanes itself
"""

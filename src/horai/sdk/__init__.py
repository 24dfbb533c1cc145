"""The Python SDK: jobs declared beside their functions, instances added from any process, workers that run them.

app              Horai: the jobs and workflows of an application, and its connection to the database
job              Job: the result of `@app.job` on a function
job_api          Verbs: put, enqueue, trigger, cancel, next, explain, backfill
sync             the same methods without `await`
workflow         Workflow: the result of `app.workflow`
reconcile        `@app.reconcile`: compares the instances that a function wants with the instances of a job
backfills        Backfill: a handle of a backfill, and its progress
entities         the entities of a refresh job
explanations     the answer of `job.explain`
declaration      the job's document, from the decorator's arguments
payloads         the signature of a function, and the types of its payload and result
codecs           one type as JSON text, and back
codec_choice     the choice between msgspec and pydantic
instance         Instance: the argument of a function
handle           Handle: the answer to adding an instance, and its result
outcomes         RetryLater, Unrecoverable, and the outcome of an attempt that raised
client           the connections and wakes of a process that adds instances
enqueue_batcher  the instances of many callers in one statement
results          waiting for the results of instances
drivers          `conn=`: the caller's own transaction, with any supported driver
transaction      the client's methods in the caller's own transaction
functions        the executor: async functions in the event loop, others in threads
eager            a coroutine run at once, up to its first wait
threads          the threads of functions that are not async
django           Django's setup, and its connections around each call
webhooks         verify_webhook: the check of a signature
worker           the worker: a process that claims its lanes itself
"""

"""Advice that follows an error."""

from horai.text.phrase import Phrasebook


class Hint(Phrasebook):
    """Sentences that tell the user what to do next."""

    SEND_A_BEARER = (
        "Send the header `Authorization: Bearer <key>`. An admin of the tenant creates keys: horai keys create."
    )
    REVOKE_AND_CREATE = "If its text is lost, revoke it and create another: DELETE /api/v1/keys/{key}."
    SIGN_IN_AS_USER = "Use a key of the other tenant, or sign in to the console as a user."
    ASK_FOR_GROUP = "Ask an admin of the platform to map one of your groups: horai groups create."
    SIGN_IN_AGAIN = "Sign in again."
    SIGN_IN_LATER = "Try again in a minute. The log of the server says what is wrong; a key still signs in."
    SIGN_IN_BY_KEY = "Sign in with a key. The operator adds a provider: --oidc-issuer."
    DELETE_MAPPING = "Delete it first: DELETE /api/v1/groups/{mapping}."
    LIST_SIGNING_SECRETS = "GET /api/v1/signing-secrets lists the secrets in force."
    GIVE_ENCRYPTION_KEY = (
        "The operator gives every node the same key: --encryption-key-file, --encryption-key-command or "
        "HORAI_ENCRYPTION_KEY."
    )
    GIVE_OLD_ENCRYPTION_KEY = (
        "Give this server all encryption keys in use, the newest first; if the key is lost, give the values again."
    )
    CREATE_SECRET_FIRST = "Create it first: POST /api/v1/secrets."  # noqa: S105 - a text
    PUT_TO_REPLACE = "PUT /api/v1/secrets/{name} replaces its value."
    CHANGE_JOBS_FIRST = "Change the headers of the jobs that use it first."
    DELETE_UNUSED_SECRETS = "Delete secrets that no job uses."
    CHECK_KEY = "Check the key, and wait before you try again."
    ASK_FOR_ROLE = "Ask an admin for the role {needed}."
    WAIT_FOR_ENDS = "Nothing was written. Try again when instances have ended, or ask the platform for a larger quota."
    WAIT_RETRY_AFTER = (
        "Nothing was written. Try again after Retry-After seconds, or ask the platform for a larger quota."
    )
    SEND_FEWER_REQUESTS = "Nothing was written. Try again after Retry-After seconds, and send fewer requests at once."
    WAIT_FOR_MODE = "GET /api/v1/scheduler/mode shows the mode or the hold. Try again when it has ended."
    OPEN_ANOTHER_INCIDENT = "Add a note to it, or open another one."
    KEEP_OR_ASK = "Keep large data elsewhere and send a reference, or ask the platform for a larger quota."
    DELETE_JOBS_OR_ASK = "Delete jobs that are no longer used, or ask the platform for a larger quota."
    PAUSE_TENANT_FIRST = "Pause it first: POST /api/v1/tenants/{name}/pause."
    CONFIRM_NAME = "Repeat the name: DELETE /api/v1/tenants/{name}?confirm={name}."
    WAIT_FOR_DELETION = "Wait until its data is deleted; then the name can be used for a new tenant."
    LISTED_AT = "GET {path} lists them."
    ADD_A_LETTER = "Add a letter: a job is found by its id or its name."
    CHANGE_ITS_OWNER = "Change the workflow or the reconciler that the job belongs to."
    GIVE_TARGET = 'Give "target": {{"type": "http", "url": "https://…"}}.'
    WRITE_QUERY = "select key, execute_time, payload from … where key > $1 order by key limit $2"
    GIVE_VALUE_AGAIN = (
        "Give the value itself. *** keeps it only in a change that leaves scheme, host and port as they are."
    )
    ALLOW_SOURCE = "The operator allows sources by name, on every node: --source NAME=URL, or HORAI_SOURCE_<NAME>."
    GIVE_TICK = "Give the job a cron or an every: at these times it looks for due entities."
    GIVE_WINDOW = 'Give "refresh": {{"window": "10d"}}.'
    BREAK_CIRCLE = "Remove one `after` of the circle."
    THERE_ARE = "There are: {names}."
    CREATE_ANOTHER_ENCRYPTED = "Create another job with the wanted `encrypted`, and delete this one."
    DECLARE_ENCRYPTED = "Declare the job as it is stored, with encrypted=True or without it, or use another name."
    OTHER_JOB_FOR_SECRETS = "Use a job without `encrypted`."
    OTHER_JOB_FOR_NODE = "Use a job without `searchPaths`."
    ENCRYPT_CHILD = "Use an encrypted job, or let the node wait for other nodes."
    FILTER_OTHERWISE = "Filter by key, state or time: the job has no search paths."
    FILTER_DECLARED = "Filter by a search path of the job: {paths}."
    FILTER_RARER = "Filter by a field whose values differ more, or by key, state or time."
    FILTER_PLAIN = "Leave it out: a job that is not encrypted can be filtered by every field of its payload."
    WRITE_SEARCH_PATH = "Write one such as order.id: 1 to {most} names with dots between them, at most 200 characters."
    CREATE_ANOTHER_SEARCHED = "Create another job with the wanted `searchPaths`, and delete this one."
    DECLARE_SEARCH_PATHS = "Declare the job as it is stored, with the same search_paths, or use another name."
    CREATE_ANOTHER = "Create another job under the new name and delete this one."
    CANCEL_AND_CREATE = "Cancel its instance and create another job."
    PUT_INSTEAD = "PUT or batch its instances instead, or give it a cron or an every first."
    TRIGGER_OR_ANCHOR = "Trigger it, or give it a cron or an every from an anchor."
    LEAVE_OUT_NOW = "Leave it out to use the current time."
    RANGE_ENDS_BEFORE = "The range begins with `from` and ends just before `to`."
    SPLIT_RANGE = "Split it: each backfill ends just before its `to`."
    WRITE_RATE = 'Write "100/s", "30/m" or "1000/h"; a number alone is per second.'
    WRITE_LIMIT = "Write a whole number from 1 to {most}, or null for no limit."
    ONE_SCHEDULE = "A job has one of cron, every, at, delay, or none of them."
    WRITE_MOMENT = (
        "Write an instant such as 2026-03-29T02:30:00+01:00, or the time of the job's zone without an offset: "
        "2026-03-29T02:30."
    )
    RERUN_FROM_HOLD = "Rerun from the node that holds it up."
    REPLAY_OR_RERUN = (
        "Remove the cause, then replay the dead letter of instance {instance}, or rerun the run from {node!r}."
    )
    RERUN_BLOCKED = "Remove the cause, then rerun the run from {node!r}."
    RERUN_FROM = "Rerun from {node!r}: the nodes after it follow."
    WAIT_OR_CANCEL = "Wait until it has ended, or cancel its instance, then ask again."
    DISCARD = "Discard it: POST /api/v1/dlq/{letter}/discard."
    CHANGE_RECONCILER_IN_CODE = (
        "Change it in the code. Once it is gone from there, delete its job: DELETE /api/v1/jobs/{{job}}."
    )
    NEW_KEY = "Use a new key for a new request; repeat a request with exactly the same body."
    NOTHING_AGAIN = "This is the answer to a repeated request: nothing was done again."
    REPEAT_SOON = "Repeat the request with the same key in a moment: it returns the result of the first one."
    KEYS_EXPIRE = "Nothing was done. Send the request without a key, or wait until old keys expire."
    TRIGGER_WORKFLOW = "Trigger the workflow instead: a new run has the jobs that the workflow has now."
    WAIT_FOR_REPLAY = "Wait until that has ended, then ask again."
    PUT_A_KEY = "Put an instance of a key to run one entity."
    START_A_NODE = "Start a node (`horai up`), then repeat the request with the same Idempotency-Key."
    KEY_HISTORY = "It may have finished: GET /api/v1/jobs/{{job}}/instances?key=… shows its history."
    CHOOSE_ANOTHER_NAME = "PATCH it to change it, or choose another name."
    DELETE_ITS_OWNER = "Delete its workflow or reconciler."
    TAKE_OUT_OF_WORKFLOWS = "Take it out of its workflows first: PATCH or DELETE /api/v1/workflows/{{workflow}}."
    DELETE_RECONCILERS = "Delete its reconcilers first: DELETE /api/v1/reconcilers/{{reconciler}}."
    CHANGE_REFRESH_JOB = "Change the refresh job that it is named after."
    READ_AGAIN = "Read it again, look at what changed, and send the new ETag in If-Match."
    CREATE_JOBS_FIRST = "Create its jobs first."
    SEND_SMALLER = "Send a smaller one, then POST /api/v1/events/parked/{event}/discard."
    SEND_FENCE = "Send the number of the header Horai-Fence of the call."
    REFRESH_JOB_HAS = 'A refresh job has a cron or an every, and "refresh": {{"window": "10d"}}.'
    START_ANOTHER = "Start another one over the same range; `missing` and `failed` run only the remaining slots."
    EXPIRE_OLD_SECRETS = "Wait until an old one expires, or end all of them now with expireOld 0s."
    QUEUE_COMES = "The first job in a queue creates it; so does a PUT."
    KEEP_ELSEWHERE = "Keep large data elsewhere and send a reference."
    SEND_JSON = "Send valid JSON in UTF-8."
    ALL_FIELDS = "GET /openapi.json lists all fields."
    SPLIT_REQUEST = "Split the request, or keep large data elsewhere."
    SEND_FEWER_HEADERS = "Send fewer or shorter headers, or a shorter address."
    SEND_FASTER = "Send the request again over a faster connection, or split it."
    CLOSE_CONNECTIONS = "Reuse connections, close unused ones, and try again after Retry-After seconds."
    SEND_ONE_AT_A_TIME = "Send fewer large bodies at a time, and try again after Retry-After seconds."
    CHECK_CLIENT = "Check the client: the server closed the connection."
    SEND_CONTENT_TYPE = "Send the header Content-Type: application/json."
    CAMEL_CASE = "Field names are camelCase; GET /openapi.json has all of them."
    KNOWN = "Known: {words}."
    SET_PUBLIC_URL = "Use its address, or start it with --public-url and this name."
    USE_LOOPBACK = "Use http://127.0.0.1 or http://localhost."
    OTHER_ORIGINS = "Requests from other origins are refused."
    ALL_ADDRESSES = "GET /openapi.json lists all addresses."
    CHECK_VALUES = "Check times, numbers and texts."
    TRY_AGAIN = "Nothing was half done. Try again."
    USE_NEXT_CURSOR = "Use the nextCursor of the page before, unchanged."
    SEND_ETAG = 'Send the ETag of the job as you read it, such as "3".'
    WRITE_RATES = 'Write "100/s", "30/m" or "1000/h".'
    GIVE_ANOTHER_SOURCE = "Give another complete source, or delete the reconciler."
    NEVER_USED = "No instance has ever had this key."
    KEEP_RESULTS_ELSEWHERE = "Keep large results elsewhere and send a reference."
    GIVE_A_FILTER = "Give at least one of job, state, queue, tag, key, keyPrefix, errorCode, payload, ids, from, to."
    NARROW_JOBS = "Give at least one of names, tag, queue, nameContains."
    LIVE_STATES = "Instances in INIT, FAIL, BLOCKED and RUNNING can be cancelled."
    GIVE_CRON = "Give a cron or an every."
    TRY_AGAIN_BY_KEY = (
        "Try again: a repeat with the same key has no second effect. GET /readyz shows when the database answers."
    )
    UNCHANGED = "The instance is unchanged."
    UNCHANGED_KEPT = "The instance is unchanged; the outcome was kept as a late result."
    ASK_LATER = "Connect again later, and meanwhile poll the lists every few seconds."
    SEND_A_KEY = "Send one key per intent, such as a UUID; a repeated request then answers with the first {first}."
    GIVE_ZONE = "Give it one, such as datetime.UTC."
    WRITE_MEMBER = "Write it as order.id=17, at most {most} names deep."
    TAKE_ZONE = "Take an IANA name such as Europe/Berlin."
    GIVE_A_LETTER_FILTER = "Give at least one of job, tag, errorCode, fingerprint, instance, from, to."
    SAY_WHY = "Give the reason why they need not run; it is stored with each of them."
    TAKE_A_MINUTE = "Choose a minute of the next seven days."
    GIVE_A_HEAD = "Give a head as it was published: the number of a seal, a colon and 64 hexadecimal digits."
    NAME_DEAD = "Leave it out, or name DEAD."

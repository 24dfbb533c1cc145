"""Every sentence of an explanation: about an instance, a slot without one, or an instant that is not a slot."""

from horai.core.states import State
from horai.text.phrase import Phrase, Phrasebook


class RunWords(Phrasebook):
    """Sentences about an instance: its outcome, its node, what it waits for or what holds it."""

    INSTANCE = "instance {instance}{key}"
    OF_KEY = " of the key {key!r}"
    AT = " at {at}"
    SINCE = " since {since}"
    ON_NODE = " on node {node}"
    NOTED = " ({note})"
    IN_ATTEMPT = " (attempt {attempt})"
    WITH_REASON = "{what}: {reason}"

    FIRED = "fired as {instance}: {outcome} in {attempt}, which began {delay} after the due time and took {duration}"
    SUCCEEDED = "SUCCESS"
    DIED = "DEAD"
    DIED_WITH = "DEAD with {error}"
    FIRST_ATTEMPT = "its first attempt"
    NTH_ATTEMPT = "attempt {attempt}"
    RUNS = "{instance} runs{node}{since}{attempt}"
    RUNS_WORKFLOW = "{runs}; it ends with its run, which waits for the nodes {nodes}"
    RUNS_LONG = "{runs}; it is stuck{since}, because 95 % of the runs of its job end within {p95}"
    RUNS_LONG_OF_FEW = (
        "{runs}; it is stuck{since}, because the longest of the few known successes of its job took {longest}"
    )
    RUNS_LONG_UNKNOWN = (
        "{runs}; it is stuck{since}, because it has run for over {limit} and no usual duration of its job is known"
    )

    CANCELLED = "{instance} was cancelled{at}"
    CANCELLED_BY_USER = "{instance} was cancelled{at} by a user"
    SUPERSEDED = "a later request for its key took its place"
    PARENT_FAILED = "a workflow node that it depends on did not succeed"
    JOB_WAS_DELETED = "its job was deleted"
    NODE_WAS_SKIPPED = "its workflow run skipped it, by its trigger rule or because a node before it chose other nodes"
    HAD_EXPIRED = "it had not started when it expired, or its next attempt had not"
    REPLACED = "a newer slot took its place, by overlap replace"
    REPLACED_BY = "the slot of {slot} (instance {instance}) took its place, by overlap replace"
    TOO_MANY_QUEUED = "{most:,} slots waited before it, and overlap queue lets no more wait"
    YIELDED = "{other}, and by overlap skip a slot yields to it"
    NOT_ALLOWED_THEN = "{other}, which the job did not allow then"
    ANOTHER_UNDER_WAY = "another run of the job was in progress"
    UNDER_WAY = "instance {instance} was still in progress"

    BLOCKED = "instance {instance} waits for upstream nodes of its workflow"
    PARENTS = "what comes before it in its workflow"
    PARENT = "{name} (instance {instance}, {state})"
    MOVING = "moving"
    ROOT_CAUSE = "{parents}; the root cause is {causes}"
    DEAD_NODE = "{name} (instance {instance}, {error})"

    HELD = "{instance} is held: {hold}{failure}"
    AFTER_FAILURE = "; it failed in attempt {attempt}"
    AFTER_LOSS = "; in attempt {attempt} it ran beside a crash"
    FAILED = "{instance} failed in attempt {attempt}: it is tried again at {at}"
    FAILED_WITH = "{instance} failed in attempt {attempt} with {error}: it is tried again at {at}"
    BESIDE_A_CRASH = (
        "{instance} ran beside a crash in attempt {attempt}, which does not count as a failure: "
        "it is tried again at {at}"
    )
    WAITS = "{instance} waits until {at}"
    COMPENSATES = "{instance} compensates its finished steps from {at} on, and then ends"
    SUSPENDED = "{instance} is suspended until {at}, or until a signal that its function waits for"
    SUSPENDED_FOR = "{instance} is suspended: {reason}"
    SENSOR_ASKS = "the condition of {instance} was not met: the sensor asks again at {at}, and gives up at {deadline}"
    AWAITS = "its function has called other jobs and waits for {children}"
    VERSION_AWAITED = "its function began in version {version}, and waits for a worker that declares this version"
    WAITS_BY_JITTER = "{instance} waits until {at}: the jitter of the job delays its slots"
    SOON_CLAIMED = "{instance} has been due for {duration} and is about to be claimed"
    UNCLAIMED = "{instance} has been due for {duration} and has not been claimed: {guess}"
    OTHERS_BEFORE = "others may be before it"
    MAYBE_NO_HANDLER = "no live worker may have its function {handler}"

    DUE_IN = "due in {duration}"
    PAUSED = "the job is paused{since}{note}"
    QUEUE_PAUSED = "its queue {queue} is paused"
    TENANT_PAUSED = "the platform has paused its tenant"
    DISPATCH_HELD = "an operator has paused all dispatch"
    MODE_CORE = "the governor is in the mode CORE_ONLY, in which only instances of priority core start"
    MODE_LOW = "low-priority instances wait, because the scheduler is overloaded or an operator has frozen them"
    MODE_HALVED = "the scheduler is overloaded, and low-priority instances start at no more than {rate} per second"
    MODE_RETRIES = "the governor is in the mode RETRY_LIMITED, in which retries start at no more than {rate} per second; its turn may come at {at}"
    MODE_LONG = "the governor is in the mode RETRY_SHORT_FIRST, in which retries of long runs wait; it is due at {at}"
    QUEUE_FULL = "its queue {queue} runs {running} at once, and {limit} is its limit"
    QUEUE_FULL_OF = (
        "its queue {queue} runs {running} at once, and {limit} is its limit; those that run longest: {holders}"
    )
    QUEUE_CLOGGED = "its queue {queue} is clogged: stuck runs hold all of its slots ({limit}): {holders}"
    HOLDER = "instance {instance} of {job}"
    HOLDER_SINCE = "instance {instance} of {job}{since}"
    MORE_HOLDERS = "{count} more"
    KEY_FULL = "its concurrency key {key} runs no more than {limit} at once, and these run: {holders}"
    TENANT_FULL = "its tenant runs {running} at once, and {limit} is its quota"
    QUEUE_RATE = "its queue {queue} starts no more than {rate}"
    TURN_COMES = "with overlap {overlap}, slots run one after the other, and this one is next"
    BEHIND = "by overlap {overlap} it waits until instance {instance} has ended"
    BREAKER_OPEN = (
        "the circuit breaker of {host} is open{since}, because its calls failed; the next probe is due at {at}"
    )
    BREAKER_PROBES = "the circuit breaker of {host} is half-open{since} and waits for the results of its probes"
    BREAKER_RAMP = "{host} works again, and its circuit breaker admits more calls from second to second"
    BREAKER_LINE = "the circuit breaker of {host} held it, and calls that it held begin one after the other until {at}"
    PAYLOAD_LOCKED = "its payload cannot be opened: the server lacks the encryption key, or the key was erased; no attempt is counted"
    SECRETS_LOCKED = (
        "the secrets of its target cannot be opened: the server lacks their encryption key, or the key was erased; "
        "no attempt is counted"
    )
    RETRY_BUDGET = (
        "retries to {host} have reached their share of first tries in the last minute, and those that wait begin one "
        "after the other until {at}"
    )
    HOST_FULL = "{host} has as many calls in progress and in line as allowed{since}; the node looks again at {at}"
    NO_HTTP_NODE = "no live node makes HTTP calls"
    NO_NODE_FOR = "no live node runs {handler}"
    NO_BROKER_NODE = "no live node has the NATS broker {broker} (--broker) and the package horai[nats]"
    NO_WORKER = "no worker is alive, and its function {handler} needs one"
    NO_HANDLER = "no live worker has its function {handler}"


class AbsenceWords(Phrasebook):
    """Sentences about a slot without an instance: skipped, late, held, upcoming, or missing without a record."""

    NO_TRACE = (
        "the schedule has passed this slot, and there is neither an instance nor a skip on record: "
        "its history was removed, or the job was another one then"
    )
    SKIPPED_PAUSED = "it was skipped with {slots}: the job was paused"
    SKIPPED_LATE = "{cause}, and {policy}: skipped with {slots}"
    SKIPPED_CHANGED = "it was late and still to be made when the job's schedule was changed: skipped with {slots}"
    SKIPPED_THINNED = (
        "the scheduler was overloaded, and the governor leaves out every second slot of frequent low-priority jobs then"
    )
    SKIPPED_FOR = "it was skipped with {slots} ({reason})"
    NOT_IN_TIME = "no node made it in time"
    WAS_PAUSED = "the job was paused"
    BY_SKIP = "the misfire policy skip makes no late slots"
    BY_ONCE = "the misfire policy once makes at most the last of the late slots"
    BY_ALL = "the misfire policy all makes no late slots beyond its window and its maxCatchup"
    STILL_BY_ALL = "the misfire policy all makes late slots, within its window and its maxCatchup"
    ONE_SLOT = "this one slot of {at}"
    SLOTS = "the slots from {first} to {last}"
    COUNTED_SLOTS = "the {count:,} slots from {first} to {last}"

    IN_LINE = "it is one of {count} late slots that are made bit by bit, in their order"
    IN_LINE_PAUSED = "it is one of {count} late slots that are made bit by bit, in their order, but {pause}"
    SOME = "some"
    COUNT = "{count:,}"
    MORE_THAN = "more than {count:,}"

    NOT_CREATED = "the job was not there yet: it was created at {at}"
    NOT_FOLLOWED = "the job follows this schedule since {at}, and had no such slot before"
    UNLESS_RESUMED = "unless it is resumed before, this slot falls into the pause, and {then}"
    RESUME_SKIP = "when it is resumed, the misfire policy skip leaves out the slots of the pause"
    RESUME_ONCE = "when it is resumed, the misfire policy once makes only the last slot of the pause"
    RESUME_ALL = "when it is resumed, the misfire policy all makes the slots of the pause{bounds}"
    NEWEST = ", the newest {most:,} of them"
    NONE_OLDER = ", none older than {window}"
    NEWEST_NONE_OLDER = ", the newest {most:,} of them and none older than {window}"

    ASLEEP = "its schedule is asleep: no active job followed it when it last came"
    COMES_BY_JITTER = "due in {duration}; the jitter makes it run at {at}"
    LATE = "due {duration} ago, and not made yet{nobody}; {then}"
    NOBODY_MAKES_SLOTS = ": no live node makes slots"
    COUNTS_AS_IN_TIME = "for {after} it counts as in time"


class SlotWords(Phrasebook):
    """Sentences about an instant that is not a slot, and about a local time that no clock showed."""

    ASSET_PENDING = "{name} was updated {count} times since its last start"
    ASSET_MISSING = "{name} was not updated since its last start"
    WAITS_FOR_ALL = "It starts when all of these assets were updated: {assets}."
    WAITS_FOR_ANY = "It starts when any of these assets was updated: {assets}."
    NO_LONGER = "By the job's present schedule this would be no slot."
    NOT_THERE = "its schedule does not have this time"
    NO_SCHEDULE = "the job has no schedule: it runs when it is told to, and nothing was wanted for this instant"
    NO_FIXED_TIMES = (
        "the job has no fixed times: each run comes {interval} after the one before has ended, and none came here"
    )
    BEFORE_START = "its schedule has this time, but the job begins at {at} (startAt)"
    AFTER_END = "its schedule has this time, but the job ends at {at} (endAt)"
    ALL_EXCLUDED = "its schedule has this time, but its excluded dates leave out every date around"
    EXCLUDED = "its schedule has this time, but its calendar leaves out {day}"
    EXCLUDED_BY = "its schedule has this time, but its calendar leaves out {day} ({entry})"
    CALENDAR_SKIPS = "its schedule has this time, but {reason}, and onHoliday is {rule}"
    CALENDAR_MOVES = "its schedule has this time, but {reason}, and by onHoliday {rule} its slot is at {at}"
    CALENDAR_LOSES = "its schedule has this time, but {reason}, and there is no working day to move it to"
    BETWEEN_INTERVALS = (
        "the job fires every {interval} from {anchor} on, and {time} is {after} after its slot at {slot}"
    )
    CRON_DISALLOWS = "{cron} does not allow {time} on {day}: {reason}"
    FIRST_OF_TWO = "{time} comes twice on {day}, and this is the first: by dst.overlap {overlap} the slot is at {slot}"
    SECOND_OF_TWO = (
        "{time} comes twice on {day}, and this is the second: by dst.overlap {overlap} the slot is at {slot}"
    )

    LOST = "{time} does not exist on {day}: the clock jumps from {lost_from} to {lost_until}"
    LOST_MOVED = "{lost}, where its slot is"
    LOST_SKIPPED = "{lost}, and by dst.gap skip it is left out"
    LOST_NOTHING = "{lost}, and {cron} follows the real time, which lost nothing"
    LOST_DISALLOWED = "{lost}, and {cron} does not allow it either: {reason}"
    ON_DATE = "{time} on {day}"
    DAYS = "{days} days"


class StateName(Phrasebook):
    """The names of states, the same everywhere."""

    STATE_INIT = "INIT"
    STATE_BLOCKED = "BLOCKED"
    STATE_RUNNING = "RUNNING"
    STATE_FAIL = "FAIL"
    STATE_SUCCESS = "SUCCESS"
    STATE_DEAD = "DEAD"
    STATE_CANCELLED = "CANCELLED"


def name_of(state: State) -> Phrase:
    """Return the name of a state as a phrase."""
    return StateName[f"STATE_{state.name}"]()

"""The texts of notifications, in English and in Chinese. Pure.

A text says what happened, to which object, since when, and what to do: a command, and a link if the server knows its
public address. Values of users are shortened to one line; each channel escapes them for its own syntax.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

LISTED = 10
"""The most alerts that one notification lists; the others are counted."""
LONGEST_VALUE = 200
_BREAKS = re.compile(r"[\x00-\x1f\x7f\u0085\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+")

TITLES: Mapping[str, Mapping[str, str]] = {
    "en": {
        "INSTANCE_DEAD": "Instances died",
        "RUN_BLOCKED": "Workflow runs are blocked",
        "NOT_SUCCESS_BY": "Jobs have not succeeded in time",
        "JOB_LATE": "Jobs are late",
        "QUEUE_WAIT": "Queues wait too long",
        "HEARTBEAT_MISSING": "Heartbeats are missing",
        "RECONCILE_DRIFT": "Reconcilers found differences",
        "MODE_ENTERED": "The scheduler limits itself",
        "BUDGET_BURN": "The error budget is spent too fast",
        "RUN_STUCK": "Runs are stuck",
        "QUEUE_CLOGGED": "Queues are clogged",
        "SINK_PARKED": "Sinks are parked",
        "ARCHIVE_FAILED": "History is not archived",
        "PARTITION_MISSING": "Partitions of history are missing",
        "TEST": "Test of this channel",
    },
    "zh-CN": {
        "INSTANCE_DEAD": "实例已死亡",
        "RUN_BLOCKED": "工作流运行被阻塞",
        "NOT_SUCCESS_BY": "作业未按时成功",
        "JOB_LATE": "作业延迟",
        "QUEUE_WAIT": "队列等待过久",
        "HEARTBEAT_MISSING": "心跳缺失",
        "RECONCILE_DRIFT": "对账发现差异",
        "MODE_ENTERED": "调度器进入限流模式",
        "BUDGET_BURN": "错误预算消耗过快",
        "RUN_STUCK": "运行卡住",
        "QUEUE_CLOGGED": "队列堵塞",
        "SINK_PARKED": "事件接收端已搁置",
        "ARCHIVE_FAILED": "历史数据未能归档",
        "PARTITION_MISSING": "历史数据缺少分区",
        "TEST": "渠道测试",
    },
}
LINES: Mapping[str, Mapping[str, str]] = {
    "en": {
        "INSTANCE_DEAD": "job {job}, instance {instance}: {errorCode}",
        "RUN_BLOCKED": "workflow {workflow}, run {run}: {causes} died, {blocked} nodes wait",
        "NOT_SUCCESS_BY": "job {job} has no SUCCESS by {by} ({timezone})",
        "JOB_LATE": "job {job}: {instances} instances are due and not started",
        "QUEUE_WAIT": "queue {queue}: {instances} due instances wait",
        "HEARTBEAT_MISSING": "heartbeat {heartbeat}: the last one came {lastAt}",
        "RECONCILE_DRIFT": "reconciler {reconciler}: {missing} missing, {surplus} surplus, {faulty} faulty",
        "MODE_ENTERED": "mode {mode}, level {level}",
        "BUDGET_BURN": "{late} of {started} starts of the last hour were late: {burnRate} times the budget",
        "RUN_STUCK": "job {job}, instance {instance}: it has run since {startedAt}, 95 % of runs end within {p95}",
        "QUEUE_CLOGGED": "queue {queue}: stuck runs hold all {slots} slots (instances {holders}), {waiting} instances wait",
        "SINK_PARKED": "sink {sink} ({kind}): {failures} deliveries failed one after the other: {error}",
        "ARCHIVE_FAILED": "{table} of {day}: {tries} tries failed: {error}",
        "PARTITION_MISSING": "{table} has no partition of {day}; {rows} rows or more lie in the default partition",
        "TEST": "This message was sent by hand. The channel works.",
    },
    "zh-CN": {
        "INSTANCE_DEAD": "作业 {job}，实例 {instance}：{errorCode}",
        "RUN_BLOCKED": "工作流 {workflow}，运行 {run}：{causes} 已死亡，{blocked} 个节点在等待",
        "NOT_SUCCESS_BY": "作业 {job} 在 {by}（{timezone}）前没有成功",
        "JOB_LATE": "作业 {job}：{instances} 个实例已到期但未开始",
        "QUEUE_WAIT": "队列 {queue}：{instances} 个到期实例在等待",
        "HEARTBEAT_MISSING": "心跳 {heartbeat}：最近一次为 {lastAt}",
        "RECONCILE_DRIFT": "对账 {reconciler}：缺失 {missing}，多余 {surplus}，错误 {faulty}",
        "MODE_ENTERED": "模式 {mode}，级别 {level}",
        "BUDGET_BURN": "最近一小时 {started} 次启动中有 {late} 次延迟：为预算的 {burnRate} 倍",
        "RUN_STUCK": "作业 {job}，实例 {instance}：自 {startedAt} 起运行，95 % 的运行耗时不超过 {p95}",
        "QUEUE_CLOGGED": "队列 {queue}：卡住的运行占用了全部 {slots} 个槽位（实例 {holders}），{waiting} 个实例在等待",
        "SINK_PARKED": "事件接收端 {sink}（{kind}）：连续 {failures} 次投递失败：{error}",
        "ARCHIVE_FAILED": "{day} 的 {table}：{tries} 次尝试失败：{error}",
        "PARTITION_MISSING": "{table} 缺少 {day} 的分区；默认分区中至少有 {rows} 行",
        "TEST": "此消息由人工发送，渠道工作正常。",
    },
}
STUCK_LINES: Mapping[str, tuple[str, str]] = {
    "en": (
        "job {job}, instance {instance}: it has run since {startedAt}, the longest of few known successes took {longest}",
        "job {job}, instance {instance}: it has run since {startedAt}, no usual duration is known",
    ),
    "zh-CN": (
        "作业 {job}，实例 {instance}：自 {startedAt} 起运行，已知的少数几次成功运行中最长耗时为 {longest}",
        "作业 {job}，实例 {instance}：自 {startedAt} 起运行，通常耗时未知",
    ),
}
"""Lines of stuck runs of jobs without a p95: with a few successes, and with none."""
COMMANDS: Mapping[str, str] = {
    "INSTANCE_DEAD": "horai dlq list",
    "RUN_BLOCKED": "horai stuck workflows",
    "NOT_SUCCESS_BY": "horai jobs explain JOB",
    "JOB_LATE": "horai health",
    "QUEUE_WAIT": "horai queues list",
    "HEARTBEAT_MISSING": "horai heartbeats list",
    "RECONCILE_DRIFT": "horai reconcilers list",
    "MODE_ENTERED": "horai governor show",
    "BUDGET_BURN": "horai governor sli",
    "RUN_STUCK": "horai stuck runs",
    "QUEUE_CLOGGED": "horai stuck queues",
    "SINK_PARKED": "horai sinks show NAME",
    "ARCHIVE_FAILED": "horai archive list",
    "PARTITION_MISSING": "horai db verify",
    "TEST": "horai alerts deliveries",
}
"""The first command to run, by kind."""
PAGES: Mapping[str, str] = {
    "INSTANCE_DEAD": "/dead-letters",
    "RUN_BLOCKED": "/workflows",
    "NOT_SUCCESS_BY": "/jobs",
    "JOB_LATE": "/jobs",
    "QUEUE_WAIT": "/queues",
    "RECONCILE_DRIFT": "/reconcilers",
    "MODE_ENTERED": "/governor",
    "BUDGET_BURN": "/governor",
    "RUN_STUCK": "/instances",
    "QUEUE_CLOGGED": "/queues",
}
"""Pages of the console, by kind."""
_WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "FIRING": "Firing",
        "REPEATED": "Still firing",
        "RESOLVED": "Resolved",
        "TEST": "Test",
        "since": "since {at}",
        "resolved": "resolved at {at}",
        "more": "and {count} more",
        "rule": "Rule: {rule}",
        "tenant": "Tenant: {tenant}",
        "todo": "What to do: {command}",
        "never": "never",
        "none": "unknown",
    },
    "zh-CN": {
        "FIRING": "告警",
        "REPEATED": "持续告警",
        "RESOLVED": "已恢复",
        "TEST": "测试",
        "since": "开始于 {at}",
        "resolved": "恢复于 {at}",
        "more": "另有 {count} 条",
        "rule": "规则：{rule}",
        "tenant": "租户：{tenant}",
        "todo": "处理方法：{command}",
        "never": "从未",
        "none": "未知",
    },
}


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text of a notification: its title, and its lines."""

    title: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return title and lines, one below the other."""
        return "\n".join((self.title, *self.lines))


def render(message: Mapping[str, Any], language: str) -> Rendered:
    """Return the text of a message. Its facts are those that the delivery stores."""
    words, kind, said = _WORDS[language], message["rule"]["kind"], message["kind"]
    count = f" ({message['count']})" if message["count"] > 1 else ""
    lines = [_line(alert, kind, language) for alert in message["alerts"][:LISTED]]
    if (rest := message["count"] - len(lines)) > 0:
        lines.append(words["more"].format(count=rest))
    if message["rule"]["name"] is not None:
        lines.append(words["rule"].format(rule=plain(message["rule"]["name"])))
    if message["tenant"] is not None:
        lines.append(words["tenant"].format(tenant=plain(message["tenant"])))
    if said != "RESOLVED":
        lines.append(words["todo"].format(command=COMMANDS[kind]))
    if message["link"] is not None:
        lines.append(message["link"])
    return Rendered(f"[{words[said]}] {TITLES[language][kind]}{count}", tuple(lines))


def _line(alert: Mapping[str, Any], kind: str, language: str) -> str:
    words = _WORDS[language]
    values = {name: _value(value, words) for name, value in alert["data"].items()}
    text = _template(alert["data"], kind, language).format_map(_Known(values, words["none"]))
    if kind == "TEST":
        return text
    time = words["since"].format(at=_minute(alert["since"]))
    if alert["resolvedAt"] is not None:
        time = words["resolved"].format(at=_minute(alert["resolvedAt"]))
    return f"- {text}, {time}"


def _template(data: Mapping[str, Any], kind: str, language: str) -> str:
    if kind != "RUN_STUCK" or data.get("p95") is not None:
        return LINES[language][kind]
    of_few, unknown = STUCK_LINES[language]
    return unknown if data.get("longest") is None else of_few


class _Known(dict[str, str]):
    """Values by name; a name without a value is unknown."""

    def __init__(self, values: Mapping[str, str], unknown: str) -> None:
        super().__init__(values)
        self._unknown = unknown

    def __missing__(self, key: str) -> str:
        return self._unknown


def _value(value: Any, words: Mapping[str, str]) -> str:
    if value is None:
        return words["never"]
    if isinstance(value, list):
        items = [_item(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
        return ", ".join(items) or words["none"]
    return plain(value)


def _item(value: Any) -> str:
    """Return an item of a list: a value, or a root cause as its node with the error."""
    if isinstance(value, Mapping):
        node, code = value["node"], value["errorCode"]  # pyright: ignore[reportUnknownVariableType]
        return plain(node if code is None else f"{node} ({code})")
    return plain(value)


def plain(value: Any) -> str:
    """Return a value of a user as one short line without control characters."""
    text = _BREAKS.sub(" ", str(value)).strip()
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def _minute(instant: str) -> str:
    at = datetime.fromisoformat(instant).astimezone(UTC)
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")

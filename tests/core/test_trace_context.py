"""The ids of traces, and the header of W3C Trace Context."""

import pytest

from horai.core.trace_context import InstanceTraces, SpanIds, SpanPart, parse_traceparent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CLUSTER, OTHER = b"c" * 16, b"d" * 16


def test_a_header_of_the_right_format_is_read() -> None:
    assert parse_traceparent(f"00-{TRACE}-{SPAN}-01") == SpanIds(int(TRACE, 16), int(SPAN, 16), is_sampled=True)
    assert parse_traceparent(f"00-{TRACE}-{SPAN}-00") == SpanIds(int(TRACE, 16), int(SPAN, 16), is_sampled=False)
    assert parse_traceparent(f"00-{TRACE}-{SPAN}-fe") == SpanIds(int(TRACE, 16), int(SPAN, 16), is_sampled=False)


def test_a_later_version_may_have_more_fields() -> None:
    assert parse_traceparent(f"cc-{TRACE}-{SPAN}-01-later") is not None
    assert parse_traceparent(f"cc-{TRACE}-{SPAN}-01later") is None


@pytest.mark.parametrize(
    "hostile",
    [
        "",
        "00",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-01\n",
        f" 00-{TRACE}-{SPAN}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE[:-1]}g-{SPAN}-01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-0x",
        f"00-{TRACE}-{SPAN[:-1]}٣-01",
        f"00-{TRACE}-{SPAN}-01, 00-{TRACE}-{SPAN}-01",
        f"cc-{TRACE}-{SPAN}-01-" + "x" * 100_000,
        "'; drop table horai.job; --",
    ],
)
def test_a_header_of_another_format_is_ignored(hostile: str) -> None:
    assert parse_traceparent(hostile) is None


def test_every_process_gives_an_instance_the_same_ids() -> None:
    one, same = InstanceTraces(CLUSTER), InstanceTraces(CLUSTER)

    assert one.root(7) == same.root(7)
    assert one.span(one.root(7), 3, SpanPart.ATTEMPT) == same.span(same.root(7), 3, SpanPart.ATTEMPT)


def test_clusters_instances_attempts_and_parts_have_ids_of_their_own() -> None:
    traces = InstanceTraces(CLUSTER)
    roots = [traces.root(1), traces.root(2), InstanceTraces(OTHER).root(1)]
    spans = [traces.span(roots[0], fence, part) for fence in (1, 2) for part in SpanPart]

    assert len({root.trace_id for root in roots}) == 3
    assert len({span.span_id for span in [roots[0], *spans]}) == 1 + 2 * len(SpanPart)
    assert {span.trace_id for span in spans} == {roots[0].trace_id}


def test_the_ratio_decides_about_whole_traces() -> None:
    sampled = {share: {i for i in range(2_000) if InstanceTraces(CLUSTER, share).root(i).is_sampled} for share in (0.0, 0.1, 0.5, 1.0)}  # fmt: skip

    assert len(sampled[0.0]) == 0
    assert len(sampled[1.0]) == 2_000
    assert 100 < len(sampled[0.1]) < 300
    assert 850 < len(sampled[0.5]) < 1150
    assert sampled[0.1] < sampled[0.5]


def test_the_header_of_a_span_is_read_back() -> None:
    for ratio in (0.0, 1.0):
        root = InstanceTraces(CLUSTER, ratio).root(5)
        assert parse_traceparent(root.traceparent) == root

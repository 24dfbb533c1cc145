"""The servers that a read replica may be."""

import pytest

from horai.db.route import DatabaseServer
from horai.db.standby import DatabaseIdentity, NotAStandby, OtherDatabase, StandbyRules
from horai.db.urls import DatabaseHost

HOST = DatabaseHost("db2", 5432)


def rules(system: str | None = "77") -> StandbyRules:
    return StandbyRules("postgresql://horai@db2/horai", DatabaseIdentity(system, 16384))


def server(system: str | None = "77", *, is_standby: bool = True) -> DatabaseServer:
    return DatabaseServer(is_standby, True, system, None, True)


def test_a_standby_of_the_same_cluster_is_accepted():
    rules().judge(HOST, server())


def test_a_server_that_accepts_writes_is_no_standby():
    with pytest.raises(NotAStandby, match=r"db2:5432 is not a standby: it accepts writes"):
        rules().judge(HOST, server(is_standby=False))


def test_a_standby_of_another_cluster_is_refused():
    with pytest.raises(OtherDatabase, match="the system identifier 78, and the primary to 77"):
        rules().judge(HOST, server("78"))


@pytest.mark.parametrize(("own", "its"), [(None, "78"), ("77", None)])
def test_a_service_that_hides_its_identity_is_accepted(own: str | None, its: str | None):
    rules(own).judge(HOST, server(its))

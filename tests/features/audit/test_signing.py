"""The key of the audit log: a file, made once, readable by its user alone."""

from pathlib import Path

import audits
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from horai.features.audit.signing import AuditKeyUnusable, load_key, make_key

HEAD = f"7:{'ab' * 32}"


def test_a_key_is_made_once_and_never_replaced(tmp_path: Path) -> None:
    file, key = audits.key_in(tmp_path)

    make_key(file)

    again = load_key(file)
    assert again is not None
    assert again.id == key.id
    assert Path(file).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["audit.key"]


def test_a_link_in_the_place_of_the_key_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "audit.key").symlink_to(tmp_path / "elsewhere")

    make_key(str(tmp_path / "audit.key"))

    assert not (tmp_path / "elsewhere").exists()


def test_a_signature_is_of_one_head_and_one_key() -> None:
    key = audits.new_key()
    signature = key.sign(HEAD)
    assert signature is not None

    assert key.verifies(HEAD, signature)
    assert not key.verifies(HEAD.replace("7:", "8:"), signature)
    assert not audits.new_key().verifies(HEAD, signature)
    assert not key.verifies(HEAD, b"")


def test_a_public_key_verifies_and_does_not_sign(tmp_path: Path) -> None:
    key = audits.new_key()
    (tmp_path / "public.pem").write_bytes(key.public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))

    public = load_key(str(tmp_path / "public.pem"))

    assert public is not None
    assert (public.id, public.sign(HEAD)) == (key.id, None)
    assert public.verifies(HEAD, key.sign(HEAD) or b"")


def test_a_file_without_an_ed25519_key_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "audit.key"
    other = X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for content in (b"", b"text", b"-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n", other):
        file.write_bytes(content)
        with pytest.raises(AuditKeyUnusable, match=r"audit\.key"):
            load_key(str(file))
    with pytest.raises(AuditKeyUnusable, match="No such file"):
        load_key(str(tmp_path / "missing"))
    assert load_key(None) is None


def test_the_private_half_is_not_in_the_repr() -> None:
    assert "private" not in repr(audits.new_key()).lower()

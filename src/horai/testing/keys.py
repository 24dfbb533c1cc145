"""The encryption key of tests: values of encrypted jobs are sealed as in production, with a key that is no secret."""

import hashlib

from horai.core.encryption import KeyEncryptionKey

TEST_KEYS = (KeyEncryptionKey(hashlib.sha256(b"horai.testing").digest()),)

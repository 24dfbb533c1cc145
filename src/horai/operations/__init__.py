"""The operations that users may request, each in one transaction: the same verbs for REST, the SDK and SQL."""

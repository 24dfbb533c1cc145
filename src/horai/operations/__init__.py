"""What users may ask for, each in one transaction: the same verbs for REST, the SDK and SQL."""

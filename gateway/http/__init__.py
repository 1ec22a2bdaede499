"""The HTTP API: thin routes over the office (`gateway.office`), each with its entry in the table of who may use it."""

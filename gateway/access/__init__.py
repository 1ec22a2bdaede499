"""Who may do what over HTTP: tokens, scopes, and how often. Nothing in here knows HTTP itself."""

"""A whole gateway with fake edges: real scheduler, real control path, real store in memory."""

"""How long tests wait for another process or thread before they count it as stuck: long, because machines are busy."""

PATIENCE = 120.0  # seconds

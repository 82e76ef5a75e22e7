"""How long tests wait for another process or thread before they take it for stuck: long, on busy machines."""

PATIENCE = 120.0  # seconds

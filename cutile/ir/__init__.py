"""The typed IR: nodes, terms of the front end, building, checking, printing and walking."""

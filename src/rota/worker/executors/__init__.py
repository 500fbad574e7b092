"""Where handlers run besides the event loop."""

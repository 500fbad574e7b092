"""What everything else speaks of: frozen values and pure functions, without input or output."""

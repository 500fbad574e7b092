"""The values that all other rooms share, and pure functions of them: no input, no output."""

"""A newsletter: no subscriber is left out or written to twice, and the provider is called once for a hundred."""

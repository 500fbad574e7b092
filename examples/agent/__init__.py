"""A support agent that asks a person before it gives money back."""

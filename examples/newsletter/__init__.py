"""A newsletter: no subscriber is missed or mailed twice, and one provider call serves a hundred."""

"""The suite runs with Django's own runner in its own processes: `tests.contrib.django.test_suite`."""

collect_ignore = ["suite"]

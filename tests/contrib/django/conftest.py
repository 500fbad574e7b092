"""The suite runs with Django's own runner, in processes of its own: `tests.contrib.django.test_suite`."""

collect_ignore = ["suite"]

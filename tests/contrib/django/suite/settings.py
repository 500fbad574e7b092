"""The settings of the example, with a test database that Rota's own connections can reach, too."""

import os

from shop.settings import *  # noqa: F403
from shop.settings import DATABASES, TASKS

if path := os.environ.get("SHOP_TEST_FILE"):
    DATABASES["default"]["TEST"] = {"NAME": path}
TASKS["default"] |= {"QUEUES": []}

# SPDX-License-Identifier: Apache-2.0
from test.functional.conftest import *  # noqa: F403

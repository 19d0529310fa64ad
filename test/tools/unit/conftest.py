# SPDX-License-Identifier: Apache-2.0
from test.unit.conftest import *  # noqa: F403

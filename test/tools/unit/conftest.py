# SPDX-License-Identifier: Apache-2.0
from test.unit.conftest import *  # noqa: F403
from test.unit.conftest import _signals_as_before as _signals_as_before

# SPDX-License-Identifier: Apache-2.0
from test.unit.conftest import swift as swift

# SPDX-License-Identifier: Apache-2.0
import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    'default',
    max_examples=400,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile('long', deadline=None, max_examples=5000)
settings.load_profile(os.environ.get('HYPOTHESIS_PROFILE', 'default'))

# SPDX-License-Identifier: Apache-2.0
"""A paste filter that spreads one Swift container over many."""

import warnings

__version__ = '0.1.0'

# Swift itself does so from 2.38 on. Before, every command would open with it.
warnings.filterwarnings('ignore', message='\nEventlet is deprecated\\.')

# SPDX-License-Identifier: Apache-2.0
"""A paste filter that spreads one Swift container over many."""

import warnings

__version__ = '0.1.0'

# Swift 2.38 and later do this, too. Without it, every command would print the
# warning first.
warnings.filterwarnings('ignore', message='\nEventlet is deprecated\\.')

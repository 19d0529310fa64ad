# SPDX-License-Identifier: Apache-2.0
"""``python -m test.fuzz.libfuzzer TARGET OPTIONS``: run libFuzzer."""

import sys

import atheris

with atheris.instrument_imports(include=['shardmw']):
    from test.fuzz.targets import TARGETS

if __name__ == '__main__':
    target, *options = sys.argv[1:]
    # libFuzzer starts itself again with this command to merge a corpus.
    command = f'{sys.executable} -m test.fuzz.libfuzzer {target}'
    atheris.Setup([command, *options], TARGETS[target])
    atheris.Fuzz()

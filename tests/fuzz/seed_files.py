# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Where make_seeds.py writes, and the voxels of most of its files."""
import os
import sys

ROOT = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), 'seeds')
VOXELS = bytes(range(24))


def seed(target, name, data):
    path = os.path.join(ROOT, target, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as file:
        file.write(data.encode() if isinstance(data, str) else data)

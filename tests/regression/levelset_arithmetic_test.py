#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""The version of the arithmetic of level sets belongs to the level sets that data-samples records.

--skip-existing takes results of another version for those of another run. Where the recorded contents change and
the version does not, it would keep results of other bits.

usage: levelset_arithmetic_test.py SOURCE
"""
import hashlib
import json
import os
import re
import sys
import unittest

SOURCE = sys.argv.pop(1)
HEADER = 'lib/larch/levelset.h'
# By version: SHA-256 of the recorded contents of all level sets.
RECORDED = {
    2: '6c5164f652985c0612ee72aa0e5ca4f9ff448179f0bd68874c487d65f5ea77c5',
}


class LevelsetArithmetic(unittest.TestCase):
    def test_the_version_is_that_of_the_recorded_level_sets(self):
        with open(os.path.join(SOURCE, HEADER), encoding='utf-8') as file:
            version = int(re.search(r'kArithmeticVersion = (\d+);', file.read())[1])
        with open(os.path.join(SOURCE, 'data-samples', 'expected.json'), encoding='utf-8') as file:
            contents = json.load(file)['contents']
        lines = [f'{name} {contents[name]}\n' for name in sorted(contents)
                 if name.startswith('levelset-segment/') and '.phi.' in name]
        self.assertGreater(len(lines), 5)
        found = hashlib.sha256(''.join(lines).encode()).hexdigest()
        self.assertEqual(found, RECORDED.get(version),
                         f'the recorded level sets are not those of version {version}: if level sets have other bits '
                         f'now raise kArithmeticVersion in {HEADER}, and enter the digest of the new version here')


if __name__ == '__main__':
    unittest.main()

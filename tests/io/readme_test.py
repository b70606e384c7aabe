#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""The table "What reads what" of lib/larch/io/README.md names every ending that is read, and tests that exist
and speak of the format; pages of all rooms name files of this repository only.

usage: readme_test.py SOURCE_DIR
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
PAGE = ROOT / 'lib/larch/io/README.md'


def rows():
    section = PAGE.read_text(encoding='utf-8').split('## What reads what', 1)[1].split('\n## ', 1)[0]
    found = [[cell.strip() for cell in line.strip('|').split('|')] for line in section.splitlines()
             if line.startswith('|')]
    return found[2:]


class Readme(unittest.TestCase):
    def test_named_tests_exist(self):
        self.assertGreater(len(rows()), 10)
        for cells in rows():
            self.assertEqual(len(cells), 4, cells)
            files = re.findall(r'`(tests/[^`]*)`', cells[3])
            self.assertTrue(files, f'{cells[0]}: no test is named')
            for name in files:
                self.assertTrue((ROOT / name).is_file(), f'{cells[0]}: {name} does not exist')

    def test_every_ending_that_is_read_has_a_row(self):
        source = (ROOT / 'lib/larch/io/itk/image_formats.cpp').read_text(encoding='utf-8')
        endings = re.findall(r'^\s*\{"(\.[a-z.]+)", ', source, re.M)
        self.assertGreater(len(endings), 8)
        formats = ' '.join(cells[0] for cells in rows())
        words = {'.png': 'PNG', '.jpg': 'JPEG', '.jpeg': 'JPEG', '.tif': 'TIFF', '.tiff': 'TIFF'}
        for ending in endings:
            self.assertIn(words.get(ending, ending.removesuffix('.gz')), formats)

    def test_pages_of_rooms_name_files_that_exist(self):
        for page in sorted((ROOT / 'lib').rglob('README.md')):
            text = page.read_text(encoding='utf-8')
            # Absolute paths are those of somebody's machine.
            self.assertNotRegex(text, r'(?:^|[\s`("])/\w+/')
            for name in re.findall(r'^\| ((?:`[a-z_]+\.(?:h|cpp)`(?:, )?)+) \|', text, re.M):
                for file in re.findall(r'`([^`]+)`', name):
                    self.assertTrue(list(page.parent.rglob(file)), f'{page}: {file} does not exist')
            prose = re.sub(r'```.*?```|^    .*$|`[^`\n]*`', '', text, flags=re.S | re.M)
            for link in re.findall(r'\]\(([^)#]+)\)', prose):
                self.assertTrue((page.parent / link).exists(), f'{page}: {link} does not exist')


if __name__ == '__main__':
    unittest.main()

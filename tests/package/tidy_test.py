#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""scripts/tidy finds what clang-tidy finds, in the files that a change touches and no others.

usage: tidy_test.py SOURCE_DIR
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = sys.argv.pop(1)
FINDING = '#include <string>\nbool none(const std::string& s);\nbool none(const std::string& s) { return s.size() == 0; }\n'
HEADER_FINDING = ('#pragma once\n#include <string>\ninline bool empty(const std::string& s) { return s.size() == 0; }\n')


class Tidy(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        for name in ('scripts/tidy', '.clang-tidy'):
            os.makedirs(os.path.dirname(os.path.join(self.root, name)), exist_ok=True)
            shutil.copy(os.path.join(SOURCE, name), os.path.join(self.root, name))
        self.write('lib/larch/a/one.h', '#pragma once\n#include "larch/a/deep.h"\n')
        self.write('lib/larch/a/deep.h', '#pragma once\n')
        self.write('lib/larch/a/one.cpp', '#include "larch/a/one.h"\n')
        self.write('lib/larch/a/two.cpp', FINDING)
        self.write('cuda/a/one.cu', '')
        self.write('build/compile_commands.json', json.dumps([
            {'directory': self.root, 'file': f'lib/larch/a/{name}.cpp',
             'command': f'g++ -std=c++20 -I{self.root}/lib -c lib/larch/a/{name}.cpp'}
            for name in ('one', 'two', 'three')]))
        self.write('lib/larch/a/three.cpp', 'int three() { return 3; }\n')
        self.git('init', '-q', '-b', 'main')
        self.git('add', '.')
        self.commit()

    def git(self, *words):
        subprocess.run(['git', '-C', self.root, '-c', 'user.name=t', '-c', 'user.email=t@t', *words], check=True)

    def commit(self):
        self.git('commit', '-q', '--allow-empty', '-m', 'x')

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)

    def tidy(self, *words):
        return subprocess.run([os.path.join(self.root, 'scripts', 'tidy'), '--build', f'{self.root}/build', *words], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)

    def test_whole_tree(self):
        done = self.tidy()
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn('lib/larch/a/two.cpp', done.stdout)
        self.assertIn('3 files, 1 with findings', done.stdout)

    def test_only_what_changed(self):
        self.assertIn('skipped: there is no earlier commit', self.tidy('--changed').stdout)
        self.commit()
        done = self.tidy('--changed')
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn('0 files', done.stdout)
        self.write('lib/larch/a/three.cpp', FINDING)  # not committed
        done = self.tidy('--changed')
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn('1 files, 1 with findings', done.stdout)

    def test_changed_header_is_checked_with_a_file_that_includes_it(self):
        self.write('lib/larch/a/deep.h', HEADER_FINDING)
        self.write('lib/larch/a/alone.h', '#pragma once\n')  # of nobody, and not known to git
        self.write('cuda/a/one.cu', '// changed\n')
        done = self.tidy('--changed', 'HEAD')
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn('deep.h', done.stdout)
        self.assertIn('alone.h: passed over', done.stdout)
        self.assertIn('1 files, 1 with findings', done.stdout)

    def test_what_is_left_is_said(self):
        done = self.tidy('--at-most', '1')
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn('2 more are left', done.stdout)

    def test_unknown_base(self):
        done = self.tidy('--changed', 'nowhere')
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("does not know 'nowhere'", done.stdout)


if __name__ == '__main__':
    if not shutil.which('clang-tidy-14') or not shutil.which('git'):
        print('skipped: clang-tidy-14 or git is not installed')
        sys.exit(77)
    unittest.main()

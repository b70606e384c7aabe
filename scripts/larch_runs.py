# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the executables and measures them; shared by the scripts beside this file. No packages."""
import argparse
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(HERE)


def log(text):
    """Progress goes to stderr: stdout carries the JSON result alone."""
    print(text, file=sys.stderr, flush=True)


class Place:
    """Where executables, tests and configurations are: in an installed tree, or in a build folder."""

    def __init__(self, folder=None):
        self.bundle = os.path.dirname(os.path.dirname(HERE)) if os.path.basename(HERE) == 'larch' else None
        if self.bundle and os.path.exists(os.path.join(self.bundle, 'bin', 'pbt-detect')) and not folder:
            self.bin = os.path.join(self.bundle, 'bin')
            self.tests = [HERE]
            self.configs = os.path.join(self.bundle, 'share', 'larch', 'configs')
            return
        self.bundle = None
        build = os.path.join(SOURCE, 'build')
        builds = [folder] if folder else [os.path.join(build, name)
                                          for name in ('release', 'quickstart')]
        found = next((b for b in builds if os.path.exists(os.path.join(b, 'apps', 'pbt-detect'))), None)
        if found is None:
            sys.exit('no executables in ' + ', '.join(builds) +
                     '; build them: cmake --preset release && cmake --build --preset release')
        self.bin = os.path.abspath(os.path.join(found, 'apps'))
        self.tests = [os.path.abspath(os.path.join(found, 'tests', name))
                      for name in ('unit', 'parity', 'perf')]
        self.configs = os.path.join(SOURCE, 'configs')

    @staticmethod
    def data_samples():
        """The folder of data-samples: in a clone, or in an installed tree."""
        installed = os.path.join(os.path.dirname(os.path.dirname(HERE)), 'share', 'larch', 'data-samples')
        return installed if os.path.basename(HERE) == 'larch' else os.path.join(SOURCE, 'data-samples')

    def app(self, name):
        return os.path.join(self.bin, name)

    def config(self, name):
        """--config FILE for a preset, or nothing where it does not exist."""
        path = os.path.join(self.configs, name)
        return ['--config', path] if os.path.exists(path) else []

    def test_programs(self):
        programs = []
        for folder in self.tests:
            if os.path.isdir(folder):
                programs += [os.path.join(folder, name) for name in sorted(os.listdir(folder))
                             if name.endswith('_test')]
        return programs

    def find_test(self, name):
        return next((os.path.join(f, name) for f in self.tests if os.path.exists(os.path.join(f, name))),
                    None)


class RunFailed(Exception):
    pass


class Run:
    """A finished command: exit code (negative: signal, None: time limit), seconds, peak memory."""

    def __init__(self, command, code, seconds, peak_bytes, output):
        self.command, self.code, self.seconds = command, code, seconds
        self.peak_bytes, self.output = peak_bytes, output

    def tail(self, lines=15):
        return '\n'.join(self.output.splitlines()[-lines:])


def run(command, timeout=3600, env=None, stop_after=None, check=True, folder=None):
    """Runs a command. `stop_after` = (seconds or function, signal): sends the signal when the time
    has come or the function says so. `folder`: in which it runs. Raises RunFailed on a bad exit unless
    check is False."""
    command = [str(word) for word in command]
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})},
                               start_new_session=True, cwd=folder)
    chunks = []
    reader = threading.Thread(target=lambda: chunks.extend(iter(lambda: process.stdout.read(65536), b'')))
    reader.start()
    timed_out = False
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid != 0:
            break
        elapsed = time.monotonic() - started
        if stop_after and (stop_after[0]() if callable(stop_after[0]) else elapsed > stop_after[0]):
            os.kill(process.pid, stop_after[1])
            stop_after = None
        if elapsed > timeout and not timed_out:
            timed_out = True
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.01)
    process.returncode = os.waitstatus_to_exitcode(status)
    reader.join()
    code = None if timed_out else process.returncode
    done = Run(command, code, time.monotonic() - started, usage.ru_maxrss * 1024,
               b''.join(chunks).decode('utf-8', 'replace'))
    if check and code != 0:
        what = f'time limit of {timeout} s' if code is None else f'exit code {code}'
        raise RunFailed(f'{what} from: {" ".join(command)}\n{done.tail()}')
    return done


def sha256(path):
    digest = hashlib.sha256()
    with open(path, 'rb') as file:
        for block in iter(lambda: file.read(1 << 20), b''):
            digest.update(block)
    return digest.hexdigest()


def read_json(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file)


def write_json(path, value):
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(value, file, indent=2)
        file.write('\n')


def write_list(path, header, rows):
    """A TSV list of cases for --list."""
    with open(path, 'w', encoding='utf-8') as file:
        for row in [header, *rows]:
            file.write('\t'.join(row) + '\n')


@contextlib.contextmanager
def work_folder(name, kept=None):
    """A folder for the files of a script, which goes with them unless it is `kept`. A run that fails ends the script."""
    work = os.path.abspath(kept) if kept else tempfile.mkdtemp(prefix=f'larch-{name}-')
    try:
        yield work
    except RunFailed as error:
        sys.exit(f'{name}: error: {error}')
    finally:
        if not kept:
            shutil.rmtree(work, ignore_errors=True)


def parser_of(doc):
    """What all experiments on accuracy can be told."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', help='build folder with the executables (default: release, ...)')
    parser.add_argument('--device', default='auto')
    parser.add_argument('--json', metavar='FILE', help='write all figures; - is stdout, and the tables go to stderr')
    return parser


def tell(args, result, print_tables):
    """Prints tables, and all figures where --json says."""
    with contextlib.redirect_stdout(sys.stderr if args.json == '-' else sys.stdout):
        print_tables()
    if args.json == '-':
        print(json.dumps(result, indent=2))
    elif args.json:
        write_json(args.json, result)


class Bench:
    """Executables of an experiment on accuracy, where results go, and the rows and times of all experiments. `args`: build,
    device, threads and quick."""

    def __init__(self, args, work):
        self.args, self.work, self.rows, self.times, self.shares = args, work, [], [], []
        self.place = Place(args.build)
        self.common = ['--force', '--quiet', '--device', args.device, *(['--threads', args.threads] if args.threads else [])]

    def count(self, whole, least=4):
        return max(least, whole // 10) if self.args.quick else whole

    def run(self, name, *words, **more):
        return run([self.place.app(name), *self.common, *words], timeout=24 * 3600, **more)

    def file(self, *parts):
        path = os.path.join(self.work, *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def timed(self, what, done, **more):
        self.times.append({'what': what, **more, 'seconds': round(done.seconds, 1), 'peak_mb': round(done.peak_bytes / 1e6)})
        log(f'{what}: {done.seconds:.1f} s')

    def found(self, program, name, model, rows, columns, ending):
        """Runs a program over the images of rows; its results in their order. Some may have nothing found (exit code 7)."""
        listed = write_rows(self.file(name, 'cases.tsv'), numbered(rows), ('id', *columns))
        done = self.run(program, '--model', model, '--list', listed, '--output-dir', self.file(name, 'found'), check=False)
        files = [self.file(name, 'found', row['id'] + ending) for row in numbered(rows)]
        if done.code not in (0, 7) or not all(map(os.path.exists, files)):
            raise RunFailed(f'exit code {done.code} from: {" ".join(done.command)}\n{done.tail()}')
        self.timed(f'{name}: {program}', done, cases=len(rows))
        return files

    def scored(self, name, kind, predictions, references, *flags):
        """The report of evaluate."""
        rows = numbered({'prediction': p, 'reference': r} for p, r in zip(predictions, references))
        pairs = write_rows(self.file(name, 'pairs.tsv'), rows, ('id', 'prediction', 'reference'))
        self.run('evaluate', '--kind', kind, '--list', pairs, '--report', self.file(name, 'scores.json'), *flags)
        return read_json(self.file(name, 'scores.json'))

    def print_times(self):
        print('\n| run | cases | seconds | peak MB |\n' + '| --- ' * 4 + '|')
        for row in self.times:
            print(f'| {row["what"]} | {row.get("cases", "")} | {row["seconds"]} | {row.get("peak_mb", "")} |')

    @classmethod
    def main(cls, name, parser, experiments, print_tables):
        """A script of such experiments, {name: (function, option with its data or None)}; its exit code."""
        parser.add_argument('experiments', nargs='*', metavar='EXPERIMENT', help=', '.join(experiments))
        parser.add_argument('--threads')
        parser.add_argument('--quick', action='store_true', help='a tenth of the cases and poor models, to try the script')
        parser.add_argument('--work', metavar='FOLDER', help='where all files stay (default: none stay)')
        args, started, skipped = parser.parse_args(), time.monotonic(), []
        unknown = [one for one in args.experiments if one not in experiments]
        if unknown:
            parser.error(f'{unknown[0]} is none of ' + ', '.join(experiments))
        with work_folder(name, args.work) as work:
            bench = cls(args, work)
            for one in args.experiments or [one for one in experiments if one != 'variants']:
                experiment, data = experiments[one]
                if data and not getattr(args, data):
                    skipped.append(one)
                    log(f'{one} is skipped: it takes --{data}')
                    continue
                experiment(bench)
        missed = [text for row in bench.rows for text in row.get('missed', [])]
        tell(args, {'device': args.device, 'split': args.split, 'quick': args.quick, 'skipped': skipped, 'missed': missed,
                    'rows': bench.rows, 'shares': bench.shares, 'times': bench.times,
                    'seconds': round(time.monotonic() - started, 1)}, lambda: print_tables(bench))
        return 7 if missed and not args.quick else 0


def read_rows(path):
    """The rows of a TSV list, paths in its folder made absolute."""
    with open(path, encoding='utf-8') as file:
        header, *rows = [line.rstrip('\n').split('\t') for line in file]
    folder = os.path.dirname(path)
    return [{key: os.path.join(folder, cell) if key in ('image', 'label', 'poses') else cell
             for key, cell in zip(header, row)} for row in rows]


def write_rows(path, rows, columns):
    write_list(path, columns, [[row[column] for column in columns] for row in rows])
    return path


def numbered(rows):
    return [{**row, 'id': f'{i:03d}'} for i, row in enumerate(rows)]


def crops(folder, split, count):
    """The first cases of a split of the hippocampi: images/, labels/, SPLIT.txt."""
    with open(os.path.join(folder, f'{split}.txt'), encoding='utf-8') as file:
        names = [line.strip() for line in file if line.strip()]
    return [{'image': os.path.join(folder, 'images', name + '.nii.gz'), 'group': name,
             'label': os.path.join(folder, 'labels', name + '.nii.gz')} for name in names[:count(len(names))]]

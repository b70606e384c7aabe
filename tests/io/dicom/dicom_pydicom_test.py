#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the DICOM reader with pydicom, value by value and corner by corner, and with its own page.

usage: dicom_pydicom_test.py DUMP-IMAGE READING-PAGE

Makes a DICOM set for every row of the page's DICOM table. A row that is refused must end with the exit
code 3 and the message that the page quotes, in all its sets, and with the word for --allow it must be
read with a warning. All other sets must have the values that pydicom and numpy give, and corners
computed here from positions, orientations and spacings. Then the same over the DICOM files of the
folder of real data that LARCH_TEST_DATA names. Without pydicom it prints "skipped: ..." and passes.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
try:
    import pydicom
    from pydicom_compare import compare, dump, planes_of
    from pydicom_sets import ROWS, save
except ImportError as missing:
    print(f"skipped: {missing.name} for /usr/bin/python3 is not installed (python3-pydicom)")
    sys.exit(0)

PAGE = pathlib.Path(sys.argv[2])
DATA = os.environ.get("LARCH_TEST_DATA")


# --- rows of the page ---------------------------------------------------------------------------------

def rows_of_page():
    section = PAGE.read_text().split("## DICOM", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (.*?) \| (.*?) \|(?: (.*?))? \|$", section, re.M)
    return [row for row in rows if row[0] != "what is found" and not row[0].startswith("---")]


def check_row(folder, key, row, makers):
    found, happens, says = row
    quoted = re.findall(r"`([^`]*)`", says)
    allow = re.findall(r"--allow ([a-z-]+)", happens)
    refused = happens.startswith("refused")
    assert refused == bool(quoted), f"{found}: a refusal quotes its message"
    for number, make in enumerate(makers):
        name = f"{key} #{number}"
        where = folder / name.replace(" ", "_").replace("|", "").replace(",", "")
        where.mkdir()
        make, change = make if isinstance(make, tuple) else (make, None)
        datasets = make()
        save(where, datasets)
        for file in where.iterdir() if change else ():
            file.write_bytes(change(file.read_bytes()))
        if not refused:
            text = compare(name, where, datasets)
            assert ("warning" in text) == ("with a warning" in happens), f"{name}: {text}"
            if len(datasets) == 1:
                compare(name, next(where.iterdir()), datasets)
            continue
        code, text, _, _ = dump(next(where.iterdir()) if key == "no pixels" else where)
        assert code == 3, f"{name}: exit code {code} instead of 3: {text}"
        for part in quoted:
            pattern = re.escape(part).replace("'abc'", "'[^']*'")
            # One row, several elements: the page quotes the first.
            pattern = pattern.replace("PatientID", "(PatientID|StudyInstanceUID)")
            assert re.search(pattern, text), f"{name}: the message says {text}"
        for word in allow:
            assert f"--allow {word}" in text, f"{name}: the message does not name --allow {word}: {text}"
            assert "warning" in compare(name, where, datasets, word), f"{name}: no warning"
    return len(makers)


def test_page():
    rows, sets = rows_of_page(), 0
    used = set()
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            line = f"{row[0]} |"
            keys = [key for key in ROWS if line.startswith(key)]
            assert len(keys) == 1, f"row '{row[0]}' of the page has {len(keys)} entries in this test"
            used.add(keys[0])
            sets += check_row(pathlib.Path(folder), keys[0], row, ROWS[keys[0]])
    assert used == set(ROWS), f"no row of the page for {set(ROWS) - used}"
    print(f"{len(rows)} rows of the page, {sets} sets")


# --- other people's files ---------------------------------------------------------------------------

def twin_of(path):
    """The same image in a syntax that pydicom decodes; for want of one, in another at least."""
    if path.name.startswith("XA1_"):
        return path.with_name("XA1_JPLL" if path.name == "XA1_JLSL" else "XA1_JLSL")
    if path.suffix:
        return path.with_name(re.sub("_jp.*", "", path.stem) + path.suffix)
    return path.with_name(path.name.split("_")[0] + "_UNC")


def test_data(data):
    equal, refused, undecoded = [], [], []
    sets = [[path] for folder in ("odd", "syntaxes", "enhanced") for path in sorted((data / folder).iterdir())]
    sets.append(sorted((data / "mr-crop").iterdir()))
    with tempfile.TemporaryDirectory() as unpacked:
        archive = data / "mr-sagittal-hfs.tar.xz"
        subprocess.run(["tar", "-xJf", archive, "-C", unpacked], check=True)
        sets.append(sorted(p for p in pathlib.Path(unpacked).rglob("*") if p.is_file()))
        for paths in sets:
            path = paths[0] if len(paths) == 1 else paths[0].parent
            name = f"{path.parent.name}/{path.name}"
            code, text, _, values = dump(path, "missing-spacing")
            assert code in (0, 3), f"{name}: exit code {code}: {text}"
            if code == 3:
                assert path.name in text and len(text) > 40, f"{name}: {text}"
                refused.append(name)
                continue
            datasets = [pydicom.dcmread(p, force=True) for p in paths]
            try:
                planes_of(datasets)
            except (NotImplementedError, RuntimeError) as error:  # no decoder: one with the same pixels
                twin = twin_of(path)
                if twin.exists():
                    _, _, _, other = dump(twin, "missing-spacing")
                    assert (values == other).all(), f"{name} differs from {twin.name}"
                    equal.append(name)
                else:
                    undecoded.append(name)
                continue
            compare(name, path, datasets, "missing-spacing")
            equal.append(name)
    print(f"data: {len(equal)} sets equal to pydicom, {len(refused)} refused, pydicom cannot decode "
          f"{len(undecoded)}: {', '.join(undecoded)}")
    assert len(equal) >= 20, equal


test_page()
if DATA:
    test_data(pathlib.Path(DATA, "dicom"))
else:
    print("LARCH_TEST_DATA names no folder with real data: the made-up sets alone")

# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""What 3D Slicer does with a command-line module: it parses its description, and runs it at Apply.

slicer.py check PROGRAM...      holds descriptions to the rules of Slicer's execution model
slicer.py words PROGRAM         prints the flags of an Apply without data, a word per line
"""
import collections
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as tree

IDENTIFIER = re.compile(r'[A-Za-z_][A-Za-z0-9_]*$')
HEAD = ['category', 'title', 'description', 'version', 'documentation-url', 'license', 'contributor']
NODES = {'image': '.nrrd', 'geometry': '.vtp', 'pointfile': '.fcsv', 'table': '.tsv'}  # by which Slicer names files
FILES = ('file', 'directory')
NUMBERS = {'integer': r'-?\d+$', 'double': r'-?\d+\.\d+$', 'boolean': r'(true|false)$', 'string': r'',
           'integer-vector': r'(-?\d+(,-?\d+)*)?$', 'double-vector': r'(-?[\d.e+-]+(,-?[\d.e+-]+)*)?$', 'string-vector': r''}
CHOICES = ('string-enumeration', 'integer-enumeration')
ATTRIBUTES = {'image': {'type', 'fileExtensions'}, 'geometry': {'fileExtensions'}, 'file': {'fileExtensions'},
              'pointfile': {'fileExtensions', 'coordinateSystem'}, 'table': {'type', 'fileExtensions'}}
VALUES = {'hidden': r'true$', 'type': r'(any|label|color)$', 'coordinateSystem': r'lps$',
          'fileExtensions': r'\.[\w.]+(,\.[\w.]+)*$'}


def description(program):
    return subprocess.run([program, '--xml'], check=True, capture_output=True, text=True).stdout


def texts(one, name):
    return [child.text or '' for child in one.findall(name)]


def check_parameter(one):
    tag, name = one.tag, ' '.join(texts(one, 'name'))
    assert tag in NODES or tag in FILES or tag in NUMBERS or tag in CHOICES, (name, tag)
    allowed = ATTRIBUTES.get(tag, set()) | ({'hidden'} if tag in CHOICES or tag == 'boolean' else set())
    assert set(one.attrib) <= allowed, (name, one.attrib)
    assert all(re.match(VALUES[key], value) for key, value in one.attrib.items()), (name, one.attrib)
    counts = collections.Counter(child.tag for child in one)
    is_data = tag in NODES or tag in FILES
    required = ['name', 'longflag', 'label', 'description', 'channel' if is_data else 'default']
    assert all(counts[child] == 1 for child in required), (name, counts)
    further = {'flag': 1, 'element': 99 * (tag in CHOICES), 'constraints': tag in ('integer', 'double')}
    assert all(child in required or number <= further.get(child, 0) for child, number in counts.items()), (name, counts)
    assert all(IDENTIFIER.match(word.removeprefix('--')) for word in texts(one, 'name') + texts(one, 'longflag')), name
    assert all(re.match(r'-\w$', flag) for flag in texts(one, 'flag')), name
    assert all(texts(one, 'label')) and all(texts(one, 'description')), name
    if is_data:
        assert texts(one, 'channel')[0] in ('input', 'output'), name
        assert tag != 'file' or one.get('fileExtensions'), (name, 'a file without fileExtensions')
        return
    value = texts(one, 'default')[0]
    if tag in CHOICES:
        elements = texts(one, 'element')
        assert value in elements and len(set(elements)) == len(elements) > 1, (name, value, elements)
        return
    assert re.match(NUMBERS[tag], value), (name, tag, value)
    assert tag != 'integer' or abs(int(value)) < 2**31, (name, value)
    for bounds in one.findall('constraints'):
        least, most = (float(bounds.find(end).text) for end in ('minimum', 'maximum'))
        assert len(bounds) == 2 and least <= float(value) <= most and most - least < 2**31 / 10, (name, value)


def check(program):
    text = description(program)
    assert text.startswith('<?xml version="1.0" encoding="utf-8"?>')
    root = tree.fromstring(text)
    groups = root.findall('parameters')
    assert root.tag == 'executable' and not root.attrib
    assert [child.tag for child in root] == HEAD + ['parameters'] * len(groups) and groups
    assert root.find('title').text == os.path.basename(program)
    for group in groups:
        assert [child.tag for child in group][:2] == ['label', 'description'] and group[0].text
        assert set(group.attrib.items()) <= {('advanced', 'true')}
        assert len(group) > 2, group[0].text
        for one in group[2:]:
            check_parameter(one)
    every = [one for group in groups for one in group[2:]]
    for key in ('name', 'longflag', 'flag'):
        values = [value for one in every for value in texts(one, key)]
        assert len(set(values)) == len(values), [v for v, n in collections.Counter(values).items() if n > 1]
    assert len({group[0].text for group in groups}) == len(groups)
    hidden = {texts(one, 'name')[0]: texts(one, 'default')[0] for one in every if one.get('hidden')}
    assert hidden == {'force': 'true', 'no_sidecar': 'true', 'progress': 'slicer'}, hidden
    assert any(one.tag == 'file' and texts(one, 'name') == ['config'] for one in every)


def command(program, nodes, values, folder='.'):
    """Returns the words of Apply, and the file of each node. `nodes`: ids by the names of parameters; the name of its
    file has the number of the process and the id, with letters for digits, and an ending by the parameter."""
    words, files = [program], {}
    for one in tree.fromstring(description(program)).iter():
        if one.find('longflag') is None:
            continue
        name, flag = one.find('name').text, one.find('longflag').text
        value = values.get(name, (texts(one, 'default') or [''])[0])
        if one.tag in NODES:
            if name in nodes:
                usual = '.ctbl' if one.get('type') == 'color' else NODES[one.tag]
                ending = one.get('fileExtensions', usual).split(',')[0]
                stem = f'4711_{nodes[name]}'.translate(str.maketrans('0123456789', 'ABCDEFGHIJ'))
                files[name] = os.path.join(folder, stem + ending)
                words += [flag, files[name]]
        elif one.tag == 'boolean':
            words += [flag] if value == 'true' else []
        elif one.tag in NUMBERS and one.tag not in ('integer', 'double') or one.tag in FILES:
            words += [flag, value] if value else []
        else:
            words += [flag, value]
    return words, files


def apply(program, nodes, values, inputs, folder='.'):
    """Runs the module: puts the bytes of `inputs` into the files of their nodes, and returns those of the others. Then
    it removes what Slicer knows of."""
    words, files = command(program, nodes, values, folder)
    for name, content in inputs.items():
        with open(files[name], 'wb') as file:
            file.write(content)
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)
    results = {name: open(path, 'rb').read() for name, path in files.items() if name not in inputs}
    for path in files.values():
        os.remove(path)
    return results


if __name__ == '__main__':
    if sys.argv[1] == 'words':
        print('\n'.join(command(sys.argv[2], {}, {})[0][1:]))
    for program in sys.argv[2:] if sys.argv[1] == 'check' else []:
        try:
            check(program)
        except AssertionError as error:
            sys.exit(f'{program}: {error}')

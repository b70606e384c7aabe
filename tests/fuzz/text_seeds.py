# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Seeds that are text: configurations, lists, status tables and records; for make_seeds.py."""
import hashlib
import json

from seed_files import seed


def config_seeds():
    seed('config', 'empty.json', '{}')
    seed('config', 'train.json', '{"classifier": "pbt-ensemble", "labels": {"positive": [1, 2], "class_name": "liver"},\n'
         ' // a comment\n "space": {"spacing_mm": [3, 3, 3.5], "intensity": {"rule": "window", "window_low": -100}},\n'
         ' "features": {"channels": ["intensity", "gaussian"], "count": 5e3}, "tree": {"e1": 1e-6, "rounds": [40]},\n'
         ' "ensemble": {"bootstrap": false}, "mining": {"enabled": true}}')
    seed('config', 'detect.json', '{"evaluate": {"walk": "tile", "tile": [8, 8, 8]}, "probability_type": "uint8",\n'
         ' "structure": {"threshold": 0.25, "graph_cut": {"lambda_mm": 2}, "min_voxels": 12}, "candidate_count": 5}')
    seed('config', 'wrong-type.json', '{"structure": {"threshold": "0.5"}}')
    seed('config', 'twice.json', '{"tree": {"depth": 3, "depth": 4}}')
    seed('config', 'huge-number.json', '{"candidate_count": 1e400, "tree": {"depth": 18446744073709551616}}')


def tables_seeds():
    seed('tables', 'list.tsv', 't\xef\xbb\xbfid\timage\tlabel\r\na\ta.nii\tb.nii\r\n\r\nb\tc.nii.gz\t\r\n'.encode('latin-1'))
    seed('tables', 'list.csv', 'cimage,label,id\n"a,b.nii",l.nii,"x ""y"""\nd/e.mha,,z\n')
    seed('tables', 'twice.tsv', 'timage\na.nii\nb/a.nii\n')
    seed('tables', 'existing.tsv', 'eimage\tlabel\ncase_0000.nii\tlabel.nii\n')
    seed('tables', 'long-name.tsv', 'eimage\n' + 'x' * 300 + '\n')
    seed('tables', 'decathlon.json', 'd{"modality": {"0": "CT"}, "training": [{"image": "./case_0000.nii", "label": '
         '"./label.nii"}]}')
    seed('tables', 'decathlon-long-name.json', 'd{"training": [{"image": "' + 'x' * 300 + '", "label": "label.nii"}]}')
    seed('tables', 'nnunet.json', 'd{"channel_names": {"0": "MRI"}, "numTraining": 1, "file_ending": ".nii"}')
    seed('tables', 'nnunet-channels.json', 'd{"channel_names":{"0":"T2","1":"ADC"},"labels":{"background":0,'
         '"both":[1,2]},"dataset":{"x":{"images":["case_0000.nii","label.nii"],"label":"label.nii"}}}')


def pose_file_seeds():
    pose = {'center_mm': [1, -2.5, 3e2], 'quaternion_wxyz': [0.5, 0.5, -0.5, 0.5], 'size_mm': [4, 5, 6]}
    heart = {'name': 'heart', 'status': 'found', 'confidence': 0.75, **pose, 'matrix': None, 'support': 12}
    gone = {'name': 'gone', 'status': 'not found', 'confidence': None}
    for name, frame, structures in (('lps', 'LPS', [heart, gone]), ('ras', 'RAS', [gone, {**heart, 'note': 'x'}]),
                                    ('broken-length', 'LPS', [{**heart, 'quaternion_wxyz': [1, 0, 0, 0.1]}]),
                                    ('broken-name', 'LPS', [heart, {**gone, 'name': 'heart'}])):
        seed('pose_file', name + '.json', json.dumps({'frame': frame, 'structures': structures}))


def records_seeds():
    digest = hashlib.sha256(b'content').hexdigest()
    run = {'App': 'copy', 'CommandLine': 'copy --input in.txt', 'ResultsVersion': 1, 'Options': {'suffix': 'a'},
           'Config': {'threshold': 0.5, 'rounds': 2}, 'Seed': 0,
           'Inputs': [{'Role': 'input', 'Path': 'in.txt', 'Bytes': 7, 'Modified': 1, 'Changed': 1, 'Inode': 1,
                       'SHA256': digest}],
           'Metrics': {'volume_ml': 2.5}, 'Status': 'done'}

    def text(**changes):
        return json.dumps({'GeneratedBy': [{'Name': 'Larch copy'}], 'Larch': {**run, **changes}})
    seed('records', 'same', 's' + text())
    seed('records', 'rejected', 's' + text(Status='rejected', Reason='empty'))
    entry = {'Name': 'case.txt', 'Role': 'output', 'Bytes': 6, 'SHA256': hashlib.sha256(b'result').hexdigest()}
    seed('records', 'whole', 's' + text(Outputs=[entry]))
    seed('records', 'other-role', 's' + text(Outputs=[{**entry, 'Role': 'mesh'}]))
    seed('records', 'writing', 's{"Larch": {"App": "copy", "Status": "writing", "Outputs": [{"Name": "case.txt"}]}}')
    seed('records', 'other-threshold', 's' + text(Config={'threshold': 0.25, 'rounds': 2}))
    seed('records', 'other-input', 's' + text(Inputs=[{'Role': 'input', 'Path': 'in.txt', 'SHA256': '0' * 64}]))
    seed('records', 'of-case', 's' + text(Inputs=[{**run['Inputs'][0], 'Case': 'c1'}]))
    seed('records', 'folder', 'o' + text(Outputs=[entry]))
    seed('records', 'folder-misses-a-file', 'o' + text(Outputs=[{**entry, 'Name': '../' + 'x' * 300}]))
    seed('records', 'no-record', 's{"Larch": 1}')
    seed('records', 'deep', 's{"Larch": {"a": ' + '[' * 61 + ']' * 61 + '}}')

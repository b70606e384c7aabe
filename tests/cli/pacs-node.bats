#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# scripts/examples/pacs-node between a sender and a PACS that takes results, all on the loopback.

load helpers

node=$BATS_TEST_DIRNAME/../../scripts/examples/pacs-node

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  "$BIN/make-samples" --output-dir s --size 24,20,16 --training 3 --test 0 --format dicom -q
  rm s/images/case_001/0008.dcm  # the broken study
}

needs() {
  local tool
  for tool in storescp storescu echoscu dcmdump dcmodify; do
    command -v $tool >/dev/null || skip "$tool is not installed (Debian's dcmtk)"
  done
  program=("$BIN/levelset-segment" --sphere-index 12,10,8,2 --max-distance-mm 5 --threads 1)
  read -r port peer_port < <(/usr/bin/python3 -c "import socket
free = [socket.socket() for _ in range(2)]
for one in free: one.bind(('127.0.0.1', 0))
print(*(one.getsockname()[1] for one in free))")
  pids=()
  export TCP_NODELAY=1
}

# within SECONDS COMMAND...: waits until the command succeeds.
within() {
  local end=$((SECONDS + $1))
  until "${@:2}" >/dev/null 2>&1; do
    ((SECONDS < end)) || { echo "not within $1 s: ${*:2}"; cat node.txt; return 1; }
    sleep 0.1
  done
}

background() {
  "$@" </dev/null 3>&- &
  pids+=($!)
}

start_peer() {
  mkdir -p peer
  background timeout 60 storescp --disable-host-lookup --aetitle PEER --output-directory peer "$peer_port" 2>peer.log
  within 10 echoscu 127.0.0.1 "$peer_port"
}

start_node() {
  QUIET_S=1 LIMIT_S=30 background timeout 60 "$node" node "$port" "PEER@127.0.0.1:$peer_port" "${program[@]}" \
    >>node.txt 2>&1
  within 10 echoscu 127.0.0.1 "$port"
}

send() { timeout 20 storescu --timeout 5 127.0.0.1 "$port" +sd "s/images/$1"; }
told() { [ "$(grep -c "T.* $2 /" node.txt)" -eq "$1" ]; }
ended() { ! kill -0 "$1"; }

teardown() {
  [ -z "${pids[*]:-}" ] || kill "${pids[@]}" 2>/dev/null || true
  wait
}

@test "pacs-node: studies are segmented and sent, and a broken one in the middle lands in a folder" {
  needs
  # The first study has a localizer as well.
  cp s/images/case_000/0001.dcm s/images/case_000/localizer.dcm
  dcmodify -nb -gin -gse -m '(0008,0008)=ORIGINAL\PRIMARY\LOCALIZER' s/images/case_000/localizer.dcm
  start_peer
  start_node
  for case in 0 1 2; do send case_00$case; done
  within 20 told 2 sent
  told 1 failed
  has node/failed/*/log.txt "the slices are not evenly spaced"
  [ "$(ls node/failed/*/images | wc -l)" -eq 15 ]
  grep -q "passed over: .*LOCALIZER" node/sent/*/log.txt
  [ -z "$(ls -A node/incoming node/queue node/work | grep -v :)" ]
  [ -z "$(find node/sent -name images)" ]
  python "
import glob, pydicom
got = [pydicom.dcmread(name) for name in glob.glob('peer/*')]
assert [d.SOPClassUID for d in got] == ['1.2.840.10008.5.1.4.1.1.66.4'] * 2, [d.SOPClassUID for d in got]
sent = [pydicom.dcmread(f's/images/case_00{k}/0001.dcm') for k in (0, 2)]
assert {d.StudyInstanceUID for d in got} == {d.StudyInstanceUID for d in sent}
assert {d.PatientID for d in got} == {d.PatientID for d in sent}"

  # SIGTERM ends it and its storescp; what had come and was not complete is done by the next start.
  send case_002
  kill "${pids[1]}"
  within 10 ended "${pids[1]}"
  ! echoscu 127.0.0.1 "$port"
  start_node
  within 10 told 3 sent
}

@test "pacs-node: a study that the PACS does not take fails, and is sent when it is moved back" {
  needs
  start_node
  expect 6 timeout 20 "$node" node "$port" "PEER@127.0.0.1:$peer_port" "${program[@]}"
  has err.txt "another node uses"
  expect 3 timeout 20 "$node" node2 "$port" "PEER@127.0.0.1:$peer_port" "${program[@]}"
  has err.txt "storescp ended"
  expect 2 timeout 20 "$node" node2 "$port" 127.0.0.1 "${program[@]}"
  has err.txt "TITLE@HOST:PORT"
  send case_002
  within 20 told 1 failed
  grep -qi "peer\|connect" node/failed/*/log.txt
  start_peer
  mv node/failed/*/images node/queue/again
  within 10 told 1 sent
  [ "$(ls peer | wc -l)" -eq 1 ]
}

#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian packages of a build, asks lintian about them, installs them in a bare root of Debian 12, runs
# them there without network, and removes them: no file of theirs stays. Usage: debian_test.sh BUILD
# Exit code 77: this machine cannot do that.
set -euo pipefail
build=$1
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "error: $*"; exit 1; }
((EUID == 0)) || skip "only root can make a root of Debian"
for tool in mmdebstrap lintian dpkg-shlibdeps file; do
  command -v $tool >/dev/null || skip "$tool is missing: scripts/install-packages package"
done
unshare --net --mount --pid --fork true || skip "no namespaces here"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

cpack -G DEB --config "$build/CPackConfig.cmake" -B "$work/packages" >"$work/log.txt" 2>&1 || { cat "$work/log.txt"; exit 1; }
rm -rf "$work/packages/_CPack_Packages"
lintian --fail-on error --allow-root "$work"/packages/*.deb
depends=$(dpkg-deb --field "$work"/packages/larch_*.deb Depends)
[[ $depends == *libgdcm3.0* && $depends == *libc6* ]] || fail "the package depends on $depends"

# The only step with network: the root, and what the packages depend on, as apt finds it.
mmdebstrap --variant=minbase --customize-hook="copy-in $work/packages /" \
  --customize-hook='chroot "$1" sh -c "apt-get install --yes --no-install-recommends /packages/*.deb"' \
  bookworm "$root" >"$work/log.txt" 2>&1 || {
  tail -n 20 "$work/log.txt"
  grep -q -E '^E: (Failed to fetch|Unable to fetch)|Temporary failure resolving' "$work/log.txt" && skip "no mirror of Debian answers"
  exit 1
}
inside() { unshare --net --mount --pid --fork --root="$root" --mount-proc env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
snapshot() { (cd "$root" && find . -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o -printf '%p %y %m %l\n' | sort) >"$1"; }
purge() { inside dpkg --purge $packages >/dev/null; }
packages=$(for deb in "$work"/packages/*.deb; do dpkg-deb --field "$deb" Package; done)
purge
snapshot "$work/before"
inside sh -c 'dpkg --install /packages/*.deb' >/dev/null

for program in $(dpkg-deb --contents "$work"/packages/larch_*.deb | sed -n 's|.* \./usr/bin/\(..*\)|\1|p'); do
  inside "$program" --version | grep -q '^larch ' || fail "$program does not start"
  [[ -s $root/usr/share/man/man1/$program.1.gz ]] || fail "$program has no manual page"
  bash -n "$root/usr/share/bash-completion/completions/$program" || fail "$program has no completion"
done
cat >"$root/detect" <<'SH'
set -e
cd "$(mktemp -d)"
samples=/usr/share/larch/data-samples
pbt-train --list $samples/training/train.tsv --output organ.pbt --config /usr/share/larch/configs/pbt-train.quickstart.json --quiet
pbt-detect --model organ.pbt --input $samples/organ/images/case_000.nii.gz --output found.nii.gz --qc found.png --quiet
[ -s found.nii.gz ] && [ -s found.png ]
SH
inside setpriv --reuid=65534 --regid=65534 --clear-groups sh /detect || fail "a detection by an ordinary user"
rm "$root/detect"
if [[ $packages == *python3-larch* ]]; then
  cp "$(dirname "$0")/readme_commands_test.py" "$root"
  inside setpriv --reuid=65534 --regid=65534 --clear-groups python3 -B /readme_commands_test.py /usr/share/doc/larch /usr/bin \
    >"$work/log.txt" || { tail -n 20 "$work/log.txt"; fail "a command line of the pages"; }
  rm "$root/readme_commands_test.py"
  inside python3 -B -c 'import larch; larch.read_image("/usr/share/larch/data-samples/organ/images/case_000.nii.gz")' ||
    fail "the Python module"
fi
inside /usr/libexec/larch/regression --device cpu --threads 2 | tail -n 3 || fail "the regression"

rm -rf "$root"/tmp/*
purge
snapshot "$work/after"
diff "$work/before" "$work/after" || fail "files that the packages left, or took away, are above"
echo "installed, run without network and removed: "$packages

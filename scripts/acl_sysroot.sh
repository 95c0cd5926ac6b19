#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a folder with all that builds and runs programs of the Arm Compute Library (ACL) for arm64 on another machine.
#
#   scripts/acl_sysroot.sh DIR [bookworm|trixie]       then: export FERRULE_ACL_SYSROOT=DIR
#
#   DIR/root    the arm64 files of Debian's packages: ACL (20.08 in bookworm, 24.11 in trixie), HDF5, the C and C++ libraries
#   DIR/cross   the cross compiler and qemu-aarch64, unless they are on PATH or this machine is arm64
#
# It needs a Debian host, whose own package sources it uses. It changes nothing outside of DIR and needs no root. A complete DIR is
# left as it is; one that was made by an older version of this script is made again.
set -eu

fail() {
    echo "acl_sysroot.sh: $*" >&2
    exit 2
}

[ $# -ge 1 ] && [ $# -le 2 ] || fail "usage: acl_sysroot.sh DIR [bookworm|trixie]"
suite=${2:-bookworm}
case $suite in
bookworm | trixie) ;;
*) fail "the suite '$suite' is unknown, expected bookworm or trixie" ;;
esac

compiler=g++-12-aarch64-linux-gnu
libraries="libarm-compute-dev libhdf5-dev libstdc++-12-dev libc6-dev"
stamp="1 $suite $libraries $compiler"
mkdir -p "$1" || fail "$1 cannot be made"
dir=$(cd "$1" && pwd)
case $dir in
*[!A-Za-z0-9_./+@~-]*) fail "the path $dir has characters that apt's configuration does not allow; choose another" ;;
esac

complete() {
    [ "$(cat "$dir/complete" 2>/dev/null)" = "$stamp" ]
}

complete && exit 0
for tool in apt-get dpkg-deb; do
    command -v $tool >/dev/null || fail "$tool is missing: this script needs a Debian host"
done
host=$(. /etc/os-release && echo "${ID:-} ${VERSION_CODENAME:-}")
[ "${host%% *}" = debian ] || fail "this host is '${host%% *}', not Debian; make the folder on Debian, or in a container of it, and copy it"
codename=${host#* }

# One command at a time; the others wait and find a complete folder.
if command -v flock >/dev/null; then
    exec 9>"$dir/lock"
    flock 9
    complete && exit 0
fi

# The address from which this host gets Debian's packages.
source=$(apt-get indextargets --format '$(CREATED_BY)|$(COMPONENT)|$(RELEASE)|$(CODENAME)|$(REPO_URI)' |
    awk -F'|' -v name="$codename" '$1 == "Packages" && $2 == "main" && ($3 == name || $4 == name) { print $5; exit }')
[ -n "$source" ] || fail "apt has no source with the component main of Debian $codename"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e $keys ] || keys=""

# prepare NAME ARCHITECTURE STATUS SUITE: an apt of its own in DIR/apt/NAME, selected by APT_CONFIG
prepare() {
    apt=$dir/apt/$1
    mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/etc"
    : >"$apt/status"
    echo "deb [arch=$2${keys:+ signed-by=$keys}] $source $4 main" >"$apt/sources.list"
    cat >"$apt/apt.conf" <<END
APT::Architecture "$2";
APT::Architectures { "$2"; };
APT::Install-Recommends "false";
APT::Sandbox::User "$(id -un)";
Acquire::Languages "none";
Acquire::Retries "3";
Debug::NoLocking "true";
Dir::State "$apt/state";
Dir::State::status "$3";
Dir::Cache "$apt/cache";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "$apt/etc";
Dir::Etc::preferencesparts "$apt/etc";
END
    export APT_CONFIG="$apt/apt.conf"
}

# unpack TARGET PACKAGE...: the packages and what they need that STATUS lacks
unpack() {
    target=$1
    shift
    apt-get update -qq || fail "apt cannot read the package lists (above): is there a network?"
    apt-get install -y -qq --download-only "$@" >/dev/null || fail "apt cannot download $* (above)"
    rm -rf "$target" "$target.new"
    mkdir -p "$target.new"
    for package in "$apt"/cache/archives/*.deb; do
        case $package in
        */libc6-*arm64-cross_* | */linux-libc-dev-arm64-cross_*) ;; # DIR/root has them, and these only work in /
        *) dpkg-deb -x "$package" "$target.new" ;;
        esac
    done
    # from trixie on, base-files makes these links, and no other package has the folders
    for name in bin lib sbin; do
        [ -e "$target.new/$name" ] || ln -s "usr/$name" "$target.new/$name"
    done
    mv "$target.new" "$target"
}

rm -f "$dir/complete"
prepare root arm64 "$dir/apt/root/status" "$suite"
unpack "$dir/root" $libraries

rm -rf "$dir/cross"
machine=$(dpkg --print-architecture)
if [ "$machine" != arm64 ]; then
    tools=""
    command -v aarch64-linux-gnu-g++ >/dev/null || command -v aarch64-linux-gnu-g++-12 >/dev/null || tools="$compiler"
    command -v qemu-aarch64 >/dev/null || command -v qemu-aarch64-static >/dev/null || tools="$tools qemu-user"
    if [ -n "$tools" ]; then
        prepare cross "$machine" /var/lib/dpkg/status "$codename"
        unpack "$dir/cross" $tools
    fi
fi
rm -rf "$dir/apt"
echo "$stamp" >"$dir/complete"

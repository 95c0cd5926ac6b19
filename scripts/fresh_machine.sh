#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the targets of the Makefile and .ci/run as on a new machine: in a bare Debian, each from a clone of the last commit.
#
#   scripts/fresh_machine.sh DIR [STEP...]       the steps are by default: demo test .ci/run
#
#   STEP     a target of the Makefile, or .ci/run; what it lacks must be installed by the step itself
#   DIR/base the Debian: minbase with python3, python3-venv, python3-pip, make, git and ca-certificates
#   DIR/logs the output of each step
#
# Each step starts in a copy of DIR/base with an empty cache of its own. Only downloads are kept, in DIR/downloads. The folder that
# FERRULE_MODELS names is in the machine of .ci/run, which requires the trained models, and in no other.
# The package sources, certificates and proxies are the host's: those of apt, and those of pip with the local folders that they name.
# It needs root, debootstrap and unshare. Its mounts are in a namespace of their own, which ends with it.
# SUITE is the release of Debian, by default the host's; KEEP=1 keeps the machines in DIR/STEP.
set -euo pipefail

fail() {
    echo "fresh_machine.sh: $*" >&2
    exit 2
}

packages=python3,python3-venv,python3-pip,make,git,ca-certificates
[ $# -ge 1 ] || fail "usage: fresh_machine.sh DIR [STEP...]"
[ "$(id -u)" -eq 0 ] || fail "root is needed"
for tool in debootstrap unshare apt-get git; do
    command -v $tool >/dev/null || fail "$tool is missing"
done
if [ -z "${FRESH_MACHINE_NAMESPACE:-}" ]; then
    FRESH_MACHINE_NAMESPACE=1 exec unshare --mount --pid --fork --kill-child --propagation private "$0" "$@"
fi
clone=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
shift
steps=("$@")
[ ${#steps[@]} -gt 0 ] || steps=(demo test .ci/run)
for step in "${steps[@]}"; do
    [ "$step" = .ci/run ] || grep -q "^$step:" "$clone/Makefile" || fail "the Makefile has no target '$step'"
done
[ -z "$(git -C "$clone" status --porcelain)" ] || echo "fresh_machine.sh: changes that are not committed are left out" >&2
suite=${SUITE:-$(. /etc/os-release && echo "${VERSION_CODENAME:-}")}

# What of the host's configuration makes pip and apt work: files, and folders that they name.
pip_settings() {
    python3 -m pip config list 2>/dev/null || true
}
pip_files() {
    python3 -m pip config debug 2>/dev/null | sed -n 's/^ *\(.*\), exists: True$/\1/p'
}
# Each path that exists in a setting of pip or a variable about certificates; of a `simple` index, the folder around it.
named_paths() {
    { pip_settings; printenv | grep -E '^(PIP_|[A-Z_]*(_CERT|CERT_FILE|CERT_DIR|CA_BUNDLE|CAINFO|CA_CERTS)=)' || true; } |
        sed "s/^[^=]*=//; s/[',\"]/ /g; s,file://,,g" | tr ' ' '\n' | grep ^/ | sed 's,/simple/*$,,' | sort -u |
        while read -r path; do [ ! -e "$path" ] || echo "$path"; done
}
variables() {
    printenv | grep -iE '^(PIP_[A-Z_]*|(https?|no|all)_proxy|[A-Z_]*(_CERT|CERT_FILE|CERT_DIR|CA_BUNDLE|CAINFO|CA_CERTS))=' || true
}

make_base() {
    local source
    source=$(apt-get indextargets --format '$(CREATED_BY)|$(COMPONENT)|$(RELEASE)|$(CODENAME)|$(REPO_URI)' |
        awk -F'|' -v name="$suite" '$1 == "Packages" && $2 == "main" && ($3 == name || $4 == name) { print $5; exit }')
    [ -n "$source" ] || fail "apt has no source with the component main of Debian $suite; set SUITE"
    rm -rf "$dir/base" "$dir/base.new"
    debootstrap --variant=minbase --include=$packages "$suite" "$dir/base.new" "$source" >"$dir/logs/debootstrap" ||
        fail "debootstrap failed: $dir/logs/debootstrap"
    rm -rf "$dir/base.new"/var/cache/apt/archives/*.deb
    echo "$suite $packages" >"$dir/base.new/fresh_machine"
    mv "$dir/base.new" "$dir/base"
}

# give ROOT PATH: a file or folder of the host at the same place of the machine, which cannot write to it
give() {
    [ ! "$2" -ef "$1$2" ] || return 0 # in a folder that was given
    [ -d "$2" ] && mkdir -p "$1$2" || { mkdir -p "$1$(dirname "$2")" && touch "$1$2"; }
    mount --bind "$2" "$1$2"
    mount -o remount,bind,ro "$1$2"
}

start_machine() {
    local root=$1 path
    rm -rf --one-file-system "$root"
    cp -a "$dir/base" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
    ln -sf pts/ptmx "$root/dev/ptmx"
    mount -t tmpfs tmpfs "$root/dev/shm"
    for path in /etc/resolv.conf /etc/hosts; do
        cp -L "$path" "$root$path"
    done
    cp -r /etc/apt/apt.conf.d/*proxy* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
    { pip_files; named_paths; } | sort -u | while read -r path; do give "$root" "$path"; done
    mkdir -p "$dir/downloads/pip" "$dir/downloads/apt/partial" "$root/srv/home/.cache/pip"
    mount --bind "$dir/downloads/pip" "$root/srv/home/.cache/pip"
    mount --bind "$dir/downloads/apt" "$root/var/cache/apt/archives"
    rm -f "$root/etc/apt/apt.conf.d/docker-clean"
    git clone --quiet --no-hardlinks "$clone" "$root/srv/ferrule"
}

# run_step STEP: its status; the output goes to the log
run_step() {
    local root=$dir/${1//\//_} command="make $1" models=() each settings=()
    start_machine "$root"
    if [ "$1" = .ci/run ]; then
        command=$1
        if [ -n "${FERRULE_MODELS:-}" ]; then
            mkdir -p "$root/srv/models"
            mount --bind "$FERRULE_MODELS" "$root/srv/models"
            models=(FERRULE_MODELS=/srv/models)
        fi
    fi
    while read -r each; do settings+=("$each"); done < <(variables)
    local status=0
    chroot "$root" /usr/bin/env -i HOME=/srv/home LANG=C.UTF-8 TERM=dumb \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${settings[@]}" "${models[@]}" \
        bash -c "cd /srv/ferrule && $command" >"$dir/logs/${1//\//_}" 2>&1 </dev/null || status=$?
    return $status
}

end_machine() {
    local root=$dir/${1//\//_}
    # innermost mounts first
    awk -v root="$root/" 'index($5, root) == 1 { print $5 }' /proc/self/mountinfo | sort -r | while read -r each; do
        umount --lazy "$each"
    done
    [ -n "${KEEP:-}" ] || rm -rf --one-file-system "$root"
}

mount -t proc proc /proc
mkdir -p "$dir/logs"
[ "$(cat "$dir/base/fresh_machine" 2>/dev/null)" = "$suite $packages" ] || make_base
failed=()
for step in "${steps[@]}"; do
    started=$SECONDS
    status=0
    run_step "$step" || status=$?
    end_machine "$step"
    printf '%s: %s after %d:%02d min, %s\n' "$step" "$([ $status -eq 0 ] && echo passed || echo "failed with $status")" \
        $(((SECONDS - started) / 60)) $(((SECONDS - started) % 60)) "$dir/logs/${step//\//_}"
    tail -n 3 "$dir/logs/${step//\//_}" | sed 's/^/    /'
    [ $status -eq 0 ] || failed+=("$step")
done
[ ${#failed[@]} -eq 0 ] || fail "failed: ${failed[*]}"

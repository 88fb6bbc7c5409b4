#!/usr/bin/env bash
# Brings the C++ libraries that are not on the system into .deps, laid out like /, without installation
# rights: Debian's own packages, downloaded and unpacked. Does nothing for what is there already, so a
# filled .deps can be carried to a machine without a network. Versions: .deps/versions.txt.
# `fetch_deps.sh bench` also brings Google Benchmark, which only `make bench-planner` needs.
# Where a GPU is (or with NSP_CUDA=ON) the headers of cudnn-frontend come too, from their PyPI wheel.
set -euo pipefail
cd "$(dirname "$0")/.."
deps=$PWD/.deps

# A file that proves the library, below an include or library folder; and its package.
needed="
include/nlohmann/json.hpp nlohmann-json3-dev
include/CLI/CLI.hpp libcli11-dev
include/fmt/format.h libfmt-dev
include/xxhash.h libxxhash-dev
include/zlib.h zlib1g-dev
include/gtest/gtest.h libgtest-dev
lib/*/libgtest.a libgtest-dev
"
[ "${1:-}" != bench ] || needed+="include/benchmark/benchmark.h libbenchmark-dev"

is_there() {
  local root
  for root in "$deps/usr" /usr/local /usr; do
    compgen -G "$root/$1" > /dev/null && return 0
  done
  # Libraries of /usr/local lie directly in lib.
  compgen -G "/usr/local/${1/\*\//}" > /dev/null
}

# Best effort: without them GPUs use FlashAttention-2, and the build says so.
fetch_cudnn_frontend() {
  [ -e /dev/nvidiactl ] || [ "${NSP_CUDA:-}" = ON ] || return 0
  is_there include/cudnn_frontend.h && return 0
  echo "nsp: fetching cudnn-frontend into .deps"
  local folder=$deps/wheel
  if python3 -m pip download --quiet --no-deps --dest "$folder" nvidia-cudnn-frontend==1.32.0 2> /dev/null; then
    mkdir -p "$deps/usr"
    python3 -m zipfile -e "$folder"/*.whl "$folder/unpacked"
    cp -r "$folder/unpacked/include" "$deps/usr/"
    echo "nvidia-cudnn-frontend 1.32.0" >> "$deps/versions.txt"
  else
    echo "nsp: nvidia-cudnn-frontend could not be downloaded; building without cuDNN attention" >&2
  fi
  rm -rf "$folder"
}
fetch_cudnn_frontend

missing=()
while read -r file package; do
  [ -n "$file" ] || continue
  is_there "$file" || missing+=("$package")
done <<< "$needed"
[ ${#missing[@]} -gt 0 ] || exit 0
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)

for tool in apt-get dpkg-deb; do
  command -v "$tool" > /dev/null || {
    echo "nsp: ${missing[*]} (Debian's names) not found and there is no $tool; install these libraries or copy a filled .deps folder here" >&2
    exit 1
  }
done

echo "nsp: fetching ${missing[*]} into .deps"
state=$deps/apt
mkdir -p "$state/packages" "$state/cache/archives/partial"
# Own folders and no privilege drop: works for an ordinary user and below folders closed to others.
apt=(apt-get -q=2 -o "Dir::Cache=$state/cache" -o Debug::NoLocking=1 -o "APT::Sandbox::User=$(id -un)")
# A -dev package may hold only the header and a link: its own library comes with it.
libraries() {
  local options=("${apt[@]:1}")
  [[ " ${missing[*]} " != *" libbenchmark-dev "* ]] ||
    apt-cache "${options[@]}" depends --important libbenchmark-dev | sed -n 's/.*Depends: \(libbenchmark[^ ]*\)/\1/p'
}
download() {
  local more
  mapfile -t more < <(libraries)
  (cd "$state/packages" && "${apt[@]}" download "${missing[@]}" "${more[@]}")
}
if ! download 2> "$state/log"; then
  # A fresh machine has no package lists: read them into a folder of ours.
  mkdir -p "$state/lists/partial"
  apt+=(-o "Dir::State::Lists=$state/lists")
  if ! { "${apt[@]}" update && download; } 2> "$state/log"; then
    cat "$state/log" >&2
    echo "nsp: ${missing[*]} could not be downloaded; install them with: apt-get install ${missing[*]}" >&2
    exit 1
  fi
fi
for package in "$state"/packages/*.deb; do
  dpkg-deb -x "$package" "$deps"
  dpkg-deb -W --showformat '${Package} ${Version}\n' "$package" >> "$deps/versions.txt"
done
sort -u -o "$deps/versions.txt" "$deps/versions.txt"
rm -rf "$state"

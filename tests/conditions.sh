#!/usr/bin/env bash
# The suite on machines unlike this one: one condition after another, each by its name.
#
#     tests/conditions.sh                        all conditions, the whole suite
#     tests/conditions.sh avx2 foreign           these conditions
#     tests/conditions.sh stranger -- tests/data these conditions, these tests
#
# Tests that start processes are run twice more under each condition. Ends with a line a condition; the exit code is the
# number of conditions that failed. `PYTEST` names the program (default: that of .venv, else the one on the path).
set -uo pipefail
cd "$(dirname "$0")/.."
root=$PWD
pytest=${PYTEST:-$(test -x .venv/bin/pytest && echo "$root/.venv/bin/pytest" || command -v pytest)}
all="one-process two-processes one-core avx2 baseline foreign heap shuffled stranger"
conditions=() targets=()
while test $# -gt 0 && test "$1" != --; do conditions+=("$1"); shift; done
test "${1:-}" = -- && shift
targets=("$@")
test ${#conditions[@]} -gt 0 || read -ra conditions <<<"$all"
with_processes=(tests/train/test_train_cohort.py tests/train/test_train_workers.py tests/train/test_train_results.py
  tests/study tests/faults tests/show/explorer/test_explorer_command.py tests/cli/test_cli_main.py)
place=$(mktemp -d)
trap 'chmod -R u+w "$place" 2>/dev/null; rm -rf "$place"' EXIT
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1

# the stranger may read what root reads, if the interpreter lies in root's home; never write it
reading=(--inh-caps=+dac_read_search --ambient-caps=+dac_read_search)
# as_stranger COMMAND...: another user, in a copy of the checkout that nobody may write, without a home, with umask 077
as_stranger() {
  if ! test -d "$place/stranger"; then
    mkdir -p "$place/stranger/tmp"
    git ls-files -z | tar --null --files-from=- -cf - | tar -xf - -C "$place/stranger"
    chmod -R a+rX,a-w "$place/stranger"
    chmod 711 "$place"
    chmod 777 "$place/stranger/tmp"
  fi
  (cd "$place/stranger" && umask 077 && env -u HOME -u USER -u LOGNAME -u XDG_CACHE_HOME \
    TMPDIR="$place/stranger/tmp" PYTHONPATH="$place/stranger/src:${PYTHONPATH:-}" \
    setpriv --reuid=65534 --regid=65534 --clear-groups "${reading[@]}" "$@")
}

under() { # CONDITION COMMAND...
  local condition=$1
  shift
  case $condition in
    one-process) "$@" -p no:xdist ;;
    two-processes) "$@" -n 2 --dist worksteal ;;
    one-core) taskset -c 0 "$@" -p no:xdist ;;
    avx2) # a CPU without AVX-512 and bfloat16
      ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 OPENBLAS_CORETYPE=Haswell MKL_CBWR=AVX2 "$@" -p no:xdist ;;
    baseline) # a CPU without AVX and FMA, so every sum and product rounds otherwise
      ONEDNN_MAX_CPU_ISA=SSE41 ATEN_CPU_CAPABILITY=default OPENBLAS_CORETYPE=Nehalem MKL_CBWR=COMPATIBLE \
        GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F "$@" -p no:xdist ;;
    foreign) # another zone, language, home, user and hash seed
      env -u LANG -u XDG_CACHE_HOME TZ=Asia/Kolkata LC_ALL=C HOME=/proc/none USER= LOGNAME= PYTHONHASHSEED=7 "$@" -p no:xdist ;;
    heap) # another memory policy: huge pages, small blocks mapped one by one, freed memory overwritten
      GLIBC_TUNABLES=glibc.malloc.hugetlb=1 MALLOC_MMAP_THRESHOLD_=65536 MALLOC_TRIM_THRESHOLD_=65536 \
        MALLOC_ARENA_MAX=1 MALLOC_PERTURB_=165 "$@" -p no:xdist ;;
    shuffled) UNSEAM_SHUFFLE=${UNSEAM_SHUFFLE:-$RANDOM} "$@" -p no:xdist -p shuffle ;;
    stranger) as_stranger "$@" -p no:xdist ;;
    *) echo "condition '$condition' is unknown; known: $all" >&2; return 99 ;;
  esac
}

failed=0 lines=()
for condition in "${conditions[@]}"; do
  seconds=$SECONDS result=passed
  under "$condition" "$pytest" -p no:cacheprovider "${targets[@]}" || result=FAILED
  if test ${#targets[@]} -eq 0; then
    for _ in 1 2; do
      under "$condition" "$pytest" -p no:cacheprovider "${with_processes[@]}" || result=FAILED
    done
  fi
  test $result = passed || failed=$((failed + 1))
  lines+=("$(printf '%-14s %s  %s s' "$condition" $result $((SECONDS - seconds)))")
done
printf '%s\n' "${lines[@]}"
exit $failed

#!/usr/bin/env bash
# The suite on machines unlike this one: one condition after another, each by its name.
#
#     tests/conditions.sh                        all conditions, the whole suite
#     tests/conditions.sh avx2 foreign           these conditions
#     tests/conditions.sh heap+stranger          both at once, in one run: if it passes, each of them passes
#     tests/conditions.sh stranger -- tests/data these conditions, these tests
#
# Tests that start processes are run twice more under each condition. Ends with a line for each run; the exit code is the
# number that failed. `PYTEST` names the program (default: that of .venv, else the one on the path), `PYTEST_ADDOPTS`
# more options of it, `UNSEAM_SHUFFLE` the seed of `shuffled` (default: a new one; it is printed).
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

# under NAME[+NAME...] COMMAND...: the command as it runs under these conditions together
under() {
  local names name set=() unset=() around=() options=(-p no:xdist) tunables=""
  read -ra names <<<"${1//+/ }"
  shift
  for name in "${names[@]}"; do
    case $name in
      one-process) ;;
      two-processes) options=(-n 2 --dist worksteal) ;;
      one-core) around+=(taskset -c "$(taskset -cp $$ | sed 's/.*[ ,-]//')") ;; # the last of those we may use
      avx2) # a CPU without AVX-512 and bfloat16
        set+=(ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 OPENBLAS_CORETYPE=Haswell MKL_CBWR=AVX2) ;;
      baseline) # a CPU without AVX and FMA, so every sum and product rounds otherwise
        set+=(ONEDNN_MAX_CPU_ISA=SSE41 ATEN_CPU_CAPABILITY=default OPENBLAS_CORETYPE=Nehalem MKL_CBWR=COMPATIBLE)
        tunables+=:glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F ;;
      foreign) # another zone, language, home, user and hash seed
        unset+=(-u LANG -u XDG_CACHE_HOME)
        set+=(TZ=Asia/Kolkata LC_ALL=C HOME=/proc/none USER= LOGNAME= PYTHONHASHSEED=7) ;;
      heap) # another memory policy: huge pages, small blocks mapped one by one, freed memory overwritten
        set+=(MALLOC_MMAP_THRESHOLD_=65536 MALLOC_TRIM_THRESHOLD_=65536 MALLOC_ARENA_MAX=1 MALLOC_PERTURB_=165)
        tunables+=:glibc.malloc.hugetlb=1 ;;
      shuffled) set+=(UNSEAM_SHUFFLE="$seed"); options+=(-p shuffle) ;;
      stranger) around=(as_stranger "${around[@]}") ;;
    esac
  done
  test -z "$tunables" || set+=(GLIBC_TUNABLES="${tunables#:}")
  "${around[@]}" env "${unset[@]}" "${set[@]}" "$@" "${options[@]}"
}

for condition in "${conditions[@]}"; do
  for name in ${condition//+/ }; do
    [[ " $all " == *" $name "* ]] || { echo "condition '$name' is unknown; known: $all" >&2; exit 99; }
  done
  [[ $condition != *avx2*baseline* && $condition != *baseline*avx2* ]] || { echo "'$condition' is two CPUs at once" >&2; exit 99; }
done

failed=0 lines=()
for condition in "${conditions[@]}"; do
  seconds=$SECONDS result=passed seed=${UNSEAM_SHUFFLE:-$RANDOM}
  [[ $condition != *shuffled* ]] || echo "UNSEAM_SHUFFLE=$seed"
  under "$condition" "$pytest" -p no:cacheprovider "${targets[@]}" || result=FAILED
  if test ${#targets[@]} -eq 0; then
    for _ in 1 2; do
      under "$condition" "$pytest" -p no:cacheprovider "${with_processes[@]}" || result=FAILED
    done
  fi
  test $result = passed || failed=$((failed + 1))
  lines+=("$(printf '%-22s %s  %s s' "$condition" $result $((SECONDS - seconds)))")
done
printf '%s\n' "${lines[@]}"
exit $failed

"""Faults between the parts of the house that once lived, all at once, beside a green suite: each must turn a test red.

    python tests/mutants.py              all of them, one after another (a quarter of an hour); not part of `make test`
    python tests/mutants.py chance       those whose name holds the word (J1: joints, S1: silent, N1: numbers, V1: models,
                                         D4: faults)
    python tests/mutants.py --log FILE   adds each result to FILE, and skips what FILE has of the same src and tests: a
                                         run that was stopped goes on with the same command

Each is one line of src changed in a temporary copy, and the test file that has to notice. A mutant whose line is no
longer there is an error: the list follows the code.
"""

# ruff: noqa: E501  lines of src are quoted as they are

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "pandas", "scipy.stats", "sklearn", "matplotlib.figure", "lightgbm", "safetensors.torch", "pytest")


class Mutant(NamedTuple):
    """What would be wrong for a user, where, and who should say so."""

    wrong: str
    file: str  # below src
    line: str  # a part of the line, found once
    mutated: str
    tests: str  # below tests: a file, or one test of it


UNSEAM, PAPERS = "unseam/", "unseam_papers/"
MUTANTS = (
    Mutant("evaluate scores other rows than it says", f"{UNSEAM}runs/evaluate.py",
           "represent(run.model(member), row_sample.of or run.data, row_sample.rows)",
           'represent(run.model(member), run.data, run.split("trained")[: len(row_sample.rows)])', "runs/test_held_out.py"),
    Mutant("evaluate --json prints the largest score as the mean", f"{UNSEAM}cli/evaluate.py",
           "value = float(np.mean([s.value for s in scores]))", "value = float(np.max([s.value for s in scores]))",
           "runs/test_held_out.py"),
    Mutant("the Sigma law is followed from r = 0.1 on", f"{UNSEAM}geometry/verdict.py",
           "LAW_R = 0.9 ", "LAW_R = 0.1 ", "geometry/test_geometry_verdict.py"),
    Mutant("the columns mu2 and sigma2 of the latents are swapped", f"{UNSEAM}train/loop.py",
           'report[f"latent/{name}"].tolist() for name in LATENT',
           'report["latent/" + {"mu2": "sigma2", "sigma2": "mu2"}.get(name, name)].tolist() for name in LATENT',
           "train/test_train_results.py"),
    Mutant("a 95 % interval has the width of 68 %", f"{UNSEAM}metrics/shared/uncertainty.py",
           "QUANTILE = 1.96", "QUANTILE = 1.0", "metrics/test_metrics_uncertainty.py"),
    Mutant("the report's KL history is another column", f"{UNSEAM}show/report/member.py",
           'latent_columns(run, view.member, "kl")', 'latent_columns(run, view.member, "mu2")',
           "runs/test_runs_verbs.py"),
    Mutant("align does not whiten an autoencoder", f"{UNSEAM}runs/align.py",
           "whiten=not encoded.posterior.has_prior,", "whiten=False,", "runs/test_runs_verbs.py"),
    Mutant("the table prints the value as chance", f"{UNSEAM}metrics/suite.py",
           "number(score.chance),", "number(score.value if score.chance is not None else None),",
           "metrics/test_metrics_cli.py"),
    Mutant("beta of a user's own objective is always 1", f"{UNSEAM}run/run.py",
           "return self.members[member].kl_weight", "return 1.0", "train/test_train_results.py"),
    Mutant("final numbers are of training rows", f"{UNSEAM}train/loop.py",
           "test_rows if len(test_rows) else train_rows,", "train_rows,", "runs/test_held_out.py"),
    Mutant("the central 95 % of repetitions are the central 5 %", f"{PAPERS}frame/verdicts.py",
           "share: float = 1 - LEVEL) -> tuple[float, float]", "share: float = LEVEL) -> tuple[float, float]",
           "papers/test_verdicts.py"),
    Mutant("A1 calls 40 degrees aligned", f"{PAPERS}allen/linear_components.py",
           "_DEGREES, _LENGTH, ROTATION = 1.0,", "_DEGREES, _LENGTH, ROTATION = 40.0,", "papers/test_allen.py"),
    Mutant("evaluate lets passive latents vote", f"{UNSEAM}runs/evaluate.py",
           '"active": encoded.active', '"active": None', "runs/test_held_out.py"),
    Mutant("a study's mean.* holds scores of sampled codes", f"{UNSEAM}study/evaluate.py",
           "self.six(one).items()", "self.six(two).items()",
           "study/test_study_engine.py::test_the_rows_say_what_the_run_says"),
    Mutant("a study tests predictors on the rows they learned from", f"{UNSEAM}study/evaluate.py",
           "test_codes=codes[cut:], test_factors=factors[cut:]", "test_codes=codes[:cut], test_factors=factors[:cut]",
           "study/test_study_engine.py::test_columns_of_a_row_are_what_they_are_called"),
    Mutant("an analysis counts models whose loss exploded", f"{UNSEAM}study/analyse/columns.py",
           'frame["status"] == "finished"', 'frame["status"] != "diverged"', "study/analyse/test_analyse_truth.py"),
    Mutant("perturb plays the worst member against the best", f"{UNSEAM}perturb/perturb_data.py",
           'key=lambda member: -found[member]["mig"].value', 'key=lambda member: found[member]["mig"].value',
           "perturb/test_perturb_make.py::test_what_is_told_is_what_was_done"),
    Mutant("the robustness radius is too small by the slope of tanh, twice", f"{UNSEAM}perturb/stress.py",
           "e / SLOPE", "e * SLOPE", "perturb/test_perturb_stress.py"),
    Mutant("stress --confirm compares changed data with itself", f"{UNSEAM}perturb/retrain.py",
           '"unchanged": x}', '"unchanged": moved}', "perturb/test_perturb_stress.py"),
    Mutant("match takes rows that members were trained on", f"{UNSEAM}runs/represent.py",
           'sample_rows(first, None, count, seed, "match")', 'sample_rows(first, "trained", count, seed, "match")',
           "runs/test_held_out.py"),
    Mutant("match calls stable what random axes reach", f"{UNSEAM}matching/result.py",
           "(self.values >= at) & (self.values > self.limit)", "self.values >= at",
           "matching/test_matching.py"),
    Mutant("hard negatives may be partners", f"{UNSEAM}matching/directions.py",
           "_chance(a[chosen], b, signed, partners[chosen])", "_chance(a[chosen], b, signed)",
           "matching/test_large_dictionaries.py"),
    Mutant("a pack's factors are of other rows than its codes", f"{UNSEAM}runs/pack.py",
           "run.data.factors(row_sample.rows)", "run.data.factors(row_sample.rows.sort().values)", "runs/test_pack.py"),
    Mutant("export writes member 0, whichever is asked for", f"{UNSEAM}runs/export.py",
           'run.on("cpu").model(member)', 'run.on("cpu").model(0)', "runs/test_runs_export.py"),
    Mutant("find tells its rivals one factor fewer", f"{UNSEAM}finding/rivals.py",
           "_row(fit, z, min(k, x.shape[1])", "_row(fit, z, max(min(k, x.shape[1]) - 1, 1)",
           "find/test_find_joints.py"),
    Mutant("find's share of variance is of rows it was fitted on", f"{UNSEAM}finding/rivals.py",
           "train, test = x / spread, own.train, own.test", "train, test = x / spread, own.train, own.train",
           "find/test_find_joints.py"),
    Mutant("find takes a network that is not surely better", f"{UNSEAM}finding/nonlinear.py",
           "return better.sure(BETTER), sentences", "return True, sentences", "find/test_find_joints.py"),
    Mutant("a diagnosis is of training rows", f"{UNSEAM}runs/diagnose.py",
           'return sample_rows(run, None, count, seed, "explain"', 'return sample_rows(run, "trained", count, seed, "explain"',
           "runs/test_held_out.py"),
    Mutant("a folded pixel turns axes as if it were not", f"{UNSEAM}models/likelihood.py",
           "return Moved(1 / variance, squared_slope, (~folded).to(v), torch.where(folded, sure, 1.0))",
           "return Moved(1 / variance, squared_slope, torch.ones_like(variance), torch.where(folded, sure, 1.0))",
           "perturb/test_perturb_stress.py"),
    Mutant("a sure pixel stays sure under a change", f"{UNSEAM}models/likelihood.py",
           "variance = torch.where(folded, v + sure * e * (HALF - e), torch.maximum(v, e * (1 - e)))",
           "variance = v.clamp_min(1e-6).expand_as(folded)", "perturb/test_perturb_stress.py"),
    Mutant("a GAN is told to lower its beta", f"{UNSEAM}runs/diagnose.py",
           "has_beta=kind is None or kind.has_beta", "has_beta=True", "objectives/test_objectives_pairs.py"),
    Mutant("factors whose ends were left out are correlated over the whole grid", f"{UNSEAM}data/wrap/row_subsets.py",
           "return values.amin(0), (values.amax(0) - values.amin(0)).clamp(min=1e-30)",
           "return 0 * values.amin(0), values.new_tensor([31.0])", "data/test_data_wrappers.py"),
)  # fmt: skip


JOINTS = (  # flags that a verb parses, and numbers of the second choice: a member chosen by hand, a signed match, ...
    Mutant("J1: find --beta does not reach find", f"{UNSEAM}cli/find.py",
           "beta=self.beta, device=self.device,", "device=self.device,", "cli/test_cli_flags.py"),
    Mutant("J2: find --seed is always 0", f"{UNSEAM}cli/find.py",
           "orthogonal=self.orthogonal, seed=self.seed,", "orthogonal=self.orthogonal, seed=0,", "cli/test_cli_flags.py"),
    Mutant("J3: networks of find have the same seeds whatever --seed is", f"{UNSEAM}finding/network.py",
           "seeds=range(seed, seed + effort.seeds)", "seeds=range(effort.seeds)", "test_joints.py"),
    Mutant("J4: classes of a mixed table are cut by the columns' old order", f"{UNSEAM}finding/encoding.py",
           "np.array(prepared.used)[order], prepared.poisson", "np.array(prepared.used), prepared.poisson", "test_joints.py"),
    Mutant("J5: FactorFinder names columns of a frame in sorted order", f"{UNSEAM}sklearn_api/finder.py",
           "            return pd.DataFrame(X)\n", "            return pd.DataFrame(np.asarray(X), columns=sorted(X.columns))\n",
           "test_joints.py"),
    Mutant("J6: chance of a signed match is unsigned", f"{UNSEAM}matching/directions.py",
           "_chance(rotated(unit(a[chosen]), rng), b, signed)", "_chance(rotated(unit(a[chosen]), rng), b, False)",
           "test_joints.py"),
    Mutant("J7: tiles of a member chosen by hand are the preferred one's", f"{UNSEAM}show/report/write.py",
           "tiles=tiles(found.run, found.shown),", "tiles=tiles(found.run, found.chosen),", "show/test_show_belongs.py"),
    Mutant("J8: the strong loss curve is the preferred member's", f"{UNSEAM}show/report/write.py",
           "loss_figures(found.run, found.shown.member)", "loss_figures(found.run, found.chosen.member)",
           "show/test_show_belongs.py"),
    Mutant("J9: scores on file are the first member's for every member", f"{UNSEAM}show/report/tiles.py",
           '(rows["member"] == view.member)', '(rows["member"] == 0)', "show/test_show_belongs.py"),
    Mutant("J10: the factor beside a latent is its neighbour's", f"{UNSEAM}show/explorer/member.py",
           "**best_factor(named, k),", "**best_factor(named, (k + 1) % codes.shape[1]),", "show/test_show_belongs.py"),
    Mutant("J11: every slider reaches as far as latent 0's codes", f"{UNSEAM}show/explorer/member.py",
           '"high": float(max(reach[k][1], codes[:, k].max())),', '"high": float(max(reach[k][1], codes[:, 0].max())),',
           "show/test_show_belongs.py"),
    Mutant("J12: score --seed does not reach the metrics", f"{UNSEAM}cli/score.py",
           "seed=self.seed,", "seed=0,", "cli/test_cli_flags.py"),
    Mutant("J13: posterior variances do not reach the metrics", f"{UNSEAM}runs/evaluate.py",
           '"variances": encoded.variances, ', "", "test_joints.py"),
    Mutant("J14: train --track is not passed on", f"{UNSEAM}cli/train.py",
           "track=self.track,", "track=None,", "cli/test_cli_flags.py"),
    Mutant("J15: a member's cards are of the member before it", f"{UNSEAM}show/report/member.py",
           "    model = run.model(view.member)\n    x, xhat", "    model = run.model(max(view.member - 1, 0))\n    x, xhat",
           "show/test_show_belongs.py"),
    Mutant("J16: the card of a latent names the next latent's factor", f"{UNSEAM}show/report/collect.py",
           "f = int(self.share[:, latent].argmax())", "f = int(self.share[:, latent - 1].argmax())",
           "show/test_show_belongs.py"),
    Mutant("J17: a name given to a latent stands under every member", f"{UNSEAM}show/report/member.py",
           "return latent_names(run).get(member, {})", "return latent_names(run).get(0, {})", "show/test_show_belongs.py"),
    Mutant("J18: KL curves are the first member's", f"{UNSEAM}show/report/member.py",
           'latent_columns(run, view.member, "kl")', 'latent_columns(run, 0, "kl")', "show/test_show_belongs.py"),
    Mutant("J19: the table of members has the numbers of the row before", f"{UNSEAM}show/report/cohort.py",
           "view, basic = view_of.get(m),", "view, basic = view_of.get(max(m - 1, 0)),", "show/test_show_belongs.py"),
    Mutant("J20: a point of the sweep carries the preferred member's number", f"{UNSEAM}show/report/cohort.py",
           "text = str(view.run or view.member)", "text = str(view.run or 0)", "show/test_show_belongs.py"),
    Mutant("J21: a run without decoder shows the first member, whichever is asked for", f"{UNSEAM}show/report/codes.py",
           "found = scored(run, shown, row_sample)", "found = scored(run, members[0], row_sample)", "show/test_show_belongs.py"),
    Mutant("J22: the explorer draws the first member, whichever is chosen", f"{UNSEAM}show/explorer/open_runs.py",
           "(net.encode, net.decode)", "(net.encode, run.model(0).decode)", "show/test_show_belongs.py"),
    Mutant("J23: the explorer shows names of the first member's latents", f"{UNSEAM}show/explorer/open_runs.py",
           'return latent_names(run).get(member, {}), ""', 'return latent_names(run).get(0, {}), ""', "show/test_show_belongs.py"),
)  # fmt: skip


SILENT = (  # numbers and files that were wrong without a word, and what other users of the machine could do
    Mutant("S1: a woken worker of a study writes on", f"{UNSEAM}study/pieces.py",
           "heartbeat(lease), guarded(lease.check):", "heartbeat(lease):", "study/test_study_lease.py"),
    Mutant("S2: a checkpoint before the last step is scored", f"{UNSEAM}study/pieces.py",
           "if run.finished and at_its_end(run):", "if run.finished:", "study/test_study_lease.py"),
    Mutant("S3: processes of another container are taken for dead", f"{UNSEAM}study/lease.py",
           'for name in ("host", "boot", "space")', 'for name in ("host", "boot")', "study/test_study_lease.py"),
    Mutant("S4: a heartbeat makes a lease again that was taken over", f"{UNSEAM}study/lease.py",
           "os.open(self.path, os.O_WRONLY)", "os.open(self.path, os.O_WRONLY | os.O_CREAT)", "study/test_study_lease.py"),
    Mutant("S5: two may take the same lease", f"{UNSEAM}study/lease.py",
           "os.O_CREAT | os.O_EXCL | os.O_WRONLY", "os.O_CREAT | os.O_WRONLY", "study/test_study_lease.py"),
    Mutant("S6: a temporary file of a paused worker gets its name later", f"{UNSEAM}atomic.py",
           "                path.unlink(missing_ok=True)\n\n\ndef remove_leftovers", "                pass\n\n\ndef remove_leftovers",
           "study/test_study_lease.py"),
    Mutant("S7: one bad piece of a study stops the others", f"{UNSEAM}study/engine.py",
           "except (BadInput, Failed, *ENVIRONMENT) as error:\n        reason", "except ZeroDivisionError as error:\n        reason",
           "study/test_study_lease.py"),
    Mutant("S8: Dask's scheduler obeys every user of the machine", f"{UNSEAM}study/cluster.py",
           'host="tls://127.0.0.1", dashboard_address=None,\n        worker_dashboard_address=None, memory_limit=0, security=security,', 'host="127.0.0.1", dashboard_address=None,\n        worker_dashboard_address=None, memory_limit=0,', "study/test_study_cluster.py"),
    Mutant("S9: a view of a results file is read", f"{UNSEAM}run/results.py",
           "    for kind, name, sql in connection.execute(named):\n", "    for kind, name, sql in ():\n",
           "train/test_train_tables.py::test_a_damaged_table_is_refused_when_a_run_is_opened[a trigger]"),  # the view would fill memory
    Mutant("S10: a column that is computed is read", f"{UNSEAM}run/results.py",
           "if any(row[6] for row in", "if any(False for row in", "train/test_train_tables.py"),
    Mutant("S11: a run whose latents lack a row opens", f"{UNSEAM}run/results.py",
           "    for (member,) in connection.execute(lost):\n", "    for (member,) in ():\n", "train/test_train_tables.py"),
    Mutant("S12: reading makes an empty results.sqlite", f"{UNSEAM}run/results.py",
           'mode = "rwc" if create else "rw"', 'mode = "rwc"', "train/test_train_tables.py"),
    Mutant("S13: masked cells are numbers", f"{UNSEAM}readers/frames.py",
           "    if isinstance(source, np.ma.MaskedArray):\n        return _unmasked", "    if False:\n        return _unmasked",
           "data/test_data_containers.py"),
    Mutant("S14: a server's nonsense is a traceback, and no other mirror is tried", f"{UNSEAM}data/download/fetch.py",
           "    subprocess.SubprocessError,\n    ValueError,\n", "    subprocess.SubprocessError,\n", "data/test_data_hostile_server.py"),
    Mutant("S15: progress of an unknown length divides by 0", f"{UNSEAM}progress.py",
           "    if not total:\n", "    if total is None:\n", "data/test_data_hostile_server.py"),
    Mutant("S16: a download that hardly moves is waited for", f"{UNSEAM}data/download/fetch.py",
           "            if have - before < SLOWEST * STRETCH:\n", "            if False:\n", "data/test_data_hostile_server.py"),
    Mutant("S17: the explorer answers every user of the machine", f"{UNSEAM}show/explorer/guard.py",
           "known = not self.token or by_address or self._has_cookie(headers)", "known = True", "show/explorer/test_explorer_guard.py"),
    Mutant("S18: files can be read by all, whatever the umask", f"{UNSEAM}atomic.py",
           "        yield temporary\n        flush(temporary)\n", "        yield temporary\n        temporary.chmod(0o644)\n        flush(temporary)\n",
           "data/test_data_files.py"),
    Mutant("S19: names of columns steer the terminal", f"{UNSEAM}errors.py",
           "return text.translate(_CONTROLS)", "return text", "cli/test_cli_main.py"),
    Mutant("S20: a pack that is opened as . is not checked", f"{UNSEAM}run/run.py",
           "    place = folder.resolve()\n", "    place = folder\n", "runs/test_pack.py"),
    Mutant("S21: modularity is the share of active latents", f"{UNSEAM}metrics/modularity.py",
           "float(per_latent[varies].mean()) if varies.any() else 0.0", "float(per_latent.mean())", "metrics/test_metrics_gaps.py"),
    Mutant("S22: a linear VAE's learned noise is PPCA's", f"{UNSEAM}sklearn_api/closed_form.py",
           "        if self.beta == 1 or len", "        if True or len", "test_estimators.py"),
    Mutant("S23: what noise gives is not shuffled", f"{UNSEAM}study/analyse/overlap.py",
           "_worst_beats_best(_shuffled(scores, rng))", "_worst_beats_best(scores)", "study/analyse/test_analyse_truth.py"),
    Mutant("S24: the likelihood of a library does not sum to one", f"{UNSEAM}models/mixed_likelihood.py",
           "            return _dirichlet_multinomial(", "            return 1.01 * _dirichlet_multinomial(", "models/test_mixed.py"),
    Mutant("S25: a row is paired with itself", f"{UNSEAM}metrics/shared/interventions.py",
           "step = 1 + (rng.random", "step = (rng.random", "metrics/test_metrics_interventional.py"),
    Mutant("S26: a latent that knows little holds a factor", f"{UNSEAM}show/report/sentences.py",
           "_HELD = 0.25 ", "_HELD = 0.02 ", "show/test_show_parts.py"),
    Mutant("S27: perturb --seeds 0.5,1.5 trains seeds 0 and 1", f"{UNSEAM}cli/perturb.py",
           'seeds = parse_numbers(self.seeds, "--seeds", int)', 'seeds = [int(s) for s in parse_numbers(self.seeds, "--seeds")]',
           "cli/test_cli_main.py"),
    Mutant("S28: what other code of a data set gave is kept", f"{UNSEAM}runs/cache.py",
           'CODE = ("axes", "data", ', 'CODE = ("axes", ', "runs/test_kept.py"),
    Mutant("S29: a perturbed folder that refers to itself ends the process", f"{UNSEAM}data/sets/perturbed.py",
           "        while (place / FILE).is_file():\n", "        while False:\n", "perturb/test_perturb_make.py"),
    Mutant("S30: align turns other latents than diagnose counts", f"{UNSEAM}geometry/prepare.py",
           "< ACTIVE_VARIANCE if q.full else q.active", "< ACTIVE_VARIANCE", "geometry/test_geometry_align.py"),
    Mutant("S31: align writes rotations that do not help", f"{UNSEAM}runs/align.py",
           "align(run, member, points, seed, keep_axes=True)", "align(run, member, points, seed)", "runs/test_aligned_run.py"),
    Mutant("S32: nobody is told that completeness counts passive latents", f"{UNSEAM}runs/evaluate.py",
           'all_notes = (*s.notes, *notes, *(counted if more["passive"] else ()))', "all_notes = (*s.notes, *notes)", "runs/test_held_out.py"),
    Mutant("S33: the README's snippet runs again in every worker", f"{UNSEAM}processes.py",
           '"from unseam.processes import run_here; run_here(head)"',
           '"from unseam.processes import run_here; import os, runpy; '
           'os.path.getsize(\'runs-of-this-script\') < 4 and runpy.run_path(\'script.py\'); run_here(head)"', "train/test_train_script.py"),
    Mutant("S34: after a training the caller's own small numbers are zero", f"{UNSEAM}device.py",
           "torch.set_flush_denormal(before)", "torch.set_flush_denormal(True)", "train/test_train_workers.py"),
    Mutant("S35: a member's small numbers are zero in a process of its own only", f"{UNSEAM}train/loop.py",
           "@flushed_denormals()\n", "", "train/test_train_workers.py"),
)  # fmt: skip


NUMBERS = (  # numbers that users see, of other rows, members, latents, columns or names than those they stand beside
    Mutant("N1: study: panels all show the first data set", f"{UNSEAM}show/pages/study.py",
           'y = models[(models["data"] == data) & (models["method"] == method)][score]',
           'y = models[(models["data"] == names[0]) & (models["method"] == method)][score]', "study/analyse/test_analyse_belongs.py"),
    Mutant("N2: study: strengths of the last data set are named the first's", f"{UNSEAM}show/pages/study.py",
           'score, data = judge_of(models), models["data"].iloc[0]',
           'score, data = judge_of(models), models["data"].iloc[-1]', "study/analyse/test_analyse_belongs.py"),
    Mutant("N3: study: the turned half of versus is not turned", f"{UNSEAM}show/pages/study.py",
           'p=1 - part["p"], low=1 - part["high"], high=1 - part["low"]',
           'p=part["p"], low=part["low"], high=part["high"]', "study/analyse/test_analyse_belongs.py"),
    Mutant("N4: study: explained and adjusted shares change places", f"{UNSEAM}show/pages/study.py",
           '(100 * found[["explained", "adjusted", "null_high"]])',
           '(100 * found[["adjusted", "explained", "null_high"]])', "study/analyse/test_analyse_belongs.py"),
    Mutant("N5: study: minus labels is the gain", f"{UNSEAM}show/templates/study.html",
           "<td>{{ row.behind|share }}</td>",
           "<td>{{ row.gain|share }}</td>", "study/analyse/test_analyse_belongs.py"),
    Mutant("N6: study: efficiency of codes beside another score", f"{UNSEAM}show/pages/study.py",
           'ax.plot(part[score], part[f"efficiency.{kind}"]',
           'ax.plot(part[score].to_numpy()[::-1], part[f"efficiency.{kind}"]', "study/analyse/test_analyse_belongs.py"),
    Mutant("N7: study: selection rates stand at the neighbour's name", f"{UNSEAM}show/pages/study.py",
           '[selector_name(name) for name in names])\n    return figure',
           '[selector_name(name) for name in names[::-1]])\n    return figure', "study/analyse/test_analyse_belongs.py"),
    Mutant("N8: find page: a factor's strip is the next one's", f"{UNSEAM}show/pages/find.py",
           "for j, row in enumerate(frames)}",
           "for j, row in enumerate(frames.roll(1, 0))}", "find/test_find_page.py"),
    Mutant("N9: find page: change and share of a move change places", f"{UNSEAM}show/templates/find.html",
           '{{ "%+.3g" % move.change }}',
           '{{ "%+.3g" % move.share }}', "find/test_find_page.py"),
    Mutant("N10: find page: eigenvalues coloured are one too many", f"{UNSEAM}show/pages/find.py",
           "CHOSEN if i <= numbers.major else OTHER",
           "CHOSEN if i <= numbers.major + 1 else OTHER", "find/test_find_page.py"),
    Mutant("N11: find page: nats printed are the determinacy", f"{UNSEAM}show/templates/find.html",
           "{{ shown(factor.nats) }}",
           "{{ shown(factor.determinacy) }}", "find/test_find_page.py"),
    Mutant("N12: find page: a rival's numbers in another's row", f"{UNSEAM}show/templates/find.html",
           '{{ "–" if row.get(c) is none else "%.3f" % row[c] }}',
           '{{ "–" if row.get(c) is none else "%.3f" % (f.rivals.values()|list)[0][c] }}', "find/test_find_page.py"),
    Mutant("N13: evaluate: a table row is the next member's", f"{UNSEAM}cli/evaluate.py",
           "*(_cell(each[n]) for n in names)] for m, each in scores.items()}",
           "*(_cell(list(scores.values())[m - 1][n]) for n in names)] for m, each in scores.items()}", "runs/test_runs_belongs.py"),
    Mutant("N14: evaluate --ci: the interval is half as wide", f"{UNSEAM}cli/evaluate.py",
           'f" [{score.ci[0]:.3f}, {score.ci[1]:.3f}]"',
           'f" [{score.value:.3f}, {score.ci[1]:.3f}]"', "runs/test_runs_belongs.py"),
    Mutant("N15: evaluate: scores are written under member 0", f"{UNSEAM}runs/evaluate.py",
           "run.rows.write_scores(member, {",
           "run.rows.write_scores(chosen[0], {", "runs/test_runs_belongs.py"),
    Mutant("N16: diagnose: order names positions, not members", f"{UNSEAM}runs/diagnose.py",
           '"order": [members[position] for position in order.order],',
           '"order": order.order,', "runs/test_runs_belongs.py"),
    Mutant("N17: diagnose: the chosen member is a position", f"{UNSEAM}runs/diagnose.py",
           '"chosen": members[order.order[0]]',
           '"chosen": order.order[0]', "runs/test_runs_belongs.py"),
    Mutant("N18: diagnose: the polarized regime is member 0's", f"{UNSEAM}cli/diagnose.py",
           "steps, deltas = regime(run, member)",
           "steps, deltas = regime(run, 0)", "runs/test_runs_belongs.py"),
    Mutant("N19: seeds: a member is compared with itself", f"{UNSEAM}runs/rank_members.py",
           "for step in range(1, min(OTHERS",
           "for step in range(0, min(OTHERS", "runs/test_runs_belongs.py"),
    Mutant("N20: match: the table's partner is of the pair before", f"{UNSEAM}matching/result.py",
           '{f"{self.names[pair.two]}": pair.partners, f"',
           '{f"{self.names[pair.two]}": self.pairs[0].partners, f"', "runs/test_runs_belongs.py"),
    Mutant("N21: match: stable asks one other set alone", f"{UNSEAM}matching/result.py",
           "np.all([pair.same",
           "np.any([pair.same", "runs/test_runs_belongs.py"),
    Mutant("N22: stress: the run's spread is of one column", f"{UNSEAM}perturb/stress.py",
           "encoded.x.flatten(1).var(0).mean().sqrt()",
           "encoded.x.flatten(1).var(0)[0].sqrt()", "runs/test_runs_belongs.py"),
    Mutant("N23: stress: every member is decoded by the first", f"{UNSEAM}perturb/stress.py",
           '        model = run.model(member)\n        encoded = see',
           '        model = run.model(0)\n        encoded = see', "runs/test_runs_belongs.py"),
    Mutant("N24: stress: passive latents turn too", f"{UNSEAM}perturb/stress.py",
           "for i, latent in enumerate(diagnosis.latents) if latent.active)",
           "for i, latent in enumerate(diagnosis.latents))", "runs/test_runs_belongs.py"),
    Mutant("N25: stress: a picture under another pair's radius", f"{UNSEAM}show/pages/perturb.py",
           'for ax, one in zip(axes, breaks, strict=False):\n        draw(ax, np.asarray(one.image)',
           'for ax, one in zip(axes, breaks, strict=False):\n        draw(ax, np.asarray(breaks[-1].image)', "runs/test_runs_belongs.py"),
    Mutant("N26: perturb: the page's perturbed pictures are of other rows", f"{UNSEAM}perturb/perturb_data.py",
           '"perturbed": data.batch(some_rows)',
           '"perturbed": data.batch(some_rows.flip(0))', "perturb/test_perturb_make.py::test_what_is_told_is_what_was_done"),
    Mutant("N27: perturb: gap before is gap after", f"{UNSEAM}perturb/perturb_data.py",
           '"gap_before": outcome.found.gap_before,',
           '"gap_before": outcome.found.gap_after,', "perturb/test_perturb_make.py::test_what_is_told_is_what_was_done"),
    Mutant("N28: perturb: the scalar's weights under other names", f"{UNSEAM}perturb/perturb_data.py",
           "dict(zip(names, np.round(weights, 4)",
           "dict(zip(names[::-1], np.round(weights, 4)", "perturb/test_perturb_make.py::test_what_is_told_is_what_was_done"),
    Mutant("N29: export: the card says another seed", f"{UNSEAM}runs/export.py",
           '"seed": run.members[member].seed,',
           '"seed": run.members[0].seed,', "runs/test_runs_belongs.py"),
    Mutant("N30: traverse: a latent's frames under another's values", f"{UNSEAM}show/film.py",
           "undo(traversal_frames(model.mean, z, values)[order]).float(), values[order]",
           "undo(traversal_frames(model.mean, z, values)[order]).float(), values", "runs/test_runs_belongs.py"),
    Mutant("N31: traverse: the first member is drawn", f"{UNSEAM}show/film.py",
           "model, undo = run.model(member),",
           "model, undo = run.model(0),", "runs/test_runs_belongs.py"),
    Mutant("N32: traverse: columns of a table under other names", f"{UNSEAM}show/film.py",
           "ax.plot(shown.values[k], lines[:, column], label=plain(names[column])",
           "ax.plot(shown.values[k], lines[:, column], label=plain(names[column - 1])", "runs/test_runs_belongs.py"),
    Mutant("N33: explorer: cosines of another place", f"{UNSEAM}show/explorer/at_point.py",
           "jacobian_slices(subject.decode, z[None]))",
           "jacobian_slices(subject.decode, 0 * z[None]))", "show/explorer/test_explorer_answers.py"),
    Mutant("N34: explorer: twins are positions, not latents", f"{UNSEAM}show/explorer/api.py",
           '"twin": b.active[c],',
           '"twin": int(c),', "show/explorer/test_explorer_answers.py"),
    Mutant("N35: explorer: factors of other rows than the codes", f"{UNSEAM}show/explorer/api.py",
           '"factors": _text(g.data.factors(g.rows))',
           '"factors": _text(g.data.factors(g.rows.flip(0)))', "show/explorer/test_explorer_answers.py"),
    Mutant("N36: report: the interval of MIG is another member's", f"{UNSEAM}show/report/collect.py",
           'encoded = encode_member(run, view.member, row_sample)\n        mig',
           'encoded = encode_member(run, 0, row_sample)\n        mig', "show/test_show_belongs.py"),
    Mutant("N37: report: entanglement cost is not per beta", f"{UNSEAM}show/report/tiles.py",
           'f"{view.cost:.3f}", beside',
           'f"{d.entanglement_cost:.3f}", beside', "show/test_show_belongs.py"),
    Mutant("N38: choose: ties by cost come first", f"{UNSEAM}runs/rank_members.py",
           "np.lexsort((cost, distance, pruned, active != stable))",
           "np.lexsort((distance, cost, pruned, active != stable))", "runs/test_one_choice.py"),
    Mutant("N39: choose: the stable count is the smallest", f"{UNSEAM}runs/rank_members.py",
           "return max(chose) if chose",
           "return min(chose) if chose", "runs/test_one_choice.py"),
    Mutant("N40: choose: udr counts against", f"{UNSEAM}runs/rank_members.py",
           "{name: -np.asarray(values, dtype=float) for name, values in (beside or {})",
           "{name: np.asarray(values, dtype=float) for name, values in (beside or {})", "runs/test_one_choice.py"),
)  # fmt: skip


MODELS = (  # numbers of models that were not trained here, of a part of their latents, and of the demo's page
    Mutant("V1: as_run drops s2", f"{UNSEAM}runs/adapted_run.py",
           "p = as_likelihood(likelihood_of(adapted, likelihood, s2))",
           "p = as_likelihood(likelihood_of(adapted, likelihood, None))", "runs/test_models_belong.py::test_settings_reach_the_number"),
    Mutant("V2: variances of a part are the first latents'", f"{UNSEAM}geometry/adapted.py",
           "return None if values is None else values.flatten(1)[:, chosen.to(values.device)]",
           "return None if values is None else values.flatten(1)[:, : len(chosen)]", "runs/test_models_belong.py::test_a_part_has_the_posterior_of_its_own_latents"),
    Mutant("V3: page: s2 of an adapted model is another", f"{UNSEAM}show/report/provenance.py",
           '"likelihood": p.likelihood + (f", s2 {p.s2:g}"',
           '"likelihood": p.likelihood + (f", s2 {2 * p.s2:g}"', "runs/test_models_belong.py::test_settings_reach_the_number"),
    Mutant("V4: diagnose FILE.py --theorems without likelihood", f"{UNSEAM}cli/diagnose.py",
           "table = theorems(model, x, likelihood=self.likelihood, seed=self.seed)",
           "table = theorems(model, x, seed=self.seed)", "runs/test_models_belong.py::test_the_command_line_passes_on_what_it_was_given"),
    Mutant("V5: factors of a named data set are of other rows", f"{UNSEAM}cli/model_file.py",
           "found.factors(rows).numpy()",
           "found.factors(rows.flip(0)).numpy()", "runs/test_models_belong.py::test_factors_of_a_named_data_set_are_of_the_rows_that_are_read"),
    Mutant("V6: match FILE.py: every set is the first model", f"{UNSEAM}cli/match.py",
           "return [load_model(place) for place in self.things], x",
           "return [load_model(self.things[0]) for place in self.things], x", "runs/test_models_belong.py::test_the_command_line_passes_on_what_it_was_given"),
    Mutant("V7: explore drops latents", f"{UNSEAM}show/any_model.py",
           "run = as_run(model, data, latents=latents, factors=factors, out=out)",
           "run = as_run(model, data, factors=factors, out=out)", "runs/test_models_belong.py::test_the_explorer_has_the_latents_that_were_chosen"),
    Mutant("V8: beta given to as_run is 1", f"{UNSEAM}runs/adapted_run.py",
           "p, weight or 1.0, source)",
           "p, 1.0, source)", "runs/test_models_belong.py::test_settings_reach_the_number"),
    Mutant("V9: covariances come back in another order", f"{UNSEAM}models/adapters/base.py",
           "L[:, rows, columns]], 1)",
           "L[:, rows, columns].flip(1)], 1)", "runs/test_models_belong.py::test_a_full_posterior_of_many_latents_comes_back"),
    Mutant("V10: a model without posterior is not whitened by align", f"{UNSEAM}runs/any_model.py",
           "whiten=(adapted.variances is None and adapted.covariances is None) if whiten is None else whiten,",
           "whiten=bool(whiten),", "runs/test_models_belong.py::test_a_model_without_posterior_is_whitened_unless_asked_otherwise"),
    Mutant("V11: theorems of a model drops beta", f"{UNSEAM}runs/any_model.py",
           "p, known = likelihood_of(adapted, likelihood, s2), beta_of(adapted, beta)",
           'p, known = likelihood_of(adapted, likelihood, s2), beta_of(adapted, "auto")', "runs/test_models_belong.py::test_settings_reach_the_number"),
    Mutant("V12: align drops likelihood", f"{UNSEAM}runs/any_model.py",
           "p, weight, source = likelihood_of(adapted, likelihood, s2)",
           "p, weight, source = likelihood_of(adapted, likelihood, None)", "runs/test_models_belong.py::test_settings_reach_the_number"),
    Mutant("V13: traverse: what the decoder takes is of row 0", f"{UNSEAM}show/any_model.py",
           "start = adapted.points[middle(codes) if row is None else row]",
           "start = adapted.points[0 if row is None else row]", "runs/test_models_belong.py::test_a_film_without_a_row_starts_where_codes_are_typical"),
    Mutant("V14: rows of a part: beta of the first latents", f"{UNSEAM}geometry/adapted.py",
           "index = part_index(model, latents, most).tolist()",
           "index = list(range(part.codes.shape[1]))", "runs/test_models_belong.py::test_beta_of_a_part_is_of_its_own_latents"),
    Mutant("V15: demo page: texts of the two members change places", f"{UNSEAM}show/pages/demo.py",
           'texts = list(reversed(why)) or [""]',
           'texts = list(why) or [""]', "show/test_show_demo.py::test_its_page_shows_both_examples_and_leads_on"),
    Mutant("V16: the certificate says the criterion of the raw columns", f"{UNSEAM}finding/linear.py",
           "structure = scores.structure if scores and not scores.structure.simple else structure",
           "structure = structure", "find/test_simplicity.py::test_the_exponential_of_dense_columns_is_not_found"),
    Mutant("V17: a part of a full posterior is the marginal one", f"{UNSEAM}geometry/adapted.py",
           "        return torch.linalg.inv(torch.linalg.inv(values.double())[:, at][:, :, at]).to(values)",
           "        return values[:, at][:, :, at]", "geometry/test_geometry_groups.py::test_a_part_of_a_full_posterior_is_the_one_given_the_other_latents"),
    Mutant("V18: beta of a part is that of the held decoder", f"{UNSEAM}geometry/adapted.py",
           "if part is model or model.variances is None:",
           "if True or model.variances is None:", "geometry/test_geometry_groups.py::test_beta_of_a_part_is_estimated_with_each_rows_own_other_latents"),
    Mutant("V19: a decoder with codes has an encoder, which takes observations for codes", f"{UNSEAM}runs/any_model.py",
           "adapted.kind != DECODER_ALONE",
           "adapted.kind != 0", "geometry/test_geometry_groups.py::test_a_decoder_with_codes_has_no_encoder_and_one_that_is_given_gives_the_chosen_latents"),
    Mutant("V20: the Sigma identity is asked of a decoder whose other latents are held", f"{UNSEAM}runs/any_model.py",
           "found = theorem_table(q, adapted.data, points, seed, held)",
           "found = theorem_table(q, adapted.data, points, seed)", "geometry/test_geometry_groups.py::test_the_sigma_identity_is_not_asked_where_latents_are_held"),
    Mutant("V21: a decoder that is flat at two codes is called cut", f"{UNSEAM}geometry/decoder_checks.py",
           "MANY_PROBES = 64",
           "MANY_PROBES = 4", "geometry/test_geometry_groups.py::test_a_decoder_whose_units_are_off_at_some_codes_is_not_called_cut"),
    Mutant("V22: a run with other data loses its networks", f"{UNSEAM}run/load.py",
           "return run if data is None else replace(run, other_data=_other_data(run, data))",
           "return run if data is None else replace(run, other_data=_other_data(run, data), networks=None)", "runs/test_adapted_run.py::test_a_run_with_other_data_has_its_own_networks_and_takes_no_others"),
    Mutant("V23: numbers of one model are shown as those of other networks", f"{UNSEAM}run/load.py",
           "    if run.config.adapted:\n",
           "    if False:\n", "runs/test_adapted_run.py::test_a_run_with_other_data_has_its_own_networks_and_takes_no_others"),
    Mutant("V24: a model's file imports the neighbours of another", f"{UNSEAM}cli/model_file.py",
           "    _forget_neighbours(file.parent)\n",
           "", "runs/test_adapted_run.py::test_a_file_imports_its_own_neighbours"),
    Mutant("V25: beta of a full posterior is called given", f"{UNSEAM}runs/adapted_run.py",
           "point = adapted.variances is None and adapted.covariances is None",
           "point = adapted.variances is None", "runs/test_adapted_run.py::test_beta_of_a_full_posterior_is_called_an_estimate"),
    Mutant("V26: find: planes of normal scores are in another order", f"{UNSEAM}finding/linear.py",
           "other.structure.undecided[np.ix_(near.columns, near.columns)]",
           "other.structure.undecided", "find/test_simplicity.py::test_planes_of_normal_scores_are_those_of_the_same_factors"),
    Mutant("V27: xla: calls of fewer held-out batches weigh as much", f"{UNSEAM}train/xla.py",
           "parts.append(size / batches * self._means(drawn, size))",
           "parts.append(self._means(drawn, size) / len(self.kept[1]))",
           "train/test_train_xla.py::test_means_over_held_out_batches_do_not_depend_on_how_they_are_cut"),
    Mutant("V28: report: DtO and its chance level change places", f"{UNSEAM}show/report/sentences.py",
           "(DtO {d.dto:.2f}; random axes give {d.dto_haar:.2f})",
           "(DtO {d.dto_haar:.2f}; random axes give {d.dto:.2f})", "show/test_show_parts.py::test_words_follow_the_numbers"),
    Mutant("V29: scvi-tools: a gene has the dispersion of another", f"{UNSEAM}models/adapters/scvi_tools.py",
           "nn.Parameter(dispersion.detach().clone()", "nn.Parameter(dispersion.detach().clone().flip(0)",
           "models/test_adapters.py::test_each_gene_of_a_negative_binomial_has_its_own_dispersion"),
)  # fmt: skip


FAULTS = (  # docs/reliability.md: what each mending of D1 to D18 would let through without it
    Mutant("D1: a run without its tables cannot be resumed", f"{UNSEAM}train/fitting.py",
           "    run.rows.create()\n    user_files.check", "    user_files.check", "train/test_train_results.py::test_a_run_can_be_started_or_resumed_wherever_it_died"),
    Mutant("D2: a byte-order mark makes the first row a header", f"{UNSEAM}readers/tables.py",
           'with path.open(encoding="utf-8-sig", newline="") as file:', 'with path.open(encoding="utf-8", newline="") as file:', "data/test_read.py::test_no_first_row_and_no_column_is_lost"),
    Mutant("D2: a blank first line makes the first row a header", f"{UNSEAM}readers/tables.py",
           "        elif line.strip():\n", "        else:\n", "data/test_read.py::test_no_first_row_and_no_column_is_lost"),
    Mutant("D2: quoted numbers are a header", f"{UNSEAM}readers/tables.py",
           "cells = next(reader) if first else []", "cells = first.split(mark) if first else []",
           "data/test_read.py::test_no_first_row_and_no_column_is_lost"),
    Mutant("D2: an empty cell in row 1 makes it a header", f"{UNSEAM}readers/tables.py",
           'all(is_number(cell.replace(decimal, ".")) for cell in cells if cell)', 'all(is_number(cell.replace(decimal, ".")) for cell in cells)', "data/test_read.py::test_bad_text_is_refused_by_name"),
    Mutant("D2: a comment above the table is its header", f"{UNSEAM}readers/tables.py",
           'if line.lstrip().startswith("#"):', "if False:", "data/test_read.py::test_no_first_row_and_no_column_is_lost"),
    Mutant("D2: pandas takes the first column as the index", f"{UNSEAM}readers/tables.py",
           "skiprows=skipped + named, index_col=False,", "skiprows=skipped + named,", "data/test_read.py::test_bad_text_is_refused_by_name"),
    Mutant("D2: score does not say what it read", f"{UNSEAM}cli/score.py",
           'log.info(f"read {file.reading_note}")', "pass", "metrics/test_metrics_files.py::test_what_was_read_is_said"),
    Mutant("D3: a run is explained on other data", f"{UNSEAM}run/run.py",
           "        user_files.check_digests(self.config.data, self.config.digests, self.folder)\n", "", "train/test_train_folder.py::test_other_data_than_it_was_trained_on_is_refused"),
    Mutant("D3: a run goes on with other pairs", f"{UNSEAM}train/fitting.py",
           '    user_files.check_digests(run.config.data, run.config.digests, run.folder, run.config.static.get("pairs"))\n', "", "train/test_train_folder.py::test_other_pairs_than_it_was_begun_with_are_refused"),
    Mutant("D3: a run on perturbed data does not see that its base changed", f"{UNSEAM}run/user_files.py",
           '        found |= {f"base.{key}": path for key, path in below.items()}\n', "", "train/test_train_folder.py::test_a_base_that_changed_is_seen_through_a_perturbed_folder"),
    Mutant("D4: SIGTERM to the parent of several processes writes no checkpoint", f"{UNSEAM}train/workers.py",
           "                if interrupted.is_set():\n                    raise Interrupted(job.folder)\n", "", "train/test_train_workers.py::test_a_signal_to_the_first_process_leaves_a_checkpoint_of_every_worker"),
    Mutant("D4: workers are not asked for a last checkpoint", f"{UNSEAM}train/workers.py",
           "                worker.process.terminate()\n", "                worker.process.kill()\n", "train/test_train_workers.py::test_a_signal_to_the_first_process_leaves_a_checkpoint_of_every_worker"),
    Mutant("D4: a closed terminal writes no checkpoint", f"{UNSEAM}train/stopping.py",
           '("SIGINT", "SIGTERM", "SIGHUP")', '("SIGINT", "SIGTERM")', "train/test_train_workers.py::test_a_signal_to_the_first_process_leaves_a_checkpoint_of_every_worker"),
    Mutant("D5: all members diverging is a TypeError", f"{UNSEAM}run/results.py",
           'if kind == "real"})  # all null is nan', 'if kind == "nothing"})', "cli/test_cli_main.py::test_all_members_diverging_is_a_table"),
    Mutant("D5: --eps 0 with relu breaks every member", f"{UNSEAM}train/stack.py",
           "eps = s.eps or torch.finfo(self.parameter.dtype).tiny", "eps = s.eps", "cli/test_cli_main.py::test_adam_without_epsilon_survives_dead_units"),
    Mutant("D6: a folder that cannot be written cannot be read", f"{UNSEAM}run/results.py",
           'return _checked(sqlite3.connect(f"{place}?mode=ro&immutable=1", uri=True))', "raise", "train/test_train_results.py::test_reading_needs_no_right_to_write"),
    Mutant("D6: a read opens the table for writing", f"{UNSEAM}run/results.py",
           "        if not read_only:\n", "        if True:\n", "train/test_train_results.py::test_reading_needs_no_right_to_write"),
    Mutant("D7: what the machine does is a traceback", f"{UNSEAM}cli/__init__.py",
           "    except ENVIRONMENT as error:\n", "    except ZeroDivisionError as error:\n", "cli/test_cli_main.py::test_what_the_machine_does_is_one_line"),
    Mutant("D7: a path that cannot be is the machine's fault", f"{UNSEAM}cli/__init__.py",
           "2 if isinstance(error, PATH_ERRORS) or is_damage(error) else 1", "1", "cli/test_cli_main.py::test_a_path_that_cannot_be_is_bad_input"),
    Mutant("D7: broken files raise what they like", f"{UNSEAM}readers/limits.py",
           "    except DAMAGE as error:\n", "    except OSError as error:\n", "data/test_read.py::test_flipped_bytes_never_end_in_a_traceback"),
    Mutant("D8: paths are read as markup", f"{UNSEAM}cli/common.py",
           "stdout = SafeConsole(markup=False,", "stdout = SafeConsole(markup=True,", "cli/test_cli_paths.py"),
    Mutant("D9: every group's number goes into one pipe before a worker runs", f"{UNSEAM}train/workers.py",
           "        running = [start() for _ in range(workers)]\n",
           "        running = [start() for _ in range(workers)]\n        for number in todo:\n            running[0].process.send(number)\n",
           "train/test_train_folder.py::test_many_groups_do_not_fill_a_pipe"),
    Mutant("D10: mcc is 0 for codes of small scale", f"{UNSEAM}stats/correlation.py",
           "    x = x / np.where(largest > 0, largest, 1.0)\n", "", "statistics/test_statistics.py::test_correlation_does_not_depend_on_scale"),
    Mutant("D11: a run folder that is moved loses its own array", f"{UNSEAM}run/user_files.py",
           "return {**data, **{key: str(path.relative_to(home)) for key, path in inside.items()}}", "return dict(data)", "train/test_train_folder.py::test_a_folder_can_be_moved"),
    Mutant("D12: a data file cut short kills the process", f"{UNSEAM}readers/npy.py",
           "    if header.bytes > READ_WHOLE and not header.fortran:\n        return rows\n",
           "    if header.bytes > READ_WHOLE and not header.fortran:\n        return np.memmap(path, header.dtype, 'r', offset + header.start, header.shape)\n", "data/test_data_user.py::test_a_large_file_cut_short_while_in_use_is_refused_and_does_not_kill"),
    Mutant("D13: temporary files of killed writers stay", f"{UNSEAM}train/fitting.py",
           "        remove_leftovers(run.folder, run.folder / \"checkpoints\")\n", "        pass\n", "train/test_train_results.py::test_temporary_files_of_dead_processes_go_when_a_run_is_resumed"),
    Mutant("D14: a killed worker's group is not given to another", f"{UNSEAM}train/workers.py",
           "    if worker.group < 0 or deaths[worker.group] > 1:\n", "    if True:\n", "train/test_train_workers.py::test_the_group_of_a_killed_worker_goes_on_in_another"),
    Mutant("D14: nobody is told that a worker died", f"{UNSEAM}train/workers.py",
           '    log.warning(f"{text}; another process continues its group")\n', "", "train/test_train_workers.py::test_the_group_of_a_killed_worker_goes_on_in_another"),
    Mutant("D15: an integer of 400 digits is a 500", f"{UNSEAM}show/explorer/checks.py",
           "    if not abs(value) <= largest:  #", "    if not math.isfinite(value) or abs(value) > largest:  #", "show/explorer/test_explorer_guard.py::test_a_bad_point_is_refused_in_one_line"),
    Mutant("D15: an infinite variance is a 500", f"{UNSEAM}show/explorer/member.py",
           "torch.isfinite(torch.stack([mean, variance])).all()", "torch.isfinite(mean).all()", "show/explorer/test_explorer_guard.py::test_a_variance_without_bounds_is_refused"),
    Mutant("D15: a 500 has no policy", f"{UNSEAM}show/explorer/guard.py",
           "            if not started:\n", "            if False:\n", "show/explorer/test_explorer_guard.py::test_a_bug_is_answered_with_the_policy_and_without_its_traceback"),
    Mutant("D15: half-open connections keep the page waiting", f"{UNSEAM}show/explorer/server.py",
           "        if len(others) >= CONNECTIONS:\n", "        if False:\n", "show/explorer/test_explorer_guard.py::test_silent_connections_do_not_keep_the_page_waiting"),
    Mutant("D15: any number of pictures is unpacked at once", f"{UNSEAM}show/explorer/upload.py",
           "DECODING = Semaphore(2)", "DECODING = Semaphore(99)", "show/explorer/test_explorer_guard.py::test_few_pictures_are_unpacked_at_once"),
    Mutant("D16: exhibits.html has no policy", f"{PAPERS}frame/templates/exhibits.html",
           '<meta http-equiv="Content-Security-Policy"', '<meta name="nothing"', "papers/test_exhibits.py::test_the_folder_can_be_moved_and_no_other_file_is_put_on_the_page"),
    Mutant("D16: exhibits.html takes a figure from anywhere", f"{PAPERS}frame/page.py",
           'path = out / "figures" / f"{name}.svg"', 'path = out / f"{name}.svg"', "papers/test_exhibits.py::test_the_folder_can_be_moved_and_no_other_file_is_put_on_the_page"),
    Mutant("D16: the objectives page has no policy", f"{UNSEAM}show/templates/objectives.html",
           '<meta http-equiv="Content-Security-Policy"', '<meta name="nothing"', "faults/test_faults.py::test_every_page_has_a_policy_without_scripts_of_others"),
    Mutant("D17: a damaged note stops everything", f"{UNSEAM}data/cache.py",
           "with suppress(OSError, ValueError, TypeError):  # no note", "with suppress(OSError):  # no note", "faults/test_faults.py::test_a_note_or_a_cache_that_is_damaged_costs_time_only"),
    Mutant("D17: a note that cannot be kept stops everything", f"{UNSEAM}data/cache.py",
           "with suppress(OSError):  # a folder", "with suppress(ZeroDivisionError):  # a folder", "faults/test_faults.py::test_a_note_or_a_cache_that_is_damaged_costs_time_only"),
    Mutant("D17: a cache of another shape is used", f"{UNSEAM}data/cache.py",
           "        if array.shape == shape:\n", "        if True:\n", "faults/test_faults.py::test_a_note_or_a_cache_that_is_damaged_costs_time_only"),
    Mutant("D17: a damaged step stops reproduce", f"{PAPERS}frame/exhibit.py",
           "with suppress(OSError, ValueError):  # not there yet", "with suppress(OSError):  # not there yet", "papers/test_exhibits.py::test_a_damaged_step_is_made_again"),
    Mutant("D17: a damaged exhibits.json is a traceback", f"{PAPERS}frame/run.py",
           "except (ValueError, TypeError, LookupError, AttributeError, RecursionError, UndefinedError) as error:", "except ZeroDivisionError as error:", "papers/test_exhibits.py::test_a_damaged_document_is_one_line"),
    Mutant("D18: --seeds 1.5 trains seed 1", f"{UNSEAM}cli/train.py",
           'seeds = parse_numbers(self.seeds, "--seeds", int)', 'seeds = [int(s) for s in parse_numbers(self.seeds, "--seeds")]', "cli/test_cli_main.py::test_bad_input_is_one_line_and_exit_2"),
    Mutant("D18: a seed twice trains twins", f"{UNSEAM}run/config.py",
           "if count > 1]:\n", "if count > 99]:\n", "train/test_train_cohort.py::test_bad_settings_are_refused_before_anything_is_written"),
    Mutant("D18: a hundred thousand million seeds are listed", f"{UNSEAM}cli/common.py",
           "        if end - start >= _MANY:\n", "        if end - start >= 10 * _MANY:\n", "cli/test_cli_options.py"),
    Mutant("D18: --resume ignores flags", f"{UNSEAM}cli/train.py",
           "        if self.data is not None or others:\n", "        if False:\n", "cli/test_cli_main.py::test_bad_input_is_one_line_and_exit_2"),
    Mutant("D18: the way on is not quoted for the shell", f"{UNSEAM}train/workers.py",
           "shlex.quote(str(folder))", "str(folder)", "train/test_train_results.py::test_a_full_disk_says_how_to_go_on"),
)  # fmt: skip


EVERY = (*MUTANTS, *JOINTS, *SILENT, *NUMBERS, *MODELS, *FAULTS)


def copied(place: Path) -> Path:
    """A copy of src; the benchmarks, which `unseam bench` looks for beside it, come along."""
    shutil.copytree(ROOT / "benchmarks", place / "benchmarks")
    return Path(shutil.copytree(ROOT / "src", place / "src"))


def mutate(src: Path, mutant: Mutant) -> None:
    path = src / mutant.file
    text = path.read_text("utf-8")
    if text.count(mutant.line) != 1:
        raise SystemExit(
            f"{mutant.file} holds {mutant.line!r} {text.count(mutant.line)} times, not once: mend the list"
        )
    path.write_text(text.replace(mutant.line, mutant.mutated), "utf-8")


def outcome(src: Path, tests: str) -> str:
    """What a test file says of this source: "passed", "failed", or why there is no answer.

    In a fork of this process, which has imported what takes long to import, but not unseam.
    """
    for name in HEAVY:
        importlib.import_module(name)
    if any(name.split(".")[0] in ("unseam", "unseam_papers") for name in sys.modules):
        raise SystemExit("unseam is imported already, so that a mutant of it would not be seen")
    with tempfile.TemporaryFile() as text:
        pid = os.fork()
        if pid == 0:
            os._exit(_run_tests(src, tests, text.fileno()))
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        text.seek(0)
        printed = text.read().decode(errors="replace")
    if -status in (signal.SIGALRM, signal.SIGBUS):  # it waited for ever, or read beyond a file's end
        return "failed"
    if status in (0, 1):
        return ("passed", "failed")[status]
    return f"pytest ended with code {status}\n{printed[-3000:]}"


def _run_tests(src: Path, tests: str, output: int) -> int:
    """Pytest in the fork; what waits for ever is killed."""
    import pytest

    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(ROOT)
    sys.path.insert(0, str(src))
    os.environ["PYTHONPATH"] = str(src)
    signal.alarm(1800)
    code = int(pytest.main(["-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", f"tests/{tests}"]))
    if code in (0, 1) and Path(importlib.import_module("unseam").__file__ or "").parents[1] != src:
        print("the tests imported another unseam")
        code = 99
    sys.stdout.flush()
    return code


def mutated_outcome(mutant: Mutant) -> str:
    with tempfile.TemporaryDirectory() as place:
        src = copied(Path(place))
        mutate(src, mutant)
        return outcome(src, mutant.tests)


def state() -> str:
    """A digest of src and tests, so that a result is not taken for that of other code."""
    digest = hashlib.sha256()
    for path in sorted(p for top in ("src", "tests") for p in (ROOT / top).rglob("*") if p.suffix != ".pyc"):
        if path.is_file():
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


class Results:
    """Outcomes by what was run; written to a file as they come, if there is one."""

    def __init__(self, log: Path | None) -> None:
        self.log, self.state, self.known = log, state(), dict[str, str]()
        for line in log.read_text("utf-8").splitlines() if log is not None and log.exists() else ():
            with_state, name, word = json.loads(line)
            if with_state == self.state:
                self.known[name] = word

    def of(self, name: str, run: Callable[[], str]) -> str:
        if name not in self.known:
            self.known[name] = run()
            if self.log is not None:
                with self.log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([self.state, name, self.known[name]]) + "\n")
        return self.known[name]


def main(words: list[str], log: Path | None = None) -> int:
    """Run the mutants named; the exit code is how many live, or have no answer."""
    chosen = [m for m in EVERY if not words or any(word in m.wrong for word in words)]
    results, dead = Results(log), 0
    for mutant in chosen:
        tests = mutant.tests
        whole = results.of(f"unchanged: {tests}", lambda tests=tests: outcome(ROOT / "src", tests))
        found = f"tests/{tests} without any mutant: {whole}"
        if whole == "passed":
            found = results.of(mutant.wrong, lambda mutant=mutant: mutated_outcome(mutant))
        dead += found == "failed"
        word = {"failed": "dies ", "passed": "LIVES"}.get(found, "ERROR")
        print(f"{word}  {mutant.wrong}  (tests/{tests}){'' if word != 'ERROR' else chr(10) + found}", flush=True)
    print(f"{dead} of {len(chosen)} die")
    return len(chosen) - dead


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--log", type=Path)
    asked = parser.parse_args()
    sys.exit(main(asked.words, asked.log))

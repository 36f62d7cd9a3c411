// One model: its pictures, its sliders, its geometry and its codes. It knows a point z and nothing of the other model.

import * as api from "/api.js";
import { along } from "/curves.js";
import { h, notice, number } from "/dom.js";
import { frame } from "/frame.js";
import { cosineMatrix, costWords, singularValues } from "/matrix.js";
import { beyond, outside } from "/outside.js";
import { kind, show, showSigned } from "/picture.js";
import { Slider } from "/sliders.js";

const QUIET = 80; // ms without a move before the geometry is asked for
const failed = (error) => notice(error.message, true);

export class Panel {
  constructor(app, letter, model) {
    Object.assign(this, { app, letter, model, z: null, start: null, curve: null, sliders: [], twins: {} });
    this.decoding = new api.Latest((z) => this.decode(z), failed);
    this.measuring = new api.Latest((z) => this.measure(z), failed);
    Object.assign(this, frame(this));
  }

  // The model's latents and codes, as it is or aligned.
  async open(model = this.model) {
    const found = await api.model(model, this.app.aligned);
    this.model = model;
    this.pick.value = model;
    this.info = {
      ...found,
      codes: api.floats(found.codes),
      values: api.floats(found.factors),
      cloud: api.floats(found.cloud),
    };
    this.order = found.latents.map((l) => l.latent);
    this.broken = found.broken ?? "";
    this.apology.textContent = this.broken;
    this.apology.hidden = !this.broken;
    this.grid.hidden = this.keep.hidden = Boolean(this.broken);
    this.facts.textContent = this.words();
    if (this.broken) return this.forget();
    if (found.unread) notice(found.unread, true);
    this.scatter.set({ ...this.info });
    return this.layOut();
  }

  words() {
    const { objective, hyper, seed, latents, chosen } = this.app.about.models.find((m) => m.model === this.model);
    const active = this.info.latents.filter((l) => l.active).length;
    const used = this.broken ? "" : `${active} of ${latents} latents active`;
    const choice = chosen ? "chosen without labels" : "";
    return [objective, hyper, `seed ${seed}`, used, choice].filter(Boolean).join(" · ");
  }

  // A broken model has no point and draws nothing.
  forget() {
    clearTimeout(this.pause);
    Object.assign(this, { z: null, start: null, x: null, beginning: null, found: null, curve: null, sliders: [] });
    delete this.element.dataset.z;
  }

  async rename(latent, words) {
    try {
      const names = await api.name(this.model, latent, words);
      for (const row of this.info.latents) row.name = names[row.latent] ?? "";
      this.scatter.set({ ...this.info });
    } catch (error) {
      failed(error);
    }
    this.layOut();
  }

  // What each latent is called in the other panel: the one it is most like, one to one, above chance.
  pair(other, twins, first) {
    this.twins = {};
    for (const row of other ? this.info.latents.filter((l) => l.active) : [])
      this.twins[row.latent] = `not in ${other.letter}`;
    for (const { latent, twin, agreement } of twins) {
      const [own, its] = first ? [latent, twin] : [twin, latent];
      const name = other.info.latents.find((l) => l.latent === its).name || `z${its}`;
      this.twins[own] = `${other.letter}: ${name} ${agreement.toFixed(2)}`;
    }
    this.layOut();
  }

  layOut() {
    const { axes } = this.app;
    this.curve = null;
    this.heading.textContent = axes === "latents" ? "Latents" : "Singular curves";
    this.sliders =
      axes === "latents" ? this.info.latents.map((l) => this.latent(l)) : this.order.map((_, i) => this.singular(i));
    const first = this.info.latents.filter((l) => l.active).length || this.sliders.length;
    const [shown, rest] = [this.sliders.slice(0, first), this.sliders.slice(first)].map((some) =>
      some.map((s) => s.element),
    );
    const what = axes === "latents" ? "passive latents" : "weak directions";
    this.rows.replaceChildren(
      ...shown,
      ...(rest.length
        ? [
            h(
              "details",
              {},
              h("summary", {}, `${rest.length} ${what}`.slice(0, rest.length === 1 ? -1 : undefined)),
              ...rest,
            ),
          ]
        : []),
    );
    if (this.z) this.refresh();
  }

  latent({ latent, name, factor, share, kl, active, low, high, within }) {
    const tag = active && factor ? `${factor} ${Math.round(100 * share)} %` : "";
    const spec = {
      label: `z${latent}`,
      name,
      rename: this.info.own ? (words) => this.rename(latent, words) : null,
      title: `Latent ${latent}`,
      within: active ? within : null,
      tag,
      says: [kl === null ? "" : `${number(kl, 2)} nats`, this.twins[latent]].filter(Boolean).join(" · "),
      low,
      high,
      step: (high - low) / 60,
    };
    return new Slider({ ...spec, key: latent }, (...move) => this.slide(latent, ...move));
  }

  singular(i) {
    const spec = {
      key: i,
      label: `v${i + 1}`,
      title: `Singular curve ${i + 1}`,
      says: "",
      low: -3,
      high: 3,
      step: 0.1,
    };
    return new Slider(spec, (...move) => along(this, i, ...move));
  }

  slide(latent, value, settled, fresh) {
    if (this.app.busy) return this.refresh();
    this.app.before(`${this.letter}${latent}`, fresh);
    const z = [...this.z];
    z[latent] = value;
    this.move(z);
    return this.app.moved(this, settled);
  }

  // Go to z; `curve` is kept only while one is followed.
  move(z, curve = null) {
    this.curve = curve;
    this.z = z;
    this.refresh();
  }

  begin(start, z = start) {
    this.start = start;
    this.beginning = null;
    this.move(z);
  }

  refresh() {
    const latents = this.app.axes === "latents";
    for (const slider of this.sliders) {
      slider.set(latents ? this.z[slider.spec.key] : this.curve?.component === slider.spec.key ? this.curve.t : 0);
      slider.begin(latents ? this.start[slider.spec.key] : 0);
    }
    this.scatter.move(this.z, this.start);
    this.warn();
    this.decoding.ask(this.z);
    clearTimeout(this.pause);
    this.pause = setTimeout(() => this.measuring.ask(this.z), QUIET);
    this.app.note();
  }

  // Where there is no data, what is drawn is made up: say so.
  warn() {
    this.outside.textContent = outside(this.info, this.z);
    const far = new Set(beyond(this.info.latents, this.z).map((l) => l.latent));
    for (const { element, spec } of this.sliders)
      element.classList.toggle("beyond", this.app.axes === "latents" && far.has(spec.key));
  }

  point = (z) => ({ model: this.model, aligned: this.app.aligned, z });

  async decode(z) {
    if (this.broken) return;
    const began = performance.now();
    const { start } = this;
    const beginning = this.beginning ?? (await api.decode(this.point(start)));
    if (this.start === start) this.beginning = beginning;
    this.x = z === start ? beginning : await api.decode(this.point(z));
    this.element.dataset.z = JSON.stringify(z); // what is drawn, and how long it took
    this.element.dataset.ms = (performance.now() - began).toFixed(1);
    this.paint();
    this.app.decoded(this);
  }

  paint() {
    const { shape } = this.app.about.data;
    if (!this.x || !this.beginning) return;
    const input = this.app.input?.x ?? this.beginning;
    const { cloud } = this.info;
    const reference = this.app.against === "input" ? input : this.beginning;
    const difference = this.x.map((v, i) => v - reference[i]);
    show(this.canvases.input, input, shape, { cloud });
    show(this.canvases.decoded, this.x, shape, { cloud, behind: this.app.input?.x, columns: this.arrows });
    showSigned(this.canvases.difference, difference, shape, 1);
    this.caption.textContent = this.app.input ? this.app.input.caption : "start";
    this.known.textContent = this.app.input?.known ?? "";
    this.against.value = this.app.against;
  }

  // The column of a table that is pointed at, and its value there.
  named(share, canvas) {
    const { features } = this.app.about.data;
    const x = canvas === this.canvases.input ? (this.app.input?.x ?? this.beginning) : this.x;
    if (!features.length || !x) return "";
    const i = Math.round(Math.min(Math.max((300 * share - 8) / 284, 0), 1) * (x.length - 1));
    return `${features[i]}: ${number(x[i])}`;
  }

  async measure(z) {
    if (this.broken) return;
    const found = await api.geometry({ ...this.point(z), axes: this.app.axes });
    this.found = { ...found, columns: api.floats(found.columns), axes: this.app.axes };
    this.element.dataset.cost = found.cost;
    this.sketch();
  }

  // Draw the geometry that was last measured.
  sketch() {
    const { found } = this;
    if (found?.axes !== this.app.axes || found.norms.length !== this.order.length) return;
    const { shape, features, units } = this.app.about.data;
    const { columns } = found;
    const n = columns.length / this.order.length;
    const column = (k) => columns.subarray(k * n, (k + 1) * n);
    const active = this.info.latents.filter((l) => l.active).map((l) => l.latent);
    const largest = columns.reduce((most, v) => Math.max(most, Math.abs(v)), 1e-9);
    this.sliders.forEach((s) =>
      s.column(column(s.spec.key), shape, largest, found.norms[s.spec.key], { features, units }),
    );
    if (this.app.axes === "singular")
      this.sliders.forEach((s, i) => (s.says.textContent = mixture(found.vectors, i, found.singular[i])));
    this.arrows = active.map((k) => [`z${k}`, column(k)]);
    const compared = active.length > 1 ? active : this.order;
    this.matrix.replaceChildren(cosineMatrix(compared, found.cosines, found.pairs));
    this.values.replaceChildren(singularValues(found.singular));
    this.cost.replaceChildren(costWords(found, this.info.beta));
    if (kind(shape) === "cloud") this.paint();
  }
}

// A singular vector in latents: the two it is mostly made of.
function mixture(vectors, i, s) {
  const parts = vectors.map((row, k) => [row[i], k]).sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]));
  const words = parts
    .slice(0, 2)
    .filter(([v]) => Math.abs(v) > 0.1)
    .map(([v, k]) => `${Math.abs(v).toFixed(1)} z${k}`);
  return `s ${number(s, 2)} · ${words.join(", ")}`;
}

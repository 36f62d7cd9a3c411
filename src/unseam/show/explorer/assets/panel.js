// One model: its pictures, its sliders, its geometry and its codes. It knows a point z and nothing of the other model.

import * as api from "/api.js";
import { h, notice, number, options } from "/dom.js";
import { cosineMatrix, costWords, singularValues } from "/matrix.js";
import { kind, show, showSigned } from "/picture.js";
import { saveLatents, savePicture } from "/save.js";
import { Scatter } from "/scatter.js";
import { Slider } from "/sliders.js";

const QUIET = 80; // ms without a move before the geometry is asked for
const failed = (error) => notice(error.message, true);

export class Panel {
  // app: {about, aligned, axes, against, input} and the callbacks load, before, moved, decoded, changed, compare, close, note
  constructor(app, letter, model) {
    Object.assign(this, { app, letter, model, z: null, start: null, curve: null, sliders: [] });
    this.decoding = new api.Latest((z) => this.decode(z), failed);
    this.measuring = new api.Latest((z) => this.measure(z), failed);
    this.build();
  }

  build() {
    const { about } = this.app;
    this.pick = h("select", { class: "model", "aria-label": `Model ${this.letter}`, onchange: () => this.app.changed(this, this.pick.value) });
    options(this.pick, about.models.map((m) => [m.model, `${m.run} · member ${m.member}`]), this.model);
    this.facts = h("span", { class: "facts" });
    this.canvases = Object.fromEntries(["input", "decoded", "difference"].map((name) => [name, h("canvas", { class: kind(about.data.shape), role: "img", "aria-label": name, width: 1, height: 1 })]));
    this.against = h("select", { "aria-label": "Difference against", onchange: () => this.app.compare(this.against.value) }, h("option", { value: "input" }, "minus input"), h("option", { value: "start" }, "minus start"));
    this.captions = { input: h("span", {}, "input"), decoded: h("span", {}, "decoded"), difference: h("span", {}, "decoded ", this.against) };
    const figures = Object.entries(this.canvases).map(([name, canvas]) => h("figure", { class: name }, canvas, h("figcaption", {}, this.captions[name])));
    this.rows = h("div", { class: "rows" });
    this.heading = h("h2", {}, "Latents");
    this.matrix = h("div", { class: "square" });
    this.values = h("div");
    this.cost = h("div");
    this.scatter = new Scatter(about.data.factors, (row) => this.app.load(row));
    this.scatter.onview = () => this.app.note();
    this.close = h("button", { class: "close", "aria-label": `Close model ${this.letter}`, onclick: () => this.app.close(this) }, "×");
    this.known = h("p", { class: "hint" });
    const keep = [
      h("button", { title: "The decoded picture as PNG", onclick: () => savePicture(this.app, this) }, "Save picture"),
      h("button", { title: "The latent vector as JSON", onclick: () => saveLatents(this.app, this) }, "Save latents"),
    ];
    this.element = h("section", { class: "panel", "aria-label": `Model ${this.letter}` },
      h("header", {}, h("span", { class: "letter" }, this.letter), this.pick, this.facts, h("span", { class: "keep" }, ...keep, this.close)),
      h("div", { class: "grid" },
        h("div", { class: "column" }, h("section", { class: `pictures card ${kind(about.data.shape)}` }, ...figures, this.known),
          h("section", { class: "geometry card" }, h("h2", {}, "At this point"), this.cost,
            h("div", { class: "pair" }, h("div", {}, h("h3", {}, "cosines of Jacobian columns"), this.matrix), h("div", {}, h("h3", {}, "singular values"), this.values)))),
        h("div", { class: "column" }, h("section", { class: "latents card" }, this.heading, this.rows), this.scatter.element)));
  }

  // The model's latents and codes, as it is or aligned.
  async open(model = this.model) {
    const found = await api.model(model, this.app.aligned);
    this.model = model;
    this.pick.value = model;
    this.info = { ...found, codes: api.floats(found.codes), values: api.floats(found.factors), cloud: api.floats(found.cloud) };
    this.order = found.latents.map((l) => l.latent);
    const label = this.app.about.models.find((m) => m.model === model);
    const active = found.latents.filter((l) => l.active).length;
    this.facts.textContent = [label.objective, label.hyper, `seed ${label.seed}`, `${active} of ${label.latents} latents active`].filter(Boolean).join(" · ");
    this.scatter.set({ ...this.info });
    this.layOut();
  }

  layOut() {
    const { axes } = this.app;
    this.curve = null;
    this.heading.textContent = axes === "latents" ? "Latents" : "Singular curves";
    this.sliders = axes === "latents" ? this.info.latents.map((l) => this.latent(l)) : this.order.map((_, i) => this.singular(i));
    const first = this.info.latents.filter((l) => l.active).length || this.sliders.length;
    const [shown, rest] = [this.sliders.slice(0, first), this.sliders.slice(first)].map((some) => some.map((s) => s.element));
    const what = `${rest.length} ${axes === "latents" ? "passive latent" : "weak direction"}${rest.length === 1 ? "" : "s"}`;
    this.rows.replaceChildren(...shown, ...(rest.length ? [h("details", {}, h("summary", {}, what), ...rest)] : []));
    if (this.z) this.refresh();
  }

  latent({ latent, factor, share, kl, active, low, high }) {
    const tag = active && factor ? `${factor} ${Math.round(100 * share)} %` : "";
    const spec = { label: `z${latent}`, title: `Latent ${latent}`, tag, says: kl === null ? "" : `${number(kl, 2)} nats`, low, high, step: (high - low) / 60 };
    return new Slider({ ...spec, key: latent }, (...move) => this.slide(latent, ...move));
  }

  singular(i) {
    const spec = { key: i, label: `v${i + 1}`, title: `Singular curve ${i + 1}`, says: "", low: -3, high: 3, step: 0.1 };
    return new Slider(spec, (...move) => this.along(i, ...move));
  }

  slide(latent, value, settled, fresh) {
    if (this.app.busy) return this.refresh();
    this.app.before(`${this.letter}${latent}`, fresh);
    const z = [...this.z];
    z[latent] = value;
    this.move(z);
    return this.app.moved(this, settled);
  }

  // Follow a singular vector's curve from where the component was taken up, t to the right or left.
  async along(component, t, settled, fresh) {
    if (this.app.busy) return this.refresh();
    this.app.before(`${this.letter}v${component}`, fresh);
    if (this.curve?.component !== component) this.curve = { component, base: this.z, sides: {}, t: 0 };
    const curve = this.curve;
    curve.t = t;
    this.sliders[component].set(t);
    const side = t < 0 ? "back" : "forth";
    curve.sides[side] ??= this.path(component, t >= 0);
    try {
      await curve.sides[side];
    } catch (error) {
      this.curve = null;
      failed(error);
    }
    if (this.curve !== curve || (curve.t < 0 ? "back" : "forth") !== side) return undefined;
    this.ride(curve, await curve.sides[side]);
    return this.app.moved(this, settled);
  }

  async path(component, forward) {
    const slider = this.sliders[component];
    slider.busy(true);
    try {
      return await api.curve({ ...this.point(this.curve.base), component, forward });
    } finally {
      slider.busy(false);
    }
  }

  ride(curve, found) {
    const last = (found.z.length - 1) * found.step;
    const length = Math.min(Math.abs(curve.t), last);
    if (Math.abs(curve.t) > last) notice(`This curve ends ${number(last, 2)} from its start: ${found.reason}.`);
    else if (found.meets !== null && length >= found.meets * found.step) notice("Two singular values meet on this curve; beyond, its direction is the nearest one.");
    curve.t = Math.sign(curve.t) * length;
    const i = Math.min(Math.floor(length / found.step), found.z.length - 1);
    const [from, to] = [found.z[i], found.z[Math.min(i + 1, found.z.length - 1)]];
    const share = length / found.step - i;
    this.move(from.map((v, k) => v + share * (to[k] - v)), curve);
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
    this.decoding.ask(this.z);
    clearTimeout(this.pause);
    this.pause = setTimeout(() => this.measuring.ask(this.z), QUIET);
    this.app.note();
  }

  point = (z) => ({ model: this.model, aligned: this.app.aligned, z });

  async decode(z) {
    const began = performance.now();
    const { start } = this;
    const beginning = this.beginning ?? (await api.decode(this.point(start)));
    if (this.start === start) this.beginning = beginning;
    this.x = z === start ? beginning : await api.decode(this.point(z));
    Object.assign(this.element.dataset, { z: JSON.stringify(z), ms: (performance.now() - began).toFixed(1) }); // what is drawn
    this.paint();
    this.app.decoded(this);
  }

  paint() {
    const { shape } = this.app.about.data;
    if (!this.x || !this.beginning) return;
    const input = this.app.input?.x ?? this.beginning;
    const behind = this.app.input?.x;
    const more = { cloud: this.info.cloud, behind };
    const reference = this.app.against === "input" ? input : this.beginning;
    show(this.canvases.input, input, shape, { cloud: this.info.cloud });
    show(this.canvases.decoded, this.x, shape, { ...more, columns: this.arrows });
    showSigned(this.canvases.difference, this.x.map((v, i) => v - reference[i]), shape, 1);
    this.captions.input.textContent = this.app.input ? this.app.input.caption : "start";
    this.known.textContent = this.app.input?.known ?? "";
    this.against.value = this.app.against;
  }

  async measure(z) {
    const found = await api.geometry({ ...this.point(z), axes: this.app.axes });
    this.found = { ...found, columns: api.floats(found.columns), axes: this.app.axes };
    this.element.dataset.cost = found.cost;
    this.sketch();
  }

  // Draw the geometry that was last measured.
  sketch() {
    const { found } = this;
    if (found?.axes !== this.app.axes || found.norms.length !== this.order.length) return;
    const { shape } = this.app.about.data;
    const { columns } = found;
    const n = columns.length / this.order.length;
    const column = (k) => columns.subarray(k * n, (k + 1) * n);
    const active = this.info.latents.filter((l) => l.active).map((l) => l.latent);
    const largest = columns.reduce((most, v) => Math.max(most, Math.abs(v)), 1e-9);
    this.sliders.forEach((s) => s.column(column(s.spec.key), shape, largest, found.norms[s.spec.key]));
    if (this.app.axes === "singular") this.sliders.forEach((s, i) => (s.says.textContent = mixture(found.vectors, i, found.singular[i])));
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
  const words = parts.slice(0, 2).filter(([v]) => Math.abs(v) > 0.1).map(([v, k]) => `${Math.abs(v).toFixed(1)} z${k}`);
  return `s ${number(s, 2)} · ${words.join(", ")}`;
}

// Codes of some rows in two latents, coloured by a factor. A click, or Enter on a point, loads its row.

import { factorColour } from "/colours.js";
import { h, options } from "/dom.js";
import { surface } from "/picture.js";

const SIZE = 340;
const EDGE = 14;
const MANY = 20; // values that may still be seen as classes
const REACH = 12; // pixels within which a click finds a point

export class Scatter {
  constructor(factors, load, about) {
    Object.assign(this, { factors, load, at: -1, view: { x: null, y: null, colour: "", classes: null } });
    this.x = h("select", { "aria-label": "Horizontal latent", onchange: () => this.chosen() });
    this.y = h("select", { "aria-label": "Vertical latent", onchange: () => this.chosen() });
    this.colour = h("select", { "aria-label": "Colour by factor", onchange: () => this.chosen() });
    this.classes = h("input", { type: "checkbox", onchange: () => this.chosen(true) });
    const title = "One colour a value, or a scale from low to high";
    this.sort = h("label", { class: "sort", title }, this.classes, " as classes");
    this.canvas = h("canvas", {
      tabindex: 0,
      role: "application",
      "aria-roledescription": "scatter plot",
      "aria-label": "Codes of the data. Arrows go from point to point, Enter loads one.",
      onclick: (event) => this.click(event),
      onpointermove: (event) => this.hover(event),
      onpointerleave: () => this.go(-1),
      onkeydown: (event) => this.key(event),
    });
    this.cloud = h("canvas"); // never shown
    this.says = h("p", { class: "hint", "aria-live": "polite" });
    this.legend = h("p", { class: "legend" });
    const picks = [
      h("label", {}, "across ", this.x),
      h("label", {}, "up ", this.y),
      factors.length ? h("label", {}, "colour ", this.colour) : null,
      this.sort,
    ];
    const beside = h(
      "div",
      { class: "beside" },
      h("h2", {}, "Codes"),
      h("p", { class: "hint which" }, about),
      h("div", { class: "picks" }, ...picks),
      this.legend,
      this.says,
    );
    this.element = h("section", { class: "scatter card" }, beside, this.canvas);
    new ResizeObserver(() => this.canvas.clientWidth !== this.size && this.draw()).observe(this.canvas);
  }

  // codes (N, K) and factors (N, F), flat; latents in the page's order
  set({ codes, values, rows, latents }) {
    Object.assign(this, { codes, values, rows, K: latents.length, at: -1 });
    const entries = latents.map((l) => [
      String(l.latent),
      `z${l.latent}${l.name ? ` · ${l.name}` : l.active && l.factor ? ` · ${l.factor}` : ""}`,
    ]);
    const known = (k, other) =>
      entries.some(([value]) => value === String(k)) ? k : Number(entries[Math.min(other, entries.length - 1)][0]);
    this.view.x = known(this.view.x, 0);
    this.view.y = known(this.view.y, 1);
    options(this.x, entries, String(this.view.x));
    options(this.y, entries, String(this.view.y));
    options(this.colour, [["", "nothing"], ...this.factors.map((f) => [f.name, f.name])], this.view.colour);
    this.draw();
  }

  choose(view) {
    this.view = { ...this.view, ...view };
    if (this.codes) for (const name of ["x", "y", "colour"]) this[name].value = String(this.view[name]);
    this.draw();
  }

  chosen(sorted = false) {
    const { colour, classes } = this.view;
    this.view = { x: Number(this.x.value), y: Number(this.y.value), colour: this.colour.value, classes };
    if (sorted) this.view.classes = this.classes.checked;
    else if (colour !== this.view.colour) this.view.classes = null;
    this.draw();
    this.onview?.();
  }

  // The point moved: the cloud is drawn anew only if it no longer fits.
  move(z, start) {
    Object.assign(this, { z, start });
    const inside = ([low, high], v) => v >= low && v <= high;
    if (this.limits && inside(this.limits[0], z[this.view.x]) && inside(this.limits[1], z[this.view.y])) this.mark();
    else this.draw();
  }

  column = (k) => Array.from(this.rows, (_, i) => this.codes[i * this.K + k]);

  fit(k) {
    const values = [...this.column(k), this.z?.[k] ?? 0];
    return [Math.min(-2.5, ...values), Math.max(2.5, ...values)];
  }

  place(u, v) {
    const [[a, b], [c, d]] = this.limits;
    const room = this.size - 2 * EDGE;
    return [EDGE + ((u - a) / (b - a)) * room, this.size - EDGE - ((v - c) / (d - c)) * room];
  }

  // The cloud, kept as an image, and the marks on it.
  draw() {
    if (!this.codes) return;
    this.size = this.canvas.clientWidth || SIZE;
    const { x, y } = this.view;
    this.limits = [this.fit(x), this.fit(y)];
    const style = getComputedStyle(this.canvas);
    const context = surface(this.cloud, this.size, this.size);
    this.cross(context, style.getPropertyValue("--rule"));
    const colour = this.colours(style.getPropertyValue("--down"));
    const [across, up] = [this.column(x), this.column(y)];
    this.places = across.map((u, i) => this.place(u, up[i]));
    context.globalAlpha = 0.75;
    this.places.forEach(([u, v], i) => {
      context.fillStyle = colour(i);
      context.fillRect(u - 1.5, v - 1.5, 3, 3);
    });
    this.mark();
  }

  mark() {
    const context = surface(this.canvas, this.size, this.size);
    const style = getComputedStyle(this.canvas);
    const { x, y } = this.view;
    context.drawImage(this.cloud, 0, 0, this.size, this.size);
    if (this.start)
      this.ring(context, this.place(this.start[x], this.start[y]), 4, style.getPropertyValue("--muted"), 1.5);
    if (this.z) this.ring(context, this.place(this.z[x], this.z[y]), 7, style.getPropertyValue("--text"), 2.5);
    if (this.at >= 0) this.ring(context, this.places[this.at], 6, style.getPropertyValue("--accent"), 2);
  }

  cross(context, colour) {
    const [u, v] = this.place(0, 0);
    context.strokeStyle = colour;
    context.beginPath();
    context.moveTo(u, 0);
    context.lineTo(u, this.size);
    context.moveTo(0, v);
    context.lineTo(this.size, v);
    context.stroke();
  }

  ring(context, [u, v], radius, colour, width) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    context.arc(u, v, radius, 0, 2 * Math.PI);
    context.stroke();
  }

  // Classes have a colour each. Whole numbers may be either; a label that stands alone is taken as classes.
  get asClasses() {
    const factor = this.factors.find((f) => f.name === this.view.colour);
    if (!factor || factor.size === null) return false;
    if (factor.size > MANY) return factor.kind === "categorical";
    const label = factor.kind === "ordinal" && this.factors.length === 1;
    return this.view.classes ?? (factor.kind === "categorical" || label);
  }

  // index of a point -> its colour; draws the legend on the way
  colours(plain) {
    const f = this.factors.findIndex((factor) => factor.name === this.view.colour);
    const size = this.factors[f]?.size ?? null;
    this.sort.hidden = size === null || size > MANY;
    this.classes.checked = this.asClasses;
    if (f < 0) {
      this.legend.replaceChildren();
      return () => plain;
    }
    const column = Array.from(this.rows, (_, i) => this.values[i * this.factors.length + f]);
    const [low, high] = [Math.min(...column), Math.max(...column)];
    const colour = factorColour(this.factors[f], low, high, this.asClasses);
    const few = this.factors[f].size !== null && this.factors[f].size <= (this.asClasses ? MANY : 10);
    const marks = few
      ? [...new Set(column)].sort((a, b) => a - b)
      : [0, 1, 2, 3, 4].map((i) => low + (i / 4) * (high - low));
    this.legend.replaceChildren(`${this.view.colour} `, ...marks.map((value) => this.patch(colour(value), value)));
    return (i) => colour(column[i]);
  }

  patch(colour, value) {
    const box = h("i");
    box.style.background = colour;
    return h("span", {}, box, String(Number(value.toPrecision(3))));
  }

  nearest([u, v], allowed = () => true) {
    let [best, at] = [Infinity, -1];
    this.places.forEach(([a, b], i) => {
      const far = (a - u) ** 2 + (b - v) ** 2;
      if (far < best && allowed(a - u, b - v, i)) [best, at] = [far, i];
    });
    return [at, Math.sqrt(best)];
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const [at, far] = this.nearest([event.clientX - box.left, event.clientY - box.top]);
    return far <= REACH ? at : -1;
  }

  hover(event) {
    const at = this.under(event);
    if (at !== this.at) this.go(at);
  }

  go(at) {
    this.at = at;
    const F = this.factors.length;
    const known =
      at < 0
        ? ""
        : this.factors.map((f, i) => `${f.name} ${Number(this.values[at * F + i].toPrecision(3))}`).join(", ");
    this.says.textContent = at < 0 ? "" : `row ${this.rows[at]}${known && `: ${known}`}`;
    this.mark();
  }

  click(event) {
    const at = this.under(event);
    if (at >= 0) this.load(this.rows[at]);
  }

  key(event) {
    const ways = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key === "Enter" && this.at >= 0) this.load(this.rows[this.at]);
    else if (ways[event.key]) this.step(...ways[event.key]);
    else return;
    event.preventDefault();
  }

  // the nearest point in a direction, at most 45 degrees off it
  step(right, down) {
    const from = this.at >= 0 ? this.places[this.at] : this.place(this.z[this.view.x], this.z[this.view.y]);
    const [at] = this.nearest(
      from,
      (u, v, i) => i !== this.at && right * u + down * v > Math.abs(right ? v : u) && right * u + down * v > 2,
    );
    if (at >= 0) this.go(at);
  }
}

// One row an axis: its name, what it knows, a slider, the number, and what it moves (a column of the Jacobian).

import { h, number } from "/dom.js";
import { showSigned } from "/picture.js";

export class Slider {
  // spec: {key, label, says, tag, low, high, step}; moved(value, settled, fresh) is called at every move:
  // is it the last of a drag, is it surely the first
  constructor(spec, moved) {
    Object.assign(this, { spec, moved });
    const range = { type: "range", min: spec.low, max: spec.high, step: "any", "aria-label": spec.title };
    this.range = h("input", {
      ...range,
      oninput: () => this.change(this.range.valueAsNumber, false),
      onchange: () => this.change(this.range.valueAsNumber, true),
      onkeydown: (event) => this.key(event),
      ondblclick: () => this.change(this.start, true),
    });
    this.box = h("input", {
      type: "number",
      step: 0.1,
      "aria-label": `${spec.title}, number`,
      onchange: () => this.typed(),
    });
    this.thumb = h("canvas", {
      class: "thumb",
      width: 1,
      height: 1,
      role: "img",
      "aria-label": `What ${spec.label} moves`,
    });
    this.says = h("small", {}, [spec.name ? spec.label : "", spec.says].filter(Boolean).join(" · "));
    this.called = h("b", {}, spec.name || spec.label);
    if (spec.rename) this.called = this.nameable();
    this.name = h("span", { class: "name" }, this.called, spec.tag ? h("em", {}, spec.tag) : null, this.says);
    this.moves = h("small", { class: "moves" });
    this.track = h("span", { class: "track" }, this.range, this.moves);
    this.element = h("div", { class: "slider" }, this.name, this.track, this.box, this.thumb);
    this.start = 0;
  }

  // A click on the name makes it a box: Enter keeps what it says with the run, Escape does not.
  nameable() {
    const title = `Give ${this.spec.label} a name; it is kept with the run`;
    const how = { class: "rename", title, "aria-label": title, onclick: () => this.edit() };
    return h("button", how, h("b", {}, this.spec.name || this.spec.label));
  }

  edit() {
    const words = this.spec.name ?? "";
    const box = h("input", { type: "text", maxlength: 40, "aria-label": `Name of ${this.spec.label}`, value: words });
    let open = true;
    const end = (keep) => {
      if (!open) return;
      open = false;
      if (keep && box.value.trim() !== words) this.spec.rename(box.value);
      else box.replaceWith(this.called);
    };
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === "Escape") end(event.key === "Enter");
    });
    box.addEventListener("blur", () => end(true));
    this.called.replaceWith(box);
    box.select();
  }

  change(value, settled, fresh = false) {
    if (Number.isFinite(value)) this.moved(value, settled, fresh);
  }

  typed() {
    const value = this.box.valueAsNumber;
    if (Number.isFinite(value) && Math.abs(value) <= 1000) this.change(value, true);
    else this.set(this.value);
  }

  // arrows by hand: "any" has no step of its own
  key(event) {
    const { low, high, step } = this.spec;
    const moves = {
      ArrowRight: step,
      ArrowUp: step,
      ArrowLeft: -step,
      ArrowDown: -step,
      PageUp: 5 * step,
      PageDown: -5 * step,
    };
    let to = null;
    if (event.key in moves)
      to = Math.min(Math.max(this.value + moves[event.key], Math.min(low, this.value)), Math.max(high, this.value));
    else if (event.key === "Home") to = low;
    else if (event.key === "End") to = high;
    else if (event.key === "0") to = this.start;
    if (to === null || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.change(to, false, !event.repeat);
  }

  set(value) {
    this.value = value;
    this.range.min = Math.min(this.spec.low, value);
    this.range.max = Math.max(this.spec.high, value);
    this.range.value = value;
    this.box.value = Number(value.toFixed(3));
    this.tick();
  }

  // the mark where it all began
  begin(value) {
    this.start = value;
    this.tick();
  }

  tick() {
    const [low, high] = [Number(this.range.min), Number(this.range.max)];
    const share = (value) => (Math.min(Math.max(value, low), high) - low) / (high - low);
    this.track.style.setProperty("--start", share(this.start));
    if (!this.spec.within) return;
    this.track.classList.add("ranged");
    ["--low", "--high"].forEach((name, i) => this.track.style.setProperty(name, share(this.spec.within[i])));
  }

  column(x, shape, largest, length, { features = [], units = "" } = {}) {
    showSigned(this.thumb, x, shape, largest);
    this.thumb.title = `|column| = ${number(length)}`;
    const order = features.map((name, i) => [name, x[i]]).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const words = order.slice(0, 3).map(([name, v]) => `${name} ${v < 0 ? "−" : "+"}${number(Math.abs(v), 2)}`);
    this.moves.textContent = words.join(", ");
    this.moves.title = features.length ? `The columns it moves most here, per unit of the latent, ${units}` : "";
  }

  busy(is) {
    this.element.classList.toggle("busy", is);
  }
}

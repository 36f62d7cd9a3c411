// One row an axis: its name, what it knows, a slider, the number, and what it moves (a column of the Jacobian).

import { h, number } from "/dom.js";
import { showSigned } from "/picture.js";

export class Slider {
  // spec: {key, label, says, tag, low, high, step}; moved(value, settled, fresh) is told of every move:
  // is it the last of a drag, is it surely the first
  constructor(spec, moved) {
    Object.assign(this, { spec, moved });
    const range = { type: "range", min: spec.low, max: spec.high, step: "any", "aria-label": spec.title };
    this.range = h("input", {
      ...range,
      oninput: () => this.told(this.range.valueAsNumber, false),
      onchange: () => this.told(this.range.valueAsNumber, true),
      onkeydown: (event) => this.key(event),
      ondblclick: () => this.told(this.start, true),
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
    this.says = h("small", {}, spec.says);
    this.name = h(
      "span",
      { class: "name" },
      h("b", {}, spec.label),
      spec.tag ? h("em", {}, spec.tag) : null,
      this.says,
    );
    this.track = h("span", { class: "track" }, this.range);
    this.element = h("div", { class: "slider" }, this.name, this.track, this.box, this.thumb);
    this.start = 0;
  }

  told(value, settled, fresh = false) {
    if (Number.isFinite(value)) this.moved(value, settled, fresh);
  }

  typed() {
    const value = this.box.valueAsNumber;
    if (Number.isFinite(value) && Math.abs(value) <= 1000) this.told(value, true);
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
    this.told(to, false, !event.repeat);
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
    this.track.style.setProperty("--start", (Math.min(Math.max(this.start, low), high) - low) / (high - low));
  }

  column(x, shape, largest, length) {
    showSigned(this.thumb, x, shape, largest);
    this.thumb.title = `|column| = ${number(length)}`;
  }

  busy(is) {
    this.element.classList.toggle("busy", is);
  }
}

// From one row to another: the straight line between their codes, each model in its own latent space; and play.

import { byId, notice, rowOf } from "/dom.js";
import { film } from "/save.js";

const SECONDS = 3; // one way

export class Way {
  constructor(app) {
    Object.assign(this, { app, key: null, ends: [], playing: 0, t: 0 });
    byId("way-play").addEventListener("click", () => (this.playing ? this.pause() : this.play()));
    byId("way-any").addEventListener("click", () => this.take(this.from, this.app.anyRow()));
    byId("way-at").addEventListener("input", () => this.slid(false));
    byId("way-at").addEventListener("change", () => this.slid(true));
    for (const end of ["from", "to"]) byId(`way-${end}`).addEventListener("change", () => this.typed());
    byId("way-strip").addEventListener("click", () => this.save("grid"));
    byId("way-gif").addEventListener("click", () => this.save("gif"));
  }

  get shown() {
    return !byId("way").hidden;
  }

  // Show or hide the bar; `to` is the other end, any row when none is given.
  async toggle(is = !this.shown, to = this.app.anyRow()) {
    this.pause();
    byId("way").hidden = !is;
    if (is) await this.take(this.app.input?.row ?? this.app.about.first, to);
    this.app.show();
  }

  // As an address had it: the point stays where it is until the way is taken.
  resume(from, to) {
    byId("way").hidden = false;
    Object.assign(this, { from, to });
    this.draw();
  }

  // Another row was loaded: the way starts there.
  follow() {
    const row = this.app.input?.row;
    if (row !== this.from) Object.assign(this, { from: row ?? this.from, key: null, t: 0 });
    this.draw();
  }

  take(from, to) {
    Object.assign(this, { from, to, key: null, t: 0 });
    return this.app.act(() => this.prepare());
  }

  typed() {
    const { rows } = this.app.about.data;
    const [from, to] = [rowOf(byId("way-from"), rows, this.from), rowOf(byId("way-to"), rows, this.to)];
    if (from !== this.from || to !== this.to) this.take(from, to);
  }

  // Both ends in every model; made anew when the models, their axes or the rows are others.
  async prepare() {
    const { app, from, to } = this;
    const key = JSON.stringify([from, to, app.aligned, app.panels.map((p) => p.model)]);
    if (this.key === key) return;
    const [a, b] = await Promise.all([app.observe(from), app.observe(to)]);
    const ends = app.live.map(async (p) => [p, await app.encode(p, a.x), await app.encode(p, b.x)]);
    this.ends = await Promise.all(ends);
    app.input = a;
    this.ends.forEach(([panel, start]) => panel.begin(start));
    this.key = key;
    this.draw();
  }

  go(t) {
    this.t = t;
    this.app.leader = null; // each model goes its own way
    this.ends.forEach(([panel, a, b]) => panel.move(a.map((v, k) => v + t * (b[k] - v))));
    this.draw();
  }

  async slid(settled) {
    const t = byId("way-at").valueAsNumber;
    if (this.app.busy) return this.draw();
    this.pause();
    this.app.before("way", false);
    if (settled) this.app.sliding = null;
    await this.ready();
    return this.go(t);
  }

  ready = () => this.prepare().catch((error) => notice(error.message, true));

  async play() {
    await this.app.act(() => this.prepare());
    const began = performance.now() - 1000 * SECONDS * this.t;
    const frame = (now) => {
      const turn = (Math.max(now - began, 0) / 1000 / SECONDS) % 2;
      this.go(turn <= 1 ? turn : 2 - turn);
      this.playing = requestAnimationFrame(frame);
    };
    this.playing = requestAnimationFrame(frame);
    this.draw();
  }

  pause() {
    cancelAnimationFrame(this.playing);
    this.playing = 0;
    this.draw();
  }

  async save(kind) {
    await this.ready();
    const words = `row${this.from}-to-row${this.to}`;
    for (const [panel, z, to] of this.ends) await film(this.app, panel, { z, to, kind }, words);
  }

  draw() {
    const values = { "way-from": this.from, "way-to": this.to, "way-at": this.t };
    const typing = (id) => document.activeElement === byId(id) && id !== "way-at";
    for (const [id, value] of Object.entries(values)) if (!typing(id)) byId(id).value = value ?? "";
    byId("way-share").textContent = `${Math.round(100 * this.t)} %`;
    byId("way-play").textContent = this.playing ? "❚❚ Pause" : "▶ Play";
    byId("way-play").setAttribute("aria-pressed", Boolean(this.playing));
  }
}

// The page: one or two models on one input, what may be done with them, and the way back.

import * as address from "/address.js";
import * as api from "/api.js";
import { byId, notice } from "/dom.js";
import { Panel } from "/panel.js";
import { Way } from "/way.js";

const failed = (error) => notice(error.message, true);
const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
const times = (z, R) => R[0].map((_, j) => z.reduce((sum, v, i) => sum + v * R[i][j], 0)); // z R
const there = ({ there: A, shift }, z) => times(z.map((v, k) => v - shift[k]), A); // into the preferred axes
const back = ({ back: A, shift }, z) => times(z, A).map((v, k) => v + shift[k]);

export class App {
  panels = [];
  input = null; // {x, row, caption}, or null for a draw from the prior
  past = [];
  future = [];
  sliding = null; // the slider that is being dragged
  leader = null; // the panel that the other one follows
  busy = false; // while an action is under way, sliders wait
  queue = Promise.resolve(); // actions come one after the other
  way = new Way(this);
  following = new api.Latest((from) => this.follow(from), failed);

  async begin() {
    this.about = await api.about();
    const from = address.read(this.about);
    Object.assign(this, { aligned: from.aligned, axes: from.axes, against: from.against, linked: from.linked });
    const { name, shape } = this.about.data;
    byId("subject").textContent = byId("subject").title = name;
    document.title = `${name} · unseam explorer`;
    byId("row").max = this.about.data.rows - 1;
    byId("file").accept = shape.length === 3 ? "image/*" : ".csv,.txt";
    for (const model of from.models) await this.add(model);
    await this.restart(from.row ?? (from.z[0] ? null : this.about.first), from.z);
    this.panels.forEach((p, i) => p.broken || p.scatter.choose(this.fitting(p, from.views[i])));
    await this.pair().catch(failed);
    if (from.to !== null && this.input) this.way.resume(this.input.row, from.to);
    this.show();
    document.body.dataset.ready = "yes";
  }

  // Panels whose model can be looked at.
  get live() {
    return this.panels.filter((p) => !p.broken);
  }

  // The view that the address asks for, or the two most informative latents and the factor that the first knows.
  fitting(panel, view) {
    const has = (k) => panel.order.includes(k);
    const [x, y = x] = panel.order;
    const colours = ["", ...this.about.data.factors.map((f) => f.name)];
    const colour = colours.includes(view.colour) ? view.colour : (this.live[0].info.latents[0].factor ?? "");
    return { x: has(view.x) ? view.x : x, y: has(view.y) ? view.y : y, colour, classes: view.classes ?? null };
  }

  async add(model) {
    const panel = new Panel(this, "AB"[this.panels.length], model);
    await panel.open();
    this.panels.push(panel);
    byId("panels").append(panel.element);
  }

  // Start from a row, or (row null) from the points given.
  async restart(row, points = []) {
    this.input = row === null ? null : await this.observe(row);
    for (const [i, panel] of this.panels.entries()) {
      if (panel.broken) continue;
      const z = points[i]?.length === panel.order.length ? points[i] : null;
      const start = this.input ? await this.encode(panel, this.input.x) : (z ?? panel.order.map(() => 0));
      panel.begin(start, z ?? start);
    }
  }

  async observe(row) {
    const { x, factors } = await api.row(row);
    const known = this.about.data.factors.map((f, i) => `${f.name} ${Number(factors[i].toPrecision(3))}`).join(", ");
    return { x, row, caption: `row ${row}`, known };
  }

  encode = async (panel, x) => (await api.encode(panel.model, this.aligned, x)).z;

  // One user's action: what was before can be had back, and a failure is said in one line.
  act(work) {
    return this.inTurn(async () => {
      this.remember();
      try {
        await work();
      } catch (error) {
        failed(error);
        await this.restore(this.past.pop());
      }
    });
  }

  inTurn(work) {
    const doing = async () => {
      Object.assign(this, { busy: true, leader: null, sliding: null });
      this.way.pause();
      document.body.classList.add("working");
      await work().catch(failed);
      await this.pair().catch(failed);
      document.body.classList.remove("working");
      this.busy = false;
      this.show();
    };
    this.queue = this.queue.then(doing);
    return this.queue;
  }

  load = (row) => this.act(async () => this.all(await this.observe(row)));

  async all(input) {
    const places = await Promise.all(this.live.map((p) => this.encode(p, input.x)));
    this.input = input;
    this.live.forEach((p, i) => p.begin(places[i]));
  }

  draw() {
    return this.act(async () => {
      const [first, ...rest] = this.live;
      if (!first) return;
      const z = first.order.map(() => 0);
      for (const { latent, middle, spread } of first.info.latents) z[latent] = middle + spread * normal();
      const x = await api.decode(first.point(z));
      const places = await Promise.all(rest.map((p) => this.encode(p, x)));
      this.input = null;
      [z, ...places].forEach((place, i) => this.live[i].begin(place));
    });
  }

  own(file) {
    return this.act(async () => {
      const x = await api.upload(file);
      await this.all({ x, caption: file.name });
    });
  }

  anyRow() {
    const rows = this.live[0]?.info.rows ?? [this.about.first];
    return rows[Math.floor(Math.random() * rows.length)];
  }

  random = () => this.load(this.anyRow());

  step(by) {
    const { rows } = this.about.data;
    return this.act(async () =>
      this.all(await this.observe(((((this.input?.row ?? this.about.first) + by) % rows) + rows) % rows)),
    );
  }

  reset = () => this.act(async () => this.live.forEach((p) => p.begin(p.start)));

  // Sliders: the first move of a drag is remembered, the other model follows.
  before(slider, fresh) {
    if (slider !== "way") this.way.pause();
    if (fresh || this.sliding !== slider) this.remember();
    this.sliding = slider;
  }

  moved(panel, settled) {
    this.leader = panel;
    if (settled) this.sliding = null;
  }

  decoded(panel) {
    if (this.linked && this.leader === panel && this.panels.length > 1) this.following.ask(panel);
  }

  async follow(leader) {
    const other = this.live.find((p) => p !== leader);
    const z = other && (await this.encode(other, leader.x));
    if (z && this.leader === leader) other.move(z);
  }

  // Which latent of the other model each one is; asked again only when a model or the axes have changed.
  async pair() {
    const [a, b] = this.live;
    const now = b ? [a.model, b.model, this.aligned].join() : "";
    if (now === this.paired) return;
    this.paired = now;
    const { twins, chance } = b ? await api.twins(a.model, b.model, this.aligned) : { twins: [] };
    const sure = twins.filter((t) => t.agreement > chance);
    this.live.forEach((p) => p.pair(b && (p === a ? b : a), sure, p === a));
  }

  // Two ways to look at a model.
  axis(axes) {
    this.axes = axes;
    this.live.forEach((p) => p.layOut());
    this.show();
  }

  // Turned are those models that turning helps; where it helps none, nothing is turned and the user is told why.
  align = () =>
    this.act(async () => {
      const found = await Promise.all(this.live.map((p) => api.alignment(p.model)));
      const whose = (i) => (found.length > 1 ? `${this.live[i].letter}: ` : "");
      const say = (words) => found.map((f, i) => whose(i) + words(f)).join(". ");
      if (!this.aligned && !found.some((f) => f.helped)) {
        this.past.pop();
        return notice(`Align stays off, it did not help: ${say((f) => f.verdict)}`);
      }
      this.aligned = !this.aligned;
      await this.turn(found.map((f) => (z) => (this.aligned ? there : back)(f, z)));
      if (this.aligned) notice(say((f) => f.verdict + (f.helped ? "" : " (its axes stay as they were)")));
      return undefined;
    });

  // The same points, in the new axes.
  async turn(ways) {
    for (const [i, panel] of this.live.entries()) {
      await panel.open();
      panel.begin(ways[i](panel.start), ways[i](panel.z));
    }
  }

  changed = (panel, model) =>
    this.act(async () => {
      const x = this.input?.x ?? this.live[0]?.x ?? (await this.observe(this.about.first)).x;
      const { broken } = panel;
      await panel.open(model);
      if (!panel.broken) panel.begin(await this.encode(panel, x));
      if (broken && !panel.broken) panel.scatter.choose(this.fitting(panel, {}));
    });

  beside = () =>
    this.act(async () => {
      const names = this.about.models.map((m) => m.model);
      await this.add(names[(names.indexOf(this.panels[0].model) + 1) % names.length]);
      const [first, panel] = this.panels;
      if (panel.broken) return;
      panel.begin(await this.encode(panel, first.x ?? (await this.observe(this.about.first)).x));
      panel.scatter.choose(this.fitting(panel, { colour: first.scatter.view.colour }));
    });

  close = (panel) => this.act(async () => this.drop(panel));

  drop(panel) {
    panel.element.remove();
    this.panels = this.panels.filter((p) => p !== panel);
  }

  compare(against) {
    this.against = against;
    this.live.forEach((p) => p.paint());
    this.note();
  }

  link() {
    this.linked = !this.linked;
    this.show();
  }

  // The way back.
  snapshot = () => ({
    input: this.input,
    aligned: this.aligned,
    panels: this.panels.map(({ model, z, start }) => ({ model, z, start })),
  });

  remember() {
    this.past.push(this.snapshot());
    if (this.past.length > 200) this.past.shift();
    this.future = [];
    this.show();
  }

  travel(from, to) {
    return this.inTurn(async () => {
      if (!this[from].length) return;
      this[to].push(this.snapshot());
      await this.restore(this[from].pop());
    });
  }

  undo = () => this.travel("past", "future");
  redo = () => this.travel("future", "past");

  async restore({ input, aligned, panels }) {
    const turned = aligned !== this.aligned;
    Object.assign(this, { input, aligned });
    while (this.panels.length > panels.length) this.drop(this.panels.at(-1));
    while (this.panels.length < panels.length) await this.add(panels[this.panels.length].model);
    for (const [i, { model, z, start }] of panels.entries()) {
      if (turned || this.panels[i].model !== model) await this.panels[i].open(model);
      if (!this.panels[i].broken) this.panels[i].begin(start, z);
    }
  }

  // Buttons say what is the case.
  show() {
    const pressed = { align: this.aligned, link: this.linked, between: this.way.shown };
    for (const [id, is] of Object.entries(pressed)) byId(id).setAttribute("aria-pressed", is);
    for (const id of ["latents", "singular"]) byId(id).setAttribute("aria-checked", this.axes === id);
    byId("undo").disabled = !this.past.length;
    byId("redo").disabled = !this.future.length;
    byId("compare").hidden = this.panels.length > 1;
    byId("link").hidden = this.panels.length < 2;
    byId("panels").dataset.count = this.panels.length;
    this.panels.forEach((p, i) => (p.close.hidden = i === 0));
    this.way.follow();
    byId("row").value = this.input?.row ?? "";
    this.note();
  }

  // The address, a moment after the last change.
  note() {
    clearTimeout(this.writing);
    this.writing = setTimeout(() => this.panels.every((p) => p.z || p.broken) && address.write(this), 150);
  }
}

// The elements of one model's panel, empty: what is in them is panel.js's affair.

import { h, options } from "/dom.js";
import { kind } from "/picture.js";
import { film, saveLatents, savePicture } from "/save.js";
import { Scatter } from "/scatter.js";

const div = (name, ...children) => h("div", { class: name }, ...children);
const card = (name, ...children) => h("section", { class: `card ${name}` }, ...children);

export function frame(panel) {
  const { app, letter } = panel;
  const { data } = app.about;
  const parts = { ...head(panel), ...pictures(panel, app, kind(data.shape)), ...geometry(), ...sliders() };
  parts.scatter = new Scatter(data.factors, (row) => app.load(row), app.about.rows.words);
  parts.scatter.onview = () => app.note();
  parts.apology = h("p", { class: "card apology", role: "alert", hidden: true });
  const left = div("column", parts.pictures, parts.geometry);
  const right = div("column", parts.latents, parts.scatter.element);
  parts.element = h(
    "section",
    { class: "panel", "aria-label": `Model ${letter}` },
    parts.header,
    parts.apology,
    (parts.grid = div("grid", left, right)),
  );
  return parts;
}

function head(panel) {
  const { app, letter, model } = panel;
  const change = () => app.changed(panel, pick.value);
  const pick = h("select", { class: "model", "aria-label": `Model ${letter}`, onchange: change });
  const ended = ({ status }) => (status === "finished" ? "" : ` · ${status}`);
  const names = app.about.models.map((m) => [m.model, `${m.run} · member ${m.member}${ended(m)}`]);
  options(pick, names, model);
  const facts = h("span", { class: "facts" });
  const button = (words, title, onclick) => h("button", { title, onclick }, words);
  const close = button("×", `Close model ${letter}`, () => app.close(panel));
  close.classList.add("close");
  close.setAttribute("aria-label", close.title);
  const images = kind(app.about.data.shape) === "image";
  const save = [
    button("Picture", "What is decoded here, as a PNG of at least 512 pixels", () => savePicture(app, panel)),
    button("Grid", "What each active latent does from here, as PNG", () => film(app, panel, { kind: "grid" })),
    images ? button("GIF", "The same, moving", () => film(app, panel, { kind: "gif" })) : null,
    button("Latents", "The latent vector as JSON", () => saveLatents(app, panel)),
  ];
  const keep = h("span", { class: "save", role: "group", "aria-label": "Save" }, "save ", ...save.filter(Boolean));
  const mark = h("span", { class: "letter" }, letter);
  return {
    pick,
    facts,
    close,
    keep,
    header: h("header", {}, mark, pick, facts, h("span", { class: "keep" }, keep, close)),
  };
}

function pictures(panel, app, how) {
  const canvas = (name) => h("canvas", { class: how, role: "img", "aria-label": name, width: 1, height: 1 });
  const canvases = Object.fromEntries(["input", "decoded", "difference"].map((name) => [name, canvas(name)]));
  const against = h("select", { "aria-label": "Difference against", onchange: () => app.compare(against.value) });
  options(
    against,
    [
      ["input", "minus input"],
      ["start", "minus start"],
    ],
    app.against,
  );
  for (const name of ["input", "decoded"])
    canvases[name].addEventListener("mousemove", ({ offsetX, currentTarget }) => {
      currentTarget.title = panel.named(offsetX / currentTarget.clientWidth, currentTarget);
    });
  const caption = h("span", {}, "input");
  const captions = { input: [caption], decoded: ["decoded"], difference: ["decoded ", against] };
  const figure = ([name, drawn]) =>
    h("figure", { class: name }, drawn, h("figcaption", {}, h("span", {}, ...captions[name])));
  const known = h("p", { class: "hint" });
  const outside = h("p", { class: "outside", role: "note" });
  return {
    canvases,
    against,
    caption,
    known,
    outside,
    pictures: card(`pictures ${how}`, ...Object.entries(canvases).map(figure), known, outside),
  };
}

function geometry() {
  const [cost, matrix, values] = [h("div"), h("div"), h("div")];
  const pair = div(
    "pair",
    div("", h("h3", {}, "cosines of Jacobian columns"), matrix),
    div("", h("h3", {}, "singular values"), values),
  );
  return { cost, matrix, values, geometry: card("geometry", h("h2", {}, "At this point"), cost, pair) };
}

function sliders() {
  const [heading, rows] = [h("h2", {}, "Latents"), div("rows")];
  return { heading, rows, latents: card("latents", heading, rows) };
}
